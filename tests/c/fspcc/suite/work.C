/* Each process fills the leaves of its own and takes those of its neighbour.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
#include "tree.h"

EXTERN_ENV

define(`SQUARE', `(($1) * ($1))')

static void fill(leaf *to, long value)
{
    LOCK(to->lock)
    to->value = value;
    CONDVARBCAST(to->filled)
    UNLOCK(to->lock)
    SETPAUSE(to->counted)
}

static long take(leaf *from)
{
    long value;

    WAITPAUSE(from->counted)
    CLEARPAUSE(from->counted)
    LOCK(from->lock)
    while (from->value == 0)
        CONDVARWAIT(from->filled, from->lock)
    value = from->value;
    UNLOCK(from->lock)
    return value;
}

void work(void)
{
    long i, id, *mine;

    LOCK(shared->id_lock)
    id = shared->next_id++;
    UNLOCK(shared->id_lock)
    mine = (long *) NU_MALLOC(sizeof(long), id)
    *mine = 0;
    for (i = id; i < LEAVES; i += shared->processes)
        fill(&shared->leaves[i], SQUARE(i + 1));
    for (i = 0; i < LEAVES; i++)
        if ((i + 1) % shared->processes == id)
            *mine += take(&shared->leaves[i]);
    ALOCK(shared->sums, id % 4)
    shared->sum[id % 4] += *mine;
    AULOCK(shared->sums, id % 4)
    BARRIER(shared->barrier, shared->processes)
}
