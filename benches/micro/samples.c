/* Samples of one case: their minimum and median.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

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

void samples_report(samples *samples, const char *name, size_t each)
{
    if (samples->count > 0)
        report(name, samples->nanoseconds, samples->count, (double)each);
    free(samples);
}
