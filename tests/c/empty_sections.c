/* A process writes many pages that another one reads, in several intervals, so that it keeps its rights to write them.  Then it locks and unlocks a
 * mutex and writes nothing: "empty".  What a critical section costs must not depend on what was written before it.
 *
 * run: -n 2
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#define PAGE 4096
#define PAGES 1024
#define SECTIONS 9

struct shared {
    char *pages;
    fsp_mutex_t mutex;
};

/* All have read the pages when it returns, so that nobody is alone with one. */
static void interval(const struct shared *shared, int me, char value)
{
    for (size_t page = 0; page < PAGES && me == 1; page++)
        shared->pages[page * PAGE] = value;
    fsp_barrier_all();
    for (size_t page = 0; page < PAGES; page++)
        CHECK(((volatile char *)shared->pages)[page * PAGE] == value);
    fsp_barrier_all();
}

static void act(void *argument)
{
    struct shared *shared = argument;
    int me = fsp_processor();
    for (char value = 1; value <= 3; value++)
        interval(shared, me, value);
    fsp_phase_begin("written");
    interval(shared, me, 4);
    fsp_phase_end();
    fsp_phase_begin("empty");
    for (int section = 0; section < SECTIONS && me == 1; section++) {
        CHECK(fsp_mutex_lock(&shared->mutex) == FSP_OK);
        CHECK(fsp_mutex_unlock(&shared->mutex) == FSP_OK);
    }
    fsp_phase_end();
    fsp_barrier_all();
}

int main(int argc, char **argv)
{
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    struct shared *made = fsp_malloc(sizeof *made);
    CHECK(made != NULL);
    *made = (struct shared){0};
    made->pages = fsp_malloc_on(PAGES * PAGE, 0);
    CHECK(made->pages != NULL);
    CHECK(fsp_parallel(act, made) == FSP_OK);
    fsp_finalize();
    return 0;
}
