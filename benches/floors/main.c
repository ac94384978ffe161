/* Floors: what the machine itself takes for the parts of each operation, with nothing of Finespun's around them.
 * Prints lines as the micro benchmark does; `floors --tiny` only sees whether it runs.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "floors.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t rounds = 2000;

void *map(size_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

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

/* Private memory that nobody has used, page after page. */
static void first_touches(void)
{
    size_t pages = rounds < 100 ? 16 : 4096;
    uint64_t samples[5];
    for (size_t i = 0; i < 5; i++) {
        char *fresh = map(pages * PAGE, PROT_READ | PROT_WRITE);
        uint64_t began = now();
        for (size_t page = 0; page < pages; page++)
            *(volatile uint64_t *)(fresh + page * PAGE) = 1;
        samples[i] = now() - began;
        munmap(fresh, pages * PAGE);
    }
    report("touch-page", samples, 5, (double)pages);
}

/* Pages that were just used are used again; before that, another page may lose its right to write, which the kernel must make known
 * to the processor: some then forget every page. */
static void loads(const char *name, bool after_protect)
{
    size_t pages = rounds < 100 ? 16 : 1000, samples_wanted = rounds < 100 ? 2 : 200;
    char *memory = map((pages + 1) * PAGE, PROT_READ | PROT_WRITE), *other = memory + pages * PAGE;
    memset(memory, 1, (pages + 1) * PAGE);
    uint64_t *samples = calloc(samples_wanted, sizeof *samples), sum = 0;
    for (size_t i = 0; i < samples_wanted; i++) {
        if (mprotect(other, PAGE, after_protect ? PROT_READ : PROT_READ | PROT_WRITE) != 0)
            exit(1);
        uint64_t began = now();
        for (size_t page = 0; page < pages; page++)
            sum += *(volatile char *)(memory + page * PAGE + page * 64 % PAGE);
        samples[i] = now() - began;
        if (mprotect(other, PAGE, PROT_READ | PROT_WRITE) != 0)
            exit(1);
        *(volatile char *)other = 1;
    }
    report(name, samples, samples_wanted, (double)pages);
    if (sum == 0)
        exit(1);
    free(samples);
    munmap(memory, (pages + 1) * PAGE);
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

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--tiny") == 0)
        rounds = 20;
    pin(0);
    system_call();
    signal_round_trip();
    floors_of_faults();
    copies();
    first_touches();
    loads("load-page", false);
    loads("load-page-after-protect", true);
    stream();
    floors_of_pairs();
    floors_of_words();
    floors_of_tcp();
    return 0;
}
