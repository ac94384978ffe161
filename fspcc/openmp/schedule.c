/* See schedule.h.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "schedule.h"

/* Whole steps that cover a distance. */
static uint64_t steps(uint64_t distance, uint64_t step)
{
    return distance == 0 || step == 0 ? 0 : (distance - 1) / step + 1;
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

struct fsp_omp_range fsp_omp_range_signed(int64_t first, int64_t end, int64_t step)
{
    uint64_t from = (uint64_t)first, to = (uint64_t)end, by = (uint64_t)step;
    uint64_t count = 0;
    if (step > 0 && first < end)
        count = steps(to - from, by);
    if (step < 0 && first > end)
        count = steps(from - to, -by);
    return (struct fsp_omp_range){from, by, to, count};
}

struct fsp_omp_range fsp_omp_range_unsigned(bool up, uint64_t first, uint64_t end, uint64_t step)
{
    uint64_t count = 0;
    if (up && first < end)
        count = steps(end - first, step);
    if (!up && first > end)
        count = steps(first - end, -step);
    return (struct fsp_omp_range){first, step, end, count};
}

uint64_t fsp_omp_value(const struct fsp_omp_range *range, uint64_t index)
{
    return index >= range->count ? range->end : range->first + index * range->step;
}

struct fsp_omp_chunk fsp_omp_chunk_static(uint64_t count, uint64_t size, uint64_t threads, uint64_t number)
{
    if (size == 0) {
        if (number >= threads)
            return (struct fsp_omp_chunk){count, 0};
        uint64_t each = count / threads, larger = count % threads;
        return (struct fsp_omp_chunk){number * each + least(number, larger), each + (number < larger)};
    }
    if (number >= steps(count, size))
        return (struct fsp_omp_chunk){count, 0};
    uint64_t first = number * size;
    return (struct fsp_omp_chunk){first, least(size, count - first)};
}

struct fsp_omp_chunk fsp_omp_chunk_taken(struct fsp_omp_schedule schedule, uint64_t count, uint64_t taken, uint64_t threads)
{
    if (taken >= count)
        return (struct fsp_omp_chunk){count, 0};
    uint64_t left = count - taken, size = schedule.chunk ? schedule.chunk : 1;
    if (schedule.kind == FSP_OMP_GUIDED && steps(left, threads) > size)
        size = steps(left, threads);
    return (struct fsp_omp_chunk){taken, least(size, left)};
}

uint32_t fsp_omp_step(uint64_t group, unsigned dimensions, const uint64_t *counts, const uint64_t *iteration)
{
    uint64_t step = iteration[0] % group;
    for (unsigned i = 1; i < dimensions; i++) {
        step = step * counts[i] + iteration[i];
        if (step >= UINT32_MAX - 1)
            return 0;
    }
    return step < UINT32_MAX - 1 ? (uint32_t)step + 1 : 0;
}

int fsp_omp_team_size(unsigned asked, int setting, int limit, bool may_be_active)
{
    if (!may_be_active)
        return 1;
    uint64_t size = least(asked ? asked : (unsigned)setting, (unsigned)limit);
    return size ? (int)size : 1;
}

struct fsp_omp_division fsp_omp_divide(uint64_t count, uint64_t asked, bool is_grain, bool is_strict, uint64_t threads)
{
    if (count == 0)
        return (struct fsp_omp_division){0, 0, 0};
    if (is_grain && is_strict) { /* the last may have fewer */
        uint64_t grain = asked ? asked : 1;
        return (struct fsp_omp_division){steps(count, grain), grain, 0};
    }
    uint64_t tasks = asked ? asked : 4 * threads;
    if (is_grain)
        tasks = asked ? count / asked : count;
    tasks = least(tasks ? tasks : 1, count);
    return (struct fsp_omp_division){tasks, count / tasks, count % tasks};
}
