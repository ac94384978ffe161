/* What everything that is measured shares: the clock, the core a process runs on, and the line that a case prints.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCHES_MEASURE_H
#define BENCHES_MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for the CPU_ macros: this header comes first */
#endif
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Random misses: 256 MiB of pages, or few where it is only seen whether all runs, of which so many are touched in a round. */
#define FAR_PAGES 65536u
#define FAR_PAGES_TINY 256u
#define FAR_TOUCHED_EACH 16u

/* Nanoseconds of a clock that only goes forward. */
static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Reads memory at the speed of its loads: each word is added to the one of four sums whose turn it is, since a single sum waits for itself and
 * takes twice as long as the loads.  `count` is a multiple of four. */
static inline uint64_t sum_of_words(const uint64_t *words, size_t count)
{
    uint64_t first = 0, second = 0, third = 0, fourth = 0;
    for (size_t word = 0; word < count; word += 4) {
        first += words[word], second += words[word + 1];
        third += words[word + 2], fourth += words[word + 3];
    }
    return first + second + third + fourth;
}

/* The cores that the program began with: a thread or process made after the first pin inherits only one. */
static cpu_set_t cores_at_start;

__attribute__((constructor)) static void note_cores(void)
{
    if (sched_getaffinity(0, sizeof cores_at_start, &cores_at_start) != 0)
        CPU_ZERO(&cores_at_start);
}

/* The calling thread on the i-th of the cores that the program began with, counted around: runs can be compared. */
static inline void pin(int which)
{
    cpu_set_t one;
    if (CPU_COUNT(&cores_at_start) == 0)
        return;
    int skip = which % CPU_COUNT(&cores_at_start), core = 0;
    while (!CPU_ISSET(core, &cores_at_start) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Every second number below `2 * count` in an order that no prefetch can foresee, the same in each run: of pages, none is beside another. */
static inline void shuffle(uint32_t *order, uint32_t count)
{
    uint64_t state = 1;
    for (uint32_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (uint32_t)((state >> 33) % (i + 1));
        order[i] = order[j];
        order[j] = 2 * i;
    }
}

static inline int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Prints "bench: NAME ops N min A median B" of samples in nanoseconds, for `each` operations a sample; sorts them. */
static inline void report(const char *name, uint64_t *samples, size_t count, double each)
{
    qsort(samples, count, sizeof *samples, by_size);
    printf("bench: %s ops %.0f min %.1f median %.1f\n", name, (double)count * each, (double)samples[0] / each,
           (double)samples[count / 2] / each);
    fflush(stdout);
}

#endif
