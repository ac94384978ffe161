/* libfinespun_tmk.a: TreadMarks' calls (finespun/tmk.h) on the public C API.
 *
 * A library and not inline functions of the header: programs of that time define macros of all kinds, and some of these
 * functions, before they include it; and Tmk_proc_id needs one place.  It is C on the public API only, so that it holds
 * nothing that a program could not do itself.
 *
 * What is not one call of the API each is Tmk_distribute.  The value goes into a list in shared memory; every process
 * applies to its own variables what is new in the list when it comes out of a barrier or gets a lock.  The list is only
 * read and written under a mutex.  Outside of it a process looks at the number of the newest entry alone: whoever must see
 * an entry has synchronized with its author since, and sees the number; whoever sees it too early only takes the mutex for
 * nothing.
 *
 * An entry carries how many barriers of all its author had passed.  Who leaves the k-th such barrier applies the entries of
 * authors that had passed fewer than k: so it does not see those that another process makes while it is still leaving, and
 * a program whose only synchronization are barriers gets the same values in every run.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE /* dl_iterate_phdr */
#define TMK_PROTOTYPES
#define TMK_BARRIER_MASK
#include <finespun/finespun.h>
#include <finespun/tmk.h>
#undef Tmk_barrier

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUPS = 1024, MASK_BITS = 32, REASON_BYTES = 1000 };

/* Never written or read: an object is known by its address. */
typedef struct {
    fsp_mutex_t locks[TMK_NLOCKS];
    fsp_cond_t conditions[TMK_NLOCKS][TMK_NCONDS];
    fsp_barrier_t groups[GROUPS];
} objects;

/* Where a private variable lies, said so that another process finds its own: load addresses differ. */
typedef struct {
    uint64_t object; /* hash of the program's or library's name */
    uint64_t offset; /* from its load address */
    uint64_t size;
} place;

/* One call of Tmk_distribute. */
typedef struct entry {
    struct entry *next;
    uint64_t number;  /* 1, 2, ... */
    uint64_t barriers; /* of all processes that the author had passed */
    place place;
    char value[];
} entry;

/* What the processes share; zero at first. */
typedef struct {
    objects *objects;
    fsp_mutex_t mutex; /* guards all that follows */
    uint64_t newest;   /* the number of the last entry; read without the mutex as a hint */
    entry *first, *last;
    unsigned group_count;
    unsigned groups[GROUPS]; /* the sets of processes that have met so far; each has its barrier */
} shared_state;

unsigned Tmk_proc_id;
unsigned Tmk_nprocs = 1;
unsigned Tmk_page_size = 4096;
unsigned Tmk_mask = 1;

static shared_state *shared;     /* NULL before Tmk_startup */
static uint64_t applied;         /* number of the last entry this process has applied */
static uint64_t barriers_passed; /* of all processes */
static unsigned known_count;     /* groups this process has looked up */
static unsigned known[GROUPS];

/* ---- start and end ------------------------------------------------------------------------------------------------ */

