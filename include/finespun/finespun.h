/* Finespun: one memory, many machines.  The whole C API; the subjects have a header each.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_FINESPUN_H
#define FINESPUN_FINESPUN_H

#include <finespun/base.h>   /* start, end, who am I, errors, phases */
#include <finespun/memory.h> /* the shared heap */
#include <finespun/sync.h>   /* mutex, condition variable, barrier, flag */
#include <finespun/thread.h> /* threads on any processor */

#endif
