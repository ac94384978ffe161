/* Micro benchmark: what each operation of the shared memory costs.  Two processes or more, one group of cases a run:
 *
 *   finespun run -n 2 --refresh off --quiet --stats S micro --group misses --board FILE
 *
 * All groups but `refreshes` measure what faults and what acquires close: with --refresh off, for most read the same pages in each round.
 * FILE is an empty file that all processes map, to meet without a release or an acquire.  Prints one line per case:
 *
 *   bench: read-miss ops 768 min 2400 median 2560            nanoseconds an operation
 *
 * and marks each case as a phase, for the counts.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../apps/common/options.h"

static const extent FULL = {.pages = 256, .rounds = 12, .pairs = 2000, .most_dirty = 1024, .stream = 64u << 20, .far = FAR_PAGES};
/* For what is repeated at many points of an axis, in a heap of a mebibyte too. */
static const extent SHORT = {.pages = 32, .rounds = 12, .pairs = 256, .most_dirty = 16};
static const extent TINY = {.pages = 32, .rounds = 2, .pairs = 20, .most_dirty = 16, .stream = 1u << 20, .far = FAR_PAGES_TINY};

typedef struct group {
    const char *name;
    void (*run)(bench *bench);
} group;

static const group GROUPS[] = {
    {"misses", run_misses}, {"releases", run_releases}, {"acquires", run_acquires},
    {"locks", run_locks},   {"barriers", run_barriers}, {"crowd", run_crowd},
    {"stream", run_stream}, {"scale", run_scale},       {"memory", run_memory},
    {"rereads", run_rereads}, {"refreshes", run_refreshes},
    {"far", run_far},
};

typedef struct board {
    _Atomic uint32_t arrived, round;
    _Alignas(128) messages messages;
} board;

static board *the_board;

void meet(void)
{
    uint32_t round = atomic_load(&the_board->round);
    if (atomic_fetch_add(&the_board->arrived, 1) + 1 == (uint32_t)fsp_processes()) {
        atomic_store(&the_board->arrived, 0);
        atomic_store(&the_board->round, round + 1);
    }
    while (atomic_load(&the_board->round) == round)
        sched_yield();
}

messages *the_messages(void)
{
    return &the_board->messages;
}

static board *map_board(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(board)) != 0) {
        perror(path);
        exit(2);
    }
    void *memory = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    close(file);
    return memory;
}

/* Process 0 allocates, all learn where. */
static void allocate(bench *bench)
{
    uintptr_t *where = fsp_malloc_all(4 * sizeof *where);
    size_t pages = bench->extent.most_dirty > bench->extent.pages ? bench->extent.most_dirty : bench->extent.pages;
    if (bench->me == 0) {
        where[0] = (uintptr_t)fsp_malloc_on(pages * PAGE, fsp_nodes() - 1);
        where[1] = (uintptr_t)fsp_malloc_on(2 * pages * PAGE, 0);
        where[2] = (uintptr_t)fsp_calloc(MUTEXES + LINES, 64);
        where[3] = (uintptr_t)fsp_calloc(2, sizeof(fsp_flag_t));
    }
    fsp_barrier_all();
    bench->far = (uint64_t *)where[0];
    bench->near = (uint64_t *)where[1];
    bench->mutexes = (fsp_mutex_t *)where[2];
    bench->flags = (fsp_flag_t *)where[3];
    fsp_barrier_all();
}

int main(int argc, char **argv)
{
    const char *name = NULL, *path = NULL;
    bool tiny = false;
    uint64_t dirty = 0, sharers = 1;
    const option options[] = {
        {.flag = "--group", .kind = OPTION_TEXT, .value = &name, .help = "misses, releases, acquires, locks, barriers, crowd, stream, scale, memory, rereads, refreshes, far"},
        {.flag = "--board", .kind = OPTION_TEXT, .value = &path, .help = "an empty file that all processes can map"},
        {.flag = "--dirty", .kind = OPTION_NUMBER, .value = &dirty, .most = 1 << 20, .help = "in groups scale and memory: pages that a release finds changed"},
        {.flag = "--sharers", .kind = OPTION_NUMBER, .value = &sharers, .least = 1, .most = 64, .help = "in group scale: processes beside the home's that have copies of them"},
        {.flag = "--tiny", .kind = OPTION_SWITCH, .value = &tiny, .help = "as little as possible: does it run?"},
    };
    const program program = {.name = "micro", .summary = "What each operation of the shared memory costs.",
                             .options = options, .option_count = sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (path == NULL)
        options_refuse(&program, "--board", "expected a file");
    const group *chosen = NULL;
    for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++)
        if (name != NULL && strcmp(GROUPS[i].name, name) == 0)
            chosen = &GROUPS[i];
    if (chosen == NULL)
        options_refuse(&program, "--group", "expected one of those that --help lists");
    the_board = map_board(path);
    fsp_init_spmd(&argc, &argv);
    if (fsp_processes() < 2)
        fsp_abort(2, "the micro benchmark needs two processes: run it with -n 2");
    bool is_short = chosen->run == run_scale || chosen->run == run_memory;
    bench bench = {.extent = tiny ? TINY : is_short ? SHORT : FULL, .me = fsp_process(), .other = fsp_processes() - 1, .sharers = sharers};
    if (dirty > 0)
        bench.extent.most_dirty = dirty;
    pin(bench.me);
    allocate(&bench);
    chosen->run(&bench);
    fsp_finalize();
    return 0;
}
