/* The atomic operations of a program (fspcc --pthread), by the names that a compiler without inline atomics calls: those of libatomic.
 *
 * Private memory costs a compare of its address and the instruction.  Shared memory goes to the library, which says whether an
 * instruction will do there too (a job of one node), or runs the operation under the word's lock.  Memory orders are not looked at
 * beyond that: every operation is sequentially consistent, but for a store to private memory, where it costs.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "sharing.h"

#include <fenv.h>
#include <finespun/program.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#pragma GCC target("cx16") /* else 16 bytes are a call of what is defined here */
#endif

enum what { LOAD, STORE, EXCHANGE, COMPARE_EXCHANGE, ADD, SUB, AND, OR, XOR, NAND };

/* What a word becomes.  LOAD and COMPARE_EXCHANGE are the callers' matter. */
#define AFTER(before, what, operand)                                                 \
    ((what) == ADD       ? (before) + (operand)                                      \
         : (what) == SUB ? (before) - (operand)                                      \
         : (what) == AND ? (before) & (operand)                                      \
         : (what) == OR  ? (before) | (operand)                                      \
         : (what) == XOR ? (before) ^ (operand)                                      \
         : (what) == NAND ? ~((before) & (operand))                                  \
                          : (operand))

typedef unsigned __int128 uint128_t;

/* For one size: the operation under the word's lock, the one by instruction, and which of them a word in shared memory gets.  A
 * word that keeps its value is not written: its page stays as it is. */
#define ONE_SIZE(type, bytes)                                                                                          \
    typedef struct {                                                                                                   \
        enum what what;                                                                                                \
        type operand, expected, before;                                                                                \
    } arguments_##bytes;                                                                                               \
    static fsp_operated operate_##bytes(volatile void *word, void *arguments)                                          \
    {                                                                                                                  \
        arguments_##bytes *of = arguments;                                                                             \
        type before = *(volatile type *)word;                                                                          \
        of->before = before;                                                                                           \
        bool stores = of->what != LOAD && (of->what != COMPARE_EXCHANGE || before == of->expected);                    \
        type after = (type)AFTER(before, of->what, of->operand);                                                       \
        if (stores && after != before)                                                                                 \
            *(volatile type *)word = after;                                                                            \
        return (fsp_operated){ stores, (unsigned long)before };                                                        \
    }                                                                                                                  \
    static type here_##bytes(volatile type *word, enum what what, type operand, type expected)                         \
    {                                                                                                                  \
        if (what == LOAD)                                                                                              \
            return bytes <= 8 ? __atomic_load_n(word, __ATOMIC_SEQ_CST) : __sync_val_compare_and_swap(word, 0, 0);     \
        if (what == COMPARE_EXCHANGE)                                                                                  \
            return __sync_val_compare_and_swap(word, expected, operand);                                               \
        type before = *word, found;                                                                                    \
        while ((found = __sync_val_compare_and_swap(word, before, (type)AFTER(before, what, operand))) != before)      \
            before = found;                                                                                            \
        return before;                                                                                                 \
    }                                                                                                                  \
    __attribute__((noinline, cold)) static type shared_##bytes(volatile void *word, enum what what, type operand,      \
                                                               type expected)                                          \
    {                                                                                                                  \
        arguments_##bytes of = { what, operand, expected, 0 };                                                         \
        int kind = what == LOAD && bytes <= 8 ? FSP_LOAD : FSP_BY_INSTRUCTION;                                         \
        return fsp_program_atomic(word, kind, operate_##bytes, &of) ? of.before : here_##bytes(word, what, operand, expected); \
    }

#define NAMED(type, name, bytes, ...)                                          \
    type name##_##bytes(__VA_ARGS__) __asm__("__atomic_" #name "_" #bytes);    \
    type name##_##bytes(__VA_ARGS__)

#define ARITHMETIC(type, bytes, name, what, operator)                                                                  \
    NAMED(type, fetch_##name, bytes, volatile void *word, type operand, int order)                                     \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        return may_be_shared(word) ? shared_##bytes(word, what, operand, 0) : FETCH_##bytes(type, name, what, word, operand); \
    }                                                                                                                  \
    NAMED(type, name##_fetch, bytes, volatile void *word, type operand, int order)                                     \
    {                                                                                                                  \
        type before = fetch_##name##_##bytes(word, operand, order);                                                    \
        return (type)AFTER(before, what, operand);                                                                     \
    }

#define BY_INSTRUCTION(type, name, what, word, operand) \
    __atomic_fetch_##name((volatile type *)(word), operand, __ATOMIC_SEQ_CST)
#define FETCH_1 BY_INSTRUCTION
#define FETCH_2 BY_INSTRUCTION
#define FETCH_4 BY_INSTRUCTION
#define FETCH_8 BY_INSTRUCTION
#define FETCH_16(type, name, what, word, operand) here_16(word, what, operand, 0)

#define ALL_ARITHMETIC(type, bytes)         \
    ARITHMETIC(type, bytes, add, ADD, +)    \
    ARITHMETIC(type, bytes, sub, SUB, -)    \
    ARITHMETIC(type, bytes, and, AND, &)    \
    ARITHMETIC(type, bytes, or, OR, |)      \
    ARITHMETIC(type, bytes, xor, XOR, ^)    \
    ARITHMETIC(type, bytes, nand, NAND, &)

#define COMPARING(type, bytes)                                                                                        \
    NAMED(bool, compare_exchange, bytes, volatile void *word, void *expected, type desired, int success, int failure) \
    {                                                                                                                  \
        (void)success, (void)failure;                                                                                  \
        type wanted;                                                                                                   \
        memcpy(&wanted, expected, sizeof wanted);                                                                      \
        type found = may_be_shared(word) ? shared_##bytes(word, COMPARE_EXCHANGE, desired, wanted)                     \
                                         : __sync_val_compare_and_swap((volatile type *)word, wanted, desired);        \
        if (found == wanted)                                                                                           \
            return true;                                                                                               \
        memcpy(expected, &found, sizeof found);                                                                        \
        return false;                                                                                                  \
    }

#define UP_TO_8(type, bytes)                                                                                           \
    ONE_SIZE(type, bytes)                                                                                              \
    NAMED(type, load, bytes, const volatile void *word, int order)                                                     \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        return may_be_shared(word) ? shared_##bytes((volatile void *)word, LOAD, 0, 0)                                 \
                                   : __atomic_load_n((const volatile type *)word, __ATOMIC_SEQ_CST);                   \
    }                                                                                                                  \
    NAMED(void, store, bytes, volatile void *word, type value, int order)                                              \
    {                                                                                                                  \
        if (may_be_shared(word))                                                                                       \
            shared_##bytes(word, STORE, value, 0);                                                                     \
        else if (order == __ATOMIC_SEQ_CST)                                                                            \
            __atomic_store_n((volatile type *)word, value, __ATOMIC_SEQ_CST);                                          \
        else                                                                                                           \
            __atomic_store_n((volatile type *)word, value, __ATOMIC_RELEASE);                                          \
    }                                                                                                                  \
    NAMED(type, exchange, bytes, volatile void *word, type value, int order)                                           \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        return may_be_shared(word) ? shared_##bytes(word, EXCHANGE, value, 0)                                          \
                                   : __atomic_exchange_n((volatile type *)word, value, __ATOMIC_SEQ_CST);              \
    }                                                                                                                  \
    NAMED(bool, test_and_set, bytes, volatile void *word, int order)                                                   \
    {                                                                                                                  \
        return exchange_##bytes(word, 1, order) != 0;                                                                  \
    }                                                                                                                  \
    COMPARING(type, bytes)                                                                                             \
    ALL_ARITHMETIC(type, bytes)

