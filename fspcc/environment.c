/* The environment and the locale of the whole program.  The strings that the program sees are shared memory, and so is the list of
 * them (environ); the C library keeps a list of its own in each process, for what it reads there itself (TZ, the environment of
 * programs that are executed), which follows.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <finespun/program.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);

/* The program's own `environ`, and the name that it has in the C library's headers. */
SHARED char **__wrap_environ;
extern char **__wrap___environ __attribute__((alias("__wrap_environ")));

/* The C library's. */
extern char **__real_environ;
int __real_putenv(char *word);
int __real_clearenv(void);
char *__real_setlocale(int category, const char *name);

/* What a process begins with stands here, where a child of fork has it, too; more comes from the heap. */
static SHARED char room[48 << 10];
static SHARED size_t used;

static SHARED unsigned changes; /* of either, by any process */
static unsigned seen;           /* by this one */
static SHARED char locale[256];
static SHARED char told[256];

static void *room_of(size_t bytes)
{
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > sizeof room - used)
        return __wrap_malloc(bytes);
    used += bytes;
    return room + used - bytes;
}

char **fsp_clib_words(char **words)
{
    size_t count = 0;
    while (words[count])
        count++;
    char **list = room_of((count + 1) * sizeof *list);
    for (size_t index = 0; index < count; index++) {
        size_t bytes = strlen(words[index]) + 1;
        list[index] = memcpy(room_of(bytes), words[index], bytes);
    }
    list[count] = NULL;
    return list;
}

/* Once, after the start of the runtime and before the program's own constructors: only processor 0's process comes here. */
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
static void __attribute__((constructor(66))) share_environment(void)
{
    static char *none[] = {NULL};
    __wrap_environ = fsp_clib_words(__real_environ ? __real_environ : none);
}

/* The place of a variable in the list, or of the list's end. */
static char **place_of(const char *name, size_t length)
{
    static char *none[] = {NULL};
    char **place = __wrap_environ ? __wrap_environ : none;
    while (*place && (strncmp(*place, name, length) != 0 || (*place)[length] != '='))
        place++;
    return place;
}

/* The C library's own list becomes the program's. */
static void follow(void)
{
    seen = changes;
    __real_clearenv();
    for (char **word = __wrap_environ; word && *word; word++) {
        char *own = __real_malloc(strlen(*word) + 1); /* the C library's from now on */
        __real_putenv(strcpy(own, *word));
    }
    if (*locale)
        __real_setlocale(LC_ALL, locale);
}

void fsp_clib_catch_up(void)
{
    if (seen == changes || !fsp_program_runs())
        return;
    fsp_clib_hold();
    follow();
    fsp_clib_let_go();
}

static int is_name(const char *name)
{
    if (name && *name && !strchr(name, '='))
        return 1;
    errno = EINVAL;
    return 0;
}

char *__wrap_getenv(const char *name);
char *__wrap_getenv(const char *name)
{
    size_t length = strlen(name);
    fsp_clib_hold();
    char *word = length ? *place_of(name, length) : NULL;
    fsp_clib_let_go();
    return word ? word + length + 1 : NULL;
}

char *__wrap_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name)
{
    return getauxval(AT_SECURE) ? NULL : __wrap_getenv(name);
}

/* Puts a word into the list. */
static int put(const char *name, size_t length, char *word)
{
    char **place = place_of(name, length);
    if (!*place) {
        size_t count = __wrap_environ ? (size_t)(place - __wrap_environ) : 0;
        char **list = __wrap_malloc((count + 2) * sizeof *list);
        if (!list)
            return -1;
        if (count > 0)
            memcpy(list, __wrap_environ, count * sizeof *list);
        list[count + 1] = NULL;
        __wrap_environ = list;
        place = list + count;
    }
    *place = word;
    return 0;
}

int __wrap_setenv(const char *name, const char *value, int overwrite);
int __wrap_setenv(const char *name, const char *value, int overwrite)
{
    if (!is_name(name))
        return -1;
    size_t length = strlen(name);
    int result = 0;
    fsp_clib_hold();
    if (overwrite || !*place_of(name, length)) {
        char *word = __wrap_malloc(length + strlen(value) + 2);
        result = word ? put(name, length, strcat(strcat(strcpy(word, name), "="), value)) : -1;
        changes++;
        follow();
    }
    fsp_clib_let_go();
    return result;
}

int __wrap_unsetenv(const char *name);
int __wrap_unsetenv(const char *name)
{
    if (!is_name(name))
        return -1;
    size_t length = strlen(name);
    fsp_clib_hold();
    for (char **place; *(place = place_of(name, length));)
        do
            place[0] = place[1];
        while (*++place);
    changes++;
    follow();
    fsp_clib_let_go();
    return 0;
}

int __wrap_putenv(char *word);
int __wrap_putenv(char *word)
{
    const char *end = strchr(word, '=');
    if (!end)
        return __wrap_unsetenv(word);
    fsp_clib_hold();
    int result = put(word, (size_t)(end - word), word);
    changes++;
    follow();
    fsp_clib_let_go();
    return result;
}

int __wrap_clearenv(void);
int __wrap_clearenv(void)
{
    fsp_clib_hold();
    __wrap_environ = NULL;
    changes++;
    follow();
    fsp_clib_let_go();
    return 0;
}

char *__wrap_setlocale(int category, const char *name);
char *__wrap_setlocale(int category, const char *name)
{
    fsp_clib_catch_up();
    fsp_clib_hold();
    char *result = __real_setlocale(category, name);
    if (result) {
        snprintf(told, sizeof told, "%s", result);
        result = told;
    }
    if (result && name) {
        snprintf(locale, sizeof locale, "%s", __real_setlocale(LC_ALL, NULL));
        seen = ++changes;
    }
    fsp_clib_let_go();
    return result;
}
