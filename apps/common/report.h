/* What every application prints, and how it measures: one set of lines, so that scripts read them all.
 *
 *   sor: size 3072x4096 iters 100 processors 4
 *   sor: time 0.123456 s
 *   sor: checksum 0123456789abcdef
 *   sor: verified                         or  sor: WRONG: <the first difference>, with exit code 1
 *
 * Processor 0 prints, outside fsp_parallel.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_REPORT_H
#define APPS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The outcome of checking: keeps the first thing that was wrong. */
typedef struct verdict {
    bool wrong;
    char why[240];
} verdict;

void verdict_wrong(verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "name: " and the text, flushed, so that a line is whole whatever happens next. */
void report_line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_time(const char *name, double seconds);
void report_checksum(const char *name, uint64_t checksum);
/* Prints the last line and returns the exit code. */
int report_verdict(const char *name, const verdict *verdict);

double seconds_now(void); /* a clock that only goes forward */

/* A checksum of bytes that goes on from `sum`: order matters, equal bits give equal sums. */
uint64_t checksum_bytes(uint64_t sum, const void *bytes, size_t size);

/* Says where two arrays first differ in their bits; `what` names the array, `width` its row length. */
void compare_doubles(verdict *verdict, const char *what, const double *got, const double *expected, size_t count,
                     size_t width);

/* malloc for private memory that ends the program when there is none: the applications have nothing better to do. */
void *private_alloc(const char *name, size_t size);

#endif
