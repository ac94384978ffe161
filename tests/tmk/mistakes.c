/* One mistake, named by the argument; it ends the job with one message.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <Tmk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *mistake = argv[1];
    if (strcmp(mistake, "early-barrier") == 0)
        Tmk_barrier(0);
    if (strcmp(mistake, "early-malloc") == 0)
        Tmk_malloc(1);
    Tmk_startup(argc, argv);
    if (Tmk_proc_id != 0)
        Tmk_barrier(0); /* waits for process 0, which does not come */
    int local = 0;
    if (strcmp(mistake, "stack") == 0)
        Tmk_distribute(&local, sizeof local);
    else if (strcmp(mistake, "heap") == 0)
        Tmk_distribute(malloc(8), 8);
    else if (strcmp(mistake, "lock") == 0)
        Tmk_lock_acquire(TMK_NLOCKS);
    else if (strcmp(mistake, "condition") == 0)
        Tmk_lock_cond_signal(0, TMK_NCONDS);
    else if (strcmp(mistake, "barrier") == 0)
        Tmk_barrier(0xffffffff);
    else if (strcmp(mistake, "group") == 0)
        Tmk_barrier_group(1u << 31 | 1);
    else if (strcmp(mistake, "others-group") == 0)
        Tmk_barrier_group(2);
    else if (strcmp(mistake, "own") == 0)
        Tmk_errexit("the program's own reason, %d of %s\n", 7, "many");
    Tmk_exit(0);
}
