/* Faults, releases and acquires, page by page; and a long sequential read.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <stdio.h>

/* Stores a new value in the first word of each page. */
static void write_pages(uint64_t *pages, size_t count, uint64_t value)
{
    for (size_t page = 0; page < count; page++)
        page_of(pages, page)[0] = value;
}

static uint64_t read_pages(uint64_t *pages, size_t count)
{
    uint64_t sum = 0;
    for (size_t page = 0; page < count; page++)
        sum += *(volatile uint64_t *)page_of(pages, page);
    return sum;
}

typedef enum access { READ, WRITE } access;

/* Process 0 touches every page once; each touch is one sample. */
static void touch(bench *bench, samples *samples, uint64_t *pages, access access, uint64_t value)
{
    for (size_t page = 0; page < bench->extent.pages; page++) {
        volatile uint64_t *word = page_of(pages, page);
        uint64_t began = now();
        if (access == READ)
            (void)*word;
        else
            word[1] = value;
        sample(samples, now() - began);
    }
}

/* The first round of a case only brings pages into the state that the others repeat: it is not counted. */
static bool counts(size_t round)
{
    return round > 0;
}

/* One case: in each round the other node writes (and so makes process 0's copy invalid at its next acquire), process 0 may
 * read first, and then touches. */
static void miss(bench *bench, const char *name, access access, bool reads_first)
{
    samples *samples = samples_new(bench->extent.pages * bench->extent.rounds);
    for (size_t round = 0; round <= bench->extent.rounds; round++) {
        if (bench->me == fsp_processes() - 1)
            write_pages(bench->far, bench->extent.pages, round);
        fsp_barrier_all();
        if (bench->me == 0 && reads_first)
            read_pages(bench->far, bench->extent.pages);
        if (bench->me == 0 && counts(round)) {
            fsp_phase_begin(name);
            touch(bench, samples, bench->far, access, round);
            fsp_phase_end();
        }
        fsp_barrier_all();
    }
    samples_report(samples, name, 1);
}

static void first_touch(bench *bench, const char *name, uint64_t *pages, access access)
{
    fsp_barrier_all();
    if (bench->me == 0) {
        samples *samples = samples_new(bench->extent.pages);
        fsp_phase_begin(name);
        touch(bench, samples, pages, access, 1);
        fsp_phase_end();
        samples_report(samples, name, 1);
    }
    fsp_barrier_all();
}

void run_misses(bench *bench)
{
    /* The other node has its own pages in exclusive mode: the first fetch breaks it. */
    if (bench->me == fsp_processes() - 1)
        write_pages(bench->far, bench->extent.pages, 1);
    first_touch(bench, "read-miss-first", bench->far, READ);
    first_touch(bench, "write-home-first", bench->near, WRITE);
    miss(bench, "read-miss", READ, false);
    miss(bench, "write-miss", WRITE, false);
    miss(bench, "write-upgrade", WRITE, true);
}

typedef enum pattern { ONE_WORD, ALTERNATE, WHOLE } pattern;

static void dirty(uint64_t *page, pattern pattern, uint64_t value)
{
    size_t step = pattern == ALTERNATE ? 2 : 1, words = pattern == ONE_WORD ? 1 : WORDS;
    /* An odd factor: all bytes of a word change. */
    for (size_t word = 0; word < words; word += step)
        page[word] = (value + word) * 0x9e3779b97f4a7c15u;
}

/* The unlock with so many dirty pages, each changed in this pattern; samples are of the whole release. */
static void release(bench *bench, const char *word, pattern pattern, size_t pages)
{
    char name[32];
    snprintf(name, sizeof name, "release-%s-%zu", word, pages);
    samples *samples = samples_new(bench->extent.rounds);
    for (size_t round = 0; round <= bench->extent.rounds; round++) {
        if (bench->me == 0) {
            fsp_mutex_lock(bench->mutexes);
            for (size_t page = 0; page < pages; page++)
                dirty(page_of(bench->far, page), pattern, round);
            if (!counts(round)) {
                fsp_mutex_unlock(bench->mutexes);
            } else {
                fsp_phase_begin(name);
                uint64_t began = now();
                fsp_mutex_unlock(bench->mutexes);
                sample(samples, now() - began);
                fsp_phase_end();
            }
        }
        fsp_barrier_all();
        /* The home looks, so that nobody is alone with the page. */
        read_pages(bench->far, pages);
        fsp_barrier_all();
    }
    samples_report(samples, name, pages > 0 ? pages : 1);
}

