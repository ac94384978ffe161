/* Every process fills an array page by page that nobody has used, forwards or backwards, where it has a block or takes every
 * n-th row: what is opened ahead of it must neither lose a store nor take pages from a block that another process has begun with.
 *
 * run: -n 2
 * run: -n 2 --prefetch off
 * run: -n 3 --faults mprotect
 * run: -n 2 -p 2
 * run: -n 2 -p 2 --faults mprotect
 * run: -n 2 -t 2
 * run: -n 3 --transport tcp
 * run: -n 2 -p 2 --transport tcp --faults mprotect
 * run: -n 3 --protocol csm-dms
 * run: -n 3 -p 2 --protocol csm-ms
 * run: -n 2 --protocol csm-none --transport tcp
 * run: -n 4 --protocol csm-ms-mg
 * run: -n 3 --protocol csm-none-mg --transport tcp
 * run: -n 2 -p 2 --protocol csm-adb
 * run: -n 2 -p 2 --protocol csm-1l-dms
 * run: -n 3 --protocol tmk
 * run: -n 2 --protocol strings-rc
 * run: -n 2 --protocol strings-sc --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#define PAGE 4096
#define BLOCK 300 /* pages of one process */
#define ROW 20    /* pages: enough for a stream to begin */

static uint64_t *word(uint64_t *pages, int page)
{
    return pages + (size_t)page * (PAGE / sizeof(uint64_t)) + page % 500;
}

/* Which page comes at this place of a process's order. */
static int block(int me, int processes, int place)
{
    (void)processes;
    return me * BLOCK + (me % 2 == 0 ? place : BLOCK - 1 - place);
}

static int rows(int me, int processes, int place)
{
    return (place / ROW * processes + me) * ROW + place % ROW;
}

static void fill_and_check(const char *name, uint64_t *pages, int (*order)(int, int, int))
{
    int me = fsp_process(), processes = fsp_processes();
    *word(pages, order(me, processes, 0)) = 1;
    *word(pages, order(me, processes, BLOCK - 1)) = 1;
    fsp_barrier_all();
    for (int place = 0; place < BLOCK; place++) {
        int page = order(me, processes, place);
        CHECK(place == 0 || place == BLOCK - 1 || *word(pages, page) == 0);
        *word(pages, page) = (uint64_t)page + 7;
    }
    fsp_barrier_all();
    fsp_phase_begin(name);
    for (int place = 0; place < BLOCK; place++)
        *word(pages, order(me, processes, place)) += 1;
    fsp_phase_end();
    fsp_barrier_all();
    for (int page = 0; page < processes * BLOCK; page++)
        CHECK(*word(pages, page) == (uint64_t)page + 8);
    fsp_barrier_all();
}

/* Each process fills its block when the one before has filled its own, and may find the first pages of it open elsewhere. */
static void take_over(uint64_t *pages)
{
    int me = fsp_process(), processes = fsp_processes();
    for (int turn = 0; turn < processes; turn++) {
        for (int place = 0; place < BLOCK && turn == me; place++)
            *word(pages, turn * BLOCK + place) = (uint64_t)(turn * BLOCK + place) + 1;
        fsp_barrier_all();
    }
    for (int page = processes * BLOCK; page-- > 0;)
        CHECK(*word(pages, page) == (uint64_t)page + 1);
    fsp_barrier_all();
}

int main(int argc, char **argv)
{
    CHECK(fsp_init_spmd(&argc, &argv) == FSP_OK);
    size_t bytes = (size_t)fsp_processes() * BLOCK * PAGE;
    uint64_t **arrays = fsp_malloc_all(3 * sizeof *arrays);
    for (int at = 0; at < 3 && fsp_process() == 0; at++)
        arrays[at] = fsp_calloc(bytes, 1);
    fsp_barrier_all();
    fill_and_check("block", arrays[0], block);
    fill_and_check("rows", arrays[1], rows);
    take_over(arrays[2]);
    fsp_finalize();
    return 0;
}
