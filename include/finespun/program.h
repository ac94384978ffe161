/* What fspcc --share-globals and --share-malloc link into a program calls; programs themselves do not need it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_PROGRAM_H
#define FINESPUN_PROGRAM_H

#include <finespun/base.h>

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says that the variables in the `bytes` bytes at `globals` are to be shared when the runtime starts: whole pages of the
 * program's data at a fixed address, the same in every process.  Before any code of the program or a library runs. */
void fsp_program_globals(void *globals, size_t bytes);

/* Starts the runtime in the main model, as fsp_init does, before the program's own constructors: in every process but
 * that of processor 0 it does not return.  A later fsp_init of the program does nothing and returns FSP_OK.  Nothing if
 * the runtime runs already. */
fsp_status fsp_program_start(void);

/* The addresses of the shared heap, from *begin up to *end: also right after fsp_finalize.  NULL both before the start. */
void fsp_program_heap(const void **begin, const void **end);

/* 1 if shared memory may be used and allocated: between start and end, not in a child made by fork. */
int fsp_program_runs(void);

/* The stacks of the threads that the program makes are shared memory, and so is the one that main runs on.  Before the start. */
void fsp_program_share_stacks(void);

/* What is called back in a program of threads, in whichever process. */
struct fsp_program_hooks {
    void (*thread_begins)(void); /* in the new thread */
    void (*thread_joined)(void); /* in the one that has joined it */
    void (*thread_ends)(void);
    void (*release)(void);       /* before each call that may release, on the caller's stack; it makes none that locks */
    void (*exits)(int code);     /* where the program exits, while shared memory may still be used; also in a child of fork */
    /* A thread is about to be made: what it is to run instead. */
    void (*create)(void *(**function)(void *), void **argument);
    /* A signal is sent to another thread: a number of errno, or 0. */
    int (*kill)(unsigned long thread, int number);
};

/* Before the start.  The hooks stay as they are. */
void fsp_program_hook(const struct fsp_program_hooks *hooks);

/* Ends the job, with this exit code and no message, because the program ends here with all its threads. */
void fsp_program_exit(int code);

/* Ends the job with one of Finespun's errors, or returns it, as fsp_errors_return says. */
fsp_status fsp_program_refuse(int number, const char *what);

/* The caller's processor; -1 for a thread that runs beside others because no processor was idle. */
int fsp_program_processor(void);

/* Calls a program's main on a shared stack, if stacks are shared and the runtime runs: its result. */
int fsp_program_main(int (*main)(int, char **, char **), int argc, char **argv, char **envp);

/* An operation on an atomic word: whether it stores (a load does not, nor a compare-and-exchange that fails), and what it found, or some
 * of it.  It may touch shared memory and calls nothing of the library. */
typedef struct fsp_operated {
    unsigned long stores;
    unsigned long found;
} fsp_operated;
typedef fsp_operated (*fsp_operation)(volatile void *word, void *arguments);

/* What kind of operation it is: one that an instruction can do; such a load, which may be run twice, and finds all that it loads; or one
 * that no instruction can do, which is run wherever several processes may share the word. */
enum { FSP_BY_INSTRUCTION, FSP_LOAD, FSP_BY_LOCK };

/* Runs an operation on a word of shared memory so that it is atomic on all nodes: 1.  0, and nothing was run, where the processor's
 * own instructions do: in private memory, in a job of one node, before the start and after the end. */
int fsp_program_atomic(volatile void *word, int kind, fsp_operation operation, void *arguments);

/* The system call futex for a word of shared memory: its result, or minus a number of errno; LONG_MIN, and nothing was done, for any other
 * word.  A wake does not know how many it wakes, and returns 0. */
long fsp_program_futex(const volatile unsigned *word, int operation, unsigned value, const struct timespec *timeout, unsigned mask);

/* Ends the job: a static variable's initialisation needs the variable. */
void fsp_program_recursion(const void *guard);

/* A fence between all processors of the job: releases, and acquires what was released by those that came to one before. */
void fsp_program_fence(void);

#ifdef __cplusplus
}
#endif
#endif
