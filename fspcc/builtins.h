/* Builtins of the compiler that it has as instructions also where it makes calls of the other atomic operations (fspcc --pthread puts
 * this in front of each source): the same by those.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#if !defined(FINESPUN_BUILTINS_H) && !defined(__ASSEMBLER__)
#define FINESPUN_BUILTINS_H
#pragma GCC system_header /* an unused result is no warning here either */

#define __atomic_test_and_set(p, order) \
    ((_FSP_BOOL)__atomic_exchange_n((volatile unsigned char *)(p), 1, order))
#define __atomic_clear(p, order) __atomic_store_n((volatile unsigned char *)(p), 0, order)

/* What follows the value is a list of variables that the compiler never looked at. */
#define _FSP_SYNC(builtin, p, value, ...) builtin(p, value, __ATOMIC_SEQ_CST)

#define __sync_fetch_and_add(p, ...) _FSP_SYNC(__atomic_fetch_add, p, __VA_ARGS__, 0)
#define __sync_fetch_and_sub(p, ...) _FSP_SYNC(__atomic_fetch_sub, p, __VA_ARGS__, 0)
#define __sync_fetch_and_or(p, ...) _FSP_SYNC(__atomic_fetch_or, p, __VA_ARGS__, 0)
#define __sync_fetch_and_and(p, ...) _FSP_SYNC(__atomic_fetch_and, p, __VA_ARGS__, 0)
#define __sync_fetch_and_xor(p, ...) _FSP_SYNC(__atomic_fetch_xor, p, __VA_ARGS__, 0)
#define __sync_fetch_and_nand(p, ...) _FSP_SYNC(__atomic_fetch_nand, p, __VA_ARGS__, 0)
#define __sync_add_and_fetch(p, ...) _FSP_SYNC(__atomic_add_fetch, p, __VA_ARGS__, 0)
#define __sync_sub_and_fetch(p, ...) _FSP_SYNC(__atomic_sub_fetch, p, __VA_ARGS__, 0)
#define __sync_or_and_fetch(p, ...) _FSP_SYNC(__atomic_or_fetch, p, __VA_ARGS__, 0)
#define __sync_and_and_fetch(p, ...) _FSP_SYNC(__atomic_and_fetch, p, __VA_ARGS__, 0)
#define __sync_xor_and_fetch(p, ...) _FSP_SYNC(__atomic_xor_fetch, p, __VA_ARGS__, 0)
#define __sync_nand_and_fetch(p, ...) _FSP_SYNC(__atomic_nand_fetch, p, __VA_ARGS__, 0)
#define __sync_lock_test_and_set(p, ...) _FSP_SYNC(__atomic_exchange_n, p, __VA_ARGS__, 0)
#define __sync_lock_release(p, ...) __atomic_store_n(p, 0, __ATOMIC_SEQ_CST)

/* A cast makes the type one without qualifiers. */
#define _FSP_TYPE(p) __typeof__((__typeof__(*(p)))0)
#define __sync_val_compare_and_swap(p, before, ...) _FSP_COMPARE(p, before, _fsp_before, __VA_ARGS__, 0)
#define __sync_bool_compare_and_swap(p, before, ...) _FSP_COMPARE(p, before, _fsp_is_done, __VA_ARGS__, 0)
#define _FSP_COMPARE(p, before, result, after, ...)                                                                    \
    __extension__({                                                                                                    \
        _FSP_TYPE(p) _fsp_before = (_FSP_TYPE(p))(before);                                                             \
        _FSP_BOOL _fsp_is_done =                                                                                       \
            __atomic_compare_exchange_n(p, &_fsp_before, after, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                \
        (void)_fsp_is_done;                                                                                            \
        result;                                                                                                        \
    })

#ifdef __cplusplus
#define _FSP_BOOL bool
extern "C" void fsp_atomics_fence(void);
#else
#define _FSP_BOOL _Bool
extern void fsp_atomics_fence(void);
#endif
#define __sync_synchronize() fsp_atomics_fence()

#endif
