/* A pipeline: producers draw blocks of numbers, filters transform them, consumers add them up.  Bounded queues between the
 * stages, each with a mutex and two condition variables; every block passes from thread to thread by pointer.
 *
 * An ordinary pthread program: `cc -pthread pipeline.c` and `fspcc --pthread pipeline.c` build it from the same source.
 *   pipeline [-b BLOCKS] [-t THREADS OF EACH STAGE] [-s SEED]
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 8, NUMBERS = 700, THREADS_MAX = 16 };

typedef struct block {
    unsigned serial;
    uint64_t numbers[NUMBERS];
} block;

/* First in, first out; `open` counts the threads that may still put something in. */
typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    block *blocks[ROOM];
    unsigned first, count, open;
} queue;

static queue drawn = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0};
static queue filtered; /* initialised by main */

static unsigned blocks = 200, threads = 2;
static uint64_t seed = 1;

static pthread_mutex_t next_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned next_serial;

/* What consumers found, by block: each of them writes its own entries. */
static uint64_t *sums;
static unsigned *seen;

static void fail(const char *what)
{
    fprintf(stderr, "pipeline: %s failed\n", what);
    exit(1);
}

static void put(queue *to, block *block)
{
    pthread_mutex_lock(&to->lock);
    while (to->count == ROOM) pthread_cond_wait(&to->not_full, &to->lock);
    to->blocks[(to->first + to->count++) % ROOM] = block;
    pthread_cond_signal(&to->not_empty);
    pthread_mutex_unlock(&to->lock);
}

/* NULL when the queue is empty and nobody will put anything in. */
static block *take(queue *from)
{
    block *taken = NULL;
    pthread_mutex_lock(&from->lock);
    while (from->count == 0 && from->open > 0) pthread_cond_wait(&from->not_empty, &from->lock);
    if (from->count > 0) {
        taken = from->blocks[from->first];
        from->first = (from->first + 1) % ROOM;
        from->count--;
        pthread_cond_signal(&from->not_full);
    }
    pthread_mutex_unlock(&from->lock);
    return taken;
}

static void close_one(queue *of)
{
    pthread_mutex_lock(&of->lock);
    if (--of->open == 0) pthread_cond_broadcast(&of->not_empty);
    pthread_mutex_unlock(&of->lock);
}

static uint64_t random_of(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void draw(block *block)
{
    for (unsigned i = 0; i < NUMBERS; i++) block->numbers[i] = random_of(seed + block->serial * 1000003u + i);
}

static void filter(block *block)
{
    for (unsigned i = 0; i < NUMBERS; i++) block->numbers[i] = random_of(block->numbers[i]) % 1000;
}

static uint64_t add(const block *block)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < NUMBERS; i++) sum += block->numbers[i];
    return sum;
}

static void *produce(void *none)
{
    (void)none;
    for (;;) {
        pthread_mutex_lock(&next_lock);
        unsigned serial = next_serial < blocks ? next_serial++ : blocks;
        pthread_mutex_unlock(&next_lock);
        if (serial == blocks) break;
        block *new = malloc(sizeof *new);
        if (!new) fail("malloc");
        new->serial = serial;
        draw(new);
        put(&drawn, new);
    }
    close_one(&drawn);
    return NULL;
}

static void *transform(void *none)
{
    (void)none;
    for (block *block; (block = take(&drawn));) {
        filter(block);
        put(&filtered, block);
    }
    close_one(&filtered);
    return NULL;
}

/* Returns how many it has consumed. */
static void *consume(void *none)
{
    (void)none;
    uintptr_t consumed = 0;
    for (block *block; (block = take(&filtered)); consumed++) {
        sums[block->serial] = add(block);
        seen[block->serial]++;
        free(block);
    }
    pthread_exit((void *)consumed);
}

int main(int argc, char **argv)
{
    for (int flag; (flag = getopt(argc, argv, "b:t:s:")) != -1;) {
        if (flag == 'b') blocks = (unsigned)atoi(optarg);
        else if (flag == 't') threads = (unsigned)atoi(optarg);
        else if (flag == 's') seed = (uint64_t)atol(optarg);
        else return 2;
    }
    if (blocks < 1 || threads < 1 || threads > THREADS_MAX) return 2;
    sums = calloc(blocks, sizeof *sums);
    seen = calloc(blocks, sizeof *seen);
    if (!sums || !seen) fail("calloc");
    pthread_mutex_init(&filtered.lock, NULL);
    pthread_cond_init(&filtered.not_empty, NULL);
    pthread_cond_init(&filtered.not_full, NULL);
    drawn.open = filtered.open = threads;

    void *(*const stages[])(void *) = {consume, transform, produce};
    pthread_t running[3][THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        for (unsigned stage = 0; stage < 3; stage++)
            if (pthread_create(&running[stage][i], NULL, stages[stage], NULL)) fail("pthread_create");
    uintptr_t consumed = 0;
    for (unsigned i = 0; i < threads; i++)
        for (unsigned stage = 0; stage < 3; stage++) {
            void *result;
            if (pthread_join(running[stage][i], &result)) fail("pthread_join");
            consumed += (uintptr_t)result;
        }

    block *check = malloc(sizeof *check);
    uint64_t total = 0;
    if (!check) fail("malloc");
    for (unsigned serial = 0; serial < blocks; serial++) {
        check->serial = serial;
        draw(check);
        filter(check);
        if (seen[serial] != 1 || sums[serial] != add(check)) {
            printf("pipeline: WRONG: block %u came %u times, with sum %lu\n", serial, seen[serial], (unsigned long)sums[serial]);
            return 1;
        }
        total += sums[serial];
    }
    printf("pipeline: %u blocks, %lu consumed, sum %lu\n", blocks, (unsigned long)consumed, (unsigned long)total);
    puts(consumed == blocks ? "pipeline: verified" : "pipeline: WRONG: blocks are missing");
    free(check);
    free(sums);
    free(seen);
    return consumed != blocks;
}
