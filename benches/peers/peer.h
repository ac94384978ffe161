/* What the peers' programs share: the clock, samples, and the line that the micro benchmark prints too.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef PEER_H
#define PEER_H

#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE 4096

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Rank i on the i-th of the cores it may use, as the micro benchmark does. */
static inline void pin(int rank)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    int skip = rank % CPU_COUNT(&allowed), core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static inline void report(const char *name, uint64_t *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, by_size);
    printf("bench: %s ops %zu min %.1f median %.1f\n", name, count, (double)samples[0], (double)samples[count / 2]);
    fflush(stdout);
}

/* The number of repetitions: the program's only argument. */
static inline size_t rounds_of(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    return rounds > 0 ? rounds : 2000;
}

#endif
