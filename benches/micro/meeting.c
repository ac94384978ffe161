/* Locks, flags and barriers.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <stdio.h>

static fsp_mutex_t *mutex_at(bench *bench, size_t number)
{
    return (fsp_mutex_t *)((char *)bench->mutexes + 64 * (number % MUTEXES));
}

/* Lock and unlock of a mutex that this processor had last. */
static void lock_again(bench *bench)
{
    if (is_first(bench)) {
        samples *samples = samples_new(bench->extent.pairs);
        fsp_phase_begin("lock-again");
        for (size_t pair = 0; pair < bench->extent.pairs; pair++) {
            uint64_t began = now();
            fsp_mutex_lock(bench->mutexes);
            fsp_mutex_unlock(bench->mutexes);
            sample(samples, now() - began);
        }
        fsp_phase_end();
        samples_report(samples, "lock-again", 1);
    }
    fsp_barrier_all();
}

/* The same without the clock's own time: many pairs a sample. */
static void lock_pair(bench *bench)
{
    if (is_first(bench)) {
        samples *samples = samples_new(bench->extent.pairs);
        fsp_phase_begin("lock-pair");
        for (size_t round = 0; round < bench->extent.pairs / BATCH + 2; round++) {
            uint64_t began = now();
            for (size_t pair = 0; pair < BATCH; pair++) {
                fsp_mutex_lock(bench->mutexes);
                fsp_mutex_unlock(bench->mutexes);
            }
            sample(samples, now() - began);
        }
        fsp_phase_end();
        samples_report(samples, "lock-pair", BATCH);
    }
    fsp_barrier_all();
}

/* The two halves apart, and without the clock's own time: many mutexes locked one after the other, then given back. */
static void relock(bench *bench)
{
    if (is_first(bench)) {
        samples *locks = samples_new(bench->extent.pairs), *unlocks = samples_new(bench->extent.pairs);
        for (size_t round = 0; round < bench->extent.pairs / BATCH + 2; round++) {
            fsp_phase_begin("relock");
            uint64_t began = now();
            for (size_t number = 0; number < BATCH; number++)
                fsp_mutex_lock(mutex_at(bench, number));
            uint64_t half = now();
            fsp_phase_end();
            fsp_phase_begin("reunlock");
            uint64_t again = now();
            for (size_t number = BATCH; number-- > 0;)
                fsp_mutex_unlock(mutex_at(bench, number));
            uint64_t ended = now();
            fsp_phase_end();
            sample(locks, half - began);
            sample(unlocks, ended - again);
        }
        samples_report(locks, "relock", BATCH);
        samples_report(unlocks, "reunlock", BATCH);
    }
    fsp_barrier_all();
}

/* Lock and unlock of a free mutex that the other node had last. */
void case_lock_after_other(bench *bench)
{
    samples *samples = samples_new(bench->extent.rounds * MUTEXES);
    for (size_t round = 0; round < bench->extent.rounds; round++) {
        if (is_other(bench))
            for (size_t number = 0; number < MUTEXES; number++) {
                fsp_mutex_lock(mutex_at(bench, number));
                fsp_mutex_unlock(mutex_at(bench, number));
            }
        meet();
        if (is_first(bench)) {
            fsp_phase_begin("lock-after-other");
            for (size_t number = 0; number < MUTEXES; number++) {
                uint64_t began = now();
                fsp_mutex_lock(mutex_at(bench, number));
                fsp_mutex_unlock(mutex_at(bench, number));
                sample(samples, now() - began);
            }
            fsp_phase_end();
        }
        meet();
    }
    samples_report(samples, "lock-after-other", 1);
}

/* All processes lock and unlock one mutex as fast as they can, with nothing shared inside: time for one acquisition. */
static void lock_contended(bench *bench)
{
    samples *samples = samples_new(bench->extent.rounds);
    size_t each = bench->extent.pairs / 4 + 1, all = each * (size_t)fsp_processes();
    for (size_t round = 0; round < bench->extent.rounds; round++) {
        meet();
        uint64_t began = now();
        fsp_phase_begin("lock-contended");
        for (size_t pair = 0; pair < each; pair++) {
            fsp_mutex_lock(bench->mutexes);
            fsp_mutex_unlock(bench->mutexes);
        }
        fsp_phase_end();
        meet();
        if (is_first(bench))
            sample(samples, now() - began);
    }
    samples_report(samples, "lock-contended", all);
}

static void pass_time(uint64_t nanoseconds)
{
    uint64_t began = now();
    while (now() - began < nanoseconds)
        ;
}

