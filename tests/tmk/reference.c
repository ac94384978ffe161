/* TreadMarks' calls on memory that the machine itself shares: processes made by fork, one mapping, semaphores of the C
 * library.  What a program prints when linked with this is what it must print on Finespun; it holds nothing of ours.
 * TMK_REFERENCE_PROCESSES says how many processes there are.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#define TMK_PROTOTYPES
#define TMK_BARRIER_MASK
#include <finespun/tmk.h>
#undef Tmk_barrier

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEWS = 4096, NEWS_BYTES = 256, LOCKS = 64 };
static const size_t HEAP_BYTES = (size_t)2 << 30;

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct { unsigned mask, arrived, round; } groups[64]; /* barriers, by the set of processes; 0: not used yet */
    pthread_mutex_t locks[LOCKS];
    pthread_cond_t conditions[LOCKS][TMK_NCONDS];
    size_t used;
    unsigned newest;
    struct { char *variable; size_t size; char value[NEWS_BYTES]; } news[NEWS];
} common;

unsigned Tmk_proc_id;
unsigned Tmk_nprocs = 1;
unsigned Tmk_page_size = 4096;
unsigned Tmk_mask = 1;
static common *shared;
static char *heap;
static unsigned applied;

void Tmk_errexit(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    exit(1);
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        Tmk_errexit("reference: no memory\n");
    return memory;
}

void Tmk_startup(int argc, char **argv)
{
    (void)argc, (void)argv;
    const char *number = getenv("TMK_REFERENCE_PROCESSES");
    Tmk_nprocs = number ? (unsigned)atoi(number) : 1;
    Tmk_mask = (1u << Tmk_nprocs) - 1;
    shared = map(sizeof *shared);
    heap = map(HEAP_BYTES);
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &mutex);
    pthread_cond_init(&shared->changed, &condition);
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&shared->locks[i], &mutex);
        for (int j = 0; j < TMK_NCONDS; j++)
            pthread_cond_init(&shared->conditions[i][j], &condition);
    }
    fflush(NULL);
    for (unsigned i = 1; i < Tmk_nprocs; i++)
        if (fork() == 0) {
            Tmk_proc_id = i;
            return;
        }
}

void Tmk_exit(int status)
{
    fflush(NULL);
    if (Tmk_proc_id == 0)
        while (wait(NULL) > 0)
            ;
    exit(status);
}

void *Tmk_malloc(size_t size)
{
    pthread_mutex_lock(&shared->mutex);
    char *memory = heap + shared->used;
    shared->used += (size + 63) / 64 * 64;
    if (shared->used > HEAP_BYTES)
        Tmk_errexit("reference: the heap is full\n");
    pthread_mutex_unlock(&shared->mutex);
    return memory;
}

void *Tmk_sbrk(size_t size) { return Tmk_malloc(size); }
void Tmk_free(void *memory) { (void)memory; }

static void take_news(void)
{
    for (; applied < shared->newest; applied++)
        memcpy(shared->news[applied].variable, shared->news[applied].value, shared->news[applied].size);
}

void Tmk_distribute(const void *variable, size_t size)
{
    pthread_mutex_lock(&shared->mutex);
    if (shared->newest == NEWS || size > NEWS_BYTES)
        Tmk_errexit("reference: too much to distribute\n");
    take_news();
    shared->news[applied].variable = (char *)(uintptr_t)variable;
    shared->news[applied].size = size;
    memcpy(shared->news[applied].value, variable, size);
    applied = ++shared->newest;
    pthread_mutex_unlock(&shared->mutex);
}

void Tmk_barrier_group(unsigned mask)
{
    pthread_mutex_lock(&shared->mutex);
    int group = 0;
    while (shared->groups[group].mask && shared->groups[group].mask != mask)
        group++;
    shared->groups[group].mask = mask;
    unsigned round = shared->groups[group].round;
    if (++shared->groups[group].arrived == (unsigned)__builtin_popcount(mask)) {
        shared->groups[group].arrived = 0;
        shared->groups[group].round++;
        pthread_cond_broadcast(&shared->changed);
    }
    while (shared->groups[group].round == round)
        pthread_cond_wait(&shared->changed, &shared->mutex);
    take_news();
    pthread_mutex_unlock(&shared->mutex);
}

void Tmk_barrier(unsigned id)
{
    (void)id;
    Tmk_barrier_group(Tmk_mask);
}

void Tmk_lock_acquire(unsigned lock) { pthread_mutex_lock(&shared->locks[lock]); }
void Tmk_lock_release(unsigned lock) { pthread_mutex_unlock(&shared->locks[lock]); }
void Tmk_lock_cond_wait(unsigned lock, unsigned cond)
{
    pthread_cond_wait(&shared->conditions[lock][cond], &shared->locks[lock]);
}
void Tmk_lock_cond_signal(unsigned lock, unsigned cond) { pthread_cond_signal(&shared->conditions[lock][cond]); }
void Tmk_lock_cond_broadcast(unsigned lock, unsigned cond) { pthread_cond_broadcast(&shared->conditions[lock][cond]); }
