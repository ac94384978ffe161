/* Threads that hand each other pointers to their local variables: built by `fspcc --pthread --share-stacks`, run in any
 * configuration by tests/cluster/stacks.rs.  Nothing here knows of Finespun: `cc -pthread` builds it too.
 *   stacks [CASE]        all that holds; or a case that does not end well
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold (errno %d)\n", __FILE__, __LINE__, #condition, errno);        \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

enum { WORKERS = 4 };

/* ---- jobs in a frame, results written into it; by main, and by threads whose frames hold their own jobs ---- */

struct job {
    const int *from;
    int first, end, depth;
    long sum;
};

static long expected(const struct job *job)
{
    long sum = 0;
    for (int i = job->first; i < job->end; i++) sum += job->from[i];
    return sum;
}

static void *add(void *argument);

static void split(struct job *whole)
{
    struct job jobs[WORKERS];
    pthread_t threads[WORKERS];
    int share = (whole->end - whole->first + WORKERS - 1) / WORKERS;
    for (int i = 0; i < WORKERS; i++) {
        int first = whole->first + i * share;
        jobs[i] = (struct job){.from = whole->from, .first = first, .end = first + share, .depth = whole->depth - 1};
        if (jobs[i].end > whole->end) jobs[i].end = whole->end;
        CHECK(pthread_create(&threads[i], NULL, add, &jobs[i]) == 0);
    }
    whole->sum = 0;
    for (int i = 0; i < WORKERS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0);
        CHECK(result == &jobs[i] && jobs[i].sum == expected(&jobs[i]));
        whole->sum += jobs[i].sum;
    }
}

static void *add(void *argument)
{
    struct job *job = argument;
    if (job->depth == 0)
        job->sum = expected(job);
    else
        split(job);
    return job;
}

static void jobs_in_frames(void)
{
    int numbers[3000];
    for (int i = 0; i < 3000; i++) numbers[i] = i * i % 1009;
    struct job whole = {.from = numbers, .first = 0, .end = 3000, .depth = 2};
    split(&whole);
    CHECK(whole.sum == expected(&whole));
}

/* ---- a recursive quicksort of an array in a frame, whose halves are sorted by threads, described in frames ---- */

struct part {
    int *at;
    int count, depth;
};

static int in_order(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

static void *sort(void *argument)
{
    struct part *part = argument;
    if (part->depth == 0 || part->count < 16) {
        qsort(part->at, (size_t)part->count, sizeof *part->at, in_order);
        return NULL;
    }
    int pivot = part->at[part->count / 2], low = 0, high = part->count - 1;
    while (low <= high) {
        while (part->at[low] < pivot) low++;
        while (part->at[high] > pivot) high--;
        if (low <= high) {
            int kept = part->at[low];
            part->at[low++] = part->at[high];
            part->at[high--] = kept;
        }
    }
    struct part left = {part->at, high + 1, part->depth - 1}, right = {part->at + low, part->count - low, part->depth - 1};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sort, &left) == 0);
    sort(&right);
    CHECK(pthread_join(thread, NULL) == 0);
    return NULL;
}

static void quicksort(void)
{
    int numbers[2500];
    long sum = 0;
    for (int i = 0; i < 2500; i++) sum += numbers[i] = (i * 7919 + 13) % 4001;
    struct part whole = {numbers, 2500, 3};
    sort(&whole);
    for (int i = 0; i < 2500; i++) {
        CHECK(i == 0 || numbers[i - 1] <= numbers[i]);
        sum -= numbers[i];
    }
    CHECK(sum == 0);
}

/* ---- mutexes, conditions, barriers, semaphores in a frame ---- */

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_barrier_t barrier;
    sem_t tokens;
    atomic_long count;
    int *slot; /* a local variable of the consumer's */
    int full, seen;
};

static void *produce(void *argument)
{
    struct meeting *meeting = argument;
    pthread_barrier_wait(&meeting->barrier);
    for (int i = 1; i <= 20; i++) {
        pthread_mutex_lock(&meeting->lock);
        while (meeting->full) pthread_cond_wait(&meeting->change, &meeting->lock);
        *meeting->slot = i;
        meeting->full = 1;
        pthread_cond_broadcast(&meeting->change);
        pthread_mutex_unlock(&meeting->lock);
        atomic_fetch_add(&meeting->count, i);
        sem_post(&meeting->tokens);
    }
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    int slot = 0;
    struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER, .slot = &slot};
    CHECK(pthread_barrier_init(&meeting.barrier, NULL, 3) == 0 && sem_init(&meeting.tokens, 0, 0) == 0);
    pthread_t producers[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&producers[i], NULL, produce, &meeting) == 0);
    pthread_barrier_wait(&meeting.barrier);
    long sum = 0;
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&meeting.lock);
        while (!meeting.full) pthread_cond_wait(&meeting.change, &meeting.lock);
        sum += slot;
        meeting.full = 0;
        pthread_cond_broadcast(&meeting.change);
        pthread_mutex_unlock(&meeting.lock);
    }
    for (int i = 0; i < 40; i++) CHECK(sem_wait(&meeting.tokens) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(producers[i], NULL) == 0);
    CHECK(sum == 420 && atomic_load(&meeting.count) == 420);
    pthread_barrier_destroy(&meeting.barrier);
    sem_destroy(&meeting.tokens);
    return NULL;
}

