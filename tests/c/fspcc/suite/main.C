/* leaves PROCESSES: prints the sum of the squares up to 40.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdio.h>
#include <stdlib.h>
#include "tree.h"

MAIN_ENV

global *shared;

int main(int argc, char **argv)
{
    long i;

    MAIN_INITENV(,40000000,)
    shared = (global *) G_MALLOC(sizeof(global))
    shared->leaves = (leaf *) G_MALLOC(LEAVES * sizeof(leaf));
    if ((shared->processes = argc > 1 ? atol(argv[1]) : 1) < 1)
        exit(1);
    BARINIT(shared->barrier, shared->processes)
    LOCKINIT(shared->id_lock)
    ALOCKINIT(shared->sums, 4)
    for (i = 0; i < LEAVES; i++) {
        LOCKINIT(shared->leaves[i].lock)
        CONDVARINIT(shared->leaves[i].filled)
        PAUSEINIT(shared->leaves[i].counted)
    }
    CREATE(work, shared->processes)
    WAIT_FOR_END(shared->processes)
    printf("leaves: %ld\n", shared->sum[0] + shared->sum[1] + shared->sum[2] + shared->sum[3]);
    MAIN_END
}
