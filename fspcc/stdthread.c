/* What a C++ program's std::thread, std::condition_variable and atomic functions of shared_ptr do inside their library
 * (fspc++ --pthread), by their names in the object format: the same, by the calls that the program's own references go to.  All else of them, and std::mutex,
 * std::shared_mutex and std::call_once, is compiled into the program.  The layouts are those of libstdc++'s stable binary interface.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shared.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);

/* std::__throw_system_error(int) */
void throw_system_error(int error) __asm__("_ZSt20__throw_system_errori") __attribute__((noreturn));

/* std::thread::_State: two destructors, the second of which frees, and _M_run. */
typedef struct state {
    void (*const *functions)(struct state *);
} state;
enum { DESTROY_AND_FREE = 1, RUN = 2 };

static void *run_state(void *argument)
{
    state *of = argument;
    of->functions[RUN](of);
    of->functions[DESTROY_AND_FREE](of);
    return NULL;
}

/* std::thread::_M_start_thread(std::unique_ptr<_State>, void (*)()); a thread is its number, 0 where there is none. */
#define START __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE
void START(pthread_t *thread, state **owner, void (*depends)(void));
void START(pthread_t *thread, state **owner, void (*depends)(void))
{
    (void)depends;
    int error = __wrap_pthread_create(thread, NULL, run_state, *owner);
    if (error)
        throw_system_error(error);
    *owner = NULL; /* it is the thread's now */
}

void __wrap__ZNSt6thread4joinEv(pthread_t *thread);
void __wrap__ZNSt6thread4joinEv(pthread_t *thread)
{
    int error = *thread ? __wrap_pthread_join(*thread, NULL) : EINVAL;
    if (error)
        throw_system_error(error);
    *thread = 0;
}

void __wrap__ZNSt6thread6detachEv(pthread_t *thread);
void __wrap__ZNSt6thread6detachEv(pthread_t *thread)
{
    int error = *thread ? __wrap_pthread_detach(*thread) : EINVAL;
    if (error)
        throw_system_error(error);
    *thread = 0;
}

/* std::condition_variable is a pthread_cond_t, std::mutex a pthread_mutex_t. */
void __wrap__ZNSt18condition_variableC1Ev(pthread_cond_t *condition);
void __wrap__ZNSt18condition_variableC1Ev(pthread_cond_t *condition)
{
    __wrap_pthread_cond_init(condition, NULL);
}

void __wrap__ZNSt18condition_variableD1Ev(pthread_cond_t *condition);
void __wrap__ZNSt18condition_variableD1Ev(pthread_cond_t *condition)
{
    __wrap_pthread_cond_destroy(condition);
}

void __wrap__ZNSt18condition_variable10notify_oneEv(pthread_cond_t *condition);
void __wrap__ZNSt18condition_variable10notify_oneEv(pthread_cond_t *condition)
{
    __wrap_pthread_cond_signal(condition);
}

void __wrap__ZNSt18condition_variable10notify_allEv(pthread_cond_t *condition);
void __wrap__ZNSt18condition_variable10notify_allEv(pthread_cond_t *condition)
{
    __wrap_pthread_cond_broadcast(condition);
}

/* std::unique_lock<std::mutex> */
typedef struct unique_lock {
    pthread_mutex_t *mutex;
    _Bool owns;
} unique_lock;

#define WAIT __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
void WAIT(pthread_cond_t *condition, unique_lock *lock);
void WAIT(pthread_cond_t *condition, unique_lock *lock)
{
    __wrap_pthread_cond_wait(condition, lock->mutex);
}

/* std::_Sp_locker, under which std::atomic_load, std::atomic_store and their kin for a shared_ptr work: one or two of sixteen mutexes, the
 * lower first.  Both numbers are its members. */
enum { POINTER_LOCKS = 16 };
static SHARED pthread_mutex_t pointer_locks[POINTER_LOCKS];
typedef struct pointer_locker {
    unsigned char low, high;
} pointer_locker;

static unsigned char lock_for(const void *pointer)
{
    return ((uintptr_t)pointer >> 4) % POINTER_LOCKS;
}

#define LOCK_TWO __wrap__ZNSt10_Sp_lockerC1EPKvS1_
void LOCK_TWO(pointer_locker *locker, const void *one, const void *other);
void LOCK_TWO(pointer_locker *locker, const void *one, const void *other)
{
    unsigned char first = lock_for(one), second = lock_for(other);
    locker->low = first < second ? first : second;
    locker->high = first < second ? second : first;
    __wrap_pthread_mutex_lock(&pointer_locks[locker->low]);
    if (locker->high != locker->low)
        __wrap_pthread_mutex_lock(&pointer_locks[locker->high]);
}

void __wrap__ZNSt10_Sp_lockerC1EPKv(pointer_locker *locker, const void *pointer);
void __wrap__ZNSt10_Sp_lockerC1EPKv(pointer_locker *locker, const void *pointer)
{
    LOCK_TWO(locker, pointer, pointer);
}

void __wrap__ZNSt10_Sp_lockerD1Ev(pointer_locker *locker);
void __wrap__ZNSt10_Sp_lockerD1Ev(pointer_locker *locker)
{
    if (locker->high != locker->low)
        __wrap_pthread_mutex_unlock(&pointer_locks[locker->high]);
    __wrap_pthread_mutex_unlock(&pointer_locks[locker->low]);
}
