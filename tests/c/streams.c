/* Pages are read in streams, forwards and backwards, while other processors of the same process, of the same node and of other
 * nodes write and acquire: what is fetched ahead of a stream must never show an old value.
 *
 * Eight pages in a row belong to one of four mutexes, the next eight to the next: a stream over the pages of one runs into
 * those of another, which nobody holds, or somebody else just changed.  All pages of a mutex have the same number in them,
 * which grows by one with each update.
 *
 * run: -n 2
 * run: -n 2 --prefetch off
 * run: -n 3 --faults mprotect
 * run: -n 2 -t 3
 * run: -n 2 -p 2 -t 2 --faults mprotect
 * run: -n 2 -p 2 -t 2
 * run: -n 3 --transport tcp
 * run: -n 2 -t 2 --transport tcp
 * run: -n 2 -p 2 --transport tcp --faults mprotect
 * run: -n 3 -p 2 --protocol csm-ms
 * run: -n 4 --protocol csm-ms-mg
 * run: -n 3 -t 2 --protocol csm-none-mg --transport tcp
 * run: -n 2 -p 2 --protocol csm-adb
 * run: -n 3 -t 2 --protocol tmk
 * run: -n 4 --protocol tmk --transport tcp
 * run: -n 2 -p 2 --protocol strings-rc
 * run: -n 2 -p 2 --protocol strings-sc --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#define PAGE 4096
#define SETS 4
#define RUN 8       /* pages in a row of one set */
#define RUNS 6      /* such runs of each set */
#define ROUNDS 120

struct set {
    fsp_mutex_t mutex;
    char pad[PAGE - sizeof(fsp_mutex_t)];
};
struct shared {
    struct set *sets;
    unsigned char *pages;
    uint32_t *updates; /* by processor and set */
};
static struct shared *shared;

static uint32_t *word(int set, int index, int place)
{
    size_t page = (size_t)(index / RUN * SETS + set) * RUN + (size_t)(index % RUN);
    return (uint32_t *)(shared->pages + page * PAGE) + place;
}

static uint32_t random_of(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void read_all(int set, uint32_t newest, int backwards, int place)
{
    for (int i = 0; i < RUN * RUNS; i++)
        CHECK(*(volatile uint32_t *)word(set, backwards ? RUN * RUNS - 1 - i : i, place) == newest);
}

static void act(void *argument)
{
    shared = argument; /* the same for all threads of a process */
    int me = fsp_processor();
    uint32_t state = 12345u * (uint32_t)(me + 1), seen[SETS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0)
            fsp_barrier_all(); /* so that all are at work at once, however short this is */
        int set = (int)(random_of(&state) % SETS), place = (int)(random_of(&state) % (PAGE / sizeof(uint32_t)));
        fsp_mutex_lock(&shared->sets[set].mutex);
        uint32_t newest = *word(set, 0, place);
        CHECK(newest >= seen[set]);
        read_all(set, newest, random_of(&state) % 2, place);
        seen[set] = newest;
        if (random_of(&state) % 3 == 0) {
            for (int index = 0; index < RUN * RUNS; index++)
                for (int word_at = 0; word_at < (int)(PAGE / sizeof(uint32_t)); word_at++)
                    *word(set, index, word_at) = newest + 1;
            shared->updates[me * SETS + set]++;
        }
        fsp_mutex_unlock(&shared->sets[set].mutex);
    }
}

int main(int argc, char **argv)
{
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    struct shared *made = fsp_calloc(1, sizeof *made);
    made->sets = fsp_calloc(SETS, sizeof *made->sets);
    made->pages = fsp_calloc(SETS * RUN * RUNS, PAGE);
    made->updates = fsp_calloc((size_t)fsp_processors() * SETS, sizeof *made->updates);
    CHECK(fsp_parallel(act, made) == FSP_OK);
    for (int set = 0; set < SETS; set++) {
        uint32_t all = 0;
        for (int processor = 0; processor < fsp_processors(); processor++)
            all += shared->updates[processor * SETS + set];
        read_all(set, all, 0, 5);
    }
    fsp_finalize();
    return 0;
}
