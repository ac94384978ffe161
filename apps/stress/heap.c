/* Allocation: objects of random sizes, by every allocating call, are filled, handed to other processors through locked
 * mailboxes, checked there, changed, grown or shrunk, handed on, and at last freed by somebody else.
 *
 * Every word of an object is a value of (object, word, hop), so memory that two objects hold at once shows.  An object
 * is written once more just before it is freed: a late write to memory that has gone to somebody else would show too,
 * so freeing must release and allocating must acquire (as C11 7.22.3 has it).
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOPIC = 600, TURNS = 4, BORN_PER_TURN = 2, HOPS_MAX = 6, SIZE_MIN = 56, SIZE_BITS_MAX = 11 };

typedef struct object {
    struct object *next; /* in a mailbox */
    uint64_t id;
    uint64_t size; /* of the whole object, in bytes */
    uint64_t hop;  /* how often it has been handed on */
    uint64_t seal; /* of id, size and hop, so that a foreign header is not believed */
    uint64_t padding;
} object;

struct heap_memory {
    uint64_t created, freed;
};

static uint64_t choice_for(const plan *plan, uint64_t id, uint64_t hop, unsigned topic)
{
    return random_at(plan->seed ^ (TOPIC + topic), id, hop);
}

/* From SIZE_MIN to about 150 KiB, small ones as often as large ones. */
static uint64_t choose_size(uint64_t choice)
{
    uint64_t units = UINT64_C(1) << choice % (SIZE_BITS_MAX + 1);
    return SIZE_MIN + units * (choice >> 8 & 0x3f) + (choice >> 16) % 33;
}

static uint64_t location_in(const object *object, size_t word)
{
    return heap_location | (random_mix(object->id) & 0xfffff) << 15 | word;
}

static uint64_t seal_of(const object *object)
{
    return random_at(object->id, object->size, object->hop);
}

static unsigned char *contents_of(object *object)
{
    return (unsigned char *)(object + 1);
}

static void fill(const plan *plan, object *object)
{
    size_t left = object->size - sizeof *object;
    unsigned char *next = contents_of(object);
    object->seal = seal_of(object);
    for (size_t word = 0; left > 0; word++) {
        uint64_t value = value_at(plan, location_in(object, word), object->hop);
        size_t part = left < 8 ? left : 8;
        memcpy(next, &value, part);
        next += part;
        left -= part;
    }
}

static void check_header(actor *actor, const object *object)
{
    actor->checked++;
    if (object->seal != seal_of(object) || object->hop > HOPS_MAX)
        fail(actor, "heap object at %p: id %#" PRIx64 " size %" PRIu64 " hop %" PRIu64 " %s", (const void *)object,
             object->id, object->size, object->hop,
             object->seal == seal_of(object) ? "was freed" : "do not fit their seal: stale, lost or overwritten");
}

/* The first `size` bytes of the object, header included. */
static void check(actor *actor, object *object, size_t size)
{
    unsigned char *next = contents_of(object);
    size_t left = size - sizeof *object;
    check_header(actor, object);
    for (size_t word = 0; left > 0; word++) {
        uint64_t location = location_in(object, word), value = value_at(actor->plan, location, object->hop), found = 0;
        size_t part = left < 8 ? left : 8;
        memcpy(&found, next, part);
        if (part < 8)
            value &= (UINT64_C(1) << 8 * part) - 1;
        actor->checked++;
        if (found != value)
            fail_value(actor, next, location, (unsigned)part, object->hop, found);
        next += part;
        left -= part;
    }
}

static void check_allocation(actor *actor, const char *call, const void *memory, size_t size, size_t alignment)
{
    if (memory == NULL || (uintptr_t)memory % alignment != 0)
        fail(actor, "%s of %zu bytes gave %p, which is not aligned to %zu", call, size, memory, alignment);
    if (!fsp_is_shared(memory) || fsp_usable_size(memory) < size)
        fail(actor, "%s of %zu bytes gave %p, of which %zu bytes are usable", call, size, memory,
             fsp_usable_size(memory));
}

static void check_zeros(actor *actor, const unsigned char *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (memory[i] != 0)
            fail(actor, "fsp_calloc: byte %zu of %zu at %p is 0x%02x, expected zero", i, size, (const void *)memory,
                 memory[i]);
    actor->checked++;
}

