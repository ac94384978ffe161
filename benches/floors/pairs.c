/* What two processes, or eight, do to each other in memory that they share.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "floors.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

shared *share(unsigned processes)
{
    shared *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    pthread_barrierattr_t barrier;
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&memory->barrier, &barrier, processes);
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&memory->mutex, &mutex);
    return memory;
}

pid_t process(int number, void (*body)(shared *), shared *memory)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pin(number);
        body(memory);
        _exit(0);
    }
    return child;
}

void until(_Atomic uint32_t *word, uint32_t value)
{
    for (size_t tries = 0; atomic_load_explicit(word, memory_order_acquire) != value; tries++)
        if (tries % 4096 == 4095)
            sched_yield();
}

static void pong(shared *memory)
{
    for (uint32_t value = 1; value <= rounds; value++) {
        until(&memory->ping, value);
        atomic_store_explicit(&memory->pong, value, memory_order_release);
    }
}

static void pong_page(shared *memory)
{
    char page[PAGE] = {1};
    for (uint32_t value = 1; value <= rounds; value++) {
        until(&memory->ping, value);
        memcpy(memory->ring, page, PAGE);
        atomic_store_explicit(&memory->pong, value, memory_order_release);
    }
}

/* A word there and a word back through a cache line each; with a page beside the answer, the simplest ring. */
static void round_trip(const char *name, void (*answer)(shared *), bool with_page)
{
    shared *memory = share(2);
    static char page[PAGE];
    pid_t child = process(1, answer, memory);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (uint32_t value = 1; value <= rounds; value++) {
        uint64_t began = now();
        atomic_store_explicit(&memory->ping, value, memory_order_release);
        until(&memory->pong, value);
        if (with_page)
            memcpy(page, memory->ring, PAGE);
        samples[value - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    report(name, samples, rounds, 1);
    free(samples);
}

/* Lock and unlock of a mutex that is free; one pair a sample, and many. */
static void mutex(const char *name, size_t each)
{
    shared *memory = share(1);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        for (size_t j = 0; j < each; j++) {
            pthread_mutex_lock(&memory->mutex);
            pthread_mutex_unlock(&memory->mutex);
        }
        samples[i] = now() - began;
    }
    report(name, samples, rounds, (double)each);
    free(samples);
}

static void arrive(shared *memory)
{
    for (size_t i = 0; i < rounds / BATCH + 2; i++)
        for (size_t j = 0; j < BATCH; j++)
            pthread_barrier_wait(&memory->barrier);
}

static void barrier(const char *name, int processes)
{
    shared *memory = share((unsigned)processes);
    size_t count = rounds / BATCH + 2;
    uint64_t *samples = calloc(count, sizeof *samples);
    for (int number = 1; number < processes; number++)
        process(number, arrive, memory);
    for (size_t i = 0; i < count; i++) {
        uint64_t began = now();
        for (size_t j = 0; j < BATCH; j++)
            pthread_barrier_wait(&memory->barrier);
        samples[i] = now() - began;
    }
    while (wait(NULL) > 0)
        ;
    report(name, samples, count, BATCH);
    free(samples);
}

/* What a release has to do at least: compare each page with its twin, and copy what changed (here all of it) to a page that the
 * other core has read since; until the last store is there, for one page fits into the processor's buffer of stores. */
static void compare_and_copy(size_t pages)
{
    size_t bytes = pages * PAGE;
    char name[40];
    char *page = map(bytes, PROT_READ | PROT_WRITE), *twin = map(bytes, PROT_READ | PROT_WRITE);
    char *home = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(page, 1, bytes), memset(twin, 1, bytes), memset(home, 1, bytes);
    shared *memory = share(2);
    uint64_t samples[12];
    uint32_t count = rounds < 100 ? 2 : 12;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pin(1);
        for (uint32_t round = 1; round <= count; round++) {
            until(&memory->ping, round);
            for (size_t offset = 0; offset < bytes; offset += 64)
                (void)*(volatile char *)(home + offset);
            atomic_store_explicit(&memory->pong, round, memory_order_release);
        }
        _exit(0);
    }
    for (uint32_t round = 1; round <= count; round++) {
        /* The stores that made it dirty, and the other's look. */
        memset(page, (int)round, bytes);
        for (size_t each = 0; each < pages; each++)
            memcpy(twin + each * PAGE, page + each * PAGE, PAGE), page[each * PAGE + PAGE - 1]++;
        atomic_store_explicit(&memory->ping, round, memory_order_release);
        until(&memory->pong, round);
        uint64_t began = now();
        for (size_t each = 0; each < pages; each++)
            if (memcmp(page + each * PAGE, twin + each * PAGE, PAGE) != 0)
                memcpy(home + each * PAGE, page + each * PAGE, PAGE);
        atomic_thread_fence(memory_order_seq_cst);
        samples[round - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    snprintf(name, sizeof name, "compare-copy-%zu", pages);
    report(name, samples, count, (double)pages);
    munmap(page, bytes), munmap(twin, bytes), munmap(home, bytes);
}

void floors_of_pairs(void)
{
    for (size_t pages = 1; pages <= 1024 && pages <= rounds; pages *= pages == 256 ? 4 : 16)
        compare_and_copy(pages);
    round_trip("line-round-trip", pong, false);
    round_trip("ring-page", pong_page, true);
    mutex("pthread-mutex", 1);
    mutex("pthread-mutex-pair", BATCH);
    barrier("pthread-barrier", 2);
    barrier("pthread-barrier-8", 8);
}
