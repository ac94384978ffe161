/* Places, values and failing: see stress.h.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const role group_roles[GROUPS_PER_PAGE] = {ROLE_LOCKS, ROLE_LOCKS, ROLE_FLAGS, ROLE_QUEUE,
                                                  ROLE_WORDS, ROLE_WORDS, ROLE_WORDS, ROLE_STILL};

static unsigned roles_per_page(role role)
{
    unsigned count = 0;
    for (unsigned i = 0; i < GROUPS_PER_PAGE; i++)
        count += group_roles[i] == role;
    return count;
}

size_t group_count(const plan *plan, role role)
{
    return plan->pages * roles_per_page(role);
}

size_t group_of(role role, size_t n)
{
    unsigned per_page = roles_per_page(role), skip = (unsigned)(n % per_page), place = 0;
    for (; group_roles[place] != role || skip > 0; place++)
        skip -= group_roles[place] == role;
    return n / per_page * GROUPS_PER_PAGE + place;
}

void *cell_at(const plan *plan, size_t group, unsigned slot, unsigned cell)
{
    return plan->ground + (size_t)plan->slot_order[group * SLOTS_PER_GROUP + slot] * SLOT + (size_t)cell * CELL;
}

size_t region_bytes(const plan *plan)
{
    return plan->pages * PAGE;
}

unsigned char *rotate_region(const plan *plan)
{
    return plan->ground + region_bytes(plan);
}

unsigned char *source_region(const plan *plan)
{
    return plan->ground + 2 * region_bytes(plan);
}

unsigned char *target_region(const plan *plan)
{
    return plan->ground + 3 * region_bytes(plan);
}

size_t ground_bytes(const plan *plan)
{
    return 4 * region_bytes(plan);
}

size_t boundary(const plan *plan, unsigned topic, size_t index, size_t parts, size_t unit)
{
    size_t even = region_bytes(plan) / parts, moved = index * even;
    if (index == 0)
        return 0;
    if (index == parts)
        return region_bytes(plan);
    moved += random_at(plan->seed, topic, index) % (even / 2 + 1);
    return moved / unit * unit;
}

/* The bijection: two rounds of multiply and shift, each undone by the inverse factor. */
static uint64_t scramble(uint64_t word)
{
    word = (word ^ (word >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    word = (word ^ (word >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return word ^ (word >> 32);
}

static uint64_t unscramble(uint64_t word)
{
    const uint64_t inverse = UINT64_C(0xcfee444d8b59a89b);
    word = (word ^ (word >> 32)) * inverse;
    word = (word ^ (word >> 32)) * inverse;
    return word ^ (word >> 32);
}

uint64_t value_at(const plan *plan, uint64_t location, uint64_t version)
{
    uint64_t version_mask = (UINT64_C(1) << VERSION_BITS) - 1;
    return scramble((location << VERSION_BITS | (version & version_mask)) ^ random_mix(plan->seed));
}

static void decode(const plan *plan, uint64_t value, uint64_t *location, uint64_t *version)
{
    uint64_t plain = unscramble(value) ^ random_mix(plan->seed);
    *location = plain >> VERSION_BITS;
    *version = plain & ((UINT64_C(1) << VERSION_BITS) - 1);
}

uint64_t location_of(const plan *plan, const void *address)
{
    return (uint64_t)((const unsigned char *)address - plan->ground);
}

static uint64_t low_bytes(uint64_t value, unsigned size)
{
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

/* One access of exactly this width: its neighbours may belong to other processors. */
static uint64_t load(const void *address, unsigned size)
{
    switch (size) {
    case 1: return *(const uint8_t *)address;
    case 2: return *(const uint16_t *)address;
    case 4: return *(const uint32_t *)address;
    default: return *(const uint64_t *)address;
    }
}

void write_value(const plan *plan, void *address, unsigned size, uint64_t version)
{
    uint64_t value = value_at(plan, location_of(plan, address), version);
    switch (size) {
    case 1: *(uint8_t *)address = (uint8_t)value; break;
    case 2: *(uint16_t *)address = (uint16_t)value; break;
    case 4: *(uint32_t *)address = (uint32_t)value; break;
    default: *(uint64_t *)address = value; break;
    }
}

void check_value(actor *actor, const void *address, unsigned size, uint64_t version)
{
    uint64_t location = location_of(actor->plan, address), found = load(address, size);
    actor->checked++;
    if (found != low_bytes(value_at(actor->plan, location, version), size))
        fail_value(actor, address, location, size, version, found);
}

uint64_t read_version(actor *actor, const void *address)
{
    uint64_t found = load(address, 8), location, version;
    decode(actor->plan, found, &location, &version);
    actor->checked++;
    if (location != location_of(actor->plan, address))
        fail_value(actor, address, location_of(actor->plan, address), 8, UINT64_MAX, found);
    return version;
}

void fill_range(const plan *plan, unsigned char *start, size_t size, uint64_t version)
{
    for (size_t i = 0; i < size; i += 8)
        write_value(plan, start + i, 8, version);
}

void fail(const actor *actor, const char *format, ...)
{
    char text[360];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    printf("stress: WRONG: processor %u round %" PRIu64 " kind %s: %s\n", actor->me, actor->round, actor->kind, text);
    fflush(stdout);
    fsp_abort(1, "stress read a wrong value");
}

/* Says whose value this is: an old or a later one of this location, one of another location, or none of ours. */
static void recognise(const plan *plan, uint64_t location, unsigned size, uint64_t expected, uint64_t found, char *text,
                      size_t room)
{
    uint64_t from, version, latest = expected == UINT64_MAX ? 0 : expected + 8;
    for (uint64_t old = 0; old <= latest; old++) {
        if (low_bytes(value_at(plan, location, old), size) == found) {
            snprintf(text, room, "version %" PRIu64 "%s", old, old < expected ? " (stale or lost)" : " (too new)");
            return;
        }
    }
    decode(plan, found, &from, &version);
    if (found == 0)
        snprintf(text, room, "zeros (never written, or lost)");
    else if (size == 8 && from == location)
        snprintf(text, room, "version %" PRIu64, version);
    else if (size == 8 && from < ground_bytes(plan))
        snprintf(text, room, "version %" PRIu64 " of page %" PRIu64 " byte %" PRIu64 " (foreign)", version, from / PAGE,
                 from % PAGE);
    else if (size == 8 && (from & heap_location) != 0 && version < 64)
        snprintf(text, room, "hop %" PRIu64 " of heap object %" PRIu64 " word %" PRIu64 " (foreign)", version,
                 (from & ~heap_location) >> 15, from & 0x7fff);
    else
        snprintf(text, room, "0x%0*" PRIx64 " (of no place and version)", (int)(2 * size), found);
}

void fail_value(const actor *actor, const void *address, uint64_t location, unsigned size, uint64_t version,
                uint64_t found)
{
    char what[120], wanted[40] = "a value of this place", where[60];
    recognise(actor->plan, location, size, version, found, what, sizeof what);
    if (version != UINT64_MAX)
        snprintf(wanted, sizeof wanted, "version %" PRIu64, version);
    if (location < ground_bytes(actor->plan))
        snprintf(where, sizeof where, "page %" PRIu64 " byte %" PRIu64, location / PAGE, location % PAGE);
    else
        snprintf(where, sizeof where, "heap object %" PRIu64 " word %" PRIu64, (location & ~heap_location) >> 15,
                 location & 0x7fff);
    fail(actor, "address %p (%s, %u bytes): expected %s, found %s", address, where, size, wanted, what);
}

void everybody(actor *actor)
{
    uint64_t choice = random_at(actor->plan->seed, 900, actor->barriers++);
    if (choice % 2 == 0)
        fsp_barrier_all();
    else
        fsp_barrier_wait(&actor->plan->barrier, actor->plan->processors);
}

void *private_memory(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fsp_abort(1, "stress has no private memory left");
    return memory;
}
