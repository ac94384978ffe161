/* The program's end (--pthread): what atexit, on_exit, at_quick_exit and C++'s objects with static storage have registered in any thread runs
 * once, in the reverse order, in the process where the program exits.  _exit, _Exit and quick_exit end the program, too.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <finespun/program.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 64, BLOCKS = 64 };

/* Called with the exit code and the argument, in whichever order the function takes them. */
struct handler {
    enum { PLAIN, WITH_CODE, WITH_ARGUMENT } kind;
    void (*function)(void);
    void *argument;
};

struct list {
    int count;
    struct handler first[BLOCK];
    struct handler *more[BLOCKS];
};

static SHARED struct list at_end, at_quick_end;

void *__wrap_malloc(size_t size);
void __real__exit(int code) __attribute__((noreturn));

static struct handler *place(struct list *list, int index, int is_new)
{
    if (index < BLOCK)
        return &list->first[index];
    int block = index / BLOCK - 1;
    if (block >= BLOCKS)
        return NULL;
    if (is_new && !list->more[block])
        list->more[block] = __wrap_malloc(BLOCK * sizeof(struct handler));
    return list->more[block] ? &list->more[block][index % BLOCK] : NULL;
}

static int add(struct list *list, struct handler handler)
{
    fsp_clib_hold();
    struct handler *there = place(list, list->count, 1);
    if (there) {
        *there = handler;
        list->count++;
    }
    fsp_clib_let_go();
    return there ? 0 : -1;
}

static int take_last(struct list *list, struct handler *last)
{
    fsp_clib_hold();
    int is_there = list->count > 0;
    if (is_there)
        *last = *place(list, --list->count, 0);
    fsp_clib_let_go();
    return is_there;
}

static void run(struct list *list, int code)
{
    for (struct handler last; take_last(list, &last);)
        switch (last.kind) {
        case PLAIN:
            last.function();
            break;
        case WITH_CODE:
            ((void (*)(int, void *))last.function)(code, last.argument);
            break;
        case WITH_ARGUMENT:
            ((void (*)(void *))last.function)(last.argument);
        }
}

int __wrap_atexit(void (*function)(void));
int __wrap_atexit(void (*function)(void))
{
    return add(&at_end, (struct handler){PLAIN, function, NULL});
}

int __wrap_on_exit(void (*function)(int, void *), void *argument);
int __wrap_on_exit(void (*function)(int, void *), void *argument)
{
    return add(&at_end, (struct handler){WITH_CODE, (void (*)(void))function, argument});
}

/* By the compiler, for an object that has been made. */
int __wrap___cxa_atexit(void (*function)(void *), void *argument, void *image);
int __wrap___cxa_atexit(void (*function)(void *), void *argument, void *image)
{
    (void)image;
    return add(&at_end, (struct handler){WITH_ARGUMENT, (void (*)(void))function, argument});
}

int __wrap_at_quick_exit(void (*function)(void));
int __wrap_at_quick_exit(void (*function)(void))
{
    return add(&at_quick_end, (struct handler){PLAIN, function, NULL});
}

void fsp_clib_save_mappings(void) __attribute__((weak));

void fsp_clib_on_exit(int code)
{
    run(&at_end, code);
    if (fsp_clib_save_mappings && fsp_program_runs())
        fsp_clib_save_mappings();
}

/* The child of a vfork has this process's memory, and ends alone. */
static pid_t of_program;

void fsp_clib_in_process(void)
{
    of_program = getpid();
}

void __wrap__exit(int code) __attribute__((noreturn));
void __wrap__exit(int code)
{
    if (fsp_program_runs() && of_program == getpid()) {
        if (fsp_clib_save_mappings)
            fsp_clib_save_mappings();
        fsp_program_exit(code);
    }
    __real__exit(code);
}

void __wrap__Exit(int code) __attribute__((noreturn));
void __wrap__Exit(int code)
{
    __wrap__exit(code);
}

void __wrap_quick_exit(int code) __attribute__((noreturn));
void __wrap_quick_exit(int code)
{
    run(&at_quick_end, code);
    __wrap__exit(code);
}
