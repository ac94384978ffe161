/* histogram [-n NUMBERS] [-t THREADS]: makes numbers, counts them by size, finds the largest.  Each thread takes the next
 * block of them until none is left; jobs, counts and results stand in main's frame.  An ordinary pthread program. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BINS = 16, BLOCK = 1000, THREADS_MAX = 64 };

struct job {
    const unsigned *numbers;
    int count, worker;
    pthread_mutex_t *lock; /* of the counts */
    long *counts;
    unsigned largest;      /* of those that this thread has seen: the result */
};

static atomic_int next_block;
static volatile int ready; /* threads that have begun */

static void *work(void *argument)
{
    struct job *job = argument;
    long mine[BINS] = {0};

    __sync_fetch_and_add(&ready, 1);
    for (;;) {
        int first = next_block++ * BLOCK, last = first + BLOCK;
        if (first >= job->count) break;
        if (last > job->count) last = job->count;
        for (int i = first; i < last; i++) {
            mine[job->numbers[i] >> 28]++;
            if (job->numbers[i] > job->largest) job->largest = job->numbers[i];
        }
    }
    pthread_mutex_lock(job->lock);
    for (int bin = 0; bin < BINS; bin++) job->counts[bin] += mine[bin];
    pthread_mutex_unlock(job->lock);
    return &job->largest;
}

int main(int argc, char **argv)
{
    int count = 50000, threads = 4, option;
    while ((option = getopt(argc, argv, "n:t:")) != -1) {
        if (option == 'n') count = atoi(optarg);
        else if (option == 't' && atoi(optarg) <= THREADS_MAX) threads = atoi(optarg);
        else return 2;
    }

    unsigned *numbers = malloc(count * sizeof *numbers), seed = 1, largest = 0;
    for (int i = 0; i < count; i++) numbers[i] = seed = seed * 1664525 + 1013904223;

    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    long counts[BINS] = {0}, sum = 0;
    struct job jobs[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){numbers, count, i, &lock, counts, 0};
        if (pthread_create(&ids[i], NULL, work, &jobs[i]) != 0) abort();
    }
    while (ready < threads) /* all have begun */
        ;
    printf("histogram: %d threads at work\n", ready);
    for (int i = 0; i < threads; i++) {
        void *result;
        pthread_join(ids[i], &result);
        if (*(unsigned *)result > largest) largest = *(unsigned *)result;
    }
    for (int bin = 0; bin < BINS; bin++) sum += counts[bin] * (bin + 1);
    printf("histogram: %d numbers, largest %u, sum %ld\n", count, largest, sum);
    free(numbers);
    return 0;
}
