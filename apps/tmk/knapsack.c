/* The knapsack problem by branch and bound, written for TreadMarks: a pool of open decisions under lock POOL, where a
 * process without work waits for a condition; the best value so far under lock BEST; and how many decisions were looked
 * at for each depth, added up under a lock of each depth.  Which decisions are looked at differs from run to run; the
 * best value does not.  It is verified by dynamic programming.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <Tmk.h>
#include <string.h>

#include "program.h"

enum { ITEMS_MAX = 60, POOL_MAX = 4096, POOL = 0, BEST = 1, DEPTH = 2 /* and those behind it */, CHANGED = 0 };

typedef struct { int weight, value; } item;
typedef struct { int depth, room, value; } decision; /* the first `depth` items are decided */

typedef struct {
    int count;   /* open decisions in the pool */
    int working; /* processes that look at one */
    decision pool[POOL_MAX];
    long best;
    long looked_at[ITEMS_MAX + 1];
} state;

static item *items; /* by value per weight, falling */
static state *shared;
static int count, room; /* process 0's are everybody's */

static uint64_t jitter;

/* Is the value of the first item for its weight higher? */
static int compare(const void *left, const void *right)
{
    const item *a = left, *b = right;
    int order = b->value * a->weight - a->value * b->weight;
    return order ? order : a->weight - b->weight;
}

static void make_items(item *made, int number_of, uint64_t seed)
{
    for (int i = 0; i < number_of; i++) {
        made[i].weight = 10 + (int)draw(&seed, 90);
        made[i].value = made[i].weight + 10 + (int)draw(&seed, 4);
    }
    qsort(made, (size_t)number_of, sizeof *made, compare);
}

/* What can at most become of it: the next items as long as there is room, and a part of the one that does not fit. */
static long bound(const decision *open)
{
    long value = open->value;
    int left = open->room;
    for (int i = open->depth; i < count; i++) {
        if (items[i].weight > left)
            return value + (long)left * items[i].value / items[i].weight;
        left -= items[i].weight;
        value += items[i].value;
    }
    return value;
}

static void improve(long value)
{
    dawdle(&jitter);
    Tmk_lock_acquire(BEST);
    if (value > shared->best)
        shared->best = value;
    Tmk_lock_release(BEST);
}

/* The best value; it may have grown meanwhile, which costs some looking in vain. */
static long best(void)
{
    Tmk_lock_acquire(BEST);
    long value = shared->best;
    Tmk_lock_release(BEST);
    return value;
}

/* Decides all that is left, alone. */
static void finish(decision open, long *known, long *looked_at)
{
    looked_at[open.depth]++;
    if (open.value > *known) {
        improve(open.value);
        *known = open.value;
    }
    if (open.depth == count || bound(&open) <= *known)
        return;
    const item *next = &items[open.depth];
    decision without = {open.depth + 1, open.room, open.value};
    if (next->weight <= open.room)
        finish((decision){open.depth + 1, open.room - next->weight, open.value + next->value}, known, looked_at);
    finish(without, known, looked_at);
}

/* Takes a decision from the pool; 0 when there will be none any more. */
static int take(decision *open)
{
    dawdle(&jitter);
    Tmk_lock_acquire(POOL);
    while (shared->count == 0 && shared->working > 0)
        Tmk_lock_cond_wait(POOL, CHANGED);
    int found = shared->count > 0;
    if (found) {
        *open = shared->pool[--shared->count];
        shared->working++;
    } else {
        Tmk_lock_cond_broadcast(POOL, CHANGED); /* the others will find none either */
    }
    Tmk_lock_release(POOL);
    return found;
}

/* Puts what came of a decision into the pool. */
static void put(const decision *open, int number_of)
{
    dawdle(&jitter);
    Tmk_lock_acquire(POOL);
    for (int i = 0; i < number_of; i++) {
        if (shared->count == POOL_MAX)
            Tmk_errexit("knapsack: the pool is full\n");
        shared->pool[shared->count++] = open[i];
        Tmk_lock_cond_signal(POOL, CHANGED);
    }
    shared->working--;
    if (shared->count == 0 && shared->working == 0)
        Tmk_lock_cond_broadcast(POOL, CHANGED);
    Tmk_lock_release(POOL);
}

