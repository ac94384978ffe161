/* Samples of one case: their minimum and median.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../apps/common/report.h"

struct samples {
    size_t count, room;
    uint64_t nanoseconds[];
};

samples *samples_new(size_t room)
{
    samples *made = private_alloc("micro", sizeof(samples) + room * sizeof(uint64_t));
    made->count = 0;
    made->room = room;
    /* Touched now: the first store must not fault while somebody looks at the clock. */
    for (size_t i = 0; i < room; i++)
        made->nanoseconds[i] = 0;
    return made;
}

void sample(samples *samples, uint64_t nanoseconds)
{
    if (samples->count < samples->room)
        samples->nanoseconds[samples->count++] = nanoseconds;
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

void samples_report(samples *samples, const char *name, size_t each)
{
    size_t count = samples->count;
    if (count > 0) {
        qsort(samples->nanoseconds, count, sizeof(uint64_t), by_size);
        double least = (double)samples->nanoseconds[0], median = (double)samples->nanoseconds[count / 2];
        report_line("bench", "%s ops %zu min %.1f median %.1f", name, count * each, least / (double)each,
                    median / (double)each);
    }
    free(samples);
}
