/* mmap and its kin for the program itself (--pthread): memory of the shared heap, which every thread of the program sees at the same
 * address.  Anonymous memory is zero; of a file, the contents are read in.  A shared mapping of a file, made to be written, is
 * written back by msync, by munmap and at the program's end; meanwhile the file does not see it, and it does not see the file.
 * What cannot be served ends the job with E056.  Code (PROT_EXEC) stays private to its process.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <finespun/memory.h>
#include <finespun/program.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PAGE = 4096, PIECE = 64 << 10, UNSERVED = 56, NULL_DEVICES = 1, ZERO = 5 };

/* One piece of the heap; several mappings may be left of what was mapped as one. */
struct origin {
    char *memory;
    size_t mappings;
    int fd; /* of a file that is written back; else -1 */
    dev_t device;
    ino_t file;
};

struct mapping {
    struct mapping *next;
    char *begin;
    size_t bytes;
    off_t offset; /* of the file */
    int is_file;
    struct origin *of;
};

static SHARED struct mapping *mappings;

void *__real_mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
void *__real_mremap(void *at, size_t bytes, size_t new_bytes, int flags, ...);
int __real_mprotect(void *at, size_t bytes, int rights);
int __real_madvise(void *at, size_t bytes, int advice);
int __real_posix_madvise(void *at, size_t bytes, int advice);
int __real_msync(void *at, size_t bytes, int flags);
int __real_mlock(const void *at, size_t bytes);
int __real_munlock(const void *at, size_t bytes);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

