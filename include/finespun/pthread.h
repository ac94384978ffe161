/* POSIX threads on every node of a job: include it in place of <pthread.h> (and <semaphore.h>), or leave the program as it is
 * and build it by `fspcc --pthread`, which redirects the same calls when it links.  docs/porting.md says what a program must
 * be like, and has the table of calls.  SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What is different from one machine:
 * - Memory is shared between threads if it is a global or from malloc of a program built by `fspcc --pthread`, or from
 *   fsp_malloc.  Stacks and thread-local variables are private.
 * - Threads see each other's stores by the calls below, and only so: a plain flag that is written without a mutex may
 *   never be seen.  C11 atomics are atomic inside a node only: finespun/atomic.h has others.
 * - Creating a thread releases and its start acquires; its end releases and the join acquires.  Mutexes, rwlocks, semaphores,
 *   barriers, spin locks and pthread_once acquire and release as they should.
 * - A thread runs on an idle processor, by turns over the nodes; when there is none, beside others, where fewest are
 *   beside others: up to 96 such threads on each node, then EAGAIN.
 *
 * An object in private memory works as ever in a job of one process, and is error E011 in one of several; so is an argument
 * of pthread_create that points there (E012).  pthread_cancel and pthread_kill of another thread are error E013. */
#ifndef FINESPUN_PTHREAD_H
#define FINESPUN_PTHREAD_H

#include <finespun/pthread_names.h>

#include <pthread.h>
#include <semaphore.h>

#include <finespun/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The next threads created with these attributes run on this node; -1: anywhere.  0, or EINVAL. */
int fsp_pthread_attr_setnode_np(pthread_attr_t *attributes, int node);

/* Starts the runtime before main, in every process; main goes on in one.  Called by what is below. */
void fsp_pthread_start(void);

#ifdef __cplusplus
}
#endif

/* The library looks for the kind of a mutex here, where the C library's initialisers put it. */
#ifdef __cplusplus
static_assert(__builtin_offsetof(pthread_mutex_t, __data.__kind) == 16, "the C library's mutex has another layout");
#else
_Static_assert(__builtin_offsetof(pthread_mutex_t, __data.__kind) == 16, "the C library's mutex has another layout");
#endif

/* First of all constructors that a program can have. */
__attribute__((constructor(101))) static void finespun_pthread_starts(void) { fsp_pthread_start(); }

#endif
