/* operator new and delete of a C++ program (--share-malloc), by their names in the object format, for the program and for
 * what its library does in its name (std::string is compiled there).  They do not fail: a full heap ends the job.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stddef.h>

void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

#define NEW(name)                        \
    void *name(size_t size);             \
    void *name(size_t size)              \
    {                                    \
        return __wrap_malloc(size);      \
    }
#define NEW_ALIGNED(name)                                \
    void *name(size_t size, size_t alignment);           \
    void *name(size_t size, size_t alignment)            \
    {                                                    \
        return __wrap_aligned_alloc(alignment, size);    \
    }
#define DELETE(name)                     \
    void name(void *memory);             \
    void name(void *memory)              \
    {                                    \
        __wrap_free(memory);             \
    }

/* new and new[]: plain, nothrow; the further arguments are not looked at */
NEW(_Znwm)
NEW(_Znam)
NEW(_ZnwmRKSt9nothrow_t)
NEW(_ZnamRKSt9nothrow_t)
NEW_ALIGNED(_ZnwmSt11align_val_t)
NEW_ALIGNED(_ZnamSt11align_val_t)
NEW_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t)
NEW_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t)

/* delete and delete[]: plain, with size, nothrow, aligned */
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