static size_t whole(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int is_shared(const void *memory)
{
    const void *begin, *end;
    fsp_program_heap(&begin, &end);
    return (const char *)memory >= (const char *)begin && (const char *)memory < (const char *)end;
}

/* With the place of the call, which the launcher gives its name. */
#define refuse(call, why, bytes) refuse_at(call, why, bytes, __builtin_return_address(0))

static void refuse_at(const char *call, const char *why, size_t bytes, const void *from)
{
    char text[200];
    snprintf(text, sizeof text, "%s of %zu bytes, called at %p: %s", call, bytes, from, why);
    fsp_program_refuse(UNSERVED, text);
}

/* The first mapping with an address of these. */
static struct mapping **first_in(char *begin, char *end)
{
    struct mapping **place = &mappings;
    while (*place && !((*place)->begin < end && begin < (*place)->begin + (*place)->bytes))
        place = &(*place)->next;
    return place;
}

/* The mapping that all of these addresses are in. */
static struct mapping *around(char *begin, size_t bytes)
{
    struct mapping *found = *first_in(begin, begin + bytes);
    return found && found->begin <= begin && begin + bytes <= found->begin + found->bytes ? found : NULL;
}

static int read_in(char *memory, size_t bytes, int fd, off_t offset)
{
    while (bytes > 0) {
        ssize_t got = pread(fd, memory, bytes < PIECE ? bytes : PIECE, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break; /* behind the file's end: zeros */
        memory += got;
        bytes -= (size_t)got;
        offset += got;
    }
    return 0;
}

/* What differs from the file, up to its end. */
static int write_back(const char *memory, size_t bytes, int fd, off_t offset)
{
    static __thread char now[PIECE];
    int result = 0;
    struct stat file;
    if (fstat(fd, &file))
        return -1;
    if (offset >= file.st_size)
        return 0;
    if ((off_t)bytes > file.st_size - offset)
        bytes = (size_t)(file.st_size - offset);
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t count = bytes - done < PIECE ? bytes - done : PIECE;
        ssize_t got = pread(fd, now, count, offset + (off_t)done);
        for (size_t page = 0; page < count; page += PAGE) {
            size_t part = count - page < PAGE ? count - page : PAGE;
            int is_same = got >= (ssize_t)(page + part) && memcmp(now + page, memory + done + page, part) == 0;
            if (!is_same && pwrite(fd, memory + done + page, part, offset + (off_t)(done + page)) != (ssize_t)part)
                result = -1;
        }
    }
    return result;
}

/* Writes back what of a mapping lies there. */
static int save(struct mapping *mapping, char *begin, char *end)
{
    if (mapping->of->fd < 0)
        return 0;
    begin = begin > mapping->begin ? begin : mapping->begin;
    end = end < mapping->begin + mapping->bytes ? end : mapping->begin + mapping->bytes;
    return write_back(begin, (size_t)(end - begin), mapping->of->fd, mapping->offset + (begin - mapping->begin));
}

static int save_all(char *begin, char *end)
{
    int result = 0;
    for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (mapping->begin < end && begin < mapping->begin + mapping->bytes && save(mapping, begin, end))
            result = -1;
    return result;
}

void fsp_clib_save_mappings(void)
{
    fsp_clib_hold();
    save_all(NULL, (char *)UINTPTR_MAX);
    fsp_clib_let_go();
}

/* Another shared mapping of the same file, through which it would not see this one's stores. */
static int is_mapped_twice(const struct stat *file)
{
    for (struct mapping *mapping = mappings; mapping; mapping = mapping->next)
        if (mapping->of->fd >= 0 && mapping->of->device == file->st_dev && mapping->of->file == file->st_ino)
            return 1;
    return 0;
}

static char *insert(char *memory, size_t bytes, off_t offset, int is_file, struct origin *of)
{
    struct mapping *mapping = __wrap_malloc(sizeof *mapping);
    if (!mapping)
        return MAP_FAILED;
    *mapping = (struct mapping){mappings, memory, bytes, offset, is_file, of};
    of->mappings++;
    mappings = mapping;
    return memory;
}

static char *map_new(size_t bytes, int fd, off_t offset, int is_written_back)
{
    struct origin *of = __wrap_malloc(sizeof *of);
    char *memory = __wrap_calloc(1, whole(bytes));
    if (!of || !memory) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    *of = (struct origin){.memory = memory, .fd = -1};
    if (fd >= 0 && read_in(memory, bytes, fd, offset)) {
        __wrap_free(memory);
        __wrap_free(of);
        return MAP_FAILED;
    }
    if (is_written_back) {
        struct stat file;
        fstat(fd, &file);
        of->device = file.st_dev;
        of->file = file.st_ino;
        of->fd = fcntl(fd, F_DUPFD_CLOEXEC, 512); /* out of the way of the program's own numbers */
        if (of->fd < 0)
            of->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    return insert(memory, whole(bytes), offset, fd >= 0, of);
}

/* New contents at a fixed place inside of a mapping. */
static char *map_over(char *at, size_t bytes, int fd, off_t offset)
{
    struct mapping *there = around(at, whole(bytes));
    if (!there || there->of->fd >= 0)
        return NULL;
    memset(at, 0, whole(bytes));
    return fd >= 0 && read_in(at, bytes, fd, offset) ? MAP_FAILED : at;
}

/* The kernel's answers to what is no mapping. */
static int mistake_of(size_t bytes, int rights, int flags, int fd, off_t offset, const struct stat *file)
{
    int type = flags & MAP_TYPE;
    if (bytes == 0 || offset % PAGE || (type != MAP_PRIVATE && type != MAP_SHARED && type != MAP_SHARED_VALIDATE))
        return EINVAL;
    if (flags & MAP_ANONYMOUS)
        return 0;
    if (!file)
        return EBADF;
    int way = fcntl(fd, F_GETFL) & O_ACCMODE;
    if (way == O_WRONLY || (type != MAP_PRIVATE && rights & PROT_WRITE && way != O_RDWR))
        return EACCES;
    return S_ISREG(file->st_mode) || S_ISCHR(file->st_mode) ? 0 : ENODEV;
}

static void *map(void *at, size_t bytes, int rights, int flags, int fd, off_t offset, const void *from)
{
    int is_fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if (!fsp_program_runs() || rights & PROT_EXEC || (is_fixed && !is_shared(at)))
        return __real_mmap(at, bytes, rights, flags, fd, offset);
    struct stat file;
    int is_anonymous = (flags & MAP_ANONYMOUS) != 0;
    int is_open = !is_anonymous && fstat(fd, &file) == 0;
    int mistake = mistake_of(bytes, rights, flags, fd, offset, is_open ? &file : NULL);
    if (mistake) {
        errno = mistake;
        return MAP_FAILED;
    }
    if (is_open && S_ISCHR(file.st_mode)) {
        is_anonymous = file.st_rdev == makedev(NULL_DEVICES, ZERO);
        if (!is_anonymous) {
            refuse_at("mmap of a device", "its memory cannot be shared between nodes", bytes, from);
            return MAP_FAILED;
        }
    }
    if (is_anonymous)
        fd = -1;
    int is_written_back = fd >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE && rights & PROT_WRITE;
    fsp_clib_hold();
    char *result = NULL;
    const char *why = "MAP_FIXED over memory that mmap has not returned";
    if (is_written_back && is_mapped_twice(&file))
        why = "a second shared mapping of a file that is mapped to be written";
    else
        result = is_fixed ? map_over(at, bytes, fd, offset) : map_new(bytes, fd, offset, is_written_back);
    fsp_clib_let_go();
    if (result)
        return result;
    refuse_at("mmap", why, bytes, from);
    errno = EACCES;
    return MAP_FAILED;
}

void *__wrap_mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset)
{
    return map(at, bytes, rights, flags, fd, offset, __builtin_return_address(0));
}

void *__wrap_mmap64(void *at, size_t bytes, int rights, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int rights, int flags, int fd, off_t offset)
{
    return map(at, bytes, rights, flags, fd, offset, __builtin_return_address(0));
}

/* Takes the addresses out of a mapping, which may leave two of it. */
static void cut(struct mapping **place, char *begin, char *end)
{
    struct mapping *mapping = *place;
    char *last = mapping->begin + mapping->bytes;
    save(mapping, begin, end);
    if (begin > mapping->begin && end < last)
        insert(end, (size_t)(last - end), mapping->offset + (end - mapping->begin), mapping->is_file, mapping->of);
    if (begin > mapping->begin) {
        mapping->bytes = (size_t)(begin - mapping->begin);
    } else if (end < last) {
        mapping->offset += end - mapping->begin;
        mapping->bytes = (size_t)(last - end);
        mapping->begin = end;
    } else {
        place = first_in(mapping->begin, last);
        *place = mapping->next;
        if (--mapping->of->mappings == 0) {
            if (mapping->of->fd >= 0)
                close(mapping->of->fd);
            __wrap_free(mapping->of->memory);
            __wrap_free(mapping->of);
        }
        __wrap_free(mapping);
    }
}

int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    if (!fsp_program_runs() || !is_shared(at))
        return __real_munmap(at, bytes);
    if ((uintptr_t)at % PAGE || bytes == 0) {
        errno = EINVAL;
        return -1;
    }
    char *begin = at, *end = begin + whole(bytes);
    int found = 0;
    fsp_clib_hold();
    for (struct mapping **place; *(place = first_in(begin, end)); found = 1)
        cut(place, begin, end);
    fsp_clib_let_go();
    return found ? 0 : __real_munmap(at, bytes); /* which says that it is memory of malloc */
}

