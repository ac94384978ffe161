/* Which iterations of a loop come next, and how large a team becomes: numbers in, numbers out.
 * OpenMP 5.0, 2.9.2 (schedules) and 2.6.1 (threads of a region).  SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FSP_OPENMP_SCHEDULE_H
#define FSP_OPENMP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* By the numbers of omp_sched_t. */
enum fsp_omp_kind { FSP_OMP_STATIC = 1, FSP_OMP_DYNAMIC = 2, FSP_OMP_GUIDED = 3, FSP_OMP_AUTO = 4 };

struct fsp_omp_schedule {
    enum fsp_omp_kind kind;
    uint64_t chunk; /* 0: the usual one of the kind */
};

/* The iterations of a loop, signed or not: the i-th has the value first + i * step, wrapped. */
struct fsp_omp_range {
    uint64_t first, step, end;
    uint64_t count;
};

/* Some of them that follow each other. */
struct fsp_omp_chunk {
    uint64_t first, count; /* count 0: none are left */
};

struct fsp_omp_range fsp_omp_range_signed(int64_t first, int64_t end, int64_t step);
struct fsp_omp_range fsp_omp_range_unsigned(bool up, uint64_t first, uint64_t end, uint64_t step);

/* The value of iteration `index`, for index = count the loop's own end. */
uint64_t fsp_omp_value(const struct fsp_omp_range *range, uint64_t index);

/* The chunk of this number, where chunks are dealt to the threads by turns; without a chunk size there is one for each thread. */
struct fsp_omp_chunk fsp_omp_chunk_static(uint64_t count, uint64_t size, uint64_t threads, uint64_t number);

/* What comes after `taken` iterations, dynamic or guided. */
struct fsp_omp_chunk fsp_omp_chunk_taken(struct fsp_omp_schedule schedule, uint64_t count, uint64_t taken, uint64_t threads);

/* The place of an iteration of nested loops in its group of outer iterations, from 1; 0: too large for a flag. */
uint32_t fsp_omp_step(uint64_t group, unsigned dimensions, const uint64_t *counts, const uint64_t *iteration);

/* Threads of a region: what its clause asks for (0: nothing), what the setting says, the limits. */
int fsp_omp_team_size(unsigned asked, int setting, int limit, bool may_be_active);

/* How a taskloop is divided. */
struct fsp_omp_division {
    uint64_t tasks;  /* how many */
    uint64_t each;   /* iterations of one */
    uint64_t larger; /* so many of the first have one more */
};
struct fsp_omp_division fsp_omp_divide(uint64_t count, uint64_t asked, bool is_grain, bool is_strict, uint64_t threads);

#endif
