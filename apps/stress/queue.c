/* Bounded queues under a mutex with two condition variables.  A queue is a group: slot 0 holds the mutex, the two
 * conditions, the numbers of items taken and put, and a sum over the items taken; slots 1 to 7 are a ring of entries.
 *
 * In a round each chosen queue has producers and consumers by decision, with as many items taken as put.  An entry is
 * checked against the number under which it was taken; a producer's items must come in order; at the end the sum
 * shows an item taken twice or never.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "stress.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TOPIC = 400, RING = 7, ITEMS = 12, QUEUES_PER_ROUND = 3 };
enum { MUTEX_CELL, NOT_EMPTY_CELL, NOT_FULL_CELL, TAKEN_CELL, PUT_CELL, SUM_CELL }; /* of slot 0 */
enum { ID_CELL = 0, SEAL_CELL = 7 };                                               /* of an entry */

struct queue_memory {
    uint64_t *total; /* items that have gone through each queue */
    uint64_t *sum;   /* of their seals */
    uint64_t *put_seen, *taken_seen; /* the numbers this processor saw last */
    uint64_t *next;  /* the least number the next item of each producer may have, in one queue and round */
};

typedef struct queue {
    size_t group, index;
    const plan *plan;
} queue;

static size_t chosen_count(const plan *plan)
{
    size_t queues = group_count(plan, ROLE_QUEUE);
    return queues < QUEUES_PER_ROUND ? queues : QUEUES_PER_ROUND;
}

static queue chosen_queue(const actor *actor, size_t n)
{
    size_t queues = group_count(actor->plan, ROLE_QUEUE), index = (decide(actor, TOPIC, 0, 0) + n) % queues;
    return (queue){group_of(ROLE_QUEUE, index), index, actor->plan};
}

static void *control(const queue *queue, unsigned cell)
{
    return cell_at(queue->plan, queue->group, 0, cell);
}

static void *entry(const queue *queue, uint64_t number, unsigned cell)
{
    return cell_at(queue->plan, queue->group, 1 + (unsigned)(number % RING), cell);
}

static uint64_t item_id(uint64_t round, unsigned producer, unsigned i)
{
    return round << 32 | (uint64_t)producer << 16 | i;
}

static uint64_t seal_of(const queue *queue, uint64_t id)
{
    return random_at(queue->plan->seed, TOPIC + queue->index, id);
}

/* At least one producer, at least one consumer; with one processor, it is both. */
static bool is_producer(const actor *actor, const queue *queue, unsigned processor)
{
    uint64_t choice = decide(actor, TOPIC + 1, queue->index, 0);
    if (processor == choice % actor->plan->processors)
        return true;
    if (processor == (choice + 1) % actor->plan->processors)
        return false;
    return decide(actor, TOPIC + 2, queue->index, processor) % 2 == 0;
}

static unsigned producers_below(const actor *actor, const queue *queue, unsigned end)
{
    unsigned count = 0;
    for (unsigned processor = 0; processor < end; processor++)
        count += is_producer(actor, queue, processor);
    return count;
}

/* Waking one is enough; sometimes all are woken, and must look again. */
static void wake(fsp_cond_t *cond, uint64_t number)
{
    if (number % 5 == 0)
        fsp_cond_broadcast(cond);
    else
        fsp_cond_signal(cond);
}

/* The numbers of items put and taken; with the mutex held they never go back, and differ by the ring's size at most.
 * Without this check a stale number could send a processor to sleep for ever. */
static void read_counts(actor *actor, const queue *queue, uint64_t *put, uint64_t *taken)
{
    uint64_t *put_seen = &actor->queue->put_seen[queue->index], *taken_seen = &actor->queue->taken_seen[queue->index];
    *put = read_version(actor, control(queue, PUT_CELL));
    *taken = read_version(actor, control(queue, TAKEN_CELL));
    if (*put < *put_seen || *taken < *taken_seen || *put - *taken > RING)
        fail(actor, "queue %zu at %p: %" PRIu64 " items put, %" PRIu64 " taken; seen here before: %" PRIu64 ", %" PRIu64,
             queue->index, control(queue, PUT_CELL), *put, *taken, *put_seen, *taken_seen);
    *put_seen = *put;
    *taken_seen = *taken;
}

/* Waits until there are not `count` items in the queue. */
static void wait_while(actor *actor, const queue *queue, uint64_t count, unsigned cond_cell, uint64_t *put,
                       uint64_t *taken)
{
    read_counts(actor, queue, put, taken);
    while (*put - *taken == count) {
        fsp_cond_wait(control(queue, cond_cell), control(queue, MUTEX_CELL));
        read_counts(actor, queue, put, taken);
    }
}

static void set_count(const queue *queue, unsigned cell, uint64_t count)
{
    write_value(queue->plan, control(queue, cell), 8, count);
}

static void write_entry(const queue *queue, uint64_t number, uint64_t id)
{
    *(uint64_t *)entry(queue, number, ID_CELL) = id;
    for (unsigned cell = ID_CELL + 1; cell < SEAL_CELL; cell++)
        write_value(queue->plan, entry(queue, number, cell), 8, number);
    *(uint64_t *)entry(queue, number, SEAL_CELL) = seal_of(queue, id);
}

