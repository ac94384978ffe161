/* Streams of the whole program, for the files that wrap calls for them.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FSP_STREAMS_H
#define FSP_STREAMS_H

#define _GNU_SOURCE
#include "shared.h"

#include <stdio.h>

FILE *__real_fdopen(int fd, const char *mode);
int __real_fclose(FILE *stream);
int __real_fileno_unlocked(FILE *stream);
int __real_fflush_unlocked(FILE *stream);
int __real_setvbuf(FILE *stream, char *buffer, int mode, size_t size);
int __real_ftrylockfile(FILE *stream);
void __real_funlockfile(FILE *stream);

/* The FILE of this process that stands for the stream; the call stands at `from`. */
FILE *fsp_stream_from(FILE *stream, const void *from);
FILE *fsp_stream_opened(FILE *stream, const char *mode);
FILE *fsp_stream_closing(FILE *stream, const void *from);
/* A stream of popen, whose child only the process has that opened it. */
void fsp_stream_of_child(FILE *stream, const void *from);

#endif
