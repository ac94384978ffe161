/* Functions whose result stands in memory of the C library's own: here it is shared memory, good in every thread of the program.
 * As ever, the next call may change it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static SHARED char *rest; /* of strtok */
static SHARED struct tm broken_down;
static SHARED char zone[32];
static SHARED char written[64];

char *__wrap_strtok(char *text, const char *separators);
char *__wrap_strtok(char *text, const char *separators)
{
    return strtok_r(text, separators, &rest);
}

/* The name of the zone stands in memory of the C library, too. */
static struct tm *with_zone(struct tm *got)
{
    if (got && got->tm_zone) {
        snprintf(zone, sizeof zone, "%s", got->tm_zone);
        got->tm_zone = zone;
    }
    return got;
}

struct tm *__wrap_localtime(const time_t *time);
struct tm *__wrap_localtime(const time_t *time)
{
    fsp_clib_catch_up();
    tzset();
    return with_zone(localtime_r(time, &broken_down));
}

struct tm *__wrap_gmtime(const time_t *time);
struct tm *__wrap_gmtime(const time_t *time)
{
    return with_zone(gmtime_r(time, &broken_down));
}

char *__wrap_asctime(const struct tm *time);
char *__wrap_asctime(const struct tm *time)
{
    return asctime_r(time, written);
}

char *__wrap_ctime(const time_t *time);
char *__wrap_ctime(const time_t *time)
{
    struct tm *local = __wrap_localtime(time);
    return local ? asctime_r(local, written) : NULL;
}

char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved)
{
    return resolved ? __real_realpath(path, resolved) : fsp_clib_taken_over(__real_realpath(path, NULL));
}

char *__real_getcwd(char *to, size_t size);
char *__wrap_getcwd(char *to, size_t size);
char *__wrap_getcwd(char *to, size_t size)
{
    return to ? __real_getcwd(to, size) : fsp_clib_taken_over(__real_getcwd(NULL, size));
}

char *__real_get_current_dir_name(void);
char *__wrap_get_current_dir_name(void);
char *__wrap_get_current_dir_name(void)
{
    return fsp_clib_taken_over(__real_get_current_dir_name());
}
