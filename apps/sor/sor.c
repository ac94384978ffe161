/* Red-black successive over-relaxation on a rectangular grid, bands of rows [Cashmere05 §3.2; Strings §3.4].
 *
 * Each point becomes the average of its four neighbours; points of one colour have neighbours of the other only, so
 * all red points may change at once, then all black ones.  The colours lie in two arrays: in one half-step the array
 * that is written and the array that is read do not share a page.  Point (row, column) has colour (row + column) % 2;
 * it is element column / 2 of its row in its colour's array, and the columns of a row that have this colour are
 * 2k + shift with shift = (row + colour) % 2.  The outermost rows and columns never change.
 *
 * Race-free because a band writes only its own rows, reads one row of each neighbour, and a barrier ends each colour.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include "../common/options.h"
#include "../common/random.h"
#include "../common/report.h"
#include "../common/share.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "sor";

typedef struct grid {
    float *colour[2];
    size_t rows, half; /* half: points of one colour in a row */
    uint64_t seed;
} grid;

typedef struct job {
    grid grid;
    uint64_t iters;
    double seconds;
} job;

static float *row_of(const grid *grid, unsigned colour, size_t row)
{
    return grid->colour[colour] + row * grid->half;
}

static void fill_rows(const grid *grid, band rows)
{
    for (size_t row = rows.first; row < rows.end; row++) {
        for (unsigned colour = 0; colour < 2; colour++) {
            float *points = row_of(grid, colour, row);
            for (size_t k = 0; k < grid->half; k++)
                points[k] = (float)random_unit(random_at(grid->seed, row * 2 + colour, k));
        }
    }
}

/* The rows of a band that change: without the outermost ones. */
static band inner(const grid *grid, band rows)
{
    size_t first = rows.first < 1 ? 1 : rows.first;
    size_t end = rows.end > grid->rows - 1 ? grid->rows - 1 : rows.end;
    return (band){first, end < first ? first : end};
}

static void relax_row(float *restrict own, const float *restrict above, const float *restrict beside,
                      const float *restrict below, size_t half, size_t shift)
{
    /* shift 0: k = 0 is the fixed left column and the neighbours beside are k-1, k; shift 1: the mirror image. */
    size_t first = shift == 0 ? 1 : 0, end = shift == 0 ? half : half - 1;
    const float *left = shift == 0 ? beside - 1 : beside;
    for (size_t k = first; k < end; k++)
        own[k] = 0.25f * (above[k] + below[k] + left[k] + left[k + 1]);
}

static void relax(const grid *grid, unsigned colour, band rows)
{
    for (size_t row = rows.first; row < rows.end; row++)
        relax_row(row_of(grid, colour, row), row_of(grid, 1 - colour, row - 1), row_of(grid, 1 - colour, row),
                  row_of(grid, 1 - colour, row + 1), grid->half, (row + colour) % 2);
}

static void worker(void *argument)
{
    job *job = argument;
    unsigned me = (unsigned)fsp_processor(), processors = (unsigned)fsp_processors();
    band mine = band_of(job->grid.rows, me, processors);
    fsp_phase_begin("fill");
    fill_rows(&job->grid, mine); /* first touch: the band's pages get their home here */
    fsp_phase_end();
    fsp_barrier_all();
    double start = seconds_now();
    fsp_phase_begin("relax");
    for (uint64_t i = 0; i < job->iters; i++) {
        for (unsigned colour = 0; colour < 2; colour++) {
            relax(&job->grid, colour, inner(&job->grid, mine));
            fsp_barrier_all();
        }
    }
    fsp_phase_end();
    if (me == 0)
        job->seconds = seconds_now() - start;
}

static float at(const grid *grid, size_t row, size_t column)
{
    return row_of(grid, (row + column) % 2, row)[column / 2];
}

/* How far the grid is from the solution: root of the mean square of (average of neighbours - point). */
static double residual(const grid *grid)
{
    double sum = 0;
    size_t columns = 2 * grid->half;
    for (size_t row = 1; row < grid->rows - 1; row++) {
        for (size_t column = 1; column < columns - 1; column++) {
            double average = ((double)at(grid, row - 1, column) + at(grid, row + 1, column) +
                              at(grid, row, column - 1) + at(grid, row, column + 1)) / 4;
            sum += (average - at(grid, row, column)) * (average - at(grid, row, column));
        }
    }
    return sqrt(sum / (double)((grid->rows - 2) * (columns - 2)));
}

static size_t colour_bytes(const grid *grid)
{
    return grid->rows * grid->half * sizeof(float);
}

