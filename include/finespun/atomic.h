/* Atomic access to words of shared memory, from any processor of the job.
 *
 * The processor's own atomic instructions are atomic inside a node only: between nodes a word travels with its page, and two
 * nodes may write copies of it at once.  So are C11's atomics, std::atomic, and the __sync and __atomic builtins, unless
 * fspcc --pthread compiles them; a word is for those or for these.  These take the lock of the word's address around the
 * access, and acquire and release with it: each is as sequentially consistent as a C11 atomic operation without a memory
 * order.  They cost a lock and an unlock; a counter that every processor raises at every step is better kept apart in each
 * and summed at the end.
 *
 * p points to an integer or a pointer in shared memory (volatile or not) of any size.  All accesses of a word that is
 * used so must be by these; fsp_atomic_load too, since a plain load may see an old value for ever.
 * Works in C11 and C++17, with gcc and clang.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_ATOMIC_H
#define FINESPUN_ATOMIC_H

#include <finespun/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes, and gives back, the lock of a word's address; acquires and releases.  Between the two the word, and whatever else
 * the program keeps under it, is the caller's.  Not nested for one word (E022).  0, or a number of errno. */
int fsp_atomic_enter(const volatile void *word);
int fsp_atomic_leave(const volatile void *word);

#ifdef __cplusplus
}
#define FSP_ATOMIC_VALUE_ auto
#else
#define FSP_ATOMIC_VALUE_ __auto_type
#endif

/* What comes first is evaluated before the word is taken; `access` has *fsp_word_, fsp_before_ and what came first. */
#define FSP_ATOMIC_(p, first, access)                                                                              \
    __extension__({                                                                                                \
        FSP_ATOMIC_VALUE_ fsp_word_ = (p);                                                                         \
        first;                                                                                                     \
        fsp_atomic_enter(fsp_word_);                                                                               \
        FSP_ATOMIC_VALUE_ fsp_before_ = *fsp_word_;                                                                \
        access;                                                                                                    \
        fsp_atomic_leave(fsp_word_);                                                                               \
        fsp_before_;                                                                                               \
    })
#define FSP_ATOMIC_WITH_(p, value, access) FSP_ATOMIC_(p, FSP_ATOMIC_VALUE_ fsp_value_ = (value), access)

#define fsp_atomic_load(p) FSP_ATOMIC_(p, (void)0, (void)0)
#define fsp_atomic_store(p, value) ((void)FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_value_))
#define fsp_atomic_exchange(p, value) FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_value_)
#define fsp_atomic_fetch_add(p, value) FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_before_ + fsp_value_)
#define fsp_atomic_fetch_sub(p, value) FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_before_ - fsp_value_)
#define fsp_atomic_fetch_or(p, value) FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_before_ | fsp_value_)
#define fsp_atomic_fetch_and(p, value) FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_before_ & fsp_value_)
#define fsp_atomic_fetch_xor(p, value) FSP_ATOMIC_WITH_(p, value, *fsp_word_ = fsp_before_ ^ fsp_value_)

/* If the word is *expected it becomes `desired` and the result is 1; else *expected becomes the word and the result is 0.
 * Never fails for no reason. */
#define fsp_atomic_compare_exchange(p, expected, desired)                                                          \
    __extension__({                                                                                                \
        FSP_ATOMIC_VALUE_ fsp_expected_ = (expected);                                                              \
        FSP_ATOMIC_VALUE_ fsp_wanted_ = *fsp_expected_;                                                            \
        FSP_ATOMIC_VALUE_ fsp_found_ = FSP_ATOMIC_WITH_(                                                           \
            p, desired, if (fsp_before_ == fsp_wanted_) { *fsp_word_ = fsp_value_; });                             \
        if (!(fsp_found_ == fsp_wanted_)) *fsp_expected_ = fsp_found_;                                             \
        fsp_found_ == fsp_wanted_;                                                                                 \
    })

#endif
