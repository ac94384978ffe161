/* What the start-up files call in place of main (fspcc --pthread): main with its arguments and the environment in shared memory, on
 * a shared stack if there are any (--share-stacks).
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <alloca.h>
#include <finespun/program.h>

#include "shared.h"

/* std::ios_base::Init::Init(): a C++ program, whose std::cin reads stdin past what wraps the calls of C. */
extern void ios_ready(void *) __asm__("_ZNSt8ios_base4InitC1Ev") __attribute__((weak));

/* Linked by this. */
extern const struct fsp_program_hooks fsp_clib_hooks;
const struct fsp_program_hooks *const fsp_clib_hooked = &fsp_clib_hooks;

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);
extern char **__wrap_environ;

int __wrap_main(int argc, char **argv, char **envp)
{
    (void)envp;
    fsp_clib_in_process();
    if (ios_ready)
        fsp_clib_bare_input();
    /* The page that the first frames are in is not taken from other processes. */
    *(volatile char *)alloca(8192) = 0;
    return fsp_program_main(__real_main, argc, fsp_clib_words(argv), __wrap_environ);
}
