/* Dense matrix product C = A B; C is cut into blocks that are contiguous in memory [Strings §3.3].
 *
 * A processor computes a run of consecutive blocks of C alone; A and B are only read after the first barrier.  B is
 * wanted by everybody, so its pages are dealt over the nodes; A and C are homed by first touch.
 *
 * The elements of A and B are whole numbers from -8 to 7, so every sum is exact and checks need no tolerance.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include "../common/options.h"
#include "../common/random.h"
#include "../common/report.h"
#include "../common/share.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "matmul";

typedef struct product {
    double *a, *b; /* by rows */
    double *c;     /* blocks by rows of blocks; in a block by rows of `block` elements */
    size_t order, block, side;
    uint64_t seed;
} product;

typedef struct job {
    product product;
    uint64_t warm;
    double seconds;
} job;

static double element(uint64_t seed, unsigned matrix, size_t row, size_t column)
{
    return (double)(random_at(seed, row * 2 + matrix, column) % 16) - 8;
}

static void fill_rows(const product *product, band rows)
{
    for (size_t row = rows.first; row < rows.end; row++) {
        for (size_t column = 0; column < product->order; column++) {
            product->a[row * product->order + column] = element(product->seed, 0, row, column);
            product->b[row * product->order + column] = element(product->seed, 1, row, column);
        }
    }
}

static size_t cut(const product *product, size_t index)
{
    size_t left = product->order - index * product->block;
    return left < product->block ? left : product->block;
}

static void multiply_row(double *restrict c, const double *restrict a, const double *restrict b, size_t order,
                         size_t columns)
{
    for (size_t k = 0; k < order; k++)
        for (size_t j = 0; j < columns; j++)
            c[j] += a[k] * b[k * order + j];
}

static double *block_of(const product *product, size_t index)
{
    return product->c + index * product->block * product->block;
}

static void clear_blocks(const product *product, band blocks)
{
    memset(block_of(product, blocks.first), 0,
           (blocks.end - blocks.first) * product->block * product->block * sizeof(double));
}

/* Adds to a block of zeros. */
static void compute_block(const product *product, size_t index)
{
    size_t row = index / product->side, column = index % product->side, block = product->block;
    double *c = block_of(product, index);
    for (size_t i = 0; i < cut(product, row); i++)
        multiply_row(c + i * block, product->a + (row * block + i) * product->order, product->b + column * block,
                     product->order, cut(product, column));
}

static void worker(void *argument)
{
    job *job = argument;
    const product *product = &job->product;
    unsigned me = (unsigned)fsp_processor(), processors = (unsigned)fsp_processors();
    band blocks = band_of(product->side * product->side, me, processors);
    fill_rows(product, band_of(product->order, me, processors));
    for (uint64_t round = 0; round <= job->warm; round++) {
        clear_blocks(product, blocks); /* first touch, as of A */
        fsp_barrier_all();
        double start = seconds_now();
        for (size_t index = blocks.first; index < blocks.end; index++)
            compute_block(product, index);
        fsp_barrier_all();
        if (me == 0)
            job->seconds = seconds_now() - start;
    }
}

static double *result_at(const product *product, size_t row, size_t column)
{
    size_t block = product->block, index = row / block * product->side + column / block;
    return product->c + index * block * block + row % block * block + column % block;
}

static uint64_t checksum(const product *product)
{
    uint64_t sum = 0;
    for (size_t row = 0; row < product->order; row++)
        for (size_t column = 0; column < product->order; column++)
            sum = checksum_bytes(sum, result_at(product, row, column), sizeof(double));
    return sum;
}

/* Freivalds: for a random x of ones and minus ones, C x = A (B x); a wrong C passes with probability 1/2 at most. */
static void check_random_vector(verdict *verdict, const product *product, unsigned trial)
{
    size_t order = product->order;
    int64_t *x = private_alloc(name, 2 * order * sizeof *x), *bx = x + order;
    for (size_t i = 0; i < order; i++)
        x[i] = random_at(product->seed, UINT64_MAX - trial, i) % 2 == 0 ? 1 : -1;
    for (size_t row = 0; row < order; row++) {
        bx[row] = 0;
        for (size_t column = 0; column < order; column++)
            bx[row] += (int64_t)element(product->seed, 1, row, column) * x[column];
    }
    for (size_t row = 0; row < order && !verdict->wrong; row++) {
        int64_t got = 0, expected = 0;
        for (size_t column = 0; column < order; column++) {
            got += (int64_t)*result_at(product, row, column) * x[column];
            expected += (int64_t)element(product->seed, 0, row, column) * bx[column];
        }
        if (got != expected)
            verdict_wrong(verdict, "row %zu of C*x: got %" PRId64 ", expected %" PRId64, row, got, expected);
    }
    free(x);
}

