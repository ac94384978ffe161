/* Exception objects in shared memory: an exception_ptr may be rethrown in any thread.  By their names, for the C++ library's own
 * calls too.  Before the object stands what the library keeps of it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stddef.h>
#include <stdlib.h>

enum { HEADER = 128 }; /* of __cxa_refcounted_exception, the size of which is fixed by the ABI */

void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

void *__cxa_allocate_exception(size_t size);
void *__cxa_allocate_exception(size_t size)
{
    char *memory = __wrap_calloc(1, HEADER + size);
    if (!memory)
        abort();
    return memory + HEADER;
}

void __cxa_free_exception(void *object);
void __cxa_free_exception(void *object)
{
    __wrap_free((char *)object - HEADER);
}
