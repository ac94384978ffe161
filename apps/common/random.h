/* Numbers from a seed without a state: the same on every processor, in any order.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_RANDOM_H
#define APPS_RANDOM_H

#include <stdint.h>

/* The output function of SplitMix64: a bijection of 64-bit words that mixes every bit into every other. */
static inline uint64_t random_mix(uint64_t word)
{
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* The number that belongs to (seed, a, b). */
static inline uint64_t random_at(uint64_t seed, uint64_t a, uint64_t b)
{
    return random_mix(random_mix(random_mix(seed) ^ a) ^ b);
}

/* Evenly in [0, 1). */
static inline double random_unit(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

#endif