static void check_element(verdict *verdict, const product *product, size_t row, size_t column)
{
    int64_t expected = 0;
    for (size_t k = 0; k < product->order; k++)
        expected += (int64_t)element(product->seed, 0, row, k) * (int64_t)element(product->seed, 1, k, column);
    double got = *result_at(product, row, column);
    if (got != (double)expected)
        verdict_wrong(verdict, "row %zu column %zu: got %.17g, expected %" PRId64, row, column, got, expected);
}

/* Sampled elements come first: their message is the more useful one. */
static verdict verify(const product *product)
{
    verdict verdict = {0};
    for (uint64_t sample = 0; sample < 1000; sample++) {
        uint64_t choice = random_at(product->seed, UINT64_MAX / 2, sample);
        check_element(&verdict, product, (choice >> 32) % product->order, (choice & UINT32_MAX) % product->order);
    }
    for (unsigned trial = 0; trial < 10; trial++)
        check_random_vector(&verdict, product, trial);
    return verdict;
}

typedef struct choices {
    uint64_t size, block, seed, warm;
    bool verify, sequential;
} choices;

static product shape_of(const choices *choices)
{
    product shape = {.order = choices->size, .block = choices->block, .seed = choices->seed};
    shape.side = (shape.order + shape.block - 1) / shape.block;
    return shape;
}

static size_t input_bytes(const product *product)
{
    return product->order * product->order * sizeof(double);
}

static size_t result_bytes(const product *product)
{
    return product->side * product->side * product->block * product->block * sizeof(double);
}

/* The sequential program: the same sums in the same order, so the same bits. */
static product multiply_alone(const choices *choices, double *seconds)
{
    product product = shape_of(choices);
    product.a = private_alloc(name, input_bytes(&product));
    product.b = private_alloc(name, input_bytes(&product));
    product.c = private_alloc(name, result_bytes(&product));
    fill_rows(&product, (band){0, product.order});
    clear_blocks(&product, (band){0, product.side * product.side});
    double start = seconds_now();
    for (size_t index = 0; index < product.side * product.side; index++)
        compute_block(&product, index);
    *seconds = seconds_now() - start;
    return product;
}

static void free_alone(product *product)
{
    free(product->a);
    free(product->b);
    free(product->c);
}

static void check_against_sequential(verdict *verdict, const choices *choices, const product *product)
{
    double unused;
    struct product alone = multiply_alone(choices, &unused);
    if (checksum(product) != checksum(&alone))
        verdict_wrong(verdict, "the checksum differs from the sequential program's");
    free_alone(&alone);
}

static int finish(const choices *choices, const product *product, double seconds)
{
    report_time(name, seconds);
    report_checksum(name, checksum(product));
    if (!choices->verify)
        return 0;
    verdict verdict = verify(product);
    if (!choices->sequential)
        check_against_sequential(&verdict, choices, product);
    return report_verdict(name, &verdict);
}

static int run_sequential(const choices *choices)
{
    double seconds = 0;
    report_line(name, "size %" PRIu64 " block %" PRIu64 " sequential", choices->size, choices->block);
    product product = multiply_alone(choices, &seconds);
    int code = finish(choices, &product, seconds);
    free_alone(&product);
    return code;
}

static int run_shared(const choices *choices)
{
    job *job = fsp_calloc(1, sizeof *job);
    product *product = &job->product;
    *product = shape_of(choices);
    job->warm = choices->warm;
    product->a = fsp_aligned_alloc(4096, input_bytes(product));
    product->b = fsp_malloc_distributed(input_bytes(product), 64 << 10);
    product->c = fsp_aligned_alloc(4096, result_bytes(product));
    report_line(name, "size %" PRIu64 " block %" PRIu64 " processors %d", choices->size, choices->block,
                fsp_processors());
    fsp_parallel(worker, job);
    return finish(choices, product, job->seconds); /* fsp_finalize ends the shared memory */
}

int main(int argc, char **argv)
{
    static const size_names sizes = {{48, 48}, {256, 256}, {1024, 1024}};
    choices choices = {.size = 256, .block = 64, .seed = 1};
    const option options[] = {
        {"--size", OPTION_SIZE, &choices.size, 1, 1 << 15, &sizes, "rows and columns of the matrices"},
        {"--block", OPTION_NUMBER, &choices.block, 1, 1024, NULL, "rows and columns of a block of the result"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "what the matrices are filled from"},
        {"--warm", OPTION_NUMBER, &choices.warm, 0, 1000, NULL, "times to do it all before the time that is measured"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "check with random vectors and sampled elements"},
        {"--sequential", OPTION_SWITCH, &choices.sequential, 0, 0, NULL, "run alone, in private memory"},
    };
    const program program = {name, "dense matrix product with a blockwise result", options,
                             sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (choices.sequential)
        return run_sequential(&choices);
    fsp_init(&argc, &argv);
    int code = run_shared(&choices);
    fsp_finalize();
    return code;
}
