/* What tasks.c and taskloop.c share.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FSP_OPENMP_TASKS_H
#define FSP_OPENMP_TASKS_H

#include "openmp.h"

/* Bits of GOMP_task's and GOMP_taskloop's flags. */
enum {
    FSP_OMP_FINAL = 1 << 1,
    FSP_OMP_DEPEND = 1 << 3,
    FSP_OMP_UP = 1 << 8,
    FSP_OMP_GRAINSIZE = 1 << 9,
    FSP_OMP_IF = 1 << 10,
    FSP_OMP_NOGROUP = 1 << 11,
    FSP_OMP_DETACH = 1 << 13,
    FSP_OMP_STRICT = 1 << 14,
};

/* What a task runs, and what it is given: `bytes` at a multiple of `alignment`. */
struct fsp_omp_work {
    void (*function)(void *);
    void (*copy)(void *to, void *from); /* NULL: by bytes */
    void *data;
    long bytes, alignment;
};

/* Makes a task.  Before it begins, the first words of its copy of the data become `words` (taskloop's bounds). */
void fsp_omp_make_task(const struct fsp_omp_work *work, const long *words, int count, bool at_once, bool is_final);

void GOMP_taskgroup_start(void);
void GOMP_taskgroup_end(void);

#endif
