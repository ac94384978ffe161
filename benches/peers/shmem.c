/* OpenSHMEM: a page by get, a lock and its unlock, a barrier.  Two processing elements.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "peer.h"

#include <shmem.h>

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe();
    pin(me);
    size_t rounds = rounds_of(argc, argv);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    char *far = shmem_malloc(64 * PAGE), page[PAGE];
    long *lock = shmem_malloc(sizeof *lock);
    *lock = 0;
    shmem_barrier_all();
    if (me == 0) {
        for (size_t i = 0; i < rounds; i++) {
            uint64_t began = now();
            shmem_getmem(page, far + i % 64 * PAGE, PAGE, 1);
            samples[i] = now() - began;
        }
        report("shmem-page-get", samples, rounds, 1);
        for (size_t i = 0; i < rounds; i++) {
            uint64_t began = now();
            shmem_set_lock(lock);
            shmem_clear_lock(lock);
            samples[i] = now() - began;
        }
        report("shmem-lock-again", samples, rounds, 1);
    }
    shmem_barrier_all();
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        shmem_barrier_all();
        samples[i] = now() - began;
    }
    if (me == 0)
        report("shmem-barrier", samples, rounds, 1);
    free(samples);
    shmem_barrier_all();
    /* Not shmem_finalize: Open MPI 4.1.4 over UCX crashes in it on some machines, after all is measured. */
    shmem_global_exit(0);
}
