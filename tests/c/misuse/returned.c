/* The same mistakes after fsp_errors_return(1): every call says what was wrong, and the job goes on to a good end. */
#include <finespun/finespun.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expect(const char *what, fsp_status found, fsp_status expected)
{
    if (found == expected) return;
    printf("%s: returned %d, not %d\n", what, (int)found, (int)expected);
    failures++;
}

/* A call without a status: nothing comes back, and the last error has the number. */
static void expect_null(const char *what, const void *found, const char *number)
{
    if (found == NULL && strstr(fsp_last_error(), number) != NULL) return;
    printf("%s: returned %p; last error \"%s\"\n", what, found, fsp_last_error());
    failures++;
}

static void *idle(void *argument) { return argument; }

int main(int argc, char **argv)
{
    fsp_errors_return(1);
    expect("barrier before fsp_init", fsp_barrier_all(), FSP_NOT_STARTED);
    fsp_init(&argc, &argv);
    expect("fsp_init again", fsp_init(NULL, NULL), FSP_TWICE);

    fsp_mutex_t *mutex = fsp_calloc(1, sizeof *mutex), private = FSP_MUTEX_INIT;
    expect("unlock of a free mutex", fsp_mutex_unlock(mutex), FSP_NOT_OWNER);
    expect("lock", fsp_mutex_lock(mutex), FSP_OK);
    expect("lock again", fsp_mutex_lock(mutex), FSP_RELOCK);
    expect("unlock", fsp_mutex_unlock(mutex), FSP_OK);
    expect("trylock of a free mutex", fsp_mutex_trylock(mutex), FSP_OK);
    expect("unlock after trylock", fsp_mutex_unlock(mutex), FSP_OK);
    expect("lock of NULL", fsp_mutex_lock(NULL), FSP_ARGUMENT);
    expect("lock of private memory", fsp_mutex_lock(&private), FSP_PRIVATE);
    fsp_cond_t *cond = fsp_calloc(1, sizeof *cond);
    expect("wait without the mutex", fsp_cond_wait(cond, mutex), FSP_NOT_OWNER);
    fsp_barrier_t *barrier = fsp_calloc(1, sizeof *barrier);
    if (fsp_processors() > 1)
        expect("barrier of all in main alone", fsp_barrier_all(), FSP_ALONE);
    expect("barrier of none", fsp_barrier_wait(barrier, 0), FSP_ARGUMENT);
    fsp_thread_t thread;
    expect("thread on no processor", fsp_thread_create_on(&thread, fsp_processors(), idle, NULL), FSP_ARGUMENT);
    expect("thread on ourselves", fsp_thread_create_on(&thread, 0, idle, NULL), FSP_BUSY);

    expect_null("malloc of 2^60", fsp_malloc((size_t)1 << 60), "E050");
    expect_null("calloc that overflows", fsp_calloc(SIZE_MAX, 2), "E050");
    expect_null("alignment 3", fsp_aligned_alloc(3, 8), "E005");
    expect_null("malloc on node -1", fsp_malloc_on(8, -1), "E005");
    char *memory = fsp_malloc(64);
    fsp_free(memory + 1);
    expect_null("free inside", NULL, "E051");
    fsp_free(memory);
    fsp_free(memory);
    expect_null("free twice", NULL, "E051");
    expect_null("realloc of the freed", fsp_realloc(memory, 10), "E051");

    fsp_finalize();
    expect("lock after fsp_finalize", fsp_mutex_lock(mutex), FSP_NOT_STARTED);
    printf("returned: %d failures\n", failures);
    return failures ? 1 : 0;
}
