/* Threads that wait in a loop for what another node writes, and some that only look as if they did.
 *   spins CASE [SECONDS]        after so many seconds main exits, whatever the thread does
 * Built by fspcc --pthread; the lines are named in tests/cluster/spins.rs. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int ready;
static int plain;
static volatile long taken = 1;

struct task {
    long number;
    volatile long done;
} *task;

static double elapsed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *wait_for_flag(void *none)
{
    while (!ready) {
    }
    return none;
}

static void *wait_for_task(void *none)
{
    while (task->done < 3) {
    }
    return none;
}

static void *wait_politely(void *none)
{
    while (!ready) sched_yield();
    return none;
}

/* What it stores through a pointer is not what it waits for. */
static void *store_through(void *none)
{
    int turns, *through = &turns;
    while (!ready) {
        *through = 1;
    }
    return none;
}

static void *wait_for_plain(void *none)
{
    while (!plain) {
    }
    return none;
}

/* The builtin would be a call of the library. */
static inline __attribute__((always_inline)) long exchange(volatile long *word, long value)
{
    __asm__ volatile("xchg %0, %1" : "+r"(value), "+m"(*word));
    return value;
}

static void *try_lock(void *none)
{
    while (exchange(&taken, 1)) {
    }
    return none;
}

/* Long, in one small loop over shared memory, whose bound is shared too. */
static double numbers[512];
static volatile int count = 512;

static void *compute(void *none)
{
    double sum = 0;
    for (double end = elapsed() + 2.5; elapsed() < end;)
        for (int again = 0; again < 100000; again++)
            for (int i = 0; i < count; i++) sum += numbers[i];
    numbers[0] = sum;
    return none;
}

/* Each turn of the loop is counted. */
static void *wait_a_while(void *none)
{
    for (long turns = 0; !ready && turns < 3000000000; turns++) {
    }
    return none;
}

static volatile sig_atomic_t *rang;

static void ring(int signal)
{
    (void)signal;
    *rang = 1;
}

/* For a word of its own stack, which a handler changes. */
static void *wait_for_signal(void *none)
{
    volatile sig_atomic_t here = 0;
    rang = &here;
    signal(SIGALRM, ring);
    alarm(3);
    while (!here) {
    }
    return none;
}

static const struct {
    const char *name;
    void *(*wait)(void *);
} cases[] = {
    {"flag", wait_for_flag}, {"task", wait_for_task}, {"politely", wait_politely}, {"plain", wait_for_plain},
    {"through", store_through},
    {"lock", try_lock},      {"compute", compute},    {"a_while", wait_a_while},   {"signal", wait_for_signal},
};

static sem_t began;
static void *(*wait_now)(void *);

/* Its node has a copy of everything before main stores. */
static void *begin(void *none)
{
    if (ready + plain + task->done + (taken - 1) != 0) return none;
    sem_post(&began);
    return wait_now(none);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    task = calloc(1, sizeof *task);
    if (argc < 2 || !task || sem_init(&began, 0, 0)) return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1])) continue;
        wait_now = cases[i].wait;
        if (pthread_create(&thread, NULL, begin, NULL)) return 2;
        sem_wait(&began);
        /* Stores that no release follows before the join. */
        if (cases[i].wait != wait_a_while) ready = plain = 1;
        task->done = 5;
        taken = 0;
        if (argc == 3) {
            sleep((unsigned)atoi(argv[2]));
            puts("spins: main leaves");
            exit(0);
        }
        if (pthread_join(thread, NULL)) return 2;
        puts("spins: all ended");
        return 0;
    }
    return 2;
}
