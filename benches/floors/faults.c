/* A fault: signal, one change of rights, one page copied.
 *
 * A page of a file in memory that is mapped twice, as the shared memory's are.  A read miss copies a page into it and opens it
 * for reading; a write upgrade copies it, its twin, elsewhere and opens it for writing.  Last, the parts of long reads and of
 * invalidations, without any fault.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "floors.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFDIO_CONTINUE_MODE_WP /* Linux 6.4; headers may be older than the kernel */
#define UFFDIO_CONTINUE_MODE_WP ((uint64_t)1 << 1)
#endif

typedef enum way { BY_USERFAULTFD, BY_MPROTECT } way;
typedef enum purpose { MISS, UPGRADE } purpose;

static struct {
    char *pages, *shadow, *elsewhere;
    way way;
    purpose purpose;
    int descriptor;
    volatile bool looks_at_clock; /* between the handler and what it interrupts */
    volatile uint64_t entered, copied, opened;
} fault;

static uint64_t moment(void)
{
    return fault.looks_at_clock ? now() : 0;
}

static int open_entries(uintptr_t page, size_t pages)
{
    struct uffdio_continue entry = {.range = {.start = page, .len = pages * PAGE},
                                    .mode = UFFDIO_CONTINUE_MODE_DONTWAKE | UFFDIO_CONTINUE_MODE_WP};
    return ioctl(fault.descriptor, UFFDIO_CONTINUE, &entry);
}

static int open_to_read(uintptr_t page, size_t pages)
{
    return fault.way == BY_MPROTECT ? mprotect((void *)page, pages * PAGE, PROT_READ) : open_entries(page, pages);
}

/* Pages side by side, open or not, by one call. */
static void close_all(uintptr_t page, size_t pages)
{
    void *first = (void *)page;
    if (fault.way == BY_MPROTECT ? mprotect(first, pages * PAGE, PROT_NONE) : madvise(first, pages * PAGE, MADV_DONTNEED))
        exit(1);
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
    fault.entered = moment();
    if (fault.purpose == MISS) {
        memcpy(fault.shadow + offset, fault.elsewhere + offset, PAGE);
        fault.copied = moment();
        failed = open_to_read(page, 1);
    } else {
        memcpy(fault.elsewhere + offset, fault.shadow + offset, PAGE);
        failed = fault.way == BY_MPROTECT ? mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) : protect(page, false);
    }
    fault.opened = moment();
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
    for (size_t offset = 0; offset < bytes; offset += PAGE) {
        memset(fault.shadow + offset, 0, PAGE);
        memset(fault.elsewhere + offset, 1, PAGE);
        uintptr_t page = (uintptr_t)fault.pages + offset;
        if (open_to_read(page, 1))
            return false;
        (void)*(volatile char *)page;
    }
    return true;
}

/* Gives a page a mapping of its own, where a change of rights would split and join them: mappings that differ in an advice stay apart. */
static void set_apart(size_t page)
{
    if (fault.way == BY_MPROTECT && madvise(fault.pages + page * PAGE, PAGE, page % 2 ? MADV_SEQUENTIAL : MADV_RANDOM))
        exit(1);
}

/* The order in which the micro benchmark touches pages, which is not that in which caches expect them. */
static volatile char *in_order(size_t page, size_t pages)
{
    return fault.pages + page * 7 % pages * PAGE;
}

static void take_faults(uint64_t *samples, size_t pages)
{
    for (size_t page = 0; page < pages; page++) {
        volatile char *byte = in_order(page, pages);
        uint64_t began = now();
        if (fault.purpose == MISS)
            (void)*byte;
        else
            *byte = 1;
        samples[page] = now() - began;
    }
}

