/* Write-write false sharing: neighbouring elements of 1, 2, 4 or 8 bytes belong to different processors, which change
 * in every round.  In `act` each processor writes about half of its elements, without any lock; in `check`, after a
 * barrier, everybody reads those of the others.
 *
 * The version of an element is the last round in which it was written.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

enum { TOPIC = 200, CELLS_PER_GROUP = SLOTS_PER_GROUP * CELLS_PER_SLOT };

/* All decisions for the (up to 8) elements of a cell in a round. */
static uint64_t cell_choice(const plan *plan, uint64_t round, size_t group, unsigned cell)
{
    return random_at(plan->seed ^ TOPIC, round, group * CELLS_PER_GROUP + cell);
}

static bool is_written(uint64_t choice, unsigned element)
{
    return choice >> element & 1;
}

static unsigned writer_of(const plan *plan, uint64_t choice, unsigned element)
{
    return (unsigned)(((choice >> 32) + element * (1 + (choice >> 8) % 7)) % plan->processors);
}

static unsigned element_size(const plan *plan, size_t group)
{
    return 1u << random_at(plan->seed, TOPIC, group) % 4;
}

static uint64_t last_written(const plan *plan, uint64_t round, size_t group, unsigned cell, unsigned element)
{
    while (round > 0 && !is_written(cell_choice(plan, round, group, cell), element))
        round--;
    return round;
}

static void write_cell(actor *actor, size_t group, unsigned cell)
{
    const plan *plan = actor->plan;
    uint64_t choice = cell_choice(plan, actor->round, group, cell);
    unsigned size = element_size(plan, group);
    unsigned char *start = cell_at(plan, group, cell / CELLS_PER_SLOT, cell % CELLS_PER_SLOT);
    for (unsigned element = 0; element < CELL / size; element++) {
        if (!is_written(choice, element) || writer_of(plan, choice, element) != actor->me)
            continue;
        check_value(actor, start + element * size, size, last_written(plan, actor->round - 1, group, cell, element));
        write_value(plan, start + element * size, size, actor->round);
    }
}

static void check_cell(actor *actor, size_t group, unsigned cell)
{
    unsigned size = element_size(actor->plan, group);
    const unsigned char *start = cell_at(actor->plan, group, cell / CELLS_PER_SLOT, cell % CELLS_PER_SLOT);
    for (unsigned element = 0; element < CELL / size; element++)
        check_value(actor, start + element * size, size,
                    last_written(actor->plan, actor->round, group, cell, element));
}

void words_prepare(actor *actor)
{
    for (size_t n = 0; n < group_count(actor->plan, ROLE_WORDS); n++) {
        size_t group = group_of(ROLE_WORDS, n);
        unsigned size = element_size(actor->plan, group);
        if (random_at(actor->plan->seed, TOPIC + 4, group) % actor->plan->processors != actor->me)
            continue;
        for (unsigned at = 0; at < SLOTS_PER_GROUP * SLOT; at += size)
            write_value(actor->plan, (char *)cell_at(actor->plan, group, at / SLOT, 0) + at % SLOT, size, 0);
    }
}

void words_act(actor *actor)
{
    size_t count = group_count(actor->plan, ROLE_WORDS), start = decide(actor, TOPIC + 1, actor->me, 0) % count;
    for (size_t i = 0; i < count; i++)
        for (unsigned cell = 0; cell < CELLS_PER_GROUP; cell++)
            write_cell(actor, group_of(ROLE_WORDS, (start + i) % count), cell);
}

/* Words that nobody writes after the start, between those that change. */
static void check_still(actor *actor, size_t n)
{
    for (unsigned cell = 0; cell < CELLS_PER_GROUP; cell++)
        check_value(actor, cell_at(actor->plan, group_of(ROLE_STILL, n), cell / CELLS_PER_SLOT, cell % CELLS_PER_SLOT),
                    8, 0);
}

/* About half of the groups, so that some copies stay as they are and some are fetched. */
void words_check(actor *actor)
{
    size_t count = group_count(actor->plan, ROLE_WORDS);
    for (size_t n = 0; n < count; n++) {
        if (decide(actor, TOPIC + 2, actor->me, n) % 2 == 0)
            continue;
        for (unsigned cell = 0; cell < CELLS_PER_GROUP; cell++)
            check_cell(actor, group_of(ROLE_WORDS, n), cell);
    }
    for (size_t n = 0; n < group_count(actor->plan, ROLE_STILL); n++)
        if (decide(actor, TOPIC + 3, actor->me, n) % 4 == 0)
            check_still(actor, n);
}