UP_TO_8(uint8_t, 1)
UP_TO_8(uint16_t, 2)
UP_TO_8(uint32_t, 4)
UP_TO_8(uint64_t, 8)

ONE_SIZE(uint128_t, 16)

static uint128_t on_16(volatile void *word, enum what what, uint128_t operand)
{
    return may_be_shared(word) ? shared_16(word, what, operand, 0) : here_16(word, what, operand, 0);
}

NAMED(uint128_t, load, 16, const volatile void *word, int order)
{
    (void)order;
    return on_16((volatile void *)word, LOAD, 0);
}

NAMED(void, store, 16, volatile void *word, uint128_t value, int order)
{
    (void)order;
    on_16(word, STORE, value);
}

NAMED(uint128_t, exchange, 16, volatile void *word, uint128_t value, int order)
{
    (void)order;
    return on_16(word, EXCHANGE, value);
}

COMPARING(uint128_t, 16)
ALL_ARITHMETIC(uint128_t, 16)

/* ---- of any size ----------------------------------------------------------------------------------------------------- */

/* A size that instructions have, at an address where they are atomic. */
static bool is_a_word(size_t size, const volatile void *memory)
{
    return size <= 16 && size > 0 && (size & (size - 1)) == 0 && ((uintptr_t)memory & (size - 1)) == 0;
}

typedef struct {
    enum what what;
    size_t size;
    void *into;           /* gets what was there, if it is not NULL */
    const void *operand;
    const void *expected;
    bool done;
} bytes;

static fsp_operated operate_bytes(volatile void *memory, void *arguments)
{
    bytes *of = arguments;
    void *there = (void *)memory;
    of->done = of->what != LOAD && (of->what != COMPARE_EXCHANGE || memcmp(there, of->expected, of->size) == 0);
    unsigned long found = 0;
    memcpy(&found, there, of->size < sizeof found ? of->size : sizeof found);
    if (of->into && (of->what != COMPARE_EXCHANGE || !of->done))
        memcpy(of->into, there, of->size);
    if (of->done)
        memcpy(there, of->operand, of->size);
    return (fsp_operated){ of->done, found };
}

