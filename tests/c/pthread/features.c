/* Every kind of call of a pthread program, checked; run in any configuration by tests/cluster/pthread.rs, built by
 * `fspcc --pthread`.  Nothing here knows of Finespun.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

enum { MANY = 20 };

static void *number(long number) { return (void *)number; }

static struct timespec after_ms(clockid_t clock, long ms)
{
    struct timespec moment;
    clock_gettime(clock, &moment);
    moment.tv_nsec += ms * 1000000;
    moment.tv_sec += moment.tv_nsec / 1000000000;
    moment.tv_nsec %= 1000000000;
    return moment;
}

/* ---- more threads than processors, all of them at once at a barrier; thread-local variables; results ---- */

static pthread_barrier_t all;
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static int serials, counter;
static pthread_t selves[MANY];
static _Thread_local int local = 7;

static void __attribute__((noinline)) end_inside(void *result) { pthread_exit(result); }

static void *meet(void *argument)
{
    long me = (long)argument;
    CHECK(local == 7);
    local = (int)me;
    selves[me] = pthread_self();
    for (int round = 0; round < 3; round++) {
        pthread_mutex_lock(&plain);
        counter++;
        pthread_mutex_unlock(&plain);
        if (pthread_barrier_wait(&all) == PTHREAD_BARRIER_SERIAL_THREAD) {
            pthread_mutex_lock(&plain);
            serials++;
            pthread_mutex_unlock(&plain);
        }
        CHECK(counter >= MANY * (round + 1));
        pthread_barrier_wait(&all);
        CHECK(local == me);
    }
    if (me % 2) end_inside(number(me + 100));
    return number(me + 100);
}

static void many_threads(void)
{
    pthread_t threads[MANY];
    CHECK(pthread_barrier_init(&all, NULL, 0) == EINVAL);
    CHECK(pthread_barrier_init(&all, NULL, MANY) == 0);
    for (long i = 0; i < MANY; i++) CHECK(pthread_create(&threads[i], NULL, meet, number(i)) == 0);
    for (long i = 0; i < MANY; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == number(i + 100));
        CHECK(pthread_equal(selves[i], threads[i]));
        for (long j = 0; j < i; j++) CHECK(!pthread_equal(threads[i], threads[j]));
    }
    CHECK(counter == 3 * MANY && serials == 3 && local == 7);
    CHECK(pthread_join(pthread_self(), NULL) == EDEADLK);
    CHECK(pthread_barrier_destroy(&all) == 0);
}

static void *plus_one(void *argument) { return number((long)argument + 1); }

static void again_and_again(void)
{
    for (long i = 0; i < 60; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, plus_one, number(i)) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == number(i + 1));
    }
}

/* ---- kinds of mutexes ---- */

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void *without_the_mutexes(void *none)
{
    CHECK(pthread_mutex_trylock(&recursive) == EBUSY);
    CHECK(pthread_mutex_trylock(&checking) == EBUSY);
    CHECK(pthread_mutex_unlock(&checking) == EPERM);
    CHECK(pthread_mutex_unlock(&recursive) == EPERM);
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    CHECK(pthread_mutex_timedlock(&recursive, &soon) == ETIMEDOUT);
    return none;
}

static void run_one(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void kinds_of_mutexes(void)
{
    pthread_mutex_t *made = malloc(sizeof *made);
    pthread_mutexattr_t attributes;
    memset(made, 0xaa, sizeof *made);
    CHECK(pthread_mutexattr_init(&attributes) == 0);
    CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
    CHECK(pthread_mutex_init(made, &attributes) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_mutex_lock(made) == 0 && pthread_mutex_trylock(made) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_mutex_unlock(made) == 0);
    CHECK(pthread_mutex_unlock(made) == EPERM && pthread_mutex_destroy(made) == 0);
    free(made);

    CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&recursive) == 0);
    CHECK(pthread_mutex_lock(&checking) == 0 && pthread_mutex_lock(&checking) == EDEADLK);
    run_one(without_the_mutexes, NULL);
    CHECK(pthread_mutex_unlock(&recursive) == 0);
    CHECK(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&checking) == 0);
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    CHECK(pthread_mutex_timedlock(&recursive, &soon) == 0 && pthread_mutex_unlock(&recursive) == 0);
}

/* ---- conditions, with a limit and without ---- */

static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static int items;

static void *tell_later(void *none)
{
    usleep(3000);
    pthread_mutex_lock(&plain);
    items = 1;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&plain);
    return none;
}

