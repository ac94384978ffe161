/* What the files here have in common that keep the C library's state for the whole program (--pthread).
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FSP_SHARED_H
#define FSP_SHARED_H

#include <stddef.h>

/* A variable of the whole program, zero at its start.  Other variables of these files are private to each process: globals.ld. */
#define SHARED __attribute__((section(".bss.fsp_shared")))

/* One thread of the program at a time, from hold to let_go; nothing after the program's end, and in a child of fork. */
void fsp_clib_hold(void);
void fsp_clib_let_go(void);

/* Copies into shared memory; NULL if there is no room. */
void *fsp_clib_copy(const void *bytes, size_t count);
char *fsp_clib_copy_text(const char *text);
/* A text that the C library has allocated, or NULL, moved there. */
char *fsp_clib_taken_over(char *text);

/* Words and their list, which ends with NULL, copied there. */
char **fsp_clib_words(char **words);

/* Another process may have changed the environment or the locale: they are changed in this one. */
void fsp_clib_catch_up(void);

/* The program ends: files that are mapped to be written get what was stored. */
void fsp_clib_save_mappings(void);

/* This thread's stores are about to be released: streams hold nothing back. */
void fsp_clib_release(void);
/* Threads may run now, in this process too: standard input is read without a buffer, if it is a pipe. */
void fsp_clib_bare_input(void);
/* A thread begins, or has been joined. */
void fsp_clib_on_thread(void);

/* The program ends, by exit: handlers run. */
void fsp_clib_on_exit(int code);
/* This process is one of the program's. */
void fsp_clib_in_process(void);

/* A thread begins or ends in this process, sends a signal to another, is about to be made by this one. */
void fsp_clib_thread_begins(void);
void fsp_clib_thread_ends(void);
int fsp_clib_kill(unsigned long name, int number);
void fsp_clib_create(void *(**function)(void *), void **argument);

#endif
