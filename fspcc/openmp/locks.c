/* omp_lock_t and omp_nest_lock_t.  OpenMP 5.0, 3.3.
 *
 * A lock is its address: the four bytes of a simple one are never looked at.  A nestable one says in its memory which thread has
 * it, and how often; only that thread can find itself there, so it may look without the lock.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "openmp.h"

#include <pthread.h>

typedef struct {
    int reserved;
} omp_lock_t;

typedef struct {
    pthread_spinlock_t lock;
    int count;
    uint64_t owner;
} omp_nest_lock_t;

_Static_assert(sizeof(omp_lock_t) == 4 && sizeof(omp_nest_lock_t) == 16, "as <omp.h> of gcc has them");

static pthread_spinlock_t *word(omp_lock_t *lock)
{
    return (pthread_spinlock_t *)&lock->reserved;
}

/* Of all threads of the job. */
static uint64_t own_name(void)
{
    static _Thread_local char place;
    return (uint64_t)(uintptr_t)&place << 16 | (uint64_t)(unsigned)fsp_process();
}

void omp_init_lock(omp_lock_t *lock);
void omp_init_lock(omp_lock_t *lock)
{
    pthread_spin_init(word(lock), PTHREAD_PROCESS_SHARED);
}

void omp_init_lock_with_hint(omp_lock_t *lock, int hint);
void omp_init_lock_with_hint(omp_lock_t *lock, int hint)
{
    (void)hint;
    omp_init_lock(lock);
}

void omp_destroy_lock(omp_lock_t *lock);
void omp_destroy_lock(omp_lock_t *lock)
{
    (void)lock;
}

void omp_set_lock(omp_lock_t *lock);
void omp_set_lock(omp_lock_t *lock)
{
    pthread_spin_lock(word(lock));
}

void omp_unset_lock(omp_lock_t *lock);
void omp_unset_lock(omp_lock_t *lock)
{
    pthread_spin_unlock(word(lock));
}

int omp_test_lock(omp_lock_t *lock);
int omp_test_lock(omp_lock_t *lock)
{
    return pthread_spin_trylock(word(lock)) == 0;
}

void omp_init_nest_lock(omp_nest_lock_t *lock);
void omp_init_nest_lock(omp_nest_lock_t *lock)
{
    lock->count = 0;
    lock->owner = 0;
    pthread_spin_init(&lock->lock, PTHREAD_PROCESS_SHARED);
}

void omp_init_nest_lock_with_hint(omp_nest_lock_t *lock, int hint);
void omp_init_nest_lock_with_hint(omp_nest_lock_t *lock, int hint)
{
    (void)hint;
    omp_init_nest_lock(lock);
}

void omp_destroy_nest_lock(omp_nest_lock_t *lock);
void omp_destroy_nest_lock(omp_nest_lock_t *lock)
{
    (void)lock;
}

static bool has(omp_nest_lock_t *lock)
{
    return *(volatile uint64_t *)&lock->owner == own_name();
}

void omp_set_nest_lock(omp_nest_lock_t *lock);
void omp_set_nest_lock(omp_nest_lock_t *lock)
{
    if (!has(lock)) {
        pthread_spin_lock(&lock->lock);
        lock->owner = own_name();
    }
    lock->count++;
}

void omp_unset_nest_lock(omp_nest_lock_t *lock);
void omp_unset_nest_lock(omp_nest_lock_t *lock)
{
    if (--lock->count > 0)
        return;
    lock->owner = 0;
    pthread_spin_unlock(&lock->lock);
}

int omp_test_nest_lock(omp_nest_lock_t *lock);
int omp_test_nest_lock(omp_nest_lock_t *lock)
{
    if (!has(lock)) {
        if (pthread_spin_trylock(&lock->lock) != 0)
            return 0;
        lock->owner = own_name();
    }
    return ++lock->count;
}