void Tmk_errexit(const char *format, ...)
{
    char reason[REASON_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    size_t length = strlen(reason);
    while (length > 0 && reason[length - 1] == '\n')
        reason[--length] = '\0';
    fflush(stdout);
    if (shared)
        fsp_abort(1, reason);
    fprintf(stderr, "%s\n", reason);
    exit(1);
}

static void need_start(const char *call)
{
    if (!shared)
        Tmk_errexit("%s before Tmk_startup", call);
}

/* The arguments after "--"; process 0 speaks for all. */
static void check_options(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    const char *ignored = NULL;
    for (i++; i < argc; i++) {
        const char *number = NULL;
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            number = argv[++i];
        else if (strncmp(argv[i], "-n", 2) == 0 && argv[i][2] >= '0' && argv[i][2] <= '9')
            number = argv[i] + 2;
        if (number && strtoul(number, NULL, 10) != Tmk_nprocs)
            Tmk_errexit("Tmk_startup: \"-n %s\" after \"--\", but the job has %u processes; `finespun run -n %s` starts as many",
                        number, Tmk_nprocs, number);
        if (!number && !ignored)
            ignored = argv[i];
    }
    if (ignored)
        fprintf(stderr, "Tmk_startup: what stands after \"--\", from \"%s\" on, has no effect: `finespun run` says what runs "
                        "where\n", ignored);
}

void Tmk_startup(int argc, char **argv)
{
    fsp_init_spmd(&argc, &argv);
    Tmk_proc_id = (unsigned)fsp_process();
    Tmk_nprocs = (unsigned)fsp_processes();
    Tmk_mask = Tmk_nprocs >= MASK_BITS ? ~0u : (1u << Tmk_nprocs) - 1;
    shared = fsp_malloc_all(sizeof *shared);
    if (Tmk_proc_id == 0) {
        if (argv)
            check_options(argc, argv);
        shared->objects = fsp_malloc(sizeof *shared->objects);
    }
    fsp_barrier_all();
}

void Tmk_exit(int status)
{
    fflush(NULL);
    if (shared)
        fsp_finalize();
    exit(status);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

void *Tmk_malloc(size_t size)
{
    need_start("Tmk_malloc");
    return fsp_malloc(size);
}

void Tmk_free(void *memory)
{
    need_start("Tmk_free");
    fsp_free(memory);
}

void *Tmk_sbrk(size_t size)
{
    need_start("Tmk_sbrk");
    size_t pages = size / Tmk_page_size + (size % Tmk_page_size != 0 || size == 0);
    return fsp_calloc(pages, Tmk_page_size); /* whole pages begin at a page */
}

/* ---- Tmk_distribute ----------------------------------------------------------------------------------------------- */

static uint64_t hash(const char *name)
{
    uint64_t value = 0xcbf29ce484222325; /* FNV-1a */
    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 0x100000001b3;
    return value;
}

typedef struct {
    place place;
    uintptr_t address; /* 0: not yet found */
} search;

/* Is the variable, known by its address, in this object? */
static int find_place(struct dl_phdr_info *object, size_t bytes, void *argument)
{
    search *wanted = argument;
    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || wanted->address < start)
            continue;
        uintptr_t before = wanted->address - start;
        if (before > segment->p_memsz || wanted->place.size > segment->p_memsz - before)
            continue;
        wanted->place.object = hash(object->dlpi_name);
        wanted->place.offset = wanted->address - object->dlpi_addr;
        return 1;
    }
    return 0;
}

/* Is the place in this object? */
static int find_address(struct dl_phdr_info *object, size_t bytes, void *argument)
{
    search *wanted = argument;
    (void)bytes;
    if (hash(object->dlpi_name) != wanted->place.object)
        return 0;
    wanted->address = object->dlpi_addr + wanted->place.offset;
    return 1;
}

static void apply(const entry *news)
{
    search wanted = {news->place, 0};
    if (!dl_iterate_phdr(find_address, &wanted))
        Tmk_errexit("Tmk_distribute: the variable is in a shared library that process %u has not loaded", Tmk_proc_id);
    memcpy((void *)wanted.address, news->value, news->place.size);
}

/* Applies what is new and has been distributed before the barrier of this number; the mutex is held. */
static void apply_before(uint64_t barrier)
{
    for (const entry *news = shared->first; news && news->barriers < barrier; news = news->next) {
        if (news->number <= applied)
            continue;
        apply(news);
        applied = news->number;
    }
}

static int has_news(void)
{
    return __atomic_load_n(&shared->newest, __ATOMIC_RELAXED) != applied;
}

/* After an acquire of a lock or among some of the processes: what is visible may be used. */
static void take_news(void)
{
    if (!has_news())
        return;
    fsp_mutex_lock(&shared->mutex);
    apply_before(UINT64_MAX);
    fsp_mutex_unlock(&shared->mutex);
}

/* After a barrier of all.  Process 0 frees what everybody has applied when leaving the barrier before this one. */
static void take_news_of_all(void)
{
    barriers_passed++;
    int frees = Tmk_proc_id == 0 && shared->first;
    if (!has_news() && !frees)
        return;
    fsp_mutex_lock(&shared->mutex);
    apply_before(barriers_passed);
    while (frees && shared->first && shared->first->barriers + 2 <= barriers_passed) {
        entry *old = shared->first;
        shared->first = old->next;
        if (!shared->first)
            shared->last = NULL;
        fsp_free(old);
    }
    fsp_mutex_unlock(&shared->mutex);
}

