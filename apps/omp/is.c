/* The kernel IS of the NAS Parallel Benchmarks, written from its specification (RNR-94-007, section 2.6): integer keys are ranked ten
 * times by counting, each time after two of them have changed.  Each thread counts its keys in a row of its own; the rows are
 * added up by all threads, for a range of keys each.
 *   is [S | W]      S: 2^16 keys below 2^11; W: 2^20 below 2^16.  Five ranks of each iteration are compared with those
 *                   that are published, and in the end the ranks put all keys in order.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITERATIONS = 10, TESTED = 5 };

struct class {
    long keys, values;
    long index[TESTED], rank[TESTED];
    int rising; /* so many of the ranks rise by one with each iteration, the others fall */
    int offset; /* of the iteration, for those that rise */
};

static const struct class S = {
    1 << 16, 1 << 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 3, 0};
static const struct class W = {
    1 << 20, 1 << 16, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, 2, -2};

static uint64_t state = 314159265;
static int *keys;
static int **counts; /* of each thread */
static int *smaller; /* for each value: how many keys are not larger */

static double next(void)
{
    state = state * 1220703125 & ((1ull << 46) - 1);
    return ldexp((double)state, -46);
}

static void make_keys(const struct class *class)
{
    keys = malloc((size_t)class->keys * sizeof *keys);
    smaller = malloc((size_t)class->values * sizeof *smaller);
    for (long i = 0; i < class->keys; i++) {
        double sum = 0;
        for (int j = 0; j < 4; j++)
            sum += next();
        keys[i] = (int)((double)(class->values / 4) * sum);
    }
    counts = malloc((size_t)omp_get_max_threads() * sizeof *counts);
#pragma omp parallel
    counts[omp_get_thread_num()] = malloc((size_t)class->values * sizeof **counts);
}

static void rank(const struct class *class)
{
    static long before[1024]; /* in the ranges of smaller numbers, see below */
#pragma omp parallel
    {
        int number = omp_get_thread_num(), threads = omp_get_num_threads();
        int *own = counts[number];
        long sum = 0;
        for (long value = 0; value < class->values; value++)
            own[value] = 0;
#pragma omp for schedule(static)
        for (long i = 0; i < class->keys; i++)
            own[keys[i]]++;
        long first = class->values * number / threads, end = class->values * (number + 1) / threads;
        for (long value = first; value < end; value++) {
            for (int thread = 0; thread < threads; thread++)
                sum += counts[thread][value];
            smaller[value] = (int)sum;
        }
        before[number] = sum;
#pragma omp barrier
        long offset = 0;
        for (int thread = 0; thread < number; thread++)
            offset += before[thread];
        for (long value = first; value < end; value++)
            smaller[value] += (int)offset;
    }
}

static int ranks_are_known(const struct class *class, int iteration, const int *tested)
{
    int right = 1;
    for (int i = 0; i < TESTED; i++) {
        long by = i < class->rising ? iteration + class->offset : -iteration;
        right &= tested[i] > 0 && smaller[tested[i] - 1] == class->rank[i] + by;
    }
    return right;
}

/* Each key to its rank. */
static int keys_come_in_order(const struct class *class)
{
    int *sorted = malloc((size_t)class->keys * sizeof *sorted);
    for (long i = 0; i < class->keys; i++)
        sorted[--smaller[keys[i]]] = keys[i];
    long wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (long i = 1; i < class->keys; i++)
        wrong += sorted[i - 1] > sorted[i];
    free(sorted);
    return wrong == 0;
}

int main(int count, char **words)
{
    const struct class *class = count > 1 && words[1][0] == 'W' ? &W : &S;
    int right = 1;
    make_keys(class);
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        int tested[TESTED];
        keys[iteration] = iteration;
        keys[iteration + ITERATIONS] = (int)class->values - iteration;
        for (int i = 0; i < TESTED; i++)
            tested[i] = keys[class->index[i]];
        rank(class);
        right &= ranks_are_known(class, iteration, tested);
    }
    right &= keys_come_in_order(class);
    printf("is: %s\n", right ? "verified" : "WRONG");
    return !right;
}
