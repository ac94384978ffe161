/* The system call futex (fspcc --pthread), for words that several nodes share: by the program's own calls, which are also those of C++'s
 * std::atomic wait and of what is made of it (latch, barrier, semaphores).
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "sharing.h"

#include <errno.h>
#include <finespun/program.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    long of[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) of[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_futex && may_be_shared((void *)of[0])) {
        long result = fsp_program_futex((const unsigned *)of[0], (int)of[1], (unsigned)of[2], (const struct timespec *)of[3],
                                        (unsigned)of[5]);
        if (result != LONG_MIN) {
            if (result >= 0)
                return result;
            errno = (int)-result;
            return -1;
        }
    }
    return __real_syscall(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
