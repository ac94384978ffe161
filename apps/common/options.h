/* Command-line flags of the applications: a table per program, the same rules and the same errors for all.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef APPS_OPTIONS_H
#define APPS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_SWITCH, /* bool: present or not */
    OPTION_NUMBER, /* uint64_t between least and most */
    OPTION_SIZE,   /* uint64_t between least and most, or tiny, small, paper */
    OPTION_GRID,   /* uint64_t[2]: N, ROWSxCOLUMNS, or tiny, small, paper */
    OPTION_TEXT    /* const char *, checked by the program */
} option_kind;

/* What tiny, small and paper mean; the second number is for OPTION_GRID only. */
typedef struct size_names {
    uint64_t tiny[2], small[2], paper[2];
} size_names;

typedef struct option {
    const char *flag; /* with its dashes: "--size" */
    option_kind kind;
    void *value; /* holds the default before, the choice after */
    uint64_t least, most;
    const size_names *names; /* OPTION_SIZE and OPTION_GRID; else NULL */
    const char *help;
} option;

typedef struct program {
    const char *name;
    const char *summary; /* one sentence */
    const option *options;
    unsigned option_count;
} program;

/* Reads "--flag value" and "--flag=value".  --help prints every flag and exits 0; anything wrong prints one line that
 * says what was expected and exits 2.  Called before the runtime starts, so nothing shared is at stake. */
void options_read(const program *program, int argc, char **argv);

/* For a check the table cannot express: prints "NAME: FLAG: WHY" and exits 2. */
void options_refuse(const program *program, const char *flag, const char *why) __attribute__((noreturn));

#endif
