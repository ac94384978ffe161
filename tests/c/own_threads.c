/* Threads that the program makes itself share memory as processors do: they store, lock and make calls, and releases
 * by one thread lose no store of another.
 *
 * run: -n 2
 * run: -n 2 --protocol strings-sc
 * run: -n 2 --protocol strings-sc --transport tcp
 * run: -n 2 -p 2 --protocol strings-rc
 * run: -n 2 -p 2
 * run: -n 2 -t 2
 * run: -n 2 --transport tcp
 * run: -n 2 --faults mprotect
 * run: -n 2 --faults mprotect --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/socket.h>
#include <threads.h>

#define THREADS 4
#define WORDS 4096 /* words of each thread, spread over pages that all threads of all nodes write */
#define ROUNDS 30
#define LOCKED 200

struct shared {
    fsp_mutex_t mutex;
    long counter;
    char pad[4096];
    long words[]; /* word w of thread t of processor p: words[(w * processors + p) * THREADS + t] */
};
static struct shared *shared;
static int me, processors;

static long *word(int processor, int thread, int index) {
    return &shared->words[((long)index * processors + processor) * THREADS + thread];
}

/* Stores to pages that others write too, while other threads acquire and release. */
static void store_words(int thread) {
    for (int round = 1; round <= ROUNDS; round++) {
        for (int index = 0; index < WORDS; index++) {
            long *mine = word(me, thread, index);
            CHECK(*mine == round - 1); /* nobody took it back */
            *mine = round;
        }
    }
}

static void count_up(void) {
    for (int times = 0; times < LOCKED; times++) {
        fsp_mutex_lock(&shared->mutex);
        shared->counter++;
        fsp_mutex_unlock(&shared->mutex);
    }
}

/* Datagrams into shared memory that other threads' acquires take away: none may be lost or torn. */
static void receive(void) {
    int pair[2];
    long *at = word(me, THREADS - 1, 0);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    for (long number = 1; number <= 500; number++) {
        CHECK(send(pair[1], &number, sizeof number, 0) == sizeof number);
        CHECK(recv(pair[0], at, sizeof number, 0) == sizeof number && *at == number);
    }
    *at = ROUNDS;
    for (int index = 1; index < WORDS; index++) *word(me, THREADS - 1, index) = ROUNDS;
    close(pair[0]), close(pair[1]);
}

static void *run(void *argument) {
    int thread = (int)(long)argument;
    if (thread < THREADS - 2) {
        store_words(thread);
    } else if (thread == THREADS - 2) {
        store_words(thread);
        count_up();
    } else {
        receive();
    }
    return argument;
}

static int run_c11(void *argument) {
    count_up();
    return (int)(long)argument;
}

/* A thread that is cancelled in a call with a shared buffer ends as any. */
static void *wait_for_bytes(void *argument) {
    int *pair = argument;
    char *buffer = fsp_malloc(100);
    write(pair[3], "r", 1);
    read(pair[0], buffer, 100);
    return buffer;
}

int main(void) {
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    me = fsp_process(), processors = fsp_processes();
    shared = fsp_malloc_all(sizeof(struct shared) + sizeof(long) * WORDS * THREADS * (size_t)processors);
    pthread_t *threads = fsp_calloc(THREADS, sizeof *threads); /* the handles may be shared, too */
    for (long thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, run, (void *)thread) == 0);
    thrd_t c11;
    CHECK(thrd_create(&c11, run_c11, (void *)42L) == thrd_success);
    count_up(); /* the main thread's releases race with the others' stores */
    for (long thread = 0; thread < THREADS; thread++) {
        void *result;
        CHECK(pthread_join(threads[thread], &result) == 0 && result == (void *)thread);
    }
    int result;
    CHECK(thrd_join(c11, &result) == thrd_success && result == 42);
    fsp_barrier_all();
    CHECK(shared->counter == 3L * LOCKED * processors);
    for (int processor = 0; processor < processors; processor++)
        for (int thread = 0; thread < THREADS; thread++)
            for (int index = 0; index < WORDS; index++) CHECK(*word(processor, thread, index) == ROUNDS);

    int pairs[4];
    char ready;
    void *ended;
    CHECK(pipe(pairs) == 0 && pipe(pairs + 2) == 0);
    CHECK(pthread_create(&threads[0], NULL, wait_for_bytes, pairs) == 0);
    CHECK(read(pairs[2], &ready, 1) == 1 && pthread_cancel(threads[0]) == 0);
    CHECK(pthread_join(threads[0], &ended) == 0 && ended == PTHREAD_CANCELED);
    fsp_barrier_all();
    fsp_finalize();
    return 0;
}
