/* See program.h.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "program.h"

#include <finespun/finespun.h>

#include "../common/random.h"
#include "../common/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    tiles tiles;
    uint64_t warm;
    double seconds;
} job;

typedef struct choices {
    uint64_t size, block, seed, warm;
    bool verify, sequential;
} choices;

/* Two barriers a step are enough: the interior part of a step touches neither the next diagonal tile of another owner
 * nor the tiles of the next perimeter before the barrier that follows it. */
static void factor_together(const tiles *tiles, unsigned me)
{
    for (size_t step = 0; step < tiles->side; step++) {
        factor_diagonal(tiles, step, me);
        fsp_barrier_all();
        factor_perimeter(tiles, step, me);
        fsp_barrier_all();
        factor_interior(tiles, step, me);
    }
    fsp_barrier_all();
}

static void worker(void *argument)
{
    job *job = argument;
    unsigned me = (unsigned)fsp_processor();
    for (uint64_t round = 0; round <= job->warm; round++) {
        fill_own_tiles(&job->tiles, me); /* first touch by the owner */
        fsp_barrier_all();
        double start = seconds_now();
        factor_together(&job->tiles, me);
        if (me == 0)
            job->seconds = seconds_now() - start;
    }
}

static tiles shape_of(const choices *choices)
{
    tiles shape = {.order = choices->size, .block = choices->block, .seed = choices->seed};
    shape.side = (shape.order + shape.block - 1) / shape.block;
    return shape;
}

/* The sequential program: one owner, one plain two-dimensional array. */
static tiles factor_alone(const layout *layout, const choices *choices, double *seconds)
{
    tiles alone = shape_of(choices);
    alone.grid_rows = alone.grid_columns = 1;
    alone.leading = alone.order;
    alone.tile = private_alloc(layout->name, alone.side * alone.side * sizeof *alone.tile);
    double *cells = private_alloc(layout->name, alone.order * alone.order * sizeof *cells);
    for (size_t column = 0; column < alone.side; column++)
        for (size_t row = 0; row < alone.side; row++)
            alone.tile[row + column * alone.side] = &cells[(row + column * alone.order) * alone.block];
    fill_own_tiles(&alone, 0);
    double start = seconds_now();
    for (size_t step = 0; step < alone.side; step++) {
        factor_diagonal(&alone, step, 0);
        factor_perimeter(&alone, step, 0);
        factor_interior(&alone, step, 0);
    }
    *seconds = seconds_now() - start;
    return alone;
}

static void free_alone(tiles *alone)
{
    free(alone->tile[0]); /* the array's first element */
    free(alone->tile);
}

static uint64_t checksum(const tiles *tiles)
{
    uint64_t sum = 0;
    for (size_t column = 0; column < tiles->order; column++) {
        for (size_t row = 0; row < tiles->order; row++) {
            double element = factored_element(tiles, row, column);
            sum = checksum_bytes(sum, &element, sizeof element);
        }
    }
    return sum;
}

/* z := L (U x), where x has `used` leading elements that are not zero. */
static void multiply_back(const tiles *tiles, const double *x, size_t used, double *y, double *z)
{
    size_t order = tiles->order;
    memset(y, 0, order * sizeof *y);
    for (size_t column = 0; column < used; column++)
        if (x[column] != 0)
            for (size_t row = 0; row <= column; row++)
                y[row] += factored_element(tiles, row, column) * x[column];
    memcpy(z, y, order * sizeof *z);
    for (size_t column = 0; column < order; column++)
        if (y[column] != 0)
            for (size_t row = column + 1; row < order; row++)
                z[row] += factored_element(tiles, row, column) * y[column];
}

/* Compares L U with the original in one column, relative to the column's greatest element (its diagonal). */
static void check_column(verdict *verdict, const tiles *tiles, size_t column, double *vectors)
{
    double *x = vectors, *y = x + tiles->order, *z = y + tiles->order;
    memset(x, 0, tiles->order * sizeof *x);
    x[column] = 1;
    multiply_back(tiles, x, column + 1, y, z);
    for (size_t row = 0; row < tiles->order; row++) {
        double expected = matrix_element(tiles, row, column);
        if (!(fabs(z[row] - expected) <= 1e-12 * (double)tiles->order)) {
            verdict_wrong(verdict, "row %zu column %zu of L*U: got %.17g, expected %.17g", row, column, z[row], expected);
            return;
        }
    }
}

