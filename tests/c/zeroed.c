/* Memory that was used before, on any node, is zero when it comes from fsp_calloc, and holds what it held when it comes from
 * fsp_realloc.  Memory that was never used is not cleared, and is zero all the same.
 *
 * run: -n 1
 * run: -n 2
 * run: -n 2 -p 2
 * run: -n 2 -t 2
 * run: -n 3 --faults mprotect
 * run: -n 3 --transport tcp
 * run: -n 2 -p 2 --transport tcp
 * run: -n 3 --protocol csm-dms
 * run: -n 2 -p 2 --protocol csm-ms
 * run: -n 3 --protocol csm-none
 * run: -n 4 --protocol csm-ms-mg
 * run: -n 3 --protocol csm-none-mg --transport tcp
 * run: -n 2 -p 2 --protocol csm-adb
 * run: -n 2 -p 2 --protocol csm-1l-dms
 * run: -n 3 --protocol tmk
 * run: -n 2 --protocol tmk --transport tcp
 * run: -n 2 --protocol strings-rc
 * run: -n 3 --protocol strings-rc --transport tcp
 * run: -n 2 --protocol strings-sc --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#define PAGE 4096
#define SPACING (10 * PAGE) /* of the pages that a table has in use */

static const size_t SIZES[] = {24, 900, 5000, 40 * PAGE, 200 * PAGE + 77};
enum { COUNT = sizeof SIZES / sizeof *SIZES, ROUNDS = 3 };

struct shared {
    unsigned char *blocks[COUNT];
};

static int all_are(const unsigned char *bytes, size_t from, size_t to, unsigned char value)
{
    while (from < to && bytes[from] == value)
        from++;
    return from >= to;
}

/* What one process leaves another finds cleared: whole, in part, or in pages with unused ones between. */
static void hand_on(struct shared *shared, int round)
{
    int me = fsp_process(), processes = fsp_processes();
    if (me == round % processes)
        for (int at = 0; at < COUNT; at++) {
            shared->blocks[at] = fsp_calloc(1, SIZES[at]);
            CHECK(all_are(shared->blocks[at], 0, SIZES[at], 0));
        }
    fsp_barrier_all();
    if (me == (round + 1) % processes)
        for (int at = 0; at < COUNT; at++)
            for (size_t byte = 0; byte < SIZES[at]; byte += at == 4 ? SPACING : 1)
                shared->blocks[at][byte] = (unsigned char)(7 + round);
    fsp_barrier_all();
    if (me == (round + 2) % processes)
        for (int at = 0; at < COUNT; at++)
            fsp_free(shared->blocks[at]);
    fsp_barrier_all();
}

/* A table that is used in a few places grows and moves. */
static void grow(struct shared *shared)
{
    int me = fsp_process(), last = fsp_processes() - 1;
    size_t size = SIZES[4];
    if (me == 0) {
        unsigned char *dirt = fsp_malloc(8 * size), *behind;
        memset(dirt, 99, 8 * size);
        shared->blocks[0] = fsp_calloc(1, size);
        behind = fsp_malloc(PAGE); /* so that there is no room behind it */
        fsp_free(dirt);
        (void)behind;
    }
    fsp_barrier_all();
    if (me == last)
        for (size_t byte = 0; byte < size; byte += SPACING)
            shared->blocks[0][byte + 5] = 1;
    fsp_barrier_all();
    if (me == 0)
        shared->blocks[0] = fsp_realloc(shared->blocks[0], 6 * size);
    fsp_barrier_all();
    for (size_t byte = 0; byte < size; byte++)
        CHECK(shared->blocks[0][byte] == (byte % SPACING == 5));
    fsp_barrier_all();
}

/* The same memory again, for all. */
static void together(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *memory = fsp_malloc_all(30 * PAGE);
        CHECK(all_are(memory, 0, 30 * PAGE, 0));
        fsp_barrier_all();
        for (int page = fsp_process(); page < 30; page += 2 * fsp_processes())
            memset(memory + page * PAGE, 3, PAGE);
        fsp_barrier_all();
        if (fsp_process() == fsp_processes() - 1)
            fsp_free(memory);
        fsp_barrier_all();
    }
}

int main(int argc, char **argv)
{
    CHECK(fsp_init_spmd(&argc, &argv) == FSP_OK);
    struct shared *shared = fsp_malloc_all(sizeof *shared);
    for (int round = 0; round < ROUNDS; round++)
        hand_on(shared, round);
    grow(shared);
    together();
    fsp_finalize();
    return 0;
}
