/* A descriptor that main has opened, used by a thread of another process: there it is none.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int opened, failed;

static void *use(void *none)
{
    char byte;
    failed = read(opened, &byte, 1) == -1 ? errno : 0;
    return none;
}

int main(void)
{
    pthread_t thread;
    opened = open("/proc/self/comm", O_RDONLY);
    pthread_create(&thread, NULL, use, NULL);
    pthread_join(thread, NULL);
    printf("descriptor %d: %s\n", opened, failed == EBADF ? "EBADF" : failed ? "another error" : "read");
    return 0;
}
