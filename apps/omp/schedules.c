/* Loops under every schedule: each iteration runs once, whichever thread runs it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int *runs; /* of each iteration */
static long size = 1000;
static int mistakes;

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("schedules: wrong: %s\n", what);
    mistakes++;
}

static void expect_each(int times, const char *what)
{
    int right = 1;
    for (long i = 0; i < size; i++) {
        right &= runs[i] == times;
        runs[i] = 0;
    }
    expect(right, what);
}

static void all_schedules(void)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < size; i++)
        runs[i]++;
    expect_each(1, "static");
#pragma omp parallel for schedule(static, 7)
    for (long i = size - 1; i >= 0; i--)
        runs[i]++;
    expect_each(1, "static,7 downwards");
#pragma omp parallel for schedule(dynamic)
    for (long i = 0; i < size; i += 50)
        for (long j = i; j < i + 50 && j < size; j++)
            runs[j]++;
    expect_each(1, "dynamic");
#pragma omp parallel for schedule(guided, 3)
    for (unsigned long long i = 0; i < (unsigned long long)size; i++)
        runs[i]++;
    expect_each(1, "guided,3 of unsigned");
    const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided, omp_sched_auto};
    for (int k = 0; k < 4; k++) {
        omp_set_schedule(kinds[k], 40);
#pragma omp parallel for schedule(runtime)
        for (long i = 0; i < size; i++)
            runs[i]++;
        expect_each(1, "runtime");
    }
}

/* Loops of one region: some threads are loops ahead of others. */
static void without_waiting(void)
{
#pragma omp parallel
    for (int round = 0; round < 20; round++) {
#pragma omp for schedule(static) nowait
        for (long i = 0; i < size; i++)
            runs[i]++;
#pragma omp for schedule(dynamic, 500) nowait
        for (long i = 0; i < 1000; i++)
            ;
    }
    expect_each(20, "static, nowait");
    int met = 0;
#pragma omp parallel
    for (int round = 0; round < 300; round++) {
#pragma omp for schedule(dynamic, 8) reduction(+ : met) nowait
        for (int i = 0; i < 8; i++)
            met++;
    }
    expect(met == 2400, "300 dynamic loops, nowait");
}

static void nested_and_last(void)
{
    long rows = size / 10, last = -1, sum = 0;
#pragma omp parallel for collapse(2) schedule(dynamic, 100) lastprivate(last) reduction(+ : sum)
    for (long row = 0; row < rows; row++)
        for (long column = 0; column < 10; column++) {
            last = row * 10 + column;
            runs[last]++;
            sum += last;
        }
    for (long i = rows * 10; i < size; i++)
        runs[i]++;
    expect_each(1, "collapse");
    expect(last == rows * 10 - 1 && sum == last * (last + 1) / 2, "lastprivate and reduction");
}

static void in_order(void)
{
    long next = 0, early = 0;
#pragma omp parallel for ordered schedule(dynamic, 3) reduction(+ : early)
    for (long i = 0; i < 60; i++) {
#pragma omp ordered
        early += next++ != i;
    }
#pragma omp parallel for ordered schedule(static) reduction(+ : early)
    for (long i = 0; i < 60; i++) {
        if (i % 3 == 0) {
#pragma omp ordered
            early += next != 60 + i / 3, next++;
        }
    }
    expect(next == 80 && early == 0, "ordered");
}

int main(int count, char **words)
{
    if (count > 1)
        size = atol(words[1]);
    runs = calloc((size_t)size, sizeof *runs);
    all_schedules();
    without_waiting();
    nested_and_last();
    in_order();
    free(runs);
    printf("schedules: %s\n", mistakes ? "WRONG" : "verified");
    return mistakes != 0;
}
