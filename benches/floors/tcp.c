/* A request of 32 bytes, answered by a header and a page, over TCP.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "floors.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER 32u

static int sockets[2];

static void connect_both(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(sockets[0], (struct sockaddr *)&address, length) != 0) {
        perror("loopback");
        exit(1);
    }
    sockets[1] = accept(listener, NULL, NULL);
    close(listener);
    for (int i = 0; i < 2; i++)
        setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static bool is_busy;

static void receive(int socket, char *buffer, size_t bytes)
{
    for (size_t tries = 1; bytes > 0; tries++) {
        ssize_t got = recv(socket, buffer, bytes, is_busy ? MSG_DONTWAIT : 0);
        if (got > 0)
            buffer += got, bytes -= (size_t)got;
        else if (got == 0)
            _exit(3);
        else if (tries % 64 == 0)
            sched_yield(); /* the other may have this core */
    }
}

static void serve_pages(shared *memory)
{
    (void)memory;
    char request[HEADER], answer[HEADER + PAGE];
    memset(answer, 1, sizeof answer);
    for (size_t i = 0; i < rounds; i++) {
        receive(sockets[1], request, sizeof request);
        if (send(sockets[1], answer, sizeof answer, 0) != (ssize_t)sizeof answer)
            _exit(3);
    }
}

static void tcp_page(const char *name, bool busy)
{
    is_busy = busy;
    connect_both();
    pid_t child = process(1, serve_pages, NULL);
    char request[HEADER] = {0}, answer[HEADER + PAGE];
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        if (send(sockets[0], request, sizeof request, 0) != (ssize_t)sizeof request)
            exit(1);
        receive(sockets[0], answer, sizeof answer);
        samples[i] = now() - began;
    }
    waitpid(child, NULL, 0);
    report(name, samples, rounds, 1);
    free(samples);
    close(sockets[0]), close(sockets[1]);
}

void floors_of_tcp(void)
{
    tcp_page("tcp-page-blocking", false);
    tcp_page("tcp-page-busy", true);
}
