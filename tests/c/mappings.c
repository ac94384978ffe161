/* A process that has hardly any mappings left: under mprotect, rights are then changed more coarsely, and every value is
 * still right.  Each processor writes its own bytes of every page and reads all others' after a barrier.
 * run: -n 2 --faults mprotect
 * run: -n 2 -p 2 --faults mprotect
 * run: -n 2 --faults mprotect --transport tcp */
#define _GNU_SOURCE
#include <finespun/finespun.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGES = 600, PAGE = 4096, ROUNDS = 6, LEFT = 40 };

/* Cuts a scratch area into single pages until the kernel refuses, then gives a few mappings back. */
static void eat_mappings(void)
{
    size_t pages = 1 << 18;
    char *area = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) {
        perror("mappings: mmap");
        exit(1);
    }
    size_t cut = 0;
    while (cut < pages && mprotect(area + cut * PAGE, PAGE, PROT_READ) == 0)
        cut += 2;
    if (cut >= pages)
        printf("mappings: this machine has more than %zu mappings a process; nothing is scarce\n", pages);
    for (size_t back = 0; back < LEFT && cut >= 2; back += 2, cut -= 2)
        mprotect(area + (cut - 2) * PAGE, PAGE, PROT_NONE);
}

static unsigned char value(int page, int processor, int round)
{
    return (unsigned char)(page * 7 + processor * 31 + round * 101);
}

static void worker(void *argument)
{
    unsigned char *data = argument;
    int me = fsp_processor(), all = fsp_processors();
    for (int round = 0; round < ROUNDS; round++) {
        /* A stride of 7 leaves neighbours with different rights. */
        for (int i = 0; i < PAGES; i++) {
            int page = i * 7 % PAGES;
            if ((page + round) % 3 != me % 3)
                continue;
            data[page * PAGE + me] = value(page, me, round);
        }
        fsp_barrier_all();
        for (int page = 0; page < PAGES; page++)
            for (int other = 0; other < all; other++) {
                unsigned char found = data[page * PAGE + other];
                int last = round;
                while (last >= 0 && (page + last) % 3 != other % 3)
                    last--;
                unsigned char wanted = last < 0 ? 0 : value(page, other, last);
                if (found != wanted) {
                    printf("mappings: page %d processor %d round %d: %d, not %d\n", page, other, round, found, wanted);
                    fsp_abort(1, "a wrong value");
                }
            }
        fsp_barrier_all();
    }
}

int main(int argc, char **argv)
{
    eat_mappings();
    fsp_init(&argc, &argv);
    unsigned char *data = fsp_aligned_alloc(PAGE, PAGES * PAGE);
    for (int i = 0; i < PAGES * PAGE; i++)
        data[i] = 0;
    fsp_parallel(worker, data);
    fsp_finalize();
    printf("mappings: fine\n");
    return 0;
}
