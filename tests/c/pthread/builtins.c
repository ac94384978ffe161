/* Atomic operations of the compiler on every node: the builtins of GNU C, old and new, and C11's operators, in all sizes.
 * Built by cc and by `fspcc --pthread` from the same source.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

enum { THREADS = 4, TIMES = 40 };

static uint8_t one;
static uint16_t two;
static uint32_t four;
static uint64_t eight;
static _Alignas(16) unsigned __int128 sixteen;
static volatile int old_style;
static int kept = -1;
static _Atomic short qualified;
static _Atomic double sum;
static _Atomic(char *) pointer;
static struct triple {
    long a, b, c;
} triple;
static _Atomic struct triple qualified_triple;
static atomic_flag flag = ATOMIC_FLAG_INIT;
static long under_the_flag;
static char spin;
static long under_the_spin;
static int arrived, published, message;
static volatile int turn;

static void *run(void *argument)
{
    long me = (long)argument;
    __atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < THREADS) sched_yield();
    for (int i = 0; i < TIMES; i++) {
        __atomic_fetch_add(&one, 1, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&two, 1, __ATOMIC_RELAXED);
        __sync_fetch_and_add(&four, 3);
        uint64_t before = __atomic_load_n(&eight, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&eight, &before, before * 5 + 1, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) continue;
        __atomic_fetch_add(&sixteen, ((unsigned __int128)1 << 64) + 1, __ATOMIC_SEQ_CST);
        for (int now = old_style; !__sync_bool_compare_and_swap(&old_style, now, now + 2); now = old_style) __sync_synchronize();
        __sync_and_and_fetch(&kept, ~0);
        qualified++;
        sum += 0.5;
        pointer += 2;
        struct triple was, next;
        __atomic_load(&triple, &was, __ATOMIC_RELAXED);
        do next = (struct triple){ was.a + 1, was.b + 2, was.c + 3 };
        while (!__atomic_compare_exchange(&triple, &was, &next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        was = qualified_triple;
        do next = (struct triple){ was.a + 1, was.a + 1, was.a + 1 };
        while (!atomic_compare_exchange_weak(&qualified_triple, &was, next));
        while (atomic_flag_test_and_set(&flag)) sched_yield();
        under_the_flag++;
        atomic_flag_clear(&flag);
        while (__sync_lock_test_and_set(&spin, 1)) continue;
        under_the_spin++;
        __sync_lock_release(&spin);
    }
    if (me == 1) {
        message = 42;
        atomic_thread_fence(memory_order_release);
        __atomic_store_n(&published, 1, __ATOMIC_RELAXED);
    }
    while (!__atomic_load_n(&published, __ATOMIC_RELAXED)) continue;
    atomic_thread_fence(memory_order_acquire);
    CHECK(message == 42);
    /* By turns, as programs of before C11 do it. */
    while (turn != me) __sync_synchronize();
    turn = turn + 1;
    __sync_synchronize();
    return NULL;
}

/* Values, in shared memory and in memory of the thread's own. */
static int shared_word;
static void values(int *word)
{
    __atomic_store_n(word, 12, __ATOMIC_RELEASE);
    CHECK(__atomic_exchange_n(word, 10, __ATOMIC_SEQ_CST) == 12);
    CHECK(__atomic_fetch_sub(word, 3, 0) == 10 && __atomic_or_fetch(word, 8, 0) == 15);
    CHECK(__atomic_fetch_and(word, 6, 0) == 15 && __atomic_xor_fetch(word, 1, 0) == 7);
    CHECK(__atomic_fetch_nand(word, 3, 0) == 7 && __atomic_load_n(word, 0) == ~3);
    CHECK(__sync_nand_and_fetch(word, 1) == -1 && __sync_sub_and_fetch(word, -3) == 2 && __sync_or_and_fetch(word, 5) == 7);
    CHECK(__sync_val_compare_and_swap(word, 1, 2) == 7 && __sync_val_compare_and_swap(word, 7, 2) == 7 && *word == 2);
    CHECK(__sync_fetch_and_xor(word, 3) == 2 && __sync_fetch_and_or(word, 4) == 1 && __sync_fetch_and_sub(word, 1) == 5);
    CHECK(__sync_fetch_and_and(word, 6) == 4 && __sync_fetch_and_nand(word, 4) == 4 && __sync_xor_and_fetch(word, 0) == ~4);
    CHECK(__sync_add_and_fetch(word, 5) == 0);
    int expected = 1;
    CHECK(!__atomic_compare_exchange_n(word, &expected, 9, 0, 0, 0) && expected == 0);
    CHECK(__atomic_is_lock_free(4, word) && !__atomic_is_lock_free(24, word));
    CHECK(!__atomic_test_and_set(word, 0) && __atomic_test_and_set(word, 0));
    __atomic_clear(word, 0);
    CHECK(*word == 0);
}

int main(void)
{
    int own = 0;
    values(&own);
    values(&shared_word);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    enum { ALL = THREADS * TIMES };
    uint64_t chained = 0;
    for (int i = 0; i < ALL; i++) chained = chained * 5 + 1;
    CHECK(one == ALL % 256 && two == (uint16_t)-ALL && four == 3 * ALL && eight == chained);
    CHECK((uint64_t)sixteen == ALL && (uint64_t)(sixteen >> 64) == ALL);
    CHECK(old_style == 2 * ALL && kept == -1 && qualified == ALL && sum == ALL / 2.0 && pointer == (char *)0 + 2 * ALL);
    CHECK(triple.a == ALL && triple.b == 2 * ALL && triple.c == 3 * ALL);
    struct triple last = qualified_triple;
    CHECK(last.a == ALL && last.b == ALL && last.c == ALL);
    CHECK(under_the_flag == ALL && under_the_spin == ALL && turn == THREADS);
    puts("builtins: all right");
    return 0;
}
