/* More pages are written between two barriers than a dirty list or a list of write notices keeps in their order: all processors write a
 * word of their own in every page, in an order of their own, and then read everybody's.
 *
 * run: -n 2
 * run: -n 2 -p 2 --faults mprotect
 * run: -n 2 -p 3
 * run: -n 2 -p 2 --transport tcp
 * run: -n 3 --protocol csm-ms-mg
 * run: -n 2 -p 2 --protocol csm-adb
 * run: -n 2 -p 2 --protocol strings-rc --transport tcp
 * run: -n 2 --protocol strings-sc
 * run: -n 2 --protocol tmk
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#define PAGE 4096
#define PAGES 2600
#define ROUNDS 3
#define STEP 1237 /* has no common factor with PAGES: every page once */

static uint32_t *word(char *pages, size_t page, int processor)
{
    return (uint32_t *)(pages + page * PAGE) + processor;
}

static uint32_t value(size_t page, int processor, int round)
{
    return (uint32_t)page * 31 + (uint32_t)processor * 7 + (uint32_t)round * 1000003 + 1;
}

static void write_own(char *pages, int me, int round)
{
    for (size_t i = 0; i < PAGES; i++) {
        size_t page = (i * (me % 2 ? STEP : 1) + (size_t)me * 100) % PAGES;
        *word(pages, page, me) = value(page, me, round);
    }
}

static void look(char *pages, int round)
{
    for (size_t page = 0; page < PAGES; page++)
        for (int processor = 0; processor < fsp_processors(); processor++)
            CHECK(*word(pages, page, processor) == value(page, processor, round));
}

int main(int argc, char **argv)
{
    CHECK(fsp_init_spmd(&argc, &argv) == FSP_OK);
    char *pages = fsp_malloc_all((size_t)PAGES * PAGE);
    CHECK(pages != NULL);
    for (int round = 0; round < ROUNDS; round++) {
        write_own(pages, fsp_processor(), round);
        fsp_barrier_all();
        look(pages, round);
        fsp_barrier_all();
    }
    fsp_finalize();
    return 0;
}
