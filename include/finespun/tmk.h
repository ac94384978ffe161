/* TreadMarks' programming interface [Amza96] on Finespun: existing programs include this header (or <Tmk.h>, with
 * -I.../include/finespun/compat) and link with -lfinespun_tmk -lfinespun.  `pkg-config --cflags --libs finespun-tmk` says
 * both.  docs/porting.md has a worked port.
 *
 * Every process runs main and calls Tmk_startup; what Tmk_malloc gives is shared, all else is private.  Shared memory is
 * consistent at barriers and locks (release consistency).  A mistake ends the job with one message.  None of these calls
 * may be made by a thread other than main's, nor before Tmk_startup (but Tmk_errexit).
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_TMK_H
#define FINESPUN_TMK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TMK_NPROCS 1024   /* most processes of a job */
#define TMK_NLOCKS 4096   /* locks are numbered 0 .. TMK_NLOCKS-1 */
#define TMK_NCONDS 8      /* condition variables of each lock, 0 .. TMK_NCONDS-1 */
#define TMK_NBARRIERS 256 /* barriers are numbered 0 .. TMK_NBARRIERS-1 */

extern unsigned Tmk_proc_id;   /* this process, 0 .. Tmk_nprocs-1; valid from Tmk_startup on, as the next one */
extern unsigned Tmk_nprocs;    /* processes of the job: N x P of `finespun run -n N -p P`; 1 without a launcher */
extern unsigned Tmk_page_size; /* bytes of a page: 4096 */

/* Starts the runtime in this process; each process of the job calls it.  Arguments before the first "--" are the program's:
 * they, and getopt's variables, are left alone, so that it may parse them before or after.  Those after it were TreadMarks'
 * own: "-n N" must agree with the launcher, since it is the launcher that starts processes; others are pointed out and
 * have no effect. */
void Tmk_startup(int argc, char **argv);

/* Waits until all processes have come to their end, and exits with this status. */
void Tmk_exit(int status) __attribute__((noreturn));

/* Ends the whole job with a message, formatted as by printf, and exit code 1.  It has no parameter list before C23, since
 * programs of the time declare it themselves as `void Tmk_errexit();`. */
#if defined(__cplusplus) || defined(TMK_PROTOTYPES) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
void Tmk_errexit(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
#else
void Tmk_errexit() __attribute__((noreturn));
#endif

/* Shared memory, 16-byte aligned, at the same address in every process; any process may allocate and free it at any time.
 * Contents are undefined.  In C++ it is char *, as published; C programs assign it without a cast. */
#ifdef __cplusplus
char *Tmk_malloc(size_t size);
char *Tmk_sbrk(size_t size);
#else
void *Tmk_malloc(size_t size);
void *Tmk_sbrk(size_t size); /* zeroed, page-aligned, never freed; areas of two calls need not touch */
#endif
void Tmk_free(void *memory);

/* Gives the other processes' private variable the value it has here: usually a pointer that process 0 got from Tmk_malloc.
 * The variable is a global or a static one, or part of one; elsewhere (stack, malloc) it is refused.  Each of the others
 * has the value when it leaves its next Tmk_barrier; if it acquires a lock that this process releases after the call, then
 * already there.  The values of several calls arrive in their order. */
void Tmk_distribute(const void *variable, size_t size);

/* Waits until all processes have arrived; releases and acquires.  All numbers mean the same barrier of all. */
void Tmk_barrier(unsigned id);

/* Locks: acquiring acquires, releasing releases.  First come, first served; not recursive (E022); released by the process
 * that acquired (E020). */
void Tmk_lock_acquire(unsigned lock);
void Tmk_lock_release(unsigned lock);

/* Condition variables, with their lock held.  Test the condition in a loop. */
void Tmk_lock_cond_wait(unsigned lock, unsigned cond);
void Tmk_lock_cond_signal(unsigned lock, unsigned cond);    /* wakes the longest waiter, if any */
void Tmk_lock_cond_broadcast(unsigned lock, unsigned cond); /* wakes all waiters */

/* The dialect of FASTLINK and other early programs, whose barriers take the set of the processes that meet, bit p for
 * process p, and Tmk_mask is the set of all (at most 32).  A number may look like a set, so that such a program says what
 * it is: compile all of it with -DTMK_BARRIER_MASK.  Up to 1,024 different sets may be used. */
void Tmk_barrier_group(unsigned mask);
#ifdef TMK_BARRIER_MASK
extern unsigned Tmk_mask;
#define Tmk_barrier Tmk_barrier_group
#else
#define Tmk_mask Tmk_mask_needs_compiling_with_DTMK_BARRIER_MASK
#endif

#ifdef __cplusplus
}
#endif
#endif
