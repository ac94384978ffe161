/* floyd [-v VERTICES]: shortest paths between all vertices of a graph, by rows.  Written for TreadMarks. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <Tmk.h>

#define FAR 1000000

struct shared {
    int longest;        /* the longest of the shortest paths, under lock 0 */
    long sum;           /* of all, under lock 0 */
    int *row[512];
} *shared;

int vertices = 96;

static void make_graph(void)
{
    unsigned seed = 7;
    int i, j;

    shared = (struct shared *)Tmk_malloc(sizeof *shared);
    if (shared == NULL)
        Tmk_errexit("floyd: no shared memory\n");
    shared->longest = 0;
    shared->sum = 0;
    for (i = 0; i < vertices; i++) {
        shared->row[i] = (int *)Tmk_malloc(vertices * sizeof(int));
        for (j = 0; j < vertices; j++) {
            seed = seed * 1103515245 + 12345;
            shared->row[i][j] = i == j ? 0 : (seed >> 16) % 8 == 0 ? (int)(seed >> 20 & 255) + 1 : FAR;
        }
    }
    Tmk_distribute(&shared, sizeof shared);
}

int main(int argc, char **argv)
{
    int c, i, j, k, first, last, longest = 0;
    long sum = 0;

    while ((c = getopt(argc, argv, "v:")) != -1)
        if (c == 'v')
            vertices = atoi(optarg);
    Tmk_startup(argc, argv);

    if (Tmk_proc_id == 0)
        make_graph();
    Tmk_barrier(0);

    first = vertices * Tmk_proc_id / Tmk_nprocs;
    last = vertices * (Tmk_proc_id + 1) / Tmk_nprocs;
    for (k = 0; k < vertices; k++) {
        for (i = first; i < last; i++)
            for (j = 0; j < vertices; j++)
                if (i != k && shared->row[i][k] + shared->row[k][j] < shared->row[i][j])
                    shared->row[i][j] = shared->row[i][k] + shared->row[k][j];
        Tmk_barrier(1);
    }

    for (i = first; i < last; i++)
        for (j = 0; j < vertices; j++) {
            sum += shared->row[i][j];
            if (shared->row[i][j] < FAR && shared->row[i][j] > longest)
                longest = shared->row[i][j];
        }
    Tmk_lock_acquire(0);
    shared->sum += sum;
    if (longest > shared->longest)
        shared->longest = longest;
    Tmk_lock_release(0);
    Tmk_barrier(2);

    if (Tmk_proc_id == 0)
        printf("floyd: %d vertices, longest path %d, sum %ld\n", vertices, shared->longest, shared->sum);
    Tmk_exit(0);
}
