/* Memory of mmap is the program's: of files, anonymous, written back, cut and grown.  Words of a text are counted, and matrices
 * multiplied, in threads over files that main has mapped.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, SIDE = 96, WORDS = 20000, PAGE = 4096 };

#define CHECK(fact)                                                        \
    do {                                                                   \
        if (!(fact)) {                                                     \
            printf("line %d: %s (%s)\n", __LINE__, #fact, strerror(errno)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static void on_all(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (long number = 0; number < THREADS; number++)
        CHECK(pthread_create(&threads[number], NULL, body, (void *)number) == 0);
    for (int number = 0; number < THREADS; number++)
        CHECK(pthread_join(threads[number], NULL) == 0);
}

static int unnamed(void)
{
    char name[] = "/tmp/finespun-mapped-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0);
    return file;
}

/* Word count */
static char *text;
static size_t length;
static long counted[THREADS];

static void *count(void *number)
{
    size_t begin = length * (size_t)(long)number / THREADS, end = length * ((size_t)(long)number + 1) / THREADS;
    for (size_t at = begin; at < end; at++)
        counted[(long)number] += isalpha((unsigned char)text[at]) && (at == 0 || !isalpha((unsigned char)text[at - 1]));
    return NULL;
}

static void count_words(void)
{
    int file = unnamed();
    for (int word = 0; word < WORDS; word++)
        CHECK(dprintf(file, "%.*s ", 1 + word % 7, "network") > 0);
    struct stat about;
    CHECK(fstat(file, &about) == 0);
    length = (size_t)about.st_size;
    text = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(text != MAP_FAILED && close(file) == 0);
    on_all(count);
    CHECK(counted[0] + counted[1] + counted[2] + counted[3] == WORDS);
    CHECK(munmap(text, length) == 0);
}

/* Matrices: one of a file, one anonymous, the product in a file */
static int (*left)[SIDE], (*right)[SIDE], (*product)[SIDE];

static void *multiply(void *number)
{
    for (int row = (int)(long)number; row < SIDE; row += THREADS)
        for (int column = 0; column < SIDE; column++) {
            int sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += left[row][k] * right[k][column];
            product[row][column] = sum;
        }
    return NULL;
}

static void multiply_matrices(void)
{
    static int row[SIDE];
    int in = unnamed(), out = unnamed();
    for (int index = 0; index < SIDE; index++) {
        for (int column = 0; column < SIDE; column++)
            row[column] = index + column;
        CHECK(write(in, row, sizeof row) == sizeof row);
    }
    CHECK(ftruncate(out, sizeof row * SIDE) == 0);
    left = mmap(NULL, sizeof row * SIDE, PROT_READ, MAP_SHARED, in, 0);
    right = mmap(NULL, sizeof row * SIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    product = mmap(NULL, sizeof row * SIDE, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
    CHECK(left != MAP_FAILED && right != MAP_FAILED && product != MAP_FAILED);
    for (int index = 0; index < SIDE; index++)
        right[index][index] = 2;
    on_all(multiply);
    CHECK(msync(product, sizeof row * SIDE, MS_SYNC) == 0);
    CHECK(pread(out, row, sizeof row, 5 * sizeof row) == sizeof row && row[7] == 24);
    product[5][7] = 25;
    CHECK(munmap(product, sizeof row * SIDE) == 0);
    CHECK(pread(out, row, sizeof row, 5 * sizeof row) == sizeof row && row[7] == 25 && row[8] == 26);
    CHECK(munmap(left, sizeof row * SIDE) == 0 && munmap(right, sizeof row * SIDE) == 0);
}

/* The rest */
static char *block;

static void *store(void *none)
{
    CHECK(block[2 * PAGE] == 'a' && block[3 * PAGE] == 0);
    block[3 * PAGE] = 'c';
    return none;
}

static void cut_and_grow(void)
{
    block = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(block != MAP_FAILED && (size_t)block % PAGE == 0);
    memset(block, 'a', 4 * PAGE);
    CHECK(munmap(block, PAGE) == 0 && munmap(block + PAGE, 0) == -1 && errno == EINVAL);
    CHECK(madvise(block + 3 * PAGE, PAGE, MADV_DONTNEED) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, store, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(block[3 * PAGE] == 'c');
    char *larger = mremap(block + 2 * PAGE, 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
    CHECK(larger != MAP_FAILED && larger[0] == 'a' && larger[PAGE] == 'c' && larger[4 * PAGE] == 0);
    CHECK(mprotect(larger, PAGE, PROT_READ) == 0);
    CHECK(mmap(larger, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == larger && larger[0] == 0);
    CHECK(munmap(larger, 5 * PAGE) == 0);
    CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
}

static void *leave(void *memory)
{
    ((char *)memory)[1] = 'y';
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "twice") == 0) {
        int file = unnamed();
        CHECK(ftruncate(file, PAGE) == 0);
        for (int time = 0; time < 2; time++)
            CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED);
    }
    count_words();
    multiply_matrices();
    cut_and_grow();
    puts("mapped: all right");
    if (argc > 1) {
        /* What is stored in any thread is in the file when the program has ended. */
        int file = open(argv[1], O_RDWR);
        char *memory = mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        CHECK(memory != MAP_FAILED && close(file) == 0);
        memory[0] = 'x';
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, leave, memory) == 0);
        pthread_join(thread, NULL);
    }
    return 0;
}
