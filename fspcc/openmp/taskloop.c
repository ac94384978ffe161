/* Loops whose iterations are tasks.  OpenMP 5.0, 2.10.2 (taskloop); GOMP_taskloop, GOMP_taskloop_ull.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tasks.h"

static void make_tasks(const struct fsp_omp_work *work, struct fsp_omp_range range, unsigned flags, unsigned long asked)
{
    uint64_t threads = (uint64_t)fsp_omp_here()->size;
    bool is_grain = flags & FSP_OMP_GRAINSIZE, is_strict = flags & FSP_OMP_STRICT;
    struct fsp_omp_division division = fsp_omp_divide(range.count, asked, is_grain, is_strict, threads);
    uint64_t first = 0;
    for (uint64_t i = 0; i < division.tasks; i++) {
        uint64_t after = first + division.each + (i < division.larger);
        long bounds[2] = {(long)fsp_omp_value(&range, first), (long)fsp_omp_value(&range, after)};
        fsp_omp_make_task(work, bounds, 2, !(flags & FSP_OMP_IF), flags & FSP_OMP_FINAL);
        first = after;
    }
}

static void run(const struct fsp_omp_work *work, struct fsp_omp_range range, unsigned flags, unsigned long asked)
{
    if (!(flags & FSP_OMP_NOGROUP))
        GOMP_taskgroup_start();
    make_tasks(work, range, flags, asked);
    if (!(flags & FSP_OMP_NOGROUP))
        GOMP_taskgroup_end();
}

void GOMP_taskloop(void (*function)(void *), void *data, void (*copy)(void *, void *), long bytes, long alignment,
    unsigned flags, unsigned long asked, int priority, long from, long to, long step);
void GOMP_taskloop(void (*function)(void *), void *data, void (*copy)(void *, void *), long bytes, long alignment,
    unsigned flags, unsigned long asked, int priority, long from, long to, long step)
{
    (void)priority;
    struct fsp_omp_work work = {function, copy, data, bytes, alignment};
    run(&work, fsp_omp_range_signed(from, to, step), flags, asked);
}

typedef unsigned long long ull;

void GOMP_taskloop_ull(void (*function)(void *), void *data, void (*copy)(void *, void *), long bytes, long alignment,
    unsigned flags, unsigned long asked, int priority, ull from, ull to, ull step);
void GOMP_taskloop_ull(void (*function)(void *), void *data, void (*copy)(void *, void *), long bytes, long alignment,
    unsigned flags, unsigned long asked, int priority, ull from, ull to, ull step)
{
    (void)priority;
    struct fsp_omp_work work = {function, copy, data, bytes, alignment};
    run(&work, fsp_omp_range_unsigned(flags & FSP_OMP_UP, from, to, step), flags, asked);
}
