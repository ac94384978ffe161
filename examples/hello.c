/* Threads on other processors, and a counter they share under a mutex.
 *
 *     cc hello.c -lfinespun -o hello && finespun run -n 4 ./hello
 *
 * The "main" model: main runs on processor 0 only; the other processors wait for work.  A thread may run in another
 * process, perhaps on another machine, where the globals of this program are not the same: what a thread needs comes
 * through its argument, in memory from fsp_calloc, which lies at the same address everywhere.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include <stdio.h>

typedef struct greeting {
    fsp_mutex_t mutex; /* zeros are an unlocked mutex */
    int count;
} greeting;

static void *greet(void *argument)
{
    greeting *greeting = argument;
    fsp_mutex_lock(&greeting->mutex);
    greeting->count++;
    printf("hello: processor %d of %d, on node %d, makes %d\n", fsp_processor(), fsp_processors(), fsp_node(),
           greeting->count);
    fflush(stdout);
    fsp_mutex_unlock(&greeting->mutex);
    return NULL;
}

int main(int argc, char **argv)
{
    fsp_init(&argc, &argv);
    int processors = fsp_processors();
    greeting *greeting = fsp_calloc(1, sizeof *greeting);
    fsp_thread_t *threads = fsp_calloc((size_t)processors, sizeof *threads);

    for (int i = 1; i < processors; i++)
        fsp_thread_create_on(&threads[i], i, greet, greeting);
    greet(greeting);
    for (int i = 1; i < processors; i++)
        fsp_thread_join(&threads[i], NULL);

    int count = greeting->count;
    printf("hello: %d of %d processors\n", count, processors);
    fsp_finalize();
    return count == processors ? 0 : 1;
}
