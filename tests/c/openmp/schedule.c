/* The arithmetic of fspcc/openmp/schedule.c: every iteration is in one chunk, whatever the schedule; and the edges.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../../../fspcc/openmp/schedule.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

/* All chunks, one after the other, of loops and teams of all small sizes. */
static void static_chunks_cover_the_loop(void)
{
    for (uint64_t count = 0; count < 40; count++)
        for (uint64_t threads = 1; threads < 9; threads++)
            for (uint64_t size = 0; size < 12; size++) {
                uint64_t next = 0, largest = 0, least = ~0ull;
                for (uint64_t number = 0; number < 50; number++) {
                    struct fsp_omp_chunk chunk = fsp_omp_chunk_static(count, size, threads, number);
                    assert(chunk.count == 0 || chunk.first == next);
                    next += chunk.count;
                    if (number < threads) {
                        largest = chunk.count > largest ? chunk.count : largest;
                        least = chunk.count < least ? chunk.count : least;
                    }
                }
                assert(next == count);
                assert(size != 0 || largest - least <= 1);
            }
}

static void taken_chunks_cover_the_loop(void)
{
    const enum fsp_omp_kind kinds[] = {FSP_OMP_DYNAMIC, FSP_OMP_GUIDED};
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t count = 0; count < 60; count++)
            for (uint64_t size = 0; size < 8; size++) {
                struct fsp_omp_schedule schedule = {kinds[kind], size};
                uint64_t taken = 0, before = ~0ull;
                for (;;) {
                    struct fsp_omp_chunk chunk = fsp_omp_chunk_taken(schedule, count, taken, 4);
                    if (chunk.count == 0)
                        break;
                    assert(chunk.first == taken && chunk.count <= before);
                    assert(chunk.count >= size || chunk.first + chunk.count == count);
                    before = chunk.count;
                    taken += chunk.count;
                }
                assert(taken == count);
            }
}

static void ranges_count_their_iterations(void)
{
    assert(fsp_omp_range_signed(0, 10, 3).count == 4);
    assert(fsp_omp_range_signed(10, 0, -3).count == 4);
    assert(fsp_omp_range_signed(5, 5, 1).count == 0 && fsp_omp_range_signed(6, 5, 1).count == 0);
    assert(fsp_omp_range_signed(LONG_MIN, LONG_MAX, 1).count == ULONG_MAX);
    assert(fsp_omp_range_signed(LONG_MAX, LONG_MIN, LONG_MIN).count == 2);
    assert(fsp_omp_range_unsigned(true, 0, ULONG_MAX, 1).count == ULONG_MAX);
    assert(fsp_omp_range_unsigned(false, ULONG_MAX, 1, (uint64_t)-2).count == ULONG_MAX / 2);
    assert(fsp_omp_range_unsigned(true, 7, 7, 2).count == 0);
    struct fsp_omp_range range = fsp_omp_range_signed(LONG_MAX - 4, LONG_MAX, 3);
    assert(range.count == 2 && fsp_omp_value(&range, 1) == LONG_MAX - 1 && fsp_omp_value(&range, 2) == LONG_MAX);
    range = fsp_omp_range_signed(3, -4, -2);
    assert((int64_t)fsp_omp_value(&range, 3) == -3 && (int64_t)fsp_omp_value(&range, 4) == -4);
}

static void teams_have_the_size_that_was_asked_for(void)
{
    assert(fsp_omp_team_size(0, 4, 100, true) == 4);
    assert(fsp_omp_team_size(7, 4, 100, true) == 7);
    assert(fsp_omp_team_size(7, 4, 5, true) == 5);
    assert(fsp_omp_team_size(7, 4, 5, false) == 1);
}

static void task_loops_are_divided(void)
{
    struct fsp_omp_division by = fsp_omp_divide(100, 9, false, false, 4);
    assert(by.tasks == 9 && by.each == 11 && by.larger == 1);
    by = fsp_omp_divide(100, 30, true, false, 4); /* from 30 to less than 60 in each */
    assert(by.tasks == 3 && by.each == 33 && by.larger == 1);
    by = fsp_omp_divide(100, 30, true, true, 4);
    assert(by.tasks == 4 && by.each == 30 && by.larger == 0);
    by = fsp_omp_divide(5, 9, false, false, 4);
    assert(by.tasks == 5 && by.each == 1);
    by = fsp_omp_divide(5, 9, true, false, 4);
    assert(by.tasks == 1 && by.each == 5);
    assert(fsp_omp_divide(0, 9, true, false, 4).tasks == 0 && fsp_omp_divide(3, 0, false, false, 4).tasks == 3);
}

static void iterations_of_a_group_count_up(void)
{
    const uint64_t counts[] = {100, 3, 4};
    uint32_t before = 0;
    for (uint64_t i = 20; i < 25; i++)
        for (uint64_t j = 0; j < 3; j++)
            for (uint64_t k = 0; k < 4; k++) {
                uint32_t step = fsp_omp_step(5, 3, counts, (uint64_t[]){i, j, k});
                assert(step == before + 1);
                before = step;
            }
    assert(fsp_omp_step(5, 1, counts, (uint64_t[]){25}) == 1);
    assert(fsp_omp_step(1ull << 40, 1, counts, (uint64_t[]){1ull << 33}) == 0);
    assert(fsp_omp_step(1, 2, (uint64_t[]){1, 1ull << 33}, (uint64_t[]){0, 1ull << 32}) == 0);
}

int main(void)
{
    static_chunks_cover_the_loop();
    taken_chunks_cover_the_loop();
    ranges_count_their_iterations();
    teams_have_the_size_that_was_asked_for();
    task_loops_are_divided();
    iterations_of_a_group_count_up();
    puts("schedule: all right");
    return 0;
}
