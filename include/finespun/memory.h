/* The shared heap: memory at the same address in every process of the job.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_MEMORY_H
#define FINESPUN_MEMORY_H

#include <finespun/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All of these may be called by any processor at any time.  Sizes are bytes.  Pointers are valid in every process of
 * the job.  Memory not homed by a call below is homed at the node that first touches each 4 KiB page of it.
 * Allocating acquires and freeing releases, so that memory may pass from node to node through the heap.  Reset flags
 * (fsp_flag_reset) before freeing the memory they stand in: a flag above 0 is remembered by its address.
 * When the heap is full: error E050 ends the job, or NULL after fsp_errors_return(1). */
void *fsp_malloc(size_t size); /* 16-byte aligned, page-aligned from 4 KiB on; contents undefined; size 0: a unique pointer */
/* Zeroed; NULL and E050 when count * size overflows.  It touches no page that was never used: such a page costs no memory and
 * gets its home from the node that uses it first.  fsp_malloc_all is alike. */
void *fsp_calloc(size_t count, size_t size);
void *fsp_realloc(void *old, size_t size); /* keeps the smaller of both sizes; old may be NULL */
void *fsp_aligned_alloc(size_t alignment, size_t size); /* alignment a power of two up to 2 MiB */
void fsp_free(void *pointer);                           /* NULL is allowed; E051 if not a live allocation */

/* Memory homed at a node: whole pages, page-aligned. */
void *fsp_malloc_on(size_t size, int node);

/* Memory dealt to the nodes in blocks, block-cyclic: whole pages, page-aligned; the first block is at node 0.
 * block is rounded up to 4 KiB times a power of two, and down to 16 MiB; E005 if it is 0 or larger than the heap. */
void *fsp_malloc_distributed(size_t size, size_t block);

/* Collective, for the SPMD model: all processes make the same calls in the same order, and the n-th call gives the same
 * zeroed memory to each of them.  It waits for all; releases and acquires.  One process frees it.  In the main model,
 * where only processor 0 runs main, it is fsp_calloc(1, size). */
void *fsp_malloc_all(size_t size);

size_t fsp_usable_size(const void *pointer); /* bytes usable in a live allocation; 0 if it is none */
int fsp_is_shared(const void *pointer);      /* 1 if the address lies in the shared space */
int fsp_home(const void *pointer);           /* home node of its page; -1 if nobody touched it yet or not shared */

#ifdef __cplusplus
}
#endif
#endif