void Tmk_distribute(const void *variable, size_t size)
{
    need_start("Tmk_distribute");
    if (size == 0 || Tmk_nprocs == 1 || fsp_is_shared(variable))
        return; /* shared memory needs no more than the synchronization that follows */
    search wanted = {{0, 0, size}, (uintptr_t)variable};
    if (!dl_iterate_phdr(find_place, &wanted))
        Tmk_errexit("Tmk_distribute: the %zu bytes at %p are not in a global or static variable, so that the other processes "
                    "have none like it", size, variable);
    entry *news = fsp_malloc(sizeof *news + size);
    news->next = NULL;
    news->barriers = barriers_passed;
    news->place = wanted.place;
    memcpy(news->value, variable, size);
    fsp_mutex_lock(&shared->mutex);
    apply_before(UINT64_MAX); /* others' come before */
    news->number = shared->newest + 1;
    if (shared->last)
        shared->last->next = news;
    else
        shared->first = news;
    shared->last = news;
    __atomic_store_n(&shared->newest, news->number, __ATOMIC_RELAXED);
    applied = news->number;
    fsp_mutex_unlock(&shared->mutex);
}

/* ---- barriers ----------------------------------------------------------------------------------------------------- */

void Tmk_barrier(unsigned id)
{
    need_start("Tmk_barrier");
    if (id >= TMK_NBARRIERS)
        Tmk_errexit("Tmk_barrier(%u): barriers are numbered 0 to %d; a program whose barriers take a set of processes is "
                    "compiled with -DTMK_BARRIER_MASK", id, TMK_NBARRIERS - 1);
    fsp_barrier_all();
    take_news_of_all();
}

/* The number of a group's barrier; the first who asks gives it one. */
static unsigned group_of(unsigned mask)
{
    for (unsigned i = 0; i < known_count; i++)
        if (known[i] == mask)
            return i;
    fsp_mutex_lock(&shared->mutex);
    unsigned group = 0;
    while (group < shared->group_count && shared->groups[group] != mask)
        group++;
    if (group == GROUPS)
        Tmk_errexit("Tmk_barrier: more than %d different sets of processes", GROUPS);
    if (group == shared->group_count) {
        shared->groups[group] = mask;
        shared->group_count++;
    }
    known_count = shared->group_count;
    memcpy(known, shared->groups, known_count * sizeof *known);
    fsp_mutex_unlock(&shared->mutex);
    return group;
}

void Tmk_barrier_group(unsigned mask)
{
    need_start("Tmk_barrier");
    if (Tmk_nprocs > MASK_BITS)
        Tmk_errexit("Tmk_barrier: a set of processes has %d bits, and the job has %u processes", MASK_BITS, Tmk_nprocs);
    if ((mask & ~Tmk_mask) != 0 || (mask >> Tmk_proc_id & 1) == 0)
        Tmk_errexit("Tmk_barrier: process %u of %u is to meet the processes of the set %#x: it must be one of them, and all "
                    "must exist", Tmk_proc_id, Tmk_nprocs, mask);
    if (mask == Tmk_mask) {
        fsp_barrier_all();
        take_news_of_all();
        return;
    }
    unsigned count = (unsigned)__builtin_popcount(mask);
    if (count > 1)
        fsp_barrier_wait(&shared->objects->groups[group_of(mask)], count);
    take_news();
}

/* ---- locks and conditions ----------------------------------------------------------------------------------------- */

static fsp_mutex_t *lock_of(unsigned lock, const char *call)
{
    need_start(call);
    if (lock >= TMK_NLOCKS)
        Tmk_errexit("%s: lock %u; locks are numbered 0 to %d", call, lock, TMK_NLOCKS - 1);
    return &shared->objects->locks[lock];
}

static fsp_cond_t *condition_of(unsigned lock, unsigned condition, const char *call)
{
    lock_of(lock, call);
    if (condition >= TMK_NCONDS)
        Tmk_errexit("%s: condition %u; those of a lock are numbered 0 to %d", call, condition, TMK_NCONDS - 1);
    return &shared->objects->conditions[lock][condition];
}

void Tmk_lock_acquire(unsigned lock)
{
    fsp_mutex_lock(lock_of(lock, "Tmk_lock_acquire"));
    take_news();
}

void Tmk_lock_release(unsigned lock)
{
    fsp_mutex_unlock(lock_of(lock, "Tmk_lock_release"));
}

void Tmk_lock_cond_wait(unsigned lock, unsigned cond)
{
    fsp_cond_wait(condition_of(lock, cond, "Tmk_lock_cond_wait"), lock_of(lock, "Tmk_lock_cond_wait"));
    take_news();
}

void Tmk_lock_cond_signal(unsigned lock, unsigned cond)
{
    fsp_cond_signal(condition_of(lock, cond, "Tmk_lock_cond_signal"));
}

void Tmk_lock_cond_broadcast(unsigned lock, unsigned cond)
{
    fsp_cond_broadcast(condition_of(lock, cond, "Tmk_lock_cond_broadcast"));
}
