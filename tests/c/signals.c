/* Signals of the program's own: handlers touch shared memory while the main thread is in the library; masks that hold
 * everything back do not hold faults back; faults outside the shared space reach the program's handler, put there before
 * or after the start, or end the process.
 *
 * run: -n 2
 * run: -n 2 --protocol strings-sc
 * run: -n 2 --protocol strings-sc --transport tcp
 * run: -n 2 -p 2 --protocol strings-rc
 * run: -n 2 -p 2 --transport tcp
 * run: -n 2 --faults mprotect
 * run: -n 2 --faults mprotect --transport tcp
 *
 * run: -n 2 -- null
 * expect: E040
 * exit: 139
 * run: -n 2 --faults mprotect -- null
 * expect: E040
 * exit: 139
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <stdint.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/time.h>

#define PAGE 4096

struct shared {
    fsp_mutex_t mutex;
    long locked;
    char pad[PAGE];
    struct {
        volatile long alarms, users, page[PAGE / sizeof(long)];
    } of[64];
};
static struct shared *shared;
static int me;
static volatile long alarms, users;

static void on_alarm(int signal) {
    (void)signal;
    shared->of[me].alarms++; /* neighbours lie on the same pages, so they come and go */
    alarms++;
}
static void on_user(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    errno = 12345;
    shared->of[me].users++;
    users++;
    errno = 0;
}

/* Locks and unlocks while signals arrive. */
static void test_handlers(void) {
    struct sigaction action = {.sa_flags = SA_RESTART | SA_SIGINFO, .sa_sigaction = on_user};
    sigfillset(&action.sa_mask); /* also SIGSEGV and SIGBUS: must not block the faults of the handler */
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
    struct itimerval timer = {{0, 300}, {0, 300}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    long times = 0;
    /* Until enough of them came while it was busy. */
    while (alarms < 50 || times < 300) {
        fsp_mutex_lock(&shared->mutex);
        shared->locked++;
        fsp_mutex_unlock(&shared->mutex);
        if (++times % 10 == 0) raise(SIGUSR1);
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    CHECK(users == times / 10);
    fsp_mutex_lock(&shared->mutex);
    shared->of[me].page[0] = times;
    fsp_mutex_unlock(&shared->mutex);
    fsp_barrier_all();
    long all = 0;
    for (int processor = 0; processor < fsp_processes(); processor++) {
        all += shared->of[processor].page[0];
        CHECK(shared->of[processor].users == shared->of[processor].page[0] / 10);
    }
    CHECK(shared->of[me].alarms == alarms && shared->locked == all);
    fsp_barrier_all();
}

/* Makes a page of the caller's invalid: another writes it. */
static volatile long *invalid_page(void) {
    volatile long *page = fsp_malloc_all(PAGE);
    CHECK(*page == 0);
    fsp_barrier_all();
    if (me == 0) *page = 1;
    fsp_barrier_all();
    return page;
}

static volatile long *in_handler;
static volatile long seen;
static void look(int signal) {
    (void)signal;
    seen = *in_handler;
}

/* Everything blocked, in every way: shared memory can be touched, and other signals wait. */
static void test_masks(void) {
    sigset_t all, before, now;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_SETMASK, &all, &before) == 0);
    CHECK(*invalid_page() == 1);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGUSR2) == 1 && sigismember(&now, SIGTERM) == 1);
    CHECK(!sigismember(&now, SIGSEGV) && !sigismember(&now, SIGBUS));
    CHECK(signal(SIGUSR2, look) != SIG_ERR);
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    CHECK(*invalid_page() == 1);

    /* Handlers that run under the mask of a call that waits. */
    sigset_t but_one = all;
    sigdelset(&but_one, SIGUSR2);
    for (int how = 0; how < 3; how++) {
        in_handler = invalid_page();
        seen = 0;
        raise(SIGUSR2);
        CHECK(seen == 0);
        int result = -1;
        switch (how) {
        case 0: result = sigsuspend(&but_one); break;
        case 1: result = ppoll(NULL, 0, NULL, &but_one); break;
        case 2: result = pselect(0, NULL, NULL, NULL, NULL, &but_one); break;
        }
        CHECK(result == -1 && errno == EINTR && seen == 1);
    }
    CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
}

static sigjmp_buf out;
static void *volatile fault_at;
static volatile int fault_signal;
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    fault_at = info->si_addr, fault_signal = signal;
    siglongjmp(out, 1);
}
static void on_fault_plain(int signal) {
    fault_signal = signal;
    siglongjmp(out, 1);
}

/* Not a constant: the compiler would warn. */
static volatile uintptr_t address_outside = 16;

static void fault_is_seen(int with_address) {
    volatile long *page = invalid_page();
    fault_at = NULL, fault_signal = 0;
    if (sigsetjmp(out, 1) == 0) {
        *(volatile int *)address_outside = 1;
        CHECK(!"a store to address 16 goes on");
    }
    CHECK(fault_signal == SIGSEGV && (!with_address || fault_at == (void *)16));
    CHECK(*page == 1); /* and faults of the shared space are served as before */
}

static void test_faults(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = on_fault}, old;
    /* The one from before the start is still there. */
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) && old.sa_sigaction == on_fault);
    fault_is_seen(1);
    fault_is_seen(1);
    CHECK(signal(SIGSEGV, on_fault_plain) == old.sa_handler);
    fault_is_seen(0);
    CHECK(sysv_signal(SIGSEGV, on_fault_plain) == on_fault_plain);
    fault_is_seen(0);
    CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL); /* the last one was for one signal only */
    CHECK(*invalid_page() == 1);
    CHECK(sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == SIG_IGN);
    CHECK(sigaction(SIGBUS, &action, &old) == 0 && old.sa_handler == SIG_DFL);
    fault_is_seen(1);
    if (sigsetjmp(out, 1) == 0) raise(SIGBUS); /* sent, not by a fault */
    CHECK(fault_signal == SIGBUS);
    CHECK(signal(SIGBUS, SIG_DFL) != SIG_ERR);
    CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = on_fault};
    sigset_t all;
    if (argc == 1) {
        CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
        sigfillset(&all);
        CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0); /* before the start, too */
    }
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    me = fsp_process();
    CHECK(*invalid_page() == 1);
    if (argc > 1) {
        CHECK(strcmp(argv[1], "null") == 0);
        if (me == 1) *(volatile int *)0 = 1;
        fsp_barrier_all();
        return 0;
    }
    CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
    shared = fsp_malloc_all(sizeof *shared);
    test_handlers();
    test_masks();
    test_faults();
    CHECK(*invalid_page() == 1);
    fsp_finalize();
    return 0;
}
