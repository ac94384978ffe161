/* One program in every process, as with MPI, SHMEM and TreadMarks: a sum over all processors.
 *
 *     cc spmd.c -lfinespun -o spmd && finespun run -n 4 ./spmd
 *
 * After fsp_init_spmd main goes on in every process.  fsp_malloc_all is called by all and gives all the same memory.
 * fsp_parallel, called by all too, runs `add` on every processor, also where a process has several.  Each writes its
 * own part without a lock; after the barrier everybody sees all parts.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include <stdint.h>
#include <stdio.h>

enum { NUMBERS = 1000000 };

static void add(void *argument)
{
    uint64_t *part = argument, me = (uint64_t)fsp_processor(), processors = (uint64_t)fsp_processors();
    for (uint64_t i = me; i < NUMBERS; i += processors)
        part[me] += i;
    fsp_barrier_all();
}

int main(int argc, char **argv)
{
    fsp_init_spmd(&argc, &argv);
    int processors = fsp_processors();
    uint64_t *part = fsp_malloc_all((size_t)processors * sizeof *part); /* zeroed */
    fsp_parallel(add, part);

    uint64_t sum = 0, expected = (uint64_t)NUMBERS * (NUMBERS - 1) / 2;
    for (int i = 0; i < processors; i++)
        sum += part[i];
    if (fsp_processor() == 0)
        printf("spmd: sum %llu, expected %llu, processors %d\n", (unsigned long long)sum,
               (unsigned long long)expected, processors);
    fsp_finalize();
    return sum == expected ? 0 : 1;
}
