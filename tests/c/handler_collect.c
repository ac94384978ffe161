/* A signal handler stores to a page while its thread waits at a barrier that collects (tmk). The page's last interval is one that no other
 * process has asked for yet. Its stores are not forgotten.
 *
 * run: -n 2 --protocol tmk
 * run: -n 2 --protocol tmk --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <signal.h>

enum { ROUNDS = 100, RELEASED = 0, HANDLED = 8, WORDS = 512 };

static volatile long *page;
static pid_t other;
static volatile long answers;

/* The other process comes to the barrier when it has this answer. */
static void on_signal(int signal) {
    (void)signal;
    page[HANDLED]++;
    CHECK(kill(other, SIGUSR2) == 0);
}

static void on_answer(int signal) {
    (void)signal;
    answers++;
}

int main(void) {
    setenv("FINESPUN_TMK_COLLECT", "1", 1);
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    int me = fsp_process();
    pid_t *pids = fsp_malloc_all(4096);
    page = fsp_malloc_all(WORDS * sizeof *page);
    struct sigaction action = {.sa_flags = SA_RESTART, .sa_handler = on_signal};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    action.sa_handler = on_answer;
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    pids[me] = getpid();
    fsp_barrier_all();
    other = pids[1 - me];
    fsp_barrier_all();
    for (long round = 1; round <= ROUNDS; round++) {
        if (me == 0) {
            page[RELEASED] = round;
        } else {
            CHECK(kill(other, SIGUSR1) == 0);
            while (answers < round) sched_yield();
        }
        fsp_barrier_all();
        if (me == 1) CHECK(page[RELEASED] == round);
        fsp_barrier_all();
    }
    CHECK(page[HANDLED] == ROUNDS);
    fsp_finalize();
    return 0;
}
