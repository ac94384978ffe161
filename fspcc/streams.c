/* Streams (FILE) of the whole program (--pthread).  A FILE is private memory of the process that opened it; in another that uses it, a
 * FILE of its own stands for it, on the same descriptor, which all processes of the host share with its offset.
 *
 * So that this is one stream, no process keeps what another would have to know while other threads may run on: before each release (an
 * unlock, a signal, the end of a thread) what was written goes to the descriptor, and what was read ahead is given back, by moving the
 * offset.  What cannot be given back, as of a pipe, keeps the stream for the process that has it: E017 elsewhere, until it is read.
 * Standard input that is a pipe is read without a buffer, once there are threads.
 *
 * Each opened stream has a slot, which its FILE's address names.  A process knows by `known` which FILE of its own stands for which.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <finespun/program.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 1024, PLACES = 4 * SLOTS, ELSEWHERE = 17 };

struct slot {
    FILE *name; /* NULL: free */
    unsigned generation;
    int fd;
    int opener; /* a process, as this_process says */
    int holder; /* the one that has read ahead; 0: none */
    char mode[8];
};

static SHARED struct slot slots[SLOTS];
static SHARED int input_holder; /* the same of stdin */

/* Of this process, by a slot's number; its threads take turns by `busy`. */
static struct known {
    FILE *name, *own;
    unsigned generation;
} known[SLOTS];
static short place_of[PLACES]; /* by the name: a slot's number plus one; -1: was one */
static int known_end;          /* no slot from here on is known */
static int busy;
static int is_input_bare;

static int is_alone(void)
{
    static int processes;
    if (processes == 0 && fsp_program_runs())
        processes = fsp_processes();
    return processes <= 1 || !fsp_program_runs();
}

static int this_process(void)
{
    static int number;
    if (number == 0)
        number = fsp_process() + 1;
    return number;
}

static void take(void)
{
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        usleep(1);
}