static void objects_in_frames(void)
{
    pthread_t thread;
    for (int round = 0; round < 2; round++) {
        CHECK(pthread_create(&thread, NULL, consume, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    consume(NULL);
}

/* ---- what the C library and the kernel do on such a stack ---- */

static _Thread_local volatile sig_atomic_t handled;
static _Thread_local int *touched;

static void on_signal(int signal)
{
    (void)signal;
    handled++;
    if (touched) ++*touched;
}

static void *use_the_system(void *argument)
{
    int *result = argument;
    char large[40000], text[100];
    memset(large, 1, sizeof large);

    /* buffers and results that the kernel reads and writes */
    struct stat about;
    struct utsname machine;
    struct timespec moment = {0, 1000}, left;
    int ends[2];
    CHECK(stat("/", &about) == 0 && S_ISDIR(about.st_mode));
    CHECK(uname(&machine) == 0 && strlen(machine.sysname) > 0);
    CHECK(getcwd(large, sizeof large) == large && large[0] == '/');
    CHECK(nanosleep(&moment, &left) == 0 && usleep(1) == 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) == 0);
    CHECK(pipe(ends) == 0 && write(ends[1], large, 30000) == 30000);
    CHECK(read(ends[0], large + 10000, 30000) == 30000);
    struct pollfd poll_for = {.fd = ends[1], .events = POLLOUT};
    struct timeval soon = {0, 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    CHECK(poll(&poll_for, 1, -1) == 1 && poll_for.revents == POLLOUT);
    CHECK(select(ends[0] + 1, &set, NULL, NULL, &soon) == 0 && !FD_ISSET(ends[0], &set));
    FD_SET(ends[0], &set);
    CHECK(write(ends[1], text, 1) == 1 && pselect(ends[0] + 1, &set, NULL, NULL, &moment, NULL) == 1 && FD_ISSET(ends[0], &set));
    close(ends[0]), close(ends[1]);

    /* sockets by name */
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, from;
    socklen_t bytes = sizeof name, option_bytes = sizeof(int);
    int listener = socket(AF_INET, SOCK_STREAM, 0), caller = socket(AF_INET, SOCK_STREAM, 0), kind = 0, yes = 1;
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    CHECK(bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&name, &bytes) == 0 && bytes == sizeof name && name.sin_port);
    CHECK(connect(caller, (struct sockaddr *)&name, sizeof name) == 0);
    int called = accept(listener, (struct sockaddr *)&from, &bytes);
    CHECK(called >= 0 && bytes == sizeof from && from.sin_family == AF_INET);
    CHECK(getsockopt(called, SOL_SOCKET, SO_TYPE, &kind, &option_bytes) == 0 && kind == SOCK_STREAM);
    CHECK(send(caller, large, 8, 0) == 8 && recvfrom(called, large, 8, 0, NULL, NULL) == 8);
    close(listener), close(caller), close(called);

    struct itimerval timer;
    struct rlimit limit;
    struct tms spent;
    CHECK(getitimer(ITIMER_REAL, &timer) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 3);
    CHECK(times(&spent) != (clock_t)-1);
    snprintf(text, sizeof text, "/tmp/stacks.%d.%p", (int)getpid(), (void *)&text);
    FILE *file = fopen(text, "w+");
    CHECK(file && fwrite(large, 1, sizeof large, file) == sizeof large && fseek(file, 0, SEEK_SET) == 0);
    CHECK(fread(large, 1, sizeof large, file) == sizeof large && fclose(file) == 0 && unlink(text) == 0);

    /* other processes: one that the C library makes, and a child that goes on on a copy of this stack */
    snprintf(text, sizeof text, "exit %d", 3);
    int status = system(text);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    FILE *said = popen("echo said", "r");
    CHECK(said && fgets(text, sizeof text, said) && strcmp(text, "said\n") == 0 && pclose(said) == 0);
    pid_t child = fork();
    if (child == 0) _exit(strcmp(text, "said\n") == 0 && large[0] == '/' ? 5 : 6);
    struct rusage usage;
    CHECK(child > 0 && wait4(child, &status, 0, &usage) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);

    /* signals: handlers that use what lies on the stack, while it computes and while it waits */
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t mask;
    int counted = 0;
    touched = &counted;
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR1, NULL, &action) == 0);
    CHECK(action.sa_handler == on_signal && pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    for (int i = 0; i < 20; i++) {
        CHECK(raise(SIGUSR1) == 0);
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    CHECK(handled == 20 && counted == 40);
    sigset_t wanted;
    siginfo_t information;
    int signal = 0;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &wanted, NULL) == 0 && raise(SIGUSR2) == 0);
    CHECK(sigwait(&wanted, &signal) == 0 && signal == SIGUSR2 && raise(SIGUSR2) == 0);
    CHECK(sigtimedwait(&wanted, &information, &moment) == SIGUSR2 && information.si_signo == SIGUSR2);
    touched = NULL;

    /* jumps, and memory of alloca */
    jmp_buf back;
    volatile int jumped = 0;
    if (setjmp(back) == 0) {
        jumped = 1;
        longjmp(back, 1);
    }
    char *more = __builtin_alloca(50000);
    memset(more, jumped, 50000);
    CHECK(more[0] == 1 && more[49999] == 1);
    *result += 1;
    return result;
}