/* All columns at once, against a random vector: L (U x) = A x. */
static void check_product(verdict *verdict, const tiles *tiles, double *vectors)
{
    double *x = vectors, *y = x + tiles->order, *z = y + tiles->order;
    for (size_t i = 0; i < tiles->order; i++)
        x[i] = random_unit(random_at(tiles->seed, UINT64_MAX, i)) - 0.5;
    multiply_back(tiles, x, tiles->order, y, z);
    for (size_t row = 0; row < tiles->order; row++) {
        double expected = 0;
        for (size_t column = 0; column < tiles->order; column++)
            expected += matrix_element(tiles, row, column) * x[column];
        if (!(fabs(z[row] - expected) <= 1e-11 * (double)tiles->order)) {
            verdict_wrong(verdict, "row %zu of L*U*x: got %.17g, expected %.17g", row, z[row], expected);
            return;
        }
    }
}

static void check_against_sequential(verdict *verdict, const layout *layout, const choices *choices, const tiles *tiles)
{
    double unused;
    struct tiles alone = factor_alone(layout, choices, &unused);
    for (size_t column = 0; column < tiles->order; column++) {
        for (size_t row = 0; row < tiles->order; row++) {
            double got = factored_element(tiles, row, column), expected = factored_element(&alone, row, column);
            if (memcmp(&got, &expected, sizeof got) != 0)
                verdict_wrong(verdict, "row %zu column %zu: got %.17g, the sequential program has %.17g", row, column,
                              got, expected);
        }
    }
    free_alone(&alone);
}

/* L*U multiplied back: all columns up to order 256, 64 columns evenly chosen above, and always a random vector. */
static verdict verify(const layout *layout, const choices *choices, const tiles *tiles)
{
    verdict verdict = {0};
    double *vectors = private_alloc(layout->name, 3 * tiles->order * sizeof *vectors);
    size_t columns = tiles->order <= 256 ? tiles->order : 64;
    if (!choices->sequential)
        check_against_sequential(&verdict, layout, choices, tiles);
    check_product(&verdict, tiles, vectors);
    for (size_t i = 0; i < columns && !verdict.wrong; i++)
        check_column(&verdict, tiles, tiles->order - 1 - i * tiles->order / columns, vectors);
    free(vectors);
    return verdict;
}

static int finish(const layout *layout, const choices *choices, const tiles *tiles, double seconds)
{
    report_time(layout->name, seconds);
    report_checksum(layout->name, checksum(tiles));
    if (!choices->verify)
        return 0;
    verdict verdict = verify(layout, choices, tiles);
    return report_verdict(layout->name, &verdict);
}

static int run_sequential(const layout *layout, const choices *choices)
{
    double seconds = 0;
    report_line(layout->name, "size %" PRIu64 " block %" PRIu64 " sequential", choices->size, choices->block);
    tiles tiles = factor_alone(layout, choices, &seconds);
    int code = finish(layout, choices, &tiles, seconds);
    free_alone(&tiles);
    return code;
}

static int run_shared(const layout *layout, const choices *choices)
{
    job *job = fsp_calloc(1, sizeof *job);
    job->tiles = shape_of(choices);
    job->warm = choices->warm;
    job->tiles.tile = fsp_malloc(job->tiles.side * job->tiles.side * sizeof *job->tiles.tile);
    layout->place(&job->tiles);
    report_line(layout->name, "size %" PRIu64 " block %" PRIu64 " processors %d", choices->size, choices->block,
                fsp_processors());
    fsp_parallel(worker, job);
    return finish(layout, choices, &job->tiles, job->seconds); /* fsp_finalize ends the shared memory */
}

int lu_main(const layout *layout, int argc, char **argv)
{
    choices choices = {.size = layout->sizes.small[0], .block = 16, .seed = 1};
    const option options[] = {
        {"--size", OPTION_SIZE, &choices.size, 1, 1 << 16, &layout->sizes, "rows and columns of the matrix"},
        {"--block", OPTION_NUMBER, &choices.block, 1, 1024, NULL, "rows and columns of a block"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "what the matrix is filled from"},
        {"--warm", OPTION_NUMBER, &choices.warm, 0, 1000, NULL, "times to do it all before the time that is measured"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "multiply back, and check against the sequential program"},
        {"--sequential", OPTION_SWITCH, &choices.sequential, 0, 0, NULL, "run alone, in private memory"},
    };
    const program program = {layout->name, layout->summary, options, sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (choices.sequential)
        return run_sequential(layout, &choices);
    fsp_init(&argc, &argv);
    int code = run_shared(layout, &choices);
    fsp_finalize();
    return code;
}
