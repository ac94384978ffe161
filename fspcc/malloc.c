/* malloc and its kin for the program itself (--share-malloc): from the shared heap.  The linker sends the program's own
 * calls here (--wrap); those that libraries make go to the C library as ever.  Whose memory it is, its address says, so what
 * a library has allocated may be freed here, and the program's memory grows in the shared heap wherever it began.
 * Before the runtime starts (no code of the program runs then), after its end, and in a child of fork, memory is private.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <finespun/memory.h>
#include <finespun/program.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL(type, name, parameters) \
    type __real_##name parameters;   \
    type __wrap_##name parameters

REAL(void *, malloc, (size_t));
REAL(void *, calloc, (size_t, size_t));
REAL(void *, realloc, (void *, size_t));
REAL(void *, reallocarray, (void *, size_t, size_t));
REAL(void, free, (void *));
REAL(void, cfree, (void *));
REAL(void *, aligned_alloc, (size_t, size_t));
REAL(void *, memalign, (size_t, size_t));
REAL(void *, valloc, (size_t));
REAL(void *, pvalloc, (size_t));
REAL(int, posix_memalign, (void **, size_t, size_t));
REAL(size_t, malloc_usable_size, (void *));
REAL(char *, strdup, (const char *));
REAL(char *, __strdup, (const char *));
REAL(char *, strndup, (const char *, size_t));
REAL(char *, __strndup, (const char *, size_t));
REAL(ssize_t, getline, (char **, size_t *, FILE *));
REAL(ssize_t, getdelim, (char **, size_t *, int, FILE *));
REAL(ssize_t, __getdelim, (char **, size_t *, int, FILE *));
REAL(int, asprintf, (char **, const char *, ...));
REAL(int, vasprintf, (char **, const char *, va_list));
REAL(int, __asprintf_chk, (char **, int, const char *, ...));
REAL(int, __vasprintf_chk, (char **, int, const char *, va_list));

enum { PAGE = 4096 };

static int is_shared(const void *memory)
{
    static const char *begin, *end; /* private to each process: see globals.ld */
    if (!end)
        fsp_program_heap((const void **)&begin, (const void **)&end);
    return (const char *)memory >= begin && (const char *)memory < end;
}

void *__wrap_malloc(size_t size)
{
    return fsp_program_runs() ? fsp_malloc(size) : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fsp_program_runs() ? fsp_calloc(count, size) : __real_calloc(count, size);
}

void __wrap_free(void *memory)
{
    if (!is_shared(memory))
        __real_free(memory);
    else if (fsp_program_runs())
        fsp_free(memory);
}

void __wrap_cfree(void *memory)
{
    __wrap_free(memory);
}

void *__wrap_realloc(void *old, size_t size)
{
    if (!old)
        return __wrap_malloc(size);
    if (size == 0) {
        __wrap_free(old);
        return NULL;
    }
    if (is_shared(old))
        return fsp_realloc(old, size);
    if (!fsp_program_runs())
        return __real_realloc(old, size);
    size_t had = malloc_usable_size(old);
    void *new = fsp_malloc(size);
    if (new) {
        memcpy(new, old, had < size ? had : size);
        __real_free(old);
    }
    return new;
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __wrap_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fsp_program_runs() ? fsp_aligned_alloc(alignment, size) : __real_aligned_alloc(alignment, size);
}

void *__wrap_memalign(size_t alignment, size_t size)
{
    return __wrap_aligned_alloc(alignment, size);
}

void *__wrap_valloc(size_t size)
{
    return __wrap_aligned_alloc(PAGE, size);
}

void *__wrap_pvalloc(size_t size)
{
    if (size > SIZE_MAX - PAGE) {
        errno = ENOMEM;
        return NULL;
    }
    return __wrap_aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || alignment == 0 || alignment & (alignment - 1))
        return EINVAL;
    void *got = __wrap_aligned_alloc(alignment, size);
    if (!got)
        return ENOMEM;
    *memory = got;
    return 0;
}

size_t __wrap_malloc_usable_size(void *memory)
{
    return is_shared(memory) ? fsp_usable_size(memory) : __real_malloc_usable_size(memory);
}

/* A copy of so many bytes, with a zero behind; NULL if there is no room. */
static char *copy(const char *text, size_t length)
{
    char *new = __wrap_malloc(length + 1);
    if (new) {
        memcpy(new, text, length);
        new[length] = '\0';
    }
    return new;
}

char *__wrap_strdup(const char *text)
{
    return copy(text, strlen(text));
}

char *__wrap___strdup(const char *text)
{
    return copy(text, strlen(text));
}

char *__wrap_strndup(const char *text, size_t most)
{
    return copy(text, strnlen(text, most));
}

char *__wrap___strndup(const char *text, size_t most)
{
    return copy(text, strnlen(text, most));
}

/* With --pthread: the FILE of this process that stands for the stream. */
FILE *fsp_stream_from(FILE *stream, const void *from) __attribute__((weak));

/* The C library would call its own realloc for a buffer of ours: it gets one of its own. */
ssize_t __wrap_getdelim(char **line, size_t *size, int delimiter, FILE *stream)
{
    if (fsp_stream_from)
        stream = fsp_stream_from(stream, __builtin_return_address(0));
    if (!line || !size)
        return __real_getdelim(line, size, delimiter, stream);
    char *own = NULL;
    size_t own_size = 0;
    ssize_t length = __real_getdelim(&own, &own_size, delimiter, stream);
    if (length >= 0) {
        if (!*line || *size < (size_t)length + 1) {
            *line = __wrap_realloc(*line, (size_t)length + 1);
            *size = (size_t)length + 1;
        }
        memcpy(*line, own, (size_t)length + 1);
    }
    __real_free(own);
    return length;
}

ssize_t __wrap___getdelim(char **line, size_t *size, int delimiter, FILE *stream)
{
    return __wrap_getdelim(line, size, delimiter, stream);
}

ssize_t __wrap_getline(char **line, size_t *size, FILE *stream)
{
    return __wrap_getdelim(line, size, '\n', stream);
}

int __wrap_vasprintf(char **text, const char *format, va_list arguments)
{
    char *own;
    int length = __real_vasprintf(&own, format, arguments);
    if (length >= 0) {
        *text = copy(own, (size_t)length);
        __real_free(own);
    }
    return length;
}

int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = __wrap_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

int __wrap___vasprintf_chk(char **text, int flag, const char *format, va_list arguments)
{
    (void)flag;
    return __wrap_vasprintf(text, format, arguments);
}

int __wrap___asprintf_chk(char **text, int flag, const char *format, ...)
{
    (void)flag;
    va_list arguments;
    va_start(arguments, format);
    int length = __wrap_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}
