/* A child made by fork after the start is no part of the job: ordinary work and exec go on in it, shared memory and the
 * library do not, and the parent does not notice.
 *
 * run: -n 2
 * run: -n 2 --protocol strings-sc
 * run: -n 2 --protocol strings-sc --transport tcp
 * run: -n 2 -p 2 --protocol strings-rc
 * run: -n 2 --transport tcp
 * run: -n 2 --faults mprotect
 *
 * run: -n 2 -- touch
 * expect: E080
 * run: -n 2 --faults mprotect -- touch
 * expect: E080
 * run: -n 2 -- call
 * expect: E080
 *
 * Without an argument what the children print goes into a pipe and is checked here; with one it is left to be seen.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static volatile int *shared;

static void ordinary_work(void) {
    int pair[2];
    char text[6] = "";
    char *memory = malloc(100000);
    if (!memory || pipe(pair) || write(pair[1], "hello", 5) != 5 || read(pair[0], text, 5) != 5) _exit(1);
    memset(memory, 1, 100000);
    free(memory);
    exit(strcmp(text, "hello") ? 2 : 7); /* exit, not _exit: the parent's runtime must not be ended by it */
}
static void exec(void) {
    execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
    _exit(1);
}
static void load(void) { _exit(*shared); }
static void store(void) { *shared = 1, _exit(0); }
static void system_call(void) { _exit(write(2, (void *)shared, 10) == 10); }
static void allocate(void) { _exit(fsp_malloc(10) != NULL); }
static void lock(void) { _exit(fsp_mutex_lock((fsp_mutex_t *)(shared + 4))); }
static void start(void) { _exit(fsp_init(NULL, NULL)); }
static void returned(void) {
    fsp_errors_return(1);
    _exit(fsp_malloc(10) == NULL && fsp_barrier_all() == FSP_FORKED && strstr(fsp_last_error(), "E080") ? 11 : 1);
}
static void grandchild(void) {
    pid_t pid = fork();
    int status;
    if (pid == 0) load();
    _exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
/* Its signals are its own again as far as shared memory is not meant. */
static void crash(void) { *(volatile int *)8 = 1; }
static void *in_thread(void *argument) { return argument; }
static void threads(void) {
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, in_thread, environ) || pthread_join(thread, &result)) _exit(1);
    _exit(result == environ ? 12 : 2);
}

/* Runs `work` in a child: its exit code, or minus the signal, and what it printed on stderr if that is wanted. */
static int in_child(pid_t (*make)(void), void (*work)(void), char *printed, size_t room) {
    int pair[2], status;
    CHECK(pipe(pair) == 0);
    pid_t pid = make();
    if (pid == 0) {
        if (printed) dup2(pair[1], 2);
        close(pair[0]), close(pair[1]);
        work();
    }
    CHECK(pid > 0);
    close(pair[1]);
    size_t have = 0;
    for (ssize_t more; printed && (more = read(pair[0], printed + have, room - 1 - have)) > 0;) have += (size_t)more;
    if (printed) printed[have] = 0;
    close(pair[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv) {
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    shared = fsp_malloc_all(4096);
    int me = fsp_process();
    if (me == 0) *shared = 55;
    fsp_barrier_all();
    if (argc > 1) {
        if (me == 1) CHECK(in_child(fork, strcmp(argv[1], "touch") ? allocate : load, NULL, 0) == 80);
    } else {
        char text[4096];
        CHECK(in_child(fork, ordinary_work, NULL, 0) == 7);
        CHECK(in_child(fork, exec, NULL, 0) == 9);
        CHECK(in_child(fork, threads, NULL, 0) == 12);
        CHECK(in_child(fork, returned, text, sizeof text) == 11 && text[0] == 0);
        CHECK(in_child(fork, crash, NULL, 0) == -SIGSEGV);
        static void (*const forbidden[])(void) = {load, store, system_call, allocate, lock, start, grandchild};
        for (size_t index = 0; index < sizeof forbidden / sizeof forbidden[0]; index++) {
            CHECK(in_child(fork, forbidden[index], text, sizeof text) == 80);
            const char *error = strstr(text, "error E080");
            CHECK(error && !strstr(error + 1, "error "));
        }
        /* Where no fork handlers run. */
        CHECK(in_child(_Fork, load, text, sizeof text) == 80 && strstr(text, "E080"));
        CHECK(in_child(_Fork, allocate, text, sizeof text) == 80 && strstr(text, "E080"));
        CHECK(system("exit 3") == 3 << 8);
        pid_t pid;
        int status;
        char *arguments[] = {"sh", "-c", "exit 4", NULL};
        CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 4);
    }
    fsp_barrier_all();
    CHECK(*shared == 55);
    fsp_barrier_all();
    if (me == 0) *shared = 66;
    fsp_barrier_all();
    CHECK(*shared == 66);
    fsp_finalize();
    return 0;
}
