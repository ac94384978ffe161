/* Jacobi's method for the heat equation on a square plate, written for TreadMarks: process 0 allocates, Tmk_distribute
 * tells the others where, each computes a band of rows, barriers part the iterations.  It ends when no point changes by
 * more than a tolerance, which every process finds out from what each has put into the shared array `changes`.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <Tmk.h>
#include <math.h>
#include <string.h>

#include "program.h"

static double *grid, *scratch; /* size x size, row by row */
static double *changes;        /* of each process, in two rows for alternate iterations */
static struct { int size, iterations; double tolerance; } task; /* process 0's are everybody's */

static uint64_t jitter;

/* Heat comes from the upper edge, more from its middle. */
static void fill(double *plate, int size)
{
    memset(plate, 0, (size_t)size * (size_t)size * sizeof *plate);
    for (int column = 0; column < size; column++)
        plate[column] = 100.0 + column * (size - 1 - column);
}

/* One iteration over some rows; returns the greatest change. */
static double sweep(const double *from, double *to, int size, int first, int last)
{
    double greatest = 0;
    for (int row = first; row < last; row++)
        for (int column = 1; column < size - 1; column++) {
            size_t here = (size_t)row * (size_t)size + (size_t)column;
            to[here] = 0.25 * (from[here - 1] + from[here + 1] + from[here - (size_t)size] + from[here + (size_t)size]);
            greatest = fmax(greatest, fabs(to[here] - from[here]));
        }
    return greatest;
}

static uint64_t checksum(const double *plate, int size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < (size_t)size * (size_t)size; i++) {
        uint64_t bits;
        memcpy(&bits, &plate[i], sizeof bits);
        sum = fold(sum, bits);
    }
    return sum;
}

/* The same alone, in private memory; returns the iterations it took. */
static int alone(double *plate, int size, int iterations, double tolerance)
{
    double *other = malloc((size_t)size * (size_t)size * sizeof *other);
    memcpy(other, plate, (size_t)size * (size_t)size * sizeof *other);
    double *from = plate, *to = other;
    int done = 0;
    for (double change = tolerance; done < iterations && change >= tolerance; done++) {
        change = sweep(from, to, size, 1, size - 1);
        double *swap = from;
        from = to;
        to = swap;
    }
    if (from != plate)
        memcpy(plate, from, (size_t)size * (size_t)size * sizeof *plate);
    free(other);
    return done;
}

/* All processes together; returns the plate that has the result, and the iterations in `done`. */
static double *together(int *done)
{
    int rows = task.size - 2, processes = (int)Tmk_nprocs, me = (int)Tmk_proc_id;
    int first = 1 + rows * me / processes, last = 1 + rows * (me + 1) / processes;
    double *from = grid, *to = scratch;
    double change = task.tolerance;
    for (*done = 0; *done < task.iterations && change >= task.tolerance; ++*done) {
        double *row = changes + (size_t)(*done % 2) * Tmk_nprocs; /* the other one may still be read */
        row[me] = sweep(from, to, task.size, first, last);
        dawdle(&jitter);
        Tmk_barrier(0);
        change = 0;
        for (int process = 0; process < processes; process++)
            change = fmax(change, row[process]);
        double *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

static void check(const double *result, int done)
{
    double *plate = malloc((size_t)task.size * (size_t)task.size * sizeof *plate);
    fill(plate, task.size);
    int expected = alone(plate, task.size, task.iterations, task.tolerance);
    if (done != expected || memcmp(plate, result, (size_t)task.size * (size_t)task.size * sizeof *plate) != 0) {
        printf("jacobi: WRONG: %d iterations checksum %016llx, alone %d and %016llx\n", done,
               (unsigned long long)checksum(result, task.size), expected, (unsigned long long)checksum(plate, task.size));
        Tmk_exit(1);
    }
    printf("jacobi: verified\n");
    free(plate);
}

int main(int argc, char **argv)
{
    int size = 128, iterations = 200, verify = 0, option;
    while ((option = getopt(argc, argv, "s:i:j:v")) != -1)
        switch (option) {
        case 's': size = (int)number(optarg, 3, 16384, "-s, rows and columns"); break;
        case 'i': iterations = (int)number(optarg, 0, 1000000, "-i, iterations at most"); break;
        case 'j': jitter = (uint64_t)number(optarg, 0, 1000000, "-j, how to vary the timing"); break;
        case 'v': verify = 1; break;
        default: return 2;
        }
    Tmk_startup(argc, argv);
    jitter = jitter ? jitter * 1000 + Tmk_proc_id + 1 : 0;
    if (Tmk_proc_id == 0) {
        size_t bytes = (size_t)size * (size_t)size * sizeof *grid;
        task.size = size;
        task.iterations = iterations;
        task.tolerance = 1.0;
        grid = (double *)Tmk_malloc(bytes);
        scratch = (double *)Tmk_malloc(bytes);
        changes = (double *)Tmk_malloc(2 * Tmk_nprocs * sizeof *changes);
        fill(grid, size);
        memcpy(scratch, grid, bytes);
        Tmk_distribute((char *)&task, sizeof task);
        Tmk_distribute((char *)&grid, sizeof grid);
        Tmk_distribute((char *)&scratch, sizeof scratch);
        Tmk_distribute((char *)&changes, sizeof changes);
    }
    Tmk_barrier(0);

    double start = now();
    int done;
    double *result = together(&done);
    double seconds = now() - start;

    if (Tmk_proc_id == 0) {
        printf("jacobi: size %d iterations %d processes %u\n", size, done, Tmk_nprocs);
        printf("jacobi: time %.6f s\n", seconds);
        printf("jacobi: checksum %016llx\n", (unsigned long long)checksum(result, size));
        if (verify)
            check(result, done);
    }
    Tmk_exit(0);
}
