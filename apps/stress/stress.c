/* A random data-race-free program from a seed, which checks every value it reads.
 *
 * A round takes the chosen kinds of work in random order: each kind's `act` on all processors, a barrier after some of
 * them, a barrier after all, each kind's `check`, a barrier.  So work of several kinds runs at once on the same pages.
 * What is decided depends on the seed and the number of processors only, never on timing; the final checksum too.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include "../common/options.h"
#include "../common/report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "stress";

static const kind kinds[KINDS] = {
    {"locks", "records under mutexes", locks_act, locks_check},
    {"words", "neighbouring words of different writers", words_act, words_check},
    {"flags", "producers and consumers by flags", flags_act, flags_check},
    {"queue", "bounded queues with condition variables", queue_act, queue_check},
    {"rotate", "blocks that change owners at barriers", rotate_act, rotate_check},
    {"heap", "allocation by one, use and freeing by others", heap_act, heap_check},
    {"ranges", "memcpy, memset, unaligned stores, large reads", ranges_act, ranges_check},
};

/* -- the start: everything but the mutexes, conditions and flags gets version 0 -- */

static bool is_sync_cell(role role, unsigned slot, unsigned cell)
{
    switch (role) {
    case ROLE_FLAGS: return slot == 0 && cell < 4;
    case ROLE_QUEUE: return slot == 0 && (cell < 3 || cell == 5); /* 5: the sum starts at zero */
    case ROLE_LOCKS: /* prepared by their own kinds */
    case ROLE_WORDS: return true;
    case ROLE_STILL: return false;
    }
    return false;
}

static void prepare_group(const plan *plan, role role, size_t group)
{
    for (unsigned slot = 0; slot < SLOTS_PER_GROUP; slot++)
        for (unsigned cell = 0; cell < CELLS_PER_SLOT; cell++)
            if (!is_sync_cell(role, slot, cell))
                write_value(plan, cell_at(plan, group, slot, cell), 8, 0);
}

static void prepare_groups(const actor *actor, role role)
{
    for (size_t n = 0; n < group_count(actor->plan, role); n++)
        if (decide(actor, 800, group_of(role, n), 0) % actor->plan->processors == actor->me)
            prepare_group(actor->plan, role, group_of(role, n));
}

/* Each processor starts some groups, with pages shared from the first store on, and its part of the other regions. */
static void prepare(actor *actor)
{
    const plan *plan = actor->plan;
    size_t share = region_bytes(plan) / 8, first = share * actor->me / plan->processors * 8;
    size_t size = share * (actor->me + 1) / plan->processors * 8 - first;
    prepare_groups(actor, ROLE_FLAGS);
    prepare_groups(actor, ROLE_QUEUE);
    prepare_groups(actor, ROLE_STILL);
    locks_prepare(actor);
    words_prepare(actor);
    fill_range(plan, rotate_region(plan) + first, size, 0);
    fill_range(plan, source_region(plan) + first, size, 0);
    fill_range(plan, target_region(plan) + first, size, 0);
    locks_begin(actor);
    flags_begin(actor);
    queue_begin(actor);
    heap_begin(actor);
    actor->buffer = private_memory(BUFFER, 1);
}

/* -- the rounds -- */

static unsigned shuffle_kinds(const actor *actor, const kind *order[KINDS])
{
    unsigned count = 0;
    for (unsigned k = 0; k < KINDS; k++) {
        if ((actor->plan->kinds >> k & 1) == 0)
            continue;
        unsigned place = (unsigned)(decide(actor, 801, k, 0) % (count + 1));
        order[count++] = order[place];
        order[place] = &kinds[k];
    }
    return count;
}

/* What stop_late names: the kind last begun in this process.  Only for its message. */
static _Atomic(const char *) last_begun = "start";

static void begin_kind(actor *actor, const kind *kind)
{
    actor->kind = kind->name;
    last_begun = kind->name;
}

static void run_round(actor *actor)
{
    const kind *order[KINDS] = {NULL};
    unsigned count = shuffle_kinds(actor, order);
    alarm(actor->plan->limit); /* starts anew: see stop_late */
    for (unsigned i = 0; i < count; i++) {
        begin_kind(actor, order[i]);
        order[i]->act(actor);
        if (decide(actor, 802, i, 0) % 3 == 0)
            everybody(actor);
    }
    everybody(actor);
    for (unsigned i = 0; i < count; i++) {
        begin_kind(actor, order[i]);
        order[i]->check(actor);
    }
    everybody(actor);
}

static void release_private(actor *actor)
{
    locks_end(actor);
    flags_end(actor);
    queue_end(actor);
    heap_end(actor);
    free(actor->buffer);
}

/* A lost wake-up or a lock nobody gives back must not hang a test.  Only calls that a signal handler may make; one
 * write, so that the lines of several processes stay apart. */
static void stop_late(int signal)
{
    static const char text[] = "stress: WRONG: a round took longer than --limit (a lost wake-up? a lock not given back?); "
                               "last begun here: kind ";
    const char *kind = last_begun;
    char line[sizeof text + 16];
    size_t size = sizeof text - 1;
    (void)signal;
    memcpy(line, text, size);
    while (*kind != '\0' && size < sizeof line - 1)
        line[size++] = *kind++;
    line[size++] = '\n';
    _exit(write(STDOUT_FILENO, line, size) > 0 ? 1 : 3);
}

