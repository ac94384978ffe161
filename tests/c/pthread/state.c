/* What the C library keeps for a program is one for all its threads.  Prints the same as on one machine.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char **words;
static char text[] = "one two three";
static char state[64], *before;
static struct tm *local;
static char *value, *list;

static void run(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) || pthread_join(thread, NULL))
        exit(1);
}

static void *draw(void *none)
{
    printf("%d %ld %f %ld %ld\n", rand(), random(), drand48(), lrand48(), mrand48());
    return none;
}

static void *seed(void *none)
{
    unsigned short given[3] = {1, 2, 3};
    srand(7);
    srand48(11);
    printf("%u %f\n", seed48(given)[0], erand48(given));
    before = initstate(5, state, sizeof state);
    return none;
}

static void *restore(void *none)
{
    printf("%s\n", setstate(before) == state ? "the state that was given" : "another state");
    return none;
}

static void *change(void *none)
{
    static char own[] = "FSP_TEST_B=put";
    setenv("FSP_TEST_A", "by a thread", 1);
    putenv(own);
    setenv("FSP_TEST_C", "goes", 1);
    unsetenv("FSP_TEST_C");
    setenv("TZ", "XYZ-3", 1);
    return none;
}

static void *look(void *none)
{
    int found = 0;
    for (char **word = environ; *word; word++)
        found += strncmp(*word, "FSP_TEST_", 9) == 0;
    value = getenv("FSP_TEST_A");
    printf("%d %s %s %s\n", found, getenv("FSP_TEST_B"), getenv("FSP_TEST_C") ? "is there" : "is gone", getenv("FSP_TEST_D"));
    return none;
}

static void *tell(void *none)
{
    time_t then = 1000000000;
    local = localtime(&then);
    list = ctime(&then);
    return none;
}

static void *go_on(void *none)
{
    printf("%s|%s\n", words[1], strtok(NULL, " "));
    return none;
}

static void *where(void *none)
{
    printf("%s %s\n", setlocale(LC_ALL, NULL), getcwd(NULL, 0) ? "somewhere" : "nowhere");
    return none;
}

int main(int argc, char **argv)
{
    words = argv;
    run(draw);
    draw(NULL);
    run(seed);
    draw(NULL);
    run(draw);
    run(restore);
    run(draw);
    setenv("FSP_TEST_D", "by main", 1);
    run(change);
    run(look);
    look(NULL);
    printf("%s\n", value);
    fflush(stdout);
    if (system("echo $FSP_TEST_A $TZ"))
        return 1;
    run(tell);
    printf("%d:%d %s %s", local->tm_hour, local->tm_min, local->tm_zone, list);
    printf("%s %d\n", strtok(text, " "), argc);
    run(go_on);
    setlocale(LC_ALL, "C.UTF-8");
    run(where);
    return 0;
}
