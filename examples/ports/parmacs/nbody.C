/* nbody -n BODIES -s STEPS -p PROCESSES: bodies that attract each other, every pair of them.  Each process moves its own.
 * Written to the macros of the ANL, as programs of the 1990s are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

MAIN_ENV

#include "nbody.h"

struct global *Global;
body *Bodies;
int N = 64, P = 1, Steps = 20;
double Dt = 0.01, Softening = 0.05;

double *Start;          /* where the bodies began: malloc, read by all */

void step_all(void)
{
    int me, first, last, i, d, s;
    long pairs = 0;

    LOCK(Global->idlock)
    me = Global->id++;
    UNLOCK(Global->idlock)
    first = N * me / P;
    last = N * (me + 1) / P;

    for (i = first; i < last; i++)
        for (d = 0; d < DIMS; d++)
            Bodies[i].pos[d] = Start[i * DIMS + d];
    BARRIER(Global->start, P)

    for (s = 0; s < Steps; s++) {
        pairs += forces(first, last);
        BARRIER(Global->step, P)        /* all have read the places */
        for (i = first; i < last; i++)
            for (d = 0; d < DIMS; d++) {
                Bodies[i].vel[d] += Dt * Bodies[i].acc[d];
                Bodies[i].pos[d] += Dt * Bodies[i].vel[d];
            }
        BARRIER(Global->step, P)        /* and all have written them */
    }

    LOCK(Global->sumlock)
    Global->pairs += pairs;
    UNLOCK(Global->sumlock)
}

static double energy(void)
{
    double sum = 0;
    int i, d;

    for (i = 0; i < N; i++)
        for (d = 0; d < DIMS; d++)
            sum += 0.5 * Bodies[i].mass * Bodies[i].vel[d] * Bodies[i].vel[d];
    return sum;
}

int main(int argc, char **argv)
{
    int c, i;
    unsigned seed = 12345;
    unsigned long begin, end;

    while ((c = getopt(argc, argv, "n:s:p:")) != -1)
        switch (c) {
        case 'n': N = atoi(optarg); break;
        case 's': Steps = atoi(optarg); break;
        case 'p': P = atoi(optarg); break;
        default: fprintf(stderr, "usage: nbody -n bodies -s steps -p processes\n"); exit(1);
        }

    MAIN_INITENV(,4000000)

    Start = (double *)malloc(N * DIMS * sizeof(double));
    for (i = 0; i < N * DIMS; i++) {
        seed = seed * 1103515245 + 12345;
        Start[i] = (seed >> 8 & 0xffff) / 65536.0;
    }
    Global = (struct global *)G_MALLOC(sizeof(struct global));
    Bodies = (body *)G_MALLOC(N * sizeof(body));
    for (i = 0; i < N; i++) {
        body empty = {1.0 / N};
        Bodies[i] = empty;
    }
    LOCKINIT(Global->idlock)
    LOCKINIT(Global->sumlock)
    BARINIT(Global->start)
    BARINIT(Global->step)
    Global->id = 0;
    Global->pairs = 0;

    CLOCK(begin)
    CREATE(step_all, P)
    WAIT_FOR_END(P)
    CLOCK(end)

    fprintf(stderr, "nbody: %lu microseconds\n", end - begin);
    printf("nbody: %d bodies, %d steps, %ld pairs, energy %.15e\n", N, Steps, Global->pairs, energy());
    MAIN_END
}
