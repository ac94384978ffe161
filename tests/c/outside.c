/* Threads that the program makes itself go on beside barriers of all, with stores, loads and mutexes on the pages that those at the barriers
 * write. Under tmk every barrier collects: nothing is forgotten that a thread outside it still asks for.
 *
 * run: -n 2 --protocol tmk
 * run: -n 3 --protocol tmk --transport tcp
 * run: -n 2 -t 2 --protocol tmk --barrier flat
 * run: -n 2 -p 2 --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>

#define PAGES 8
#define SLOTS 64 /* words of a page: of each process, and of each thread outside */
#define BARRIERS 60
#define ROUNDS 300

struct shared {
    fsp_mutex_t mutex;
    long counter, last;
    char pad[4096];
    long words[PAGES][SLOTS][8];
};
static struct shared *shared;
static int process, processes;

static void *outside(void *argument) {
    (void)argument;
    for (long round = 1; round <= ROUNDS; round++) {
        for (int page = 0; page < PAGES; page++) {
            long *mine = &shared->words[page][SLOTS - 1 - process][0];
            CHECK(*mine == round - 1);
            *mine = round;
        }
        fsp_mutex_lock(&shared->mutex);
        CHECK(shared->words[0][SLOTS - 1 - shared->last][1] == shared->counter);
        shared->counter++, shared->last = process;
        shared->words[0][SLOTS - 1 - process][1] = shared->counter;
        fsp_mutex_unlock(&shared->mutex);
    }
    return NULL;
}

int main(void) {
    setenv("FINESPUN_TMK_COLLECT", "1", 1);
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    process = fsp_process(), processes = fsp_processes();
    shared = fsp_malloc_all(sizeof *shared);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, outside, NULL) == 0);
    for (long round = 1; round <= BARRIERS; round++) {
        for (int page = 0; page < PAGES; page++) shared->words[page][process][0] = round;
        fsp_barrier_all();
        for (int page = 0; page < PAGES; page++)
            for (int other = 0; other < processes; other++) CHECK(shared->words[page][other][0] == round);
        fsp_barrier_all();
    }
    CHECK(pthread_join(thread, NULL) == 0);
    fsp_barrier_all();
    CHECK(shared->counter == (long)ROUNDS * processes);
    for (int page = 0; page < PAGES; page++)
        for (int other = 0; other < processes; other++) CHECK(shared->words[page][SLOTS - 1 - other][0] == ROUNDS);
    fsp_finalize();
    return 0;
}
