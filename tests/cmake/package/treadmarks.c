/* The smallest program with TreadMarks' calls. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <Tmk.h>
#include <stdio.h>

int main(int argc, char **argv) {
    Tmk_startup(argc, argv);
    Tmk_barrier(0);
    if (Tmk_proc_id == 0)
        printf("%u processes\n", Tmk_nprocs);
    Tmk_exit(0);
}
