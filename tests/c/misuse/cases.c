/* Programs that misuse the library, one for each name in the table below: each must end its job with one message.
 * Run by tests/cluster/misuse.rs.  All are SPMD; what only one processor does wrong, the last one does, so that it is
 * on another node than the launcher's first. */
#define _GNU_SOURCE
#include <finespun/finespun.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

typedef struct shared {
    fsp_mutex_t mutex;
    fsp_cond_t cond;
    fsp_barrier_t barrier;
    fsp_flag_t flag;
    char *memory;
} shared;

static int is_last(void) { return fsp_processor() == fsp_processors() - 1; }

static void nothing(void *argument) { (void)argument; }

/* ---- mutexes and barriers ---- */

static void unlock_free(shared *shared)
{
    if (is_last()) fsp_mutex_unlock(&shared->mutex);
}

static void unlock_foreign(shared *shared)
{
    if (fsp_processor() == 0) fsp_mutex_lock(&shared->mutex);
    fsp_barrier_all();
    if (is_last()) fsp_mutex_unlock(&shared->mutex);
}

static void unlock_twice(shared *shared)
{
    if (!is_last()) return;
    fsp_mutex_lock(&shared->mutex);
    fsp_mutex_unlock(&shared->mutex);
    fsp_mutex_unlock(&shared->mutex);
}

static void relock(shared *shared)
{
    if (!is_last()) return;
    fsp_mutex_lock(&shared->mutex);
    fsp_mutex_lock(&shared->mutex);
}

static void retrylock(shared *shared)
{
    if (!is_last()) return;
    fsp_mutex_lock(&shared->mutex);
    fsp_mutex_trylock(&shared->mutex);
}

static void wait_unlocked(shared *shared)
{
    if (is_last()) fsp_cond_wait(&shared->cond, &shared->mutex);
}

static void *lock_it(void *mutex)
{
    fsp_mutex_lock(mutex);
    return NULL;
}

static void *unlock_it(void *mutex)
{
    fsp_mutex_unlock(mutex);
    return NULL;
}

static void in_a_thread(void *(*what)(void *), shared *shared)
{
    pthread_t thread;
    pthread_create(&thread, NULL, what, &shared->mutex);
    pthread_join(thread, NULL);
}

static void unlock_in_own_thread(shared *shared)
{
    if (is_last()) in_a_thread(unlock_it, shared);
}

static void unlock_of_own_thread(shared *shared)
{
    if (!is_last()) return;
    in_a_thread(lock_it, shared);
    fsp_mutex_unlock(&shared->mutex);
}

static void barrier_counts(shared *shared)
{
    fsp_barrier_wait(&shared->barrier, (unsigned)fsp_processors() + (is_last() ? 1u : 0u));
}

static void barrier_of_none(shared *shared)
{
    if (is_last()) fsp_barrier_wait(&shared->barrier, 0);
}

static void mutex_null(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_mutex_lock(NULL);
}

static void mutex_private(shared *shared)
{
    (void)shared;
    fsp_mutex_t mutex = FSP_MUTEX_INIT;
    if (is_last()) fsp_mutex_lock(&mutex);
}

/* ---- the heap ---- */

static void free_foreign(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_free(malloc(100));
}

static void free_interior(shared *shared)
{
    if (is_last()) fsp_free(shared->memory + 16);
}

static void free_interior_of_pages(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_free((char *)fsp_malloc(1 << 20) + 4096);
}

static void free_twice(shared *shared)
{
    if (fsp_processor() == 0) fsp_free(shared->memory);
    fsp_barrier_all();
    if (is_last()) fsp_free(shared->memory);
}

static void free_never_allocated(shared *shared)
{
    if (is_last()) fsp_free((char *)shared + (8 << 20));
}

static void realloc_freed(shared *shared)
{
    if (!is_last()) return;
    fsp_free(shared->memory);
    fsp_realloc(shared->memory, 1000);
}

static void heap_exhausted(shared *shared)
{
    (void)shared;
    while (is_last()) memset(fsp_malloc(1 << 20), 1, 1 << 20);
}

static void malloc_absurd(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_malloc((size_t)1 << 60);
}

