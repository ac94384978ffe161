/* The C library's own locks where they do not lock for all.
 *   clib_locks CASE       in shared memory: the last processor calls; `private`: each process in a variable of its own;
 *                         `own`: one process alone does
 * Plain: objects in fsp_malloc memory.  With fspcc --share-globals: in global variables. */
#include <finespun/finespun.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

struct objects {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spin;
    pthread_barrier_t barrier;
    sem_t semaphore;
    mtx_t mtx;
};

#ifdef SHARED_GLOBALS
static struct objects all;
static char name[32];
#else

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
#endif

static void call(struct objects *of, const char *name)
{
    if (!strcmp(name, "mutex")) pthread_mutex_lock(&of->mutex);
    else if (!strcmp(name, "try")) pthread_mutex_trylock(&of->mutex);
    else if (!strcmp(name, "signal")) pthread_cond_signal(&of->condition);
    else if (!strcmp(name, "wait")) pthread_cond_wait(&of->condition, &of->mutex);
    else if (!strcmp(name, "read")) pthread_rwlock_rdlock(&of->rwlock);
    else if (!strcmp(name, "spin")) pthread_spin_lock(&of->spin);
    else if (!strcmp(name, "barrier")) pthread_barrier_wait(&of->barrier);
    else if (!strcmp(name, "semaphore")) sem_wait(&of->semaphore);
    else if (!strcmp(name, "post")) sem_post(&of->semaphore);
    else if (!strcmp(name, "mtx")) mtx_lock(&of->mtx);
}

#ifdef SHARED_GLOBALS

static void last(void *argument)
{
    if (fsp_processor() == fsp_processors() - 1) call(&all, argument);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    strncpy(name, argv[1], sizeof name - 1);
    fsp_parallel(last, name);
    puts("clib_locks: nothing was noticed");
    return 0;
}

#else

static void count(void)
{
    pthread_mutex_lock(&guard);
    pthread_mutex_unlock(&guard);
}

static void work(const char *name)
{
    if (!strcmp(name, "private")) count();
    else if (!strcmp(name, "own") && fsp_processor() == 0) count();
}

int main(int argc, char **argv)
{
    fsp_init_spmd(&argc, &argv);
    if (argc != 2) return 2;
    struct objects *shared = fsp_malloc_all(sizeof *shared);
    if (!shared) return 2;
    if (fsp_processor() == fsp_processors() - 1) call(shared, argv[1]);
    work(argv[1]);
    fsp_barrier_all();
    if (fsp_processor() == 0) puts("clib_locks: nothing was noticed");
    fsp_finalize();
    return 0;
}

#endif
