/* Worksharing loops: which thread gets which iterations.  OpenMP 5.0, 2.9.2 (loops), 2.8.1 (sections), 2.17.9 (ordered).
 *
 * What the threads of a team share about a loop is a *place*: how many iterations are taken, whose turn it is.  All threads
 * meet the same loops in the same order, so the n-th loop since the last barrier has place n, and nothing is agreed upon.
 * A place must be all zero when its loop begins: after a barrier the other half is used, and thread 0 clears this half before
 * it arrives at the next one, when no thread can be in its loops.  After the last place of a half the team meets, which
 * lets it begin the other half: a loop more than the specification counts on, but one that all threads meet alike.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

#include <finespun/atomic.h>
#include <finespun/memory.h>

enum { PLACES = 128 };

struct place {
    uint64_t taken;   /* iterations */
    uint64_t chunks;  /* that they were taken in */
    fsp_flag_t turns; /* ordered: chunks that are over, in their order */
    fsp_flag_t *flags; /* doacross: of groups */
    uint64_t groups;
    uint64_t unused[3];
};

static FSP_OMP_APART struct place places[2][PLACES];

static struct place *place_of(const struct fsp_omp_frame *frame)
{
    return &places[0][frame->loop.place];
}

/* ---- places ------------------------------------------------------------------------------------------------------- */

static int take_place(struct fsp_omp_frame *frame)
{
    if (frame->used == PLACES)
        fsp_omp_barrier(frame);
    return (int)(frame->epoch % 2 * PLACES) + frame->used++;
}

static void forget_flags(struct place *place)
{
    for (uint64_t i = 0; i < place->groups; i++)
        fsp_flag_reset(&place->flags[i]);
    fsp_free(place->flags);
    place->flags = NULL;
    place->groups = 0;
}

static void clear(struct place *half, int used, bool have_turns)
{
    for (int i = 0; i < used; i++) {
        half[i].taken = half[i].chunks = 0;
        if (have_turns)
            fsp_flag_reset(&half[i].turns);
        if (half[i].flags)
            forget_flags(&half[i]);
    }
}

void fsp_omp_places_at_barrier(struct fsp_omp_frame *frame)
{
    if (frame->number == 0)
        clear(places[(frame->epoch + 1) % 2], frame->used_before, frame->had_turns);
    frame->epoch++;
    frame->used_before = frame->used;
    frame->had_turns = frame->has_turns;
    frame->used = 0;
    frame->has_turns = false;
}

void fsp_omp_places_at_end(struct fsp_omp_frame *frame)
{
    clear(places[frame->epoch % 2], frame->used, frame->has_turns);
    clear(places[(frame->epoch + 1) % 2], frame->used_before, frame->had_turns);
}

fsp_flag_t *fsp_omp_place_flags(struct fsp_omp_frame *frame, uint64_t groups)
{
    if (frame->loop.place < 0)
        frame->loop.place = take_place(frame);
    struct place *place = place_of(frame);
    fsp_atomic_enter(&place->taken);
    if (!place->flags) {
        place->flags = fsp_calloc(groups, sizeof *place->flags);
        place->groups = groups;
    }
    fsp_flag_t *flags = place->flags;
    fsp_atomic_leave(&place->taken);
    return flags;
}

/* ---- loops -------------------------------------------------------------------------------------------------------- */

static bool is_dealt(const struct fsp_omp_loop *loop)
{
    return loop->schedule.kind == FSP_OMP_STATIC || loop->schedule.kind == FSP_OMP_AUTO;
}

void fsp_omp_loop_begin(
    struct fsp_omp_frame *frame, struct fsp_omp_range range, struct fsp_omp_schedule schedule, bool is_ordered)
{
    struct fsp_omp_loop *loop = &frame->loop;
    *loop = (struct fsp_omp_loop){.range = range, .schedule = schedule, .is_ordered = is_ordered, .place = -1};
    if (frame->size == 1)
        return;
    if (is_dealt(loop))
        loop->number = (uint64_t)frame->number;
    if (is_ordered || !is_dealt(loop))
        loop->place = take_place(frame);
    frame->has_turns |= is_ordered;
}

/* One thread after the other takes iterations, from a counter that all nodes see. */
static struct fsp_omp_chunk take(struct fsp_omp_frame *frame)
{
    struct fsp_omp_loop *loop = &frame->loop;
    struct place *place = place_of(frame);
    fsp_atomic_enter(&place->taken);
    struct fsp_omp_chunk chunk =
        fsp_omp_chunk_taken(loop->schedule, loop->range.count, place->taken, (uint64_t)frame->size);
    if (chunk.count) {
        place->taken += chunk.count;
        loop->number = place->chunks++;
    }
    fsp_atomic_leave(&place->taken);
    return chunk;
}

/* The team has one thread. */
static struct fsp_omp_chunk take_all(struct fsp_omp_loop *loop)
{
    uint64_t count = loop->number++ == 0 ? loop->range.count : 0;
    return (struct fsp_omp_chunk){0, count};
}

static struct fsp_omp_chunk deal(struct fsp_omp_frame *frame)
{
    struct fsp_omp_loop *loop = &frame->loop;
    uint64_t threads = (uint64_t)frame->size;
    struct fsp_omp_chunk chunk = fsp_omp_chunk_static(loop->range.count, loop->schedule.chunk, threads, loop->number);
    loop->number += threads;
    return chunk;
}

static uint64_t number_of_chunk(const struct fsp_omp_frame *frame)
{
    return is_dealt(&frame->loop) ? frame->loop.number - (uint64_t)frame->size : frame->loop.number;
}

/* Waits until the chunks before this thread's are over. */
static void await_turn(struct fsp_omp_frame *frame)
{
    fsp_flag_wait(&place_of(frame)->turns, (uint32_t)number_of_chunk(frame));
}

static void pass_turn(struct fsp_omp_frame *frame)
{
    if (!frame->loop.has_chunk)
        return;
    await_turn(frame);
    fsp_flag_set(&place_of(frame)->turns, (uint32_t)number_of_chunk(frame) + 1);
    frame->loop.has_chunk = false;
}

/* The group is over, whether each of its iterations has said so or not. */
static void pass_steps(struct fsp_omp_loop *loop)
{
    if (loop->steps.own)
        fsp_flag_set(&loop->steps.flags[loop->steps.own - 1], UINT32_MAX);
    loop->steps.own = 0;
}

bool fsp_omp_loop_next(struct fsp_omp_frame *frame, uint64_t *first, uint64_t *end)
{
    struct fsp_omp_loop *loop = &frame->loop;
    pass_turn(frame);
    pass_steps(loop);
    struct fsp_omp_chunk chunk = frame->size == 1 ? take_all(loop) : is_dealt(loop) ? deal(frame) : take(frame);
    if (chunk.count == 0)
        return false;
    loop->has_chunk = loop->is_ordered && frame->size > 1;
    if (loop->steps.flags)
        loop->steps.own = chunk.first / loop->steps.group + 1;
    *first = fsp_omp_value(&loop->range, chunk.first);
    *end = fsp_omp_value(&loop->range, chunk.first + chunk.count);
    return true;
}

/* ---- ordered ------------------------------------------------------------------------------------------------------ */

void GOMP_ordered_start(void);
void GOMP_ordered_start(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    if (frame->loop.has_chunk)
        await_turn(frame);
}

void GOMP_ordered_end(void);
void GOMP_ordered_end(void)
{
}
