/* Calls that the C++ library makes for a file stream, whose buffer and state are in the stream object, and so may be shared memory; only the
 * FILE in it is private to the process that opened it (streams.c).  By their names, for the library's own calls.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../streams.h"

#include <dlfcn.h>

/* The next function of that name, which the C library has. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

FILE *fopen(const char *path, const char *mode)
{
    return fsp_stream_opened(NEXT(fopen)(path, mode), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fsp_stream_opened(NEXT(fopen64)(path, mode), mode);
}

int fclose(FILE *stream)
{
    return NEXT(fclose)(fsp_stream_closing(stream, __builtin_return_address(0)));
}

int fileno(FILE *stream)
{
    return __real_fileno_unlocked(fsp_stream_from(stream, __builtin_return_address(0)));
}
