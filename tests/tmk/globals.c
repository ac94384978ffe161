/* As genetic linkage programs do it: process 0 sets a global, and the others have it only if it is distributed.  With an argument one
 * is forgotten.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <Tmk.h>

#include <stdio.h>
#include <string.h>

int maxlocus;           /* distributed */
double theta;           /* forgotten, if there is an argument */
static double *results; /* distributed: the address of shared memory */
static long evaluations;

static double evaluate(double at)
{
    evaluations++;
    return at * maxlocus + theta;
}

int main(int argc, char **argv)
{
    int forgets = argc > 1 && strcmp(argv[1], "forget") == 0;
    Tmk_startup(argc, argv);
    if (Tmk_proc_id == 0) {
        maxlocus = 3;
        theta = 0.5;
        results = (double *)Tmk_malloc(Tmk_nprocs * sizeof *results);
        Tmk_distribute(&maxlocus, sizeof maxlocus);
        if (!forgets)
            Tmk_distribute(&theta, sizeof theta);
        Tmk_distribute(&results, sizeof results);
    }
    Tmk_barrier(0);
    results[Tmk_proc_id] = evaluate(Tmk_proc_id);
    Tmk_barrier(1);
    if (Tmk_proc_id == 0) {
        double sum = 0;
        for (unsigned i = 0; i < Tmk_nprocs; i++)
            sum += results[i];
        printf("sum %g after %ld evaluations\n", sum, evaluations);
    }
    Tmk_exit(0);
}