/* From the other node's unlock to the end of process 0's lock, which waits already; counts are of the unlock alone. */
static void lock_hand_off(bench *bench)
{
    size_t rounds = bench->extent.pairs / 4 + 1;
    samples *samples = samples_new(rounds);
    messages *messages = the_messages();
    for (size_t round = 1; round <= rounds; round++) {
        if (is_other(bench))
            fsp_mutex_lock(bench->mutexes);
        meet();
        if (is_first(bench)) {
            atomic_store(&messages->wants, round);
            fsp_mutex_lock(bench->mutexes);
            uint64_t got_at = now();
            sample(samples, got_at - atomic_load(&messages->left_at));
            fsp_mutex_unlock(bench->mutexes);
        }
        if (is_other(bench)) {
            while (atomic_load(&messages->wants) != round)
                sched_yield();
            pass_time(5000); /* until it stands in the queue */
            fsp_phase_begin("lock-hand-off");
            atomic_store(&messages->left_at, now());
            fsp_mutex_unlock(bench->mutexes);
            fsp_phase_end();
        }
        meet();
    }
    samples_report(samples, "lock-hand-off", 1);
}

/* There and back through two flags that only grow. */
static void flag_round_trip(bench *bench)
{
    samples *samples = samples_new(bench->extent.pairs);
    meet();
    if (is_first(bench) || is_other(bench)) {
        fsp_phase_begin("flag-round-trip");
        for (uint32_t value = 1; value <= bench->extent.pairs; value++) {
            uint64_t began = now();
            if (is_other(bench))
                fsp_flag_wait(&bench->flags[0], value);
            fsp_flag_set(&bench->flags[is_other(bench)], value);
            if (!is_other(bench)) {
                fsp_flag_wait(&bench->flags[1], value);
                sample(samples, now() - began);
            }
        }
        fsp_phase_end();
    }
    fsp_barrier_all();
    samples_report(samples, "flag-round-trip", 1);
}

void run_locks(bench *bench)
{
    lock_again(bench);
    lock_pair(bench);
    relock(bench);
    case_lock_after_other(bench);
    lock_contended(bench);
    lock_hand_off(bench);
    case_counters(bench);
    flag_round_trip(bench);
}

/* Barriers with nothing to release, many a sample: who arrives last passes at once, so one alone would say little. */
static void bare_barriers(bench *bench, const char *name)
{
    size_t rounds = bench->extent.pairs / BATCH + 2;
    samples *samples = samples_new(rounds);
    meet();
    fsp_barrier_all();
    fsp_phase_begin(name);
    for (size_t round = 0; round < rounds; round++) {
        uint64_t began = now();
        for (size_t i = 0; i < BATCH; i++)
            fsp_barrier_all();
        sample(samples, now() - began);
    }
    fsp_phase_end();
    meet();
    if (is_first(bench))
        samples_report(samples, name, BATCH);
    else
        free(samples);
}

/* The barrier of all, entered together, after two processes changed a word in so many pages homed at the other's node. */
static void dirty_barriers(bench *bench, const char *name, size_t pages)
{
    uint64_t *mine = is_first(bench) ? bench->far : bench->near;
    uint64_t *theirs = is_first(bench) ? bench->near : bench->far;
    bool takes_part = is_first(bench) || is_other(bench);
    samples *samples = samples_new(bench->extent.rounds);
    for (size_t round = 0; round <= bench->extent.rounds; round++) {
        for (size_t page = 0; takes_part && page < pages; page++) {
            /* The home reads what the other wrote, so that nobody is alone with a page. */
            (void)*(volatile uint64_t *)page_of(theirs, page);
            page_of(mine, page)[bench->me] = round;
        }
        meet();
        if (round == 0) {
            fsp_barrier_all(); /* not counted: only now are the pages shared */
            continue;
        }
        fsp_phase_begin(name);
        uint64_t began = now();
        fsp_barrier_all();
        if (is_first(bench))
            sample(samples, now() - began);
        fsp_phase_end();
    }
    samples_report(samples, name, 1);
}

void case_barrier(bench *bench, const char *name, size_t pages)
{
    if (pages == 0)
        bare_barriers(bench, name);
    else
        dirty_barriers(bench, name, pages);
}

void run_barriers(bench *bench)
{
    size_t most = bench->extent.most_dirty, some = most < 64 ? most : 64;
    char name[32];
    case_barrier(bench, "barrier-0", 0);
    case_barrier(bench, "barrier-1", 1);
    snprintf(name, sizeof name, "barrier-%zu", some);
    case_barrier(bench, name, some);
    if (most > some) {
        snprintf(name, sizeof name, "barrier-%zu", most);
        case_barrier(bench, name, most);
    }
}

/* Run with four processes a core. */
void run_crowd(bench *bench)
{
    case_barrier(bench, "barrier-crowd", 0);
}
