/* Signals of the whole program (--pthread): a handler that is set in any thread is set in each process when a thread begins there or is
 * joined there; a new thread has its maker's mask; pthread_kill reaches threads of all processes of the host.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <finespun/program.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNALS = 65, THREADS = 4096, NOT_SERVED = 13, TRIES = 10000 };

void *__wrap_malloc(size_t size);
void __wrap_free(void *memory);
pthread_t __wrap_pthread_self(void);
int __real_sigaction(int number, const struct sigaction *new, struct sigaction *old);

/* ---- handlers ---- */

static SHARED struct sigaction actions[SIGNALS];
static SHARED unsigned when_set[SIGNALS], last_set; /* by count */
static unsigned applied;                            /* by this process */

static void apply(void)
{
    for (int number = 1; number < SIGNALS; number++)
        if (when_set[number] > applied)
            __real_sigaction(number, &actions[number], NULL);
    applied = last_set;
}

int __wrap_sigaction(int number, const struct sigaction *new, struct sigaction *old);
int __wrap_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (!fsp_program_runs() || number <= 0 || number >= SIGNALS)
        return __real_sigaction(number, new, old);
    struct sigaction wanted; /* before the lock, for it may lie in shared memory */
    if (new)
        wanted = *new;
    fsp_clib_hold();
    apply();
    int result = __real_sigaction(number, new ? &wanted : NULL, old);
    if (result == 0 && new) {
        actions[number] = wanted;
        when_set[number] = applied = ++last_set;
    }
    fsp_clib_let_go();
    return result;
}

static sighandler_t set(int number, sighandler_t handler, int flags)
{
    struct sigaction new = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&new.sa_mask);
    return __wrap_sigaction(number, &new, &old) ? SIG_ERR : old.sa_handler;
}

sighandler_t __wrap_signal(int number, sighandler_t handler);
sighandler_t __wrap_signal(int number, sighandler_t handler)
{
    return set(number, handler, SA_RESTART);
}

/* ---- threads ---- */

struct thread {
    pthread_t name;
    pid_t process;
    pid_t number;
    unsigned applied; /* by its process, when it began */
};

static SHARED struct thread threads[THREADS];
static SHARED int used;

static struct thread *find(pthread_t name)
{
    for (int index = 0; index < used; index++)
        if (threads[index].name == name)
            return &threads[index];
    return NULL;
}

static void note_thread(void)
{
    pthread_t name = __wrap_pthread_self();
    struct thread *mine = find(name);
    for (int index = 0; !mine && index < THREADS; index++)
        if (index >= used || threads[index].name == 0) {
            mine = &threads[index];
            used = used > index + 1 ? used : index + 1;
        }
    if (mine)
        *mine = (struct thread){name, getpid(), gettid(), applied};
}

void fsp_clib_thread_begins(void)
{
    fsp_clib_hold();
    apply();
    note_thread();
    fsp_clib_let_go();
}

void fsp_clib_thread_ends(void)
{
    fsp_clib_hold();
    struct thread *mine = find(__wrap_pthread_self());
    if (mine)
        memset(mine, 0, sizeof *mine);
    fsp_clib_let_go();
}

/* The number of an error, as pthread_kill returns it. */
int fsp_clib_kill(pthread_t name, int number)
{
    struct thread found = {0};
    /* A thread that has just been made says where it is before it runs the program's function. */
    for (int tries = 0; found.name != name; tries++) {
        fsp_clib_hold();
        struct thread *there = find(name);
        if (there)
            found = *there;
        fsp_clib_let_go();
        if (tries == TRIES)
            return ESRCH;
        if (found.name != name)
            sched_yield();
    }
    if (number > 0 && number < SIGNALS && found.process != getpid() && when_set[number] > found.applied) {
        fsp_program_refuse(NOT_SERVED, "pthread_kill of a thread of another process, whose handler was set after the thread was made");
        return ENOTSUP;
    }
    return syscall(SYS_tgkill, found.process, found.number, number) ? errno : 0;
}

/* ---- masks ---- */

struct start {
    void *(*function)(void *);
    void *argument;
    sigset_t mask;
};

static void *begin(void *given)
{
    struct start start = *(struct start *)given;
    __wrap_free(given);
    pthread_sigmask(SIG_SETMASK, &start.mask, NULL);
    fsp_clib_thread_begins(); /* from now on signals reach it */
    return start.function(start.argument);
}

/* A thread is about to be made: it begins with the mask of its maker. */
void fsp_clib_create(void *(**function)(void *), void **argument)
{
    struct start *start = __wrap_malloc(sizeof *start);
    if (!start)
        return;
    *start = (struct start){*function, *argument, {{0}}};
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    start->mask = mask;
    *function = begin;
    *argument = start;
}
