/* grid: Laplace's equation on a square by red-black sweeps until no point moves by more than a tolerance. Bands of rows;
 * the rows are pointers into G_MALLOC memory, the parameters private variables of main in 1990s style, the largest change a
 * global under a lock. This source goes through m4.
 *
 *   grid -p processes -n points_a_side -t tolerance
 *
 * The order of the points of one colour does not matter, so the grid is the same, bit for bit, with any number of processes:
 * main solves it again alone and compares.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MAIN_ENV

#define MAX_SWEEPS 20000

/* Set by main before the others are made. */
long nprocs = 1;
int n = 66;
double tolerance = 1e-4;
double *edge;   /* malloc: what stands around the square */
double **grid;  /* rows */

/* Used by all. */
struct global {
    LOCKDEC(id_lock)
    int id;
    LOCKDEC(change_lock)
    BARDEC(sweep)
    BARDEC(start)
} *global;
double change[2]; /* of this sweep and of the one before */
int sweeps;       /* written by process 0 */

static void boundary(double **rows)
{
    int i;

    for (i = 0; i < n; i++) {
        rows[0][i] = edge[i];
        rows[n - 1][i] = 1 - edge[i];
        rows[i][0] = edge[i] / 2;
        rows[i][n - 1] = 1 - edge[i] / 2;
    }
}

/* One colour of some rows; the largest change of a point. */
static double relax(double **rows, int from, int to, int colour)
{
    double largest = 0;
    int i, j;

    for (i = from; i < to; i++)
        for (j = 1 + (i + colour) % 2; j < n - 1; j += 2) {
            double old = rows[i][j];
            rows[i][j] = (rows[i - 1][j] + rows[i + 1][j] + rows[i][j - 1] + rows[i][j + 1]) / 4;
            if (fabs(rows[i][j] - old) > largest)
                largest = fabs(rows[i][j] - old);
        }
    return largest;
}

void slave(void)
{
    int me, from, to, sweep, colour;

    LOCK(global->id_lock)
    me = global->id++;
    UNLOCK(global->id_lock)
    from = 1 + (n - 2) * me / nprocs;
    to = 1 + (n - 2) * (me + 1) / nprocs;

    BARRIER(global->start, nprocs)
    for (sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        double mine = 0;
        for (colour = 0; colour < 2; colour++) {
            double moved = relax(grid, from, to, colour);
            if (moved > mine)
                mine = moved;
            if (colour == 0)
                BARRIER(global->sweep, nprocs)
        }
        LOCK(global->change_lock)
        if (mine > change[sweep % 2])
            change[sweep % 2] = mine;
        UNLOCK(global->change_lock)
        BARRIER(global->sweep, nprocs)
        if (change[sweep % 2] <= tolerance)
            break;
        if (me == 0)
            change[(sweep + 1) % 2] = 0;
        BARRIER(global->sweep, nprocs)
    }
    if (me == 0) {
        sweeps = sweep + 1;
        printf("grid: %d sweeps\n", sweeps);
    }
}

static double **alone(int *count)
{
    double **rows = malloc(n * sizeof *rows);
    int i, sweep;

    for (i = 0; i < n; i++)
        rows[i] = calloc(n, sizeof **rows);
    boundary(rows);
    for (sweep = 1; sweep <= MAX_SWEEPS; sweep++) {
        double red = relax(rows, 1, n - 1, 0);
        double black = relax(rows, 1, n - 1, 1);
        if (red <= tolerance && black <= tolerance)
            break;
    }
    *count = sweep;
    return rows;
}

int main(int argc, char **argv)
{
    unsigned int begin, end;
    int option, i, expected;
    double **rows;

    while ((option = getopt(argc, argv, "p:n:t:")) != -1)
        switch (option) {
        case 'p': nprocs = atol(optarg); break;
        case 'n': n = atoi(optarg); break;
        case 't': tolerance = atof(optarg); break;
        default: exit(1);
        }
    printf("grid: %d points a side, tolerance %g\n", n, tolerance);
    edge = (double *)malloc(n * sizeof *edge);
    for (i = 0; i < n; i++)
        edge[i] = (double)i / (n - 1);

    MAIN_INITENV(,80000000)
    global = (struct global *)G_MALLOC(sizeof(struct global));
    BARINIT(global->start, nprocs)
    BARINIT(global->sweep, nprocs)
    LOCKINIT(global->id_lock)
    LOCKINIT(global->change_lock)
    grid = (double **)G_MALLOC(n * sizeof(double *));
    for (i = 0; i < n; i++)
        grid[i] = (double *)G_MALLOC(n * sizeof(double));
    boundary(grid);

    CLOCK(begin)
    SPLASH3_ROI_BEGIN()
    CREATE(slave, nprocs)
    WAIT_FOR_END(nprocs)
    SPLASH3_ROI_END()
    CLOCK(end)
    fprintf(stderr, "grid: %u us\n", end - begin);

    rows = alone(&expected);
    if (expected != sweeps) {
        printf("grid: WRONG: %d sweeps alone\n", expected);
        exit(1);
    }
    for (i = 0; i < n; i++)
        if (memcmp(rows[i], grid[i], n * sizeof **rows) != 0) {
            printf("grid: WRONG: row %d\n", i);
            exit(1);
        }
    printf("grid: verified\n");
    MAIN_END
}
