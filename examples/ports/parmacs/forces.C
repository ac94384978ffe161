#include <math.h>

EXTERN_ENV

#include "nbody.h"

/* What all bodies do to those from first up to last. */
long forces(int first, int last)
{
    int i, j, d;
    long pairs = 0;

    for (i = first; i < last; i++) {
        double acc[DIMS] = {0};

        for (j = 0; j < N; j++) {
            double way[DIMS], square = Softening * Softening, pull;

            if (j == i)
                continue;
            for (d = 0; d < DIMS; d++) {
                way[d] = Bodies[j].pos[d] - Bodies[i].pos[d];
                square += way[d] * way[d];
            }
            pull = Bodies[j].mass / (square * sqrt(square));
            for (d = 0; d < DIMS; d++)
                acc[d] += pull * way[d];
            pairs++;
        }
        for (d = 0; d < DIMS; d++)
            Bodies[i].acc[d] = acc[d];
    }
    return pairs;
}
