/* The PARMACS / ANL macros, for programs written to them: SPLASH, SPLASH-2, SPLASH-3, SPLASH-4 and their kin.
 *
 * Include this where the program's macro file stood, compile and link with `fspcc --parmacs` (docs/porting.md).  Sources that go
 * through m4 take share/finespun/c.m4.finespun instead, which includes this header for them.
 *
 * Processes made by CREATE have what main wrote before it, on every node: the program's globals and its malloc memory are
 * shared.  Locks, barriers, conditions and pauses are plain memory, known by their addresses: in globals, malloc or G_MALLOC
 * memory, as many as you like, initialised or all zero.
 *
 * FSP_SPLASH, defined before or by -D, names the dialect where dialects differ (pauses): 1, 2, 3 (usual) or 4.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_PARMACS_H
#define FINESPUN_PARMACS_H

#include <finespun/memory.h>
#include <finespun/sync.h>
#include <finespun/thread.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef FSP_SPLASH
#define FSP_SPLASH 3
#endif
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What the macros call: part of what fspcc links -------------------------------------------------------------- */

/* Start of main's parallel part: ends the job with a message if the program was not linked with --share-globals. */
void fsp_parmacs_begin(void);
/* Starts `count` processes that run `worker`, each on an idle processor by turns over the nodes; releases.  Without enough
 * idle processors it ends the job with a message; in a job of one processor the processes are threads of this one. */
void fsp_parmacs_create(void (*worker)(void), long count);
/* Waits for the ends of all processes made so far; acquires.  `count` is not looked at: dialects differ about it. */
void fsp_parmacs_wait(long count);

/* The same as fsp_mutex_lock and so on, but what this process has printed is written before others go on: lines come in the
 * order in which the program synchronizes. */
void fsp_parmacs_lock(fsp_mutex_t *lock);
void fsp_parmacs_unlock(fsp_mutex_t *lock);
void fsp_parmacs_barrier(fsp_barrier_t *barrier, long count);
void fsp_parmacs_cond_wait(fsp_cond_t *cond, fsp_mutex_t *lock);

/* A pause.  All zero: not set. */
typedef struct fsp_pause {
    fsp_mutex_t mutex;
    fsp_cond_t cond;
    unsigned long set;
} fsp_pause_t;
/* SPLASH-3 and -4: a semaphore.  Setting counts up, waiting waits for one and takes it, clearing does nothing. */
void fsp_pause_post(fsp_pause_t *pause);
void fsp_pause_take(fsp_pause_t *pause);
/* SPLASH-2: a flag.  Waiting returns with the pause locked; clearing resets and unlocks it. */
void fsp_pause_raise(fsp_pause_t *pause);
void fsp_pause_hold(fsp_pause_t *pause);
void fsp_pause_drop(fsp_pause_t *pause);
/* SPLASH: an event.  Set until cleared; waiting returns while it is set. */
void fsp_pause_await(fsp_pause_t *pause);
void fsp_pause_reset(fsp_pause_t *pause);

/* One access to a word that others access too, at a time: other accesses to the same eight bytes wait until the end.  An
 * acquire and a release.  Private words (on a stack) need none. */
void fsp_atomic_begin(const volatile void *word);
void fsp_atomic_end(const volatile void *word);

/* Microseconds. */
unsigned long fsp_parmacs_clock(void);

#ifdef __cplusplus
}
#endif

/* An access with `op` done on the word at `fsp_word`; its value before.  Statement expressions are GNU C. */
#define FSP_ATOMIC(word, op)                            \
    __extension__({                                     \
        __typeof__(word) *fsp_word = &(word);           \
        fsp_atomic_begin(fsp_word);                     \
        __typeof__(word) fsp_old = *fsp_word;           \
        op;                                             \
        fsp_atomic_end(fsp_word);                       \
        fsp_old;                                        \
    })
#define FSP_FETCH_ADD(word, value)                      \
    __extension__({                                     \
        __typeof__((word) + (value)) fsp_by = (value);  \
        FSP_ATOMIC(word, *fsp_word = fsp_old + fsp_by); \
    })
#define FSP_FETCH_SUB(word, value)                      \
    __extension__({                                     \
        __typeof__((word) - (value)) fsp_by = (value);  \
        FSP_ATOMIC(word, *fsp_word = fsp_old - fsp_by); \
    })
#define FSP_LOAD(word) FSP_ATOMIC(word, (void)0)
#define FSP_STORE(word, value)                          \
    __extension__({                                     \
        __typeof__(word) fsp_new = (value);             \
        FSP_ATOMIC(word, *fsp_word = fsp_new);          \
        (void)0;                                        \
    })
/* Stores `desired` if the word is what `expected` holds: 1; else `expected` becomes what the word is: 0. */
#define FSP_CAS(word, expected, desired)                \
    __extension__({                                     \
        __typeof__(word) fsp_new = (desired);           \
        __typeof__(word) fsp_hoped = (expected);        \
        int fsp_done = 0;                               \
        __typeof__(word) fsp_was = FSP_ATOMIC(word, {   \
            if (fsp_old == fsp_hoped) {                 \
                *fsp_word = fsp_new;                    \
                fsp_done = 1;                           \
            }                                           \
        });                                             \
        if (!fsp_done)                                  \
            (expected) = fsp_was;                       \
        fsp_done;                                       \
    })

#define FSP_CREATE(worker, count)                       \
    {                                                   \
        fsp_parmacs_create(worker, (long)(count)-1);    \
        (worker)();                                     \
    }
