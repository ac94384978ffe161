/* Starts the runtime ahead of the program: before its constructors, so that everything the program makes is made once, by
 * processor 0's process.  The other processes stay in here and serve.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/program.h>

/* finespun/pthread.h declares it too, and much that is not for here. */
void fsp_pthread_start(void);

/* By the start-up files and by globals.ld; without --share-globals the second is not there. */
extern char __data_start[];
extern char fsp_globals_end[] __attribute__((weak));

/* By fspcc --pthread, and by --share-stacks. */
extern char fsp_program_threads[] __attribute__((weak));
extern char fsp_program_stacks[] __attribute__((weak));

/* Linked with --pthread. */
extern const struct fsp_program_hooks fsp_clib_hooks __attribute__((weak));

/* std::ios_base::Init::Init(): each source of a C++ program makes std::cout and its kin ready by a constructor, which the
 * processes that serve never run. */
extern void ios_ready(void *) __asm__("_ZNSt8ios_base4InitC1Ev") __attribute__((weak));
static char ios_init[16];

/* Ahead of everything, the library's own start included: only says where the globals are. */
static void declare_globals(void)
{
    if (fsp_globals_end)
        fsp_program_globals(__data_start, (size_t)(fsp_globals_end - __data_start));
}
__attribute__((section(".preinit_array"), used)) static void (*const declare)(void) = declare_globals;

/* Before all constructors of the program, whose priorities begin at 101. */
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
void fsp_program_constructor(void) __attribute__((constructor(65)));

void fsp_program_constructor(void)
{
    if (ios_ready)
        ios_ready(ios_init);
    if (fsp_program_stacks)
        fsp_program_share_stacks();
    if (&fsp_clib_hooks)
        fsp_program_hook(&fsp_clib_hooks);
    if (fsp_program_threads)
        fsp_pthread_start();
    else
        fsp_program_start();
}
