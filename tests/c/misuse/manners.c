/* The same two mistakes in every manner of writing a program: a lock that stands in private memory, and a barrier about whose count
 * the processors disagree.   manners lock|barrier
 * Built as it is for the fsp calls, with -DPARMACS, -DPTHREAD, -DC11 or -DTMK for the others. */
#if defined PARMACS
#include <finespun/parmacs.h>

MAIN_ENV
BARDEC(meeting)
static int is_barrier, turn;
LOCKDEC(turn_lock)

static void work(void)
{
    LOCKDEC(lock)
    int mine;
    LOCK(turn_lock)
    mine = turn++;
    UNLOCK(turn_lock)
    if (is_barrier) BARRIER(meeting, 2 + mine)
    else if (mine == 1) LOCK(lock)
    BARRIER(meeting, 2)
}

int main(int argc, char **argv)
{
    MAIN_INITENV(,80000000)
    is_barrier = argc > 1 && argv[1][0] == 'b';
    LOCKINIT(turn_lock)
    BARINIT(meeting, 2)
    CREATE(work, 2)
    WAIT_FOR_END(2)
    MAIN_END
}

#elif defined PTHREAD
#include <pthread.h>

static void *work(void *none)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    return none;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}

#elif defined C11
#include <threads.h>

static int work(void *none)
{
    mtx_t lock;
    mtx_init(&lock, mtx_plain);
    return none ? 1 : mtx_lock(&lock);
}

int main(void)
{
    thrd_t thread;
    thrd_create(&thread, work, NULL);
    thrd_join(thread, NULL);
    return 0;
}

#elif defined TMK
#include <Tmk.h>

int main(int argc, char **argv)
{
    Tmk_startup(argc, argv);
    if (argc > 1 && argv[1][0] == 'b') {
        if (Tmk_proc_id == 0) Tmk_barrier(0);
    } else if (Tmk_proc_id == 1) {
        Tmk_lock_acquire(5000);
    }
    Tmk_exit(0);
    return 0;
}

#else
#include <finespun/finespun.h>

static fsp_mutex_t lock = {1};

int main(int argc, char **argv)
{
    fsp_init_spmd(&argc, &argv);
    fsp_barrier_t *meeting = fsp_malloc_all(sizeof *meeting);
    if (argc > 1 && argv[1][0] == 'b') fsp_barrier_wait(meeting, 2 + fsp_processor());
    else if (fsp_processor() == 1) fsp_mutex_lock(&lock);
    fsp_barrier_all();
    fsp_finalize();
    return 0;
}

#endif
