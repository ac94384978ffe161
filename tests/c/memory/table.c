/* A large table among the program's variables, of which little is used: main's process takes what was used with it into its exit,
 * and the child of a fork finds it.  What that costs is counted by tests/cluster/memory.rs.
 *
 *     table [fork]
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../check.h"
#include <sys/wait.h>

#define PAGE 4096
#define PAGES 16384 /* 64 MiB */
#define EVERY 512   /* pages of which a thread uses one */

static unsigned char table[PAGES][PAGE] __attribute__((aligned(PAGE)));

static void *use(void *nothing)
{
    for (int page = 0; page < PAGES; page += EVERY)
        table[page][7] = 9;
    return nothing;
}

static int is_right(void)
{
    int wrong = 0;
    for (int page = 0; page < PAGES; page++)
        wrong += table[page][7] != (page % EVERY == 0 ? 9 : 0);
    return wrong == 0;
}

int main(int argc, char **argv)
{
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    fsp_thread_t thread;
    CHECK(fsp_thread_create_on(&thread, fsp_processors() - 1, use, NULL) == FSP_OK);
    CHECK(fsp_thread_join(&thread, NULL) == FSP_OK);
    if (argc > 1) {
        pid_t child = fork();
        if (child == 0)
            _exit(is_right() ? 0 : 1);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    fsp_finalize();
    return is_right() ? 0 : 1;
}
