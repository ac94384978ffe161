/* Quicksort by work stealing: each thread has a deque of ranges of the array; it takes from one end of its own, and when
 * that is empty from the other end of somebody else's.  Sleeps when there is nothing, until the last element is in its place.
 *
 * An ordinary pthread program: `cc -pthread quicksort.c` and `fspcc --pthread quicksort.c` build it from the same source.
 *   quicksort [-n NUMBERS] [-t THREADS] [-s SEED]
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 64, THREADS_MAX = 64 };

typedef struct range {
    size_t first, end;
} range;

/* A growing array: the owner takes the last, thieves the first. */
typedef struct deque {
    pthread_mutex_t lock;
    range *ranges;
    size_t first, end, room;
} deque;

/* What one thread knows. */
typedef struct worker {
    deque deque;
    unsigned number;
    size_t placed; /* elements that it has put in their places */
    size_t stolen;
} worker;

static uint32_t *numbers;
static size_t count = 20000;
static unsigned threads = 4;
static worker *workers;

/* How much is to do, for those who find nothing. */
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle_change = PTHREAD_COND_INITIALIZER;
static size_t left;       /* elements not yet in their places */
static unsigned offers;   /* counts ranges that were put into deques */

static void fail(const char *what)
{
    fprintf(stderr, "quicksort: %s failed\n", what);
    exit(1);
}

static void offer(deque *to, range range)
{
    pthread_mutex_lock(&to->lock);
    if (to->end == to->room) {
        size_t used = to->end - to->first;
        if (to->first > used) {
            memmove(to->ranges, to->ranges + to->first, used * sizeof range);
        } else {
            to->room = to->room ? 2 * to->room : 4;
            struct range *grown = malloc(to->room * sizeof range);
            if (!grown) fail("malloc");
            if (used) memcpy(grown, to->ranges + to->first, used * sizeof range);
            free(to->ranges);
            to->ranges = grown;
        }
        to->first = 0;
        to->end = used;
    }
    to->ranges[to->end++] = range;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_lock(&idle_lock);
    offers++;
    pthread_cond_signal(&idle_change);
    pthread_mutex_unlock(&idle_lock);
}

static int take_last(deque *from, range *range)
{
    pthread_mutex_lock(&from->lock);
    int found = from->end > from->first;
    if (found) *range = from->ranges[--from->end];
    pthread_mutex_unlock(&from->lock);
    return found;
}

/* Goes on to the next victim where somebody is at work. */
static int steal_first(deque *from, range *range)
{
    if (pthread_mutex_trylock(&from->lock)) return 0;
    int found = from->end > from->first;
    if (found) *range = from->ranges[from->first++];
    pthread_mutex_unlock(&from->lock);
    return found;
}

static int find(worker *me, range *range)
{
    if (take_last(&me->deque, range)) return 1;
    for (unsigned step = 1; step < threads; step++) {
        if (steal_first(&workers[(me->number + step) % threads].deque, range)) {
            me->stolen++;
            return 1;
        }
    }
    return 0;
}

static void placed(worker *by, size_t elements)
{
    by->placed += elements;
    pthread_mutex_lock(&idle_lock);
    left -= elements;
    if (left == 0) pthread_cond_broadcast(&idle_change);
    pthread_mutex_unlock(&idle_lock);
}

static void insertion_sort(size_t first, size_t end)
{
    for (size_t i = first + 1; i < end; i++) {
        uint32_t number = numbers[i];
        size_t j = i;
        for (; j > first && numbers[j - 1] > number; j--) numbers[j] = numbers[j - 1];
        numbers[j] = number;
    }
}

/* Hoare's partition: everything before the result is at most the pivot, everything from it on at least. */
static size_t partition(size_t first, size_t end)
{
    uint32_t pivot = numbers[first + (end - first) / 2];
    size_t i = first, j = end - 1;
    for (;;) {
        while (numbers[i] < pivot) i++;
        while (numbers[j] > pivot) j--;
        if (i >= j) return j + 1 < end ? j + 1 : end - 1;
        uint32_t number = numbers[i];
        numbers[i++] = numbers[j];
        numbers[j--] = number;
    }
}

static void *work(void *argument)
{
    worker *me = argument;
    range range;
    for (;;) {
        pthread_mutex_lock(&idle_lock);
        unsigned offers_before = offers;
        int done = left == 0;
        pthread_mutex_unlock(&idle_lock);
        if (done) return argument;
        if (find(me, &range)) {
            while (range.end - range.first > SMALL) {
                size_t middle = partition(range.first, range.end);
                struct range larger = {range.first, middle}, smaller = {middle, range.end};
                if (smaller.end - smaller.first > larger.end - larger.first) {
                    struct range swap = smaller;
                    smaller = larger;
                    larger = swap;
                }
                offer(&me->deque, larger);
                range = smaller;
            }
            insertion_sort(range.first, range.end);
            placed(me, range.end - range.first);
            continue;
        }
        /* A deque that was busy may have had something: only a new offer or the end is waited for if all was empty. */
        pthread_mutex_lock(&idle_lock);
        if (left > 0 && offers == offers_before) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 2000000;
            if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
            pthread_cond_timedwait(&idle_change, &idle_lock, &until);
        }
        pthread_mutex_unlock(&idle_lock);
    }
}

static int compare(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    uint32_t seed = 1;
    for (int flag; (flag = getopt(argc, argv, "n:t:s:")) != -1;) {
        if (flag == 'n') count = (size_t)atol(optarg);
        else if (flag == 't') threads = (unsigned)atoi(optarg);
        else if (flag == 's') seed = (uint32_t)atol(optarg);
        else return 2;
    }
    if (count < 1 || threads < 1 || threads > THREADS_MAX) return 2;
    numbers = malloc(count * sizeof *numbers);
    workers = calloc(threads, sizeof *workers);
    uint32_t *expected = malloc(count * sizeof *expected);
    if (!numbers || !workers || !expected) fail("malloc");
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        expected[i] = numbers[i] = (seed >> 8) % (uint32_t)(count + 1);
    }
    qsort(expected, count, sizeof *expected, compare);

    left = count;
    for (unsigned i = 0; i < threads; i++) {
        workers[i].number = i;
        pthread_mutex_init(&workers[i].deque.lock, NULL);
    }
    offer(&workers[0].deque, (range){0, count});
    pthread_t running[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&running[i], NULL, work, &workers[i])) fail("pthread_create");
    size_t total = 0;
    for (unsigned i = 0; i < threads; i++) {
        void *result;
        if (pthread_join(running[i], &result) || result != &workers[i]) fail("pthread_join");
        total += workers[i].placed;
        free(workers[i].deque.ranges);
    }
    printf("quicksort: %zu numbers\n", total);
    if (total != count || memcmp(numbers, expected, count * sizeof *numbers)) {
        puts("quicksort: WRONG: not as qsort has it");
        return 1;
    }
    puts("quicksort: verified");
    free(numbers);
    free(expected);
    free(workers);
    return 0;
}
