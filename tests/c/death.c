/* What a core would have: none of the runtime's mappings, but for the pages that the program has used, when it is about to end. A program
 * that has no action for SIGABRT, SIGFPE and SIGILL is told so.
 *
 * run: -n 2
 * run: -n 2 --transport tcp --faults mprotect
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>

/* Bytes of the mappings of the job's memory that a core would have. */
static size_t in_a_core(void) {
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    size_t from = 0, to = 0, bytes = 0;
    int ours = 0, mappings = 0;
    for (char line[512]; fgets(line, sizeof line, file) != NULL;) {
        if (sscanf(line, "%zx-%zx ", &from, &to) == 2) {
            ours = strstr(line, "memfd:finespun") != NULL;
            mappings += ours;
        } else if (ours && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL) {
            bytes += to - from;
        }
    }
    fclose(file);
    CHECK(mappings >= 3);
    return bytes;
}

static void look(void *argument) {
    int *shared = argument;
    CHECK(shared[fsp_processor()] == 0);
    CHECK(in_a_core() == 0);
}

int main(int argc, char **argv) {
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    int *shared = fsp_calloc(1024, sizeof *shared);
    fsp_parallel(look, shared);
    for (const int *signal = (const int[]){SIGABRT, SIGFPE, SIGILL, 0}; *signal != 0; signal++) {
        struct sigaction action;
        CHECK(sigaction(*signal, NULL, &action) == 0);
        CHECK(action.sa_handler == SIG_DFL);
    }
    fsp_finalize();
    return 0;
}
