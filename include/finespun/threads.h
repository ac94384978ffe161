/* The threads of C11 on every node of a job: include it in place of <threads.h>, or leave the program as it is and build it
 * by `fspcc --pthread`.  All that finespun/pthread.h says holds here too.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_THREADS_H
#define FINESPUN_THREADS_H

#include <finespun/pthread.h>

#include <threads.h>

#endif
