/* What both TreadMarks programs need besides TreadMarks.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TMK_PROGRAM_H
#define TMK_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A number from 0 to below n. */
static inline unsigned draw(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((*state >> 33) % n);
}

/* Varies the timing of a run, when asked for: works, or sleeps, for a while that depends on the draw. */
static inline void dawdle(uint64_t *state)
{
    if (*state == 0)
        return;
    switch (draw(state, 4)) {
    case 0:
        for (volatile unsigned i = draw(state, 20000); i > 0; i--)
            ;
        break;
    case 1:
        usleep(draw(state, 200));
        break;
    default:
        break;
    }
}

static inline long number(const char *text, long least, long most, const char *what)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "%s: expected a number from %ld to %ld, not \"%s\"\n", what, least, most, text);
        exit(2);
    }
    return value;
}

/* Folds a value into a checksum. */
static inline uint64_t fold(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x100000001b3u;
}

#endif