/* CREATE(f) starts one process; CREATE(f, n) makes n of them, the caller being one. */
#define FSP_CREATE_1(worker) { fsp_parmacs_create(worker, 1); }
#define FSP_CREATE_2(worker, count) FSP_CREATE(worker, count)
#define FSP_BY_COUNT(one, two, which, ...) which

#if FSP_SPLASH >= 3
#define FSP_SETPAUSE fsp_pause_post
#define FSP_WAITPAUSE fsp_pause_take
#define FSP_CLEARPAUSE(pause) ((void)(pause))
#elif FSP_SPLASH == 2
#define FSP_SETPAUSE fsp_pause_raise
#define FSP_WAITPAUSE fsp_pause_hold
#define FSP_CLEARPAUSE fsp_pause_drop
#else
#define FSP_SETPAUSE fsp_pause_raise
#define FSP_WAITPAUSE fsp_pause_await
#define FSP_CLEARPAUSE fsp_pause_reset
#endif

/* ---- The macros ---------------------------------------------------------------------------------------------------- */

/* Statements are blocks: right with and without a semicolon behind.  c.m4.finespun has these itself. */
#ifndef FSP_PARMACS_M4

#define MAIN_ENV
#define EXTERN_ENV
#define ENV

/* With arguments, which say how much memory is wanted, or without. */
#define MAIN_INITENV fsp_parmacs_begin(); (void)FSP_NO_ARGUMENTS
#define FSP_NO_ARGUMENTS(...) 0;
enum { FSP_NO_ARGUMENTS };
#define MAIN_END { exit(0); }

#define CREATE(...) FSP_BY_COUNT(__VA_ARGS__, FSP_CREATE_2, FSP_CREATE_1, )(__VA_ARGS__)
#define WAIT_FOR_END(count) { fsp_parmacs_wait((long)(count)); }

/* Expressions. */
#define G_MALLOC(...) FSP_BY_COUNT(__VA_ARGS__, FSP_MALLOC_2, FSP_MALLOC_1, )(__VA_ARGS__)
#define FSP_MALLOC_1(bytes) fsp_calloc(1, bytes)
#define FSP_MALLOC_2(bytes, home) fsp_calloc(1, bytes)
#define G_MALLOC_F G_MALLOC
#define NU_MALLOC G_MALLOC
#define NU_MALLOC_F G_MALLOC
#define G_FREE(...) FSP_BY_COUNT(__VA_ARGS__, FSP_FREE_2, FSP_FREE_1, )(__VA_ARGS__)
#define FSP_FREE_1(memory) fsp_free(memory)
#define FSP_FREE_2(memory, bytes) fsp_free(memory)
#define NU_FREE G_FREE

#define LOCKDEC(lock) fsp_mutex_t lock;
#define LOCKINIT(lock) { (void)&(lock); }
#define LOCK(lock) { fsp_parmacs_lock(&(lock)); }
#define UNLOCK(lock) { fsp_parmacs_unlock(&(lock)); }
#define ALOCKDEC(locks, count) fsp_mutex_t locks[count];
#define ALOCKINIT(locks, count) { (void)(locks); }
#define ALOCK(locks, index) { fsp_parmacs_lock(&(locks)[index]); }
#define AULOCK(locks, index) { fsp_parmacs_unlock(&(locks)[index]); }
#define AGETL(locks, index) ((locks)[index])

#define BARDEC(barrier) fsp_barrier_t barrier;
#define BAREXTERN
#define BARINIT(...) { (void)0; }
#define BARRIER(barrier, count) { fsp_parmacs_barrier(&(barrier), (long)(count)); }

#define CONDVARDEC(cond) fsp_cond_t cond;
#define CONDVARINIT(cond) { (void)&(cond); }
#define CONDVARWAIT(cond, lock) { fsp_parmacs_cond_wait(&(cond), &(lock)); }
#define CONDVARSIGNAL(cond) { fsp_cond_signal(&(cond)); }
#define CONDVARBCAST(cond) { fsp_cond_broadcast(&(cond)); }

#define PAUSEDEC(pause) fsp_pause_t pause;
#define PAUSEINIT(pause) { (pause).set = 0; }
#define SETPAUSE(pause) { FSP_SETPAUSE(&(pause)); }
#define WAITPAUSE(pause) { FSP_WAITPAUSE(&(pause)); }
#define CLEARPAUSE(pause) { FSP_CLEARPAUSE(&(pause)); }

#define FETCH_ADD(word, value) FSP_FETCH_ADD(word, value)
#define FETCH_SUB(word, value) FSP_FETCH_SUB(word, value)
#define FETCH_ADD_DOUBLE(pointer, value) FSP_FETCH_ADD(*(pointer), value)
#define CAS(word, expected, desired) FSP_CAS(word, expected, desired)
#define LOAD(word) FSP_LOAD(word)
#define STORE(word, value) FSP_STORE(word, value)
/* The stores that they order stand between locks, which order them already. */
#define RELEASE_FENCE() { __atomic_thread_fence(__ATOMIC_RELEASE); }
#define ACQUIRE_FENCE() { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
#define FULL_FENCE() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#define CLOCK(time) { (time) = fsp_parmacs_clock(); }
#define SPLASH3_ROI_BEGIN() { fsp_phase_begin("ROI"); }
#define SPLASH3_ROI_END() { fsp_phase_end(); }
#define SPLASH4_ROI_BEGIN() { fsp_phase_begin("ROI"); }
#define SPLASH4_ROI_END() { fsp_phase_end(); }

#endif
#endif
