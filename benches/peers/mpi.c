/* Open MPI, or another: a page by request and answer, a page by one-sided get, a barrier.  Two ranks.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "peer.h"

#include <mpi.h>

static char page[PAGE];

/* Rank 0 asks with 16 bytes, rank 1 answers with a page: a page fetch done two-sided. */
static void two_sided(int rank, size_t rounds, uint64_t *samples)
{
    char request[16] = {0};
    for (size_t i = 0; i < rounds; i++) {
        if (rank == 0) {
            uint64_t began = now();
            MPI_Send(request, sizeof request, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(page, PAGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            samples[i] = now() - began;
        } else if (rank == 1) {
            MPI_Recv(request, sizeof request, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(page, PAGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
    }
    if (rank == 0)
        report("mpi-page-two-sided", samples, rounds, 1);
}

static void one_sided(int rank, size_t rounds, uint64_t *samples)
{
    MPI_Win window;
    static char shared[64 * PAGE];
    MPI_Win_create(shared, sizeof shared, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (size_t i = 0; rank == 0 && i < rounds; i++) {
        uint64_t began = now();
        MPI_Get(page, PAGE, MPI_BYTE, 1, (MPI_Aint)(i % 64) * PAGE, PAGE, MPI_BYTE, window);
        MPI_Win_flush(1, window);
        samples[i] = now() - began;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    if (rank == 0)
        report("mpi-page-get", samples, rounds, 1);
}

static void barrier(int rank, size_t rounds, uint64_t *samples)
{
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        MPI_Barrier(MPI_COMM_WORLD);
        samples[i] = now() - began;
    }
    if (rank == 0)
        report("mpi-barrier", samples, rounds, 1);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pin(rank);
    size_t rounds = rounds_of(argc, argv);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    two_sided(rank, rounds, samples);
    barrier(rank, rounds, samples);
    one_sided(rank, rounds, samples);
    free(samples);
    MPI_Finalize();
    return 0;
}
