/* A signal handler stores to its processor's own word of a shared page, while the thread waits at a barrier or for a mutex. Siblings of
 * the same node write other words of the page. No store is lost.
 *
 * run: -n 3 -p 3
 * run: -n 2 -p 2 --protocol csm-none
 * run: -n 2 -p 2 --protocol csm-none --transport tcp
 * run: -n 2 -p 2 --protocol csm-none --faults mprotect
 * run: -n 2 -p 4 --protocol csm-ms-mg
 * run: -n 2 -p 2 --protocol csm-adb
 * run: -n 2 -p 2 --protocol strings-rc
 * run: -n 3 --protocol tmk -- collect
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/time.h>

enum { ROUNDS = 300, SIGNAL_US = 100, COUNTER = 256, WRITTEN = 384, MUTEX = 500, WORDS = 1024 };

static volatile long *page, *own;
static volatile long made;

static void on_alarm(int signal) {
    (void)signal;
    *own += 1;
    made++;
}

static void set_timer(long us) {
    struct itimerval timer = {{0, us}, {0, us}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* A handler may run between any two of the loads. */
static void check_own_word(void) {
    long before = made, stored = *own, after = made;
    CHECK(before <= stored && stored <= after);
}

int main(int argc, char **argv) {
    if (argc > 1) setenv("FINESPUN_TMK_COLLECT", "1", 1); /* collects at every barrier */
    fsp_init_spmd(&argc, &argv);
    page = fsp_malloc_all(WORDS * sizeof *page);
    int me = fsp_processor();
    own = page + me;
    fsp_mutex_t *mutex = (fsp_mutex_t *)(page + MUTEX);
    struct sigaction action = {.sa_flags = SA_RESTART, .sa_handler = on_alarm};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    set_timer(SIGNAL_US);
    for (int round = 0; round < ROUNDS; round++) {
        fsp_barrier_all();
        check_own_word();
        page[WRITTEN + me] = round;
        if (round % 3 == 0) {
            fsp_mutex_lock(mutex);
            page[COUNTER]++;
            fsp_mutex_unlock(mutex);
            check_own_word();
        }
    }
    set_timer(0);
    fsp_barrier_all();
    check_own_word();
    CHECK(page[COUNTER] == (long)fsp_processors() * (ROUNDS / 3));
    for (int processor = 0; processor < fsp_processors(); processor++) CHECK(page[WRITTEN + processor] == ROUNDS - 1);
    fsp_finalize();
    return 0;
}
