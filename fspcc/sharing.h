/* Is an address one of shared memory?  For the functions that most often are asked of private memory.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FSP_SHARING_H
#define FSP_SHARING_H

#include <stdbool.h>
#include <stdint.h>

/* The program's variables, by the start-up files and by globals.ld. */
extern char __data_start[];
extern char fsp_globals_end[];

/* The shared heap begins at a fixed address, 2 << 44, and has less than as much room again. */
enum { HEAP_SHIFT = 45 };

static inline bool is_variable(const volatile void *memory)
{
    return (uintptr_t)memory - (uintptr_t)__data_start < (uintptr_t)(fsp_globals_end - __data_start);
}

static inline bool may_be_shared(const volatile void *memory)
{
    return __builtin_expect((uintptr_t)memory >> HEAP_SHIFT == 1, 0) || __builtin_expect(is_variable(memory), 0);
}

#endif
