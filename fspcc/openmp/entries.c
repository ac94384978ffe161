/* The entry points of regions, loops and sections: each is a call of team.c or loops.c.
 * gcc's manual of libgomp, "Implementing PARALLEL construct", "FOR construct", "SECTIONS construct".
 *
 * Iterations of signed and of unsigned loops are given as 64 bits that wrap, so one kind of `next` serves both.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

typedef unsigned long long ull;
typedef void body(void *);

static const struct fsp_omp_first nothing;

void GOMP_parallel(body *function, void *data, unsigned threads, unsigned flags);
void GOMP_parallel(body *function, void *data, unsigned threads, unsigned flags)
{
    (void)flags; /* where threads are bound */
    fsp_omp_parallel(function, data, threads, &nothing);
}

/* A league of teams has one team here. */
void GOMP_teams_reg(body *function, void *data, unsigned teams, unsigned limit, unsigned flags);
void GOMP_teams_reg(body *function, void *data, unsigned teams, unsigned limit, unsigned flags)
{
    (void)teams, (void)limit, (void)flags;
    function(data);
}

void GOMP_barrier(void);
void GOMP_barrier(void)
{
    fsp_omp_barrier(fsp_omp_here());
}

/* ---- schedules ---------------------------------------------------------------------------------------------------- */

static struct fsp_omp_schedule with(enum fsp_omp_kind kind, uint64_t chunk)
{
    return (struct fsp_omp_schedule){kind, chunk};
}

/* schedule(runtime): the setting of the task that meets the loop. */
static struct fsp_omp_schedule at_run_time(void)
{
    return fsp_omp_here()->settings.schedule;
}

/* ---- loops -------------------------------------------------------------------------------------------------------- */

static bool begin(struct fsp_omp_range range, struct fsp_omp_schedule schedule, bool is_ordered, void *first, void *end)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    fsp_omp_loop_begin(frame, range, schedule, is_ordered);
    return fsp_omp_loop_next(frame, first, end);
}

static void begin_region(
    body *function, void *data, unsigned threads, struct fsp_omp_range range, struct fsp_omp_schedule schedule)
{
    struct fsp_omp_first first = {true, range, schedule};
    fsp_omp_parallel(function, data, threads, &first);
}

#define NEXT(name, type)                                                                                           \
    bool GOMP_##name##_next(type *first, type *end);                                                               \
    bool GOMP_##name##_next(type *first, type *end)                                                                \
    {                                                                                                              \
        return fsp_omp_loop_next(fsp_omp_here(), (uint64_t *)first, (uint64_t *)end);                              \
    }

/* With a chunk size. */
#define LOOP(name, kind, is_ordered)                                                                               \
    bool GOMP_loop_##name##_start(long from, long to, long step, long chunk, long *first, long *end);              \
    bool GOMP_loop_##name##_start(long from, long to, long step, long chunk, long *first, long *end)               \
    {                                                                                                              \
        return begin(fsp_omp_range_signed(from, to, step), with(kind, (uint64_t)chunk), is_ordered, first, end);   \
    }                                                                                                              \
    NEXT(loop_##name, long)                                                                                        \
    bool GOMP_loop_ull_##name##_start(bool up, ull from, ull to, ull step, ull chunk, ull *first, ull *end);       \
    bool GOMP_loop_ull_##name##_start(bool up, ull from, ull to, ull step, ull chunk, ull *first, ull *end)        \
    {                                                                                                              \
        return begin(fsp_omp_range_unsigned(up, from, to, step), with(kind, chunk), is_ordered, first, end);       \
    }                                                                                                              \
    NEXT(loop_ull_##name, ull)

/* schedule(runtime) */
#define LOOP_RUNTIME(name, is_ordered)                                                                             \
    bool GOMP_loop_##name##_start(long from, long to, long step, long *first, long *end);                          \
    bool GOMP_loop_##name##_start(long from, long to, long step, long *first, long *end)                           \
    {                                                                                                              \
        return begin(fsp_omp_range_signed(from, to, step), at_run_time(), is_ordered, first, end);                 \
    }                                                                                                              \
    NEXT(loop_##name, long)                                                                                        \
    bool GOMP_loop_ull_##name##_start(bool up, ull from, ull to, ull step, ull *first, ull *end);                  \
    bool GOMP_loop_ull_##name##_start(bool up, ull from, ull to, ull step, ull *first, ull *end)                   \
    {                                                                                                              \
        return begin(fsp_omp_range_unsigned(up, from, to, step), at_run_time(), is_ordered, first, end);           \
    }                                                                                                              \
    NEXT(loop_ull_##name, ull)

/* A region that is a loop. */
#define REGION(name, kind)                                                                                         \
    void GOMP_parallel_loop_##name(                                                                                \
        body *function, void *data, unsigned threads, long from, long to, long step, long chunk, unsigned flags);  \
    void GOMP_parallel_loop_##name(                                                                                \
        body *function, void *data, unsigned threads, long from, long to, long step, long chunk, unsigned flags)   \
    {                                                                                                              \
        (void)flags;                                                                                               \
        begin_region(function, data, threads, fsp_omp_range_signed(from, to, step), with(kind, (uint64_t)chunk));  \
    }

#define REGION_RUNTIME(name)                                                                                       \
    void GOMP_parallel_loop_##name(                                                                                \
        body *function, void *data, unsigned threads, long from, long to, long step, unsigned flags);              \
    void GOMP_parallel_loop_##name(                                                                                \
        body *function, void *data, unsigned threads, long from, long to, long step, unsigned flags)               \
    {                                                                                                              \
        (void)flags;                                                                                               \
        begin_region(function, data, threads, fsp_omp_range_signed(from, to, step), at_run_time());                \
    }

