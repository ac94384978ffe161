/* Floors: what the machine itself takes for the parts of each operation, with nothing of Finespun's around them.
 * Prints lines as the micro benchmark does; `floors --tiny` only sees whether it runs.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../measure.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define HEADER 32u

static size_t rounds = 2000;

static void *map(size_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* ---- a fault: signal, one change of rights, one page copied ----------------------------------------------------- */

static char *fault_pages, *fault_source, *fault_shadow;
static int fault_descriptor = -1;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    size_t offset = ((size_t)((char *)info->si_addr - fault_pages)) & ~(size_t)(PAGE - 1);
    if (fault_descriptor >= 0) {
        struct uffdio_copy copy = {.dst = (uintptr_t)fault_pages + offset, .src = (uintptr_t)fault_source + offset,
                                   .len = PAGE};
        if (ioctl(fault_descriptor, UFFDIO_COPY, &copy) != 0)
            _exit(3);
        return;
    }
    memcpy(fault_shadow + offset, fault_source + offset, PAGE);
    if (mprotect(fault_pages + offset, PAGE, PROT_READ) != 0)
        _exit(3);
}

static int open_userfault(void *memory, size_t bytes)
{
    int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
    struct uffdio_register registration = {.range = {.start = (uintptr_t)memory, .len = bytes},
                                           .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (descriptor >= 0 &&
        (ioctl(descriptor, UFFDIO_API, &api) != 0 || ioctl(descriptor, UFFDIO_REGISTER, &registration) != 0)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

static void fault(const char *name, bool by_userfaultfd)
{
    size_t pages = rounds < 512 ? rounds : 512, bytes = 2 * pages * PAGE;
    int file = memfd_create("floors", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return;
    fault_source = map(bytes, PROT_READ | PROT_WRITE);
    memset(fault_source, 1, bytes);
    fault_shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    fault_pages = by_userfaultfd ? map(bytes, PROT_READ | PROT_WRITE)
                                 : mmap(NULL, bytes, PROT_NONE, MAP_SHARED, file, 0);
    close(file);
    fault_descriptor = by_userfaultfd ? open_userfault(fault_pages, bytes) : -1;
    if (fault_shadow == MAP_FAILED || fault_pages == MAP_FAILED || (by_userfaultfd && fault_descriptor < 0))
        return; /* this machine does not offer it: no line */
    if (!by_userfaultfd)
        memset(fault_shadow, 0, bytes);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    uint64_t *samples = calloc(pages, sizeof *samples);
    /* Every second page, so that neighbours' mappings do not merge. */
    for (size_t page = 0; page < pages; page++) {
        uint64_t began = now();
        (void)*(volatile char *)(fault_pages + 2 * page * PAGE);
        samples[page] = now() - began;
    }
    report(name, samples, pages, 1);
    free(samples);
    munmap(fault_source, bytes), munmap(fault_shadow, bytes), munmap(fault_pages, bytes);
    if (fault_descriptor >= 0)
        close(fault_descriptor);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static void copies(void)
{
    size_t pages = rounds < 1024 ? rounds : 1024;
    char *from = map(pages * PAGE, PROT_READ | PROT_WRITE), *to = map(pages * PAGE, PROT_READ | PROT_WRITE);
    memset(from, 1, pages * PAGE), memset(to, 1, pages * PAGE);
    uint64_t *copying = calloc(pages, sizeof *copying), *comparing = calloc(pages, sizeof *comparing);
    for (size_t page = 0; page < pages; page++) {
        uint64_t began = now();
        memcpy(to + page * PAGE, from + page * PAGE, PAGE);
        copying[page] = now() - began;
        began = now();
        volatile int differ = memcmp(to + page * PAGE, from + page * PAGE, PAGE);
        (void)differ;
        memcpy(to + page * PAGE, from + page * PAGE, PAGE);
        comparing[page] = now() - began;
    }
    report("copy-page", copying, pages, 1);
    report("compare-copy-page", comparing, pages, 1);
    free(copying), free(comparing);
    munmap(from, pages * PAGE), munmap(to, pages * PAGE);
}

static void stream(void)
{
    size_t bytes = rounds < 100 ? 1u << 20 : 64u << 20, mib = bytes >> 20;
    char *from = map(bytes, PROT_READ | PROT_WRITE), *to = map(bytes, PROT_READ | PROT_WRITE);
    memset(from, 1, bytes), memset(to, 1, bytes);
    uint64_t samples[5];
    for (size_t i = 0; i < 5; i++) {
        uint64_t began = now();
        memcpy(to, from, bytes);
        samples[i] = now() - began;
    }
    report("memcpy-mib", samples, 5, (double)mib);
    munmap(from, bytes), munmap(to, bytes);
}

/* ---- two processes ------------------------------------------------------------------------------------------------ */

typedef struct shared {
    _Alignas(128) _Atomic uint32_t ping;
    _Alignas(128) _Atomic uint32_t pong;
    _Alignas(128) pthread_barrier_t barrier;
    pthread_mutex_t mutex;
} shared;

static shared *share(void)
{
    shared *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    pthread_barrierattr_t barrier;
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&memory->barrier, &barrier, 2);
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&memory->mutex, &mutex);
    return memory;
}

/* The other process, on the other core, does what it must and ends. */
static pid_t other(void (*body)(shared *), shared *memory)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pin(1);
        body(memory);
        _exit(0);
    }
    return child;
}

static void until(_Atomic uint32_t *word, uint32_t value)
{
    for (size_t tries = 0; atomic_load_explicit(word, memory_order_acquire) != value; tries++)
        if (tries % 1024 == 1023)
            sched_yield();
}

static void pong(shared *memory)
{
    for (uint32_t value = 1; value <= rounds; value++) {
        until(&memory->ping, value);
        atomic_store_explicit(&memory->pong, value, memory_order_release);
    }
}

static void line_round_trip(void)
{
    shared *memory = share();
    pid_t child = other(pong, memory);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (uint32_t value = 1; value <= rounds; value++) {
        uint64_t began = now();
        atomic_store_explicit(&memory->ping, value, memory_order_release);
        until(&memory->pong, value);
        samples[value - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    report("line-round-trip", samples, rounds, 1);
    free(samples);
}

static void arrive(shared *memory)
{
    for (size_t i = 0; i < rounds; i++)
        pthread_barrier_wait(&memory->barrier);
}

static void native_synchronization(void)
{
    shared *memory = share();
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        pthread_mutex_lock(&memory->mutex);
        pthread_mutex_unlock(&memory->mutex);
        samples[i] = now() - began;
    }
    report("pthread-mutex", samples, rounds, 1);
    pid_t child = other(arrive, memory);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        pthread_barrier_wait(&memory->barrier);
        samples[i] = now() - began;
    }
    waitpid(child, NULL, 0);
    report("pthread-barrier", samples, rounds, 1);
    free(samples);
}

/* ---- a request of 32 bytes, answered by a header and a page, over TCP ------------------------------------------- */

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
    pid_t child = other(serve_pages, NULL);
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

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--tiny") == 0)
        rounds = 20;
    pin(0);
    fault("fault-uffd", true);
    fault("fault-mprotect", false);
    copies();
    stream();
    line_round_trip();
    native_synchronization();
    tcp_page("tcp-page-blocking", false);
    tcp_page("tcp-page-busy", true);
    return 0;
}
