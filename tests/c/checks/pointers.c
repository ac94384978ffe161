/* Pointers stored in shared memory: good ones, and with "wrong" such as are good in one process only.  Built by fspcc with and without
 * shared globals and malloc.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct cell {
    struct cell *next;
    const char *name;
    double (*function)(double);
    double value;
    uint64_t bits;
    void *private;
};

static struct cell *first;
static int kept;
static void *slot;

static double twice(double x)
{
    return 2 * x;
}

static void store(struct cell *shared, const char *kind)
{
    shared[0].next = &shared[1];
    shared[0].value = 3.14159;
    shared[0].bits = 0x123456789abcdef0u;
    first = shared;
    int on_stack = 5;
    if (strcmp(kind, "stack") == 0)
        shared[1].private = &on_stack;
    else if (strcmp(kind, "malloc") == 0)
        shared[1].private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (strcmp(kind, "library") == 0)
        shared[1].private = (void *)(uintptr_t)strtod;
    else if (strcmp(kind, "global") == 0)
        shared[1].private = &kept;
    else if (strcmp(kind, "slot") == 0)
        slot = &on_stack;
    else if (strcmp(kind, "function") == 0)
        shared[1].function = twice;
    else if (strcmp(kind, "constant") == 0)
        shared[1].name = "constant";
    kept += on_stack;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "clean";
    if (fsp_init(&argc, &argv) != FSP_OK)
        return 1;
    struct cell *shared = fsp_malloc(2 * sizeof *shared);
    fsp_mutex_t *lock = fsp_calloc(1, sizeof *lock);
    fsp_mutex_lock(lock);
    store(shared, kind);
    fsp_mutex_unlock(lock);
    int is_right = first == shared && shared->next == &shared[1] && kept == 5 && (!slot || strcmp(kind, "slot") == 0);
    memset(shared, 0, 2 * sizeof *shared);
    fsp_finalize();
    return is_right ? 0 : 1;
}
