/* What the peers' programs share.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef PEER_H
#define PEER_H

#include "../measure.h"

#define PAGE 4096

/* The number of repetitions: the program's only argument. */
static inline size_t rounds_of(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    return rounds > 0 ? rounds : 2000;
}

#endif