static object *allocate(actor *actor, uint64_t choice, size_t size)
{
    size_t alignment = (size_t)64 << (choice >> 8) % 8;
    int node = (int)((choice >> 8) % (unsigned)fsp_nodes());
    void *memory = NULL;
    switch (choice % 8) {
    case 0:
        memory = fsp_calloc(1, size);
        check_allocation(actor, "fsp_calloc", memory, size, 16);
        check_zeros(actor, memory, size);
        break;
    case 1:
        memory = fsp_aligned_alloc(alignment, size);
        check_allocation(actor, "fsp_aligned_alloc", memory, size, alignment);
        break;
    case 2:
        memory = fsp_malloc_on(size, node);
        check_allocation(actor, "fsp_malloc_on", memory, size, PAGE);
        break;
    case 3:
        memory = fsp_malloc_distributed(size, PAGE);
        check_allocation(actor, "fsp_malloc_distributed", memory, size, PAGE);
        break;
    case 4:
        memory = fsp_realloc(NULL, size);
        check_allocation(actor, "fsp_realloc", memory, size, 16);
        break;
    default:
        memory = fsp_malloc(size);
        check_allocation(actor, "fsp_malloc", memory, size, 16);
        break;
    }
    return memory;
}

static void send(actor *actor, object *object)
{
    uint64_t choice = choice_for(actor->plan, object->id, object->hop, 1);
    mailbox *mailbox = &actor->plan->mailboxes[choice % actor->plan->processors];
    fsp_mutex_lock(&mailbox->mutex);
    object->next = mailbox->first;
    mailbox->first = object;
    fsp_mutex_unlock(&mailbox->mutex);
}

static void create(actor *actor)
{
    uint64_t id = (uint64_t)actor->me << 40 | actor->heap->created++;
    uint64_t choice = choice_for(actor->plan, id, 0, 0), size = choose_size(choice);
    object *object = allocate(actor, choice >> 32, size);
    *object = (struct object){.id = id, .size = size};
    fill(actor->plan, object);
    send(actor, object);
}

static void destroy(actor *actor, object *object)
{
    object->hop = HOPS_MAX + 1;
    fill(actor->plan, object); /* on purpose: see the top of the file */
    fsp_free(object);
    actor->heap->freed++;
}

static object *resize(actor *actor, object *object, uint64_t choice)
{
    uint64_t old = object->size, size = choose_size(choice);
    object = fsp_realloc(object, size);
    check_allocation(actor, "fsp_realloc", object, size, 16);
    check(actor, object, old < size ? old : size);
    object->size = size;
    return object;
}

static void treat(actor *actor, object *object)
{
    uint64_t choice = choice_for(actor->plan, object->id, object->hop, 2);
    check(actor, object, object->size);
    if (object->hop >= HOPS_MAX || choice % 3 == 0) {
        destroy(actor, object);
        return;
    }
    if (choice % 3 == 1)
        object = resize(actor, object, choice >> 8);
    object->hop++;
    fill(actor->plan, object);
    send(actor, object);
}

static object *empty_mailbox(actor *actor)
{
    mailbox *mailbox = &actor->plan->mailboxes[actor->me];
    fsp_mutex_lock(&mailbox->mutex);
    object *first = mailbox->first;
    mailbox->first = NULL;
    fsp_mutex_unlock(&mailbox->mutex);
    return first;
}

void heap_begin(actor *actor)
{
    actor->heap = private_memory(1, sizeof *actor->heap);
}

void heap_act(actor *actor)
{
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned i = 0; i < BORN_PER_TURN; i++)
            create(actor);
        for (object *object = empty_mailbox(actor), *next; object != NULL; object = next) {
            next = object->next;
            treat(actor, object);
        }
    }
}

/* Objects under way stay in their mailboxes over the rounds; after the last one they are checked and freed. */
void heap_check(actor *actor)
{
    if (actor->round < actor->plan->rounds)
        return;
    for (object *object = empty_mailbox(actor), *next; object != NULL; object = next) {
        next = object->next;
        check(actor, object, object->size);
        destroy(actor, object);
    }
}

void heap_end(actor *actor)
{
    actor->plan->results[actor->me].created = actor->heap->created;
    actor->plan->results[actor->me].freed = actor->heap->freed;
    free(actor->heap);
}
