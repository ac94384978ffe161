/* A program that closes descriptors it has not opened, in the manner named by the first argument; the last processor does it, and before
 * fsp_init (second argument "early") every process.  Then all count in shared memory.  Run by tests/cluster/descriptors.rs. */
#define _GNU_SOURCE
#include <finespun/finespun.h>

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 20
#define WORDS 512 /* of a page */

void closefrom(int lowest);
int close_range(unsigned first, unsigned last, int flags);

static void close_all(const char *how)
{
    int most = (int)sysconf(_SC_OPEN_MAX);
    if (strcmp(how, "loop") == 0)
        for (int fd = 3; fd < most; fd++) close(fd);
    if (strcmp(how, "closefrom") == 0) closefrom(3);
    if (strcmp(how, "close_range") == 0) close_range(3, ~0u, 0);
    if (strcmp(how, "dup2") == 0)
        for (int fd = 3; fd < most; fd++) dup2(0, fd);
    if (strcmp(how, "raw") == 0) syscall(SYS_close_range, 3, ~0u, 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int is_early = argc > 2 && strcmp(argv[2], "early") == 0;
    if (is_early) close_all(how);
    fsp_init_spmd(&argc, &argv);
    int me = fsp_processor(), all = fsp_processors();
    long *words = fsp_malloc_all(PAGES * WORDS * sizeof *words);
    fsp_barrier_all();
    if (!is_early && me == all - 1) close_all(how);
    for (int round = 0; round < 5; round++) {
        for (int page = 0; page < PAGES; page++) words[page * WORDS + me]++;
        fsp_barrier_all();
    }
    long sum = 0;
    for (int page = 0; page < PAGES; page++)
        for (int who = 0; who < all; who++) sum += words[page * WORDS + who];
    if (me == 0) printf("sum %ld\n", sum);
    fsp_finalize();
    if (argc > 2 && strcmp(argv[2], "late") == 0) syscall(SYS_close_range, 3, ~0u, 0);
    return 0;
}