LOOP(static, FSP_OMP_STATIC, false)
LOOP(dynamic, FSP_OMP_DYNAMIC, false)
LOOP(guided, FSP_OMP_GUIDED, false)
LOOP(nonmonotonic_dynamic, FSP_OMP_DYNAMIC, false)
LOOP(nonmonotonic_guided, FSP_OMP_GUIDED, false)
LOOP(ordered_static, FSP_OMP_STATIC, true)
LOOP(ordered_dynamic, FSP_OMP_DYNAMIC, true)
LOOP(ordered_guided, FSP_OMP_GUIDED, true)
LOOP_RUNTIME(runtime, false)
LOOP_RUNTIME(nonmonotonic_runtime, false)
LOOP_RUNTIME(maybe_nonmonotonic_runtime, false)
LOOP_RUNTIME(ordered_runtime, true)
REGION(static, FSP_OMP_STATIC)
REGION(dynamic, FSP_OMP_DYNAMIC)
REGION(guided, FSP_OMP_GUIDED)
REGION(nonmonotonic_dynamic, FSP_OMP_DYNAMIC)
REGION(nonmonotonic_guided, FSP_OMP_GUIDED)
REGION_RUNTIME(runtime)
REGION_RUNTIME(nonmonotonic_runtime)
REGION_RUNTIME(maybe_nonmonotonic_runtime)

void GOMP_loop_end(void);
void GOMP_loop_end(void)
{
    fsp_omp_barrier(fsp_omp_here());
}

void GOMP_loop_end_nowait(void);
void GOMP_loop_end_nowait(void)
{
}

/* ---- sections ----------------------------------------------------------------------------------------------------- */

/* A loop over their numbers, from 1.  When each thread has one at most, nothing is to be agreed upon. */
static struct fsp_omp_range numbers(unsigned count)
{
    return fsp_omp_range_signed(1, (int64_t)count + 1, 1);
}

static struct fsp_omp_schedule for_sections(unsigned count, int size)
{
    return with(count <= (unsigned)size ? FSP_OMP_STATIC : FSP_OMP_DYNAMIC, 1);
}

unsigned GOMP_sections_next(void);
unsigned GOMP_sections_next(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    uint64_t first, end;
    if (frame->size > 1)
        return fsp_omp_loop_next(frame, &first, &end) ? (unsigned)first : 0;
    return frame->loop.number < frame->loop.range.count ? (unsigned)++frame->loop.number : 0;
}

unsigned GOMP_sections_start(unsigned count);
unsigned GOMP_sections_start(unsigned count)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    fsp_omp_loop_begin(frame, numbers(count), for_sections(count, frame->size), false);
    return GOMP_sections_next();
}

void GOMP_parallel_sections(body *function, void *data, unsigned threads, unsigned count, unsigned flags);
void GOMP_parallel_sections(body *function, void *data, unsigned threads, unsigned count, unsigned flags)
{
    (void)flags;
    begin_region(function, data, threads, numbers(count), with(FSP_OMP_DYNAMIC, 1));
}

void GOMP_sections_end(void);
void GOMP_sections_end(void)
{
    fsp_omp_barrier(fsp_omp_here());
}

void GOMP_sections_end_nowait(void);
void GOMP_sections_end_nowait(void)
{
}
