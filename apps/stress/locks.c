/* Records under mutexes.  A record is a mutex and 7 words that all carry the record's version; its words lie in one
 * slot, or each in another page, always beside words of other records.  A processor that locks a record finds all
 * words of one version, not older than the last it saw, and writes the next.
 *
 * Now and then a processor gives way in the middle of a change, so that a mutex that excludes nobody shows at once.
 *
 * When all have finished, the version must be the number of updates that the processors' decisions add up to.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

#include "../common/report.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

enum { RECORD_WORDS = 7, OPERATIONS = 150, HOT_RECORDS = 6, TOPIC = 100 };

typedef enum action { LOOK, UPDATE, UPDATE_AFTER_TRY, UPDATE_TWO } action;

struct locks_memory {
    uint64_t *seen;  /* the version this processor saw last */
    uint64_t *bound; /* the version at the end of this round */
};

typedef struct operation {
    action action;
    size_t record, second; /* second > record, for UPDATE_TWO */
} operation;

static size_t record_count(const plan *plan)
{
    return group_count(plan, ROLE_LOCKS) * SLOTS_PER_GROUP;
}

/* Word 0 is the mutex. */
static void *word_of(const plan *plan, size_t record, unsigned word)
{
    size_t group = group_of(ROLE_LOCKS, record / SLOTS_PER_GROUP);
    unsigned place = (unsigned)(record % SLOTS_PER_GROUP);
    if (random_at(plan->seed, TOPIC, group) % 2 == 0)
        return cell_at(plan, group, place, word);
    return cell_at(plan, group, word, (place + word) % CELLS_PER_SLOT);
}

/* Half of the operations go to a few records, which so migrate from processor to processor. */
static size_t choose_record(const plan *plan, uint64_t choice)
{
    size_t count = record_count(plan);
    return choice % 2 == 0 ? choice / 2 % HOT_RECORDS : choice / 2 % count;
}

static operation operation_of(const actor *actor, unsigned processor, unsigned index)
{
    uint64_t choice = decide(actor, TOPIC + 1, processor, index);
    operation operation = {(action)(choice >> 60) % 4, choose_record(actor->plan, choice >> 8 & 0xffffff),
                           choose_record(actor->plan, choice >> 32 & 0xffffff)};
    if (operation.record == operation.second && operation.action == UPDATE_TWO)
        operation.action = UPDATE;
    if (operation.record > operation.second) { /* in this order no two processors wait for each other */
        size_t record = operation.record;
        operation.record = operation.second;
        operation.second = record;
    }
    return operation;
}

static void check_record(actor *actor, size_t record, uint64_t version)
{
    for (unsigned word = 1; word <= RECORD_WORDS; word++)
        check_value(actor, word_of(actor->plan, record, word), 8, version);
}

/* With the mutex held. */
static void look(actor *actor, size_t record)
{
    uint64_t version = read_version(actor, word_of(actor->plan, record, 1));
    if (version < actor->locks->seen[record] || version > actor->locks->bound[record])
        fail(actor, "record %zu at %p: version %" PRIu64 ", expected from %" PRIu64 " (seen here before) to %" PRIu64,
             record, word_of(actor->plan, record, 1), version, actor->locks->seen[record],
             actor->locks->bound[record]);
    check_record(actor, record, version);
    actor->locks->seen[record] = version;
}

static void update(actor *actor, size_t record)
{
    look(actor, record);
    uint64_t version = ++actor->locks->seen[record];
    for (unsigned word = 1; word <= RECORD_WORDS; word++) {
        write_value(actor->plan, word_of(actor->plan, record, word), 8, version);
        if (word == 1 + (version + actor->me) % 32)
            sched_yield();
    }
}

static void perform(actor *actor, const operation *operation)
{
    fsp_mutex_t *mutex = word_of(actor->plan, operation->record, 0);
    fsp_mutex_t *second = word_of(actor->plan, operation->second, 0);
    if (operation->action != UPDATE_AFTER_TRY || fsp_mutex_trylock(mutex) != FSP_OK)
        fsp_mutex_lock(mutex);
    if (operation->action == UPDATE_TWO) {
        fsp_mutex_lock(second);
        update(actor, operation->second);
    }
    if (operation->action == LOOK)
        look(actor, operation->record);
    else
        update(actor, operation->record);
    fsp_mutex_unlock(mutex);
    if (operation->action == UPDATE_TWO) {
        look(actor, operation->second); /* still as we left it: the second mutex is ours */
        fsp_mutex_unlock(second);
    }
}

/* What all processors together will have done to each record when this round ends. */
static void add_up(actor *actor)
{
    for (unsigned processor = 0; processor < actor->plan->processors; processor++) {
        for (unsigned i = 0; i < OPERATIONS; i++) {
            operation operation = operation_of(actor, processor, i);
            actor->locks->bound[operation.record] += operation.action != LOOK;
            actor->locks->bound[operation.second] += operation.action == UPDATE_TWO;
        }
    }
}

void locks_prepare(actor *actor)
{
    for (size_t record = 0; record < record_count(actor->plan); record++)
        if (decide(actor, TOPIC + 2, record, 0) % actor->plan->processors == actor->me)
            for (unsigned word = 1; word <= RECORD_WORDS; word++)
                write_value(actor->plan, word_of(actor->plan, record, word), 8, 0);
}

void locks_begin(actor *actor)
{
    actor->locks = private_memory(1, sizeof *actor->locks);
    actor->locks->seen = private_memory(record_count(actor->plan), sizeof(uint64_t));
    actor->locks->bound = private_memory(record_count(actor->plan), sizeof(uint64_t));
}

void locks_act(actor *actor)
{
    add_up(actor);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        operation operation = operation_of(actor, actor->me, i);
        perform(actor, &operation);
    }
}

void locks_check(actor *actor)
{
    size_t count = record_count(actor->plan), first = (actor->me + actor->round) % actor->plan->processors;
    for (size_t record = first; record < count; record += actor->plan->processors)
        check_record(actor, record, actor->locks->bound[record]);
}

void locks_end(actor *actor)
{
    free(actor->locks->seen);
    free(actor->locks->bound);
    free(actor->locks);
}

uint64_t locks_checksum(const plan *plan, uint64_t sum)
{
    for (size_t record = 0; record < record_count(plan); record++)
        for (unsigned word = 1; word <= RECORD_WORDS; word++)
            sum = checksum_bytes(sum, word_of(plan, record, word), 8);
    return sum;
}
