/* errno changes only where a call of the C library fails: not by faults, not by the library's functions when they succeed, not by
 * calls on shared buffers.
 *
 * run: -n 2
 * run: -n 2 -p 2
 * run: -n 2 -t 2
 * run: -n 2 --transport tcp
 * run: -n 2 --faults mprotect
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "check.h"

#define PAGE 4096
#define MARK 4711

int main(void) {
    CHECK(fsp_init_spmd(NULL, NULL) == FSP_OK);
    volatile char *memory = fsp_malloc_all(40 * PAGE);
    fsp_mutex_t *mutex = fsp_malloc_all(sizeof *mutex);
    fsp_flag_t *flag = fsp_malloc_all(sizeof *flag);
    int pair[2], me = fsp_process();
    CHECK(pipe(pair) == 0);
    errno = MARK;
    for (int round = 0; round < 20; round++) {
        /* Faults of all kinds, pages passed around. */
        for (int page = 0; page < 20; page++) {
            if (me == round % fsp_processes()) memory[page * PAGE] = (char)round;
            CHECK(errno == MARK);
        }
        fsp_barrier_all();
        CHECK(errno == MARK);
        for (int page = 0; page < 20; page++) CHECK(memory[page * PAGE] == (char)round && errno == MARK);
        fsp_mutex_lock(mutex);
        CHECK(errno == MARK);
        memory[20 * PAGE]++;
        CHECK(errno == MARK);
        fsp_mutex_unlock(mutex);
        CHECK(errno == MARK);
        char *own = fsp_malloc(100000);
        CHECK(errno == MARK);
        fsp_free(own);
        CHECK(errno == MARK);
        if (me == 0) fsp_flag_set(flag, (uint32_t)round + 1);
        fsp_flag_wait(flag, (uint32_t)round + 1);
        CHECK(errno == MARK);
        CHECK(write(pair[1], (char *)memory, 5 * PAGE) == 5 * PAGE && errno == MARK);
        CHECK(read(pair[0], (char *)memory + (21 + 5 * (me % 2)) * PAGE, 5 * PAGE) == 5 * PAGE && errno == MARK);
        CHECK(read(-1, (char *)memory, 10) == -1 && errno == EBADF);
        errno = MARK;
        fsp_barrier_all();
    }
    fsp_finalize();
    return 0;
}