/* False if this machine does not offer it. */
static bool begin_faults(way way, purpose purpose, size_t bytes)
{
    int file = memfd_create("floors", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return false;
    fault.way = way;
    fault.purpose = purpose;
    fault.elsewhere = map(bytes, PROT_READ | PROT_WRITE);
    fault.shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    fault.pages = mmap(NULL, bytes, way == BY_USERFAULTFD ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, file, 0);
    close(file);
    if (fault.shadow == MAP_FAILED || fault.pages == MAP_FAILED || !open_pages(bytes))
        return false;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    return true;
}

static void end_faults(size_t bytes)
{
    munmap(fault.elsewhere, bytes), munmap(fault.shadow, bytes), munmap(fault.pages, bytes);
    if (fault.descriptor >= 0)
        close(fault.descriptor);
}

static void close_pages(size_t pages)
{
    for (size_t page = 0; page < pages; page++)
        if (!close_page((uintptr_t)fault.pages + page * PAGE))
            exit(1);
}

static void fault_cost(const char *name, way way, purpose purpose)
{
    size_t pages = rounds < 256 ? rounds : 256, repeats = rounds < 256 ? 1 : 6;
    if (!begin_faults(way, purpose, pages * PAGE))
        return;
    for (size_t page = 0; page < pages; page++)
        set_apart(page);
    uint64_t *samples = calloc(repeats * pages, sizeof *samples);
    for (size_t repeat = 0; repeat < repeats; repeat++) {
        close_pages(pages);
        take_faults(samples + repeat * pages, pages);
    }
    report(name, samples, repeats * pages, 1);
    free(samples);
    end_faults(pages * PAGE);
}

/* The same at random over more memory than the caches and their tables hold: other pages in each round. */
static void random_fault_cost(const char *name, way way)
{
    size_t pages = rounds < 256 ? FAR_PAGES_TINY : FAR_PAGES, touches = pages / FAR_TOUCHED_EACH, repeats = rounds < 256 ? 1 : 3;
    if (!begin_faults(way, MISS, pages * PAGE))
        return;
    uint32_t *order = calloc(pages / 2, sizeof *order);
    uint64_t *samples = calloc(repeats * touches, sizeof *samples);
    shuffle(order, (uint32_t)pages / 2);
    for (size_t repeat = 0; repeat < repeats; repeat++) {
        const uint32_t *touched = order + repeat * touches;
        for (size_t touch = 0; touch < touches; touch++) {
            set_apart(touched[touch]);
            if (!close_page((uintptr_t)fault.pages + (size_t)touched[touch] * PAGE))
                exit(1);
        }
        for (size_t touch = 0; touch < touches; touch++) {
            uint64_t began = now();
            (void)*(volatile char *)(fault.pages + (size_t)touched[touch] * PAGE);
            samples[repeat * touches + touch] = now() - began;
        }
    }
    report(name, samples, repeats * touches, 1);
    free(order), free(samples);
    end_faults(pages * PAGE);
}

/* Where the time of a read miss goes; each part with a look at the clock. */
static void fault_parts(void)
{
    static const char *const NAMES[] = {"fault-uffd-enter", "fault-uffd-copy", "fault-uffd-continue", "fault-uffd-return"};
    size_t pages = rounds < 256 ? rounds : 256;
    if (!begin_faults(BY_USERFAULTFD, MISS, pages * PAGE))
        return;
    uint64_t *parts[4];
    for (size_t part = 0; part < 4; part++)
        parts[part] = calloc(pages, sizeof *parts[part]);
    close_pages(pages);
    fault.looks_at_clock = true;
    for (size_t page = 0; page < pages; page++) {
        uint64_t began = now();
        (void)*in_order(page, pages);
        uint64_t ended = now();
        parts[0][page] = fault.entered - began;
        parts[1][page] = fault.copied - fault.entered;
        parts[2][page] = fault.opened - fault.copied;
        parts[3][page] = ended - fault.opened;
    }
    fault.looks_at_clock = false;
    for (size_t part = 0; part < 4; part++) {
        report(NAMES[part], parts[part], pages, 1);
        free(parts[part]);
    }
    end_faults(pages * PAGE);
}

/* The pages that one fault opens in a long read. */
#define WINDOW 64u

/* The least that a sequential read of another node's pages can cost: in windows they are copied, opened by one call, and read.  No
 * fault, no lock, no table. */
static void copy_open_read(const char *name, way way)
{
    size_t bytes = rounds < 100 ? 1u << 20 : 64u << 20, window = WINDOW * PAGE;
    if (!begin_faults(way, MISS, bytes))
        return;
    uint64_t samples[5], sum = 0;
    for (size_t i = 0; i < 5; i++) {
        memset(fault.elsewhere, 1 + (int)i, bytes);
        close_all((uintptr_t)fault.pages, bytes / PAGE);
        uint64_t began = now();
        for (size_t offset = 0; offset < bytes; offset += window) {
            memcpy(fault.shadow + offset, fault.elsewhere + offset, window);
            if (open_to_read((uintptr_t)fault.pages + offset, WINDOW))
                exit(1);
            sum += sum_of_words((const uint64_t *)(fault.pages + offset), window / sizeof sum);
        }
        samples[i] = now() - began;
    }
    report(name, samples, 5, (double)(bytes >> 20));
    if (sum == 0)
        exit(1);
    end_faults(bytes);
}

/* The least that closing 64 scattered pages can cost: one call for all of them, where those between are closed already. */
static void close_scattered(const char *name, way way)
{
    enum { OPEN = 64, APART = 16 };
    size_t repeats = rounds < 100 ? 1 : 50;
    if (!begin_faults(way, MISS, OPEN * APART * PAGE))
        return;
    for (size_t page = 0; page < OPEN; page++)
        set_apart(page * APART);
    uintptr_t first = (uintptr_t)fault.pages;
    uint64_t samples[50];
    for (size_t i = 0; i < repeats; i++) {
        close_all(first, OPEN * APART);
        for (size_t page = 0; page < OPEN; page++) {
            if (open_to_read(first + page * APART * PAGE, 1))
                exit(1);
            (void)*(volatile char *)(first + page * APART * PAGE);
        }
        uint64_t began = now();
        close_all(first, OPEN * APART);
        samples[i] = now() - began;
    }
    report(name, samples, repeats, OPEN);
    end_faults(OPEN * APART * PAGE);
}

void floors_of_faults(void)
{
    fault_cost("fault-uffd", BY_USERFAULTFD, MISS);
    fault_cost("fault-mprotect", BY_MPROTECT, MISS);
    fault_cost("upgrade-uffd", BY_USERFAULTFD, UPGRADE);
    fault_cost("upgrade-mprotect", BY_MPROTECT, UPGRADE);
    random_fault_cost("random-fault-uffd", BY_USERFAULTFD);
    random_fault_cost("random-fault-mprotect", BY_MPROTECT);
    fault_parts();
    copy_open_read("copy-open-read-mib-uffd", BY_USERFAULTFD);
    copy_open_read("copy-open-read-mib-mprotect", BY_MPROTECT);
    close_scattered("close-scattered-uffd", BY_USERFAULTFD);
    close_scattered("close-scattered-mprotect", BY_MPROTECT);
}
