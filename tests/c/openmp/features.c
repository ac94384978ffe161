/* What apps/omp does not need of OpenMP: the calls omp_*, and corners of constructs.
 *   features             all of it
 *   features places      prints for each thread its number, processor and node
 *   features settings    prints the settings that the environment has made
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/base.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int mistakes;

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("features: wrong: %s\n", what);
    mistakes++;
}

static void print_places(void)
{
    int processor[64], node[64], threads = 0;
#pragma omp parallel
    {
        processor[omp_get_thread_num()] = fsp_processor();
        node[omp_get_thread_num()] = fsp_node();
#pragma omp single
        threads = omp_get_num_threads();
    }
    for (int i = 0; i < threads; i++)
        printf("%d %d %d\n", i, processor[i], node[i]);
}

static void print_settings(void)
{
    omp_sched_t kind;
    int chunk;
    omp_get_schedule(&kind, &chunk);
    printf("threads %d, schedule %d %d, dynamic %d, levels %d, limit %d\n", omp_get_max_threads(), (int)kind, chunk,
        omp_get_dynamic(), omp_get_max_active_levels(), omp_get_thread_limit());
}

static void levels(void)
{
    int right = 0, threads = 0;
    expect(omp_get_level() == 0 && omp_get_active_level() == 0 && omp_get_team_size(0) == 1, "level 0");
    expect(omp_get_ancestor_thread_num(0) == 0 && omp_get_ancestor_thread_num(1) == -1, "ancestors of level 0");
#pragma omp parallel reduction(+ : right, threads)
    {
        int number = omp_get_thread_num(), size = omp_get_num_threads();
        threads++;
        right += omp_get_level() == 1 && omp_get_active_level() == (size > 1) && omp_in_parallel() == (size > 1);
#pragma omp parallel num_threads(3) reduction(+ : right)
        {
            right += omp_get_level() == 2 && omp_get_num_threads() == (size > 1 ? 1 : omp_get_team_size(2));
            right += omp_get_ancestor_thread_num(1) == number && omp_get_team_size(1) == size;
            right += omp_get_ancestor_thread_num(0) == 0 && omp_get_ancestor_thread_num(3) == -1;
#pragma omp barrier
#pragma omp single
            right += 0;
        }
    }
    expect(right >= 4 * threads, "levels");
}

static void settings(void)
{
    omp_sched_t kind;
    int chunk;
    omp_set_schedule(omp_sched_guided, 9);
    omp_get_schedule(&kind, &chunk);
    expect(kind == omp_sched_guided && chunk == 9, "omp_set_schedule");
    int most = omp_get_max_threads(), inherited = 0, threads = 0;
    omp_set_num_threads(2);
#pragma omp parallel reduction(+ : inherited, threads)
    {
        threads++;
        omp_get_schedule(&kind, &chunk);
        inherited += omp_get_max_threads() == 2;
        omp_set_num_threads(5 + omp_get_thread_num());
        inherited += omp_get_max_threads() == 5 + omp_get_thread_num();
    }
    expect(threads == 2 && inherited == 4 && omp_get_max_threads() == 2, "omp_set_num_threads");
    omp_set_num_threads(most);
    expect(omp_get_num_procs() == fsp_processors() && !omp_get_cancellation(), "omp_get_num_procs");
    double then = omp_get_wtime();
    expect(omp_get_wtime() >= then && omp_get_wtick() > 0, "omp_get_wtime");
    int *memory = omp_alloc(100 * sizeof *memory, omp_default_mem_alloc);
    memory[99] = 1;
    omp_free(memory, omp_default_mem_alloc);
}

static void unsigned_loops(void)
{
    unsigned long long sum = 0, end = ~0ull;
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : sum)
    for (unsigned long long i = end - 21; i < end; i += 3)
        sum += end - i;
    expect(sum == 84, "an unsigned loop at the end of the numbers");
    long last = 0;
#pragma omp parallel for schedule(monotonic : dynamic) lastprivate(last)
    for (long i = 100; i > -100; i -= 7)
        last = i;
    expect(last == 100 - 28 * 7, "lastprivate of a loop downwards");
}

struct big {
    char bytes[5000];
};

/* A task has a copy of what is private to it, also when that is large and the frame is gone. */
static void make_tasks(long *sum, int count)
{
    struct big big;
    for (int i = 0; i < count; i++) {
        memset(big.bytes, i, sizeof big.bytes);
#pragma omp task firstprivate(big) priority(2)
        {
            long here = 0;
            for (size_t j = 0; j < sizeof big.bytes; j++)
                here += big.bytes[j];
#pragma omp atomic
            *sum += here;
        }
#pragma omp taskyield
    }
}

static void tasks(void)
{
    long sum = 0, groups = 0;
    int final = 0, outside = 0;
#pragma omp parallel
    {
#pragma omp single nowait
        make_tasks(&sum, 20);
    }
    expect(sum == 5000L * 190, "tasks with data");
#pragma omp parallel
#pragma omp master
    {
#pragma omp taskgroup
        for (int i = 0; i < 5; i++) {
#pragma omp task shared(groups)
            {
#pragma omp task shared(groups)
                {
#pragma omp atomic
                    groups++;
                }
            }
        }
        expect(groups == 5, "a group waits for the children of its tasks");
#pragma omp task final(1) shared(final)
        final = omp_in_final();
#pragma omp taskwait
    }
    expect(final == 1, "omp_in_final");
#pragma omp task shared(outside)
    outside = 1;
#pragma omp taskwait
    expect(outside == 1, "a task outside of a region");
}

enum { ROWS = 12, COLUMNS = 9 };

static long after(long table[ROWS][COLUMNS], long i, long j)
{
    return (table[i - 1][j] + 2 * table[i][j - 1] + 1) % 10007;
}

/* Each element needs the one above and the one to the left. */
static void iterations_wait_for_each_other(void)
{
    static long alone[ROWS][COLUMNS], table[2][ROWS][COLUMNS];
    for (long i = 1; i < ROWS; i++)
        for (long j = 1; j < COLUMNS; j++)
            alone[i][j] = after(alone, i, j);
#pragma omp parallel
    {
#pragma omp for ordered(2) schedule(static) nowait
        for (long i = 1; i < ROWS; i++)
            for (long j = 1; j < COLUMNS; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
                table[0][i][j] = after(table[0], i, j);
#pragma omp ordered depend(source)
            }
#pragma omp for ordered(2) schedule(dynamic, 2)
        for (unsigned long i = 1; i < ROWS; i++)
            for (unsigned long j = 1; j < COLUMNS; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
                table[1][i][j] = after(table[1], (long)i, (long)j);
#pragma omp ordered depend(source)
            }
    }
    expect(!memcmp(table[0], alone, sizeof alone) && !memcmp(table[1], alone, sizeof alone), "ordered(2)");
}

static void regions_in_loops(void)
{
    long sum = 0;
    for (int i = 0; i < 50; i++) {
#pragma omp parallel if (i % 2) reduction(+ : sum)
#pragma omp for schedule(runtime)
        for (int j = 0; j < 4; j++)
            sum += j;
    }
    expect(sum == 300, "many regions");
}

int main(int count, char **words)
{
    if (count > 1 && !strcmp(words[1], "places")) {
        print_places();
        return 0;
    }
    if (count > 1) {
        print_settings();
        return 0;
    }
    levels();
    settings();
    unsigned_loops();
    tasks();
    iterations_wait_for_each_other();
    regions_in_loops();
    printf("features: %s\n", mistakes ? "WRONG" : "verified");
    return mistakes != 0;
}
