/* The C library's calls take shared buffers, in whatever state the buffers' pages are.
 *
 * run: -n 2
 * run: -n 2 -p 2
 * run: -n 2 -t 2
 * run: -n 2 -t 2 --protocol strings-sc
 * run: -n 2 --transport tcp
 * run: -n 2 -p 2 --transport tcp
 * run: -n 2 --faults mprotect
 * run: -n 2 --faults mprotect --transport tcp
 *
 * One processor, on the last node, makes the calls; processor 0, on the first, wrote what they send and looks at what
 * they received.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define PAGE 4096
#define ROOM (1 << 20)

/* Memory of the calling processor only. */
static unsigned char expected[ROOM], got[ROOM];

/* The other calls' parameters that may lie in shared memory too. */
struct shared {
    struct iovec list[3];
    struct msghdr message;
    struct mmsghdr messages[2];
    struct sockaddr_un name;
    socklen_t name_len;
    char control[256];
};
static struct shared *shared;

ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t bytes, size_t room, int flags, struct sockaddr *from,
                       socklen_t *len);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);

static int file_of(const void *bytes, size_t count) {
    int fd = memfd_create("test", 0);
    CHECK(fd >= 0 && write(fd, bytes, count) == (ssize_t)count && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* A pair of descriptors: what is written to the second can be read from the first. */
static void pipe_of(int kind, int pair[2]) {
    if (kind == 0) {
        CHECK(pipe(pair) == 0);
        CHECK(fcntl(pair[1], F_SETPIPE_SZ, ROOM) >= ROOM);
        return;
    }
    CHECK(socketpair(AF_UNIX, kind, 0, pair) == 0);
    int size = 4 * ROOM;
    CHECK(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
}

static const struct iovec *list_of(unsigned char *at, size_t count) {
    shared->list[0] = (struct iovec){at, 100};
    shared->list[1] = (struct iovec){at + 100, 0};
    shared->list[2] = (struct iovec){at + 100, count - 100};
    return shared->list;
}

/* The calls that fill a buffer: each gets `count` bytes of `expected` into it. */

static ssize_t from_file(unsigned char *to, size_t count, int how) {
    int fd = file_of(expected, count);
    ssize_t result = -1;
    switch (how) {
    case 0: result = read(fd, to, count); break;
    case 1: result = pread(fd, to, count, 0); break;
    case 2: result = pread64(fd, to, count, 0); break;
    case 3: result = readv(fd, list_of(to, count), 3); break;
    case 4: result = preadv(fd, list_of(to, count), 3, 0); break;
    case 5: result = preadv2(fd, list_of(to, count), 3, 0, 0); break;
    case 6: result = preadv2(fd, list_of(to, count), 3, -1, 0); break;
    case 7: result = __read_chk(fd, to, count, count); break;
    case 8: result = __pread_chk(fd, to, count, 0, count); break;
    case 9: result = read(fd, to, ROOM - PAGE); break; /* more than there is */
    }
    close(fd);
    return result;
}

static ssize_t from_stream(unsigned char *to, size_t count, int how) {
    FILE *stream = fdopen(file_of(expected, count), "r");
    CHECK(stream);
    ssize_t result = -1;
    if (how == 2) setvbuf(stream, NULL, _IONBF, 0);
    switch (how) {
    case 0: result = (ssize_t)fread(to, 1, count, stream); break;
    case 1: result = (ssize_t)fread_unlocked(to, 1, count, stream); break;
    case 2: result = (ssize_t)fread(to, count, 1, stream) * (ssize_t)count; break;
    case 3: result = (ssize_t)__fread_chk(to, count, 1, count, stream); break;
    case 4: result = (ssize_t)fread(to, 1, count + 10, stream); CHECK(feof(stream)); break;
    case 5: /* the first item is whole, the second is not */
        CHECK(fread(to, count - 1, 2, stream) == 1 && feof(stream));
        result = (ssize_t)count;
        break;
    }
    CHECK(!ferror(stream));
    fclose(stream);
    return result;
}

static ssize_t from_pipe(unsigned char *to, size_t count, int how) {
    static const int kinds[] = {0, 0, SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM, SOCK_DGRAM, SOCK_DGRAM, SOCK_SEQPACKET,
                                SOCK_STREAM, SOCK_DGRAM, SOCK_DGRAM};
    int pair[2];
    pipe_of(kinds[how], pair);
    CHECK(write(pair[1], expected, count) == (ssize_t)count);
    ssize_t result = -1;
    switch (how) {
    case 0: result = read(pair[0], to, count); break;
    case 1: result = readv(pair[0], list_of(to, count), 3); break;
    case 2: result = recv(pair[0], to, count, MSG_WAITALL); break;
    case 3: result = __recv_chk(pair[0], to, count, count, MSG_WAITALL); break;
    case 4:
        shared->name_len = sizeof shared->name;
        result = recvfrom(pair[0], to, count, 0, (struct sockaddr *)&shared->name, &shared->name_len);
        CHECK(shared->name_len == 0);
        break;
    case 5: result = recv(pair[0], to, count, MSG_TRUNC); break;
    case 6:
        shared->message = (struct msghdr){.msg_iov = (struct iovec *)list_of(to, count), .msg_iovlen = 3, .msg_flags = 99};
        result = recvmsg(pair[0], &shared->message, 0);
        CHECK(shared->message.msg_flags == 0);
        break;
    case 7: result = read(pair[0], to, ROOM - PAGE); break; /* one message, though there is room for more */
    case 8: result = __recvfrom_chk(pair[0], to, count, count, MSG_WAITALL, NULL, NULL); break;
    case 9:
    case 10:
        memset(shared->messages, 0, sizeof shared->messages);
        shared->messages[0].msg_hdr = (struct msghdr){.msg_iov = (struct iovec *)list_of(to, count), .msg_iovlen = 3};
        CHECK(recvmmsg(pair[0], shared->messages, how == 9 ? 1 : 2, how == 9 ? 0 : MSG_WAITFORONE, NULL) == 1);
        result = shared->messages[0].msg_len;
        break;
    }
    close(pair[0]);
    close(pair[1]);
    return result;
}

/* The calls that take bytes from a buffer: each sends `count` bytes of it, and they arrive in `got`. */

static ssize_t to_file(unsigned char *from, size_t count, int how) {
    int fd = file_of("", 0);
    ssize_t result = -1;
    switch (how) {
    case 0: result = write(fd, from, count); break;
    case 1: result = pwrite(fd, from, count, 0); break;
    case 2: result = pwrite64(fd, from, count, 0); break;
    case 3: result = writev(fd, list_of(from, count), 3); break;
    case 4: result = pwritev(fd, list_of(from, count), 3, 0); break;
    case 5: result = pwritev2(fd, list_of(from, count), 3, 0, 0); break;
    case 6: result = pwritev2(fd, list_of(from, count), 3, -1, 0); break;
    }
    CHECK(pread(fd, got, count, 0) == (ssize_t)count);
    close(fd);
    return result;
}

static ssize_t to_stream(unsigned char *from, size_t count, int how) {
    int fd = file_of("", 0);
    FILE *stream = fdopen(dup(fd), "w");
    CHECK(stream);
    ssize_t result = -1;
    if (how == 2) setvbuf(stream, NULL, _IONBF, 0);
    if (how == 3) CHECK(setvbuf(stream, shared->control, _IOFBF, sizeof shared->control) == 0);
    switch (how) {
    case 0: result = (ssize_t)fwrite(from, 1, count, stream); break;
    case 1: result = (ssize_t)fwrite_unlocked(from, 1, count, stream); break;
    case 2: result = (ssize_t)fwrite(from, count, 1, stream) * (ssize_t)count; break;
    case 3: result = (ssize_t)fwrite(from, 1, count, stream); break;
    }
    CHECK(fclose(stream) == 0);
    CHECK(pread(fd, got, count, 0) == (ssize_t)count);
    close(fd);
    return result;
}

static ssize_t to_pipe(unsigned char *from, size_t count, int how) {
    static const int kinds[] = {0, 0, SOCK_STREAM, SOCK_DGRAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_DGRAM};
    int pair[2];
    pipe_of(kinds[how], pair);
    ssize_t result = -1;
    switch (how) {
    case 0: result = write(pair[1], from, count); break;
    case 1: result = writev(pair[1], list_of(from, count), 3); break;
    case 2: result = send(pair[1], from, count, MSG_NOSIGNAL); break;
    case 3: result = sendto(pair[1], from, count, 0, NULL, 0); break;
    case 4:
        shared->message = (struct msghdr){.msg_iov = (struct iovec *)list_of(from, count), .msg_iovlen = 3};
        result = sendmsg(pair[1], &shared->message, 0);
        break;
    case 5: result = write(pair[1], from, count); break;
    case 6:
        memset(shared->messages, 0, sizeof shared->messages);
        shared->messages[0].msg_hdr = (struct msghdr){.msg_iov = (struct iovec *)list_of(from, count), .msg_iovlen = 3};
        CHECK(sendmmsg(pair[1], shared->messages, 1, 0) == 1);
        result = shared->messages[0].msg_len;
        break;
    }
    for (size_t have = 0; have < count;) {
        ssize_t more = read(pair[0], got + have, sizeof got - have);
        CHECK(more > 0);
        have += (size_t)more;
    }
    close(pair[0]);
    close(pair[1]);
    return result;
}

struct call {
    ssize_t (*run)(unsigned char *, size_t, int);
    int how;
    int message; /* cannot be as long as the longest */
};
static const struct call fills[] = {
    {from_file, 0, 0},   {from_file, 1, 0},   {from_file, 2, 0},   {from_file, 3, 0},   {from_file, 4, 0},
    {from_file, 5, 0},   {from_file, 6, 0},   {from_file, 7, 0},   {from_file, 8, 0},   {from_file, 9, 0},
    {from_stream, 0, 0}, {from_stream, 1, 0}, {from_stream, 2, 0}, {from_stream, 3, 0}, {from_stream, 4, 0},
    {from_stream, 5, 0}, {from_pipe, 0, 1},   {from_pipe, 1, 1},   {from_pipe, 2, 1},   {from_pipe, 3, 1},
    {from_pipe, 4, 1},   {from_pipe, 5, 1},   {from_pipe, 6, 1},   {from_pipe, 7, 1},   {from_pipe, 8, 1},
    {from_pipe, 9, 1},   {from_pipe, 10, 1},
};
static const struct call drains[] = {
    {to_file, 0, 0},   {to_file, 1, 0},   {to_file, 2, 0},   {to_file, 3, 0},   {to_file, 4, 0}, {to_file, 5, 0},
    {to_file, 6, 0},   {to_stream, 0, 0}, {to_stream, 1, 0}, {to_stream, 2, 0}, {to_stream, 3, 0},
    {to_pipe, 0, 0},   {to_pipe, 1, 0},   {to_pipe, 2, 1},   {to_pipe, 3, 1},   {to_pipe, 4, 1}, {to_pipe, 5, 1},
    {to_pipe, 6, 1},
};
#define COUNT(array) (sizeof array / sizeof array[0])

static void pattern(unsigned char *to, size_t count, unsigned seed) {
    for (size_t index = 0; index < count; index++) to[index] = (unsigned char)((index * 2654435761u + seed * 97) >> 7);
}

/* The states of the caller's pages before the call. */
enum state { UNTOUCHED, INVALIDATED, READ_ONLY, WRITABLE, STATES };

static unsigned long sum(const unsigned char *at, size_t count) {
    unsigned long total = 0;
    for (size_t index = 0; index < count; index++) total += ((const volatile unsigned char *)at)[index];
    return total;
}

static void bring_into(enum state state, unsigned char *at, size_t count, int first, int caller) {
    if (caller && (state == INVALIDATED || state == READ_ONLY)) sum(at, count);
    fsp_barrier_all();
    if (first && state != UNTOUCHED) memset(at, 1, count);
    fsp_barrier_all();
    if (caller && state == READ_ONLY) sum(at, count);
    if (caller && state == WRITABLE) memset(at, 2, count);
}

static void test_fill(const struct call *call, enum state state, size_t count, size_t shift, int first, int caller) {
    unsigned char *base = fsp_malloc_all(ROOM + PAGE), *at = base + shift;
    bring_into(state, at, count, first, caller);
    pattern(expected, count, (unsigned)call->how);
    if (caller) CHECK(call->run(at, count, call->how) == (ssize_t)count);
    fsp_barrier_all();
    if (first) CHECK(memcmp(at, expected, count) == 0);
    fsp_barrier_all();
    if (first) fsp_free(base);
}

static void test_drain(const struct call *call, enum state state, size_t count, size_t shift, int first, int caller) {
    unsigned char *base = fsp_malloc_all(ROOM + PAGE), *at = base + shift;
    pattern(expected, count, (unsigned)call->how);
    if (caller && state == INVALIDATED) sum(at, count);
    fsp_barrier_all();
    if (first) memcpy(at, expected, count);
    fsp_barrier_all();
    if (caller && state == READ_ONLY) sum(at, count);
    if (caller && state == WRITABLE) memcpy(at, expected, count);
    if (caller) {
        CHECK(call->run(at, count, call->how) == (ssize_t)count);
        CHECK(memcmp(got, expected, count) == 0);
    }
    fsp_barrier_all();
    if (first) fsp_free(base);
}

/* Strings: in a stream, through standard output, and back by lines. */
static void test_text(int first, int caller) {
    char *text = fsp_malloc_all(4 * PAGE), *line = fsp_malloc_all(4 * PAGE);
    if (first) {
        memset(text, 'x', 3 * PAGE);
        text[3 * PAGE] = 0;
    }
    fsp_barrier_all();
    if (caller) {
        int fd = file_of("", 0), output = dup(1);
        FILE *stream = fdopen(dup(fd), "w");
        CHECK(fputs(text, stream) >= 0 && fputs_unlocked("\n", stream) >= 0 && fprintf(stream, "%s\n", text) == 3 * PAGE + 1);
        CHECK(fclose(stream) == 0);
        CHECK(fflush(stdout) == 0 && dup2(fd, 1) == 1);
        CHECK(puts(text) >= 0 && fflush(stdout) == 0 && dup2(output, 1) == 1);
        CHECK(lseek(fd, 0, SEEK_SET) == 0);
        stream = fdopen(fd, "r");
        for (int times = 0; times < 3; times++) {
            CHECK(fgets(line, 4 * PAGE, stream) == line && strlen(line) == 3 * PAGE + 1);
            CHECK(memcmp(line, text, 3 * PAGE) == 0 && line[3 * PAGE] == '\n');
        }
        CHECK(fgets(line, 4 * PAGE, stream) == NULL && feof(stream));
        fclose(stream);
        close(output);
    }
    fsp_barrier_all();
    if (first) CHECK(strlen(line) == 3 * PAGE + 1 && line[0] == 'x' && line[3 * PAGE] == '\n');
    fsp_barrier_all();
    if (first) {
        fsp_free(text);
        fsp_free(line);
    }
}

/* A descriptor and a sender's name travel in a message whose every part is shared. */
static void test_message(int caller) {
    if (caller) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int to = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0), sent = file_of("inside", 6);
        CHECK(bind(to, (struct sockaddr *)&name, sizeof(sa_family_t)) == 0);
        CHECK(bind(from, (struct sockaddr *)&name, sizeof(sa_family_t)) == 0);
        socklen_t len = sizeof shared->name;
        CHECK(getsockname(to, (struct sockaddr *)&name, &len) == 0);
        memcpy(&shared->name, &name, sizeof name);
        strcpy((char *)got, "data");
        shared->list[0] = (struct iovec){got, 4};
        shared->message = (struct msghdr){.msg_iov = shared->list, .msg_iovlen = 1, .msg_name = &shared->name,
            .msg_namelen = len, .msg_control = shared->control, .msg_controllen = CMSG_SPACE(sizeof(int))};
        struct cmsghdr *control = CMSG_FIRSTHDR(&shared->message);
        *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(control), &sent, sizeof(int));
        CHECK(sendmsg(from, &shared->message, 0) == 4);

        memset(shared->control, 0, sizeof shared->control);
        memset(&shared->name, 0, sizeof shared->name);
        shared->message.msg_namelen = sizeof shared->name;
        shared->message.msg_controllen = sizeof shared->control;
        CHECK(recvmsg(to, &shared->message, 0) == 4);
        int received = -1;
        memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&shared->message)), sizeof(int));
        CHECK(shared->message.msg_controllen == CMSG_SPACE(sizeof(int)) && received > 0);
        CHECK(pread(received, got, 6, 0) == 6 && memcmp(got, "inside", 6) == 0);
        len = sizeof name;
        CHECK(getsockname(from, (struct sockaddr *)&name, &len) == 0);
        CHECK(shared->message.msg_namelen == len && memcmp(&name, &shared->name, len) == 0);
        CHECK(sendto(to, "x", 1, 0, (struct sockaddr *)&shared->name, len) == 1);
        CHECK(recvfrom(from, shared->control, 1, 0, NULL, NULL) == 1 && shared->control[0] == 'x');
        close(to), close(from), close(sent), close(received);
    }
    fsp_barrier_all();
}

