/* What the cases of the micro benchmark share: pages, samples, and a board to meet at without Finespun's help.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef MICRO_BENCH_H
#define MICRO_BENCH_H

#include "../measure.h"

#include <finespun/finespun.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096u
#define WORDS (PAGE / sizeof(uint64_t))

/* How much is measured; tiny in the tests, so that no case rots. */
typedef struct extent {
    size_t pages;       /* in the cases that touch page by page */
    size_t rounds;      /* repetitions of a case */
    size_t pairs;       /* lock and unlock, flag round trips, barriers */
    size_t most_dirty;  /* the largest release, acquire and barrier */
    size_t stream;      /* bytes read in sequence */
} extent;

/* Process 0 measures, process 1 is the other node.  More processes only meet. */
typedef struct bench {
    extent extent;
    int me;
    uint64_t *far;       /* pages with their home at the other node, as process 0 sees it */
    uint64_t *near;      /* pages with their home at process 0's node */
    fsp_mutex_t *mutexes; /* one per cache line */
    fsp_flag_t *flags;   /* ping and pong */
} bench;

/* All processes, by a word of native shared memory: nothing is released or acquired. */
void meet(void);

/* Samples of one case.  The name is its phase's too, so that the counts of the statistics can be found. */
typedef struct samples samples;
samples *samples_new(size_t room);
void sample(samples *samples, uint64_t nanoseconds);
/* Prints "bench: NAME ops N min A median B", for `each` operations a sample, and frees. */
void samples_report(samples *samples, const char *name, size_t each);

static inline uint64_t *page_of(uint64_t *pages, size_t page)
{
    return pages + page * WORDS;
}

/* The groups of cases, each a job of its own. */
void run_misses(bench *bench);
void run_releases(bench *bench);
void run_acquires(bench *bench);
void run_locks(bench *bench);
void run_barriers(bench *bench);
void run_stream(bench *bench);

#endif
