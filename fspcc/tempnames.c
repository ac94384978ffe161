/* tmpnam and tempnam, apart from the others: the linker warns of a program that has them.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <stdio.h>

static SHARED char name[L_tmpnam];

char *__wrap_tmpnam(char *to);
char *__wrap_tmpnam(char *to)
{
    return tmpnam_r(to ? to : name);
}

char *__real_tempnam(const char *folder, const char *prefix);
char *__wrap_tempnam(const char *folder, const char *prefix);
char *__wrap_tempnam(const char *folder, const char *prefix)
{
    return fsp_clib_taken_over(__real_tempnam(folder, prefix));
}
