/* sort: radix sort. Counts of digits go up a binary tree of processes and prefixes come down it, each step announced by a pause
 * in the tree's node. Counts and pauses are static arrays, the keys G_MALLOC memory, dealt to by every process.
 *
 *   sort -p processes -n keys -s seed
 *
 * Main sorts a copy with qsort and compares.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/parmacs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MAIN_ENV

#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
#define KEY_BITS 32
#define PROCESSES_MAX 64
#define LEVELS 7

/* A process's node of the tree. */
struct node {
    PAUSEDEC(up)   /* the counts of the processes below are in `total` */
    PAUSEDEC(down) /* `base` is there */
    int total[DIGITS];
    int below[LEVELS][DIGITS]; /* what `total` was before a level's partner was added */
    int base[DIGITS];          /* keys of each digit in the processes before this one */
};

static struct node tree[PROCESSES_MAX];
static long processes = 1;
static int keys = 20000;
static unsigned *from, *to; /* exchanged by process 0 after each digit */

LOCKDEC(id_lock)
static int next_id;
BARDEC(digit_done)

static void count_up(int me)
{
    struct node *mine = &tree[me];

    for (int level = 0, step = 1; step < processes; level++, step *= 2) {
        if (me & step) {
            SETPAUSE(mine->up)
            return;
        }
        memcpy(mine->below[level], mine->total, sizeof mine->total);
        if (me + step >= processes)
            continue;
        struct node *partner = &tree[me + step];
        WAITPAUSE(partner->up)
        for (int digit = 0; digit < DIGITS; digit++)
            mine->total[digit] += partner->total[digit];
        CLEARPAUSE(partner->up)
    }
}

static void come_down(int me)
{
    struct node *mine = &tree[me];
    int level = 0, step = 1;

    if (me == 0) {
        memset(mine->base, 0, sizeof mine->base);
    } else {
        WAITPAUSE(mine->down)
        CLEARPAUSE(mine->down)
    }
    while (step < processes && !(me & step)) {
        level++;
        step *= 2;
    }
    while (level-- > 0) {
        step /= 2;
        if (me + step >= processes)
            continue;
        struct node *partner = &tree[me + step];
        for (int digit = 0; digit < DIGITS; digit++)
            partner->base[digit] = mine->base[digit] + mine->below[level][digit];
        SETPAUSE(partner->down)
    }
}

static void sort_digit(int me, int shift)
{
    struct node *mine = &tree[me];
    int first = (int)((long)keys * me / processes), last = (int)((long)keys * (me + 1) / processes);
    int place[DIGITS], start = 0;

    memset(mine->total, 0, sizeof mine->total);
    for (int i = first; i < last; i++)
        mine->total[from[i] >> shift & (DIGITS - 1)]++;
    count_up(me);
    come_down(me);
    for (int digit = 0; digit < DIGITS; digit++) {
        place[digit] = start + mine->base[digit];
        start += tree[0].total[digit];
    }
    for (int i = first; i < last; i++)
        to[place[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

static void slave(void)
{
    int me;

    LOCK(id_lock)
    me = next_id++;
    UNLOCK(id_lock)
    for (int shift = 0; shift < KEY_BITS; shift += DIGIT_BITS) {
        sort_digit(me, shift);
        BARRIER(digit_done, processes)
        if (me == 0) {
            unsigned *sorted = to;
            to = from;
            from = sorted;
        }
        BARRIER(digit_done, processes)
    }
}

static int in_order(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    unsigned seed = 12345;

    for (int option; (option = getopt(argc, argv, "p:n:s:")) != -1;)
        switch (option) {
        case 'p': processes = atol(optarg); break;
        case 'n': keys = atoi(optarg); break;
        case 's': seed = (unsigned)strtoul(optarg, NULL, 0); break;
        default: exit(1);
        }
    if (processes < 1 || processes > PROCESSES_MAX)
        exit(1);
    MAIN_INITENV(,)
    from = (unsigned *)G_MALLOC((size_t)keys * sizeof *from);
    to = (unsigned *)G_MALLOC((size_t)keys * sizeof *to);
    unsigned *copy = malloc((size_t)keys * sizeof *copy);
    for (int i = 0; i < keys; i++) {
        seed = seed * 1664525 + 1013904223;
        copy[i] = from[i] = seed ^ seed >> 15;
    }
    for (int i = 0; i < processes; i++) {
        PAUSEINIT(tree[i].up)
        PAUSEINIT(tree[i].down)
    }

    CREATE(slave, processes)
    WAIT_FOR_END(processes)

    qsort(copy, (size_t)keys, sizeof *copy, in_order);
    for (int i = 0; i < keys; i++)
        if (copy[i] != from[i]) {
            printf("sort: WRONG: key %d is %u, not %u\n", i, from[i], copy[i]);
            exit(1);
        }
    printf("sort: %d keys\n", keys);
    printf("sort: verified\n");
    MAIN_END
}