static void conditions(void)
{
    pthread_mutex_lock(&plain);
    struct timespec soon = after_ms(CLOCK_REALTIME, 10), past = {1, 0}, odd = {1, -1};
    CHECK(pthread_cond_timedwait(&told, &plain, &soon) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(&told, &plain, &past) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(&told, &plain, &odd) == EINVAL);
    pthread_t teller;
    CHECK(pthread_create(&teller, NULL, tell_later, NULL) == 0);
    struct timespec late = after_ms(CLOCK_REALTIME, 20000);
    while (!items) CHECK(pthread_cond_timedwait(&told, &plain, &late) == 0);
    pthread_mutex_unlock(&plain);
    pthread_join(teller, NULL);

    pthread_condattr_t monotonic;
    pthread_cond_t *made = malloc(sizeof *made);
    CHECK(pthread_condattr_init(&monotonic) == 0 && pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(made, &monotonic) == 0);
    pthread_mutex_lock(&plain);
    soon = after_ms(CLOCK_MONOTONIC, 10);
    CHECK(pthread_cond_timedwait(made, &plain, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&plain);
    CHECK(pthread_cond_destroy(made) == 0);
    free(made);
}

/* ---- signals that cross the end of the time: none may be lost ---- */

static int tokens, taken;

static void *take_tokens(void *tries)
{
    pthread_mutex_lock(&plain);
    for (long i = 0; i < (long)tries; i++) {
        struct timespec soon = after_ms(CLOCK_REALTIME, i % 3);
        while (tokens == 0 && pthread_cond_timedwait(&told, &plain, &soon) == 0) continue;
        if (tokens > 0) tokens--, taken++;
    }
    pthread_mutex_unlock(&plain);
    return NULL;
}

static void *take_one(void *none)
{
    pthread_mutex_lock(&plain);
    while (tokens == 0) pthread_cond_wait(&told, &plain);
    tokens--, taken++;
    pthread_mutex_unlock(&plain);
    return none;
}

static void crossing_signals(void)
{
    pthread_t impatient[2], patient[3];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&impatient[i], NULL, take_tokens, number(20)) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&patient[i], NULL, take_one, NULL) == 0);
    for (int i = 0; i < 43; i++) { /* enough for all, one signal each */
        usleep(700);
        pthread_mutex_lock(&plain);
        tokens++;
        pthread_cond_signal(&told);
        pthread_mutex_unlock(&plain);
    }
    for (int i = 0; i < 2; i++) pthread_join(impatient[i], NULL);
    for (int i = 0; i < 3; i++) pthread_join(patient[i], NULL);
    CHECK(tokens + taken == 43);
}

/* ---- rwlocks ---- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int written;

static void *write_once(void *none)
{
    CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
    CHECK(pthread_rwlock_rdlock(&rwlock) == EDEADLK && pthread_rwlock_wrlock(&rwlock) == EDEADLK);
    CHECK(pthread_rwlock_trywrlock(&rwlock) == EBUSY);
    written++;
    CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    return none;
}

static void *may_read_only(void *none)
{
    CHECK(pthread_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(pthread_rwlock_tryrdlock(&rwlock) == 0);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    struct timespec soon = after_ms(CLOCK_REALTIME, 10);
    CHECK(pthread_rwlock_timedwrlock(&rwlock, &soon) == ETIMEDOUT);
    CHECK(pthread_rwlock_timedrdlock(&rwlock, &soon) == 0);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    return none;
}

static void rwlocks(void)
{
    pthread_t writers[3];
    CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
    run_one(may_read_only, NULL);
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&writers[i], NULL, write_once, NULL) == 0);
    usleep(2000);
    CHECK(pthread_rwlock_rdlock(&rwlock) == 0); /* past the writers, which wait for this thread */
    CHECK(written == 0);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0 && pthread_rwlock_unlock(&rwlock) == 0);
    for (int i = 0; i < 3; i++) pthread_join(writers[i], NULL);
    CHECK(written == 3 && pthread_rwlock_destroy(&rwlock) == 0);
}

/* ---- spin locks side by side, once, semaphores ---- */

static pthread_spinlock_t spins[8];
static long under[8];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int onces;
static sem_t ready, answered;

static void only_once(void) { onces++; }

static void *spin(void *argument)
{
    pthread_once(&once, only_once);
    CHECK(onces == 1);
    for (int i = 0; i < 80; i++) {
        CHECK(pthread_spin_lock(&spins[i % 8]) == 0);
        under[i % 8]++;
        CHECK(pthread_spin_unlock(&spins[i % 8]) == 0);
    }
    CHECK(sem_post(&ready) == 0);
    CHECK(sem_wait(&answered) == 0);
    return argument;
}

