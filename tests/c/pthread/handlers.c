/* Signal handlers that use atomic variables: in a thread that computes, in one that waits for a mutex, in one that operates on the same
 * variable. Built by cc and by `fspcc --pthread` from the same source.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

enum { THREADS = 3, TICKS = 40 };

static atomic_int ticks[THREADS], all_ticks, counted, stop, waiting;
static _Thread_local int me;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int word;

static void on_alarm(int signal)
{
    (void)signal;
    int before = errno;
    ticks[me]++;
    atomic_fetch_add_explicit(&all_ticks, 1, memory_order_relaxed);
    errno = before;
}

/* Signals to this thread, a thousand in a second. */
static timer_t begin(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &(struct itimerspec){ { 0, 1000000 }, { 0, 1000000 } }, NULL) == 0);
    return timer;
}

static void *run(void *argument)
{
    me = (int)(long)argument;
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    timer_t timer = begin();
    if (me == 0) {
        /* It waits for the mutex, which main has until all have heard enough. */
        waiting = 1;
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (me == 1)
        while (ticks[me] < TICKS) counted++;
    if (me == 2)
        while (!stop) sched_yield();
    timer_delete(timer);
    return NULL;
}

static void *wake(void *none)
{
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return none;
}

static void futexes(void)
{
    struct timespec millisecond = { 0, 1000000 }, past = { 0, 0 }, none = { 0, -1 };
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 5, NULL, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &millisecond, NULL, 0) == -1 && errno == ETIMEDOUT);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &past, NULL, ~0) == -1 && errno == ETIMEDOUT);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &none, NULL, 0) == -1 && errno == EINVAL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wake, NULL) == 0);
    while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    pthread_join(thread, NULL);
    CHECK(syscall(SYS_getpid) == getpid());
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == 'r') {
        static int other;
        syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE, 1, 1, &other, 0);
        return 0;
    }
    futexes();
    pthread_mutex_lock(&mutex);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    while (!waiting || all_ticks < TICKS || ticks[0] < TICKS || ticks[2] < TICKS) sched_yield();
    pthread_mutex_unlock(&mutex);
    stop = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(all_ticks == ticks[0] + ticks[1] + ticks[2] && counted > 0);
    puts("handlers: all right");
    return 0;
}