static void work(int depth_alone)
{
    long looked_at[ITEMS_MAX + 1] = {0};
    decision open;
    while (take(&open)) {
        decision next[2];
        int found = 0;
        long known = best();
        if (open.depth >= depth_alone) {
            finish(open, &known, looked_at);
        } else {
            looked_at[open.depth]++;
            const item *item = &items[open.depth];
            next[found++] = (decision){open.depth + 1, open.room, open.value};
            if (item->weight <= open.room)
                next[found++] = (decision){open.depth + 1, open.room - item->weight, open.value + item->value};
        }
        put(next, found);
    }
    for (int depth = 0; depth <= count; depth++) {
        if (looked_at[depth] == 0)
            continue;
        Tmk_lock_acquire(DEPTH + (unsigned)depth);
        shared->looked_at[depth] += looked_at[depth];
        Tmk_lock_release(DEPTH + (unsigned)depth);
    }
}

/* The answer by another method. */
static long by_tables(void)
{
    long *most = calloc((size_t)room + 1, sizeof *most);
    for (int i = 0; i < count; i++)
        for (int left = room; left >= items[i].weight; left--)
            if (most[left - items[i].weight] + items[i].value > most[left])
                most[left] = most[left - items[i].weight] + items[i].value;
    long value = most[room];
    free(most);
    return value;
}

int main(int argc, char **argv)
{
    int verify = 0, depth_alone = 6, option;
    uint64_t seed = 1;
    count = 32;
    while ((option = getopt(argc, argv, "s:d:r:j:v")) != -1)
        switch (option) {
        case 's': count = (int)number(optarg, 1, ITEMS_MAX, "-s, items"); break;
        case 'd': depth_alone = (int)number(optarg, 0, 10, "-d, decisions that go through the pool"); break;
        case 'r': seed = (uint64_t)number(optarg, 0, 1000000, "-r, which items"); break;
        case 'j': jitter = (uint64_t)number(optarg, 0, 1000000, "-j, how to vary the timing"); break;
        case 'v': verify = 1; break;
        default: return 2;
        }
    Tmk_startup(argc, argv);
    jitter = jitter ? jitter * 1000 + Tmk_proc_id + 1 : 0;
    if (Tmk_proc_id == 0) {
        items = (item *)Tmk_malloc((size_t)count * sizeof *items);
        make_items(items, count, seed);
        room = 0;
        for (int i = 0; i < count; i++)
            room += items[i].weight;
        room = room / 2;
        shared = (state *)Tmk_malloc(sizeof *shared);
        memset(shared, 0, sizeof *shared);
        shared->pool[shared->count++] = (decision){0, room, 0};
        Tmk_distribute((char *)&items, sizeof items);
        Tmk_distribute((char *)&room, sizeof room);
        Tmk_distribute((char *)&shared, sizeof shared);
    }
    Tmk_barrier(0);

    double start = now();
    work(depth_alone);
    Tmk_barrier(1);
    double seconds = now() - start;

    if (Tmk_proc_id == 0) {
        long looked_at = 0;
        for (int depth = 0; depth <= count; depth++)
            looked_at += shared->looked_at[depth];
        printf("knapsack: size %d room %d processes %u, %ld decisions\n", count, room, Tmk_nprocs, looked_at);
        printf("knapsack: time %.6f s\n", seconds);
        printf("knapsack: checksum %016lx\n", (unsigned long)shared->best);
        if (verify) {
            long expected = by_tables();
            if (shared->best != expected || looked_at < 2) {
                printf("knapsack: WRONG: best value %ld, by tables %ld\n", shared->best, expected);
                Tmk_exit(1);
            }
            printf("knapsack: verified\n");
        }
    }
    Tmk_exit(0);
}
