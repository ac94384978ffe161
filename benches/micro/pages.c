/* Faults, releases and acquires, page by page; and long reads, in sequence and out of it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <stdio.h>

#include "../../apps/common/random.h"
#include "../../apps/common/report.h"

/* Stores a new value in the first word of each page. */
static void write_pages(uint64_t *pages, size_t count, uint64_t value)
{
    for (size_t page = 0; page < count; page++)
        page_of(pages, page)[0] = value;
}

/* Reads a word of pages that are so far apart. */
static void read_pages(uint64_t *pages, size_t count, size_t apart)
{
    for (size_t page = 0; page < count; page++)
        (void)*(volatile uint64_t *)page_of(pages, page * apart);
}

typedef enum access { READ, WRITE } access;

/* Process 0 touches every page once, never one beside another, for those would be fetched ahead; each touch is one sample. */
static void touch(bench *bench, samples *samples, uint64_t *pages, access access, uint64_t value)
{
    for (size_t page = 0; page < bench->extent.pages; page++) {
        volatile uint64_t *word = page_of(pages, page * 7 % bench->extent.pages);
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
        if (is_other(bench))
            write_pages(bench->far, bench->extent.pages, round);
        fsp_barrier_all();
        if (is_first(bench) && reads_first)
            read_pages(bench->far, bench->extent.pages, 1);
        if (is_first(bench) && counts(round)) {
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
    if (is_first(bench)) {
        samples *samples = samples_new(bench->extent.pages);
        fsp_phase_begin(name);
        touch(bench, samples, pages, access, 1);
        fsp_phase_end();
        samples_report(samples, name, 1);
    }
    fsp_barrier_all();
}

void case_read_miss(bench *bench)
{
    miss(bench, "read-miss", READ, false);
}

void case_write_upgrade(bench *bench)
{
    miss(bench, "write-upgrade", WRITE, true);
}

/* Rounds until a release knows that the pages are written again and again. */
#define SETTLE 3

/* Stores to pages that process 0 wrote in the interval before, too, and that the other node reads in each. */
static void rewrite(bench *bench, const char *name)
{
    samples *samples = samples_new(bench->extent.pages * bench->extent.rounds);
    for (size_t round = 0; round < bench->extent.rounds + SETTLE; round++) {
        if (is_first(bench) && round < SETTLE)
            write_pages(bench->far, bench->extent.pages, round);
        if (is_first(bench) && round >= SETTLE) {
            fsp_phase_begin(name);
            touch(bench, samples, bench->far, WRITE, round);
            fsp_phase_end();
        }
        fsp_barrier_all();
        if (is_other(bench))
            read_pages(bench->far, bench->extent.pages, 1);
        fsp_barrier_all();
    }
    samples_report(samples, name, 1);
}

void run_misses(bench *bench)
{
    /* The other node has its own pages in exclusive mode: the first fetch breaks it. */
    if (is_other(bench))
        write_pages(bench->far, bench->extent.pages, 1);
    first_touch(bench, "read-miss-first", bench->far, READ);
    first_touch(bench, "write-home-first", bench->near, WRITE);
    first_touch(bench, "read-home-first", page_of(bench->near, bench->extent.pages), READ);
    case_read_miss(bench);
    miss(bench, "write-miss", WRITE, false);
    case_write_upgrade(bench);
    rewrite(bench, "rewrite");
}

typedef enum pattern { ONE_WORD, ALTERNATE, WHOLE } pattern;

static void dirty(uint64_t *page, pattern pattern, uint64_t value)
{
    size_t step = pattern == ALTERNATE ? 2 : 1, words = pattern == ONE_WORD ? 1 : WORDS;
    /* An odd factor: all bytes of a word change. */
    for (size_t word = 0; word < words; word += step)
        page[word] = (value + word) * 0x9e3779b97f4a7c15u;
}

/* Processes that read what was released, so that nobody is alone with the page: the home, and further sharers. */
static bool looks(const bench *bench)
{
    return is_other(bench) || (size_t)bench->me < bench->sharers;
}

/* The unlock with so many dirty pages, each changed in this pattern; samples are of the whole release. */
static void release(bench *bench, const char *name, pattern pattern, size_t pages)
{
    samples *samples = samples_new(bench->extent.rounds);
    for (size_t round = 0; round <= bench->extent.rounds; round++) {
        if (is_first(bench)) {
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
        if (looks(bench))
            read_pages(bench->far, pages, 1);
        fsp_barrier_all();
    }
    samples_report(samples, name, pages > 0 ? pages : 1);
}

static void begin_releases(bench *bench)
{
    if (is_other(bench))
        write_pages(bench->far, bench->extent.most_dirty, 1);
    fsp_barrier_all();
    if (looks(bench))
        read_pages(bench->far, bench->extent.most_dirty, 1);
    fsp_barrier_all();
}

void case_release(bench *bench, const char *name, size_t pages)
{
    begin_releases(bench);
    release(bench, name, ONE_WORD, pages);
}

void run_releases(bench *bench)
{
    static const struct {
        const char *word;
        pattern pattern;
    } PATTERNS[] = {{"word", ONE_WORD}, {"alternate", ALTERNATE}, {"whole", WHOLE}};
    static const size_t SIZES[] = {1, 16, 256, 1024};
    begin_releases(bench);
    release(bench, "release-nothing", ONE_WORD, 0);
    for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++) {
        for (size_t j = 0; j < sizeof SIZES / sizeof *SIZES && SIZES[j] <= bench->extent.most_dirty; j++) {
            char name[32];
            snprintf(name, sizeof name, "release-%s-%zu", PATTERNS[i].word, SIZES[j]);
            release(bench, name, PATTERNS[i].pattern, SIZES[j]);
        }
    }
}

/* Locking a mutex that the other node gave back after it had written so many pages that process 0 maps, each so far from the
 * one before, those between them open or not. */
static void acquire(bench *bench, const char *name, size_t pages, size_t apart, bool among_open, size_t each)
{
    samples *samples = samples_new(bench->extent.rounds);
    for (size_t round = 0; round <= bench->extent.rounds; round++) {
        /* Twice: the first read may end an exclusive mode, whose owner then releases at the barrier. */
        for (int again = 0; again < 2; again++) {
            if (is_first(bench))
                read_pages(bench->far, among_open ? pages * apart : pages, among_open ? 1 : apart);
            fsp_barrier_all();
        }
        meet(); /* or process 0, late in the barrier, could acquire there what is written now */
        if (is_other(bench)) {
            fsp_mutex_lock(bench->mutexes);
            for (size_t page = 0; page < pages; page++)
                page_of(bench->far, page * apart)[0] = round;
            fsp_mutex_unlock(bench->mutexes);
        }
        meet();
        if (is_first(bench) && counts(round)) {
            fsp_phase_begin(name);
            uint64_t began = now();
            fsp_mutex_lock(bench->mutexes);
            sample(samples, now() - began);
            fsp_phase_end();
            fsp_mutex_unlock(bench->mutexes);
        }
        meet();
    }
    samples_report(samples, name, each);
}

void case_acquire(bench *bench, const char *name, size_t pages)
{
    acquire(bench, name, pages, 1, false, pages);
}

void run_acquires(bench *bench)
{
    size_t most = bench->extent.most_dirty, some = most < 64 ? most : 64;
    char name[48];
    acquire(bench, "acquire-0", 0, 1, false, 1);
    acquire(bench, "acquire-1", 1, 1, false, 1);
    snprintf(name, sizeof name, "acquire-%zu", some);
    acquire(bench, name, some, 1, false, 1);
    snprintf(name, sizeof name, "acquire-scattered-%zu", most / 16);
    acquire(bench, name, most / 16, 16, false, 1);
    snprintf(name, sizeof name, "acquire-among-open-%zu", most / 16);
    acquire(bench, name, most / 16, 16, true, 1);
    if (most > some) {
        snprintf(name, sizeof name, "acquire-%zu", most);
        acquire(bench, name, most, 1, false, 1);
    }
}

/* Intervals until an acquire fetches anew what is read in each, and goes on for 64 times (docs/running.md, --refresh). */
#define HABIT 72

/* One interval: the other node has written so many pages far from each other; process 0 locks the mutex, which is timed, and reads a
 * word of each, which is timed too in the case `reread`. */
static void reread_once(bench *bench, size_t pages, uint64_t value, const char *acquire, samples *acquires, const char *reread, samples *rereads)
{
    if (is_other(bench)) {
        fsp_mutex_lock(bench->mutexes);
        for (size_t page = 0; page < pages; page++)
            page_of(bench->far, page * 16)[0] = value;
        fsp_mutex_unlock(bench->mutexes);
    }
    meet();
    if (is_first(bench)) {
        const char *phase = acquires ? acquire : rereads ? reread : NULL;
        if (phase)
            fsp_phase_begin(phase);
        uint64_t began = now();
        fsp_mutex_lock(bench->mutexes);
        if (acquires) {
            sample(acquires, now() - began);
            fsp_phase_end();
        }
        read_pages(bench->far, pages, 16);
        if (rereads) {
            sample(rereads, now() - began);
            fsp_phase_end();
        }
        fsp_mutex_unlock(bench->mutexes);
    }
    meet();
}

/* The same pages in each interval, written by the other node and read by process 0. */
static void rereads(bench *bench, const char *acquire, const char *reread)
{
    size_t pages = bench->extent.most_dirty / 16, rounds = bench->extent.rounds;
    char names[2][48];
    snprintf(names[0], sizeof names[0], "%s-%zu", acquire ? acquire : "", pages);
    snprintf(names[1], sizeof names[1], "%s-%zu", reread, pages);
    samples *acquires = samples_new(rounds), *sums = samples_new(rounds);
    uint64_t value = 1;
    for (size_t round = 0; round < HABIT; round++)
        reread_once(bench, pages, value++, NULL, NULL, NULL, NULL);
    for (size_t round = 0; acquire && round < rounds; round++)
        reread_once(bench, pages, value++, names[0], acquires, NULL, NULL);
    for (size_t round = 0; round < rounds; round++)
        reread_once(bench, pages, value++, NULL, NULL, names[1], sums);
    if (acquire)
        samples_report(acquires, names[0], 1);
    samples_report(sums, names[1], 1);
}

/* With --refresh off: the acquire closes, and each page faults. */
void run_rereads(bench *bench)
{
    rereads(bench, NULL, "reread");
}

/* With --refresh adaptive: the acquire fetches. */
void run_refreshes(bench *bench)
{
    rereads(bench, "acquire-refresh", "reread-refresh");
}

/* Pages that another node wrote, read by process 0: a round's time is one sample, of so many operations. */
static void long_read(bench *bench, const char *name, uint64_t *data, size_t operations, uint64_t (*read)(struct bench *, uint64_t *))
{
    size_t pages = bench->extent.stream / PAGE, rounds = bench->extent.rounds / 4 + 1;
    samples *samples = samples_new(rounds);
    for (size_t round = 1; round <= rounds; round++) {
        if (is_other(bench))
            write_pages(data, pages, round);
        fsp_barrier_all();
        if (is_first(bench)) {
            fsp_phase_begin(name);
            uint64_t began = now(), sum = read(bench, data);
            sample(samples, now() - began);
            fsp_phase_end();
            if (sum % round != 0 || sum == 0)
                fsp_abort(1, "the pages have other values than were written");
        }
        fsp_barrier_all();
    }
    samples_report(samples, name, operations);
}

static uint64_t in_sequence(bench *bench, uint64_t *data)
{
    return sum_of_words(data, bench->extent.stream / sizeof *data);
}

/* One page in eight, none twice, in an order that nobody can foresee: what is fetched beside them is of no use. */
static size_t random_pages(const bench *bench)
{
    return bench->extent.stream / PAGE / 8;
}

static uint64_t at_random(bench *bench, uint64_t *data)
{
    static uint32_t order[1 << 14];
    size_t pages = bench->extent.stream / PAGE;
    uint64_t sum = 0;
    for (size_t i = 0; i < pages; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i < random_pages(bench); i++) {
        size_t j = i + random_at(1, 2, i) % (pages - i);
        uint32_t page = order[j];
        order[j] = order[i];
        sum += *page_of(data, page);
    }
    return sum;
}

/* Process 0 stores to page after page of memory that nobody has used: each array is one sample. */
static void fills(bench *bench)
{
    size_t arrays = bench->extent.rounds / 4 + 1, pages = bench->extent.stream / PAGE / arrays;
    samples *samples = samples_new(arrays);
    fsp_barrier_all();
    for (size_t array = 0; array < arrays && is_first(bench); array++) {
        uint64_t *data = fsp_malloc(pages * PAGE);
        fsp_phase_begin("fill-page");
        uint64_t began = now();
        write_pages(data, pages, 1);
        sample(samples, now() - began);
        fsp_phase_end();
    }
    fsp_barrier_all();
    samples_report(samples, "fill-page", pages);
}

void run_stream(bench *bench)
{
    uintptr_t *where = fsp_malloc_all(sizeof *where);
    if (is_first(bench))
        *where = (uintptr_t)fsp_malloc_on(bench->extent.stream, fsp_nodes() - 1);
    fsp_barrier_all();
    uint64_t *data = (uint64_t *)*where;
    long_read(bench, "stream-mib", data, bench->extent.stream >> 20, in_sequence);
    long_read(bench, "random-page", data, random_pages(bench), at_random);
    fills(bench);
}

/* Reads of process 0 at random in memory that the other node wrote, more of it than the caches and their tables hold; other pages in each round.
 * Both have these pages before, so that none is touched for the first time. */
static void random_misses(bench *bench, uint64_t *data)
{
    size_t pages = bench->extent.far, touches = pages / FAR_TOUCHED_EACH, rounds = bench->extent.rounds / 4 + 1;
    uint32_t *order = private_alloc("micro", pages / 2 * sizeof *order);
    samples *samples = samples_new(rounds * touches);
    shuffle(order, (uint32_t)pages / 2);
    if (is_other(bench))
        write_pages(data, pages, 1);
    fsp_barrier_all();
    /* Out of order, or the pages beside those that are measured would be fetched with them. */
    for (size_t touch = 0; touch < rounds * touches && is_first(bench); touch++)
        (void)*(volatile uint64_t *)page_of(data, order[touch]);
    fsp_barrier_all();
    for (size_t round = 0; round < rounds; round++) {
        const uint32_t *touched = order + round * touches;
        for (size_t touch = 0; touch < touches && is_other(bench); touch++)
            page_of(data, touched[touch])[0] = round + 2;
        fsp_barrier_all();
        if (is_first(bench)) {
            fsp_phase_begin("random-miss");
            for (size_t touch = 0; touch < touches; touch++) {
                uint64_t began = now();
                (void)*(volatile uint64_t *)page_of(data, touched[touch]);
                sample(samples, now() - began);
            }
            fsp_phase_end();
        }
        fsp_barrier_all();
    }
    free(order);
    samples_report(samples, "random-miss", 1);
}

void run_far(bench *bench)
{
    uintptr_t *where = fsp_malloc_all(sizeof *where);
    if (is_first(bench))
        *where = (uintptr_t)fsp_malloc_on(bench->extent.far * PAGE, fsp_nodes() - 1);
    fsp_barrier_all();
    random_misses(bench, (uint64_t *)*where);
}

/* The operations whose cost is drawn against nodes, processors, heap, dirty pages and sharers; under short names, and releases
 * and acquires for each page. */
void run_scale(bench *bench)
{
    size_t pages = bench->extent.most_dirty;
    case_read_miss(bench);
    case_write_upgrade(bench);
    case_release(bench, "release", pages);
    case_acquire(bench, "acquire", pages);
    case_lock_after_other(bench);
    case_barrier(bench, "barrier", 0);
}

/* Both nodes hold all pages, and process 0 changes them all before it releases: what the statistics then say of memory. */
void run_memory(bench *bench)
{
    begin_releases(bench);
    if (is_first(bench))
        write_pages(bench->far, bench->extent.most_dirty, 2);
    fsp_barrier_all();
}
