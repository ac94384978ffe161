/* What only one thread does, or each thread once: sections, single, master, copyprivate, threadprivate, copyin, barrier.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static long own = 7; /* of each thread */
#pragma omp threadprivate(own)

static int mistakes;

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("sections: wrong: %s\n", what);
    mistakes++;
}

static void each_section_once(void)
{
    int ran[7] = {0};
#pragma omp parallel sections
    {
#pragma omp section
        ran[0]++;
#pragma omp section
        ran[1]++;
    }
#pragma omp parallel num_threads(2)
    {
#pragma omp sections nowait
        {
#pragma omp section
            ran[2]++;
#pragma omp section
            ran[3]++;
#pragma omp section
            ran[4]++;
        }
#pragma omp sections
        {
#pragma omp section
            ran[5]++;
#pragma omp section
            ran[6]++;
        }
    }
    for (int i = 0; i < 7; i++)
        expect(ran[i] == 1, "a section runs once");
}

static void one_thread_only(int rounds)
{
    int singles = 0, masters = 0, threads = 0, copies = 0, met = 0;
    long table[64] = {0};
#pragma omp parallel reduction(+ : copies, met)
    {
        int number = omp_get_thread_num();
#pragma omp single
        threads = omp_get_num_threads();
        for (int round = 0; round < rounds; round++) {
            long told;
#pragma omp single nowait
            singles++;
#pragma omp master
            masters++;
#pragma omp single copyprivate(told)
            told = 1000 + round;
            copies += told == 1000 + round;
            if (number < 64)
                table[number] = round + 1;
#pragma omp barrier
            int right = 1;
            for (int i = 0; i < threads && i < 64; i++)
                right &= table[i] == round + 1;
            met += right;
#pragma omp barrier
        }
    }
    expect(singles == rounds && masters == rounds, "single and master");
    expect(copies == rounds * threads, "copyprivate");
    expect(met == rounds * threads, "barrier");
}

static void private_to_threads(void)
{
    int threads = 0, kept = 0, copied = 0;
    own = 5;
#pragma omp parallel copyin(own) reduction(+ : copied)
    {
        copied += own == 5;
        own += omp_get_thread_num();
#pragma omp single
        threads = omp_get_num_threads();
    }
#pragma omp parallel reduction(+ : kept)
    kept += own == 5 + omp_get_thread_num();
    expect(copied == threads && kept == threads, "threadprivate and copyin");
}

static void regions_of_all_sizes(void)
{
    int most = omp_get_max_threads();
    for (int asked = 1; asked <= most + 2; asked++) {
        int threads = 0, inner = 0;
#pragma omp parallel num_threads(asked) reduction(+ : threads, inner)
        {
            threads += omp_get_num_threads() == asked && omp_get_level() == 1;
#pragma omp parallel num_threads(2) reduction(+ : inner)
            inner += omp_get_level() == 2 && omp_get_ancestor_thread_num(1) >= 0;
        }
        expect(threads == asked && inner >= asked, "the size of a team");
    }
}

int main(int count, char **words)
{
    int rounds = count > 1 ? atoi(words[1]) : 10;
    expect(!omp_in_parallel() && omp_get_num_threads() == 1, "before");
    each_section_once();
    one_thread_only(rounds);
    private_to_threads();
    regions_of_all_sizes();
    one_thread_only(3);
    printf("sections: %s\n", mistakes ? "WRONG" : "verified");
    return mistakes != 0;
}
