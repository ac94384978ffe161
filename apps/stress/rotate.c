/* Blocks whose owner changes at every barrier.  A round has a few steps; in each, a block's owner reads all of it, as
 * the last owner left it, and writes the next version over it.  After some steps everybody reads a few blocks.
 * Blocks begin and end inside pages, so owners of neighbouring blocks share those.
 *
 * Every word of a block has the number of steps done so far as its version.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

enum { TOPIC = 500, STEPS = 3, LOOKS = 2 };

static size_t block_count(const plan *plan)
{
    size_t few = 2 * (size_t)plan->processors + 1, most = region_bytes(plan) / 512;
    size_t count = few > plan->pages ? few : plan->pages;
    return count < most ? count : most;
}

static unsigned owner_of(const actor *actor, size_t block, unsigned step)
{
    return (unsigned)((block + step + decide(actor, TOPIC, 0, 0)) % actor->plan->processors);
}

static void check_block(actor *actor, size_t block, uint64_t version)
{
    size_t end = boundary(actor->plan, TOPIC, block + 1, block_count(actor->plan), 8);
    for (size_t at = boundary(actor->plan, TOPIC, block, block_count(actor->plan), 8); at < end; at += 8)
        check_value(actor, rotate_region(actor->plan) + at, 8, version);
}

static void write_block(actor *actor, size_t block, uint64_t version)
{
    size_t start = boundary(actor->plan, TOPIC, block, block_count(actor->plan), 8);
    size_t end = boundary(actor->plan, TOPIC, block + 1, block_count(actor->plan), 8);
    fill_range(actor->plan, rotate_region(actor->plan) + start, end - start, version);
}

static void look_around(actor *actor, unsigned step, uint64_t version)
{
    for (unsigned i = 0; i < LOOKS; i++)
        check_block(actor, decide(actor, TOPIC + 1 + step, actor->me, i) % block_count(actor->plan), version);
}

void rotate_act(actor *actor)
{
    uint64_t done = (actor->round - 1) * STEPS;
    for (unsigned step = 0; step < STEPS; step++) {
        for (size_t block = 0; block < block_count(actor->plan); block++) {
            if (owner_of(actor, block, step) == actor->me) {
                check_block(actor, block, done + step);
                write_block(actor, block, done + step + 1);
            }
        }
        if (step + 1 == STEPS)
            return; /* the round's barrier follows, then the check */
        everybody(actor);
        if (decide(actor, TOPIC, 1, step) % 2 == 0) {
            look_around(actor, step, done + step + 1);
            everybody(actor);
        }
    }
}

void rotate_check(actor *actor)
{
    look_around(actor, STEPS, actor->round * STEPS);
}
