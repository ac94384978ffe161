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

#ifndef UFFDIO_CONTINUE_MODE_WP /* Linux 6.4; headers may be older than the kernel */
#define UFFDIO_CONTINUE_MODE_WP ((uint64_t)1 << 1)
#endif

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

/* ---- system calls and signals -------------------------------------------------------------------------------------- */

static void system_call(void)
{
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        for (size_t j = 0; j < 16; j++)
            syscall(SYS_getppid);
        samples[i] = now() - began;
    }
    report("system-call", samples, rounds, 16);
    free(samples);
}

static void on_signal(int number)
{
    (void)number;
}

/* Sent to the own thread, taken, returned from: the call that sends it is in it. */
static void signal_round_trip(void)
{
    uint64_t *samples = calloc(rounds, sizeof *samples);
    signal(SIGUSR1, on_signal);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        raise(SIGUSR1);
        samples[i] = now() - began;
    }
    report("signal", samples, rounds, 1);
    free(samples);
}

/* ---- a fault: signal, one change of rights, one page copied --------------------------------------------------------
 * A page of a file in memory that is mapped twice, as the shared memory's are.  A read miss copies a page into it and opens it
 * for reading; a write upgrade copies it, its twin, elsewhere and opens it for writing. */

typedef enum way { BY_USERFAULTFD, BY_MPROTECT } way;
typedef enum purpose { MISS, UPGRADE } purpose;

static struct {
    char *pages, *shadow, *elsewhere;
    way way;
    purpose purpose;
    int descriptor;
} fault;

static int open_entry(uintptr_t page)
{
    struct uffdio_continue entry = {.range = {.start = page, .len = PAGE},
                                    .mode = UFFDIO_CONTINUE_MODE_DONTWAKE | UFFDIO_CONTINUE_MODE_WP};
    return ioctl(fault.descriptor, UFFDIO_CONTINUE, &entry);
}

static int protect(uintptr_t page, bool on)
{
    struct uffdio_writeprotect rights = {
        .range = {.start = page, .len = PAGE},
        .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
    return ioctl(fault.descriptor, UFFDIO_WRITEPROTECT, &rights);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    size_t offset = ((size_t)((char *)info->si_addr - fault.pages)) & ~(size_t)(PAGE - 1);
    uintptr_t page = (uintptr_t)fault.pages + offset;
    int failed;
    if (fault.purpose == MISS) {
        memcpy(fault.shadow + offset, fault.elsewhere + offset, PAGE);
        failed = fault.way == BY_MPROTECT ? mprotect((void *)page, PAGE, PROT_READ) : open_entry(page);
    } else {
        memcpy(fault.elsewhere + offset, fault.shadow + offset, PAGE);
        failed = fault.way == BY_MPROTECT ? mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) : protect(page, false);
    }
    if (failed)
        _exit(3);
}

