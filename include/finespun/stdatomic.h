/* C11's atomics on every node of a job, as `fspcc --pthread` has them in place of <stdatomic.h> where the compiler makes no calls of atomic
 * operations (clang).  C only.
 *
 * The atomic types are structures here, so that what cannot be served does not compile: an atomic variable without one of the
 * calls below (`counter++`, `flag = 1`, `int x = counter`).  Write atomic_fetch_add(&counter, 1), atomic_store(&flag, 1),
 * atomic_load(&counter), and initialise by ATOMIC_VAR_INIT(1) or = {1}.  _Atomic(T) declares one of any integer or pointer type;
 * the bare qualifier (_Atomic int) stays the compiler's own, whose operators are atomic inside a node only.
 * Each call is as finespun/atomic.h says, whatever memory order it is given.  A fence orders inside a node only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_STDATOMIC_H
#define FINESPUN_STDATOMIC_H

#ifndef __cplusplus

/* The compilers' own, were it included after this. */
#define _STDATOMIC_H
#define __CLANG_STDATOMIC_H

#include <finespun/atomic.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define _Atomic(type) struct { type fsp_value; }

typedef _Atomic(bool) atomic_bool;
typedef _Atomic(char) atomic_char;
typedef _Atomic(signed char) atomic_schar;
typedef _Atomic(unsigned char) atomic_uchar;
typedef _Atomic(short) atomic_short;
typedef _Atomic(unsigned short) atomic_ushort;
typedef _Atomic(int) atomic_int;
typedef _Atomic(unsigned) atomic_uint;
typedef _Atomic(long) atomic_long;
typedef _Atomic(unsigned long) atomic_ulong;
typedef _Atomic(long long) atomic_llong;
typedef _Atomic(unsigned long long) atomic_ullong;
typedef _Atomic(wchar_t) atomic_wchar_t;
typedef _Atomic(int_least8_t) atomic_int_least8_t;
typedef _Atomic(uint_least8_t) atomic_uint_least8_t;
typedef _Atomic(int_least16_t) atomic_int_least16_t;
typedef _Atomic(uint_least16_t) atomic_uint_least16_t;
typedef _Atomic(int_least32_t) atomic_int_least32_t;
typedef _Atomic(uint_least32_t) atomic_uint_least32_t;
typedef _Atomic(int_least64_t) atomic_int_least64_t;
typedef _Atomic(uint_least64_t) atomic_uint_least64_t;
typedef _Atomic(int_fast32_t) atomic_int_fast32_t;
typedef _Atomic(uint_fast32_t) atomic_uint_fast32_t;
typedef _Atomic(int_fast64_t) atomic_int_fast64_t;
typedef _Atomic(uint_fast64_t) atomic_uint_fast64_t;
typedef _Atomic(intptr_t) atomic_intptr_t;
typedef _Atomic(uintptr_t) atomic_uintptr_t;
typedef _Atomic(size_t) atomic_size_t;
typedef _Atomic(ptrdiff_t) atomic_ptrdiff_t;
typedef _Atomic(intmax_t) atomic_intmax_t;
typedef _Atomic(uintmax_t) atomic_uintmax_t;
typedef _Atomic(bool) atomic_flag;

typedef enum memory_order {
    memory_order_relaxed,
    memory_order_consume,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
} memory_order;

#define ATOMIC_VAR_INIT(value) { (value) }
#define ATOMIC_FLAG_INIT { 0 }
#define kill_dependency(value) (value)
#define atomic_is_lock_free(p) ((void)(p), 0)
#define atomic_thread_fence(order) __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomic_signal_fence(order) __atomic_signal_fence(__ATOMIC_SEQ_CST)

#define atomic_init(p, value) ((void)((p)->fsp_value = (value)))
#define atomic_load(p) fsp_atomic_load(&(p)->fsp_value)
#define atomic_store(p, value) fsp_atomic_store(&(p)->fsp_value, value)
#define atomic_exchange(p, value) fsp_atomic_exchange(&(p)->fsp_value, value)
#define atomic_fetch_add(p, value) fsp_atomic_fetch_add(&(p)->fsp_value, value)
#define atomic_fetch_sub(p, value) fsp_atomic_fetch_sub(&(p)->fsp_value, value)
#define atomic_fetch_or(p, value) fsp_atomic_fetch_or(&(p)->fsp_value, value)
#define atomic_fetch_and(p, value) fsp_atomic_fetch_and(&(p)->fsp_value, value)
#define atomic_fetch_xor(p, value) fsp_atomic_fetch_xor(&(p)->fsp_value, value)
#define atomic_compare_exchange_strong(p, expected, value) fsp_atomic_compare_exchange(&(p)->fsp_value, expected, value)
#define atomic_compare_exchange_weak(p, expected, value) atomic_compare_exchange_strong(p, expected, value)
#define atomic_flag_test_and_set(p) atomic_exchange(p, 1)
#define atomic_flag_clear(p) atomic_store(p, 0)

#define atomic_load_explicit(p, order) atomic_load(p)
#define atomic_store_explicit(p, value, order) atomic_store(p, value)
#define atomic_exchange_explicit(p, value, order) atomic_exchange(p, value)
#define atomic_fetch_add_explicit(p, value, order) atomic_fetch_add(p, value)
#define atomic_fetch_sub_explicit(p, value, order) atomic_fetch_sub(p, value)
#define atomic_fetch_or_explicit(p, value, order) atomic_fetch_or(p, value)
#define atomic_fetch_and_explicit(p, value, order) atomic_fetch_and(p, value)
#define atomic_fetch_xor_explicit(p, value, order) atomic_fetch_xor(p, value)
#define atomic_compare_exchange_strong_explicit(p, expected, value, success, failure) \
    atomic_compare_exchange_strong(p, expected, value)
#define atomic_compare_exchange_weak_explicit(p, expected, value, success, failure) \
    atomic_compare_exchange_strong(p, expected, value)
#define atomic_flag_test_and_set_explicit(p, order) atomic_flag_test_and_set(p)
#define atomic_flag_clear_explicit(p, order) atomic_flag_clear(p)

#endif
#endif
