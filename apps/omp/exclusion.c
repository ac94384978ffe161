/* One thread at a time: critical, atomic in all its forms, simple and nestable locks.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 12 };

struct account {
    omp_lock_t lock;
    long balance;
};

static struct account accounts[ACCOUNTS];
static omp_lock_t side_by_side[4];
static omp_nest_lock_t nest;
static long counted[4];
static int mistakes;

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("exclusion: wrong: %s\n", what);
    mistakes++;
}

static void criticals(int rounds)
{
    long plain = 0, named = 0;
    int threads = 0;
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (int i = 0; i < rounds; i++) {
#pragma omp critical
            plain++;
#pragma omp critical(name)
            {
#pragma omp critical(inner)
                named += 2;
            }
        }
    }
    expect(plain == (long)rounds * threads && named == 2 * plain, "critical");
}

static void atomics(int rounds)
{
    int threads = 0, count = 0, bits = 0, taken = 0;
    double sum = 0, product = 1;
    long captured = 0;
    unsigned char small = 0;
#pragma omp parallel reduction(+ : captured)
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (int i = 0; i < rounds; i++) {
            int before, now;
#pragma omp atomic
            count++;
#pragma omp atomic update
            sum += 0.5;
#pragma omp atomic
            bits |= 1 << i % 8;
#pragma omp atomic
            small += 1;
#pragma omp atomic capture
            {
                before = taken;
                taken += 3;
            }
#pragma omp atomic read
            now = taken;
            captured += before % 3 == 0 && now >= before + 3;
        }
#pragma omp atomic
        product *= 2;
    }
    double expected = 1;
    for (int i = 0; i < threads; i++)
        expected *= 2;
    long all = (long)rounds * threads;
    expect(count == all && sum == 0.5 * (double)all && taken == 3 * all && small == (all & 255), "atomic updates");
    expect(captured == all && product == expected, "atomic captures");
    expect(bits == (rounds < 8 ? (1 << rounds) - 1 : 255), "atomic bits");
}

/* Two locks at a time, in the order of their addresses. */
static void transfer(struct account *from, struct account *to, long amount)
{
    struct account *first = from < to ? from : to, *second = from < to ? to : from;
    omp_set_lock(&first->lock);
    omp_set_lock(&second->lock);
    from->balance -= amount;
    to->balance += amount;
    omp_unset_lock(&second->lock);
    omp_unset_lock(&first->lock);
}

static void locks(int rounds)
{
    for (int i = 0; i < ACCOUNTS; i++) {
        omp_init_lock(&accounts[i].lock);
        accounts[i].balance = 100;
    }
#pragma omp parallel
    {
        unsigned seed = (unsigned)omp_get_thread_num() + 1;
        for (int i = 0; i < rounds; i++) {
            seed = seed * 1664525 + 1013904223;
            unsigned from = seed >> 8, to = from + 1 + (seed >> 20) % (ACCOUNTS - 1);
            transfer(&accounts[from % ACCOUNTS], &accounts[to % ACCOUNTS], (long)(seed >> 28));
        }
    }
    long sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        sum += accounts[i].balance;
        omp_destroy_lock(&accounts[i].lock);
    }
    expect(sum == 100 * ACCOUNTS, "locks of accounts");
}

static void tried_and_nested(int rounds)
{
    int threads = 0;
    long nested = 0, depths = 0;
    for (int i = 0; i < 4; i++)
        omp_init_lock(&side_by_side[i]);
    omp_init_nest_lock(&nest);
#pragma omp parallel reduction(+ : depths)
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (int i = 0; i < rounds; i++) {
            int which = i % 4;
            if (!omp_test_lock(&side_by_side[which]))
                omp_set_lock(&side_by_side[which]);
            counted[which]++;
            omp_unset_lock(&side_by_side[which]);
            omp_set_nest_lock(&nest);
            depths += omp_test_nest_lock(&nest);
            nested++;
            omp_unset_nest_lock(&nest);
            omp_unset_nest_lock(&nest);
        }
    }
    omp_destroy_nest_lock(&nest);
    long sum = counted[0] + counted[1] + counted[2] + counted[3];
    expect(sum == (long)rounds * threads, "locks that are tried");
    expect(nested == sum && depths == 2 * sum, "nestable locks");
}

int main(int count, char **words)
{
    int rounds = count > 1 ? atoi(words[1]) : 20;
    criticals(rounds);
    atomics(rounds);
    locks(rounds);
    tried_and_nested(rounds);
    printf("exclusion: %s\n", mistakes ? "WRONG" : "verified");
    return mistakes != 0;
}
