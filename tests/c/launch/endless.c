/* Runs until it is stopped; tests/cluster/launch.rs stops it in every way.  The first argument says what it does:
 *   busy     shares a page and a mutex with everybody, and meets them at barriers
 *   waiting  waits at a barrier that the last processor never reaches: that one computes without a call
 *   locked   the last processor holds a mutex that all the others want */
#include <finespun/finespun.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct shared {
    fsp_mutex_t mutex;
    long count;
} shared;

static void compute_for_ever(void)
{
    for (volatile long i = 0;; i++) {}
}

int main(int argc, char **argv)
{
    fsp_init_spmd(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "busy";
    shared *shared = fsp_malloc_all(sizeof *shared);
    int is_last = fsp_processor() == fsp_processors() - 1;
    int view = fsp_processor() % fsp_processors_per_node();

    if (strcmp(what, "locked") == 0 && is_last) fsp_mutex_lock(&shared->mutex);
    fsp_barrier_all();
    printf("up %d %d %d\n", (int)getpid(), fsp_node(), view);
    fflush(stdout);
    if (strcmp(what, "busy") != 0 && is_last) compute_for_ever();
    if (strcmp(what, "waiting") == 0) fsp_barrier_all();
    for (;;) {
        fsp_mutex_lock(&shared->mutex);
        shared->count++;
        fsp_mutex_unlock(&shared->mutex);
        fsp_barrier_all();
    }
}
