/* Tasks: put off into one queue of the team, and run by whichever thread waits.
 * OpenMP 5.0, 2.10 (tasks), 2.17.5 (taskwait), 2.17.6 (taskgroup), 2.10.6 (scheduling); GOMP_task and its kin.
 *
 * Between nodes a task costs the queue's mutex twice and two pages, so only a few are put off: when there are enough for all, a
 * task is run at once by the thread that makes it, which costs nothing.  Whether there are enough is looked up at most every
 * LOOK_NS.  A task with dependences is run at once too: its predecessors have then ended, as tasks of the same parent.
 *
 *   task      in the heap from the time it is put off; what it is a child of is `of`: how many children it has, its group
 *   running   on the stack of the thread that runs a task; has a `children` in the heap once a child is put off
 *
 * While a thread waits for children it runs children of the same task only; at a barrier it runs any (2.10.6, constraint 2).
 * All counts are under the queue's mutex.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tasks.h"

#include <finespun/memory.h>

#include <alloca.h>
#include <string.h>
#include <time.h>

enum { WAITING_FOR_EACH = 4, LOOK_NS = 20000 };

/* Tasks that a thread waits for: the children of one, or a group. */
struct counted {
    fsp_cond_t over;
    int tasks;    /* put off and not ended */
    int waits;    /* the thread that waits for them */
    int holders;  /* who may still look here */
};

struct group {
    struct group *outer;
    struct counted *tasks; /* NULL: none was put off */
};

struct task {
    struct task *next;
    struct fsp_omp_work work;
    struct counted *siblings, *group;
    bool is_final;
};

struct fsp_omp_running {
    struct fsp_omp_running *outer; /* what the thread has put aside for it */
    struct counted *children;      /* NULL: none was put off */
    struct group *group;           /* the innermost that new tasks belong to */
    bool is_final;
};

static FSP_OMP_APART struct {
    fsp_mutex_t mutex;
    fsp_cond_t changed; /* for those at the barrier: there is a task, or all are over */
    struct task *first, *last;
    int queued, unfinished;
    int arrived, sleeping;
    uint32_t round; /* of barriers */
} team;

/* ---- counts ------------------------------------------------------------------------------------------------------- */

static struct counted *new_counted(void)
{
    struct counted *counted = fsp_calloc(1, sizeof *counted);
    counted->holders = 1;
    return counted;
}

static void drop(struct counted *counted)
{
    if (counted && --counted->holders == 0)
        fsp_free(counted);
}

static void add(struct counted *counted)
{
    if (counted) {
        counted->tasks++;
        counted->holders++;
    }
}

static void take_away(struct counted *counted)
{
    if (!counted)
        return;
    if (--counted->tasks == 0 && counted->waits)
        fsp_cond_broadcast(&counted->over);
    drop(counted);
}

/* ---- running ------------------------------------------------------------------------------------------------------ */

/* The implicit task of a thread begins to need a place for its children. */
static struct fsp_omp_running *running(struct fsp_omp_frame *frame)
{
    if (!frame->running)
        frame->running = fsp_calloc(1, sizeof *frame->running);
    return frame->running;
}

static void forget_children(struct fsp_omp_running *of)
{
    if (!of->children)
        return;
    fsp_mutex_lock(&team.mutex);
    drop(of->children);
    fsp_mutex_unlock(&team.mutex);
}

static void run(struct fsp_omp_frame *frame, void (*function)(void *), void *data, struct group *group, bool is_final)
{
    struct fsp_omp_running now = {.outer = frame->running, .group = group, .is_final = is_final};
    struct fsp_omp_settings settings = frame->settings;
    frame->running = &now;
    function(data);
    frame->running = now.outer;
    frame->settings = settings;
    forget_children(&now);
}

