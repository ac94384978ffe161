/* Producer and consumers by flags.  A channel is a group: slot 0 holds the flag "items ready" and a flag for each of up
 * to three consumers, "items taken"; the other slots hold three entries of two slots.  Item n goes to entry n % 3 once
 * every consumer has taken item n - 3.
 *
 * Every processor makes the n-th item of its channels before it takes the n-th of the others', so nobody waits in a
 * circle.  The end of a round resets some channels' flags.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TOPIC = 300, DEPTH = 3, ENTRY_SLOTS = 2, CONSUMERS_MAX = 3, ITEMS = 8 };

struct flags_memory {
    uint32_t *count;                    /* the channel's items since its flags were reset */
    uint64_t *version;                  /* the channel's items ever */
    uint64_t (*entry_version)[DEPTH];   /* the version each entry holds */
};

/* Who does what on a channel in this round. */
typedef struct channel {
    size_t group, index;
    unsigned producer, consumers, consumer[CONSUMERS_MAX];
} channel;

static size_t active_count(const plan *plan)
{
    size_t channels = group_count(plan, ROLE_FLAGS);
    return channels < 2 * (size_t)plan->processors ? channels : 2 * (size_t)plan->processors;
}

static channel active_channel(const actor *actor, size_t n)
{
    const plan *plan = actor->plan;
    size_t channels = group_count(plan, ROLE_FLAGS);
    channel channel = {.index = (decide(actor, TOPIC, 0, 0) + n) % channels};
    uint64_t choice = decide(actor, TOPIC, 1, channel.index);
    channel.group = group_of(ROLE_FLAGS, channel.index);
    channel.producer = (unsigned)(choice % plan->processors);
    channel.consumers = 1 + (unsigned)((choice >> 20) % CONSUMERS_MAX);
    if (channel.consumers > plan->processors)
        channel.consumers = plan->processors;
    for (unsigned i = 0; i < channel.consumers; i++)
        channel.consumer[i] = (unsigned)(((choice >> 32) + i) % plan->processors);
    return channel;
}

static fsp_flag_t *ready_flag(const plan *plan, const channel *channel)
{
    return cell_at(plan, channel->group, 0, 0);
}

static fsp_flag_t *taken_flag(const plan *plan, const channel *channel, unsigned consumer)
{
    return cell_at(plan, channel->group, 0, 1 + consumer);
}

static void *entry_cell(const plan *plan, const channel *channel, uint32_t item, unsigned cell)
{
    unsigned slot = 1 + item % DEPTH * ENTRY_SLOTS + cell / CELLS_PER_SLOT;
    return cell_at(plan, channel->group, slot, cell % CELLS_PER_SLOT);
}

/* Waits, or looks and waits only when it must; either way the value is there afterwards. */
static void await(actor *actor, fsp_flag_t *flag, uint32_t value, bool look_first)
{
    if (!look_first || fsp_flag_read(flag) < value)
        fsp_flag_wait(flag, value);
    uint32_t now = fsp_flag_read(flag);
    actor->checked++;
    if (now < value)
        fail(actor, "flag %p: a wait for %" PRIu32 " returned, but it is %" PRIu32, (void *)flag, value, now);
}

static void produce(actor *actor, const channel *channel, unsigned i)
{
    struct flags_memory *memory = actor->flags;
    uint32_t item = memory->count[channel->index] + i + 1;
    uint64_t old = memory->entry_version[channel->index][item % DEPTH];
    if (i >= DEPTH)
        for (unsigned consumer = 0; consumer < channel->consumers; consumer++)
            await(actor, taken_flag(actor->plan, channel, consumer), item - DEPTH, item % 2 == 0);
    for (unsigned cell = 0; cell < ENTRY_SLOTS * CELLS_PER_SLOT; cell++) {
        void *address = entry_cell(actor->plan, channel, item, cell);
        check_value(actor, address, 8, old);
        write_value(actor->plan, address, 8, memory->version[channel->index] + i + 1);
    }
    fsp_flag_set(ready_flag(actor->plan, channel), item);
}

static void consume(actor *actor, const channel *channel, unsigned consumer, unsigned i)
{
    struct flags_memory *memory = actor->flags;
    uint32_t item = memory->count[channel->index] + i + 1;
    await(actor, ready_flag(actor->plan, channel), item, item % 3 == 0);
    for (unsigned cell = 0; cell < ENTRY_SLOTS * CELLS_PER_SLOT; cell++)
        check_value(actor, entry_cell(actor->plan, channel, item, cell), 8,
                    memory->version[channel->index] + i + 1);
    fsp_flag_set(taken_flag(actor->plan, channel, consumer), item);
}

/* What everybody knows of a channel after an item: needed by whoever writes its entry next. */
static void note_item(actor *actor, const channel *channel, unsigned i)
{
    struct flags_memory *memory = actor->flags;
    uint32_t item = memory->count[channel->index] + i + 1;
    memory->entry_version[channel->index][item % DEPTH] = memory->version[channel->index] + i + 1;
}

static void pass_item(actor *actor, unsigned i)
{
    size_t active = active_count(actor->plan);
    for (size_t n = 0; n < active; n++) {
        channel channel = active_channel(actor, n);
        if (channel.producer == actor->me)
            produce(actor, &channel, i);
    }
    for (size_t n = 0; n < active; n++) {
        channel channel = active_channel(actor, n);
        for (unsigned consumer = 0; consumer < channel.consumers; consumer++)
            if (channel.consumer[consumer] == actor->me)
                consume(actor, &channel, consumer, i);
        note_item(actor, &channel, i);
    }
}

void flags_begin(actor *actor)
{
    size_t channels = group_count(actor->plan, ROLE_FLAGS);
    actor->flags = private_memory(1, sizeof *actor->flags);
    actor->flags->count = private_memory(channels, sizeof *actor->flags->count);
    actor->flags->version = private_memory(channels, sizeof *actor->flags->version);
    actor->flags->entry_version = private_memory(channels, sizeof *actor->flags->entry_version);
}

void flags_act(actor *actor)
{
    for (unsigned i = 0; i < ITEMS; i++)
        pass_item(actor, i);
}

static void reset(actor *actor, const channel *channel)
{
    actor->flags->count[channel->index] = 0;
    if (channel->index % actor->plan->processors != actor->me)
        return;
    fsp_flag_reset(ready_flag(actor->plan, channel));
    for (unsigned consumer = 0; consumer < CONSUMERS_MAX; consumer++)
        fsp_flag_reset(taken_flag(actor->plan, channel, consumer));
}

void flags_check(actor *actor)
{
    for (size_t n = 0; n < active_count(actor->plan); n++) {
        channel channel = active_channel(actor, n);
        actor->flags->count[channel.index] += ITEMS;
        actor->flags->version[channel.index] += ITEMS;
        if (decide(actor, TOPIC, 2, channel.index) % 4 == 0)
            reset(actor, &channel);
    }
}

void flags_end(actor *actor)
{
    free(actor->flags->count);
    free(actor->flags->version);
    free(actor->flags->entry_version);
    free(actor->flags);
}
