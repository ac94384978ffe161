/* The pool of threads, and what a parallel region does with them: fork, join, barrier.
 * OpenMP 5.0, 2.6 (parallel), 2.17.2 (barrier); GOMP_parallel, GOMP_barrier, GOMP_teams_reg.
 *
 * The first thread that meets a region of several threads owns the pool, for good; regions of other threads have one thread, and
 * so have regions inside regions.  Thread 0 of a team is the owner.  The others persist, so that their thread-local
 * variables do; between regions they wait.
 *
 *   owner    writes `pool`; release ----- fork ----->  its part ---- join ----->  acquire; goes on
 *   others   wait ----------------------- fork; acquire; their part; release; join; wait
 *
 * Where the pool's threads are exactly the processors of the job, fork, join and barrier are the barrier of all, which is collected in
 * each node first.  Else the fork is a flag, and the others are barriers with a count.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

#include <finespun/program.h>

#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>

int fsp_pthread_attr_setnode_np(pthread_attr_t *attributes, int node);

/* What the pool does after a fork. */
enum command { RUN, MUSTER };

/* Written by the owner between join and fork. */
static FSP_OMP_APART struct {
    enum command command;
    int threads; /* of the pool, the owner among them */
    uint32_t forks;
    uint32_t muster; /* the fork for which new threads wait first */
    void (*function)(void *);
    void *data;
    int size;
    int level, active;
    struct fsp_omp_settings settings;
    struct fsp_omp_first first;
} pool;

static FSP_OMP_APART struct {
    fsp_mutex_t ownership;
    fsp_flag_t fork;
    fsp_barrier_t join, barrier;
} meetings;

/* Written at a muster: the processor that each thread of the pool is, or -1. */
static FSP_OMP_APART int16_t processor_of[FSP_OMP_THREADS_MAX];

static _Thread_local struct fsp_omp_frame initial;
static _Thread_local struct fsp_omp_frame *here;

/* The threads of the pool are the processors of the job. */
static _Thread_local bool by_processors;

/* Does this thread own the pool? */
static _Thread_local enum { NOT_ASKED, OWNS, OWNS_NOT } ownership;

struct fsp_omp_frame *fsp_omp_here(void)
{
    if (!here) {
        initial.size = 1;
        initial.settings = fsp_omp_program.initial;
        here = &initial;
    }
    return here;
}

/* ---- the pool ----------------------------------------------------------------------------------------------------- */

static bool owns_pool(void)
{
    if (ownership == NOT_ASKED) /* a mutex that is never unlocked */
        ownership = fsp_program_runs() && fsp_mutex_trylock(&meetings.ownership) == FSP_OK ? OWNS : OWNS_NOT;
    return ownership == OWNS;
}

static bool are_the_processors(void)
{
    static _Thread_local bool seen[FSP_OMP_THREADS_MAX];
    int processors = fsp_processors();
    if (pool.threads != processors)
        return false;
    for (int i = 0; i < processors; i++)
        seen[i] = false;
    for (int i = 0; i < processors; i++) {
        if (processor_of[i] < 0 || seen[processor_of[i]])
            return false;
        seen[processor_of[i]] = true;
    }
    return true;
}

/* All threads of the pool tell where they run, and find out how they meet from now on. */
static void muster(int number)
{
    processor_of[number] = (int16_t)fsp_program_processor();
    fsp_barrier_wait(&meetings.join, (unsigned)pool.threads);
    by_processors = are_the_processors();
}

static void fork_pool(void)
{
    pool.forks++;
    if (by_processors)
        fsp_barrier_all();
    else
        fsp_flag_set(&meetings.fork, pool.forks);
}

static void await_fork(uint32_t *forks)
{
    ++*forks;
    if (by_processors)
        fsp_barrier_all();
    else
        fsp_flag_wait(&meetings.fork, *forks);
}

static void join_pool(void)
{
    if (by_processors)
        fsp_barrier_all();
    else
        fsp_barrier_wait(&meetings.join, (unsigned)pool.threads);
}

