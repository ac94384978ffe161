/* Threads on any processor of the job.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_THREAD_H
#define FINESPUN_THREAD_H

#include <finespun/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fsp_thread { uint64_t reserved; } fsp_thread_t;

/* Runs fn(arg) on an idle processor, by turns over the nodes.  fn must be a function of the program itself (it is
 * passed as an offset, so address randomisation does not matter); arg is passed as it is, so point to shared memory.
 * Creating releases, and the thread acquires.  FSP_BUSY when no processor is idle: one thread runs per processor.
 * The handle may live anywhere; any processor may join it if it lives in shared memory. */
fsp_status fsp_thread_create(fsp_thread_t *thread, void *(*fn)(void *), void *arg);
/* The same on the given processor: FSP_BUSY if it is running. */
fsp_status fsp_thread_create_on(fsp_thread_t *thread, int processor, void *(*fn)(void *), void *arg);
/* Waits for the end; acquires what the thread released at its end.  result may be NULL.  Join each thread once. */
fsp_status fsp_thread_join(fsp_thread_t *thread, void **result);

/* Runs fn(arg) once on every processor, the caller's included, and returns when all are done.  In the main model
 * call it from processor 0 while no thread runs; in the SPMD model every process calls it, and each runs fn on its
 * own processors. */
fsp_status fsp_parallel(void (*fn)(void *), void *arg);

#ifdef __cplusplus
}
#endif
#endif
