/* The part of Finespun's interface that the applications use, on the threads and the memory of one process: what the same
 * program takes on native threads.  A program is linked with this file instead of libfinespun.
 *
 *   FINESPUN_THREADS=2      processors
 *   FINESPUN_PIN=cores      processor k stays on the k-th core that the program may use, as with `finespun run --pin cores`; else none is pinned
 *   FINESPUN_WAIT=spin      a thread that waits at a barrier or for a flag looks at memory; else it sleeps, at a barrier at once, for a flag after some looks
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../measure.h"

#include <finespun/finespun.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define PROCESSORS_MAX 256

static int processors = 1;
static bool is_pinned, spins;
static _Thread_local int me;
static pthread_barrier_t all;

/* The barrier of threads that spin: arrivals so far, and barriers passed.  Each in a line of its own. */
static struct {
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t passed;
} words;

/* A mutex, condition or flag of the program, found by its address; their own 8 bytes only hold the link. */
typedef struct object {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    _Atomic(uint32_t) value;
} object;

/* Looks at a flag before a thread sleeps on it: about as long as going to sleep takes. */
#define LOOKS 2000
/* Looks of a thread that spins before it lets others have its core: it may wait for one of them. */
#define LOOKS_ALONE (1u << 20)

static void look_again(unsigned *looks)
{
    if (++*looks % LOOKS_ALONE == 0)
        sched_yield();
    else
        __builtin_ia32_pause();
}

static bool is_set_to(const char *variable, const char *value)
{
    const char *found = getenv(variable);
    return found != NULL && strcmp(found, value) == 0;
}

static object *object_of(uint64_t *link)
{
    _Atomic(uint64_t) *word = (_Atomic(uint64_t) *)link;
    uint64_t found = atomic_load_explicit(word, memory_order_acquire);
    if (found != 0)
        return (object *)(uintptr_t)found;
    object *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->condition, NULL);
    uint64_t none = 0;
    if (atomic_compare_exchange_strong(word, &none, (uint64_t)(uintptr_t)made))
        return made;
    free(made);
    return (object *)(uintptr_t)none;
}

fsp_status fsp_init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *threads = getenv("FINESPUN_THREADS");
    processors = threads != NULL ? atoi(threads) : 1;
    if (processors < 1 || processors > PROCESSORS_MAX) {
        fprintf(stderr, "FINESPUN_THREADS: expected 1 to %d\n", PROCESSORS_MAX);
        exit(2);
    }
    is_pinned = is_set_to("FINESPUN_PIN", "cores");
    spins = is_set_to("FINESPUN_WAIT", "spin");
    pthread_barrier_init(&all, NULL, (unsigned)processors);
    return FSP_OK;
}

void fsp_finalize(void)
{
}

void fsp_abort(int code, const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(code);
}

int fsp_node(void)
{
    return 0;
}

int fsp_nodes(void)
{
    return 1;
}

int fsp_processor(void)
{
    return me;
}

int fsp_processors(void)
{
    return processors;
}

int fsp_processors_per_node(void)
{
    return processors;
}

void fsp_phase_begin(const char *name)
{
    (void)name;
}

void fsp_phase_end(void)
{
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

void *fsp_malloc(size_t size)
{
    return malloc(size);
}

void *fsp_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *fsp_realloc(void *old, size_t size)
{
    return realloc(old, size);
}

void *fsp_aligned_alloc(size_t alignment, size_t size)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) == 0 ? memory : NULL;
}

void fsp_free(void *pointer)
{
    free(pointer);
}

void *fsp_malloc_on(size_t size, int node)
{
    (void)node;
    return fsp_aligned_alloc(4096, size);
}

void *fsp_malloc_distributed(size_t size, size_t block)
{
    (void)block;
    return fsp_aligned_alloc(4096, size);
}

/* ---- threads -------------------------------------------------------------------------------------------------------- */

typedef struct part {
    int processor;
    void (*run)(void *);
    void *argument;
} part;

static void *run_part(void *given)
{
    part *mine = given;
    me = mine->processor;
    if (is_pinned)
        pin(me);
    mine->run(mine->argument);
    return NULL;
}

fsp_status fsp_parallel(void (*run)(void *), void *argument)
{
    pthread_t threads[PROCESSORS_MAX];
    part parts[PROCESSORS_MAX];
    for (int i = 0; i < processors; i++)
        parts[i] = (part){.processor = i, .run = run, .argument = argument};
    for (int i = 1; i < processors; i++)
        if (pthread_create(&threads[i], NULL, run_part, &parts[i]) != 0)
            fsp_abort(1, "no more threads");
    run_part(&parts[0]);
    for (int i = 1; i < processors; i++)
        pthread_join(threads[i], NULL);
    return FSP_OK;
}

/* ---- synchronization ------------------------------------------------------------------------------------------------- */

fsp_status fsp_mutex_lock(fsp_mutex_t *mutex)
{
    pthread_mutex_lock(&object_of(&mutex->reserved)->mutex);
    return FSP_OK;
}

fsp_status fsp_mutex_trylock(fsp_mutex_t *mutex)
{
    return pthread_mutex_trylock(&object_of(&mutex->reserved)->mutex) == 0 ? FSP_OK : FSP_BUSY;
}

fsp_status fsp_mutex_unlock(fsp_mutex_t *mutex)
{
    pthread_mutex_unlock(&object_of(&mutex->reserved)->mutex);
    return FSP_OK;
}

fsp_status fsp_cond_wait(fsp_cond_t *condition, fsp_mutex_t *mutex)
{
    pthread_cond_wait(&object_of(&condition->reserved)->condition, &object_of(&mutex->reserved)->mutex);
    return FSP_OK;
}

fsp_status fsp_cond_signal(fsp_cond_t *condition)
{
    pthread_cond_signal(&object_of(&condition->reserved)->condition);
    return FSP_OK;
}

fsp_status fsp_cond_broadcast(fsp_cond_t *condition)
{
    pthread_cond_broadcast(&object_of(&condition->reserved)->condition);
    return FSP_OK;
}

static void meet_by_words(void)
{
    unsigned looks = 0;
    uint32_t passed = atomic_load_explicit(&words.passed, memory_order_acquire);
    if (atomic_fetch_add(&words.arrived, 1) + 1 == (uint32_t)processors) {
        atomic_store_explicit(&words.arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&words.passed, passed + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&words.passed, memory_order_acquire) == passed)
        look_again(&looks);
}

fsp_status fsp_barrier_all(void)
{
    if (spins)
        meet_by_words();
    else
        pthread_barrier_wait(&all);
    return FSP_OK;
}

fsp_status fsp_flag_set(fsp_flag_t *flag, uint32_t value)
{
    object *object = object_of(&flag->reserved);
    pthread_mutex_lock(&object->mutex);
    if (value > object->value)
        object->value = value;
    pthread_cond_broadcast(&object->condition);
    pthread_mutex_unlock(&object->mutex);
    return FSP_OK;
}

fsp_status fsp_flag_wait(fsp_flag_t *flag, uint32_t value)
{
    object *object = object_of(&flag->reserved);
    unsigned looks = 0;
    for (unsigned look = 0; spins || look < LOOKS; look++) {
        if (atomic_load_explicit(&object->value, memory_order_acquire) >= value)
            return FSP_OK;
        if (spins)
            look_again(&looks);
    }
    pthread_mutex_lock(&object->mutex);
    while (object->value < value)
        pthread_cond_wait(&object->condition, &object->mutex);
    pthread_mutex_unlock(&object->mutex);
    return FSP_OK;
}
