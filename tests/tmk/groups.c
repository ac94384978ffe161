/* Barriers of sets of processes, in the dialect of FASTLINK: overlapping sets in turn, disjoint ones at the same time.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define TMK_BARRIER_MASK
#include <Tmk.h>

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 60 };

static long *table; /* of each process */
static long found;

static unsigned set(unsigned first, unsigned last)
{
    unsigned mask = 0;
    for (unsigned i = first; i <= last; i++)
        mask |= 1u << i;
    return mask;
}

/* The members of a group count together; the first of them distributes, too. */
static void meet(unsigned first, unsigned last, long value)
{
    unsigned me = Tmk_proc_id, next = me == last ? first : me + 1;
    unsigned mask = set(first, last);
    table[me] = value;
    Tmk_barrier(mask);
    if (table[next] != value)
        Tmk_errexit("process %u sees %ld of process %u, not %ld", me, table[next], next, value);
    Tmk_barrier(mask);
}

int main(int argc, char **argv)
{
    Tmk_startup(argc, argv);
    unsigned me = Tmk_proc_id, all = Tmk_nprocs;
    if (me == 0) {
        table = Tmk_malloc(all * sizeof *table);
        memset(table, 0, all * sizeof *table);
        Tmk_distribute(&table, sizeof table);
    }
    Tmk_barrier(Tmk_mask);
    for (long round = 1; round <= ROUNDS; round++) {
        unsigned middle = (unsigned)round % all; /* two groups: before it, and from it on */
        if (me < middle)
            meet(0, middle - 1, 4 * round);
        else
            meet(middle, all - 1, 4 * round + 1);
        if (me == 0) {
            found = round;
            Tmk_distribute(&found, sizeof found);
        }
        Tmk_barrier(Tmk_mask);
        if (found != round)
            Tmk_errexit("process %u has found %ld in round %ld", me, found, round);
        Tmk_barrier(1u << me); /* alone */
    }
    if (me == 0)
        printf("groups: all have met, %u processes\n", all);
    Tmk_exit(0);
}
