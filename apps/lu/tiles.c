/* See tiles.h.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tiles.h"

#include "../common/random.h"

unsigned tile_owner(const tiles *tiles, size_t row, size_t column)
{
    return (unsigned)(column % tiles->grid_columns) * tiles->grid_rows + (unsigned)(row % tiles->grid_rows);
}

size_t tile_rows(const tiles *tiles, size_t index)
{
    size_t left = tiles->order - index * tiles->block;
    return left < tiles->block ? left : tiles->block;
}

double *tile_at(const tiles *tiles, size_t row, size_t column)
{
    return tiles->tile[row + column * tiles->side];
}

double matrix_element(const tiles *tiles, size_t row, size_t column)
{
    double element = random_unit(random_at(tiles->seed, row, column));
    return row == column ? element + (double)tiles->order : element;
}

double factored_element(const tiles *tiles, size_t row, size_t column)
{
    const double *tile = tile_at(tiles, row / tiles->block, column / tiles->block);
    return tile[row % tiles->block + column % tiles->block * tiles->leading];
}

static void fill_tile(const tiles *tiles, size_t row, size_t column)
{
    double *tile = tile_at(tiles, row, column);
    for (size_t j = 0; j < tile_rows(tiles, column); j++)
        for (size_t i = 0; i < tile_rows(tiles, row); i++)
            tile[i + j * tiles->leading] = matrix_element(tiles, row * tiles->block + i, column * tiles->block + j);
}

void fill_own_tiles(const tiles *tiles, unsigned me)
{
    for (size_t column = 0; column < tiles->side; column++)
        for (size_t row = 0; row < tiles->side; row++)
            if (tile_owner(tiles, row, column) == me)
                fill_tile(tiles, row, column);
}

/* y -= a * x: the innermost loop of everything. */
static void subtract(double *restrict y, const double *restrict x, double a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] -= a * x[i];
}

/* A = L U in place. */
static void factor_tile(double *a, size_t n, size_t leading)
{
    for (size_t k = 0; k < n; k++) {
        for (size_t i = k + 1; i < n; i++)
            a[i + k * leading] /= a[k + k * leading];
        for (size_t j = k + 1; j < n; j++)
            subtract(&a[k + 1 + j * leading], &a[k + 1 + k * leading], a[k + j * leading], n - k - 1);
    }
}

/* A := A U^-1, below the diagonal tile. */
static void divide_by_upper(double *a, size_t rows, const double *diagonal, size_t n, size_t leading)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++)
            subtract(&a[j * leading], &a[k * leading], diagonal[k + j * leading], rows);
        for (size_t i = 0; i < rows; i++)
            a[i + j * leading] /= diagonal[j + j * leading];
    }
}

/* A := L^-1 A, right of the diagonal tile. */
static void divide_by_lower(double *a, size_t columns, const double *diagonal, size_t n, size_t leading)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t k = 0; k < n; k++)
            subtract(&a[k + 1 + j * leading], &diagonal[k + 1 + k * leading], a[k + j * leading], n - k - 1);
}

/* C -= A B. */
static void subtract_product(double *c, const double *a, const double *b, size_t rows, size_t columns, size_t n,
                             size_t leading)
{
    for (size_t j = 0; j < columns; j++)
        for (size_t k = 0; k < n; k++)
            subtract(&c[j * leading], &a[k * leading], b[k + j * leading], rows);
}

void factor_diagonal(const tiles *tiles, size_t step, unsigned me)
{
    if (tile_owner(tiles, step, step) == me)
        factor_tile(tile_at(tiles, step, step), tile_rows(tiles, step), tiles->leading);
}

void factor_perimeter(const tiles *tiles, size_t step, unsigned me)
{
    const double *diagonal = tile_at(tiles, step, step);
    size_t n = tile_rows(tiles, step);
    for (size_t i = step + 1; i < tiles->side; i++) {
        if (tile_owner(tiles, i, step) == me)
            divide_by_upper(tile_at(tiles, i, step), tile_rows(tiles, i), diagonal, n, tiles->leading);
        if (tile_owner(tiles, step, i) == me)
            divide_by_lower(tile_at(tiles, step, i), tile_rows(tiles, i), diagonal, n, tiles->leading);
    }
}

void factor_interior(const tiles *tiles, size_t step, unsigned me)
{
    for (size_t column = step + 1; column < tiles->side; column++)
        for (size_t row = step + 1; row < tiles->side; row++)
            if (tile_owner(tiles, row, column) == me)
                subtract_product(tile_at(tiles, row, column), tile_at(tiles, row, step), tile_at(tiles, step, column),
                                 tile_rows(tiles, row), tile_rows(tiles, column), tile_rows(tiles, step),
                                 tiles->leading);
}
