/* Shared memory is gone after fsp_finalize: to touch it is an error that is told.
 *
 *     after_end load|store|exit|nothing
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../check.h"

static volatile int *shared;

static void at_exit(void)
{
    shared[1] = 3;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *what = argv[1];
    if (strcmp(what, "exit") == 0)
        atexit(at_exit);
    CHECK(fsp_init_spmd(&argc, &argv) == FSP_OK);
    shared = fsp_malloc_all(100000);
    shared[fsp_process()] = 1;
    fsp_barrier_all();
    fsp_finalize();
    CHECK(!fsp_is_shared((void *)shared));
    if (strcmp(what, "load") == 0)
        return shared[0];
    if (strcmp(what, "store") == 0)
        shared[0] = 2;
    return 0;
}
