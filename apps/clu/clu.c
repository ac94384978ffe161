/* Blocked LU with contiguous blocks: each owner's blocks lie together in pages of their own, homed at its node
 * [Cashmere05 §3.2].
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../lu/program.h"

#include <finespun/finespun.h>

/* The most square grid: grid_rows is the greatest divisor not above the square root. */
static void choose_grid(tiles *tiles, unsigned processors)
{
    unsigned rows = 1;
    for (unsigned divisor = 1; divisor * divisor <= processors; divisor++)
        if (processors % divisor == 0)
            rows = divisor;
    tiles->grid_rows = rows;
    tiles->grid_columns = processors / rows;
}

static size_t tiles_of(const tiles *tiles, unsigned owner)
{
    size_t count = 0;
    for (size_t column = 0; column < tiles->side; column++)
        for (size_t row = 0; row < tiles->side; row++)
            count += tile_owner(tiles, row, column) == owner;
    return count;
}

static void place_tiles_of(tiles *tiles, unsigned owner)
{
    size_t elements = tiles->block * tiles->block, count = tiles_of(tiles, owner);
    if (count == 0)
        return;
    int node = (int)owner / fsp_processors_per_node();
    double *next = fsp_malloc_on(count * elements * sizeof *next, node);
    for (size_t column = 0; column < tiles->side; column++) {
        for (size_t row = 0; row < tiles->side; row++) {
            if (tile_owner(tiles, row, column) == owner) {
                tiles->tile[row + column * tiles->side] = next;
                next += elements;
            }
        }
    }
}

static void place(tiles *tiles)
{
    unsigned processors = (unsigned)fsp_processors();
    choose_grid(tiles, processors);
    tiles->leading = tiles->block;
    for (unsigned owner = 0; owner < processors; owner++)
        place_tiles_of(tiles, owner);
}

int main(int argc, char **argv)
{
    static const layout layout = {"clu", "blocked dense LU, blocks contiguous and grouped by owner",
                                  {{64, 64}, {512, 512}, {2048, 2048}}, place};
    return lu_main(&layout, argc, argv);
}
