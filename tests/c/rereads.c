/* Pages that the last process writes and all others read, in every interval, until nobody reads them any more: what an acquire fetches anew must
 * be what was written, for every thread of a process, whichever of them acquired.  The phases tell how often pages faulted and came:
 * "settled", when all are read in each interval; "forgotten", when they have not been read for long.
 *
 * run: -n 2
 * run: -n 2 --refresh off
 * run: -n 3 --faults mprotect
 * run: -n 2 -p 2 --transport tcp
 * run: -n 3 -t 2
 * run: -n 2 -p 2 -t 2 --transport tcp --faults mprotect
 * run: -n 3 -t 2 --transport tcp
 * run: -n 3 -p 2 --protocol csm-ms
 * run: -n 3 --protocol csm-ms-mg
 * run: -n 3 -t 2 --protocol csm-none-mg --transport tcp
 * run: -n 2 -p 2 --protocol csm-adb
 * run: -n 2 --protocol tmk
 * run: -n 2 -p 2 --protocol strings-rc
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#define PAGE 4096
#define PAGES 24
#define WORDS (PAGE / sizeof(uint32_t))

struct shared {
    uint32_t *pages;
};
static struct shared *shared;

/* Every second page: no stream. */
static uint32_t *page(int number)
{
    return shared->pages + (size_t)number * 2 * WORDS;
}

static void write_all(uint32_t value)
{
    for (int i = 0; i < PAGES; i++)
        page(i)[0] = page(i)[WORDS - 1] = value;
}

static void read_all(uint32_t value)
{
    for (int i = 0; i < PAGES; i++) {
        CHECK(*(volatile uint32_t *)page(i) == value);
        CHECK(*(volatile uint32_t *)(page(i) + WORDS - 1) == value);
    }
}

/* So many intervals, in which the others read everything or nothing.  Each leaves a word of its own in each page now and then. */
static uint32_t intervals(int me, uint32_t value, int count, int reads, int stores)
{
    int last = fsp_processors() - 1;
    for (int i = 0; i < count; i++) {
        value++;
        if (me == last)
            write_all(value);
        fsp_barrier_all();
        if (me != last && reads)
            read_all(value);
        if (me != last && stores && i % 7 == me % 7)
            for (int each = 0; each < PAGES; each++)
                page(each)[1 + me] = value;
        if (me != last && stores)
            for (int each = 0; each < PAGES; each++)
                CHECK(page(each)[1 + me] == 0 || page(each)[1 + me] + 14 > value);
        fsp_barrier_all();
    }
    return value;
}

static uint32_t in_phase(const char *name, int me, uint32_t value, int count, int reads)
{
    fsp_phase_begin(name);
    value = intervals(me, value, count, reads, 0);
    fsp_phase_end();
    return value;
}

static void act(void *argument)
{
    shared = argument; /* the same for all threads of a process */
    int me = fsp_processor();
    uint32_t value = intervals(me, 0, 75, 1, 0);
    value = in_phase("settled", me, value, 55, 1);
    value = intervals(me, value, 140, 0, 0); /* two views of a node may take turns in fetching anew */
    value = in_phase("forgotten", me, value, 30, 0);
    value = intervals(me, value, 40, 1, 1);
    intervals(me, value, 5, 0, 1);
}

int main(int argc, char **argv)
{
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    struct shared *made = fsp_malloc(sizeof *made);
    CHECK(made != NULL);
    made->pages = fsp_malloc_on(2 * PAGES * PAGE, fsp_nodes() - 1);
    CHECK(made->pages != NULL);
    CHECK(fsp_parallel(act, made) == FSP_OK);
    fsp_finalize();
    return 0;
}