static void give(void)
{
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static unsigned first_place(const FILE *name)
{
    return (unsigned)((uintptr_t)name >> 4) % PLACES;
}

/* The slot's number that the name is known by, or -1. */
static int find(const FILE *name)
{
    for (unsigned place = first_place(name);; place = (place + 1) % PLACES) {
        int slot = __atomic_load_n(&place_of[place], __ATOMIC_ACQUIRE);
        if (slot == 0)
            return -1;
        if (slot > 0 && known[slot - 1].name == name)
            return slot - 1;
    }
}

static void forget(int slot)
{
    unsigned place = first_place(known[slot].name);
    while (place_of[place] != slot + 1)
        place = (place + 1) % PLACES;
    int is_last = place_of[(place + 1) % PLACES] == 0;
    __atomic_store_n(&place_of[place], is_last ? 0 : -1, __ATOMIC_RELEASE);
    known[slot].name = NULL;
}

static void learn(int slot, FILE *own)
{
    take();
    if (known[slot].name)
        forget(slot);
    known[slot] = (struct known){slots[slot].name, own, slots[slot].generation};
    unsigned place = first_place(slots[slot].name);
    while (place_of[place] > 0)
        place = (place + 1) % PLACES;
    __atomic_store_n(&place_of[place], (short)(slot + 1), __ATOMIC_RELEASE);
    if (known_end < slot + 1)
        known_end = slot + 1;
    give();
}

static void refuse(const char *why, const void *from)
{
    char text[200];
    snprintf(text, sizeof text, "a stream (FILE) is used that another process %s, called at %p", why, from);
    fsp_program_refuse(ELSEWHERE, text);
}

static int is_seekable(FILE *stream)
{
    return lseek(__real_fileno_unlocked(stream), 0, SEEK_CUR) >= 0;
}

/* A stream that was closed elsewhere, whose descriptor's number may be another file's.  Nothing is written or given back for it; its
 * memory stays, for to close it takes the C library's way. */
static void drop(int slot)
{
    if (known[slot].own != known[slot].name)
        known[slot].own->_fileno = -1;
    forget(slot);
}

static FILE *stand_in(FILE *name, const void *from)
{
    fsp_clib_hold();
    int slot = 0;
    while (slot < SLOTS && slots[slot].name != name)
        slot++;
    FILE *own = name;
    const char *why = NULL;
    if (slot < SLOTS && slots[slot].opener != this_process()) {
        own = slots[slot].fd >= 0 ? __real_fdopen(slots[slot].fd, slots[slot].mode) : NULL;
        if (!own)
            why = "has opened, and that has no descriptor";
        else if (!is_seekable(own))
            __real_setvbuf(own, NULL, _IONBF, 0);
    }
    fsp_clib_let_go();
    if (why) {
        refuse(why, from);
        return name;
    }
    if (slot < SLOTS)
        learn(slot, own);
    return own;
}


FILE *fsp_stream_from(FILE *stream, const void *from)
{
    if (is_alone() || !stream || stream == stdout || stream == stderr)
        return stream;
    int mine = this_process();
    if (stream == stdin) {
        if (input_holder && input_holder != mine)
            refuse("has read ahead", from);
        return stream;
    }
    int slot = find(stream);
    if (slot >= 0 && known[slot].generation != slots[slot].generation) {
        take();
        drop(slot);
        give();
        slot = -1;
    }
    FILE *own = slot < 0 ? stand_in(stream, from) : known[slot].own;
    if (slot < 0)
        slot = find(stream);
    if (slot < 0)
        return own;
    if (slots[slot].holder && slots[slot].holder != mine)
        refuse("has read ahead", from);
    return own;
}

/* What has been opened is known to all; what cannot be noted is private, as ever. */
FILE *fsp_stream_opened(FILE *stream, const char *mode)
{
    if (!stream || is_alone())
        return stream;
    fsp_clib_hold();
    int slot = 0, free_slot = -1;
    for (; slot < SLOTS && slots[slot].name != stream; slot++)
        if (!slots[slot].name && free_slot < 0)
            free_slot = slot;
    if (slot < SLOTS && slots[slot].opener == this_process())
        free_slot = slot; /* it was closed past us */
    else if (slot < SLOTS && __real_fileno_unlocked(stream) >= 0) {
        /* Two processes' allocators have given the same address: the stream goes to another. */
        FILE *again = __real_fdopen(fcntl(__real_fileno_unlocked(stream), F_DUPFD_CLOEXEC, 3), mode);
        fsp_clib_let_go();
        if (!again)
            return stream;
        __real_fclose(stream);
        return fsp_stream_opened(again, mode);
    }
    if (free_slot >= 0) {
        struct slot *new = &slots[free_slot];
        *new = (struct slot){stream, new->generation + 1, __real_fileno_unlocked(stream), this_process(), 0, ""};
        /* As a descriptor's stream is opened: neither emptied nor made anew. */
        size_t length = 0;
        for (; *mode && *mode != ',' && length + 1 < sizeof new->mode; mode++)
            if (strchr("rwa+b", *mode))
                new->mode[length++] = *mode;
        learn(free_slot, stream);
    }
    fsp_clib_let_go();
    return stream;
}

/* The stream is about to be closed: the FILE of this process that stands for it. */
FILE *fsp_stream_closing(FILE *stream, const void *from)
{
    FILE *own = fsp_stream_from(stream, from);
    int slot = is_alone() ? -1 : find(stream);
    if (slot < 0)
        return own;
    take();
    forget(slot); /* before the slot is free: what is released then is looked through */
    give();
    fsp_clib_hold();
    slots[slot].name = NULL;
    slots[slot].generation++;
    fsp_clib_let_go();
    return own;
}

void fsp_stream_of_child(FILE *stream, const void *from)
{
    FILE *own = fsp_stream_from(stream, from);
    int slot = is_alone() ? -1 : find(stream);
    if (own != stream && slot >= 0)
        refuse("has opened by popen", from);
}

/* Bytes that were read ahead and not given back: the holder's number, or 0. */
static void hand_over(FILE *stream, int *holder)
{
    int is_read = stream->_IO_read_ptr < stream->_IO_read_end;
    if (!is_read && stream->_IO_write_ptr == stream->_IO_write_base && !*holder)
        return;
    if (__real_ftrylockfile(stream))
        return; /* its user hands it over at its own release */
    __real_fflush_unlocked(stream);
    int held = is_read && stream->_IO_read_ptr < stream->_IO_read_end && !is_seekable(stream) ? this_process() : 0;
    if (*holder != held)
        *holder = held;
    __real_funlockfile(stream);
}

/* Before this thread's stores can be seen by others. */
static void hand_over_all(void)
{
    static __thread int is_inside;
    if (is_inside || is_alone())
        return;
    is_inside = 1;
    int before = errno;
    int mine = this_process(), own = input_holder == 0 || input_holder == mine;
    if (own && stdin->_IO_read_ptr < stdin->_IO_read_end)
        hand_over(stdin, &input_holder);
    else if (input_holder == mine)
        input_holder = 0;
    if (stdout->_IO_write_ptr > stdout->_IO_write_base && !__real_ftrylockfile(stdout)) {
        __real_fflush_unlocked(stdout);
        __real_funlockfile(stdout);
    }
    for (int slot = 0; slot < known_end; slot++) {
        if (!known[slot].name)
            continue;
        take();
        if (known[slot].name && known[slot].generation != slots[slot].generation)
            drop(slot);
        else if (known[slot].name && (slots[slot].holder == 0 || slots[slot].holder == mine))
            hand_over(known[slot].own, &slots[slot].holder);
        give();
    }
    errno = before;
    is_inside = 0;
}

/* Where threads may run: a byte of a pipe that is read ahead here would be missed there. */
void fsp_clib_bare_input(void)
{
    struct stat about;
    if (is_input_bare || is_alone() || stdin->_IO_read_ptr < stdin->_IO_read_end)
        return;
    is_input_bare = 1;
    if (fstat(STDIN_FILENO, &about) == 0 && !S_ISCHR(about.st_mode) && !is_seekable(stdin))
        __real_setvbuf(stdin, NULL, _IONBF, 0);
}

void fsp_clib_release(void)
{
    fsp_clib_bare_input();
    hand_over_all();
}
