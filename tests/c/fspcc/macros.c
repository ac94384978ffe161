/* Every PARMACS macro once or more, in the forms that the dialects use.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/parmacs.h>

#include <string.h>

MAIN_ENV
EXTERN_ENV

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

enum { LOCKS = 1000000, HELD = 300, ROUNDS = 50 };

typedef struct {
    LOCKDEC(lock)
    CONDVARDEC(turn)
    BARDEC(one);
    BARDEC(two)
    ALOCKDEC(array, 64)
    int whose, counts[64], spun;
} shared;

static shared *global;
static long processes = 1;
static int id, sum_int, winners;
static long sum_long;
static double sum_double;
static short sum_short[2];
static unsigned char flags[3];
static void *volatile head;
LOCKDEC(id_lock)
LOCKDEC(pairs[2])
BARDEC(done)
PAUSEDEC(said)
static fsp_mutex_t *many;

static void in_turn(int me)
{
    ENV;
    for (int round = 0; round < 3; round++) {
        LOCK(global->lock)
        while (global->whose != me)
            CONDVARWAIT(global->turn, global->lock);
        global->whose = (global->whose + 1) % (int)processes;
        CONDVARBCAST(global->turn)
        UNLOCK(global->lock)
    }
}

static void arrays(int me)
{
    for (int i = 0; i < ROUNDS; i++) {
        int index = (i + me) % 64;
        ALOCK(global->array, index)
        global->counts[index]++;
        AULOCK(global->array, index)
        LOCK(AGETL(global->array, 3))
        UNLOCK(AGETL(global->array, 3));
    }
    for (int i = me; i < LOCKS; i += 997) {
        LOCK(many[i]);
        UNLOCK(many[i])
    }
    /* Many held at once; these are this process's own. */
    for (int i = 0; i < HELD; i++)
        LOCK(many[(i + me * HELD) * 8])
    for (int i = 0; i < HELD; i++)
        UNLOCK(many[(i + me * HELD) * 8])
}

static void atomics(int me)
{
    for (int i = 0; i < ROUNDS; i++) {
        FETCH_ADD(sum_int, 1);
        long before = FETCH_ADD(sum_long, 1L << 33);
        CHECK(before % (1L << 33) == 0);
        FETCH_ADD_DOUBLE(&sum_double, 0.5);
        FETCH_ADD(sum_short[me % 2], 1);
        FETCH_SUB(sum_int, 2);
    }
    int zero = 0;
    if (CAS(winners, zero, me + 1))
        CHECK(zero == 0);
    else
        CHECK(zero > 0 && zero <= processes);
    /* A spin on a word, as SPLASH-4 does it: each LOAD is an acquire. */
    if (me == 0)
        STORE(global->spun, 7);
    while (LOAD(global->spun) != 7)
        ;
    STORE(flags[me % 3], 1);
    void *was = LOAD(head);
    void *block = G_MALLOC(sizeof(void *));
    do
        *(void **)block = was;
    while (!CAS(head, was, block));
    RELEASE_FENCE()
    ACQUIRE_FENCE();
    FULL_FENCE()
    int private_word = 5;
    CHECK(FETCH_ADD(private_word, 2) == 5 && LOAD(private_word) == 7);
}

static void work(void)
{
    int me;

    LOCK(id_lock)
    me = id++;
    UNLOCK(id_lock)
    LOCK(pairs[me % 2]) UNLOCK(pairs[me % 2])
    BARRIER(global->one, processes)
    BARRIER(global->two, processes);
    BARRIER(global->one, processes)
    in_turn(me);
    arrays(me);
    BARRIER(global->two, processes)
    atomics(me);
    if (me == processes - 1)
        SETPAUSE(said)
    if (me == 0) {
        WAITPAUSE(said);
        CLEARPAUSE(said);
    }
    int *mine = NU_MALLOC(10 * sizeof *mine, me);
    for (int i = 0; i < 10; i++)
        CHECK(mine[i] == 0);
    G_FREE(mine);
    BARRIER(done, processes)
}

static int ones;
static void one(void)
{
    FETCH_ADD(ones, 1);
}

int main(int argc, char **argv)
{
    unsigned long begin, end;

    if (argc > 1)
        processes = atol(argv[1]);
    printf("macros: begin\n");
    MAIN_INITENV
    ;
    MAIN_INITENV(,1000000,)
    MAIN_INITENV()
    CLOCK(begin)
    global = (shared *)G_MALLOC(sizeof(shared), 0);
    many = (fsp_mutex_t *)G_MALLOC_F(LOCKS * sizeof *many);
    LOCKINIT(global->lock)
    CONDVARINIT(global->turn);
    ALOCKINIT(global->array, 64)
    BARINIT(global->one, processes)
    BARINIT(global->two);
    PAUSEINIT(said)
    SPLASH3_ROI_BEGIN();
    CREATE(work, processes)
    WAIT_FOR_END(processes);
    SPLASH3_ROI_END()

    long rounds = processes * ROUNDS;
    int counted = 0, blocks = 0;
    for (int i = 0; i < 64; i++)
        counted += global->counts[i];
    for (void *block = head; block; block = *(void **)block)
        blocks++;
    CHECK(counted == rounds && blocks == processes && id == processes);
    CHECK(sum_int == -rounds && sum_long == rounds << 33 && sum_double == rounds * 0.5);
    CHECK(sum_short[0] + sum_short[1] == rounds && winners > 0);
    CHECK(flags[0] == 1 && global->whose == 0);

    /* The other dialect: one process at a time, and the caller goes on. */
    for (int i = 1; i < processes; i++)
        CREATE(one)
    one();
    WAIT_FOR_END(processes - 1)
    CHECK(ones == processes);
    CLOCK(end)
    CHECK(end > begin && end - begin < 600000000UL);
    printf("macros: all holds\n");
    MAIN_END;
}