/* Runs a task that was put off and is out of the queue; without the mutex. */
static void run_task(struct fsp_omp_frame *frame, struct task *task)
{
    struct group group = {NULL, task->group};
    run(frame, task->work.function, task->work.data, task->group ? &group : NULL, task->is_final);
    fsp_mutex_lock(&team.mutex);
    take_away(task->siblings);
    take_away(task->group);
    if (--team.unfinished == 0 && team.sleeping)
        fsp_cond_broadcast(&team.changed);
    fsp_mutex_unlock(&team.mutex);
    fsp_free(task);
}

/* The first task in the queue that counts here, or any; with the mutex. */
static struct task *take(const struct counted *where)
{
    struct task **link = &team.first, *before = NULL;
    while (*link && where && (*link)->siblings != where && (*link)->group != where) {
        before = *link;
        link = &before->next;
    }
    struct task *task = *link;
    if (!task)
        return NULL;
    *link = task->next;
    if (!task->next)
        team.last = before;
    team.queued--;
    return task;
}

/* Until no task counts here any more. */
static void await(struct fsp_omp_frame *frame, struct counted *counted)
{
    fsp_mutex_lock(&team.mutex);
    while (counted->tasks > 0) {
        struct task *task = take(counted);
        if (task) {
            fsp_mutex_unlock(&team.mutex);
            run_task(frame, task);
            fsp_mutex_lock(&team.mutex);
        } else {
            counted->waits++;
            fsp_cond_wait(&counted->over, &team.mutex);
            counted->waits--;
        }
    }
    fsp_mutex_unlock(&team.mutex);
}

/* ---- making ------------------------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Do the others have enough to do?  As of the last look. */
static _Thread_local uint64_t enough_until;

static bool have_enough(void)
{
    return enough_until != 0 && now_ns() < enough_until;
}

static uintptr_t rounded(uintptr_t address, long alignment)
{
    uintptr_t to = alignment > 1 ? (uintptr_t)alignment : 1;
    return (address + to - 1) / to * to;
}

/* The task's own copy of its data. */
static void fill(const struct fsp_omp_work *work, void *to, const long *words, int count)
{
    if (work->copy)
        work->copy(to, work->data);
    else
        memcpy(to, work->data, (size_t)work->bytes);
    if (count)
        memcpy(to, words, (size_t)count * sizeof *words);
}

static void run_now(
    struct fsp_omp_frame *frame, const struct fsp_omp_work *work, const long *words, int count, bool is_final)
{
    void *data = work->data;
    if (work->copy || count) {
        void *space = alloca((size_t)(work->bytes + work->alignment));
        data = (void *)rounded((uintptr_t)space, work->alignment);
        fill(work, data, words, count);
    }
    run(frame, work->function, data, frame->running ? frame->running->group : NULL, is_final);
}

static struct task *new_task(const struct fsp_omp_work *work, const long *words, int count, bool is_final)
{
    struct task *task = fsp_malloc(sizeof *task + (size_t)(work->bytes + work->alignment));
    *task = (struct task){.work = *work, .is_final = is_final};
    task->work.data = (void *)rounded((uintptr_t)(task + 1), work->alignment);
    fill(work, task->work.data, words, count);
    return task;
}

/* Puts a task into the queue.  How many wait there then? */
static int enqueue(struct fsp_omp_running *parent, struct task *task)
{
    fsp_mutex_lock(&team.mutex);
    task->siblings = parent->children;
    task->group = parent->group ? parent->group->tasks : NULL;
    add(task->siblings);
    add(task->group);
    if (team.first)
        team.last->next = task;
    else
        team.first = task;
    team.last = task;
    team.unfinished++;
    int queued = ++team.queued;
    if (team.sleeping)
        fsp_cond_signal(&team.changed);
    fsp_mutex_unlock(&team.mutex);
    return queued;
}

