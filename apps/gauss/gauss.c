/* Linear equations A x = b by Gaussian elimination and back-substitution, rows dealt to the processors in turn
 * [Cashmere05 §3.2].
 *
 * Row k is divided by its pivot by its owner, who publishes it with a flag; everybody waits for the flag and subtracts
 * the row from its own rows below.  There is no barrier in the elimination: one producer, many consumers per row.  The owner
 * of the next row takes it first and publishes it at once, so that nobody waits for the rest of its rows.
 * Back-substitution is as little work as one or two pivots, and each unknown needs the one before: processor 0 does it alone.
 *
 * The diagonal dominates, so rows are not exchanged.  The right side is the last element of each row.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include "../common/options.h"
#include "../common/random.h"
#include "../common/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "gauss";

typedef struct equations {
    double *rows; /* row i starts at rows + i * stride; its element `order` is the right side */
    double *unknowns;
    size_t order, stride;
    uint64_t seed;
} equations;

typedef struct job {
    equations equations;
    fsp_flag_t *row_ready; /* [order]: the number of the round, from 1, in which the pivot row may be read */
    uint64_t warm;
    double seconds;
} job;

static double *row_of(const equations *equations, size_t row)
{
    return equations->rows + row * equations->stride;
}

static double coefficient(const equations *equations, size_t row, size_t column)
{
    double element = random_unit(random_at(equations->seed, row, column)) - 0.5;
    return row == column ? element + (double)equations->order : element;
}

static void fill_row(const equations *equations, size_t row)
{
    for (size_t column = 0; column <= equations->order; column++)
        row_of(equations, row)[column] = coefficient(equations, row, column);
}

static void divide_by_pivot(const equations *equations, size_t pivot)
{
    double *row = row_of(equations, pivot), divisor = row[pivot];
    for (size_t column = pivot; column <= equations->order; column++)
        row[column] /= divisor;
}

static void subtract_pivot_row(const equations *equations, size_t row, size_t pivot)
{
    double *restrict target = row_of(equations, row);
    const double *restrict source = row_of(equations, pivot);
    double factor = target[pivot];
    for (size_t column = pivot; column <= equations->order; column++)
        target[column] -= factor * source[column];
}

static void publish(job *job, size_t pivot, uint32_t round)
{
    divide_by_pivot(&job->equations, pivot);
    fsp_flag_set(&job->row_ready[pivot], round);
}

static void eliminate(job *job, size_t me, size_t processors, uint32_t round)
{
    const equations *equations = &job->equations;
    size_t next = me; /* my first row that is not yet a pivot row */
    for (size_t pivot = 0; pivot < equations->order; pivot++) {
        if (pivot != next)
            fsp_flag_wait(&job->row_ready[pivot], round);
        else if (pivot == 0)
            publish(job, pivot, round);
        next += pivot == next ? processors : 0;
        for (size_t row = next; row < equations->order; row += processors) {
            subtract_pivot_row(equations, row, pivot);
            if (row == pivot + 1)
                publish(job, row, round);
        }
    }
}

/* Row by row from the last: every row is final once its flag is set. */
static void substitute_back(const equations *equations)
{
    for (size_t row = equations->order; row-- > 0;) {
        const double *coefficients = row_of(equations, row);
        double right = coefficients[equations->order];
        for (size_t known = equations->order; known-- > row + 1;)
            right -= coefficients[known] * equations->unknowns[known];
        equations->unknowns[row] = right;
    }
}

static void solve(job *job, size_t me, size_t processors, uint32_t round)
{
    fsp_phase_begin("eliminate");
    eliminate(job, me, processors, round);
    fsp_phase_end();
    fsp_phase_begin("substitute");
    if (me == 0)
        substitute_back(&job->equations);
    fsp_phase_end();
    fsp_barrier_all();
}

static void worker(void *argument)
{
    job *job = argument;
    size_t me = (size_t)fsp_processor(), processors = (size_t)fsp_processors();
    for (uint32_t round = 1; round <= job->warm + 1; round++) {
        for (size_t row = me; row < job->equations.order; row += processors)
            fill_row(&job->equations, row); /* first touch by the owner */
        fsp_barrier_all();
        double start = seconds_now();
        solve(job, me, processors, round);
        if (me == 0)
            job->seconds = seconds_now() - start;
    }
}

