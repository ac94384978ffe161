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
#define MUTEXES 64
/* Lines behind them, for words. */
#define LINES 4
/* Barriers and mutexes that one sample takes together, where one alone is not longer than reading the clock. */
#define BATCH 32

/* How much is measured; tiny in the tests, so that no case rots. */
typedef struct extent {
    size_t pages;       /* in the cases that touch page by page */
    size_t rounds;      /* repetitions of a case */
    size_t pairs;       /* lock and unlock, flag round trips, barriers */
    size_t most_dirty;  /* the largest release, acquire and barrier */
    size_t stream;      /* bytes read in sequence, and out of it */
    size_t far;         /* pages of the misses at random */
} extent;

/* Process 0 measures, the last process is the other node.  More processes only meet. */
typedef struct bench {
    extent extent;
    int me, other;
    size_t sharers;      /* processes beside the home's that hold a copy of what is released, 1 or more */
    uint64_t *far;       /* pages with their home at the other node, as process 0 sees it */
    uint64_t *near;      /* pages with their home at process 0's node; twice as many */
    fsp_mutex_t *mutexes; /* one per cache line */
    fsp_flag_t *flags;   /* ping and pong */
} bench;

/* All processes, by a word of native shared memory: nothing is released or acquired. */
void meet(void);
/* Words of native shared memory for what two processes of a case tell each other. */
typedef struct messages {
    _Atomic uint64_t wants, left_at;
} messages;
messages *the_messages(void);

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

static inline bool is_other(const bench *bench)
{
    return bench->me == bench->other;
}

/* Process 0's part of most cases. */
static inline bool is_first(const bench *bench)
{
    return bench->me == 0;
}

/* The groups of cases, each a job of its own. */
void run_misses(bench *bench);
void run_releases(bench *bench);
void run_acquires(bench *bench);
void run_rereads(bench *bench);
void run_refreshes(bench *bench);
void run_locks(bench *bench);
void run_barriers(bench *bench);
void run_crowd(bench *bench);
void run_stream(bench *bench);
void run_far(bench *bench);
void run_scale(bench *bench);
void run_memory(bench *bench);

/* What a group of its own is made of, and the drawing of the scale of costs too. */
void case_read_miss(bench *bench);
void case_write_upgrade(bench *bench);
void case_release(bench *bench, const char *name, size_t pages);
void case_acquire(bench *bench, const char *name, size_t pages);
void case_lock_after_other(bench *bench);
void case_counters(bench *bench);
void case_barrier(bench *bench, const char *name, size_t pages);

#endif
