/* Start and end, identity, errors, phases.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FINESPUN_BASE_H
#define FINESPUN_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calls return that can fail.  By default an error ends the whole job with one message (most callers would
 * not look); after fsp_errors_return(1) the call returns the status and the job goes on. */
typedef enum fsp_status {
    FSP_OK = 0,
    FSP_NOT_STARTED = 4, /* before fsp_init or after fsp_finalize */
    FSP_ARGUMENT = 5,    /* an argument is out of range */
    FSP_MACHINE = 6,     /* the machine refused something needed */
    FSP_PRIVATE = 11,    /* a mutex or other object in private memory, in a job of several processes */
    FSP_BUSY = 16,       /* fsp_mutex_trylock: held; fsp_thread_create: no processor is idle */
    FSP_NOT_OWNER = 20,  /* unlock of a mutex the caller does not hold */
    FSP_COUNT = 21,      /* processors disagree about a barrier's count */
    FSP_RELOCK = 22,     /* the caller already holds the mutex */
    FSP_ALONE = 25,      /* fsp_barrier_all where no other processor runs anything */
    FSP_NO_MEMORY = 50,  /* the shared heap is full */
    FSP_BAD_FREE = 51,   /* not a live allocation */
    FSP_FORKED = 80,     /* called in a child made by fork */
    FSP_TWICE = 81       /* fsp_init called again */
} fsp_status;

/* Starts the runtime in the "main" model: main goes on in processor 0 only.  In every other process of the job
 * the call does not return: it serves fsp_thread_create and fsp_parallel, and exits when processor 0 ends.
 * argc and argv may be NULL; they are left as they are.  Without a launcher: one node, one processor.
 * Call it once, first in main, before other threads exist.  Returns FSP_OK or FSP_TWICE, FSP_MACHINE, FSP_FORKED. */
fsp_status fsp_init(int *argc, char ***argv);

/* Starts the runtime in the SPMD model: main goes on in every process (as MPI, SHMEM and TreadMarks programs do).
 * With more than one thread per process (-t), the others serve fsp_thread_create and fsp_parallel. */
fsp_status fsp_init_spmd(int *argc, char ***argv);

/* Ends the runtime.  SPMD: waits for all processes.  Main model: ends the serving processes.  Shared memory is gone
 * afterwards: an access to it is E004.  Called by exit(0) when the program does not; what exit runs later must then not use shared
 * memory, and is not told when it does.  A program of fspcc whose runtime starts before main keeps its variables, and what main's
 * process has of the heap, until the process ends. */
void fsp_finalize(void);

/* Ends the whole job at once with this exit code (1-255) and a message that names this processor. */
void fsp_abort(int code, const char *why) __attribute__((noreturn));

int fsp_node(void);                /* the caller's node, 0 .. fsp_nodes()-1 */
int fsp_nodes(void);               /* how many nodes */
int fsp_processor(void);           /* the caller's processor, 0 .. fsp_processors()-1; nodes hold consecutive ones */
int fsp_processors(void);          /* how many processors in the job */
int fsp_processors_per_node(void); /* how many on each node */
int fsp_process(void);             /* the caller's process, 0 .. fsp_processes()-1; nodes hold consecutive ones */
int fsp_processes(void);           /* how many processes in the job: one runs -t processors */

const char *fsp_version(void);             /* "0.1.0" */
const char *fsp_strerror(fsp_status code); /* one sentence; never NULL */
const char *fsp_last_error(void);          /* the calling thread's last error, whole; "" if none */
void fsp_errors_return(int on);            /* 1: misuse returns a status; 0 (at start): it ends the job */

/* Marks a phase of the program in this processor, for reports.  Names are copied (31 bytes); phases may nest. */
void fsp_phase_begin(const char *name);
void fsp_phase_end(void);

#ifdef __cplusplus
}
#endif
#endif
