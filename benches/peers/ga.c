/* Global Arrays: a page of a distributed array by get, a barrier.  Two processes.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "peer.h"

#include <ga.h>
#include <macdecls.h>
#include <mpi.h>

#define WORDS (PAGE / (int)sizeof(double))
#define PAGES 64

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 1 << 20, 1 << 20);
    int me = GA_Nodeid();
    pin(me);
    size_t rounds = rounds_of(argc, argv);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    /* One row is a page; the first half of the rows is at process 0, the second at process 1. */
    int dimensions[2] = {2 * PAGES, WORDS}, chunk[2] = {PAGES, WORDS}, stride[1] = {WORDS};
    int array = NGA_Create(C_DBL, 2, dimensions, "pages", chunk);
    GA_Zero(array);
    double page[WORDS];
    GA_Sync();
    for (size_t i = 0; me == 0 && i < rounds; i++) {
        int row = PAGES + (int)(i % PAGES), low[2] = {row, 0}, high[2] = {row, WORDS - 1};
        uint64_t began = now();
        NGA_Get(array, low, high, page, stride);
        samples[i] = now() - began;
    }
    if (me == 0)
        report("ga-page-get", samples, rounds, 1);
    GA_Sync();
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        GA_Sync();
        samples[i] = now() - began;
    }
    if (me == 0)
        report("ga-sync", samples, rounds, 1);
    GA_Destroy(array);
    free(samples);
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
