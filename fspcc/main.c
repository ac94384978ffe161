/* What the start-up files call in place of main (fspcc --share-stacks): main, on a shared stack.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/program.h>

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);

int __wrap_main(int argc, char **argv, char **envp)
{
    return fsp_program_main(__real_main, argc, argv, envp);
}
