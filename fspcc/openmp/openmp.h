/* OpenMP on the processors of all nodes: what fspcc -fopenmp links in place of libgomp.
 *
 * The compiler turns each construct into calls of the names GOMP_*, its documented binary interface (gcc's manual of libgomp, "The
 * libgomp ABI"); what a call must do is the OpenMP specification's to say. Each file names the sections it follows.
 *
 *   team.c         the pool of threads; fork, join, barrier
 *   loops.c        loops, and sections as loops over their numbers; ordered; entry points of both in entries.c
 *   doacross.c     loops whose iterations wait for each other
 *   schedule.c     which iterations come next: arithmetic alone
 *   exclusion.c    single, critical, atomic
 *   locks.c        omp_lock_t, omp_nest_lock_t
 *   tasks.c        tasks, taskwait, taskgroup; taskloop.c: loops of tasks
 *   environment.c  the variables OMP_*; query.c: the calls omp_*
 *
 * Globals here are shared memory, as the program's own are; thread-local ones are not.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FSP_OPENMP_H
#define FSP_OPENMP_H

#include "schedule.h"

#include <finespun/base.h>
#include <finespun/sync.h>

#include <stdbool.h>
#include <stdint.h>

/* Pages apart: what one thread writes while the others read something else. */
#define FSP_OMP_APART __attribute__((aligned(4096)))

/* Most threads of a team. */
enum { FSP_OMP_THREADS_MAX = 1024 };

/* Internal control variables that each task has (OpenMP 5.0, 2.5). */
struct fsp_omp_settings {
    int threads; /* of the next team */
    int levels;  /* active ones, at most */
    bool dynamic;
    struct fsp_omp_schedule schedule; /* of schedule(runtime) */
};

/* Those of the whole program. */
struct fsp_omp_program {
    struct fsp_omp_settings initial;
    int thread_limit;
    uint64_t stack_bytes; /* 0: the usual size */
    bool is_ready;
};
extern struct fsp_omp_program fsp_omp_program;

/* How far the iterations of a loop are whose iterations wait for each other; see doacross.c. */
enum { FSP_OMP_DIMENSIONS = 8 };
struct fsp_omp_steps {
    fsp_flag_t *flags; /* one for each group; NULL: not such a loop */
    uint64_t group;    /* outer iterations of a group, which are a chunk */
    unsigned dimensions;
    uint64_t counts[FSP_OMP_DIMENSIONS];
    uint64_t own; /* the group that this thread is in, plus one */
};

/* A worksharing loop, as one thread of its team sees it. */
struct fsp_omp_loop {
    struct fsp_omp_range range;
    struct fsp_omp_schedule schedule;
    bool is_ordered;
    int place;       /* of what the team shares about it; -1: nothing */
    uint64_t number; /* static: of the thread's next chunk; ordered: of its chunk, in the order of iterations */
    bool has_chunk;  /* ordered: it has one, whose turn it has not passed on */
    struct fsp_omp_steps steps;
};

/* What a thread is at the moment: a member of a team. Nested teams have one thread, and their frames a chain. */
struct fsp_omp_frame {
    struct fsp_omp_frame *outer;
    int number, size;
    int level, active;
    struct fsp_omp_settings settings;
    /* Places of loops, see loops.c: used since the last barrier, and between that and the one before. */
    int used, used_before;
    unsigned epoch;
    bool has_turns, had_turns;
    struct fsp_omp_loop loop;
    struct fsp_omp_running *running; /* the task, see tasks.c; NULL: the implicit one, and no task was put off yet */
};

/* The calling thread's. */
struct fsp_omp_frame *fsp_omp_here(void);

/* ---- team.c ---- */

/* A loop that a team begins with (combined constructs). */
struct fsp_omp_first {
    bool is_loop;
    struct fsp_omp_range range;
    struct fsp_omp_schedule schedule;
};
void fsp_omp_parallel(void (*function)(void *), void *data, unsigned threads, const struct fsp_omp_first *first);
/* All threads of the caller's team have arrived, and all tasks made before have ended. */
void fsp_omp_barrier(struct fsp_omp_frame *frame);
/* The same without a look at tasks and places. */
void fsp_omp_meet(int size);

/* ---- loops.c ---- */

void fsp_omp_loop_begin(struct fsp_omp_frame *, struct fsp_omp_range, struct fsp_omp_schedule, bool is_ordered);
/* The thread's next iterations; false: there are none. */
bool fsp_omp_loop_next(struct fsp_omp_frame *, uint64_t *first, uint64_t *end);
/* Ahead of a barrier that all threads of the team pass, and after the team's last. */
void fsp_omp_places_at_barrier(struct fsp_omp_frame *);
void fsp_omp_places_at_end(struct fsp_omp_frame *);

/* What the team shares about a loop that has begun, for doacross.c: the flags of its groups, made by the first that asks. */
fsp_flag_t *fsp_omp_place_flags(struct fsp_omp_frame *, uint64_t groups);

/* ---- tasks.c: linked only into a program that has tasks ---- */

void fsp_omp_tasks_barrier(struct fsp_omp_frame *) __attribute__((weak));

#endif
