/* What the kinds of work of `stress` share: the ground they work on, values that tell where and when they were
 * written, and the check that every read goes through.
 *
 * The ground is one shared allocation of four regions:
 *
 *   arena | rotate | source | target        each `pages` pages
 *
 * The arena is cut into slots of 64 bytes and every slot into cells of 8.  Groups of 8 slots, chosen at random over
 * all pages, belong to one kind; so each page is shared by all kinds, and mutexes, flags and condition variables lie
 * between data of others.
 *
 * A location is a byte's offset in the ground (or a word of a heap object); what a location holds in a version is a
 * bijection of (seed, location, version), so that a wrong 8-byte word tells which location and version it is from.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_STRESS_H
#define APPS_STRESS_H

#include <finespun/finespun.h>

#include "../common/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PAGE = 4096,
    SLOT = 64,
    CELL = 8,
    SLOTS_PER_GROUP = 8,
    CELLS_PER_SLOT = SLOT / CELL,
    GROUPS_PER_PAGE = PAGE / SLOT / SLOTS_PER_GROUP
};

/* What the groups of a page's worth of slots are for: group g has role group_roles[g % GROUPS_PER_PAGE]. */
typedef enum role { ROLE_LOCKS, ROLE_WORDS, ROLE_FLAGS, ROLE_QUEUE, ROLE_STILL } role;

/* The kinds of work, in the order of the table in stress.c. */
enum { KIND_LOCKS, KIND_WORDS, KIND_FLAGS, KIND_QUEUE, KIND_ROTATE, KIND_HEAP, KIND_RANGES, KINDS };

/* What a processor has done, for processor 0 to add up. */
typedef struct result {
    uint64_t checked, created, freed;
    uint64_t padding[5];
} result;

/* Objects on their way to a processor. */
typedef struct mailbox {
    fsp_mutex_t mutex;
    struct object *first;
} mailbox;

/* Shared; only read once the processors run, but for the barrier, the results and the mailboxes. */
typedef struct plan {
    uint64_t seed, rounds;
    size_t pages;
    unsigned processors;
    unsigned kinds; /* a bit for each kind that takes part */
    unsigned limit; /* seconds a round may take */
    unsigned char *ground;
    uint32_t *slot_order; /* the slot of [group * SLOTS_PER_GROUP + index] */
    fsp_barrier_t barrier;
    result *results;
    mailbox *mailboxes;
} plan;

/* One processor's private side. */
typedef struct actor {
    plan *plan;
    unsigned me;
    uint64_t round; /* from 1 */
    const char *kind;
    uint64_t checked, barriers;
    struct locks_memory *locks;
    struct flags_memory *flags;
    struct queue_memory *queue;
    struct heap_memory *heap;
    unsigned char *buffer; /* of BUFFER bytes, for the ranges */
} actor;

enum { BUFFER = 8 * PAGE };

/* A kind: `act` runs on all processors in every round, `check` after a barrier that follows all acts; a barrier ends
 * the round.  The order of kinds is the same on all processors, so a kind that ends when all take part ends here too. */
typedef struct kind {
    const char *name;
    const char *help;
    void (*act)(actor *actor);
    void (*check)(actor *actor);
} kind;

/* -- decisions: the same on every processor that asks the same question -- */

static inline uint64_t decide(const actor *actor, unsigned topic, uint64_t a, uint64_t b)
{
    return random_at(random_at(actor->plan->seed, topic, actor->round), a, b);
}

/* -- places -- */

size_t group_count(const plan *plan, role role);
/* The n-th group of a role. */
size_t group_of(role role, size_t n);
void *cell_at(const plan *plan, size_t group, unsigned slot, unsigned cell);
size_t region_bytes(const plan *plan);
unsigned char *rotate_region(const plan *plan);
unsigned char *source_region(const plan *plan);
unsigned char *target_region(const plan *plan);
size_t ground_bytes(const plan *plan);
/* Where part `index` of `parts` of a region begins: about evenly, moved by the seed, a multiple of `unit`. */
size_t boundary(const plan *plan, unsigned topic, size_t index, size_t parts, size_t unit);

/* -- values -- */

enum { VERSION_BITS = 28 };
static const uint64_t heap_location = UINT64_C(1) << 35;

uint64_t value_at(const plan *plan, uint64_t location, uint64_t version);
uint64_t location_of(const plan *plan, const void *address);
/* Writes the low `size` bytes of the value; size is 1, 2, 4 or 8 and the address a multiple of it. */
void write_value(const plan *plan, void *address, unsigned size, uint64_t version);
void check_value(actor *actor, const void *address, unsigned size, uint64_t version);
/* The version that a word of a lock's data says it has; ends the job if it is no value of this location. */
uint64_t read_version(actor *actor, const void *address);
/* A range that every kind leaves alone after the start. */
void fill_range(const plan *plan, unsigned char *start, size_t size, uint64_t version);

/* -- failing: prints the one line "stress: WRONG: ..." and ends the job with exit code 1 -- */

void fail(const actor *actor, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void fail_value(const actor *actor, const void *address, uint64_t location, unsigned size, uint64_t version,
                uint64_t found) __attribute__((noreturn));

/* A barrier of all processors, by one call or the other. */
void everybody(actor *actor);

void *private_memory(size_t count, size_t size); /* zeroed; free() it */

/* -- the kinds -- */

void locks_prepare(actor *actor); /* version 0 for this processor's part of the records */
void locks_begin(actor *actor);
void locks_act(actor *actor);
void locks_check(actor *actor);
void locks_end(actor *actor);
uint64_t locks_checksum(const plan *plan, uint64_t sum);
void words_prepare(actor *actor); /* version 0 for this processor's part of the elements */
void words_act(actor *actor);
void words_check(actor *actor);
void flags_begin(actor *actor);
void flags_act(actor *actor);
void flags_check(actor *actor);
void flags_end(actor *actor);
void queue_begin(actor *actor);
void queue_act(actor *actor);
void queue_check(actor *actor);
void queue_end(actor *actor);
void rotate_act(actor *actor);
void rotate_check(actor *actor);
void heap_begin(actor *actor);
void heap_act(actor *actor);
void heap_check(actor *actor);
void heap_end(actor *actor);
void ranges_act(actor *actor);
void ranges_check(actor *actor);

#endif
