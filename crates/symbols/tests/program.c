/* Prints the addresses that the tests ask for: each line a name and a number. */
#include <stdio.h>
#include <stdlib.h>

struct queue {
    int length;
    void *first;
};

static struct queue waiting;
int numbers[8] = {1};

static int count(void) {
    static int calls;
    calls++;
    printf("calls %lx\n", (unsigned long)&calls);
    printf("here %lx\n", (unsigned long)__builtin_extract_return_addr(__builtin_return_address(0)));
    return calls;
}

int main(void) {
    int result = count();
    printf("first %lx\nthird %lx\n", (unsigned long)&waiting.first, (unsigned long)&numbers[2]);
    printf("stdout %lx\nmain %lx\n", (unsigned long)&stdout, (unsigned long)main);
    return result - 1;
}
