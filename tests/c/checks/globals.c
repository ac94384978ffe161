/* Global variables that are not shared, used rightly and wrongly.  The argument says which.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <finespun/finespun.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set before fsp_init: the same in every process. */
static int configured;
/* Each process counts for itself. */
static long calls;
/* Each process sets it before it looks. */
static int me = -1;
/* Made when first needed, in each process. */
static char *scratch;
/* Only main's process uses it. */
static long results;
/* Read as a string, in one piece with what stands behind it. */
static struct {
    char name[8];
} label = {"label"};
static int behind_label;

/* The mistakes. */
static long *table; /* table declared */
int steps = 1; /* steps declared */
static char input[8]; /* input declared */
struct parameters {
    int width;
    int height;
};
static struct parameters parameters; /* parameters declared */

static long verdict;

static void own_work(void)
{
    calls++;
    me = fsp_processor();
    if (!scratch)
        scratch = malloc(64);
    snprintf(scratch, 64, "%s %d", label.name, configured);
    if (strlen(label.name) != 5 || me < 0 || calls < 1 || configured != 3)
        exit(1);
}

static void right(void *argument)
{
    long *shared = argument;
    own_work();
    shared[fsp_processor()] = calls + configured;
}

static void wrong(void *argument)
{
    long *shared = argument;
    own_work();
    for (int i = 0; i < steps; i++) /* steps read */
        shared[fsp_processor()] += 1;
    if (table) /* table read */
        shared[0] += table[0];
    struct parameters mine = parameters; /* parameters read */
    shared[fsp_processor()] += mine.height;
    shared[fsp_processor()] += input[0] == 'x'; /* input read */
}

/* Thirty variables, one by one. */
#define TEN(name) name##0, name##1, name##2, name##3, name##4, name##5, name##6, name##7, name##8, name##9
static int TEN(a), TEN(b), TEN(c);
#define EACH(name, does) \
    does(name##0) does(name##1) does(name##2) does(name##3) does(name##4) does(name##5) does(name##6) does(name##7) \
    does(name##8) does(name##9)
#define SET(variable) variable = 1;
#define ADD(variable) sum += variable;

static void many(void *argument)
{
    long sum = 0;
    EACH(a, ADD)
    EACH(b, ADD)
    EACH(c, ADD)
    ((long *)argument)[fsp_processor()] = sum;
}

static void crash(void *argument)
{
    ((long *)argument)[fsp_processor()] = 1 + table[0]; /* crash read */
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "clean";
    configured = 3;
    if (fsp_init(&argc, &argv) != FSP_OK)
        return 1;
    long *shared = fsp_malloc(1024 * sizeof *shared);
    behind_label = 1;
    void (*work)(void *) = right;
    if (strcmp(kind, "wrong") == 0) {
        work = wrong;
        steps = 10; /* steps written */
        table = shared; /* table written */
        parameters.height = 5; /* parameters written */
        int ends[2];
        if (pipe(ends) != 0 || write(ends[1], "xyz", 3) != 3)
            return 1;
        if (read(ends[0], input, sizeof input) != 3) /* input written */
            return 1;
    } else if (strcmp(kind, "many") == 0) {
        work = many;
        EACH(a, SET)
        EACH(b, SET)
        EACH(c, SET)
    } else if (strcmp(kind, "crash") == 0) {
        work = crash;
        table = shared; /* crash written */
    }
    fsp_parallel(work, shared);
    for (int i = 0; i < fsp_processors(); i++)
        results += shared[i];
    verdict = results > 0 && behind_label == 1;
    fsp_finalize();
    return verdict ? 0 : 1;
}
