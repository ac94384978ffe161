/* tasks: a tree that grows by tasks. A task turns a leaf into a cell with children, or leaves it; new leaves are new tasks, in one
 * queue with a lock and a condition. Then every process adds up its own cells, last made first, and waits for a child of
 * another process at the condition inside that child. Cells are made in the parallel phase, their locks and conditions are never
 * initialised; odd cells come from G_MALLOC, even ones from malloc.
 *
 *   tasks -p processes -d depth -s seed
 *
 * What grows depends on the keys only: main walks the same tree alone and compares the number of cells and the sum.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/parmacs.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

MAIN_ENV

#define CHILDREN 4

typedef struct cell {
    unsigned long key;
    int depth, children, done;
    unsigned long sum;
    struct cell *child[CHILDREN];
    struct cell *next_task; /* in the queue */
    struct cell *made_before; /* by the same process */
    LOCKDEC(lock)
    CONDVARDEC(ready)
} cell;

struct queue {
    LOCKDEC(lock)
    CONDVARDEC(more)
    cell *first;
    int working; /* processes that may still add tasks */
} queue;

static long processes = 1;
static int depth_max = 5;
static unsigned long seed = 1;
static cell *root;
static long cells;

LOCKDEC(id_lock)
static long next_id;
BARDEC(phase)

static unsigned long mix(unsigned long key)
{
    key = (key ^ key >> 31) * 0x7fb5d329728ea185UL;
    key = (key ^ key >> 27) * 0x81dadef4bc2dd44dUL;
    return key ^ key >> 33;
}

static int children_of(unsigned long key, int depth)
{
    return depth == depth_max ? 0 : depth < 2 ? CHILDREN : (int)(key % (CHILDREN + 1));
}

static cell *new_cell(unsigned long key, int depth)
{
    cell *new = key % 2 ? (cell *)G_MALLOC(sizeof(cell)) : calloc(1, sizeof(cell));
    new->key = key;
    new->depth = depth;
    return new;
}

/* A task, or NULL when there are none left and nobody makes any. */
static cell *take(void)
{
    cell *task;

    LOCK(queue.lock)
    queue.working--;
    if (!queue.first && queue.working == 0)
        CONDVARBCAST(queue.more)
    while (!queue.first && queue.working > 0)
        CONDVARWAIT(queue.more, queue.lock)
    task = queue.first;
    if (task) {
        queue.first = task->next_task;
        queue.working++;
    }
    UNLOCK(queue.lock)
    return task;
}

static void put(cell *task)
{
    LOCK(queue.lock)
    task->next_task = queue.first;
    queue.first = task;
    CONDVARSIGNAL(queue.more)
    UNLOCK(queue.lock)
}

/* Grows one cell; what it made, the last first. */
static cell *grow(cell *task, cell *made, long *count)
{
    int children = children_of(task->key, task->depth);

    for (int i = 0; i < children; i++) {
        cell *child = new_cell(mix(task->key + (unsigned long)i), task->depth + 1);
        child->made_before = made;
        made = child;
        ++*count;
        task->child[i] = child;
        put(child);
    }
    /* After its children are made, before anybody asks for its sum: the barrier is between. */
    task->children = children;
    return made;
}

static void add_up(cell *mine)
{
    unsigned long sum = mine->key;

    for (int i = 0; i < mine->children; i++) {
        cell *child = mine->child[i];
        LOCK(child->lock)
        while (!child->done)
            CONDVARWAIT(child->ready, child->lock)
        UNLOCK(child->lock)
        sum = mix(sum) + child->sum;
    }
    mine->sum = sum;
    LOCK(mine->lock)
    mine->done = 1;
    CONDVARBCAST(mine->ready)
    UNLOCK(mine->lock)
}

static void work(void)
{
    long me, count = 0;
    cell *made = NULL;

    LOCK(id_lock)
    me = next_id++;
    UNLOCK(id_lock)
    if (me == 0) {
        root = new_cell(mix(seed), 0);
        made = root;
        count = 1;
        put(root);
    }
    BARRIER(phase, processes)
    for (cell *task; (task = take()) != NULL;)
        made = grow(task, made, &count);
    BARRIER(phase, processes)
    for (; made; made = made->made_before)
        add_up(made);
    FETCH_ADD(cells, count);
    if (me == processes - 1)
        printf("tasks: process %ld has made %s cells\n", me, count ? "some" : "no");
}

static unsigned long alone(unsigned long key, int depth, long *count)
{
    unsigned long sum = key;
    int children = children_of(key, depth);

    ++*count;
    for (int i = 0; i < children; i++) {
        unsigned long part = alone(mix(key + (unsigned long)i), depth + 1, count);
        sum = mix(sum) + part;
    }
    return sum;
}

int main(int argc, char **argv)
{
    long count = 0;

    for (int option; (option = getopt(argc, argv, "p:d:s:")) != -1;)
        switch (option) {
        case 'p': processes = atol(optarg); break;
        case 'd': depth_max = atoi(optarg); break;
        case 's': seed = strtoul(optarg, NULL, 0); break;
        default: exit(1);
        }
    MAIN_INITENV(, 40000000, )
    queue.working = (int)processes;

    CREATE(work, processes)
    WAIT_FOR_END(processes)

    unsigned long sum = alone(mix(seed), 0, &count);
    if (root->sum != sum || cells != count || next_id != processes) {
        printf("tasks: WRONG: %ld cells, sum %lx; alone %ld, %lx\n", cells, root->sum, count, sum);
        exit(1);
    }
    printf("tasks: %ld cells\n", cells);
    printf("tasks: verified\n");
    MAIN_END;
}
