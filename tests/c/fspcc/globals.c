/* A program whose globals and malloc memory are shared: what fspcc --share-globals --share-malloc promises. Every processor changes
 * and checks; main checks what came of it. Alone, without a launcher, it must hold too.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "../check.h"

#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <sys/wait.h>

enum { PAGES = 40, PAGE = 4096, LINES = 50 };

struct line {
    struct line *next;
    char *text;
    int *count; /* points to a global */
    fsp_mutex_t mutex;
};

/* .data, .bss, statics, addresses of each other and of libraries */
static int ready = 41;
static int *where = &ready;
static char big[PAGES * PAGE];
static struct line *lines;
static int counts[LINES];
static fsp_mutex_t mutex;
static fsp_barrier_t barrier;
static fsp_flag_t flag;
static int constructed, arrived;
static double (*const functions[])(double) = { sin, cos, sqrt };
static double (*changeable[])(double) = { exp, log };
static FILE **output = &stdout;
static const char *const names[] = { "one", "two" };
static char path[] = "/dev/null";
static int ends[2];
static char from_pipe[PAGE + 10];

__attribute__((constructor)) static void construct(void)
{
    constructed++;
    lines = malloc(sizeof *lines); /* before main: shared already */
    *lines = (struct line){ NULL, strdup("first"), &counts[0], { 0 } };
}

/* Runs after the end of the runtime. */
__attribute__((destructor)) static void destruct(void)
{
    if (constructed != 1 || ready != 43 || big[PAGE + 5] != 'x')
        _exit(9);
}

static int next_static(void)
{
    static int calls = 100;
    return ++calls;
}

static void add_line(const char *text, int *count)
{
    struct line *line = malloc(sizeof *line);
    CHECK(fsp_is_shared(line));
    *line = (struct line){ lines, strdup(text), count, { 0 } };
    lines = line;
}

static void libraries(void)
{
    CHECK(fabs(functions[0](1) - sin(1)) < 1e-12 && functions[2](4) == 2);
    CHECK(fabs(changeable[1](changeable[0](1)) - 1) < 1e-12);
    CHECK(*output == stdout && !fsp_is_shared(&stdout) && !fsp_is_shared(&optarg) && !fsp_is_shared(&environ));
    CHECK(strcmp(names[1], "two") == 0);

    char *line = NULL, *printed, *grown = malloc(10);
    size_t size = 0;
    FILE *in = fmemopen("a line\nanother, longer line\n", 27, "r");
    CHECK(getline(&line, &size, in) == 7 && getline(&line, &size, in) == 20 && fsp_is_shared(line));
    fclose(in);
    CHECK(asprintf(&printed, "%s %d", path, 5) == 11 && fsp_is_shared(printed));
    strcpy(grown, "grown");
    grown = realloc(grown, 100000);
    CHECK(strcmp(grown, "grown") == 0 && fsp_is_shared(grown));
    char *theirs = realpath("/dev/../dev/null", NULL); /* the C library's memory */
    CHECK(theirs && !fsp_is_shared(theirs));
    theirs = realloc(theirs, 500); /* moves to the shared heap */
    CHECK(fsp_is_shared(theirs) && strcmp(theirs, path) == 0);
    free(theirs);
    free(realpath(path, NULL));
    void *aligned;
    CHECK(posix_memalign(&aligned, 256, 300) == 0 && (uintptr_t)aligned % 256 == 0);
    int *zeros = calloc(5000, sizeof *zeros);
    for (int i = 0; i < 5000; i++)
        CHECK(zeros[i] == 0);
    free(zeros);
    free(aligned);
    free(grown);
    free(printed);
    free(line);
}

/* The kernel reads and writes globals. */
static void system_calls(int me)
{
    int file = open(path, O_WRONLY);
    CHECK(file >= 0 && write(file, big, sizeof big) == sizeof big);
    close(file);
    fsp_mutex_lock(&mutex);
    CHECK(pipe(ends) == 0);
    memset(big + 2 * PAGE, 'a' + me, sizeof from_pipe);
    CHECK(write(ends[1], big + 2 * PAGE, sizeof from_pipe) == sizeof from_pipe);
    CHECK(read(ends[0], from_pipe, sizeof from_pipe) == sizeof from_pipe);
    CHECK(from_pipe[0] == 'a' + me && from_pipe[PAGE + 9] == 'a' + me);
    close(ends[0]);
    close(ends[1]);
    fsp_mutex_unlock(&mutex);
}

static void work(void *heap)
{
    int me = fsp_processor(), all = fsp_processors();

    CHECK(constructed == 1 && *where == 42 && where == &ready);
    CHECK(fsp_is_shared(&ready) && fsp_is_shared(big) && fsp_is_shared(where));
    CHECK(*(int **)heap == &ready);
    libraries();
    fsp_barrier_wait(&barrier, (unsigned)all);
    for (int i = 0; i < 20; i++) {
        fsp_mutex_lock(&mutex);
        arrived++;
        (*lines->count)++;
        big[PAGE * (i % PAGES) + me] = 'b';
        fsp_mutex_unlock(&mutex);
    }
    fsp_mutex_lock(&mutex);
    char text[20];
    snprintf(text, sizeof text, "line %d", me);
    add_line(text, &counts[1 + me % (LINES - 1)]);
    next_static();
    fsp_mutex_unlock(&mutex);
    system_calls(me);
    fsp_barrier_wait(&barrier, (unsigned)all);
    /* A lock inside memory that another processor has allocated. */
    fsp_mutex_lock(&lines->mutex);
    int found = 0;
    for (struct line *line = lines; line; line = line->next)
        found += strcmp(line->text, text) == 0;
    CHECK(found == 1 && arrived == 20 * all);
    fsp_mutex_unlock(&lines->mutex);
    if (me == all - 1) {
        ready = 43;
        big[PAGE + 5] = 'x';
        fsp_flag_set(&flag, 1);
    }
    fsp_flag_wait(&flag, 1);
    CHECK(*where == 43);
}

static void children(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (ready != 43 || big[PAGE + 5] != 'x' || constructed != 1)
            _exit(1);
        ready = 44; /* its own */
        char *text = malloc(100); /* private in a child */
        strcpy(text, "text");
        free(text);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(ready == 43);
    CHECK(system("exit 5") == 5 << 8);
}

int main(int argc, char **argv)
{
    CHECK(getopt(argc, argv, "x:") == 'x' && strcmp(optarg, "value") == 0);
    CHECK(fsp_processor() == 0);
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    ready++;
    int **heap = fsp_malloc(sizeof *heap);
    *heap = &ready;
    fsp_parallel(work, heap);
    CHECK(ready == 43 && arrived == 20 * fsp_processors());
    CHECK(next_static() == 101 + fsp_processors());
    int length = 0;
    for (struct line *line = lines; line; line = line->next)
        length++;
    CHECK(length == 1 + fsp_processors());
    while (lines) {
        struct line *line = lines;
        lines = line->next;
        free(line->text);
        free(line);
    }
    children();
    fprintf(*output, "globals: all holds\n");
    return 0;
}