/* Largest |A x - b| over the rows, with A and b from the seed. */
static void check_residual(verdict *verdict, const equations *equations)
{
    for (size_t row = 0; row < equations->order; row++) {
        double right = coefficient(equations, row, equations->order), sum = 0;
        for (size_t column = 0; column < equations->order; column++)
            sum += coefficient(equations, row, column) * equations->unknowns[column];
        if (!(fabs(sum - right) <= 1e-10)) {
            verdict_wrong(verdict, "equation %zu: the left side is %.17g, the right side %.17g", row, sum, right);
            return;
        }
    }
}

typedef struct choices {
    uint64_t size, seed, warm;
    bool verify, sequential;
} choices;

/* Rows of half a page and more get pages of their own; shorter ones share, and only start a new cache line. */
static equations shape_of(const choices *choices)
{
    size_t elements = choices->size + 1, unit = elements >= 256 ? 512 : 8;
    return (equations){NULL, NULL, choices->size, (elements + unit - 1) / unit * unit, choices->seed};
}

static equations solve_alone(const choices *choices, double *seconds)
{
    equations equations = shape_of(choices);
    equations.rows = private_alloc(name, equations.order * equations.stride * sizeof(double));
    equations.unknowns = private_alloc(name, equations.order * sizeof(double));
    for (size_t row = 0; row < equations.order; row++)
        fill_row(&equations, row);
    double start = seconds_now();
    for (size_t pivot = 0; pivot < equations.order; pivot++) {
        divide_by_pivot(&equations, pivot);
        for (size_t row = pivot + 1; row < equations.order; row++)
            subtract_pivot_row(&equations, row, pivot);
    }
    substitute_back(&equations);
    *seconds = seconds_now() - start;
    return equations;
}

static void check_against_sequential(verdict *verdict, const choices *choices, const equations *equations)
{
    double unused;
    struct equations alone = solve_alone(choices, &unused);
    compare_doubles(verdict, "unknown", equations->unknowns, alone.unknowns, equations->order, equations->order);
    for (size_t row = 0; row < equations->order; row++)
        compare_doubles(verdict, "row", row_of(equations, row), row_of(&alone, row), equations->order + 1,
                        equations->order + 1);
    free(alone.rows);
    free(alone.unknowns);
}

static int finish(const choices *choices, const equations *equations, double seconds)
{
    verdict verdict = {0};
    report_time(name, seconds);
    report_checksum(name, checksum_bytes(0, equations->unknowns, equations->order * sizeof(double)));
    if (!choices->verify)
        return 0;
    check_residual(&verdict, equations);
    if (!choices->sequential)
        check_against_sequential(&verdict, choices, equations);
    return report_verdict(name, &verdict);
}

static int run_sequential(const choices *choices)
{
    double seconds = 0;
    report_line(name, "size %" PRIu64 " sequential", choices->size);
    equations equations = solve_alone(choices, &seconds);
    int code = finish(choices, &equations, seconds);
    free(equations.rows);
    free(equations.unknowns);
    return code;
}

static int run_shared(const choices *choices)
{
    job *job = fsp_calloc(1, sizeof *job);
    equations *equations = &job->equations;
    *equations = shape_of(choices);
    job->warm = choices->warm;
    equations->rows = fsp_aligned_alloc(4096, equations->order * equations->stride * sizeof(double));
    equations->unknowns = fsp_malloc(equations->order * sizeof(double));
    job->row_ready = fsp_calloc(equations->order, sizeof *job->row_ready);
    report_line(name, "size %" PRIu64 " processors %d", choices->size, fsp_processors());
    fsp_parallel(worker, job);
    return finish(choices, equations, job->seconds); /* fsp_finalize ends the shared memory */
}

int main(int argc, char **argv)
{
    static const size_names sizes = {{64, 64}, {512, 512}, {2048, 2048}};
    choices choices = {.size = 512, .seed = 1};
    const option options[] = {
        {"--size", OPTION_SIZE, &choices.size, 1, 1 << 16, &sizes, "equations and unknowns"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "what the equations are filled from"},
        {"--warm", OPTION_NUMBER, &choices.warm, 0, 1000, NULL, "times to do it all before the time that is measured"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "check A x = b, and against the sequential program"},
        {"--sequential", OPTION_SWITCH, &choices.sequential, 0, 0, NULL, "run alone, in private memory"},
    };
    const program program = {name, "linear equations by Gaussian elimination, rows dealt in turn", options,
                             sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (choices.sequential)
        return run_sequential(&choices);
    fsp_init(&argc, &argv);
    int code = run_shared(&choices);
    fsp_finalize();
    return code;
}
