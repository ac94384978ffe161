/* What a pthread program can do wrong, one mistake for each name; each must end its job with one message.  Built by
 * `fspcc --pthread`, run by tests/cluster/pthread.rs.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t unmade;
static _Thread_local int own;

static void *nothing(void *argument) { return argument; }

static void *sleep_long(void *argument)
{
    sleep(100);
    return argument;
}

static pthread_t made(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument)) exit(9);
    return thread;
}

static void *mutex_on_stack(void *none)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    return none;
}

static void *condition_on_stack(void *none)
{
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_cond_signal(&condition);
    return none;
}

static void *barrier_on_stack(void *none)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    return none;
}

static void *semaphore_on_stack(void *none)
{
    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    return none;
}

static void *argument_on_stack(void *none)
{
    int argument = 5;
    pthread_join(made(nothing, &argument), NULL);
    return none;
}

static void *argument_of_thread(void *none)
{
    own = 5;
    pthread_join(made(nothing, &own), NULL);
    return none;
}

static void *unlock_foreign(void *none)
{
    pthread_mutex_unlock(&shared);
    return none;
}

static void *unlock_rwlock(void *none)
{
    pthread_rwlock_unlock(&rwlock);
    return none;
}

static void *relock(void *none)
{
    pthread_mutex_lock(&shared);
    pthread_mutex_lock(&shared);
    return none;
}

static void *unmade_barrier(void *none)
{
    pthread_barrier_wait(&unmade);
    return none;
}

static void *join_twice(void *none)
{
    pthread_t thread = made(nothing, NULL);
    pthread_join(thread, NULL);
    pthread_join(thread, NULL);
    return none;
}

static void *join_detached(void *none)
{
    pthread_t thread = made(sleep_long, NULL);
    pthread_detach(thread);
    pthread_join(thread, NULL);
    return none;
}

static void *cancel(void *none)
{
    pthread_cancel(made(sleep_long, NULL));
    return none;
}

static void *named_semaphore(void *none)
{
    sem_open("/finespun-test", O_CREAT, 0600, 1);
    return none;
}

static void *exit_7(void *none)
{
    puts("last words");
    exit(7);
    return none;
}

static void *exit_0(void *none)
{
    puts("last words");
    exit(0);
    return none;
}

static void *crash(void *none)
{
    *(volatile int *)none = 1;
    return none;
}

static void *spin(void *none)
{
    for (;;) {
        pthread_mutex_lock(&shared);
        pthread_mutex_unlock(&shared);
    }
    return none;
}

static const struct {
    const char *name;
    void *(*function)(void *);
} cases[] = {
    {"mutex_on_stack", mutex_on_stack},       {"condition_on_stack", condition_on_stack},
    {"barrier_on_stack", barrier_on_stack},   {"semaphore_on_stack", semaphore_on_stack},
    {"argument_on_stack", argument_on_stack}, {"argument_of_thread", argument_of_thread},
    {"unlock_foreign", unlock_foreign},       {"unlock_rwlock", unlock_rwlock},
    {"relock", relock},                       {"unmade_barrier", unmade_barrier},
    {"join_twice", join_twice},               {"join_detached", join_detached},
    {"cancel", cancel},                       {"named_semaphore", named_semaphore},
    {"exit_7", exit_7},                       {"exit_0", exit_0},
    {"crash", crash},
};

/* misuse CASE: in a thread on another node than main's.  misuse leave: main ends while threads run. */
int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    if (strcmp(argv[1], "leave") == 0 || strcmp(argv[1], "leave_3") == 0) {
        for (int i = 0; i < 5; i++) pthread_detach(made(spin, NULL));
        usleep(20000);
        puts("main leaves");
        return argv[1][5] ? 3 : 0;
    }
    pthread_mutex_lock(&shared);
    pthread_mutex_unlock(&shared);
    if (strcmp(argv[1], "unlock_foreign") == 0) pthread_mutex_lock(&shared);
    if (strcmp(argv[1], "unlock_rwlock") == 0) pthread_rwlock_rdlock(&rwlock);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            pthread_join(made(cases[i].function, NULL), NULL);
            puts("nothing was noticed");
            return 0;
        }
    return 2;
}