/* One thread's part of the region that the pool is to run. */
static void run_part(struct fsp_omp_frame *frame, int number)
{
    *frame = (struct fsp_omp_frame){
        .outer = frame->outer,
        .number = number,
        .size = pool.size,
        .level = pool.level,
        .active = pool.active,
        .settings = pool.settings,
    };
    if (pool.first.is_loop)
        fsp_omp_loop_begin(frame, pool.first.range, pool.first.schedule, false);
    pool.function(pool.data);
    if (fsp_omp_tasks_barrier)
        fsp_omp_tasks_barrier(frame);
}

/* A thread of the pool, to the end of the program. */
static void *serve(void *argument)
{
    int number = (int)(intptr_t)argument;
    uint32_t forks = pool.muster;
    here = &initial;
    fsp_flag_wait(&meetings.fork, forks);
    for (;;) {
        if (pool.command == MUSTER) {
            muster(number);
        } else {
            if (number < pool.size) {
                run_part(&initial, number);
                if (__fpending(stdout)) /* half a line */
                    fflush(stdout);
            }
            join_pool();
        }
        await_fork(&forks);
    }
    return NULL;
}

/* Thread i of as many as there are processors runs on the node of processor i. */
static bool make_thread(int number)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (fsp_omp_program.stack_bytes)
        pthread_attr_setstacksize(&attributes, fsp_omp_program.stack_bytes);
    fsp_pthread_attr_setnode_np(&attributes, number % fsp_processors() / fsp_processors_per_node());
    int error = pthread_create(&thread, &attributes, serve, (void *)(intptr_t)number);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

/* Makes threads until there are so many, or no more can be made. */
static void grow(int wanted)
{
    int threads = pool.threads ? pool.threads : 1;
    if (threads >= wanted)
        return;
    bool others_meet_at_barrier = by_processors;
    pool.muster = ++pool.forks;
    while (threads < wanted && make_thread(threads))
        threads++;
    pool.command = MUSTER;
    pool.threads = threads;
    if (others_meet_at_barrier)
        fsp_barrier_all();
    fsp_flag_set(&meetings.fork, pool.muster);
    muster(0);
}

/* ---- regions ------------------------------------------------------------------------------------------------------ */

static void run_alone(struct fsp_omp_frame *frame, void (*function)(void *), void *data, const struct fsp_omp_first *first)
{
    if (first->is_loop)
        fsp_omp_loop_begin(frame, first->range, first->schedule, false);
    function(data);
}

static void run_together(struct fsp_omp_frame *frame, void (*function)(void *), void *data, const struct fsp_omp_first *first)
{
    pool.command = RUN;
    pool.function = function;
    pool.data = data;
    pool.size = frame->size;
    pool.level = frame->level;
    pool.active = frame->active;
    pool.settings = frame->settings;
    pool.first = *first;
    fork_pool();
    run_part(frame, 0);
    join_pool();
    fsp_omp_places_at_end(frame);
}

void fsp_omp_parallel(void (*function)(void *), void *data, unsigned threads, const struct fsp_omp_first *first)
{
    struct fsp_omp_frame *outer = fsp_omp_here();
    bool may = outer->active == 0 && outer->settings.levels > 0 && fsp_omp_program.is_ready;
    int size = fsp_omp_team_size(threads, outer->settings.threads, fsp_omp_program.thread_limit, may);
    if (size > 1 && !owns_pool())
        size = 1;
    if (size > 1) {
        grow(size);
        size = size < pool.threads ? size : pool.threads;
    }
    struct fsp_omp_frame frame = {
        .outer = outer,
        .size = size,
        .level = outer->level + 1,
        .active = outer->active + (size > 1),
        .settings = outer->settings,
    };
    here = &frame;
    if (size == 1)
        run_alone(&frame, function, data, first);
    else
        run_together(&frame, function, data, first);
    here = outer;
}

/* ---- barrier ------------------------------------------------------------------------------------------------------ */

void fsp_omp_meet(int size)
{
    if (by_processors && size == pool.threads)
        fsp_barrier_all();
    else
        fsp_barrier_wait(&meetings.barrier, (unsigned)size);
}

void fsp_omp_barrier(struct fsp_omp_frame *frame)
{
    if (frame->size == 1)
        return;
    fsp_omp_places_at_barrier(frame);
    if (fsp_omp_tasks_barrier)
        fsp_omp_tasks_barrier(frame);
    else
        fsp_omp_meet(frame->size);
}