static void put(actor *actor, const queue *queue, unsigned i)
{
    fsp_mutex_t *mutex = control(queue, MUTEX_CELL);
    uint64_t number, taken;
    fsp_mutex_lock(mutex);
    wait_while(actor, queue, RING, NOT_FULL_CELL, &number, &taken);
    number++;
    write_entry(queue, number, item_id(actor->round, actor->me, i));
    set_count(queue, PUT_CELL, number);
    wake(control(queue, NOT_EMPTY_CELL), number);
    fsp_mutex_unlock(mutex);
}

static void check_entry(actor *actor, const queue *queue, uint64_t number)
{
    uint64_t id = *(uint64_t *)entry(queue, number, ID_CELL), seal = *(uint64_t *)entry(queue, number, SEAL_CELL);
    unsigned producer = id >> 16 & 0xffff;
    for (unsigned cell = ID_CELL + 1; cell < SEAL_CELL; cell++)
        check_value(actor, entry(queue, number, cell), 8, number);
    if (seal != seal_of(queue, id) || id >> 32 != actor->round || producer >= actor->plan->processors)
        fail(actor, "queue %zu entry at %p: item %" PRIu64 " has id %#" PRIx64 ", which was not put in this round or does "
             "not fit its seal", queue->index, entry(queue, number, ID_CELL), number, id);
    if ((id & 0xffff) < actor->queue->next[producer])
        fail(actor, "queue %zu: item %" PRIu64 " of processor %u after its item %" PRIu64, queue->index, id & 0xffff,
             producer, actor->queue->next[producer] - 1);
    actor->queue->next[producer] = (id & 0xffff) + 1;
    actor->checked += 2;
}

static void take(actor *actor, const queue *queue)
{
    fsp_mutex_t *mutex = control(queue, MUTEX_CELL);
    uint64_t number, put;
    fsp_mutex_lock(mutex);
    wait_while(actor, queue, 0, NOT_EMPTY_CELL, &put, &number);
    number++;
    check_entry(actor, queue, number);
    *(uint64_t *)control(queue, SUM_CELL) += *(uint64_t *)entry(queue, number, SEAL_CELL);
    set_count(queue, TAKEN_CELL, number);
    wake(control(queue, NOT_FULL_CELL), number);
    fsp_mutex_unlock(mutex);
}

static void use_queue(actor *actor, const queue *queue)
{
    unsigned processors = actor->plan->processors, producers = producers_below(actor, queue, processors);
    unsigned consumers = processors - producers, items = producers * ITEMS;
    for (unsigned processor = 0; processor < processors; processor++)
        actor->queue->next[processor] = 0;
    if (is_producer(actor, queue, actor->me)) {
        for (unsigned i = 0; i < ITEMS; i++) {
            put(actor, queue, i);
            if (consumers == 0)
                take(actor, queue);
        }
        return;
    }
    unsigned rank = actor->me - producers_below(actor, queue, actor->me);
    for (unsigned i = items * rank / consumers; i < items * (rank + 1) / consumers; i++)
        take(actor, queue);
}

void queue_begin(actor *actor)
{
    size_t queues = group_count(actor->plan, ROLE_QUEUE);
    actor->queue = private_memory(1, sizeof *actor->queue);
    actor->queue->total = private_memory(queues, sizeof(uint64_t));
    actor->queue->sum = private_memory(queues, sizeof(uint64_t));
    actor->queue->put_seen = private_memory(queues, sizeof(uint64_t));
    actor->queue->taken_seen = private_memory(queues, sizeof(uint64_t));
    actor->queue->next = private_memory(actor->plan->processors, sizeof(uint64_t));
}

void queue_act(actor *actor)
{
    for (size_t n = 0; n < chosen_count(actor->plan); n++) {
        queue queue = chosen_queue(actor, n);
        use_queue(actor, &queue);
    }
}

/* Everybody adds up what went through; one processor compares. */
void queue_check(actor *actor)
{
    for (size_t n = 0; n < chosen_count(actor->plan); n++) {
        queue queue = chosen_queue(actor, n);
        uint64_t *total = &actor->queue->total[queue.index], *sum = &actor->queue->sum[queue.index];
        for (unsigned processor = 0; processor < actor->plan->processors; processor++) {
            for (unsigned i = 0; is_producer(actor, &queue, processor) && i < ITEMS; i++) {
                *total += 1;
                *sum += seal_of(&queue, item_id(actor->round, processor, i));
            }
        }
        if ((queue.index + actor->round) % actor->plan->processors != actor->me)
            continue;
        check_value(actor, control(&queue, PUT_CELL), 8, *total);
        check_value(actor, control(&queue, TAKEN_CELL), 8, *total);
        if (*(uint64_t *)control(&queue, SUM_CELL) != *sum)
            fail(actor, "queue %zu: the sum over the items taken is %#" PRIx64 ", expected %#" PRIx64
                 ": one was lost or taken twice", queue.index, *(uint64_t *)control(&queue, SUM_CELL), *sum);
    }
}

void queue_end(actor *actor)
{
    free(actor->queue->total);
    free(actor->queue->sum);
    free(actor->queue->put_seen);
    free(actor->queue->taken_seen);
    free(actor->queue->next);
    free(actor->queue);
}
