/* The calls omp_*, but for locks.  OpenMP 5.0, 3.2 (execution environment), 3.4 (time), 3.7 (memory).
 *
 * There is no device, no place, no cancellation; one active level at most.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Beyond every enumeration of <omp.h>, which these stand for as int. */
enum { MONOTONIC = (int)0x80000000 };

#define CALL(type, name, parameters, ...)                                                                          \
    type name parameters;                                                                                          \
    type name parameters                                                                                           \
    {                                                                                                              \
        __VA_ARGS__                                                                                                \
    }

/* ---- teams -------------------------------------------------------------------------------------------------------- */

CALL(int, omp_get_thread_num, (void), return fsp_omp_here()->number;)
CALL(int, omp_get_num_threads, (void), return fsp_omp_here()->size;)
CALL(int, omp_get_max_threads, (void), return fsp_omp_here()->settings.threads;)
CALL(int, omp_get_num_procs, (void), return fsp_processors();)
CALL(int, omp_in_parallel, (void), return fsp_omp_here()->active > 0;)
CALL(int, omp_get_level, (void), return fsp_omp_here()->level;)
CALL(int, omp_get_active_level, (void), return fsp_omp_here()->active;)
CALL(int, omp_get_thread_limit, (void), return fsp_omp_program.thread_limit;)

CALL(void, omp_set_num_threads, (int threads), {
    int most = FSP_OMP_THREADS_MAX;
    if (threads > 0)
        fsp_omp_here()->settings.threads = threads < most ? threads : most;
})

/* The caller's ancestor at a level.  Beyond a pool thread's own frame are regions of one thread. */
static const struct fsp_omp_frame *ancestor(int level)
{
    static const struct fsp_omp_frame alone = {.number = 0, .size = 1};
    const struct fsp_omp_frame *frame = fsp_omp_here();
    if (level < 0 || level > frame->level)
        return NULL;
    while (frame && frame->level > level)
        frame = frame->outer;
    return frame ? frame : &alone;
}

CALL(int, omp_get_ancestor_thread_num, (int level), {
    const struct fsp_omp_frame *frame = ancestor(level);
    return frame ? frame->number : -1;
})
CALL(int, omp_get_team_size, (int level), {
    const struct fsp_omp_frame *frame = ancestor(level);
    return frame ? frame->size : -1;
})

/* ---- settings ----------------------------------------------------------------------------------------------------- */

CALL(void, omp_set_dynamic, (int on), fsp_omp_here()->settings.dynamic = on != 0;)
CALL(int, omp_get_dynamic, (void), return fsp_omp_here()->settings.dynamic;)
CALL(void, omp_set_nested, (int on), (void)on;)
CALL(int, omp_get_nested, (void), return 0;)
CALL(void, omp_set_max_active_levels, (int levels), fsp_omp_here()->settings.levels = levels > 0;)
CALL(int, omp_get_max_active_levels, (void), return fsp_omp_here()->settings.levels;)
CALL(int, omp_get_supported_active_levels, (void), return 1;)

CALL(void, omp_set_schedule, (int kind, int chunk), {
    kind &= ~MONOTONIC;
    if (kind >= FSP_OMP_STATIC && kind <= FSP_OMP_AUTO)
        fsp_omp_here()->settings.schedule =
            (struct fsp_omp_schedule){(enum fsp_omp_kind)kind, chunk > 0 ? (uint64_t)chunk : 0};
})
CALL(void, omp_get_schedule, (int *kind, int *chunk), {
    const struct fsp_omp_schedule *schedule = &fsp_omp_here()->settings.schedule;
    *kind = (int)schedule->kind;
    *chunk = (int)schedule->chunk;
})

/* ---- what there is none of ---------------------------------------------------------------------------------------- */

CALL(int, omp_get_cancellation, (void), return 0;)
CALL(int, omp_get_proc_bind, (void), return 0;)
CALL(int, omp_get_num_places, (void), return 0;)
CALL(int, omp_get_place_num_procs, (int place), (void)place; return 0;)
CALL(void, omp_get_place_proc_ids, (int place, int *ids), (void)place, (void)ids;)
CALL(int, omp_get_place_num, (void), return -1;)
CALL(int, omp_get_partition_num_places, (void), return 0;)
CALL(void, omp_get_partition_place_nums, (int *places), (void)places;)
CALL(void, omp_set_default_device, (int device), (void)device;)
CALL(int, omp_get_default_device, (void), return 0;)
CALL(int, omp_get_num_devices, (void), return 0;)
CALL(int, omp_get_device_num, (void), return 0;)
CALL(int, omp_get_initial_device, (void), return 0;)
CALL(int, omp_is_initial_device, (void), return 1;)
CALL(int, omp_get_num_teams, (void), return 1;)
CALL(int, omp_get_team_num, (void), return 0;)
CALL(int, omp_get_max_teams, (void), return 1;)
CALL(void, omp_set_num_teams, (int teams), (void)teams;)
CALL(int, omp_get_teams_thread_limit, (void), return fsp_omp_program.thread_limit;)
CALL(void, omp_set_teams_thread_limit, (int limit), (void)limit;)
CALL(int, omp_get_max_task_priority, (void), return 0;)
CALL(int, omp_pause_resource, (int kind, int device), (void)kind, (void)device; return -1;)
CALL(int, omp_pause_resource_all, (int kind), (void)kind; return -1;)

/* Only in a program that asks for cancellation; the setting says that there is none. */
CALL(bool, GOMP_cancel, (int which, bool now), (void)which, (void)now; return false;)
CALL(bool, GOMP_cancellation_point, (int which), (void)which; return false;)
CALL(bool, GOMP_barrier_cancel, (void), fsp_omp_barrier(fsp_omp_here()); return false;)
CALL(bool, GOMP_loop_end_cancel, (void), fsp_omp_barrier(fsp_omp_here()); return false;)
CALL(bool, GOMP_sections_end_cancel, (void), fsp_omp_barrier(fsp_omp_here()); return false;)

/* ---- time --------------------------------------------------------------------------------------------------------- */

CALL(double, omp_get_wtime, (void), {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
})
CALL(double, omp_get_wtick, (void), return 1e-9;)

/* ---- memory: all allocators are malloc ---------------------------------------------------------------------------- */

CALL(void *, omp_alloc, (size_t size, uintptr_t allocator), (void)allocator; return malloc(size);)
CALL(void *, omp_calloc, (size_t count, size_t size, uintptr_t allocator), (void)allocator; return calloc(count, size);)
CALL(void, omp_free, (void *memory, uintptr_t allocator), (void)allocator; free(memory);)
CALL(void *, omp_realloc, (void *memory, size_t size, uintptr_t to, uintptr_t from), (void)to, (void)from;
     return realloc(memory, size);)
CALL(void *, omp_aligned_alloc, (size_t alignment, size_t size, uintptr_t allocator), {
    void *memory = NULL;
    (void)allocator;
    return posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) ? NULL : memory;
})
CALL(void, omp_set_default_allocator, (uintptr_t allocator), (void)allocator;)
CALL(uintptr_t, omp_get_default_allocator, (void), return 1;)
