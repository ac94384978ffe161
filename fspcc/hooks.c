/* What the library calls back in a program of threads.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shared.h"

#include <finespun/program.h>

static void thread_begins(void)
{
    fsp_clib_in_process();
    fsp_clib_on_thread();
}

const struct fsp_program_hooks fsp_clib_hooks = {
    .thread_begins = thread_begins,
    .thread_joined = fsp_clib_on_thread,
    .thread_ends = fsp_clib_thread_ends,
    .release = fsp_clib_release,
    .exits = fsp_clib_on_exit,
    .create = fsp_clib_create,
    .kill = fsp_clib_kill,
};