static int open_userfault(void *memory, size_t bytes)
{
    int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM |
                                         UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    struct uffdio_register registration = {.range = {.start = (uintptr_t)memory, .len = bytes},
                                           .mode = UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP};
    if (descriptor >= 0 &&
        (ioctl(descriptor, UFFDIO_API, &api) != 0 || ioctl(descriptor, UFFDIO_REGISTER, &registration) != 0)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* Every second page, so that neighbours' mappings do not merge. */
#define APART (2 * (size_t)PAGE)

/* Takes the rights away that the next fault shall give. */
static bool close_page(uintptr_t page)
{
    if (fault.way == BY_MPROTECT)
        return mprotect((void *)page, PAGE, fault.purpose == MISS ? PROT_NONE : PROT_READ) == 0;
    if (fault.purpose == MISS)
        return madvise((void *)page, PAGE, MADV_DONTNEED) == 0;
    return protect(page, true) == 0;
}

/* All pages in the file and in the page tables: only what is measured is left to do. */
static bool open_pages(size_t bytes)
{
    fault.descriptor = fault.way == BY_USERFAULTFD ? open_userfault(fault.pages, bytes) : -1;
    if (fault.way == BY_USERFAULTFD && fault.descriptor < 0)
        return false;
    for (size_t offset = 0; offset < bytes; offset += APART) {
        memset(fault.shadow + offset, 0, PAGE);
        memset(fault.elsewhere + offset, 1, PAGE);
        uintptr_t page = (uintptr_t)fault.pages + offset;
        int failed = fault.way == BY_MPROTECT ? mprotect((void *)page, PAGE, PROT_READ) : open_entry(page);
        if (failed)
            return false;
        (void)*(volatile char *)page;
    }
    return true;
}

static void take_faults(uint64_t *samples, size_t pages)
{
    for (size_t page = 0; page < pages; page++) {
        volatile char *byte = fault.pages + page * APART;
        uint64_t began = now();
        if (fault.purpose == MISS)
            (void)*byte;
        else
            *byte = 1;
        samples[page] = now() - began;
    }
}

static void fault_cost(const char *name, way way, purpose purpose)
{
    size_t pages = rounds < 256 ? rounds : 256, bytes = pages * APART, repeats = rounds < 256 ? 1 : 6;
    int file = memfd_create("floors", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return;
    fault.way = way;
    fault.purpose = purpose;
    fault.elsewhere = map(bytes, PROT_READ | PROT_WRITE);
    fault.shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    fault.pages = mmap(NULL, bytes, way == BY_USERFAULTFD ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, file, 0);
    close(file);
    if (fault.shadow == MAP_FAILED || fault.pages == MAP_FAILED || !open_pages(bytes))
        return; /* this machine does not offer it: no line */
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    uint64_t *samples = calloc(repeats * pages, sizeof *samples);
    for (size_t repeat = 0; repeat < repeats; repeat++) {
        for (size_t page = 0; page < pages; page++)
            if (!close_page((uintptr_t)fault.pages + page * APART))
                exit(1);
        take_faults(samples + repeat * pages, pages);
    }
    report(name, samples, repeats * pages, 1);
    free(samples);
    munmap(fault.elsewhere, bytes), munmap(fault.shadow, bytes), munmap(fault.pages, bytes);
    if (fault.descriptor >= 0)
        close(fault.descriptor);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static void copies(void)
{
    size_t pages = rounds < 1024 ? rounds : 1024;
    char *from = map(pages * PAGE, PROT_READ | PROT_WRITE), *to = map(pages * PAGE, PROT_READ | PROT_WRITE);
    memset(from, 1, pages * PAGE), memset(to, 1, pages * PAGE);
    uint64_t *copying = calloc(pages, sizeof *copying);
    for (size_t page = 0; page < pages; page++) {
        uint64_t began = now();
        memcpy(to + page * PAGE, from + page * PAGE, PAGE);
        copying[page] = now() - began;
    }
    report("copy-page", copying, pages, 1);
    free(copying);
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
    _Alignas(128) char ring[PAGE];
} shared;

static shared *share(unsigned processes)
{
    shared *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    pthread_barrierattr_t barrier;
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&memory->barrier, &barrier, processes);
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&memory->mutex, &mutex);
    return memory;
}

/* Another process, on another core, does what it must and ends. */
static pid_t process(int number, void (*body)(shared *), shared *memory)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pin(number);
        body(memory);
        _exit(0);
    }
    return child;
}

static void until(_Atomic uint32_t *word, uint32_t value)
{
    for (size_t tries = 0; atomic_load_explicit(word, memory_order_acquire) != value; tries++)
        if (tries % 4096 == 4095)
            sched_yield();
}

static void pong(shared *memory)
{
    for (uint32_t value = 1; value <= rounds; value++) {
        until(&memory->ping, value);
        atomic_store_explicit(&memory->pong, value, memory_order_release);
    }
}

static void pong_page(shared *memory)
{
    char page[PAGE] = {1};
    for (uint32_t value = 1; value <= rounds; value++) {
        until(&memory->ping, value);
        memcpy(memory->ring, page, PAGE);
        atomic_store_explicit(&memory->pong, value, memory_order_release);
    }
}

