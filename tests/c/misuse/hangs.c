/* Programs whose threads can never go on, one for each name in the table below: each must end its job with one message.  Those under "right
 * programs" wait for long and come to their end.  Run by tests/cluster/hangs.rs.  Main runs on processor 0 only, but for the cases of that name. */
#define _GNU_SOURCE
#include <finespun/finespun.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSORS_MAX 16

typedef struct shared {
    fsp_mutex_t mutexes[PROCESSORS_MAX];
    fsp_mutex_t mutex;
    fsp_cond_t cond;
    fsp_barrier_t barrier;
    fsp_flag_t flag;
    int signalled;
} shared;

static int is_last(void) { return fsp_processor() == fsp_processors() - 1; }

static void compute(void)
{
    for (volatile unsigned turns = 0;;) turns++;
}

static void for_a_while(void)
{
    nanosleep(&(struct timespec){ .tv_sec = 3, .tv_nsec = 500000000 }, NULL);
}

/* ---- barriers ---- */

static void barrier_in_main(shared *shared) { fsp_barrier_wait(&shared->barrier, 2); }

static void one_too_many(void *argument)
{
    fsp_barrier_wait(&((shared *)argument)->barrier, (unsigned)fsp_processors() + 1);
}

static void barrier_of_too_many(shared *shared) { fsp_parallel(one_too_many, shared); }

static void a_million(void *argument)
{
    if (!is_last()) compute();
    fsp_barrier_wait(&((shared *)argument)->barrier, 1000000);
}

static void barrier_of_a_million(shared *shared) { fsp_parallel(a_million, shared); }

static void only_the_last_arrives(void *none)
{
    (void)none;
    if (is_last()) fsp_barrier_all();
}

static void barrier_all_of_one(shared *shared) { fsp_parallel(only_the_last_arrives, shared); }

/* ---- mutexes ---- */

static void lock_own_and_next(void *argument)
{
    shared *shared = argument;
    int me = fsp_processor(), all = fsp_processors();
    fsp_mutex_lock(&shared->mutexes[me]);
    fsp_barrier_all();
    fsp_mutex_lock(&shared->mutexes[(me + 1) % all]);
}

static void circle(shared *shared) { fsp_parallel(lock_own_and_next, shared); }

/* Processor 0 computes for ever; the others stand in a circle. */
static void lock_but_main(void *argument)
{
    shared *shared = argument;
    int me = fsp_processor(), all = fsp_processors();
    fsp_mutex_lock(&shared->mutexes[me]);
    fsp_barrier_all();
    if (me == 0) compute();
    fsp_mutex_lock(&shared->mutexes[me == all - 1 ? 1 : me + 1]);
}

static void circle_beside_main(shared *shared) { fsp_parallel(lock_but_main, shared); }

static void *lock_the_mutex(void *argument)
{
    fsp_mutex_lock(&((shared *)argument)->mutex);
    return NULL;
}

static void join_with_the_mutex(shared *shared)
{
    fsp_thread_t thread;
    fsp_mutex_lock(&shared->mutex);
    fsp_thread_create_on(&thread, fsp_processors() - 1, lock_the_mutex, shared);
    fsp_thread_join(&thread, NULL);
}

static void last_keeps_it(void *argument)
{
    if (is_last()) fsp_mutex_lock(&((shared *)argument)->mutex);
    fsp_barrier_all();
    if (!is_last()) fsp_mutex_lock(&((shared *)argument)->mutex);
    if (!is_last()) fsp_mutex_unlock(&((shared *)argument)->mutex);
}

static void mutex_left_behind(shared *shared) { fsp_parallel(last_keeps_it, shared); }

/* ---- flags and conditions ---- */

static void wait_flag(void *argument) { fsp_flag_wait(&((shared *)argument)->flag, 3); }

static void flag_never_set(shared *shared)
{
    fsp_flag_set(&shared->flag, 2);
    fsp_parallel(wait_flag, shared);
}

static void wait_cond(void *argument)
{
    shared *shared = argument;
    if (!is_last()) return;
    fsp_mutex_lock(&shared->mutex);
    fsp_cond_wait(&shared->cond, &shared->mutex);
    fsp_mutex_unlock(&shared->mutex);
}

static void signal_before_the_wait(shared *shared)
{
    fsp_cond_signal(&shared->cond);
    fsp_parallel(wait_cond, shared);
}

/* ---- main in every process ---- */

static void spmd_flag(shared *shared)
{
    if (fsp_processor() == 0) fsp_flag_wait(&shared->flag, 1);
}

static void spmd_barrier(shared *shared)
{
    if (!is_last()) fsp_barrier_wait(&shared->barrier, (unsigned)fsp_processors());
}

/* ---- right programs ---- */

static void set_by_one_that_sleeps(void *argument)
{
    shared *shared = argument;
    if (is_last()) {
        for_a_while();
        fsp_flag_set(&shared->flag, 3);
    }
    fsp_flag_wait(&shared->flag, 3);
    fsp_barrier_all();
}

static void late_flag(shared *shared) { fsp_parallel(set_by_one_that_sleeps, shared); }

/* A thread of the program's own, which has not called the library before. */
static void *set_flag_late(void *argument)
{
    for_a_while();
    fsp_flag_set(&((shared *)argument)->flag, 3);
    return NULL;
}

static void own_thread(shared *shared)
{
    pthread_t thread;
    pthread_create(&thread, NULL, set_flag_late, shared);
    fsp_flag_wait(&shared->flag, 3);
    pthread_join(thread, NULL);
}

/* The barrier is completed by threads of the program's own. */
static void *arrive_late(void *argument)
{
    for_a_while();
    fsp_barrier_wait(&((shared *)argument)->barrier, 3);
    return NULL;
}

static void own_threads_at_a_barrier(shared *shared)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, arrive_late, shared);
    fsp_barrier_wait(&shared->barrier, 3);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* A mutex that one parallel section locks and the next one unlocks. */
static void last_locks(void *argument)
{
    if (is_last()) fsp_mutex_lock(&((shared *)argument)->mutex);
}

static void *unlock_the_mutex(void *argument)
{
    fsp_mutex_unlock(&((shared *)argument)->mutex);
    return NULL;
}

static void unlocked_by_a_later_thread(shared *shared)
{
    fsp_thread_t waiter, other;
    fsp_parallel(last_locks, shared);
    fsp_thread_create_on(&waiter, 1, lock_the_mutex, shared);
    for_a_while();
    fsp_thread_create_on(&other, fsp_processors() - 1, unlock_the_mutex, shared);
    fsp_thread_join(&other, NULL);
    fsp_thread_join(&waiter, NULL);
}

#define CASE(name) { #name, name }
static const struct {
    const char *name;
    void (*run)(shared *);
} cases[] = {
    CASE(barrier_in_main), CASE(barrier_of_too_many), CASE(barrier_of_a_million), CASE(barrier_all_of_one), CASE(circle),
    CASE(circle_beside_main), CASE(join_with_the_mutex), CASE(mutex_left_behind), CASE(flag_never_set),
    CASE(signal_before_the_wait), CASE(late_flag), CASE(own_thread), CASE(own_threads_at_a_barrier),
    CASE(unlocked_by_a_later_thread), CASE(spmd_flag), CASE(spmd_barrier),
};

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "spmd", 4) == 0) fsp_init_spmd(&argc, &argv);
    else fsp_init(&argc, &argv);
    shared *shared = fsp_malloc_all(sizeof *shared);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) cases[i].run(shared);
    puts("done");
    fsp_finalize();
    return 0;
}
