/* Calls with a path or a small object in shared memory, which another node wrote last or looks at afterwards.
 *
 * run: -n 2
 * run: -n 2 --protocol strings-sc
 * run: -n 2 --protocol strings-sc --transport tcp
 * run: -n 2 -p 2 --protocol strings-rc
 * run: -n 2 -p 2 --transport tcp
 * run: -n 2 --faults mprotect
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* Everything that the calls get, anew for each so that no page of it is valid. */
struct all {
    char directory[100], file[200], other[200], link[200], text[200], long_path[6000];
    struct stat stat;
    struct timespec time, left;
    struct rusage usage;
    struct pollfd polls[2];
    struct epoll_event events[4];
    int pair[2], status;
    char random[64];
};

/* Processor 0 writes the paths, the last processor gets them with no page valid. */
static struct all *fresh(const char *directory) {
    struct all *all = fsp_malloc_all(sizeof *all);
    if (fsp_process() == 0) {
        strcpy(all->directory, directory);
        sprintf(all->file, "%s/file", directory);
        sprintf(all->other, "%s/other", directory);
        sprintf(all->link, "%s/link", directory);
        memset(all->long_path, 'a', sizeof all->long_path - 1);
    }
    fsp_barrier_all();
    return all;
}

#define CASE(...)                                                                                                  \
    do {                                                                                                           \
        struct all *at = fresh(directory);                                                                         \
        if (caller) {                                                                                              \
            __VA_ARGS__;                                                                                            \
        }                                                                                                          \
        fsp_barrier_all();                                                                                         \
    } while (0)

int main(void) {
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    char directory[] = "/tmp/finespun-records-XXXXXX";
    int caller = fsp_process() == fsp_processes() - 1, fd = -1, pair[2];
    FILE *stream;
    DIR *listing;
    char *paths = fsp_malloc_all(sizeof directory);
    if (fsp_process() == 0) CHECK(mkdtemp(directory) && strcpy(paths, directory));
    fsp_barrier_all();
    strcpy(directory, paths);

    CASE(CHECK((fd = open(at->file, O_CREAT | O_RDWR, 0600)) >= 0 && write(fd, "12345", 5) == 5 && close(fd) == 0));
    CASE(CHECK((fd = openat(AT_FDCWD, at->file, O_RDONLY)) >= 0));
    CASE(CHECK(fstat(fd, &at->stat) == 0 && at->stat.st_size == 5 && (at->stat.st_mode & 0777) == 0600));
    CASE(CHECK(stat(at->file, &at->stat) == 0 && at->stat.st_size == 5));
    CASE(CHECK(lstat(at->file, &at->stat) == 0 && S_ISREG(at->stat.st_mode)));
    CASE(CHECK(fstatat(AT_FDCWD, at->file, &at->stat, 0) == 0 && at->stat.st_size == 5));
    CASE(CHECK((stream = fopen(at->file, "r")) && fgetc(stream) == '1' && fclose(stream) == 0));
    CASE(CHECK((listing = opendir(at->directory)) && readdir(listing) && closedir(listing) == 0));
    CASE(CHECK(access(at->file, R_OK) == 0 && access(at->other, R_OK) == -1 && errno == ENOENT));
    CASE(CHECK(access(at->long_path, R_OK) == -1 && errno == ENAMETOOLONG));
    CASE(CHECK(truncate(at->file, 3) == 0 && stat(at->file, &at->stat) == 0 && at->stat.st_size == 3));
    CASE(CHECK(rename(at->file, at->other) == 0 && unlink(at->other) == 0));
    CASE(CHECK(mkdir(at->other, 0700) == 0 && rmdir(at->other) == 0));
    CASE(CHECK(symlink("/target", strcpy(at->text, at->link)) == 0));
    CASE(CHECK(readlink(at->link, at->text, sizeof at->text) == 7 && memcmp(at->text, "/target", 7) == 0));
    CASE(CHECK(unlink(at->link) == 0 && rmdir(at->directory) == 0));

    CASE(CHECK(pipe(at->pair) == 0 && close(at->pair[0]) == 0 && close(at->pair[1]) == 0));
    CASE(CHECK(pipe2(at->pair, O_CLOEXEC) == 0 && close(at->pair[0]) == 0 && close(at->pair[1]) == 0));
    CASE(CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, at->pair) == 0); memcpy(pair, at->pair, sizeof pair));
    CASE(at->polls[0] = (struct pollfd){pair[0], POLLIN, 0}; at->polls[1] = (struct pollfd){pair[1], POLLOUT, 0};
         CHECK(poll(at->polls, 2, -1) == 1 && at->polls[0].revents == 0 && at->polls[1].revents == POLLOUT));
    CASE(int set = epoll_create1(0); struct epoll_event event = {EPOLLOUT, {.u64 = 77}};
         CHECK(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event) == 0 && epoll_wait(set, at->events, 4, -1) == 1);
         CHECK(at->events[0].data.u64 == 77); close(set));
    CASE(CHECK(getrandom(at->random, sizeof at->random, 0) == sizeof at->random));
    CASE(CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at->time) == 0 && at->time.tv_sec + at->time.tv_nsec > 0));
    CASE(CHECK(clock_gettime(CLOCK_MONOTONIC, &at->time) == 0 && at->time.tv_sec + at->time.tv_nsec > 0));
    CASE(CHECK(nanosleep(&at->time, &at->left) == 0));
    CASE(CHECK(getrusage(RUSAGE_SELF, &at->usage) == 0 && at->usage.ru_maxrss > 0));
    CASE(pid_t pid = fork(); if (pid == 0) _exit(5);
         CHECK(waitpid(pid, &at->status, 0) == pid && WEXITSTATUS(at->status) == 5));
    fsp_finalize();
    return 0;
}
