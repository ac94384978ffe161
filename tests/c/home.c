/* fsp_home tells -1 of a page that no processor has touched, whichever node decides its home, and the node that touched it first
 * afterwards.
 *
 * run: -n 1
 * run: -n 3
 * run: -n 3 --transport tcp
 * run: -n 2 --protocol csm-none-mg --transport tcp
 * run: -n 2 --protocol strings-rc
 * run: -n 2 --protocol strings-sc
 * run: -n 2 --protocol tmk
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

enum { PAGE = 4096, PAGES = 64 };

int main(int argc, char **argv) {
    fsp_init_spmd(&argc, &argv);
    volatile char *pages = fsp_malloc_all(PAGES * PAGE);
    for (int page = 0; page < PAGES; page++) CHECK(fsp_home((char *)pages + page * PAGE) == -1);
    fsp_barrier_all();
    if (fsp_processor() == 0)
        for (int page = 0; page < PAGES; page++) pages[page * PAGE] = 1;
    fsp_barrier_all();
    if (fsp_node() == 0)
        for (int page = 0; page < PAGES; page++) CHECK(fsp_home((char *)pages + page * PAGE) == 0);
    fsp_finalize();
    return 0;
}
