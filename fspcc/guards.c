/* Static variables of C++ functions, made once in the whole job (fspc++ --pthread): the guards that stand beside them.
 *
 * A guard has eight bytes.  The program looks at the first, and calls what is here if it is 0.  That byte stays 0: were it 1, a thread
 * on another node would find it with no acquire, and the variable as it was before.  The second four bytes say how far the
 * variable is, and are changed by atomic operations, which acquire and release.  Each process remembers guards that it has found
 * done; asking again is a look into its table.
 *
 * A guard in private memory, a library's, is the library's own matter.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "sharing.h"

#include <finespun/program.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

int __real___cxa_guard_acquire(uint64_t *guard);
int __wrap___cxa_guard_acquire(uint64_t *guard);
void __real___cxa_guard_release(uint64_t *guard);
void __wrap___cxa_guard_release(uint64_t *guard);
void __real___cxa_guard_abort(uint64_t *guard);
void __wrap___cxa_guard_abort(uint64_t *guard);
long __wrap_syscall(long number, ...);

/* atomics.c */
uint32_t exchange_4(volatile void *word, uint32_t value, int order) __asm__("__atomic_exchange_4");
bool compare_exchange_4(volatile void *word, void *expected, uint32_t desired, int success, int failure)
    __asm__("__atomic_compare_exchange_4");

enum { UNTOUCHED, BEGUN, AWAITED, DONE };

/* Guards that are done, as this process has seen; a new one takes the place of an old one. */
enum { REMEMBERED = 1024 };
static uint64_t *remembered[REMEMBERED];

static uint64_t **place_of(uint64_t *guard)
{
    return &remembered[((uintptr_t)guard >> 3) % REMEMBERED];
}

/* The guards whose variables this thread is making, the innermost last. */
enum { DEPTH_MAX = 16 };
static __thread uint64_t *making[DEPTH_MAX];
static __thread unsigned depth;

static uint32_t *state_of(uint64_t *guard)
{
    return (uint32_t *)guard + 1;
}

static void refuse_recursion(uint64_t *guard)
{
    for (unsigned i = 0; i < depth && i < DEPTH_MAX; i++)
        if (making[i] == guard)
            fsp_program_recursion(guard);
}

int __wrap___cxa_guard_acquire(uint64_t *guard)
{
    if (!is_variable(guard))
        return __real___cxa_guard_acquire(guard);
    if (__atomic_load_n(place_of(guard), __ATOMIC_ACQUIRE) == guard)
        return 0;
    for (;;) {
        uint32_t found = UNTOUCHED;
        if (compare_exchange_4(state_of(guard), &found, BEGUN, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            if (depth++ < DEPTH_MAX)
                making[depth - 1] = guard;
            return 1;
        }
        if (found == DONE) {
            __atomic_store_n(place_of(guard), guard, __ATOMIC_RELEASE);
            return 0;
        }
        refuse_recursion(guard);
        if (found == AWAITED ||
            compare_exchange_4(state_of(guard), &found, AWAITED, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            __wrap_syscall(SYS_futex, state_of(guard), FUTEX_WAIT, AWAITED, NULL, NULL, 0);
    }
}

/* The variable is no longer being made, and this is how far it is. */
static void leave(uint64_t *guard, uint32_t state)
{
    depth--;
    if (exchange_4(state_of(guard), state, __ATOMIC_SEQ_CST) == AWAITED)
        __wrap_syscall(SYS_futex, state_of(guard), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void __wrap___cxa_guard_release(uint64_t *guard)
{
    if (is_variable(guard))
        leave(guard, DONE);
    else
        __real___cxa_guard_release(guard);
}

void __wrap___cxa_guard_abort(uint64_t *guard)
{
    if (is_variable(guard))
        leave(guard, UNTOUCHED);
    else
        __real___cxa_guard_abort(guard);
}
