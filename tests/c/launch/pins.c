/* --pin: prints the cores that each processor may use, as the kernel tells them, a line each: "processor 1: 3".
 * Run by tests/cluster/pins.rs, which knows the cores of this machine.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../check.h"

struct told {
    char cores[64];
};

static void look(void *argument)
{
    struct told *mine = (struct told *)argument + fsp_processor();
    FILE *status = fopen("/proc/thread-self/status", "r");
    char line[256];
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "Cpus_allowed_list: %63s", mine->cores) == 1)
            break;
    fclose(status);
    CHECK(mine->cores[0] != '\0');
}

int main(int argc, char **argv)
{
    CHECK(fsp_init(&argc, &argv) == FSP_OK);
    struct told *told = fsp_calloc((size_t)fsp_processors(), sizeof *told);
    fsp_parallel(look, told);
    for (int processor = 0; processor < fsp_processors(); processor++)
        printf("processor %d: %s\n", processor, told[processor].cores);
    fsp_finalize();
    return 0;
}