/* A word there and a word back through a cache line each; with a page beside the answer, the simplest ring. */
static void round_trip(const char *name, void (*answer)(shared *), bool with_page)
{
    shared *memory = share(2);
    static char page[PAGE];
    pid_t child = process(1, answer, memory);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (uint32_t value = 1; value <= rounds; value++) {
        uint64_t began = now();
        atomic_store_explicit(&memory->ping, value, memory_order_release);
        until(&memory->pong, value);
        if (with_page)
            memcpy(page, memory->ring, PAGE);
        samples[value - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    report(name, samples, rounds, 1);
    free(samples);
}

static void mutex(void)
{
    shared *memory = share(1);
    uint64_t *samples = calloc(rounds, sizeof *samples);
    for (size_t i = 0; i < rounds; i++) {
        uint64_t began = now();
        pthread_mutex_lock(&memory->mutex);
        pthread_mutex_unlock(&memory->mutex);
        samples[i] = now() - began;
    }
    report("pthread-mutex", samples, rounds, 1);
    free(samples);
}

/* Many a sample, as the micro benchmark has them. */
#define BATCH 32

static void arrive(shared *memory)
{
    for (size_t i = 0; i < rounds / BATCH + 2; i++)
        for (size_t j = 0; j < BATCH; j++)
            pthread_barrier_wait(&memory->barrier);
}

static void barrier(const char *name, int processes)
{
    shared *memory = share((unsigned)processes);
    size_t count = rounds / BATCH + 2;
    uint64_t *samples = calloc(count, sizeof *samples);
    for (int number = 1; number < processes; number++)
        process(number, arrive, memory);
    for (size_t i = 0; i < count; i++) {
        uint64_t began = now();
        for (size_t j = 0; j < BATCH; j++)
            pthread_barrier_wait(&memory->barrier);
        samples[i] = now() - began;
    }
    while (wait(NULL) > 0)
        ;
    report(name, samples, count, BATCH);
    free(samples);
}

/* The same by words alone, which is as fast as cache lines travel, while both have a core. */
static void spin_arrive(shared *memory)
{
    uint32_t round = 1;
    for (size_t i = 0; i < (rounds / BATCH + 2) * BATCH; i++, round++) {
        if (atomic_fetch_add(&memory->ping, 1) + 1 == 2 * round)
            atomic_store(&memory->pong, round);
        until(&memory->pong, round);
    }
}

static void spin_barrier(void)
{
    shared *memory = share(2);
    size_t count = rounds / BATCH + 2;
    uint64_t *samples = calloc(count, sizeof *samples);
    pid_t child = process(1, spin_arrive, memory);
    uint32_t round = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t began = now();
        for (size_t j = 0; j < BATCH; j++, round++) {
            if (atomic_fetch_add(&memory->ping, 1) + 1 == 2 * round)
                atomic_store(&memory->pong, round);
            until(&memory->pong, round);
        }
        samples[i] = now() - began;
    }
    waitpid(child, NULL, 0);
    report("spin-barrier", samples, count, BATCH);
    free(samples);
}

/* What a release has to do at least: compare each page with its twin, and copy what changed (here all of it) to a page that the
 * other core has read since. */
static void compare_and_copy(size_t pages)
{
    size_t bytes = pages * PAGE;
    char name[40];
    char *page = map(bytes, PROT_READ | PROT_WRITE), *twin = map(bytes, PROT_READ | PROT_WRITE);
    char *home = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(page, 1, bytes), memset(twin, 1, bytes), memset(home, 1, bytes);
    shared *memory = share(2);
    uint64_t samples[12];
    uint32_t count = rounds < 100 ? 2 : 12;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pin(1);
        for (uint32_t round = 1; round <= count; round++) {
            until(&memory->ping, round);
            for (size_t offset = 0; offset < bytes; offset += 64)
                (void)*(volatile char *)(home + offset);
            atomic_store_explicit(&memory->pong, round, memory_order_release);
        }
        _exit(0);
    }
    for (uint32_t round = 1; round <= count; round++) {
        /* The stores that made it dirty, and the other's look. */
        memset(page, (int)round, bytes);
        for (size_t each = 0; each < pages; each++)
            memcpy(twin + each * PAGE, page + each * PAGE, PAGE), page[each * PAGE + PAGE - 1]++;
        atomic_store_explicit(&memory->ping, round, memory_order_release);
        until(&memory->pong, round);
        uint64_t began = now();
        for (size_t each = 0; each < pages; each++)
            if (memcmp(page + each * PAGE, twin + each * PAGE, PAGE) != 0)
                memcpy(home + each * PAGE, page + each * PAGE, PAGE);
        samples[round - 1] = now() - began;
    }
    waitpid(child, NULL, 0);
    snprintf(name, sizeof name, "compare-copy-%zu", pages);
    report(name, samples, count, (double)pages);
    munmap(page, bytes), munmap(twin, bytes), munmap(home, bytes);
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

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--tiny") == 0)
        rounds = 20;
    pin(0);
    system_call();
    signal_round_trip();
    fault_cost("fault-uffd", BY_USERFAULTFD, MISS);
    fault_cost("fault-mprotect", BY_MPROTECT, MISS);
    fault_cost("upgrade-uffd", BY_USERFAULTFD, UPGRADE);
    fault_cost("upgrade-mprotect", BY_MPROTECT, UPGRADE);
    copies();
    for (size_t pages = 1; pages <= 1024 && pages <= rounds; pages *= pages == 256 ? 4 : 16)
        compare_and_copy(pages);
    stream();
    round_trip("line-round-trip", pong, false);
    round_trip("ring-page", pong_page, true);
    mutex();
    spin_barrier();
    barrier("pthread-barrier", 2);
    barrier("pthread-barrier-8", 8);
    tcp_page("tcp-page-blocking", false);
    tcp_page("tcp-page-busy", true);
    return 0;
}