/* Failures are those of the call, and nothing waits that would not have. */
static void test_failures(int caller) {
    unsigned char *at = fsp_malloc_all(ROOM);
    if (caller) {
        int pair[2];
        CHECK(read(-1, at, 10) == -1 && errno == EBADF);
        CHECK(write(-1, at, ROOM) == -1 && errno == EBADF);
        CHECK(pread(0, at, 10, -5) == -1 && errno == EINVAL);
        volatile int negative = -1;
        CHECK(readv(0, list_of(at, 200), negative) == -1 && errno == EINVAL);
        CHECK(recv(0, at, 10, 0) == -1 && errno == ENOTSOCK);
        CHECK(pipe2(pair, O_NONBLOCK) == 0);
        CHECK(read(pair[0], at, 10) == -1 && errno == EAGAIN);
        errno = 0;
        ssize_t put = write(pair[1], at, ROOM);
        CHECK(put > 0 && put < ROOM && errno == 0);
        CHECK(write(pair[1], at, ROOM) == -1 && errno == EAGAIN);
        /* A long read of a pipe returns what there is. */
        for (ssize_t have = 0, more; have < put; have += more) CHECK((more = read(pair[0], at, ROOM)) > 0);
        CHECK(read(pair[0], at, ROOM) == -1 && errno == EAGAIN);
        close(pair[1]);
        CHECK(read(pair[0], at, 10) == 0 && read(pair[0], at, 0) == 0);
        close(pair[0]);
        pipe_of(SOCK_DGRAM, pair);
        CHECK(write(pair[1], "twelve bytes", 12) == 12);
        CHECK(recv(pair[0], at, 4, MSG_PEEK | MSG_TRUNC) == 12 && memcmp(at, "twel", 4) == 0);
        CHECK(recv(pair[0], at, 4, 0) == 4);
        close(pair[0]), close(pair[1]);
    }
    fsp_barrier_all();
}

int main(void) {
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    int first = fsp_process() == 0, caller = fsp_process() / (fsp_processes() / fsp_nodes()) == fsp_nodes() - 1
        && fsp_process() % (fsp_processes() / fsp_nodes()) == 0;
    shared = fsp_malloc_all(sizeof *shared);
    static const struct { size_t count, shift; } sizes[] = {{200, 17}, {5 * PAGE, 0}, {5 * PAGE + 333, 4000}, {700000, 1}};
    for (enum state state = UNTOUCHED; state < STATES; state++) {
        for (size_t size = 0; size < COUNT(sizes); size++) {
            size_t count = sizes[size].count, shift = sizes[size].shift;
            for (size_t index = 0; index < COUNT(fills); index++)
                if (count < 100000 || !fills[index].message) test_fill(&fills[index], state, count, shift, first, caller);
            for (size_t index = 0; index < COUNT(drains); index++)
                if (count < 100000 || !drains[index].message)
                    test_drain(&drains[index], state, count, shift, first, caller);
        }
    }
    test_text(first, caller);
    test_message(caller);
    test_failures(caller);
    fsp_finalize();
    return 0;
}
