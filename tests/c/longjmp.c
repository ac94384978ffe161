/* Handlers of faults that leave by a plain longjmp, which does not put the mask back: the faults of the shared space are served as before.  A
 * fault of the program's own then ends the process, as it does without Finespun, unless SA_NODEFER was given.
 *
 * run: -n 2
 * run: -n 2 --faults mprotect
 * run: -n 2 -p 2 --transport tcp
 * run: -n 2 --faults mprotect --transport tcp
 *
 * run: -n 2 -- twice
 * expect: E040
 * exit: 139
 * run: -n 2 --faults mprotect -- twice
 * expect: E040
 * exit: 139
 * run: -n 2 -- inside
 * expect: E040
 * exit: 139
 * run: -n 2 --faults mprotect -- inside
 * expect: E040
 * exit: 139
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGES 64

typedef struct page {
    volatile long words[512];
} page;

static page *pages;
static jmp_buf out;
static volatile uintptr_t nowhere = 16; /* not a constant: the compiler would warn */
static volatile int caught;

/* Touches shared memory that this process does not have yet, and leaves. */
static void leave(int signal)
{
    caught = signal;
    CHECK(pages[0].words[1] == 1);
    longjmp(out, 1);
}

static void crash_again(int signal)
{
    caught = signal;
    *(volatile int *)nowhere = 2;
}

static void set_handler(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static void fault(void)
{
    caught = 0;
    if (setjmp(out) == 0) {
        *(volatile int *)nowhere = 1;
        CHECK(!"a store to address 16 goes on");
    }
    CHECK(caught == SIGSEGV);
}

/* A mapped page behind the end of its file. */
static void bus_fault(void)
{
    int fd = memfd_create("empty", 0);
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(page != MAP_FAILED);
    caught = 0;
    if (setjmp(out) == 0) {
        (void)page[0];
        CHECK(!"a load behind the end of a file goes on");
    }
    CHECK(caught == SIGBUS);
    CHECK(munmap((void *)(uintptr_t)page, 4096) == 0 && close(fd) == 0);
}

/* Every processor reads what the one before it has written, and writes its own: faults to read and to write. */
static void share(int round)
{
    int me = fsp_processor(), all = fsp_processors(), before = (me + all - 1) % all;
    pages[me].words[0] = round * 100 + me;
    fsp_barrier_all();
    CHECK(pages[before].words[0] == round * 100 + before);
    fsp_barrier_all();
}

int main(int argc, char **argv)
{
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    pages = fsp_malloc_all(PAGES * sizeof *pages);
    if (fsp_processor() == 0) pages[0].words[1] = 1;
    fsp_barrier_all();
    if (argc > 1) {
        set_handler(SIGSEGV, strcmp(argv[1], "twice") == 0 ? leave : crash_again, 0);
        fault();
        fault();
        return 0;
    }
    set_handler(SIGSEGV, leave, SA_NODEFER);
    for (int round = 1; round < 4; round++) {
        fault();
        share(round);
    }
    set_handler(SIGSEGV, leave, 0);
    fault();
    share(4);
    static char stack[1 << 16];
    CHECK(sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL) == 0);
    sigset_t one;
    CHECK(sigemptyset(&one) == 0 && sigaddset(&one, SIGSEGV) == 0 && sigprocmask(SIG_UNBLOCK, &one, NULL) == 0);
    fault(); /* the program has let it in again by itself */
    CHECK(sigprocmask(SIG_UNBLOCK, &one, NULL) == 0);
    set_handler(SIGBUS, leave, SA_ONSTACK);
    bus_fault();
    share(5);
    fsp_finalize();
    return 0;
}
