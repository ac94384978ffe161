/* Loops whose iterations wait for each other: ordered(n), depend(source), depend(sink).  OpenMP 5.0, 2.17.9 and 2.17.11;
 * GOMP_loop_doacross_*_start, GOMP_doacross_post, GOMP_doacross_wait.
 *
 * The iterations of a chunk run one after the other, so a flag for each chunk says how far it is: the place of the last iteration
 * that has posted.  All chunks have the same size, so that an iteration's number says which chunk it is in.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

#include <stdarg.h>

typedef unsigned long long ull;

_Static_assert(sizeof(long) == 8 && sizeof(ull) == 8, "counts of both are given as 64 bits");

static bool begin(unsigned dimensions, const uint64_t *counts, struct fsp_omp_schedule schedule, uint64_t *first, uint64_t *end)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    uint64_t threads = (uint64_t)frame->size, count = counts[0];
    if (dimensions > FSP_OMP_DIMENSIONS)
        fsp_abort(1, "OpenMP: ordered(n) of more than 8 loops is not served");
    bool is_dynamic = schedule.kind == FSP_OMP_DYNAMIC || schedule.kind == FSP_OMP_GUIDED;
    uint64_t group = schedule.chunk ? schedule.chunk : is_dynamic ? 1 : count / threads + (count % threads != 0);
    schedule = (struct fsp_omp_schedule){is_dynamic ? FSP_OMP_DYNAMIC : FSP_OMP_STATIC, group};
    fsp_omp_loop_begin(frame, fsp_omp_range_unsigned(true, 0, count, 1), schedule, false);
    if (threads > 1 && count > 0) {
        struct fsp_omp_steps *steps = &frame->loop.steps;
        steps->group = group;
        steps->dimensions = dimensions;
        for (unsigned i = 0; i < dimensions; i++)
            steps->counts[i] = counts[i];
        steps->flags = fsp_omp_place_flags(frame, (count - 1) / group + 1);
    }
    return fsp_omp_loop_next(frame, first, end);
}

static uint32_t step_of(const struct fsp_omp_steps *steps, const uint64_t *iteration)
{
    uint32_t step = fsp_omp_step(steps->group, steps->dimensions, steps->counts, iteration);
    if (step == 0)
        fsp_abort(1, "OpenMP: a chunk of a loop with ordered(n) has 2^32 iterations or more: give it a smaller chunk size");
    return step;
}

static void post(const uint64_t *iteration)
{
    const struct fsp_omp_steps *steps = &fsp_omp_here()->loop.steps;
    if (steps->flags)
        fsp_flag_set(&steps->flags[iteration[0] / steps->group], step_of(steps, iteration));
}

static void await(uint64_t first, va_list others)
{
    const struct fsp_omp_steps *steps = &fsp_omp_here()->loop.steps;
    uint64_t iteration[FSP_OMP_DIMENSIONS] = {first};
    if (!steps->flags)
        return;
    for (unsigned i = 1; i < steps->dimensions; i++)
        iteration[i] = va_arg(others, uint64_t);
    uint64_t group = first / steps->group;
    if (group + 1 != steps->own) /* else this thread has run it */
        fsp_flag_wait(&steps->flags[group], step_of(steps, iteration));
}

#define ENTRIES(loop, doacross, type)                                                                              \
    void doacross##_post(type *iteration);                                                                         \
    void doacross##_post(type *iteration)                                                                          \
    {                                                                                                              \
        post((const uint64_t *)iteration);                                                                         \
    }                                                                                                              \
    void doacross##_wait(type first, ...);                                                                         \
    void doacross##_wait(type first, ...)                                                                          \
    {                                                                                                              \
        va_list others;                                                                                            \
        va_start(others, first);                                                                                   \
        await((uint64_t)first, others);                                                                            \
        va_end(others);                                                                                            \
    }                                                                                                              \
    START(loop, static, FSP_OMP_STATIC, type)                                                                      \
    START(loop, dynamic, FSP_OMP_DYNAMIC, type)                                                                    \
    START(loop, guided, FSP_OMP_GUIDED, type)                                                                      \
    bool loop##_runtime_start(unsigned dimensions, type *counts, type *first, type *end);                          \
    bool loop##_runtime_start(unsigned dimensions, type *counts, type *first, type *end)                           \
    {                                                                                                              \
        struct fsp_omp_schedule schedule = fsp_omp_here()->settings.schedule;                                      \
        return begin(dimensions, (const uint64_t *)counts, schedule, (uint64_t *)first, (uint64_t *)end);          \
    }

#define START(loop, name, kind, type)                                                                              \
    bool loop##_##name##_start(unsigned dimensions, type *counts, type chunk, type *first, type *end);             \
    bool loop##_##name##_start(unsigned dimensions, type *counts, type chunk, type *first, type *end)              \
    {                                                                                                              \
        struct fsp_omp_schedule schedule = {kind, (uint64_t)chunk};                                                \
        return begin(dimensions, (const uint64_t *)counts, schedule, (uint64_t *)first, (uint64_t *)end);          \
    }

ENTRIES(GOMP_loop_doacross, GOMP_doacross, long)
ENTRIES(GOMP_loop_ull_doacross, GOMP_doacross_ull, ull)
