/* Blocked LU in a plain two-dimensional array: the blocks are not contiguous, so blocks of different owners share
 * pages [Cashmere05 §3.2].
 *
 * As the paper's authors changed it, a column of tiles belongs to the processors of one node (footnote 2): elements go
 * by columns, so the sharing across nodes is left at the column edges only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "program.h"

#include <finespun/finespun.h>

static void place(tiles *tiles)
{
    double *cells = fsp_aligned_alloc(4096, tiles->order * tiles->order * sizeof *cells);
    tiles->leading = tiles->order;
    tiles->grid_rows = (unsigned)fsp_processors_per_node();
    tiles->grid_columns = (unsigned)fsp_nodes();
    for (size_t column = 0; column < tiles->side; column++)
        for (size_t row = 0; row < tiles->side; row++)
            tiles->tile[row + column * tiles->side] = &cells[(row + column * tiles->order) * tiles->block];
}

int main(int argc, char **argv)
{
    static const layout layout = {"lu", "blocked dense LU, blocks not contiguous in memory",
                                  {{64, 64}, {512, 512}, {2500, 2500}}, place};
    return lu_main(&layout, argc, argv);
}
