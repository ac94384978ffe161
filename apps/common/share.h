/* Which part of the work is whose.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_SHARE_H
#define APPS_SHARE_H

#include <stddef.h>

typedef struct band {
    size_t first, end; /* [first, end) */
} band;

/* The part of 0..count-1 for one of `parts`; sizes differ by at most one, and a part may be empty. */
static inline band band_of(size_t count, unsigned part, unsigned parts)
{
    return (band){count * part / parts, count * (part + 1) / parts};
}

#endif
