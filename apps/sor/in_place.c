/* The same relaxation as sor.c with both colours in one array of doubles, as a textbook has it.
 *
 * A half-step writes every second point of each row, so a page that a neighbour reads is also written, and where a row is no
 * whole number of pages two bands write the page between them.
 *
 * Race-free because a point of one colour has neighbours of the other only, and a barrier ends each colour.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include "../common/options.h"
#include "../common/random.h"
#include "../common/report.h"
#include "../common/share.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char name[] = "sor-in-place";

typedef struct grid {
    double *points; /* by rows */
    size_t rows, columns;
    uint64_t seed;
} grid;

typedef struct job {
    grid grid;
    uint64_t iters;
    double seconds;
} job;

static double *row_of(const grid *grid, size_t row)
{
    return grid->points + row * grid->columns;
}

static void fill_rows(const grid *grid, band rows)
{
    for (size_t row = rows.first; row < rows.end; row++)
        for (size_t column = 0; column < grid->columns; column++)
            row_of(grid, row)[column] = random_unit(random_at(grid->seed, row, column));
}

/* The rows of a band that change: without the outermost ones. */
static band inner(const grid *grid, band rows)
{
    size_t first = rows.first < 1 ? 1 : rows.first;
    size_t end = rows.end > grid->rows - 1 ? grid->rows - 1 : rows.end;
    return (band){first, end < first ? first : end};
}

static void relax(const grid *grid, size_t colour, band rows)
{
    for (size_t row = rows.first; row < rows.end; row++) {
        double *own = row_of(grid, row);
        const double *above = row_of(grid, row - 1), *below = row_of(grid, row + 1);
        for (size_t column = 1 + (row + colour + 1) % 2; column < grid->columns - 1; column += 2)
            own[column] = 0.25 * (above[column] + below[column] + own[column - 1] + own[column + 1]);
    }
}

static void worker(void *argument)
{
    job *job = argument;
    unsigned me = (unsigned)fsp_processor(), processors = (unsigned)fsp_processors();
    band mine = band_of(job->grid.rows, me, processors);
    fill_rows(&job->grid, mine); /* first touch: the band's pages get their home here */
    fsp_barrier_all();
    double start = seconds_now();
    for (uint64_t i = 0; i < job->iters; i++) {
        for (size_t colour = 0; colour < 2; colour++) {
            relax(&job->grid, colour, inner(&job->grid, mine));
            fsp_barrier_all();
        }
    }
    if (me == 0)
        job->seconds = seconds_now() - start;
}

/* How far the grid is from the solution: root of the mean square of (average of neighbours - point). */
static double residual(const grid *grid)
{
    double sum = 0;
    for (size_t row = 1; row < grid->rows - 1; row++) {
        const double *own = row_of(grid, row), *above = row_of(grid, row - 1), *below = row_of(grid, row + 1);
        for (size_t column = 1; column < grid->columns - 1; column++) {
            double off = (above[column] + below[column] + own[column - 1] + own[column + 1]) / 4 - own[column];
            sum += off * off;
        }
    }
    return sqrt(sum / (double)((grid->rows - 2) * (grid->columns - 2)));
}

static size_t bytes_of(const grid *grid)
{
    return grid->rows * grid->columns * sizeof(double);
}

static grid private_grid(const grid *like)
{
    grid copy = *like;
    copy.points = private_alloc(name, bytes_of(like));
    fill_rows(&copy, (band){0, copy.rows});
    return copy;
}

static void solve_alone(const grid *grid, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        relax(grid, 0, (band){1, grid->rows - 1});
        relax(grid, 1, (band){1, grid->rows - 1});
    }
}

/* Two independent looks: every bit as in the sequential program, and the mathematics: the residual shrinks. */
static verdict verify(const grid *solved, uint64_t iters, bool against_sequential)
{
    verdict verdict = {0};
    grid alone = private_grid(solved);
    double before = residual(&alone), after = residual(solved);
    if (against_sequential) {
        solve_alone(&alone, iters);
        compare_doubles(&verdict, "grid", solved->points, alone.points, solved->rows * solved->columns, solved->columns);
    }
    if (iters > 0 && !(after < before))
        verdict_wrong(&verdict, "the residual grew: from %g to %g", before, after);
    free(alone.points);
    return verdict;
}

typedef struct choices {
    uint64_t size[2], iters, seed;
    bool verify, sequential;
} choices;

static int finish(const choices *choices, const grid *grid, double seconds)
{
    report_time(name, seconds);
    report_checksum(name, checksum_bytes(0, grid->points, bytes_of(grid)));
    if (!choices->verify)
        return 0;
    verdict verdict = verify(grid, choices->iters, !choices->sequential);
    return report_verdict(name, &verdict);
}

static void report_run(const choices *choices, int processors)
{
    report_line(name, "size %" PRIu64 "x%" PRIu64 " iters %" PRIu64 " processors %d", choices->size[0], choices->size[1],
                choices->iters, processors);
}

static int run_sequential(const choices *choices)
{
    grid shape = {NULL, choices->size[0], choices->size[1], choices->seed};
    grid grid = private_grid(&shape);
    report_run(choices, 1);
    double start = seconds_now();
    solve_alone(&grid, choices->iters);
    int code = finish(choices, &grid, seconds_now() - start);
    free(grid.points);
    return code;
}

static int run_shared(const choices *choices)
{
    job *job = fsp_calloc(1, sizeof *job);
    job->grid = (grid){NULL, choices->size[0], choices->size[1], choices->seed};
    job->iters = choices->iters;
    job->grid.points = fsp_aligned_alloc(4096, bytes_of(&job->grid));
    report_run(choices, fsp_processors());
    fsp_parallel(worker, job);
    return finish(choices, &job->grid, job->seconds); /* fsp_finalize ends the shared memory */
}

int main(int argc, char **argv)
{
    static const size_names sizes = {{66, 66}, {1000, 1000}, {2002, 1002}};
    choices choices = {.size = {1000, 1000}, .iters = 100, .seed = 1};
    const option options[] = {
        {"--size", OPTION_GRID, choices.size, 4, 1 << 20, &sizes, "rows and columns, the fixed edge included"},
        {"--iters", OPTION_NUMBER, &choices.iters, 0, 1000000000, NULL, "iterations, each red then black"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "what the grid is filled from"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "check against the sequential program"},
        {"--sequential", OPTION_SWITCH, &choices.sequential, 0, 0, NULL, "run alone, in private memory"},
    };
    const program program = {name, "red-black successive over-relaxation, both colours in one array of doubles", options,
                             sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (choices.sequential)
        return run_sequential(&choices);
    fsp_init(&argc, &argv);
    int code = run_shared(&choices);
    fsp_finalize();
    return code;
}