static void put_off(
    struct fsp_omp_frame *frame, const struct fsp_omp_work *work, const long *words, int count, bool is_final)
{
    struct fsp_omp_running *parent = running(frame);
    if (!parent->children)
        parent->children = new_counted();
    if (parent->group && !parent->group->tasks)
        parent->group->tasks = new_counted();
    int queued = enqueue(parent, new_task(work, words, count, is_final));
    enough_until = queued >= WAITING_FOR_EACH * frame->size ? now_ns() + LOOK_NS : 0;
}

void fsp_omp_make_task(const struct fsp_omp_work *work, const long *words, int count, bool at_once, bool is_final)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    bool inherits_final = frame->running && frame->running->is_final;
    if (at_once || is_final || inherits_final || frame->size == 1 || have_enough())
        run_now(frame, work, words, count, is_final || inherits_final);
    else
        put_off(frame, work, words, count, false);
}

void GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *), long bytes, long alignment, bool condition,
    unsigned flags, void **depend, int priority, void *detach);
void GOMP_task(void (*function)(void *), void *data, void (*copy)(void *, void *), long bytes, long alignment, bool condition,
    unsigned flags, void **depend, int priority, void *detach)
{
    (void)depend, (void)priority, (void)detach;
    if (flags & FSP_OMP_DETACH)
        fsp_abort(1, "OpenMP: a task with the clause detach is not served");
    struct fsp_omp_work work = {function, copy, data, bytes, alignment};
    fsp_omp_make_task(&work, NULL, 0, !condition || flags & FSP_OMP_DEPEND, flags & FSP_OMP_FINAL);
}

int omp_in_final(void);
int omp_in_final(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    return frame->running && frame->running->is_final;
}

/* ---- waiting ------------------------------------------------------------------------------------------------------ */

void GOMP_taskwait(void);
void GOMP_taskwait(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    if (frame->running && frame->running->children)
        await(frame, frame->running->children);
}

/* Tasks with dependences have ended. */
void GOMP_taskwait_depend(void **depend);
void GOMP_taskwait_depend(void **depend)
{
    (void)depend;
}

void GOMP_taskyield(void);
void GOMP_taskyield(void)
{
}

void GOMP_taskgroup_start(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    if (frame->size == 1)
        return; /* no task is put off */
    struct fsp_omp_running *task = running(frame);
    struct group *group = fsp_calloc(1, sizeof *group);
    group->outer = task->group;
    task->group = group;
}

void GOMP_taskgroup_end(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    if (frame->size == 1)
        return;
    struct group *group = frame->running->group;
    if (group->tasks) {
        await(frame, group->tasks);
        fsp_mutex_lock(&team.mutex);
        drop(group->tasks);
        fsp_mutex_unlock(&team.mutex);
    }
    frame->running->group = group->outer;
    fsp_free(group);
}

/* ---- barrier ------------------------------------------------------------------------------------------------------ */

/* Until all threads of the team are here and no task is left: runs tasks, or sleeps. */
static void await_all(struct fsp_omp_frame *frame)
{
    fsp_mutex_lock(&team.mutex);
    uint32_t round = team.round;
    team.arrived++;
    while (team.round == round) {
        struct task *task = take(NULL);
        if (task) {
            fsp_mutex_unlock(&team.mutex);
            run_task(frame, task);
            fsp_mutex_lock(&team.mutex);
        } else if (team.arrived == frame->size && team.unfinished == 0) {
            team.arrived = 0;
            team.round++;
            fsp_cond_broadcast(&team.changed);
        } else {
            team.sleeping++;
            fsp_cond_wait(&team.changed, &team.mutex);
            team.sleeping--;
        }
    }
    fsp_mutex_unlock(&team.mutex);
}

/* The implicit task has no children now, so that it may forget them. */
static void forget_implicit(struct fsp_omp_frame *frame)
{
    if (!frame->running)
        return;
    forget_children(frame->running);
    fsp_free(frame->running);
    frame->running = NULL;
}

void fsp_omp_tasks_barrier(struct fsp_omp_frame *frame)
{
    await_all(frame);
    forget_implicit(frame);
    enough_until = 0;
}
