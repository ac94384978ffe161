/* A large table of which little is used: what that costs in pages and faults is counted by tests/cluster/memory.rs.
 *
 *     sparse calloc|all|again|realloc|used
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../check.h"

#define PAGE 4096
#define PAGES ((size_t)16384) /* 64 MiB */

/* In every page of the part that a process has: stores, or a look at whether it is zero. */
static void use(unsigned char *table)
{
    int me = fsp_process(), processes = fsp_processes();
    for (size_t page = 0; page < 256; page++)
        table[(page * (size_t)processes + (size_t)me) * PAGE] = 1;
    fsp_barrier_all();
}

int main(int argc, char **argv)
{
    CHECK(fsp_init_spmd(&argc, &argv) == FSP_OK && argc == 2);
    const char *kind = argv[1];
    if (strcmp(kind, "all") == 0) {
        unsigned char *table = fsp_malloc_all(PAGES * PAGE);
        CHECK(table[5 * PAGE] == 0);
        fsp_barrier_all();
        if (fsp_process() == fsp_processes() - 1)
            table[9 * PAGE] = 1;
    } else if (strcmp(kind, "used") == 0) {
        use(fsp_malloc_all(PAGES * PAGE));
    } else if (fsp_process() == 0) {
        unsigned char *table = fsp_calloc(PAGES, PAGE);
        table[5 * PAGE] = 1;
        if (strcmp(kind, "again") == 0) {
            fsp_free(table);
            table = fsp_calloc(PAGES, PAGE);
            CHECK(table[5 * PAGE] == 0);
        } else if (strcmp(kind, "realloc") == 0) {
            table = fsp_realloc(table, 2 * PAGES * PAGE);
            CHECK(table[5 * PAGE] == 1 && table[6 * PAGE] == 0);
        }
    }
    fsp_barrier_all();
    fsp_finalize();
    return 0;
}