static void systems(void)
{
    pthread_t threads[3];
    int results[3] = {10, 20, 30};
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, use_the_system, &results[i]) == 0);
    use_the_system(&results[0] + 0 * results[0]);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(results[1] == 21 && results[2] == 31);
}

/* ---- alarms, whose handler uses the stack that it interrupts and more of its own, wherever the thread is just then ---- */

struct alarmed {
    pthread_mutex_t *lock;
    long *sum;
};

static _Thread_local volatile long *alarms;

static void on_alarm(int signal)
{
    volatile char frame[10000];
    frame[0] = frame[9999] = (char)signal;
    if (alarms) *alarms += frame[0] == SIGALRM;
}

static int descend(int depth, struct alarmed *of)
{
    volatile char frame[700];
    for (int i = 0; i < 700; i++) frame[i] = (char)depth;
    if (depth > 0) {
        descend(depth - 1, of);
    } else {
        pthread_mutex_lock(of->lock);
        ++*of->sum;
        pthread_mutex_unlock(of->lock);
    }
    for (int i = 0; i < 700; i++) CHECK(frame[i] == (char)depth);
    return depth;
}

static void *be_alarmed(void *argument)
{
    volatile long counted = 0;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    alarms = &counted;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int round = 0; round < 120; round++) {
        descend(round % 40, argument);
        free(malloc((size_t)round * 50));
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    alarms = NULL;
    return NULL;
}

static void alarmed(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    long sum = 0;
    struct alarmed shared = {&lock, &sum};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) CHECK(pthread_create(&threads[i], NULL, be_alarmed, &shared) == 0);
    be_alarmed(&shared);
    for (int i = 0; i < 5; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(sum == 720);
}

/* ---- the end of a thread, by any way, and stacks of any size ---- */

static pthread_key_t key;
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static int destroyed;

static void destroy(void *value)
{
    pthread_mutex_lock(&count_lock);
    destroyed += *(int *)value;
    pthread_mutex_unlock(&count_lock);
    free(value);
}

static void __attribute__((noinline)) deep(int depth, int *result)
{
    volatile char frame[1000];
    frame[depth % 1000] = 1;
    if (depth == 1) pthread_exit(result);
    if (depth > 0) deep(depth - 1, result);
    frame[0]++;
}

static void add_on_exit(void *argument) { *(int *)argument += 100; }

static void *end_deep(void *argument)
{
    int *value = malloc(sizeof *value);
    *value = 1;
    pthread_setspecific(key, value);
    pthread_cleanup_push(add_on_exit, argument);
    deep(40, argument);
    pthread_cleanup_pop(0);
    return NULL;
}

static void ends(void)
{
    CHECK(pthread_key_create(&key, destroy) == 0);
    for (int round = 0; round < 3; round++) {
        pthread_t threads[6];
        int results[6] = {0};
        for (int i = 0; i < 6; i++) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            if (i > 0) CHECK(pthread_attr_setstacksize(&attributes, (size_t)i << 17) == 0);
            CHECK(pthread_create(&threads[i], &attributes, end_deep, &results[i]) == 0);
            pthread_attr_destroy(&attributes);
        }
        for (int i = 0; i < 6; i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0 && result == &results[i] && results[i] == 100);
        }
    }
    CHECK(destroyed == 18);
}

/* ---- cases that do not end well ---- */

static int fall(int depth)
{
    volatile char frame[5000];
    frame[0] = (char)depth;
    return depth < 1000000 ? fall(depth + 1) + frame[0] : 0;
}

static void *overflow(void *unused)
{
    (void)unused;
    return (void *)(long)fall(0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    setbuf(stderr, NULL);
    if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 1 << 18);
        CHECK(pthread_create(&thread, &attributes, overflow, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        int kept[1000] = {7};
        fork() == 0 ? _exit(0) : (void)wait(NULL);
        exit(kept[0]);
    }
    jobs_in_frames();
    quicksort();
    objects_in_frames();
    ends();
    systems();
    alarmed();
    printf("stacks: all right\n");
    return 0;
}
