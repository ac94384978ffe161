/* Every call of finespun/tmk.h, and what Tmk_distribute promises; run with any number of processes.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
void Tmk_errexit(); /* as programs of the time do */
#include <Tmk.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(fact) ((fact) ? (void)0 : Tmk_errexit("%s:%d: process %u: not so: %s", __FILE__, __LINE__, Tmk_proc_id, #fact))

enum { ROUNDS = 300, TABLE = 5000, COUNT_LOCK = 7, TURN_LOCK = TMK_NLOCKS - 1 };

struct board { long counter, turn, rounds_seen; char text[64]; };

static struct board *board; /* found by Tmk_distribute */
static long rounds[ROUNDS];
static char *words[3];
int table[TABLE]; /* larger than a page, not on a page's border */
static double half = 0.5;

static void everybody_gets_pointers_and_tables(void)
{
    if (Tmk_proc_id == 0) {
        board = Tmk_malloc(sizeof *board);
        memset(board, 0, sizeof *board);
        strcpy(board->text, "written by process 0");
        for (int i = 0; i < TABLE; i++)
            table[i] = i * i;
        Tmk_distribute((char *)&board, sizeof board);
        Tmk_distribute((char *)table, sizeof table);
        half = 0.25;
        Tmk_distribute(&half, sizeof half);
        half = 0.125;
        Tmk_distribute(&half, sizeof half); /* the later one stays */
    }
    Tmk_barrier(0);
    CHECK(board && strcmp(board->text, "written by process 0") == 0);
    for (int i = 0; i < TABLE; i++)
        CHECK(table[i] == i * i);
    CHECK(half == 0.125);
    half = Tmk_proc_id; /* each has its own */
    Tmk_barrier(1);
    CHECK(half == Tmk_proc_id);
}

/* What is distributed before a barrier is there behind it, what is distributed behind it is not, however late one leaves. */
static void a_barrier_parts_the_rounds(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (Tmk_proc_id == 0) {
            rounds[round] = round + 1;
            Tmk_distribute(&rounds[round], sizeof rounds[round]);
        }
        Tmk_barrier(2);
        CHECK(rounds[round] == round + 1);
        CHECK(Tmk_proc_id == 0 || round + 1 == ROUNDS || rounds[round + 1] == 0);
        if (round % 16 == 15 && Tmk_proc_id == (unsigned)round % Tmk_nprocs)
            usleep(100);
    }
    Tmk_barrier(2);
}

/* Anybody may distribute, parts of a variable too; by locks in turn each one's part is there for the next. */
static void a_lock_brings_what_was_distributed(void)
{
    for (;;) {
        Tmk_lock_acquire(TURN_LOCK);
        int mine = board->turn == Tmk_proc_id;
        if (mine) {
            for (unsigned before = 0; before < Tmk_proc_id && before < 3; before++)
                CHECK(words[before] && words[before][0] == 'a' + (char)before);
            if (Tmk_proc_id < 3) {
                words[Tmk_proc_id] = Tmk_malloc(2);
                words[Tmk_proc_id][0] = 'a' + (char)Tmk_proc_id;
                Tmk_distribute(&words[Tmk_proc_id], sizeof words[0]);
            }
            board->turn++;
            Tmk_lock_cond_broadcast(TURN_LOCK, TMK_NCONDS - 1);
        } else {
            Tmk_lock_cond_wait(TURN_LOCK, TMK_NCONDS - 1);
        }
        Tmk_lock_release(TURN_LOCK);
        if (mine)
            break;
    }
    Tmk_barrier(3);
    for (unsigned i = 0; i < 3 && i < Tmk_nprocs; i++)
        CHECK(words[i][0] == 'a' + (char)i);
    Tmk_barrier(3);
    if (Tmk_proc_id < 3)
        Tmk_free(words[Tmk_proc_id]);
}

static void locks_exclude(void)
{
    for (int i = 0; i < 200; i++) {
        Tmk_lock_acquire(COUNT_LOCK);
        board->counter++;
        Tmk_lock_release(COUNT_LOCK);
    }
    Tmk_barrier(4);
    CHECK(board->counter == 200L * Tmk_nprocs);
}

static void memory_is_as_asked_for(void)
{
    char *page = Tmk_sbrk(3 * Tmk_page_size + 1);
    CHECK((uintptr_t)page % Tmk_page_size == 0);
    for (unsigned i = 0; i < 3 * Tmk_page_size + 1; i++)
        CHECK(page[i] == 0);
    Tmk_free(NULL);
    board->text[0] = 'W';
    Tmk_distribute(board->text, 1); /* shared already: nothing to do */
}

int main(int argc, char **argv)
{
    int before = argc, option, given = 0;
    while ((option = getopt(argc, argv, "a:")) != -1)
        given = option == 'a' ? atoi(optarg) : -1;
    Tmk_startup(argc, argv);
    CHECK(argc == before && (given == 0 || given == 3));
    optind = 1; /* behind Tmk_startup it is all the same */
    while ((option = getopt(argc, argv, "a:")) != -1)
        CHECK(option == 'a' && atoi(optarg) == 3);
    CHECK(Tmk_proc_id < Tmk_nprocs && Tmk_page_size == (unsigned)getpagesize());
    everybody_gets_pointers_and_tables();
    a_barrier_parts_the_rounds();
    a_lock_brings_what_was_distributed();
    locks_exclude();
    memory_is_as_asked_for();
    Tmk_barrier(TMK_NBARRIERS - 1);
    if (Tmk_proc_id == 0)
        printf("calls: all as promised, %u processes\n", Tmk_nprocs);
    Tmk_exit(0);
}
