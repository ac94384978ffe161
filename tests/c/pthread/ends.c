/* The ends of a program of threads, one for each argument, and signals between its threads.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how;
static volatile sig_atomic_t handled;

static void first(void)
{
    puts("first");
    fflush(stdout);
}

static void second(void)
{
    puts("second");
    fflush(stdout);
}

static void third(int code, void *argument)
{
    printf("third %d %s\n", code, (char *)argument);
}

static void on_signal(int number)
{
    handled = number;
}

static void *register_one(void *none)
{
    atexit(second);
    at_quick_exit(second);
    return none;
}

static void *leave(void *none)
{
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(4);
    if (strcmp(how, "_Exit") == 0)
        _Exit(0);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(5);
    if (strcmp(how, "abort") == 0)
        abort();
    return none;
}

static void *wait_for_signal(void *none)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    printf("%s\n", sigwait(&set, &number) == 0 && number == SIGUSR1 ? "waited" : "another signal");
    return none;
}

static void *be_interrupted(void *none)
{
    while (!handled)
        sched_yield();
    printf("%s\n", handled == SIGUSR2 ? "handled" : "another signal");
    return none;
}

static void run(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) || pthread_join(thread, NULL))
        exit(1);
}

static void send_to(void *(*body)(void *), int number)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) || pthread_kill(thread, 0) || pthread_kill(thread, number) ||
        pthread_join(thread, NULL))
        exit(1);
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "return";
    if (strcmp(how, "signals") == 0) {
        struct sigaction action = {.sa_handler = on_signal};
        sigset_t set;
        sigaction(SIGUSR2, &action, NULL);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        for (int time = 0; time < 3; time++) {
            send_to(wait_for_signal, SIGUSR1);
            handled = 0;
            send_to(be_interrupted, SIGUSR2);
        }
        return 0;
    }
    atexit(first);
    at_quick_exit(first);
    run(register_one);
    on_exit(third, "argument");
    pid_t child = vfork();
    if (child == 0)
        _exit(9);
    int status;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 9)
        return 1;
    for (int time = 0; time < 3; time++)
        run(leave);
    return 6;
}
