/* One thread at a time, or one thread only.  OpenMP 5.0, 2.8.2 (single), 2.17.1 (critical), 2.17.7 (atomic).
 *
 * A single region is thread 0's: nothing has to be agreed upon, and what main opened is open there.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

static FSP_OMP_APART fsp_mutex_t unnamed;
static FSP_OMP_APART fsp_mutex_t atomics;
static FSP_OMP_APART void *copied; /* thread 0's variables, for the others */

void GOMP_critical_start(void);
void GOMP_critical_start(void)
{
    fsp_mutex_lock(&unnamed);
}

void GOMP_critical_end(void);
void GOMP_critical_end(void)
{
    fsp_mutex_unlock(&unnamed);
}

/* The compiler makes a pointer for each name, which all sources of the program share. */
void GOMP_critical_name_start(void **name);
void GOMP_critical_name_start(void **name)
{
    fsp_mutex_lock((fsp_mutex_t *)name);
}

void GOMP_critical_name_end(void **name);
void GOMP_critical_name_end(void **name)
{
    fsp_mutex_unlock((fsp_mutex_t *)name);
}

/* Updates that have no instruction of their own: of several reduction variables, of structures. */
void GOMP_atomic_start(void);
void GOMP_atomic_start(void)
{
    fsp_mutex_lock(&atomics);
}

void GOMP_atomic_end(void);
void GOMP_atomic_end(void)
{
    fsp_mutex_unlock(&atomics);
}

bool GOMP_single_start(void);
bool GOMP_single_start(void)
{
    return fsp_omp_here()->number == 0;
}

/* With copyprivate: NULL for the thread that runs the region, for the others its variables.  The compiler's barrier comes
 * when all have copied. */
void *GOMP_single_copy_start(void);
void *GOMP_single_copy_start(void)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    if (frame->number == 0)
        return NULL;
    fsp_omp_barrier(frame);
    return copied;
}

void GOMP_single_copy_end(void *data);
void GOMP_single_copy_end(void *data)
{
    struct fsp_omp_frame *frame = fsp_omp_here();
    if (frame->size == 1)
        return;
    copied = data;
    fsp_omp_barrier(frame);
}
