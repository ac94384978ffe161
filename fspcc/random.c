/* rand, random, drand48 and their kin: one sequence for the whole program, with the C library's own values.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { TABLE_BYTES = 128, SEED = 1 }; /* what the C library begins with */

static SHARED struct random_data sequence;
static SHARED int32_t table[TABLE_BYTES / 4];
static SHARED int is_seeded;

static SHARED struct drand48_data congruent;

static void hold_sequence(void)
{
    fsp_clib_hold();
    if (!is_seeded) {
        initstate_r(SEED, (char *)table, sizeof table, &sequence);
        is_seeded = 1;
    }
}

long __wrap_random(void);
long __wrap_random(void)
{
    int32_t value;
    hold_sequence();
    random_r(&sequence, &value);
    fsp_clib_let_go();
    return value;
}

int __wrap_rand(void);
int __wrap_rand(void)
{
    return (int)__wrap_random();
}

void __wrap_srandom(unsigned seed);
void __wrap_srandom(unsigned seed)
{
    hold_sequence();
    srandom_r(seed, &sequence);
    fsp_clib_let_go();
}

void __wrap_srand(unsigned seed);
void __wrap_srand(unsigned seed)
{
    __wrap_srandom(seed);
}

/* The word before the first of a state says which state it is; that is where the caller's array begins. */
char *__wrap_initstate(unsigned seed, char *state, size_t size);
char *__wrap_initstate(unsigned seed, char *state, size_t size)
{
    hold_sequence();
    char *before = (char *)(sequence.state - 1);
    int result = initstate_r(seed, state, size, &sequence);
    fsp_clib_let_go();
    return result ? NULL : before;
}

char *__wrap_setstate(char *state);
char *__wrap_setstate(char *state)
{
    hold_sequence();
    char *before = (char *)(sequence.state - 1);
    int result = setstate_r(state, &sequence);
    fsp_clib_let_go();
    return result ? NULL : before;
}

#define OWN(type, name, function)                  \
    type __wrap_##name(void);                      \
    type __wrap_##name(void)                       \
    {                                              \
        type value;                                \
        fsp_clib_hold();                           \
        function(&congruent, &value);              \
        fsp_clib_let_go();                         \
        return value;                              \
    }
#define GIVEN(type, name, function)                \
    type __wrap_##name(unsigned short x[3]);       \
    type __wrap_##name(unsigned short x[3])        \
    {                                              \
        type value;                                \
        fsp_clib_hold();                           \
        function(x, &congruent, &value);           \
        fsp_clib_let_go();                         \
        return value;                              \
    }

OWN(double, drand48, drand48_r)
OWN(long, lrand48, lrand48_r)
OWN(long, mrand48, mrand48_r)
GIVEN(double, erand48, erand48_r)
GIVEN(long, nrand48, nrand48_r)
GIVEN(long, jrand48, jrand48_r)

void __wrap_srand48(long seed);
void __wrap_srand48(long seed)
{
    fsp_clib_hold();
    srand48_r(seed, &congruent);
    fsp_clib_let_go();
}

unsigned short *__wrap_seed48(unsigned short seed[3]);
unsigned short *__wrap_seed48(unsigned short seed[3])
{
    fsp_clib_hold();
    seed48_r(seed, &congruent);
    fsp_clib_let_go();
    return congruent.__old_x;
}

void __wrap_lcong48(unsigned short parameters[7]);
void __wrap_lcong48(unsigned short parameters[7])
{
    fsp_clib_hold();
    lcong48_r(parameters, &congruent);
    fsp_clib_let_go();
}
