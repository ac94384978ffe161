/* A table of accounts under rwlocks: readers add up a region and find the sum that no transfer changes, writers move amounts
 * inside a region, and now and then the table grows to twice its size under the lock of the whole.  Every thread keeps
 * a journal under a key, made at its first use; a barrier starts all at once.
 *
 * An ordinary pthread program: `cc -pthread table.c` and `fspcc --pthread table.c` build it from the same source.
 *   table [-o OPERATIONS OF EACH THREAD] [-t THREADS] [-s SEED]
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGIONS = 6, ACCOUNTS = 96, AMOUNT = 1000, THREADS_MAX = 64 };

typedef struct region {
    pthread_rwlock_t lock;
    long accounts[ACCOUNTS];
    unsigned long transfers;
} region;

/* `whole` is held to read while regions are used, and to write while the table grows. */
static pthread_rwlock_t whole = PTHREAD_RWLOCK_INITIALIZER;
static region **regions;
static unsigned region_count = REGIONS;

static unsigned operations = 300, threads = 4, seed = 1;
static pthread_barrier_t start;

/* A thread's journal, added to the table's own when the thread ends. */
typedef struct journal {
    unsigned long reads, transfers, growths;
} journal;

static pthread_key_t own_journal;
static pthread_once_t journals = PTHREAD_ONCE_INIT;
static pthread_mutex_t total_lock;
static journal total;
static unsigned wrong;

static void fail(const char *what)
{
    fprintf(stderr, "table: %s failed\n", what);
    exit(1);
}

static void close_journal(void *closed)
{
    journal *mine = closed;
    pthread_mutex_lock(&total_lock);
    total.reads += mine->reads;
    total.transfers += mine->transfers;
    total.growths += mine->growths;
    pthread_mutex_unlock(&total_lock);
    free(mine);
}

static void open_journals(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&total_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    if (pthread_key_create(&own_journal, close_journal)) fail("pthread_key_create");
}

static journal *my_journal(void)
{
    pthread_once(&journals, open_journals);
    journal *mine = pthread_getspecific(own_journal);
    if (!mine) {
        mine = calloc(1, sizeof *mine);
        if (!mine || pthread_setspecific(own_journal, mine)) fail("a journal");
    }
    return mine;
}

static region *new_region(void)
{
    region *new = calloc(1, sizeof *new);
    if (!new || pthread_rwlock_init(&new->lock, NULL)) fail("a region");
    for (unsigned i = 0; i < ACCOUNTS; i++) new->accounts[i] = AMOUNT;
    return new;
}

/* Locks for reading once more inside, as functions that do not know of each other do. */
static long sum_of(region *region)
{
    long sum = 0;
    pthread_rwlock_rdlock(&region->lock);
    for (unsigned i = 0; i < ACCOUNTS; i++) sum += region->accounts[i];
    pthread_rwlock_unlock(&region->lock);
    return sum;
}

static void look(region *region)
{
    pthread_rwlock_rdlock(&region->lock);
    if (sum_of(region) != (long)ACCOUNTS * AMOUNT) {
        pthread_mutex_lock(&total_lock);
        wrong++;
        pthread_mutex_unlock(&total_lock);
    }
    pthread_rwlock_unlock(&region->lock);
    my_journal()->reads++;
}

static void transfer(region *region, unsigned from, unsigned to, long amount)
{
    if (pthread_rwlock_trywrlock(&region->lock)) pthread_rwlock_wrlock(&region->lock);
    region->accounts[from] -= amount;
    region->accounts[to] += amount;
    region->transfers++;
    pthread_rwlock_unlock(&region->lock);
    my_journal()->transfers++;
}

static void grow(void)
{
    pthread_rwlock_wrlock(&whole);
    if (region_count < 4 * REGIONS) {
        region **grown = malloc(2 * region_count * sizeof *grown);
        if (!grown) fail("malloc");
        memcpy(grown, regions, region_count * sizeof *grown);
        for (unsigned i = region_count; i < 2 * region_count; i++) grown[i] = new_region();
        free(regions);
        regions = grown;
        region_count *= 2;
        my_journal()->growths++;
    }
    pthread_rwlock_unlock(&whole);
}

static void *use(void *number)
{
    unsigned random = seed * 2654435761u + (unsigned)(uintptr_t)number * 40503u;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < operations; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned draw = random >> 12;
        if (draw % 128 == 0) {
            grow();
            continue;
        }
        pthread_rwlock_rdlock(&whole);
        region *region = regions[draw / 128 % region_count];
        if (draw % 4 == 0) transfer(region, draw % ACCOUNTS, draw / 7 % ACCOUNTS, (long)(draw % 50));
        else look(region);
        pthread_rwlock_unlock(&whole);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    for (int flag; (flag = getopt(argc, argv, "o:t:s:")) != -1;) {
        if (flag == 'o') operations = (unsigned)atoi(optarg);
        else if (flag == 't') threads = (unsigned)atoi(optarg);
        else if (flag == 's') seed = (unsigned)atol(optarg);
        else return 2;
    }
    if (operations < 1 || threads < 1 || threads > THREADS_MAX) return 2;
    regions = malloc(REGIONS * sizeof *regions);
    if (!regions) fail("malloc");
    for (unsigned i = 0; i < REGIONS; i++) regions[i] = new_region();
    if (pthread_barrier_init(&start, NULL, threads)) fail("pthread_barrier_init");
    pthread_once(&journals, open_journals);

    pthread_t running[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&running[i], NULL, use, (void *)(uintptr_t)i)) fail("pthread_create");
    for (unsigned i = 0; i < threads; i++)
        if (pthread_join(running[i], NULL)) fail("pthread_join");

    unsigned long transfers = 0, refused = 0;
    for (unsigned i = 0; i < region_count; i++) {
        transfers += regions[i]->transfers;
        if (sum_of(regions[i]) != (long)ACCOUNTS * AMOUNT) wrong++;
        free(regions[i]);
    }
    free(regions);
    for (unsigned i = 0; i < threads; i++) {
        unsigned random = seed * 2654435761u + i * 40503u;
        for (unsigned j = 0; j < operations; j++) {
            random = random * 1664525u + 1013904223u;
            refused += (random >> 12) % 128 == 0;
        }
    }
    printf("table: %u regions, %lu operations\n", region_count, total.reads + total.transfers + refused);
    if (wrong || transfers != total.transfers || total.reads + total.transfers + refused != (unsigned long)threads * operations
        || region_count != (unsigned)REGIONS << total.growths) {
        printf("table: WRONG: %u wrong sums, %lu transfers of %lu, %lu growths\n", wrong, transfers, total.transfers, total.growths);
        return 1;
    }
    puts("table: verified");
    return 0;
}
