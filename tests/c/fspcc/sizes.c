/* Sizes that cannot be, for the C library's calls on shared memory.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "../check.h"
#include <malloc.h>
#include <stdint.h>

/* Not known to the compiler, which has warnings of its own for these. */
static volatile size_t most = SIZE_MAX;

int main(void)
{
    fsp_errors_return(1);
    char *kept = malloc(5000);
    strcpy(kept, "kept");
    CHECK(fsp_is_shared(kept));
    CHECK(pvalloc(most) == NULL && pvalloc(most - 4000) == NULL);
    CHECK(reallocarray(NULL, most / 4096, 8192) == NULL);
    CHECK(calloc(most / 4096, 8192) == NULL);
    CHECK(malloc(most) == NULL && valloc(most) == NULL && aligned_alloc(4096, most) == NULL);
    CHECK(realloc(kept, most) == NULL && strcmp(kept, "kept") == 0);
    void *memory = kept;
    CHECK(posix_memalign(&memory, 4096, most) == ENOMEM && memory == kept);
    free(kept);
    return 0;
}
