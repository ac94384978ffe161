/* C11's atomics between threads on any nodes: counters, a spin flag, a stack of cells, a message that a flag publishes.
 * Built by cc and by `fspcc --pthread` from the same source; with -DBARE not by a compiler that has atomics as instructions only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

enum { THREADS = 5, TIMES = 60 };

typedef struct cell {
    struct cell *next;
    long value;
} cell;

static atomic_long counter = ATOMIC_VAR_INIT(5);
static atomic_uchar bytes[THREADS];
static atomic_uint bits;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static long under_the_flag;
static _Atomic(cell *) stack;
static atomic_int published;
static long message;

static void *run(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < TIMES; i++) {
        atomic_fetch_add(&counter, 2);
        atomic_fetch_add_explicit(&bytes[me], 1, memory_order_relaxed);
        while (atomic_flag_test_and_set(&busy)) continue;
        under_the_flag++;
        atomic_flag_clear(&busy);
        cell *new = malloc(sizeof *new);
        new->value = me;
        new->next = atomic_load(&stack);
        while (!atomic_compare_exchange_weak(&stack, &new->next, new)) continue;
    }
    atomic_fetch_or(&bits, 1u << me);
    if (me == 0) {
        message = 42;
        atomic_store_explicit(&published, 1, memory_order_release);
    }
    while (!atomic_load_explicit(&published, memory_order_acquire)) continue;
    CHECK(message == 42);
#ifdef BARE
    counter++;
#endif
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long cells = 0, sum = 0;
    for (cell *cell = atomic_load(&stack); cell; cell = cell->next) cells++, sum += cell->value;
    CHECK(atomic_load(&counter) == 5 + 2 * THREADS * TIMES && under_the_flag == THREADS * TIMES);
    CHECK(cells == THREADS * TIMES && sum == TIMES * THREADS * (THREADS - 1) / 2);
    for (int i = 0; i < THREADS; i++) CHECK(atomic_load(&bytes[i]) == TIMES);
    CHECK(atomic_exchange(&bits, 0) == (1u << THREADS) - 1 && atomic_load(&bits) == 0);
    long expected = 1;
    CHECK(!atomic_compare_exchange_strong(&counter, &expected, 9) && expected == 5 + 2 * THREADS * TIMES);
    puts("atomics: all right");
    return 0;
}
