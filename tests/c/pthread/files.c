/* Descriptors, the current directory and the umask are the program's: what one thread opens, moves or closes is so for all.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 64 };

#define CHECK(fact)                                                        \
    do {                                                                   \
        if (!(fact)) {                                                     \
            printf("line %d: %s (%s)\n", __LINE__, #fact, strerror(errno)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static void *run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

static int file, ends[2], pair[2], watched;
static char line[THREADS][8];

static void *read_some(void *number)
{
    char *mine = line[(long)number];
    CHECK(read(file, mine, 4) == 4);
    return NULL;
}

static void *open_file(void *none)
{
    file = open("/proc/self/exe", O_RDONLY);
    CHECK(file >= 0);
    return none;
}

static void *close_file(void *none)
{
    CHECK(close(file) == 0);
    return none;
}

static void *write_and_close(void *none)
{
    CHECK(write(ends[1], "word", 4) == 4);
    CHECK(close(ends[1]) == 0);
    return none;
}

static void *answer(void *none)
{
    char byte;
    CHECK(recv(pair[1], &byte, 1, 0) == 1);
    byte++;
    CHECK(send(pair[1], &byte, 1, 0) == 1);
    return none;
}

static void *watch(void *none)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    CHECK(epoll_ctl(watched, EPOLL_CTL_ADD, pair[0], &event) == 0);
    return none;
}

static void *go_to_root(void *none)
{
    CHECK(chdir("/") == 0);
    umask(027);
    return none;
}

static void *where(void *none)
{
    char path[BYTES];
    CHECK(strcmp(getcwd(path, sizeof path), "/proc") == 0);
    CHECK(umask(0) == 077);
    return none;
}

static void *redirect(void *none)
{
    CHECK(dup2(ends[1], 20) == 20 && fcntl(20, F_SETFD, FD_CLOEXEC) == 0);
    return none;
}

static void *from_input(void *number)
{
    CHECK(read(0, line[(long)number], 4) == 4);
    return NULL;
}

int main(int argc, char **argv)
{
    /* One offset, in whatever thread. */
    char name[] = "/tmp/finespun-files-XXXXXX";
    file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0 && write(file, "one.two.tri.for.end", 19) == 19 && lseek(file, 0, SEEK_SET) == 0);
    for (long number = 0; number < THREADS; number++)
        run(read_some, (void *)number);
    CHECK(strcmp(line[0], "one.") == 0 && strcmp(line[1], "two.") == 0 && strcmp(line[3], "for.") == 0);
    CHECK(lseek(file, 0, SEEK_CUR) == 16);
    int before = file;
    run(close_file, NULL);
    CHECK(lseek(before, 0, SEEK_CUR) == -1 && errno == EBADF);
    run(open_file, NULL);
    CHECK(file == before);
    run(close_file, NULL);

    /* A pipe has its end when the one descriptor for it is closed. */
    char got[BYTES];
    CHECK(pipe(ends) == 0);
    run(redirect, NULL);
    CHECK(fcntl(20, F_GETFD) == FD_CLOEXEC && close(20) == 0);
    run(write_and_close, NULL);
    CHECK(read(ends[0], got, sizeof got) == 4 && memcmp(got, "word", 4) == 0);
    CHECK(read(ends[0], got, sizeof got) == 0);

    struct epoll_event event;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    watched = epoll_create1(0);
    run(watch, NULL);
    CHECK(send(pair[0], "a", 1, 0) == 1);
    run(answer, NULL);
    CHECK(epoll_wait(watched, &event, 1, -1) == 1 && event.data.u32 == 7);
    CHECK(recv(pair[0], got, 1, 0) == 1 && got[0] == 'b');

    run(go_to_root, NULL);
    CHECK(strcmp(getcwd(got, sizeof got), "/") == 0 && umask(077) == 027);
    CHECK(chdir("proc") == 0);
    run(where, NULL);

    if (argc > 1) {
        for (long number = 0; number < THREADS; number++)
            run(from_input, (void *)number);
        CHECK(memcmp(line[0], argv[1], 4) == 0 && memcmp(line[3], argv[1] + 12, 4) == 0);
    }
    puts("files: all right");
    return 0;
}
