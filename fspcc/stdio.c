/* The calls of stdio for a stream (--pthread): on the FILE of this process that stands for it (streams.c).
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "streams.h"

#include <stdarg.h>
#include <sys/types.h>

#define STREAM fsp_stream_from(stream, __builtin_return_address(0))
#define ON(type, name, parameters, arguments)   \
    type __real_##name parameters;              \
    type __wrap_##name parameters;              \
    type __wrap_##name parameters               \
    {                                           \
        return __real_##name arguments;         \
    }

ON(size_t, fread, (void *to, size_t size, size_t count, FILE *stream), (to, size, count, STREAM))
ON(size_t, fread_unlocked, (void *to, size_t size, size_t count, FILE *stream), (to, size, count, STREAM))
ON(size_t, __fread_chk, (void *to, size_t room, size_t size, size_t count, FILE *stream), (to, room, size, count, STREAM))
ON(size_t, __fread_unlocked_chk, (void *to, size_t room, size_t size, size_t count, FILE *stream), (to, room, size, count, STREAM))
ON(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *stream), (from, size, count, STREAM))
ON(size_t, fwrite_unlocked, (const void *from, size_t size, size_t count, FILE *stream), (from, size, count, STREAM))
ON(int, fputs, (const char *text, FILE *stream), (text, STREAM))
ON(int, fputs_unlocked, (const char *text, FILE *stream), (text, STREAM))
ON(int, fputc, (int byte, FILE *stream), (byte, STREAM))
ON(int, putc, (int byte, FILE *stream), (byte, STREAM))
ON(int, _IO_putc, (int byte, FILE *stream), (byte, STREAM))
ON(int, fputc_unlocked, (int byte, FILE *stream), (byte, STREAM))
ON(int, putc_unlocked, (int byte, FILE *stream), (byte, STREAM))
ON(int, ungetc, (int byte, FILE *stream), (byte, STREAM))
ON(int, putw, (int word, FILE *stream), (word, STREAM))
ON(int, fgetc, (FILE *stream), (STREAM))
ON(int, getc, (FILE *stream), (STREAM))
ON(int, _IO_getc, (FILE *stream), (STREAM))
ON(int, fgetc_unlocked, (FILE *stream), (STREAM))
ON(int, getc_unlocked, (FILE *stream), (STREAM))
ON(int, getw, (FILE *stream), (STREAM))
ON(int, feof, (FILE *stream), (STREAM))
ON(int, ferror, (FILE *stream), (STREAM))
ON(int, feof_unlocked, (FILE *stream), (STREAM))
ON(int, ferror_unlocked, (FILE *stream), (STREAM))
ON(int, fflush, (FILE *stream), (STREAM))
ON(int, fflush_unlocked, (FILE *stream), (STREAM))
ON(int, fileno, (FILE *stream), (STREAM))
ON(int, fileno_unlocked, (FILE *stream), (STREAM))
ON(int, ftrylockfile, (FILE *stream), (STREAM))
ON(int, __overflow, (FILE *stream, int byte), (STREAM, byte))
ON(int, __uflow, (FILE *stream), (STREAM))
ON(char *, fgets, (char *to, int room, FILE *stream), (to, room, STREAM))
ON(char *, fgets_unlocked, (char *to, int room, FILE *stream), (to, room, STREAM))
ON(char *, __fgets_chk, (char *to, size_t size, int room, FILE *stream), (to, size, room, STREAM))
ON(char *, __fgets_unlocked_chk, (char *to, size_t size, int room, FILE *stream), (to, size, room, STREAM))
ON(int, vfprintf, (FILE *stream, const char *format, va_list list), (STREAM, format, list))
ON(int, __vfprintf_chk, (FILE *stream, int flag, const char *format, va_list list), (STREAM, flag, format, list))
ON(int, vfscanf, (FILE *stream, const char *format, va_list list), (STREAM, format, list))
ON(int, __isoc99_vfscanf, (FILE *stream, const char *format, va_list list), (STREAM, format, list))
ON(int, fseek, (FILE *stream, long offset, int from), (STREAM, offset, from))
ON(int, fseeko, (FILE *stream, off_t offset, int from), (STREAM, offset, from))
ON(int, fseeko64, (FILE *stream, off_t offset, int from), (STREAM, offset, from))
ON(long, ftell, (FILE *stream), (STREAM))
ON(off_t, ftello, (FILE *stream), (STREAM))
ON(off_t, ftello64, (FILE *stream), (STREAM))
ON(void, rewind, (FILE *stream), (STREAM))
ON(void, clearerr, (FILE *stream), (STREAM))
ON(void, clearerr_unlocked, (FILE *stream), (STREAM))
ON(void, setlinebuf, (FILE *stream), (STREAM))
ON(void, flockfile, (FILE *stream), (STREAM))
ON(void, funlockfile, (FILE *stream), (STREAM))
ON(int, fgetpos, (FILE *stream, fpos_t *to), (STREAM, to))
ON(int, fgetpos64, (FILE *stream, fpos_t *to), (STREAM, to))
ON(int, fsetpos, (FILE *stream, const fpos_t *to), (STREAM, to))
ON(int, fsetpos64, (FILE *stream, const fpos_t *to), (STREAM, to))
ON(int, setvbuf, (FILE *stream, char *buffer, int mode, size_t size), (STREAM, buffer, mode, size))
ON(void, setbuf, (FILE *stream, char *buffer), (STREAM, buffer))
ON(void, setbuffer, (FILE *stream, char *buffer, size_t size), (STREAM, buffer, size))

int __wrap_fprintf(FILE *stream, const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = __real_vfprintf(STREAM, format, list);
    va_end(list);
    return result;
}

int __wrap___fprintf_chk(FILE *stream, int flag, const char *format, ...);
int __wrap___fprintf_chk(FILE *stream, int flag, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = __real___vfprintf_chk(STREAM, flag, format, list);
    va_end(list);
    return result;
}

int __wrap_fscanf(FILE *stream, const char *format, ...);
int __wrap_fscanf(FILE *stream, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = __real_vfscanf(STREAM, format, list);
    va_end(list);
    return result;
}

int __wrap___isoc99_fscanf(FILE *stream, const char *format, ...);
int __wrap___isoc99_fscanf(FILE *stream, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = __real___isoc99_vfscanf(STREAM, format, list);
    va_end(list);
    return result;
}

/* What opens and closes. */
#define OPENS(name, parameters, arguments)                              \
    FILE *__real_##name parameters;                                     \
    FILE *__wrap_##name parameters;                                     \
    FILE *__wrap_##name parameters                                      \
    {                                                                   \
        return fsp_stream_opened(__real_##name arguments, mode);        \
    }

OPENS(fopen, (const char *path, const char *mode), (path, mode))
OPENS(fopen64, (const char *path, const char *mode), (path, mode))
OPENS(fdopen, (int fd, const char *mode), (fd, mode))
OPENS(popen, (const char *command, const char *mode), (command, mode))
OPENS(fmemopen, (void *memory, size_t size, const char *mode), (memory, size, mode))
OPENS(fopencookie, (void *cookie, const char *mode, cookie_io_functions_t functions), (cookie, mode, functions))

FILE *__real_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size)
{
    return fsp_stream_opened(__real_open_memstream(text, size), "w");
}