static grid private_grid(const grid *like)
{
    grid copy = *like;
    copy.colour[0] = private_alloc(name, colour_bytes(like));
    copy.colour[1] = private_alloc(name, colour_bytes(like));
    fill_rows(&copy, (band){0, copy.rows});
    return copy;
}

static void free_private(grid *grid)
{
    free(grid->colour[0]);
    free(grid->colour[1]);
}

static void solve_alone(const grid *grid, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        relax(grid, 0, (band){1, grid->rows - 1});
        relax(grid, 1, (band){1, grid->rows - 1});
    }
}

static uint64_t checksum(const grid *grid)
{
    return checksum_bytes(checksum_bytes(0, grid->colour[0], colour_bytes(grid)), grid->colour[1], colour_bytes(grid));
}

static void compare(verdict *verdict, const grid *got, const grid *expected)
{
    for (size_t row = 0; row < got->rows && !verdict->wrong; row++) {
        for (size_t column = 0; column < 2 * got->half; column++) {
            float found = at(got, row, column), wanted = at(expected, row, column);
            if (memcmp(&found, &wanted, sizeof found) != 0) {
                verdict_wrong(verdict, "row %zu column %zu: got %.9g, expected %.9g", row, column, (double)found,
                              (double)wanted);
                return;
            }
        }
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
        compare(&verdict, solved, &alone);
        if (checksum(solved) != checksum(&alone))
            verdict_wrong(&verdict, "the checksum differs from the sequential program's");
    }
    if (iters > 0 && !(after < before))
        verdict_wrong(&verdict, "the residual grew: from %g to %g", before, after);
    free_private(&alone);
    return verdict;
}

typedef struct choices {
    uint64_t size[2], iters, seed;
    bool verify, sequential;
} choices;

/* "2048" for a square grid, "3072x4096" otherwise; `who` is "sequential" or "processors N". */
static void report_run(const choices *choices, const char *who)
{
    char columns[32] = "";
    if (choices->size[0] != choices->size[1])
        snprintf(columns, sizeof columns, "x%" PRIu64, choices->size[1]);
    report_line(name, "size %" PRIu64 "%s iters %" PRIu64 " %s", choices->size[0], columns, choices->iters, who);
}

static int finish(const choices *choices, const grid *grid, double seconds)
{
    report_time(name, seconds);
    report_checksum(name, checksum(grid));
    if (!choices->verify)
        return 0;
    verdict verdict = verify(grid, choices->iters, !choices->sequential);
    return report_verdict(name, &verdict);
}

static int run_sequential(const choices *choices)
{
    grid shape = {{NULL, NULL}, choices->size[0], choices->size[1] / 2, choices->seed};
    grid grid = private_grid(&shape);
    report_run(choices, "sequential");
    double start = seconds_now();
    solve_alone(&grid, choices->iters);
    int code = finish(choices, &grid, seconds_now() - start);
    free_private(&grid);
    return code;
}

static int run_shared(const choices *choices)
{
    char who[32];
    job *job = fsp_calloc(1, sizeof *job);
    job->grid = (grid){{NULL, NULL}, choices->size[0], choices->size[1] / 2, choices->seed};
    job->iters = choices->iters;
    for (unsigned colour = 0; colour < 2; colour++)
        job->grid.colour[colour] = fsp_aligned_alloc(4096, colour_bytes(&job->grid));
    snprintf(who, sizeof who, "processors %d", fsp_processors());
    report_run(choices, who);
    fsp_parallel(worker, job);
    int code = finish(choices, &job->grid, job->seconds);
    fsp_free(job->grid.colour[0]);
    fsp_free(job->grid.colour[1]);
    fsp_free(job);
    return code;
}

int main(int argc, char **argv)
{
    static const size_names sizes = {{64, 64}, {1024, 1024}, {3072, 4096}};
    choices choices = {.size = {1024, 1024}, .iters = 100, .seed = 1};
    const option options[] = {
        {"--size", OPTION_GRID, choices.size, 4, 1 << 20, &sizes, "rows and columns, the fixed edge included"},
        {"--iters", OPTION_NUMBER, &choices.iters, 0, 1000000000, NULL, "iterations, each red then black"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "what the grid is filled from"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "check against the sequential program"},
        {"--sequential", OPTION_SWITCH, &choices.sequential, 0, 0, NULL, "run alone, in private memory"},
    };
    const program program = {name, "red-black successive over-relaxation in bands of rows", options,
                             sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (choices.size[1] % 2 != 0)
        options_refuse(&program, "--size", "the number of columns must be even");
    if (choices.sequential)
        return run_sequential(&choices);
    fsp_init(&argc, &argv);
    int code = run_shared(&choices);
    fsp_finalize();
    return code;
}
