/* The program around the factorisation: flags, the parallel run, checks.  lu.c and clu.c add where the tiles lie.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_LU_PROGRAM_H
#define APPS_LU_PROGRAM_H

#include "tiles.h"

#include "../common/options.h"

typedef struct layout {
    const char *name;    /* of the program */
    const char *summary;
    size_names sizes;
    /* Gives every tile its place in shared memory, and sets the leading dimension and the processor grid. */
    void (*place)(tiles *tiles);
} layout;

int lu_main(const layout *layout, int argc, char **argv);

#endif