FILE *__real_tmpfile(void);
FILE *__wrap_tmpfile(void);
FILE *__wrap_tmpfile(void)
{
    return fsp_stream_opened(__real_tmpfile(), "w+");
}

FILE *__wrap_tmpfile64(void);
FILE *__wrap_tmpfile64(void)
{
    return __wrap_tmpfile();
}

FILE *__real_freopen(const char *path, const char *mode, FILE *stream);
FILE *__wrap_freopen(const char *path, const char *mode, FILE *stream);
FILE *__wrap_freopen(const char *path, const char *mode, FILE *stream)
{
    FILE *own = fsp_stream_closing(stream, __builtin_return_address(0));
    FILE *result = __real_freopen(path, mode, own);
    int is_standard = own == stdin || own == stdout || own == stderr;
    return is_standard ? result : fsp_stream_opened(result, mode);
}

FILE *__wrap_freopen64(const char *path, const char *mode, FILE *stream);
FILE *__wrap_freopen64(const char *path, const char *mode, FILE *stream)
{
    return __wrap_freopen(path, mode, stream);
}

int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream)
{
    return __real_fclose(fsp_stream_closing(stream, __builtin_return_address(0)));
}

int __real_pclose(FILE *stream);
int __wrap_pclose(FILE *stream);
int __wrap_pclose(FILE *stream)
{
    fsp_stream_of_child(stream, __builtin_return_address(0));
    return __real_pclose(fsp_stream_closing(stream, __builtin_return_address(0)));
}