static void small_objects(void)
{
    pthread_t threads[4];
    struct timespec soon = after_ms(CLOCK_REALTIME, 10);
    int value;
    for (int i = 0; i < 8; i++) CHECK(pthread_spin_init(&spins[i], PTHREAD_PROCESS_PRIVATE) == 0);
    CHECK(sem_init(&ready, 0, 1) == 0 && sem_init(&answered, 0, 0) == 0);
    CHECK(sem_wait(&ready) == 0 && sem_trywait(&ready) == -1 && errno == EAGAIN);
    CHECK(sem_timedwait(&ready, &soon) == -1 && errno == ETIMEDOUT);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, spin, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(sem_wait(&ready) == 0);
    CHECK(sem_getvalue(&answered, &value) == 0 && value == 0);
    for (int i = 0; i < 4; i++) CHECK(sem_post(&answered) == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 8; i++) CHECK(under[i] == 40);
    CHECK(pthread_spin_trylock(&spins[0]) == 0 && pthread_spin_unlock(&spins[0]) == 0);
}

/* ---- keys ---- */

static pthread_key_t key, freed;
static int destroyed;

static void destroy(void *value)
{
    pthread_mutex_lock(&plain);
    destroyed += *(int *)value;
    pthread_mutex_unlock(&plain);
    free(value);
}

static void *use_keys(void *argument)
{
    int *value = malloc(sizeof *value);
    CHECK(pthread_getspecific(key) == NULL);
    *value = (int)(long)argument;
    CHECK(pthread_setspecific(key, value) == 0 && pthread_setspecific(freed, strdup("x")) == 0);
    CHECK(pthread_getspecific(key) == value);
    return argument;
}

static void keys(void)
{
    pthread_t threads[5];
    CHECK(pthread_key_create(&key, destroy) == 0 && pthread_key_create(&freed, free) == 0);
    for (long i = 0; i < 5; i++) CHECK(pthread_create(&threads[i], NULL, use_keys, number(i + 1)) == 0);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    CHECK(destroyed == 15 && pthread_getspecific(key) == NULL);
    CHECK(pthread_key_delete(key) == 0 && pthread_setspecific(key, &key) == EINVAL);
    CHECK(pthread_key_delete(key) == EINVAL && pthread_key_delete(freed) == 0);
}

/* ---- attributes, detached threads ---- */

static int detached_done;

static void *detached(void *stack)
{
    char large[400000];
    if (stack) memset(large, 1, sizeof large);
    pthread_mutex_lock(&plain);
    detached_done += stack ? large[399999] : 1;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&plain);
    return NULL;
}

static void *detach_itself(void *argument)
{
    CHECK(pthread_detach(pthread_self()) == 0);
    return detached(argument);
}

static void detached_threads(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 1 << 20) == 0);
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    for (int i = 0; i < 30; i++) CHECK(pthread_create(&thread, &attributes, detached, number(1)) == 0);
    CHECK(pthread_create(&thread, NULL, detached, NULL) == 0 && pthread_detach(thread) == 0);
    CHECK(pthread_create(&thread, NULL, detach_itself, NULL) == 0);
    pthread_mutex_lock(&plain);
    while (detached_done < 32) pthread_cond_wait(&told, &plain);
    pthread_mutex_unlock(&plain);
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

/* ---- the threads of C11 ---- */

static mtx_t mutex;
static cnd_t condition;
static once_flag flag = ONCE_FLAG_INIT;
static int turns;

static int take_turns(void *argument)
{
    long me = (long)argument;
    call_once(&flag, only_once);
    CHECK(mtx_lock(&mutex) == thrd_success && mtx_lock(&mutex) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success);
    while (turns != me) CHECK(cnd_wait(&condition, &mutex) == thrd_success);
    turns++;
    CHECK(cnd_broadcast(&condition) == thrd_success && mtx_unlock(&mutex) == thrd_success);
    if (me == 2) thrd_exit(-5);
    return (int)me;
}

static void threads_of_c11(void)
{
    thrd_t threads[4];
    onces = 0;
    CHECK(mtx_init(&mutex, mtx_plain | mtx_recursive) == thrd_success && cnd_init(&condition) == thrd_success);
    for (long i = 3; i >= 0; i--) CHECK(thrd_create(&threads[i], take_turns, number(i)) == thrd_success);
    for (int i = 0; i < 4; i++) {
        int result;
        CHECK(thrd_join(threads[i], &result) == thrd_success && result == (i == 2 ? -5 : i));
    }
    CHECK(onces == 1 && turns == 4 && thrd_equal(thrd_current(), thrd_current()));
    CHECK(mtx_trylock(&mutex) == thrd_success && mtx_unlock(&mutex) == thrd_success);
    mtx_destroy(&mutex);
    cnd_destroy(&condition);
}

static void *outlive_main(void *none)
{
    usleep(20000);
    puts("features: all ended");
    return none;
}

int main(int argc, char **argv)
{
    many_threads();
    again_and_again();
    kinds_of_mutexes();
    conditions();
    crossing_signals();
    rwlocks();
    small_objects();
    keys();
    detached_threads();
    threads_of_c11();
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, outlive_main, NULL) == 0);
        pthread_exit(NULL);
    }
    puts("features: all right");
    return 0;
}
