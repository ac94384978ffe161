/* What two processes that never sleep do to each other by words alone: locks, barriers, and one word that crosses.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "floors.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* As many as the micro benchmark has mutexes, a line each. */
#define LOCKS 64

typedef struct lock {
    _Alignas(64) _Atomic uint32_t word;
} lock;

static struct {
    lock locks[LOCKS];
    _Alignas(128) _Atomic uint64_t left_at;
} *words;

static void take(lock *lock)
{
    while (atomic_exchange_explicit(&lock->word, 1, memory_order_acquire) != 0)
        for (size_t tries = 0; atomic_load_explicit(&lock->word, memory_order_relaxed) != 0; tries++)
            if (tries % 4096 == 4095)
                sched_yield();
}

static void give_back(lock *lock)
{
    atomic_store_explicit(&lock->word, 0, memory_order_release);
}

static uint32_t repeats(void)
{
    return rounds < 100 ? 2 : 12;
}

static void lock_all_in_turn(shared *memory)
{
    for (uint32_t round = 1; round <= repeats(); round++) {
        until(&memory->ping, round);
        for (size_t number = 0; number < LOCKS; number++)
            take(&words->locks[number]), give_back(&words->locks[number]);
        atomic_store_explicit(&memory->pong, round, memory_order_release);
    }
}

/* Lock and unlock of a free lock that the other core had last: the line crosses once. */
static void lock_after_other(void)
{
    shared *memory = share(2);
    uint64_t *samples = calloc(repeats() * LOCKS, sizeof *samples), *next = samples;
    pid_t child = process(1, lock_all_in_turn, memory);
    for (uint32_t round = 1; round <= repeats(); round++) {
        atomic_store_explicit(&memory->ping, round, memory_order_release);
        until(&memory->pong, round);
        for (size_t number = 0; number < LOCKS; number++) {
            uint64_t began = now();
            take(&words->locks[number]), give_back(&words->locks[number]);
            *next++ = now() - began;
        }
    }
    waitpid(child, NULL, 0);
    report("word-lock-after-other", samples, repeats() * LOCKS, 1);
    free(samples);
}

static void lock_often(shared *memory)
{
    for (uint32_t round = 1; round <= repeats(); round++) {
        until(&memory->ping, round);
        for (size_t pair = 0; pair < rounds / 4 + 1; pair++)
            take(words->locks), give_back(words->locks);
        atomic_store_explicit(&memory->pong, round, memory_order_release);
    }
}

/* Both lock and unlock the same as fast as they can: time for one acquisition. */
static void lock_contended(void)
{
    shared *memory = share(2);
    uint64_t *samples = calloc(repeats(), sizeof *samples);
    size_t each = rounds / 4 + 1;
    pid_t child = process(1, lock_often, memory);
    for (uint32_t round = 1; round <= repeats(); round++) {
        uint64_t began = now();
        atomic_store_explicit(&memory->ping, round, memory_order_release);
        for (size_t pair = 0; pair < each; pair++)
            take(words->locks), give_back(words->locks);
        until(&memory->pong, round);
        samples[round - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    report("word-lock-contended", samples, repeats(), 2 * (double)each);
    free(samples);
}

static void add_often(shared *memory)
{
    for (uint32_t round = 1; round <= repeats(); round++) {
        until(&memory->ping, round);
        for (size_t i = 0; i < rounds / 4 + 1; i++)
            atomic_fetch_add(&words->left_at, 1);
        atomic_store_explicit(&memory->pong, round, memory_order_release);
    }
}

/* Both raise one counter as fast as they can: time for one. */
static void add_contended(void)
{
    shared *memory = share(2);
    uint64_t *samples = calloc(repeats(), sizeof *samples);
    size_t each = rounds / 4 + 1;
    pid_t child = process(1, add_often, memory);
    for (uint32_t round = 1; round <= repeats(); round++) {
        uint64_t began = now();
        atomic_store_explicit(&memory->ping, round, memory_order_release);
        for (size_t i = 0; i < each; i++)
            atomic_fetch_add(&words->left_at, 1);
        until(&memory->pong, round);
        samples[round - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    report("word-add-contended", samples, repeats(), 2 * (double)each);
    free(samples);
}

static void send_words(shared *memory)
{
    for (uint32_t round = 1; round <= rounds / 4 + 1; round++) {
        until(&memory->ping, round);
        for (uint64_t began = now(); now() - began < 5000;) /* the other waits by now */
            ;
        atomic_store(&words->left_at, now());
        atomic_store_explicit(&memory->pong, round, memory_order_release);
    }
}

/* From the store of a word to its arrival at the process that waits for it, by the clock that both have. */
static void crossing(void)
{
    shared *memory = share(2);
    uint64_t *samples = calloc(rounds / 4 + 1, sizeof *samples);
    pid_t child = process(1, send_words, memory);
    for (uint32_t round = 1; round <= rounds / 4 + 1; round++) {
        atomic_store_explicit(&memory->ping, round, memory_order_release);
        until(&memory->pong, round);
        uint64_t got_at = now();
        samples[round - 1] = got_at - atomic_load(&words->left_at);
    }
    waitpid(child, NULL, 0);
    report("line-crossing", samples, rounds / 4 + 1, 1);
    free(samples);
}

/* A barrier of two: each is told its number and how many barriers there were. */
typedef void pass(shared *memory, int me, uint32_t round);

/* Arrivals are counted in one word, and the last tells by another. */
static void pass_counting(shared *memory, int me, uint32_t round)
{
    (void)me;
    if (atomic_fetch_add(&memory->ping, 1) + 1 == 2 * round)
        atomic_store(&memory->pong, round);
    until(&memory->pong, round);
}

/* Each stores in a word of its own and looks at the other's: nothing is fetched to be changed. */
static void pass_exchanging(shared *memory, int me, uint32_t round)
{
    _Atomic uint32_t *mine = me == 0 ? &memory->ping : &memory->pong, *theirs = me == 0 ? &memory->pong : &memory->ping;
    atomic_store_explicit(mine, round, memory_order_release);
    /* The other may be one barrier ahead already. */
    for (size_t tries = 0; atomic_load_explicit(theirs, memory_order_acquire) < round; tries++)
        if (tries % 4096 == 4095)
            sched_yield();
}

static uint32_t barriers(void)
{
    return (uint32_t)(rounds / BATCH + 2) * BATCH;
}

static void arrive_counting(shared *memory)
{
    for (uint32_t round = 1; round <= barriers(); round++)
        pass_counting(memory, 1, round);
}

static void arrive_exchanging(shared *memory)
{
    for (uint32_t round = 1; round <= barriers(); round++)
        pass_exchanging(memory, 1, round);
}

static void barrier(const char *name, pass *pass, void (*other)(shared *))
{
    shared *memory = share(2);
    size_t count = barriers() / BATCH;
    uint64_t *samples = calloc(count, sizeof *samples);
    pid_t child = process(1, other, memory);
    uint32_t round = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t began = now();
        for (size_t j = 0; j < BATCH; j++)
            pass(memory, 0, round++);
        samples[i] = now() - began;
    }
    waitpid(child, NULL, 0);
    report(name, samples, count, BATCH);
    free(samples);
}

void floors_of_words(void)
{
    words = mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        exit(1);
    memset(words, 0, sizeof *words);
    lock_after_other();
    lock_contended();
    add_contended();
    crossing();
    barrier("spin-barrier", pass_counting, arrive_counting);
    barrier("word-barrier", pass_exchanging, arrive_exchanging);
}
