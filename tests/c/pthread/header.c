/* The headers by themselves, without fspcc: threads and objects of the shared heap, atomic access, a thread on a given node.
 * Run by tests/cluster/pthread.rs.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include <finespun/atomic.h>
#include <finespun/threads.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

enum { THREADS = 6, TIMES = 50 };

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t change;
    int arrived;
    int nodes[64];
    long sum;
    uint8_t bytes[16];
    void *volatile list;
    volatile int flag;
};

static void *run(void *argument)
{
    struct shared *shared = argument;
    pthread_mutex_lock(&shared->mutex);
    int me = shared->arrived++;
    pthread_cond_broadcast(&shared->change);
    while (shared->arrived < THREADS) pthread_cond_wait(&shared->change, &shared->mutex);
    pthread_mutex_unlock(&shared->mutex);
    for (int i = 0; i < TIMES; i++) {
        fsp_atomic_fetch_add(&shared->sum, me + 1);
        fsp_atomic_fetch_add(&shared->bytes[me % 16], 1);
        long *cell = fsp_malloc(2 * sizeof *cell); /* a stack of cells */
        void *head = fsp_atomic_load(&shared->list);
        do *(void **)cell = head;
        while (!fsp_atomic_compare_exchange(&shared->list, &head, (void *)cell));
    }
    if (me == 0) fsp_atomic_store(&shared->flag, 1);
    else while (!fsp_atomic_load(&shared->flag)) continue;
    return (void *)(long)me;
}

static void *where(void *argument)
{
    (void)argument;
    return (void *)(long)fsp_node();
}

int main(void)
{
    struct shared *shared = fsp_calloc(1, sizeof *shared);
    pthread_t threads[THREADS];
    long seen = 0;
    CHECK(pthread_mutex_init(&shared->mutex, NULL) == 0 && pthread_cond_init(&shared->change, NULL) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, shared) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0);
        seen |= 1 << (long)result;
    }
    int cells = 0;
    for (void *cell = shared->list; cell; cell = *(void **)cell) cells++;
    CHECK(seen == (1 << THREADS) - 1 && cells == THREADS * TIMES);
    CHECK(shared->sum == (long)TIMES * THREADS * (THREADS + 1) / 2 && shared->bytes[THREADS - 1] == TIMES);
    CHECK(fsp_atomic_exchange(&shared->sum, 0xf0) == (long)TIMES * THREADS * (THREADS + 1) / 2);
    CHECK(fsp_atomic_fetch_or(&shared->sum, 0x0f) == 0xf0 && fsp_atomic_fetch_and(&shared->sum, 0x3c) == 0xff);
    CHECK(fsp_atomic_fetch_xor(&shared->sum, 0xff) == 0x3c && fsp_atomic_fetch_sub(&shared->sum, 3) == 0xc3);
    long expected = 1;
    CHECK(!fsp_atomic_compare_exchange(&shared->sum, &expected, 5L) && expected == 0xc0);
    CHECK(fsp_atomic_compare_exchange(&shared->sum, &expected, 5L) && shared->sum == 5);

    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(fsp_pthread_attr_setnode_np(&attributes, fsp_nodes()) != 0);
    for (int node = 0; node < fsp_nodes(); node++) {
        void *result;
        CHECK(fsp_pthread_attr_setnode_np(&attributes, node) == 0);
        CHECK(pthread_create(&threads[0], &attributes, where, NULL) == 0);
        CHECK(pthread_join(threads[0], &result) == 0 && (long)result == node);
    }
    puts("header: all right");
    return 0;
}
