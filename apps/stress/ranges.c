/* Ranges that do not care about words and pages: the target region is cut into intervals at any byte; in a round an
 * interval's writer fills it with memset, with memcpy from private or from shared memory, or with unaligned 8-byte
 * stores.  After a barrier everybody copies large ranges out of the region and compares every byte.
 *
 * An interval holds what its last write left: "version" is the round of that write.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

#include <inttypes.h>
#include <string.h>

enum { TOPIC = 700, LOOKS = 3, SHIFT_MAX = 1000 };

typedef enum write_kind { NOT_WRITTEN, BY_MEMSET, BY_PRIVATE_COPY, BY_SHARED_COPY, BY_UNALIGNED_STORES } write_kind;

static size_t interval_count(const plan *plan)
{
    return 3 * plan->pages + 1;
}

static uint64_t write_choice(const plan *plan, size_t interval, uint64_t round)
{
    return random_at(plan->seed ^ TOPIC, interval, round);
}

/* Round 0 is the start: all intervals are written by copies. */
static write_kind write_kind_of(const plan *plan, size_t interval, uint64_t round)
{
    return round == 0 ? BY_PRIVATE_COPY : (write_kind)(write_choice(plan, interval, round) % 5);
}

static uint64_t last_round(const plan *plan, size_t interval, uint64_t round)
{
    while (write_kind_of(plan, interval, round) == NOT_WRITTEN)
        round--;
    return round;
}

/* Where in the source region a shared copy of an interval comes from. */
static size_t source_start(const plan *plan, size_t interval, uint64_t round, size_t start, size_t size)
{
    size_t shift = (size_t)(write_choice(plan, interval, round) >> 8) % SHIFT_MAX;
    return start + shift + size <= region_bytes(plan) ? start + shift : start;
}

/* The bytes [at, at + size) of a region in a version, as a stream of its aligned words; any alignment will do. */
static void stream(const plan *plan, const unsigned char *region, size_t at, size_t size, uint64_t version,
                   unsigned char *out)
{
    while (size > 0) {
        uint64_t value = value_at(plan, location_of(plan, region + at / 8 * 8), version);
        size_t skip = at % 8, part = size < 8 - skip ? size : 8 - skip;
        memcpy(out, (unsigned char *)&value + skip, part);
        out += part;
        at += part;
        size -= part;
    }
}

/* What the bytes [at, at + size) of an interval that starts at `start` and is `whole` long hold after `round`. */
static void expect(const plan *plan, size_t interval, uint64_t round, size_t start, size_t whole, size_t at, size_t size,
                   unsigned char *out)
{
    uint64_t written = last_round(plan, interval, round);
    switch (write_kind_of(plan, interval, written)) {
    case BY_MEMSET:
        memset(out, (int)(write_choice(plan, interval, written) >> 40 & 0xff), size);
        break;
    case BY_SHARED_COPY:
        stream(plan, source_region(plan), source_start(plan, interval, written, start, whole) + (at - start), size, 0, out);
        break;
    case NOT_WRITTEN: /* not of a round that wrote */
    case BY_PRIVATE_COPY:
    case BY_UNALIGNED_STORES:
        stream(plan, target_region(plan), at, size, written, out);
        break;
    }
}

/* A stored value of 8 bytes at any address, and what is left over one by one. */
static void store_unaligned(unsigned char *out, const unsigned char *from, size_t size)
{
    for (; size >= 8; size -= 8, out += 8, from += 8)
        memcpy(out, from, 8);
    for (; size > 0; size--)
        *out++ = *from++;
}

static void write_interval(actor *actor, size_t interval)
{
    const plan *plan = actor->plan;
    size_t start = boundary(plan, TOPIC, interval, interval_count(plan), 1);
    size_t size = boundary(plan, TOPIC, interval + 1, interval_count(plan), 1) - start;
    unsigned char *out = target_region(plan) + start;
    switch (write_kind_of(plan, interval, actor->round)) {
    case NOT_WRITTEN:
        return;
    case BY_MEMSET:
        memset(out, (int)(write_choice(plan, interval, actor->round) >> 40 & 0xff), size);
        break;
    case BY_PRIVATE_COPY:
        stream(plan, target_region(plan), start, size, actor->round, actor->buffer);
        memcpy(out, actor->buffer, size);
        break;
    case BY_SHARED_COPY:
        memcpy(out, source_region(plan) + source_start(plan, interval, actor->round, start, size), size);
        break;
    case BY_UNALIGNED_STORES:
        stream(plan, target_region(plan), start, size, actor->round, actor->buffer);
        store_unaligned(out, actor->buffer, size);
        break;
    }
}

/* Tells an old content of the interval from a strange one. */
static void fail_byte(const actor *actor, size_t interval, size_t start, size_t whole, size_t at, unsigned found,
                      unsigned expected)
{
    uint64_t offset = location_of(actor->plan, target_region(actor->plan) + at);
    uint64_t written = last_round(actor->plan, interval, actor->round), old = written;
    unsigned char before = (unsigned char)expected;
    while (before != found && old > 0) {
        old = last_round(actor->plan, interval, old - 1);
        expect(actor->plan, interval, old, start, whole, at, 1, &before);
    }
    fail(actor,
         "address %p (page %" PRIu64 " byte %" PRIu64 ", 1 byte): expected 0x%02x of version %" PRIu64 ", found 0x%02x%s",
         (void *)(target_region(actor->plan) + at), offset / PAGE, offset % PAGE, expected, written, found,
         before == found ? " (stale: as in an earlier version)" : " (of no version)");
}

static void compare(const actor *actor, size_t interval, size_t start, size_t whole, size_t at, size_t size,
                    const unsigned char *found)
{
    unsigned char expected[BUFFER / 8];
    for (size_t done = 0; done < size;) {
        size_t part = size - done < sizeof expected ? size - done : sizeof expected;
        expect(actor->plan, interval, actor->round, start, whole, at + done, part, expected);
        for (size_t i = 0; i < part && memcmp(expected, found + done, part) != 0; i++)
            if (expected[i] != found[done + i])
                fail_byte(actor, interval, start, whole, at + done + i, found[done + i], expected[i]);
        done += part;
    }
}

/* Copies [first, end) out in one go and compares it interval by interval. */
static void look(actor *actor, size_t first, size_t end)
{
    const plan *plan = actor->plan;
    size_t count = interval_count(plan);
    memcpy(actor->buffer, target_region(plan) + first, end - first);
    for (size_t interval = 0; interval < count; interval++) {
        size_t start = boundary(plan, TOPIC, interval, count, 1), stop = boundary(plan, TOPIC, interval + 1, count, 1);
        size_t from = start > first ? start : first, to = stop < end ? stop : end;
        if (from < to)
            compare(actor, interval, start, stop - start, from, to - from, actor->buffer + (from - first));
    }
    actor->checked += end - first;
}

void ranges_act(actor *actor)
{
    for (size_t interval = 0; interval < interval_count(actor->plan); interval++) {
        uint64_t writer = write_choice(actor->plan, interval, actor->round) >> 20;
        if (writer % actor->plan->processors == actor->me)
            write_interval(actor, interval);
    }
}

void ranges_check(actor *actor)
{
    size_t all = region_bytes(actor->plan);
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t choice = decide(actor, TOPIC + 1, actor->me, i);
        size_t first = choice % all, size = 1 + (choice >> 32) % BUFFER;
        look(actor, first, size < all - first ? first + size : all);
    }
}
