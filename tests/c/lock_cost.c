/* What locking costs: a free mutex again in the node that had it last, a free one that another node had last, and one that
 * everybody wants (crowded: and gives others time to come). Prints nanoseconds; the messages are in the statistics
 * (sync_messages). scripts/locks-table.py runs it both ways.
 *
 * run: -n 2 --locks queue -- again 20
 * run: -n 2 --locks migratory -- again 20
 * run: -n 2 --locks migratory --transport tcp -- again 20
 * run: -n 3 --locks migratory -- moved 3
 * run: -n 3 --locks migratory --transport tcp -- moved 3
 * run: -n 2 -p 2 --locks migratory -- wanted 50
 * run: -n 2 -t 2 --locks migratory -- wanted 50
 * run: -n 2 -p 2 --locks migratory --transport tcp -- wanted 50
 * run: -n 2 -t 3 --locks migratory --transport tcp -- crowded 50
 * run: -n 2 -t 2 --locks queue --transport tcp -- wanted 50
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <time.h>

#define MUTEXES 64 /* so that their managers are all nodes in turn */

struct shared {
    fsp_mutex_t mutexes[MUTEXES];
    char pad[4096];
    char mode[16];
    int rounds, processors;
    char pad_again[4096];
    long sections;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * time.tv_sec + time.tv_nsec;
}

/* Locks and unlocks every mutex once; nanoseconds for each. */
static double take_each(struct shared *shared) {
    double began = now();
    for (int index = 0; index < MUTEXES; index++) {
        fsp_mutex_lock(&shared->mutexes[index]);
        fsp_mutex_unlock(&shared->mutexes[index]);
    }
    return (now() - began) / MUTEXES;
}

/* The fastest round tells what it costs; the others, what else the machine did meanwhile. */
static double least(double one, double other) {
    return one < other ? one : other;
}

/* One processor, always the same. */
static double again(struct shared *shared, int me) {
    int rounds = shared->rounds;
    if (me != shared->processors - 1)
        return 0;
    take_each(shared);
    double best = 1e18;
    for (int round = 0; round < rounds; round++)
        best = least(best, take_each(shared));
    return best;
}

/* The first processor and the last, in turns. */
static double moved(struct shared *shared, int me) {
    int rounds = shared->rounds;
    double best = 1e18;
    for (int round = 0; round < 2 * rounds; round++) {
        if (me == (round % 2 ? 0 : shared->processors - 1))
            best = least(best, take_each(shared));
        fsp_barrier_all();
    }
    return best;
}

/* All of them, one mutex; crowded: with time for all to come. */
static double wanted(struct shared *shared, int is_crowded) {
    int rounds = shared->rounds, processors = shared->processors;
    double began = now();
    for (int round = 0; round < rounds; round++) {
        fsp_mutex_lock(&shared->mutexes[0]);
        shared->sections++;
        if (is_crowded)
            sched_yield();
        fsp_mutex_unlock(&shared->mutexes[0]);
    }
    fsp_barrier_all();
    CHECK(shared->sections == (long)rounds * processors);
    return (now() - began) / rounds / processors;
}

static void measure(void *argument) {
    struct shared *shared = argument;
    const char *mode = shared->mode;
    int me = fsp_processor();
    double ns = 0;
    fsp_barrier_all();
    if (strcmp(mode, "again") == 0)
        ns = again(shared, me);
    else if (strcmp(mode, "moved") == 0)
        ns = moved(shared, me);
    else
        ns = wanted(shared, strcmp(mode, "crowded") == 0);
    fsp_barrier_all();
    if (me == shared->processors - 1) {
        printf("lock_cost: %s %.0f ns per lock and unlock\n", mode, ns);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    CHECK(argc == 3);
    struct shared *shared = fsp_calloc(1, sizeof *shared);
    shared->processors = fsp_processors();
    snprintf(shared->mode, sizeof shared->mode, "%s", argv[1]);
    shared->rounds = atoi(argv[2]);
    fsp_parallel(measure, shared);
    fsp_finalize();
    return 0;
}