static void malloc_all_bytes(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_malloc(SIZE_MAX);
}

static void calloc_overflow(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_calloc(SIZE_MAX / 2, 3);
}

static void alignment_odd(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_aligned_alloc(24, 100);
}

static void alignment_huge(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_aligned_alloc(1 << 30, 100);
}

static void malloc_on_node_99(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_malloc_on(100, 99);
}

static void distributed_by_nothing(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_malloc_distributed(100000, 0);
}

/* ---- mappings ---- */

/* A page that this process may load and store. */
static void *open_page(void)
{
    char *page = (char *)(((uintptr_t)fsp_malloc(1 << 16) + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    page[0] = 1;
    return page;
}

static void mprotect_none(shared *shared)
{
    (void)shared;
    if (is_last()) mprotect(open_page(), PAGE, PROT_NONE);
}

static void mprotect_read(shared *shared)
{
    (void)shared;
    if (is_last()) mprotect(open_page(), PAGE, PROT_READ);
}

static void munmap_shared(shared *shared)
{
    (void)shared;
    if (is_last()) munmap(open_page(), PAGE);
}

static void mmap_over_shared(shared *shared)
{
    (void)shared;
    if (is_last()) mmap(open_page(), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void mremap_shared(shared *shared)
{
    (void)shared;
    if (is_last()) mremap(open_page(), PAGE, 2 * PAGE, MREMAP_MAYMOVE);
}

/* Past the C library. */
static void protected_by_a_call(int rights)
{
    if (!is_last()) return;
    volatile char *page = open_page();
    syscall(SYS_mprotect, page, (size_t)PAGE, rights);
    page[0]++;
    printf("the page has %d\n", page[0]);
}

static void call_mprotect_none(shared *shared)
{
    (void)shared;
    protected_by_a_call(PROT_NONE);
}

static void call_mprotect_read(shared *shared)
{
    (void)shared;
    protected_by_a_call(PROT_READ);
}

/* Private memory is the program's own. */
static void private_mappings(shared *shared)
{
    (void)shared;
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mprotect(page, PAGE, PROT_READ) != 0) exit(1);
    if (mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page) exit(2);
    page = mremap(page, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    if (page == MAP_FAILED || munmap(page, 2 * PAGE) != 0) exit(3);
}

/* ---- threads and life ---- */

static void *idle(void *argument) { return argument; }

static void thread_on_99(shared *shared)
{
    fsp_thread_t thread;
    if (is_last()) fsp_thread_create_on(&thread, 9999, idle, shared);
}

static void thread_of_nothing(shared *shared)
{
    fsp_thread_t thread;
    if (is_last()) fsp_thread_create(&thread, NULL, shared);
}

static void *(*in_a_library)(void *) = (void *(*)(void *))(void *)getenv;

static void thread_in_a_library(shared *shared)
{
    fsp_thread_t thread;
    if (is_last()) fsp_thread_create(&thread, in_a_library, shared);
}

static void join_nothing(shared *shared)
{
    (void)shared;
    fsp_thread_t thread = { 0 };
    if (is_last()) fsp_thread_join(&thread, NULL);
}

static void init_twice(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_init_spmd(NULL, NULL);
}

static void exit_3(shared *shared)
{
    (void)shared;
    if (is_last()) exit(3);
    fsp_barrier_all();
}

static void exit_hard(shared *shared)
{
    (void)shared;
    if (is_last()) _exit(0);
    fsp_barrier_all();
}

static void abort_with_17(shared *shared)
{
    (void)shared;
    if (is_last()) fsp_abort(17, "the numbers do not add up");
    fsp_barrier_all();
}

static volatile int *volatile nowhere = (volatile int *)8;

static void null_store(shared *shared)
{
    (void)shared;
    if (is_last()) *nowhere = 1;
    fsp_barrier_all();
}

static const int constant = 1;

static void store_to_a_constant(shared *shared)
{
    (void)shared;
    if (is_last()) *(volatile int *)&constant = 2;
    fsp_barrier_all();
}

static void load_by_nonsense(shared *shared)
{
    volatile int *volatile nonsense = (volatile int *)0x5a5a5a5a5a5a5a5a;
    if (is_last()) shared->memory[0] = (char)*nonsense;
    fsp_barrier_all();
}

/* The pointer is good in the process of processor 0 only. */
static void follow_anothers_pointer(shared *shared)
{
    if (fsp_processor() == 0) {
        shared->memory = mmap((void *)0x150000000000, PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        shared->memory[8] = 1;
    }
    fsp_barrier_all();
    if (is_last()) shared->memory[8]++;
    fsp_barrier_all();
}

static void abort_itself(shared *shared)
{
    (void)shared;
    if (is_last()) abort();
    fsp_barrier_all();
}

static void crash_in_a_library(shared *shared)
{
    if (is_last()) shared->memory[0] = (char)strlen((const char *)nowhere);
    fsp_barrier_all();
}

static void die_with_the_lock(shared *shared)
{
    if (is_last()) fsp_mutex_lock(&shared->mutex);
    fsp_barrier_all();
    if (is_last()) _exit(5);
    fsp_mutex_lock(&shared->mutex);
}

/* The child must be told; the job itself goes on and ends as it likes. */
static void fork_and_call(shared *shared)
{
    if (!is_last()) return;
    pid_t child = fork();
    if (child == 0) {
        fsp_mutex_lock(&shared->mutex);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static void fork_and_touch(shared *shared)
{
    if (!is_last()) return;
    pid_t child = fork();
    if (child == 0) {
        shared->memory[5] = 1;
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static void meet(void *none)
{
    (void)none;
    fsp_barrier_all();
}

#define CASE(name) { #name, name }
static const struct {
    const char *name;
    void (*run)(shared *);
} cases[] = {
    CASE(unlock_free), CASE(unlock_foreign), CASE(unlock_twice), CASE(relock), CASE(retrylock), CASE(wait_unlocked),
    CASE(barrier_counts), CASE(barrier_of_none), CASE(mutex_null), CASE(mutex_private), CASE(free_foreign),
    CASE(free_interior), CASE(free_interior_of_pages), CASE(free_twice), CASE(free_never_allocated),
    CASE(realloc_freed), CASE(heap_exhausted), CASE(malloc_absurd), CASE(malloc_all_bytes), CASE(calloc_overflow),
    CASE(alignment_odd), CASE(alignment_huge), CASE(malloc_on_node_99), CASE(distributed_by_nothing),
    CASE(thread_on_99), CASE(thread_of_nothing), CASE(thread_in_a_library), CASE(join_nothing), CASE(init_twice),
    CASE(exit_3), CASE(exit_hard), CASE(abort_with_17), CASE(null_store), CASE(store_to_a_constant),
    CASE(load_by_nonsense), CASE(follow_anothers_pointer), CASE(crash_in_a_library), CASE(abort_itself), CASE(die_with_the_lock),
    CASE(unlock_in_own_thread), CASE(unlock_of_own_thread),
    CASE(fork_and_call), CASE(fork_and_touch), CASE(mprotect_none), CASE(mprotect_read), CASE(munmap_shared),
    CASE(mmap_over_shared), CASE(mremap_shared), CASE(call_mprotect_none), CASE(call_mprotect_read),
    CASE(private_mappings),
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "before_init") == 0) fsp_malloc(100);
    if (strcmp(name, "lock_before_init") == 0) fsp_barrier_all();
    if (strcmp(name, "parallel_before_init") == 0) fsp_parallel(nothing, NULL);
    if (strcmp(name, "never_init") == 0) return 0;
    if (strcmp(name, "barrier_in_main") == 0) {
        fsp_init(&argc, &argv);
        fsp_parallel(meet, NULL);
        fsp_barrier_all();
        return 0;
    }
    fsp_init_spmd(&argc, &argv);
    shared *shared = fsp_malloc_all(sizeof *shared);
    if (fsp_processor() == 0) shared->memory = fsp_calloc(1, 256);
    fsp_barrier_all();
    if (strcmp(name, "return_early") == 0) {
        if (is_last()) return 0;
        for (;;) fsp_barrier_all();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0) cases[i].run(shared);
    fsp_finalize();
    if (strcmp(name, "after_finalize") == 0 && argc > 1) fsp_malloc(100);
    return 0;
}
