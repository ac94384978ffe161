/* Reductions: sums, products, extremes, logic, arrays, one's own; of one variable and of several.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 16 };

struct extreme {
    double value;
    long where;
};

#pragma omp declare reduction(largest : struct extreme : omp_out = omp_in.value > omp_out.value ? omp_in : omp_out) \
    initializer(omp_priv = {-1, -1})

static int mistakes;

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("reductions: wrong: %s\n", what);
    mistakes++;
}

static double pi(long steps)
{
    double sum = 0, width = 1.0 / (double)steps;
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < steps; i++) {
        double x = ((double)i + 0.5) * width;
        sum += 4 / (1 + x * x);
    }
    return sum * width;
}

static unsigned scrambled(unsigned long i)
{
    return (unsigned)((i * 2654435761u ^ i >> 7) % 10007);
}

static void of_numbers(long size)
{
    unsigned *numbers = malloc((size_t)size * sizeof *numbers);
    long sum = 0, bins[BINS] = {0}, sum_alone = 0, bins_alone[BINS] = {0};
    unsigned least = ~0u, most = 0, bits = 0, parity = 0, odd = 0;
    int all_small = 1, any_zero = 0;
    struct extreme largest = {-1, -1};
    double roots = 0;
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (long i = 0; i < size; i++)
            numbers[i] = scrambled((unsigned long)i);
#pragma omp for schedule(dynamic, 256) reduction(+ : sum, bins, odd) reduction(min : least) reduction(max : most) nowait
        for (long i = 0; i < size; i++) {
            sum += numbers[i];
            bins[numbers[i] % BINS]++;
            odd += numbers[i] & 1;
            least = numbers[i] < least ? numbers[i] : least;
            most = numbers[i] > most ? numbers[i] : most;
        }
#pragma omp for reduction(| : bits) reduction(^ : parity) reduction(&& : all_small) reduction(|| : any_zero)
        for (long i = 0; i < size; i++) {
            bits |= numbers[i];
            parity ^= numbers[i];
            all_small = all_small && numbers[i] < 10007;
            any_zero = any_zero || numbers[i] == 0;
        }
#pragma omp for reduction(largest : largest) reduction(+ : roots)
        for (long i = 0; i < size; i++) {
            if (numbers[i] > largest.value)
                largest = (struct extreme){numbers[i], i};
            roots += sqrt(numbers[i]);
        }
    }
    unsigned least_alone = ~0u, most_alone = 0, bits_alone = 0, parity_alone = 0, odd_alone = 0;
    double roots_alone = 0;
    for (long i = 0; i < size; i++) {
        sum_alone += numbers[i];
        bins_alone[numbers[i] % BINS]++;
        odd_alone += numbers[i] & 1;
        least_alone = numbers[i] < least_alone ? numbers[i] : least_alone;
        most_alone = numbers[i] > most_alone ? numbers[i] : most_alone;
        bits_alone |= numbers[i];
        parity_alone ^= numbers[i];
        roots_alone += sqrt(numbers[i]);
    }
    expect(sum == sum_alone && odd == odd_alone, "sums");
    for (int i = 0; i < BINS; i++)
        expect(bins[i] == bins_alone[i], "an array");
    expect(least == least_alone && most == most_alone, "extremes");
    expect(bits == bits_alone && parity == parity_alone, "bits");
    expect(all_small == 1 && any_zero == 1, "logic");
    expect(largest.value == most && numbers[largest.where] == most, "one's own");
    expect(fabs(roots - roots_alone) < 1e-9 * roots_alone, "floating point");
    free(numbers);
}

int main(int count, char **words)
{
    long size = count > 1 ? atol(words[1]) : 10000;
    expect(fabs(pi(100 * size) - acos(-1)) < 1e-8, "pi");
    of_numbers(size);
    printf("reductions: %s\n", mistakes ? "WRONG" : "verified");
    return mistakes != 0;
}
