/* Blocked LU factorisation of a dense matrix without pivoting, for any placement of the blocks ("tiles").
 *
 * lu and clu differ only in where the tiles lie, so they share everything here: a tile is a pointer and all tiles of
 * a matrix have one leading dimension.  Inside a tile elements go by columns, as in SPLASH-2.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_TILES_H
#define APPS_TILES_H

#include <stddef.h>
#include <stdint.h>

typedef struct tiles {
    size_t order;   /* rows and columns of the matrix */
    size_t block;   /* rows and columns of a tile; the last ones may be cut */
    size_t side;    /* tiles in a row or column of tiles */
    size_t leading; /* distance of two columns inside a tile, in elements */
    double **tile;  /* [row + column * side] */
    unsigned grid_rows, grid_columns; /* processors, in two dimensions */
    uint64_t seed;
} tiles;

/* Who computes a tile.  A column of tiles belongs to grid_rows consecutive processors [Cashmere05 §3.2, footnote 2]. */
unsigned tile_owner(const tiles *tiles, size_t row, size_t column);
size_t tile_rows(const tiles *tiles, size_t index); /* rows (or columns) of the tiles at this index */
double *tile_at(const tiles *tiles, size_t row, size_t column);

/* The original matrix, from the seed: elements in [0, 1), and the order added on the diagonal, which makes pivoting
 * unnecessary. */
double matrix_element(const tiles *tiles, size_t row, size_t column);
double factored_element(const tiles *tiles, size_t row, size_t column); /* what the tiles hold now */

void fill_own_tiles(const tiles *tiles, unsigned me);

/* One step in three parts; between them everybody must have finished the one before. */
void factor_diagonal(const tiles *tiles, size_t step, unsigned me);
void factor_perimeter(const tiles *tiles, size_t step, unsigned me);
void factor_interior(const tiles *tiles, size_t step, unsigned me);

#endif
