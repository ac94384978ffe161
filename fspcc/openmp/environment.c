/* The variables OMP_* of the environment, read ahead of the program's constructors.  OpenMP 5.0, chapter 6.
 *
 * A value that cannot be read is named in a message and leaves the usual one, as the specification allows.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct fsp_omp_program fsp_omp_program;

void omp_display_env(int verbose);

static const char *skip_spaces(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static void complain(const char *name, const char *value)
{
    fprintf(stderr, "finespun: %s: \"%s\" cannot be read: the usual value holds\n", name, value);
}

/* A word at the start of *text, in any case; *text goes on after it. */
static bool takes_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    const char *at = skip_spaces(*text);
    if (strncasecmp(at, word, length) != 0 || isalnum((unsigned char)at[length]) || at[length] == '_')
        return false;
    *text = skip_spaces(at + length);
    return true;
}

/* A whole number from 1 on. */
static bool takes_number(const char **text, uint64_t *number)
{
    char *end;
    const char *at = skip_spaces(*text);
    if (!isdigit((unsigned char)*at))
        return false;
    *number = strtoull(at, &end, 10);
    *text = skip_spaces(end);
    return *number > 0;
}

static void read_count(const char *name, int *setting, int most, bool may_be_zero)
{
    const char *value = getenv(name), *at = value;
    uint64_t number = 0;
    if (!value)
        return;
    bool is_zero = may_be_zero && strcmp(skip_spaces(value), "0") == 0;
    /* A list has a number for each level; there is one level. */
    if (!is_zero && (!takes_number(&at, &number) || (*at && *at != ',')))
        complain(name, value);
    else
        *setting = number < (uint64_t)most ? (int)number : most;
}

static bool read_flag(const char *name, bool usual)
{
    const char *value = getenv(name), *at = value;
    if (!value)
        return usual;
    if (takes_word(&at, "true"))
        return true;
    if (!takes_word(&at, "false"))
        complain(name, value);
    return false;
}

/* [modifier:]kind[,chunk] */
static bool takes_schedule(const char *at, struct fsp_omp_schedule *schedule)
{
    struct fsp_omp_schedule read = {0};
    if (takes_word(&at, "monotonic") || takes_word(&at, "nonmonotonic")) {
        if (*at++ != ':')
            return false;
    }
    if (takes_word(&at, "static"))
        read.kind = FSP_OMP_STATIC;
    else if (takes_word(&at, "dynamic"))
        read.kind = FSP_OMP_DYNAMIC;
    else if (takes_word(&at, "guided"))
        read.kind = FSP_OMP_GUIDED;
    else if (takes_word(&at, "auto"))
        read.kind = FSP_OMP_AUTO;
    else
        return false;
    if (*at == ',' && (at++, !takes_number(&at, &read.chunk)))
        return false;
    if (*at)
        return false;
    *schedule = read;
    return true;
}

static void read_schedule(struct fsp_omp_schedule *schedule)
{
    const char *value = getenv("OMP_SCHEDULE");
    if (value && !takes_schedule(value, schedule))
        complain("OMP_SCHEDULE", value);
}

/* In KiB, or with B, K, M, G. */
static void read_stack_size(uint64_t *bytes)
{
    const char *value = getenv("OMP_STACKSIZE"), *at = value;
    uint64_t number;
    if (!value)
        return;
    int shift = 10;
    bool is_number = takes_number(&at, &number);
    if (is_number && *at) {
        const char *unit = strchr("BKMG", toupper((unsigned char)*at));
        is_number = unit && !*skip_spaces(at + 1);
        shift = unit ? 10 * (int)(unit - "BKMG") : 0;
    }
    if (!is_number || number > UINT64_MAX >> 34)
        complain("OMP_STACKSIZE", value);
    else
        *bytes = number << shift;
}

static void display_at_start(void)
{
    const char *value = getenv("OMP_DISPLAY_ENV"), *at = value;
    if (!value)
        return;
    bool verbose = takes_word(&at, "verbose");
    if (verbose || read_flag("OMP_DISPLAY_ENV", false))
        omp_display_env(verbose);
}

/* After the start of the runtime, so only in the process that runs main. */
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
__attribute__((constructor(66))) static void read_environment(void)
{
    struct fsp_omp_program *program = &fsp_omp_program;
    program->thread_limit = FSP_OMP_THREADS_MAX;
    program->initial.threads = fsp_processors();
    program->initial.levels = 1;
    program->initial.schedule = (struct fsp_omp_schedule){FSP_OMP_DYNAMIC, 1};
    read_count("OMP_NUM_THREADS", &program->initial.threads, FSP_OMP_THREADS_MAX, false);
    read_count("OMP_THREAD_LIMIT", &program->thread_limit, FSP_OMP_THREADS_MAX, false);
    read_count("OMP_MAX_ACTIVE_LEVELS", &program->initial.levels, 1, true);
    program->initial.dynamic = read_flag("OMP_DYNAMIC", false);
    read_schedule(&program->initial.schedule);
    read_stack_size(&program->stack_bytes);
    program->is_ready = true;
    display_at_start();
}

static const char *name_of(enum fsp_omp_kind kind)
{
    static const char *const names[] = {"", "STATIC", "DYNAMIC", "GUIDED", "AUTO"};
    return names[kind];
}

void omp_display_env(int verbose)
{
    const struct fsp_omp_program *program = &fsp_omp_program;
    const struct fsp_omp_schedule *schedule = &program->initial.schedule;
    fprintf(stderr, "OPENMP DISPLAY ENVIRONMENT BEGIN\n  _OPENMP = '201511'\n");
    fprintf(stderr, "  OMP_NUM_THREADS = '%d'\n", program->initial.threads);
    fprintf(stderr, "  OMP_SCHEDULE = '%s", name_of(schedule->kind));
    if (schedule->chunk)
        fprintf(stderr, ",%llu", (unsigned long long)schedule->chunk);
    fprintf(stderr, "'\n  OMP_DYNAMIC = '%s'\n", program->initial.dynamic ? "TRUE" : "FALSE");
    fprintf(stderr, "  OMP_THREAD_LIMIT = '%d'\n", program->thread_limit);
    fprintf(stderr, "  OMP_MAX_ACTIVE_LEVELS = '%d'\n", program->initial.levels);
    fprintf(stderr, "  OMP_STACKSIZE = '%llu'\n", (unsigned long long)program->stack_bytes);
    fprintf(stderr, "  OMP_CANCELLATION = 'FALSE'\n  OMP_PROC_BIND = 'FALSE'\n");
    if (verbose)
        fprintf(stderr, "  FINESPUN nodes = '%d', processors = '%d'\n", fsp_nodes(), fsp_processors());
    fprintf(stderr, "OPENMP DISPLAY ENVIRONMENT END\n");
}
