/* A FILE is the program's, whichever thread uses it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, LINES = 25, ROOM = 64 };

#define CHECK(fact)                                                        \
    do {                                                                   \
        if (!(fact)) {                                                     \
            printf("line %d: %s (%s)\n", __LINE__, #fact, strerror(errno)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

static FILE *stream;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next;
static char text[ROOM];

static void on_all(void *(*body)(void *), int count)
{
    pthread_t threads[THREADS];
    for (long number = 0; number < count; number++)
        CHECK(pthread_create(&threads[number], NULL, body, (void *)number) == 0);
    for (int number = 0; number < count; number++)
        CHECK(pthread_join(threads[number], NULL) == 0);
}

/* The lines come in the order of the lock. */
static void *write_lines(void *none)
{
    for (int line = 0; line < LINES; line++) {
        pthread_mutex_lock(&lock);
        fprintf(stream, "line %d", next++);
        CHECK(fputc('\n', stream) == '\n');
        pthread_mutex_unlock(&lock);
    }
    return none;
}

/* Each line is read once, in order. */
static void *read_lines(void *none)
{
    char line[ROOM];
    for (int count = 0; count < LINES; count++) {
        pthread_mutex_lock(&lock);
        int number = -1;
        CHECK(fgets(line, sizeof line, stream) && sscanf(line, "line %d", &number) == 1 && number == next);
        next++;
        pthread_mutex_unlock(&lock);
    }
    return none;
}

static void *open_stream(void *path)
{
    stream = fopen(path, "w+");
    CHECK(stream && fputs("from a thread", stream) >= 0);
    return NULL;
}

static void *close_stream(void *none)
{
    CHECK(fseek(stream, 5, SEEK_SET) == 0 && fscanf(stream, "%63s", text) == 1 && fgetc(stream) == ' ');
    CHECK(ftell(stream) == 7 && ungetc(' ', stream) == ' ' && fread(text + 1, 1, 3, stream) == 3);
    CHECK(fseek(stream, 0, SEEK_END) == 0 && getc(stream) == EOF && feof(stream) && !ferror(stream));
    rewind(stream);
    CHECK(fclose(stream) == 0);
    return none;
}

/* Standard input, by lines and by words. */
static void *read_input(void *none)
{
    pthread_mutex_lock(&lock);
    int number = -1;
    if (next % 2)
        CHECK(scanf("%d", &number) == 1 && getchar() == '\n');
    else
        CHECK(fgets(text, sizeof text, stdin) && sscanf(text, "%d", &number) == 1);
    CHECK(number == next);
    next++;
    pthread_mutex_unlock(&lock);
    return none;
}

static void *read_pipe(void *none)
{
    CHECK(fgets(text, ROOM, stream));
    return none;
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/finespun-streams-XXXXXX";
    CHECK(close(mkstemp(name)) == 0);
    stream = fopen(name, "w");
    CHECK(stream);
    fputs("line 0\n", stream);
    next = 1;
    on_all(write_lines, THREADS);
    CHECK(fclose(stream) == 0);

    stream = fopen(name, "r");
    CHECK(stream && fgets(text, sizeof text, stream) && strcmp(text, "line 0\n") == 0);
    next = 1;
    on_all(read_lines, THREADS);
    CHECK(fgets(text, sizeof text, stream) == NULL && feof(stream) && fclose(stream) == 0);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, open_stream, name) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(fputs(", and main", stream) >= 0 && fflush(stream) == 0);
    on_all(close_stream, 1);
    CHECK(unlink(name) == 0);

    if (argc > 1 && strcmp(argv[1], "input") == 0) {
        next = 0;
        for (int time = 0; time < 3; time++) {
            on_all(read_input, THREADS);
            read_input(NULL);
        }
        CHECK(getchar() == EOF);
    }
    if (argc > 1 && strcmp(argv[1], "pipe") == 0) {
        stream = popen("printf 'one\\ntwo\\nthree\\n'", "r");
        CHECK(stream && fgets(text, sizeof text, stream));
        on_all(read_pipe, 2);
    }
    puts("streams: all right");
    return 0;
}