static void worker(void *argument)
{
    struct sigaction late = {.sa_handler = stop_late};
    actor actor = {.plan = argument, .me = (unsigned)fsp_processor(), .kind = "start"};
    sigaction(SIGALRM, &late, NULL);
    alarm(actor.plan->limit);
    prepare(&actor);
    everybody(&actor);
    for (actor.round = 1; actor.round <= actor.plan->rounds; actor.round++)
        run_round(&actor);
    actor.plan->results[actor.me].checked = actor.checked;
    release_private(&actor);
    fsp_barrier_all();
    alarm(0);
}

/* -- before and after -- */

typedef struct choices {
    uint64_t size, iters, seed, limit;
    const char *kinds;
    bool verify;
} choices;

static void shuffle_slots(plan *plan)
{
    size_t count = plan->pages * (PAGE / SLOT);
    plan->slot_order = fsp_malloc(count * sizeof *plan->slot_order);
    for (size_t i = 0; i < count; i++) {
        size_t place = random_at(plan->seed, 803, i) % (i + 1);
        plan->slot_order[i] = plan->slot_order[place];
        plan->slot_order[place] = (uint32_t)i;
    }
}

static plan *make_plan(const choices *choices, unsigned kinds)
{
    plan *plan = fsp_calloc(1, sizeof *plan);
    plan->seed = choices->seed;
    plan->rounds = choices->iters;
    plan->pages = choices->size;
    plan->limit = (unsigned)choices->limit;
    plan->processors = (unsigned)fsp_processors();
    plan->kinds = kinds;
    plan->ground = fsp_aligned_alloc(PAGE, ground_bytes(plan));
    memset(plan->ground, 0, region_bytes(plan)); /* mutexes, conditions and flags start as zeros */
    plan->results = fsp_calloc(plan->processors, sizeof *plan->results);
    plan->mailboxes = fsp_calloc(plan->processors, sizeof *plan->mailboxes);
    shuffle_slots(plan);
    return plan;
}

/* Over what does not depend on timing: all regions but mutexes, conditions and flags, and the queues' entries. */
static uint64_t checksum(const plan *plan)
{
    static const role roles[] = {ROLE_WORDS, ROLE_FLAGS, ROLE_STILL};
    uint64_t sum = checksum_bytes(0, rotate_region(plan), 3 * region_bytes(plan));
    for (unsigned r = 0; r < sizeof roles / sizeof *roles; r++)
        for (size_t n = 0; n < group_count(plan, roles[r]); n++)
            for (unsigned slot = 1; slot < SLOTS_PER_GROUP; slot++)
                sum = checksum_bytes(sum, cell_at(plan, group_of(roles[r], n), slot, 0), SLOT);
    return locks_checksum(plan, sum);
}

static verdict total(const plan *plan, result *sum)
{
    verdict verdict = {0};
    for (unsigned i = 0; i < plan->processors; i++) {
        sum->checked += plan->results[i].checked;
        sum->created += plan->results[i].created;
        sum->freed += plan->results[i].freed;
    }
    if (sum->created != sum->freed)
        verdict_wrong(&verdict, "%" PRIu64 " heap objects were made, but %" PRIu64 " freed", sum->created, sum->freed);
    return verdict;
}

static int run(const choices *choices, unsigned kinds)
{
    plan *plan = make_plan(choices, kinds);
    result sum = {0};
    report_line(name, "size %" PRIu64 " iters %" PRIu64 " seed %" PRIu64 " kinds %s processors %u", choices->size,
                choices->iters, choices->seed, choices->kinds, plan->processors);
    double start = seconds_now();
    fsp_parallel(worker, plan);
    report_time(name, seconds_now() - start);
    verdict verdict = total(plan, &sum);
    report_line(name, "checked %" PRIu64 " values, %" PRIu64 " heap objects", sum.checked, sum.created);
    report_checksum(name, checksum(plan));
    return report_verdict(name, &verdict); /* fsp_finalize ends the shared memory */
}

static int kind_index(const char *text, size_t length)
{
    for (int k = 0; k < KINDS; k++)
        if (strlen(kinds[k].name) == length && strncmp(kinds[k].name, text, length) == 0)
            return k;
    return -1;
}

static unsigned read_kinds(const program *program, const char *text)
{
    unsigned set = 0;
    if (strcmp(text, "all") == 0)
        return (1u << KINDS) - 1;
    for (;;) {
        size_t length = strcspn(text, ",");
        int k = kind_index(text, length);
        if (k < 0)
            options_refuse(program, "--kinds",
                           "expected all, or names from locks, words, flags, queue, rotate, heap, ranges with commas");
        set |= 1u << k;
        if (text[length] == '\0')
            return set;
        text += length + 1;
    }
}

int main(int argc, char **argv)
{
    static const size_names sizes = {{2, 2}, {16, 16}, {256, 256}};
    choices choices = {.size = 16, .iters = 10, .seed = 1, .limit = 120, .kinds = "all"};
    const option options[] = {
        {"--size", OPTION_SIZE, &choices.size, 1, 1 << 16, &sizes, "pages of each of the four regions"},
        {"--iters", OPTION_NUMBER, &choices.iters, 0, 1 << 20, NULL, "rounds"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "what the program is made from"},
        {"--kinds", OPTION_TEXT, &choices.kinds, 0, 0, NULL,
         "all, or some of locks,words,flags,queue,rotate,heap,ranges"},
        {"--limit", OPTION_NUMBER, &choices.limit, 0, 86400, NULL, "seconds a round may take; 0: any number"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "always on: every value is checked"},
    };
    const program program = {name, "a random data-race-free program that checks every value it reads", options,
                             sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    unsigned kinds = read_kinds(&program, choices.kinds);
    fsp_init(&argc, &argv);
    int code = run(&choices, kinds);
    fsp_finalize();
    return code;
}
