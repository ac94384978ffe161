/* What the C tests share.  Each test is one program, run by `finespun run`; it exits with 0 if all it checks holds.  The
 * comment at a test's head names the configurations to run it in, one line each:
 *     run: FLAGS OF finespun run [-- ARGUMENTS]
 *     expect: TEXT ON stderr, of the run line above it
 *     exit: CODE of the run line above it, when it is not 0
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_TESTS_CHECK_H
#define FINESPUN_TESTS_CHECK_H

#include <errno.h>
#include <finespun/finespun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        int errno_then = errno;                                                                                    \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: processor %d: %s does not hold (errno %d: %s)\n", __FILE__, __LINE__,          \
                    fsp_processor(), #condition, errno_then, strerror(errno_then));                                \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

#endif
