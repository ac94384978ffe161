/* Tasks: Fibonacci numbers, quicksort, queens, a tree, a loop of tasks.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *left, *right;
    long value;
};

static int mistakes;

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("tasks: wrong: %s\n", what);
    mistakes++;
}

static long fibonacci(int n)
{
    if (n < 2)
        return n;
    long one, other;
#pragma omp task shared(one)
    one = fibonacci(n - 1);
#pragma omp task shared(other) if (n > 6)
    other = fibonacci(n - 2);
#pragma omp taskwait
    return one + other;
}

static void sort(unsigned *numbers, long count)
{
    if (count < 2)
        return;
    unsigned pivot = numbers[count / 2];
    long i = 0, j = count - 1;
    while (i <= j) {
        while (numbers[i] < pivot)
            i++;
        while (numbers[j] > pivot)
            j--;
        if (i <= j) {
            unsigned kept = numbers[i];
            numbers[i++] = numbers[j];
            numbers[j--] = kept;
        }
    }
#pragma omp task final(count < 200)
    sort(numbers, j + 1);
#pragma omp task final(count < 200)
    sort(numbers + i, count - i);
}

static void sorted(long count)
{
    unsigned *numbers = malloc((size_t)count * sizeof *numbers), seed = 1;
    unsigned long sum = 0, sum_after = 0;
    for (long i = 0; i < count; i++) {
        numbers[i] = seed = seed * 1664525 + 1013904223;
        sum += numbers[i];
    }
#pragma omp parallel
#pragma omp master
#pragma omp taskgroup
    sort(numbers, count);
    int in_order = 1;
    for (long i = 0; i < count; i++) {
        in_order &= i == 0 || numbers[i - 1] <= numbers[i];
        sum_after += numbers[i];
    }
    expect(in_order && sum == sum_after, "quicksort");
    free(numbers);
}

/* A placement of queens is given on by copy; the sum is the parent's. */
static int queens(int n, int row, unsigned columns, unsigned up, unsigned down)
{
    if (row == n)
        return 1;
    int found = 0;
    for (int column = 0; column < n; column++) {
        unsigned bit = 1u << column;
        if ((columns | up | down) & bit)
            continue;
        if (row > 2) {
            found += queens(n, row + 1, columns | bit, (up | bit) << 1, (down | bit) >> 1);
            continue;
        }
#pragma omp task shared(found) firstprivate(bit)
        {
            int here = queens(n, row + 1, columns | bit, (up | bit) << 1, (down | bit) >> 1);
#pragma omp critical(found)
            found += here;
        }
    }
#pragma omp taskwait
    return found;
}

static struct node *tree(int depth, long *next)
{
    if (depth == 0)
        return NULL;
    struct node *node = malloc(sizeof *node);
    node->left = tree(depth - 1, next);
    node->value = (*next)++;
    node->right = tree(depth - 1, next);
    return node;
}

static void visit(struct node *node)
{
    if (!node)
        return;
#pragma omp task
    visit(node->left);
#pragma omp task
    visit(node->right);
    node->value *= 2;
}

static long fell(struct node *node)
{
    if (!node)
        return 0;
    long sum = node->value + fell(node->left) + fell(node->right);
    free(node);
    return sum;
}

static void loops_of_tasks(void)
{
    enum { COUNT = 500 };
    static int runs[COUNT];
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(16)
        for (int i = 0; i < COUNT; i++)
            runs[i]++;
#pragma omp taskloop num_tasks(9)
        for (unsigned long i = COUNT; i > 0; i--)
            runs[i - 1]++;
    }
    int right = 1;
    for (int i = 0; i < COUNT; i++)
        right &= runs[i] == 2;
    expect(right, "taskloop");
}

static void in_order_of_dependences(void)
{
    long value = 1;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 20; i++) {
#pragma omp task depend(inout : value)
        value = value * 3 % 1000003;
#pragma omp task depend(inout : value)
        value += 1;
    }
    long expected = 1;
    for (int i = 0; i < 20; i++)
        expected = expected * 3 % 1000003 + 1;
    expect(value == expected, "depend");
}

int main(int count, char **words)
{
    int n = count > 1 ? atoi(words[1]) : 15;
    long found = 0, next = 1;
    int solutions = 0;
#pragma omp parallel
#pragma omp single
    found = fibonacci(n);
    long one = 0, other = 1;
    for (int i = 0; i < n; i++) {
        long sum = one + other;
        one = other;
        other = sum;
    }
    expect(found == one, "fibonacci");
    sorted(n * 200L);
#pragma omp parallel
#pragma omp single nowait
    solutions = queens(7, 0, 0, 0, 0);
    expect(solutions == 40, "queens");
    struct node *root = tree(7, &next);
#pragma omp parallel
    {
#pragma omp single
        visit(root);
    }
    expect(fell(root) == 127 * 128, "a tree");
    loops_of_tasks();
    in_order_of_dependences();
    printf("tasks: %s\n", mistakes ? "WRONG" : "verified");
    return mistakes != 0;
}
