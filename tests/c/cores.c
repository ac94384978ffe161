/* --cores one: all processors of a node stay on one core, different nodes on different cores as far as there are cores.
 *
 * run: -n 2 -p 2 -t 2 --cores one -- one
 * run: -n 2 -t 2 --cores one --transport tcp -- one
 * run: -n 2 -t 2 -- all
 * run: -n 2 -p 2 --cores all --transport tcp -- all
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

struct shared {
    int one;
    int core_of_node[64];
};

/* The cores that the calling thread may use, and the first of them. */
static int cores(int *first) {
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    for (*first = 0; !CPU_ISSET(*first, &set);)
        ++*first;
    return CPU_COUNT(&set);
}

static void look(void *argument) {
    struct shared *shared = argument;
    int first, count = cores(&first);
    if (shared->one)
        CHECK(count == 1 && sched_getcpu() == first);
    else
        CHECK(count == (int)sysconf(_SC_NPROCESSORS_ONLN) || count > 1);
    if (fsp_processor() % fsp_processors_per_node() == 0)
        shared->core_of_node[fsp_node()] = first;
    fsp_barrier_all();
    if (shared->one)
        CHECK(shared->core_of_node[fsp_node()] == first);
}

int main(int argc, char **argv) {
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    CHECK(argc == 2);
    struct shared *shared = fsp_calloc(1, sizeof *shared);
    shared->one = strcmp(argv[1], "one") == 0;
    fsp_parallel(look, shared);
    if (shared->one && sysconf(_SC_NPROCESSORS_ONLN) > 1)
        CHECK(fsp_nodes() == 1 || shared->core_of_node[0] != shared->core_of_node[1]);
    fsp_finalize();
    return 0;
}