void *__wrap_mremap(void *at, size_t bytes, size_t new_bytes, int flags, void *to);
void *__wrap_mremap(void *at, size_t bytes, size_t new_bytes, int flags, void *to)
{
    if (!fsp_program_runs() || !is_shared(at))
        return __real_mremap(at, bytes, new_bytes, flags, to);
    if (flags & ~MREMAP_MAYMOVE) {
        refuse("mremap", "only MREMAP_MAYMOVE is served", bytes);
        return MAP_FAILED;
    }
    bytes = whole(bytes);
    new_bytes = whole(new_bytes);
    if (new_bytes <= bytes)
        return new_bytes == bytes || __wrap_munmap((char *)at + new_bytes, bytes - new_bytes) == 0 ? at : MAP_FAILED;
    fsp_clib_hold();
    struct mapping *mapping = around(at, bytes);
    char *result = MAP_FAILED;
    errno = mapping ? ENOMEM : EFAULT;
    if (mapping && mapping->is_file) {
        fsp_clib_let_go();
        refuse("mremap", "a mapping of a file cannot grow", bytes);
        return MAP_FAILED;
    }
    if (mapping && flags & MREMAP_MAYMOVE)
        result = map_new(new_bytes, -1, 0, 0);
    fsp_clib_let_go();
    if (result != MAP_FAILED) {
        memcpy(result, at, bytes);
        __wrap_munmap(at, bytes);
    }
    return result;
}

/* Rights cannot be kept for the program; where it would see that, it is told. */
int __wrap_mprotect(void *at, size_t bytes, int rights);
int __wrap_mprotect(void *at, size_t bytes, int rights)
{
    if (!fsp_program_runs() || !is_shared(at))
        return __real_mprotect(at, bytes, rights);
    fsp_clib_hold();
    int is_mapped = around(at, bytes ? whole(bytes) : PAGE) != NULL;
    fsp_clib_let_go();
    if (!is_mapped)
        return __real_mprotect(at, bytes, rights);
    struct sigaction handler;
    int is_handled = !sigaction(SIGSEGV, NULL, &handler) && handler.sa_handler != SIG_DFL && handler.sa_handler != SIG_IGN;
    if (rights & PROT_EXEC || (is_handled && rights != (PROT_READ | PROT_WRITE))) {
        refuse("mprotect", "the rights of shared memory cannot be taken away or be those of code", bytes);
        errno = EACCES;
        return -1;
    }
    return 0;
}

/* Memory of the program that is given up reads as zeros, or as the file, afterwards. */
static void give_up(char *begin, char *end)
{
    struct mapping *mapping = around(begin, (size_t)(end - begin));
    if (!mapping || mapping->is_file)
        return;
    memset(begin, 0, (size_t)(end - begin));
}

int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    if (!fsp_program_runs() || !is_shared(at))
        return __real_madvise(at, bytes, advice);
    if (advice == MADV_DONTNEED && bytes > 0) {
        fsp_clib_hold();
        give_up(at, (char *)at + whole(bytes));
        fsp_clib_let_go();
    }
    return 0;
}

int __wrap_posix_madvise(void *at, size_t bytes, int advice);
int __wrap_posix_madvise(void *at, size_t bytes, int advice)
{
    return is_shared(at) ? 0 : __real_posix_madvise(at, bytes, advice);
}

int __wrap_mlock(const void *at, size_t bytes);
int __wrap_mlock(const void *at, size_t bytes)
{
    return is_shared(at) ? 0 : __real_mlock(at, bytes);
}

int __wrap_munlock(const void *at, size_t bytes);
int __wrap_munlock(const void *at, size_t bytes)
{
    return is_shared(at) ? 0 : __real_munlock(at, bytes);
}

int __wrap_msync(void *at, size_t bytes, int flags);
int __wrap_msync(void *at, size_t bytes, int flags)
{
    if (!fsp_program_runs() || !is_shared(at))
        return __real_msync(at, bytes, flags);
    fsp_clib_hold();
    int result = save_all(at, (char *)at + whole(bytes));
    fsp_clib_let_go();
    return result;
}
