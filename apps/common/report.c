/* See report.h.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include "random.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void verdict_wrong(verdict *verdict, const char *format, ...)
{
    va_list values;
    if (verdict->wrong)
        return;
    verdict->wrong = true;
    va_start(values, format);
    vsnprintf(verdict->why, sizeof verdict->why, format, values);
    va_end(values);
}

void report_line(const char *name, const char *format, ...)
{
    char text[400];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    printf("%s: %s\n", name, text);
    fflush(stdout);
}

void report_time(const char *name, double seconds)
{
    report_line(name, "time %.6f s", seconds);
}

void report_checksum(const char *name, uint64_t checksum)
{
    report_line(name, "checksum %016" PRIx64, checksum);
}

int report_verdict(const char *name, const verdict *verdict)
{
    if (verdict->wrong)
        report_line(name, "WRONG: %s", verdict->why);
    else
        report_line(name, "verified");
    return verdict->wrong ? 1 : 0;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t checksum_bytes(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *next = bytes;
    for (; size >= 8; size -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        sum = random_mix(sum ^ word);
    }
    for (; size > 0; size--, next++)
        sum = random_mix(sum ^ *next);
    return sum;
}

void compare_doubles(verdict *verdict, const char *what, const double *got, const double *expected, size_t count,
                     size_t width)
{
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0) {
            verdict_wrong(verdict, "%s[%zu][%zu]: got %.17g, the sequential program has %.17g", what, i / width,
                          i % width, got[i], expected[i]);
            return;
        }
    }
}

void *private_alloc(const char *name, size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL) {
        fprintf(stderr, "%s: no memory for %zu bytes\n", name, size);
        exit(1);
    }
    return memory;
}
