/* Locks, flags and barriers.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <stdio.h>

static fsp_mutex_t *mutex_at(bench *bench, size_t number)
{
    return (fsp_mutex_t *)((char *)bench->mutexes + 64 * (number % 64));
}

/* Lock and unlock of a mutex that this processor had last. */
static void lock_again(bench *bench)
{
    if (bench->me == 0) {
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

/* Lock and unlock of a free mutex that the other node had last. */
static void lock_after_other(bench *bench)
{
    samples *samples = samples_new(bench->extent.rounds * 64);
    for (size_t round = 0; round < bench->extent.rounds; round++) {
        if (bench->me == fsp_processes() - 1)
            for (size_t number = 0; number < 64; number++) {
                fsp_mutex_lock(mutex_at(bench, number));
                fsp_mutex_unlock(mutex_at(bench, number));
            }
        meet();
        if (bench->me == 0) {
            fsp_phase_begin("lock-after-other");
            for (size_t number = 0; number < 64; number++) {
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
        if (bench->me == 0)
            sample(samples, now() - began);
    }
    samples_report(samples, "lock-contended", all);
}

/* There and back through two flags that only grow. */
static void flag_round_trip(bench *bench)
{
    samples *samples = samples_new(bench->extent.pairs);
    bool is_other = bench->me == fsp_processes() - 1;
    meet();
    if (bench->me == 0 || is_other) {
        fsp_phase_begin("flag-round-trip");
        for (uint32_t value = 1; value <= bench->extent.pairs; value++) {
            uint64_t began = now();
            if (is_other)
                fsp_flag_wait(&bench->flags[0], value);
            fsp_flag_set(&bench->flags[is_other], value);
            if (!is_other)
                fsp_flag_wait(&bench->flags[1], value);
            if (!is_other)
                sample(samples, now() - began);
        }
        fsp_phase_end();
    }
    fsp_barrier_all();
    samples_report(samples, "flag-round-trip", 1);
}

void run_locks(bench *bench)
{
    lock_again(bench);
    lock_after_other(bench);
    lock_contended(bench);
    flag_round_trip(bench);
}

/* The barrier of all, entered together, after every process changed a word in so many pages homed elsewhere. */
static void barrier(bench *bench, size_t pages)
{
    char name[32];
    snprintf(name, sizeof name, "barrier-%zu", pages);
    size_t rounds = pages == 0 ? bench->extent.pairs : bench->extent.rounds;
    uint64_t *mine = bench->me == 0 ? bench->far : bench->near;
    uint64_t *theirs = bench->me == 0 ? bench->near : bench->far;
    bool takes_part = bench->me == 0 || bench->me == fsp_processes() - 1;
    samples *samples = samples_new(rounds);
    for (size_t round = 0; round <= rounds; round++) {
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
        if (bench->me == 0)
            sample(samples, now() - began);
        fsp_phase_end();
    }
    samples_report(samples, name, 1);
}

void run_barriers(bench *bench)
{
    barrier(bench, 0);
    barrier(bench, 1);
    barrier(bench, bench->extent.most_dirty < 64 ? bench->extent.most_dirty : 64);
    if (bench->extent.most_dirty > 64)
        barrier(bench, bench->extent.most_dirty);
}
