/* Mutex, condition variable, barrier, flag.  Every one is plain memory of the shared heap: all-zero bytes are an
 * initialised object, it may stand inside a struct, and there may be millions.  An object is known by its address:
 * do not copy it.  Threads that wait for each other for ever end a job of `finespun run`, with E026 to E029.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_SYNC_H
#define FINESPUN_SYNC_H

#include <finespun/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fsp_mutex { uint64_t reserved; } fsp_mutex_t;
typedef struct fsp_cond { uint64_t reserved; } fsp_cond_t;
typedef struct fsp_barrier { uint64_t reserved; } fsp_barrier_t;
typedef struct fsp_flag { uint64_t reserved; } fsp_flag_t;

#define FSP_MUTEX_INIT { 0 }
#define FSP_COND_INIT { 0 }
#define FSP_BARRIER_INIT { 0 }
#define FSP_FLAG_INIT { 0 }

/* Locking acquires: what the last unlocker wrote before unlocking is seen.  Unlocking releases.  First come, first
 * served (with --locks migratory the holder's node first, within bounds).  Not recursive (E022).  Unlock only in the
 * processor that locked (E020). */
fsp_status fsp_mutex_lock(fsp_mutex_t *mutex);
fsp_status fsp_mutex_trylock(fsp_mutex_t *mutex); /* FSP_BUSY if held; --locks migratory: or on its way */
fsp_status fsp_mutex_unlock(fsp_mutex_t *mutex);

/* Waits with the mutex given up, and locks it again before returning.  A signal after the wait began is not lost.
 * Test the condition in a loop. */
fsp_status fsp_cond_wait(fsp_cond_t *cond, fsp_mutex_t *mutex);
fsp_status fsp_cond_signal(fsp_cond_t *cond);    /* wakes the longest waiter, if any */
fsp_status fsp_cond_broadcast(fsp_cond_t *cond); /* wakes all waiters */

/* Waits until `count` processors have arrived; releases and acquires.  Usable again at once.  All must give the same
 * count (E021). */
fsp_status fsp_barrier_wait(fsp_barrier_t *barrier, unsigned count);
/* All processors of the job; collected inside each node first.  In the SPMD model, outside of fsp_parallel, a process's
 * main arrives for its other processors too.  In the main model a processor that runs nothing never arrives; if
 * none does but the caller, that is E025. */
fsp_status fsp_barrier_all(void);

/* A flag holds a number, at first 0, that only grows.  Setting releases; a wait acquires and returns when the value is
 * at least `value`. */
fsp_status fsp_flag_set(fsp_flag_t *flag, uint32_t value); /* a smaller value changes nothing */
fsp_status fsp_flag_wait(fsp_flag_t *flag, uint32_t value);
uint32_t fsp_flag_read(fsp_flag_t *flag);     /* the value now; acquires */
fsp_status fsp_flag_reset(fsp_flag_t *flag);  /* back to 0; nobody may be waiting */

#ifdef __cplusplus
}
#endif
#endif