void run_releases(bench *bench)
{
    static const struct {
        const char *word;
        pattern pattern;
    } PATTERNS[] = {{"word", ONE_WORD}, {"alternate", ALTERNATE}, {"whole", WHOLE}};
    if (bench->me == fsp_processes() - 1)
        write_pages(bench->far, bench->extent.most_dirty, 1);
    fsp_barrier_all();
    read_pages(bench->far, bench->extent.most_dirty);
    release(bench, "nothing", ONE_WORD, 0);
    for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++)
        for (size_t pages = 1; pages <= bench->extent.most_dirty; pages *= 16)
            release(bench, PATTERNS[i].word, PATTERNS[i].pattern, pages);
    for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++)
        if (bench->extent.most_dirty == 1024)
            release(bench, PATTERNS[i].word, PATTERNS[i].pattern, 1024);
}

/* Locking a mutex that the other node gave back after it had written so many pages that process 0 maps. */
static void acquire(bench *bench, size_t pages)
{
    char name[32];
    snprintf(name, sizeof name, "acquire-%zu", pages);
    samples *samples = samples_new(bench->extent.rounds);
    for (size_t round = 0; round <= bench->extent.rounds; round++) {
        /* Twice: the first read may end an exclusive mode, whose owner then releases at the barrier. */
        for (int again = 0; again < 2; again++) {
            if (bench->me == 0)
                read_pages(bench->far, pages);
            fsp_barrier_all();
        }
        if (bench->me == fsp_processes() - 1) {
            fsp_mutex_lock(bench->mutexes);
            write_pages(bench->far, pages, round);
            fsp_mutex_unlock(bench->mutexes);
        }
        meet();
        if (bench->me == 0 && counts(round)) {
            fsp_phase_begin(name);
            uint64_t began = now();
            fsp_mutex_lock(bench->mutexes);
            sample(samples, now() - began);
            fsp_phase_end();
            fsp_mutex_unlock(bench->mutexes);
        }
        meet();
    }
    samples_report(samples, name, 1);
}

void run_acquires(bench *bench)
{
    acquire(bench, 0);
    acquire(bench, 1);
    acquire(bench, bench->extent.most_dirty < 64 ? bench->extent.most_dirty : 64);
    if (bench->extent.most_dirty > 64)
        acquire(bench, bench->extent.most_dirty);
}

/* Nanoseconds to read a MiB that another node wrote. */
void run_stream(bench *bench)
{
    size_t bytes = bench->extent.stream, pages = bytes / PAGE, rounds = bench->extent.rounds / 4 + 1;
    uintptr_t *where = fsp_malloc_all(sizeof *where);
    if (bench->me == 0)
        *where = (uintptr_t)fsp_malloc_on(bytes, fsp_nodes() - 1);
    fsp_barrier_all();
    uint64_t *data = (uint64_t *)*where;
    samples *samples = samples_new(rounds);
    for (size_t round = 1; round <= rounds; round++) {
        if (bench->me == fsp_processes() - 1)
            write_pages(data, pages, round);
        fsp_barrier_all();
        if (bench->me == 0) {
            uint64_t sum = 0, began = now();
            fsp_phase_begin("stream-mib");
            for (size_t word = 0; word < bytes / sizeof(uint64_t); word++)
                sum += data[word];
            fsp_phase_end();
            sample(samples, now() - began);
            if (sum != round * pages)
                fsp_abort(1, "the stream has other values than were written");
        }
        fsp_barrier_all();
    }
    samples_report(samples, "stream-mib", bytes >> 20);
}
