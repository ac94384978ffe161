/* Sizes that cannot be are refused by each call that takes one, with its error, and nothing is lost by it.
 *
 * run: -n 2 --heap 64M
 * run: -n 2 --heap 64M --transport tcp
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"
#include <stdint.h>

static int is_refused(const void *memory, const char *number)
{
    return memory == NULL && strstr(fsp_last_error(), number) != NULL;
}

int main(int argc, char **argv)
{
    CHECK(fsp_init_spmd(&argc, &argv) == FSP_OK);
    fsp_errors_return(1);
    CHECK(is_refused(fsp_malloc_distributed(10, SIZE_MAX), "E005"));
    CHECK(is_refused(fsp_malloc_distributed(10, SIZE_MAX / 2 + 2), "E005"));
    CHECK(is_refused(fsp_malloc_distributed(10, (64 << 20) + 1), "E005"));
    CHECK(is_refused(fsp_malloc_distributed(10, 0), "E005"));
    CHECK(is_refused(fsp_malloc_distributed(SIZE_MAX, 4096), "E050"));
    CHECK(is_refused(fsp_malloc_on(10, 2), "E005"));
    CHECK(is_refused(fsp_malloc_on(10, 256), "E005"));
    CHECK(is_refused(fsp_malloc_on(10, -1), "E005"));
    CHECK(is_refused(fsp_malloc_on(SIZE_MAX, 1), "E050"));
    CHECK(is_refused(fsp_malloc(SIZE_MAX), "E050"));
    CHECK(is_refused(fsp_malloc((size_t)65 << 20), "E050"));
    CHECK(is_refused(fsp_calloc(SIZE_MAX, SIZE_MAX), "E050"));
    CHECK(is_refused(fsp_calloc(SIZE_MAX / 4096 + 2, 4096), "E050"));
    CHECK(is_refused(fsp_calloc(1, SIZE_MAX), "E050"));
    CHECK(is_refused(fsp_malloc_all(SIZE_MAX), "E050"));
    CHECK(is_refused(fsp_aligned_alloc(2 << 20, SIZE_MAX), "E050"));
    CHECK(is_refused(fsp_aligned_alloc(SIZE_MAX, 10), "E005"));
    char *memory = fsp_malloc(10000);
    strcpy(memory, "kept");
    CHECK(is_refused(fsp_realloc(memory, SIZE_MAX), "E050") && strcmp(memory, "kept") == 0);
    char *large = fsp_malloc_distributed(100000, 64 << 20); /* larger blocks than there are, not than the heap */
    CHECK(large != NULL);
    fsp_barrier_all();
    fsp_finalize();
    return 0;
}