/* Locks for private memory, by its address: held for a few copies. */
enum { LOCKS = 64 };
static struct {
    _Alignas(64) int taken;
} locks[LOCKS];

/* An operation on so many bytes.  The operand is copied first, for it may be where `into` is, or in the way of another operation. */
static bool operate(volatile void *memory, bytes of)
{
    char operand[of.size ? of.size : 1];
    if (of.operand)
        memcpy(operand, of.operand, of.size);
    of.operand = operand;
    if (may_be_shared(memory) && fsp_program_atomic(memory, FSP_BY_LOCK, operate_bytes, &of))
        return of.done;
    int *lock = &locks[(uintptr_t)memory / 64 % LOCKS].taken;
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
    operate_bytes(memory, &of);
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    return of.done;
}

/* Calls the function of the size, which moves values; `call` says how, of `T` and the function's suffix. */
#define BY_SIZE(size, call)          \
    switch (size) {                  \
    case 1: call(uint8_t, 1);        \
    case 2: call(uint16_t, 2);       \
    case 4: call(uint32_t, 4);       \
    case 8: call(uint64_t, 8);       \
    default: call(uint128_t, 16);    \
    }

#define ANY(type, name, ...)                                 \
    type any_##name(__VA_ARGS__) __asm__("__atomic_" #name); \
    type any_##name(__VA_ARGS__)

ANY(void, load, size_t size, const volatile void *memory, void *result, int order)
{
#define CALL(type, bytes)                          \
    {                                              \
        type value = load_##bytes(memory, order);  \
        memcpy(result, &value, sizeof value);      \
        return;                                    \
    }
    if (is_a_word(size, memory))
        BY_SIZE(size, CALL)
#undef CALL
    operate((volatile void *)memory, (bytes){ .what = LOAD, .size = size, .into = result });
}

ANY(void, store, size_t size, volatile void *memory, const void *value, int order)
{
#define CALL(type, bytes)                       \
    {                                           \
        type word;                              \
        memcpy(&word, value, sizeof word);      \
        store_##bytes(memory, word, order);     \
        return;                                 \
    }
    if (is_a_word(size, memory))
        BY_SIZE(size, CALL)
#undef CALL
    operate(memory, (bytes){ .what = STORE, .size = size, .operand = value });
}

ANY(void, exchange, size_t size, volatile void *memory, const void *value, void *result, int order)
{
#define CALL(type, bytes)                               \
    {                                                   \
        type word;                                      \
        memcpy(&word, value, sizeof word);              \
        word = exchange_##bytes(memory, word, order);   \
        memcpy(result, &word, sizeof word);             \
        return;                                         \
    }
    if (is_a_word(size, memory))
        BY_SIZE(size, CALL)
#undef CALL
    operate(memory, (bytes){ .what = EXCHANGE, .size = size, .operand = value, .into = result });
}

ANY(bool, compare_exchange, size_t size, volatile void *memory, void *expected, const void *desired, int success, int failure)
{
#define CALL(type, bytes)                                                            \
    {                                                                                \
        type word;                                                                   \
        memcpy(&word, desired, sizeof word);                                         \
        return compare_exchange_##bytes(memory, expected, word, success, failure);   \
    }
    if (is_a_word(size, memory))
        BY_SIZE(size, CALL)
#undef CALL
    bytes of = { .what = COMPARE_EXCHANGE, .size = size, .operand = desired, .expected = expected, .into = expected };
    return operate(memory, of);
}

/* As the compiler says of this processor: what is lock-free on one machine says so here too, and is no quicker for it. */
ANY(bool, is_lock_free, size_t size, const volatile void *memory)
{
    return size <= 8 && is_a_word(size, memory);
}

/* __sync_synchronize, which programs of before C11 put between plain and volatile accesses: what this processor has written
 * until now is seen by all that come to such a fence later. */
void fsp_atomics_fence(void);
void fsp_atomics_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    fsp_program_fence();
}

/* What C's compound assignments to atomic floating-point numbers raise. */
ANY(void, feraiseexcept, int exceptions)
{
    volatile float zero = 0, tiny = 1e-38f, huge = 1e38f, three = 3, result;
    if (exceptions & FE_INVALID)
        result = zero / zero;
    if (exceptions & FE_DIVBYZERO)
        result = 1 / zero;
    if (exceptions & FE_OVERFLOW)
        result = huge * huge;
    if (exceptions & FE_UNDERFLOW)
        result = tiny * tiny;
    if (exceptions & FE_INEXACT)
        result = 1 / three;
    (void)result;
}
