/* The lock of the C library's state, and memory for it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shared.h"

#include <finespun/program.h>
#include <pthread.h>
#include <string.h>

void *__wrap_malloc(size_t size);
void __real_free(void *memory);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

static SHARED pthread_mutex_t state;

void fsp_clib_hold(void)
{
    if (fsp_program_runs())
        __wrap_pthread_mutex_lock(&state);
}

void fsp_clib_let_go(void)
{
    if (fsp_program_runs())
        __wrap_pthread_mutex_unlock(&state);
}

void *fsp_clib_copy(const void *bytes, size_t count)
{
    void *new = __wrap_malloc(count);
    return new ? memcpy(new, bytes, count) : NULL;
}

char *fsp_clib_copy_text(const char *text)
{
    return fsp_clib_copy(text, strlen(text) + 1);
}

char *fsp_clib_taken_over(char *text)
{
    char *new = text ? fsp_clib_copy_text(text) : NULL;
    __real_free(text);
    return new;
}

void fsp_clib_on_thread(void)
{
    fsp_clib_catch_up();
    fsp_clib_bare_input();
}
