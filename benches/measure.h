/* What everything that is measured shares: the clock, the core a process runs on, and the line that a case prints.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCHES_MEASURE_H
#define BENCHES_MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for the CPU_ macros: this header comes first */
#endif
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Nanoseconds of a clock that only goes forward. */
static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The calling thread on the i-th of the cores that the program may use, counted around: runs can be compared. */
static inline void pin(int which)
{
    static cpu_set_t allowed; /* as it was at the first call: also for who was made by one that is on one core */
    static int is_known;
    cpu_set_t one;
    if (!is_known && sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    is_known = 1;
    int skip = which % CPU_COUNT(&allowed), core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
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
