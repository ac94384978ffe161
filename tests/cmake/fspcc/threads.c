/* A program of POSIX threads: four of them add to one sum. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *add(void *argument) {
    const long *number = argument;
    pthread_mutex_lock(&lock);
    sum += *number;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    long numbers[4];
    for (int i = 0; i < 4; i++) {
        numbers[i] = i + 1;
        pthread_create(&threads[i], NULL, add, &numbers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("sum %ld\n", sum);
    return 0;
}
