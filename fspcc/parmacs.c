/* What the macros of finespun/parmacs.h call.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/parmacs.h>
#include <finespun/program.h>

#include <pthread.h>
#include <stdio_ext.h>
#include <sys/time.h>

/* A process made by CREATE that nobody has waited for yet. */
struct made {
    struct made *next;
    void (*worker)(void);
    fsp_thread_t thread;
    pthread_t own; /* if there was no processor for it */
    int is_own;
};

static struct made *all; /* of this process's threads */
static pthread_mutex_t made_mutex = PTHREAD_MUTEX_INITIALIZER;

/* The first of the program's variables. */
extern char __data_start[];

/* What has been printed is written before others go on. */
static void write_output(void)
{
    if (__fpending(stdout))
        fflush(stdout);
}

void fsp_parmacs_begin(void)
{
    if (!fsp_is_shared(__data_start))
        fsp_abort(1, "a program with the PARMACS macros was linked without sharing its globals: link with fspcc --parmacs");
}

static void *run(void *worker)
{
    ((void (*)(void))worker)();
    write_output();
    return NULL;
}

static void *run_own(void *argument)
{
    struct made *made = argument;
    return run((void *)made->worker);
}

static void create(void (*worker)(void), long wanted)
{
    struct made *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    made->worker = worker;
    fsp_status status = fsp_thread_create(&made->thread, run, (void *)worker);
    if (status == FSP_BUSY && fsp_processors() == 1) {
        made->is_own = 1;
        if (pthread_create(&made->own, NULL, run_own, made))
            fsp_abort(1, "CREATE: no thread could be made");
    } else if (status != FSP_OK) {
        char why[200];
        snprintf(why, sizeof why,
                 "CREATE wants %ld processes besides its own, but the job has %d processors and no idle one: start it with more "
                 "(finespun run -n NODES -p PROCESSES)",
                 wanted, fsp_processors());
        fsp_abort(1, why);
    }
    pthread_mutex_lock(&made_mutex);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&made_mutex);
}

void fsp_parmacs_create(void (*worker)(void), long count)
{
    write_output();
    for (long i = 0; i < count; i++)
        create(worker, count);
}

void fsp_parmacs_wait(long count)
{
    (void)count;
    write_output();
    pthread_mutex_lock(&made_mutex);
    struct made *made = all;
    all = NULL;
    pthread_mutex_unlock(&made_mutex);
    while (made) {
        struct made *next = made->next;
        if (made->is_own)
            pthread_join(made->own, NULL);
        else
            fsp_thread_join(&made->thread, NULL);
        free(made);
        made = next;
    }
}

void fsp_parmacs_lock(fsp_mutex_t *lock)
{
    fsp_mutex_lock(lock);
}

void fsp_parmacs_unlock(fsp_mutex_t *lock)
{
    write_output();
    fsp_mutex_unlock(lock);
}

void fsp_parmacs_barrier(fsp_barrier_t *barrier, long count)
{
    write_output();
    /* With one processor the processes are threads of their own, as many as there are. */
    if (count > fsp_processors() && fsp_processors() > 1) {
        char why[200];
        snprintf(why, sizeof why,
                 "BARRIER waits for %ld processes, but the job has %d processors: so many can never come. Give the number of processes, "
                 "or start it with more (finespun run -n NODES -p PROCESSES)",
                 count, fsp_processors());
        fsp_abort(1, why);
    }
    fsp_barrier_wait(barrier, (unsigned)count);
}

void fsp_parmacs_cond_wait(fsp_cond_t *cond, fsp_mutex_t *lock)
{
    write_output();
    fsp_cond_wait(cond, lock);
}

void fsp_pause_post(fsp_pause_t *pause)
{
    write_output();
    fsp_mutex_lock(&pause->mutex);
    pause->set++;
    fsp_cond_signal(&pause->cond);
    fsp_mutex_unlock(&pause->mutex);
}

void fsp_pause_take(fsp_pause_t *pause)
{
    fsp_pause_hold(pause);
    pause->set--;
    fsp_mutex_unlock(&pause->mutex);
}

void fsp_pause_raise(fsp_pause_t *pause)
{
    write_output();
    fsp_mutex_lock(&pause->mutex);
    pause->set = 1;
    fsp_cond_broadcast(&pause->cond);
    fsp_mutex_unlock(&pause->mutex);
}

void fsp_pause_hold(fsp_pause_t *pause)
{
    fsp_mutex_lock(&pause->mutex);
    while (!pause->set)
        fsp_parmacs_cond_wait(&pause->cond, &pause->mutex);
}

void fsp_pause_drop(fsp_pause_t *pause)
{
    write_output();
    pause->set = 0;
    fsp_mutex_unlock(&pause->mutex);
}

void fsp_pause_await(fsp_pause_t *pause)
{
    fsp_pause_hold(pause);
    fsp_mutex_unlock(&pause->mutex);
}

void fsp_pause_reset(fsp_pause_t *pause)
{
    fsp_mutex_lock(&pause->mutex);
    fsp_pause_drop(pause);
}

/* The mutex that stands for the eight bytes around a word; it is known by its address, and never looked at. */
static fsp_mutex_t *mutex_of(const volatile void *word)
{
    return (fsp_mutex_t *)((uintptr_t)word & ~(uintptr_t)7);
}

void fsp_atomic_begin(const volatile void *word)
{
    if (fsp_is_shared((const void *)word))
        fsp_mutex_lock(mutex_of(word));
}

void fsp_atomic_end(const volatile void *word)
{
    if (fsp_is_shared((const void *)word)) {
        write_output();
        fsp_mutex_unlock(mutex_of(word));
    }
}

unsigned long fsp_parmacs_clock(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return (unsigned long)now.tv_sec * 1000000UL + (unsigned long)now.tv_usec;
}
