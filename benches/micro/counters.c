/* What programs make of atomic operations: a counter that all raise, beside one under a mutex, and a barrier in a loop. The
 * operations are those that fspcc --pthread makes of gcc's.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <finespun/program.h>

/* The counter stands behind the first mutex, in a line of its own; the barrier's words behind the next. */
static uint64_t *word_at(bench *bench, size_t line)
{
    return (uint64_t *)((char *)bench->mutexes + 64 * (size_t)MUTEXES + 64 * line);
}

static fsp_operated raise_by(volatile void *word, void *amount)
{
    volatile uint64_t *counter = word;
    uint64_t before = *counter, *more = amount;
    *counter = before + *more;
    *more = before;
    return (fsp_operated){ 1, before };
}

static fsp_operated load(volatile void *word, void *result)
{
    uint64_t found = *(volatile uint64_t *)word;
    *(uint64_t *)result = found;
    return (fsp_operated){ 0, found };
}

static uint64_t fetch_add(uint64_t *word, uint64_t amount)
{
    if (!fsp_program_atomic(word, FSP_BY_INSTRUCTION, raise_by, &amount))
        return __atomic_fetch_add(word, amount, __ATOMIC_SEQ_CST);
    return amount;
}

static uint64_t load_of(uint64_t *word)
{
    uint64_t found;
    return fsp_program_atomic(word, FSP_LOAD, load, &found) ? found : __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void by_atomic(bench *bench)
{
    fetch_add(word_at(bench, 0), 1);
}

static void by_mutex(bench *bench)
{
    fsp_mutex_lock(bench->mutexes);
    ++*word_at(bench, 1);
    fsp_mutex_unlock(bench->mutexes);
}

/* All processes raise it as fast as they can: time for one. */
static void counter(bench *bench, const char *name, void (*raise)(struct bench *))
{
    samples *samples = samples_new(bench->extent.rounds);
    size_t each = bench->extent.pairs / 16 + 1, all = each * (size_t)fsp_processes();
    for (size_t round = 0; round < bench->extent.rounds; round++) {
        meet();
        uint64_t began = now();
        fsp_phase_begin(name);
        for (size_t i = 0; i < each; i++)
            raise(bench);
        fsp_phase_end();
        meet();
        if (is_first(bench))
            sample(samples, now() - began);
    }
    samples_report(samples, name, all);
}

/* Arrivals are counted, and all wait in a loop for the last one of the round. */
static void spin_barrier(bench *bench)
{
    size_t rounds = bench->extent.pairs / BATCH + 2;
    samples *samples = samples_new(rounds);
    uint64_t all = (uint64_t)fsp_processes(), arrivals = 0;
    meet();
    for (size_t round = 0; round < rounds; round++) {
        uint64_t began = now();
        fsp_phase_begin("atomic-barrier");
        for (size_t i = 0; i < BATCH; i++) {
            arrivals += all;
            fetch_add(word_at(bench, 2), 1);
            while (load_of(word_at(bench, 2)) < arrivals)
                ;
        }
        fsp_phase_end();
        if (is_first(bench))
            sample(samples, now() - began);
    }
    meet();
    samples_report(samples, "atomic-barrier", BATCH);
}

void case_counters(bench *bench)
{
    counter(bench, "counter-mutex", by_mutex);
    counter(bench, "counter-atomic", by_atomic);
    spin_barrier(bench);
}
