/* See options.h.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_refuse(const program *program, const char *flag, const char *why)
{
    fprintf(stderr, "%s: %s: %s (--help lists the flags)\n", program->name, flag, why);
    exit(2);
}

static void describe_expected(const option *option, char *text, size_t size)
{
    int used = 0;
    if (option->kind == OPTION_TEXT)
        used = snprintf(text, size, "a text");
    else
        used = snprintf(text, size, "a number from %" PRIu64 " to %" PRIu64, option->least, option->most);
    if (option->kind == OPTION_GRID)
        used += snprintf(text + used, size - (size_t)used, ", ROWSxCOLUMNS");
    if (option->names != NULL)
        snprintf(text + used, size - (size_t)used, ", tiny, small or paper");
}

static void refuse_value(const program *program, const option *option, const char *found)
{
    char expected[120], why[320];
    describe_expected(option, expected, sizeof expected);
    if (found == NULL)
        snprintf(why, sizeof why, "needs a value: %s", expected);
    else
        snprintf(why, sizeof why, "expected %s, found '%.100s'", expected, found);
    options_refuse(program, option->flag, why);
}

/* A whole decimal number that ends at `stop` (or the text's end); strtoull alone would take "-1" and " 7". */
static bool read_number(const char *text, char stop, uint64_t *number, const char **after)
{
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    *after = end;
    return errno == 0 && (*end == '\0' || (stop != '\0' && *end == stop));
}

static const uint64_t *named_size(const option *option, const char *text)
{
    if (option->names == NULL)
        return NULL;
    if (strcmp(text, "tiny") == 0)
        return option->names->tiny;
    if (strcmp(text, "small") == 0)
        return option->names->small;
    if (strcmp(text, "paper") == 0)
        return option->names->paper;
    return NULL;
}

static bool in_range(const option *option, uint64_t number)
{
    return option->least <= number && number <= option->most;
}

static bool set_number(const option *option, const char *text)
{
    uint64_t *value = option->value;
    const char *after = NULL;
    const uint64_t *named = named_size(option, text);
    if (named != NULL) {
        value[0] = named[0];
        if (option->kind == OPTION_GRID)
            value[1] = named[1];
        return true;
    }
    uint64_t first = 0, second = 0;
    if (!read_number(text, option->kind == OPTION_GRID ? 'x' : '\0', &first, &after) || !in_range(option, first))
        return false;
    second = first;
    if (*after == 'x' && (!read_number(after + 1, '\0', &second, &after) || !in_range(option, second)))
        return false;
    value[0] = first;
    if (option->kind == OPTION_GRID)
        value[1] = second;
    return true;
}

static void print_default(const option *option)
{
    const uint64_t *value = option->value;
    switch (option->kind) {
    case OPTION_SWITCH:
        break;
    case OPTION_NUMBER:
    case OPTION_SIZE:
        printf(" (default %" PRIu64 ")", value[0]);
        break;
    case OPTION_GRID:
        printf(" (default %" PRIu64 "x%" PRIu64 ")", value[0], value[1]);
        break;
    case OPTION_TEXT:
        printf(" (default %s)", *(const char *const *)option->value);
        break;
    }
}

static void print_names(const option *option)
{
    const size_names *names = option->names;
    if (names == NULL)
        return;
    if (option->kind == OPTION_GRID)
        printf("; tiny %" PRIu64 "x%" PRIu64 ", small %" PRIu64 "x%" PRIu64 ", paper %" PRIu64 "x%" PRIu64,
               names->tiny[0], names->tiny[1], names->small[0], names->small[1], names->paper[0], names->paper[1]);
    else
        printf("; tiny %" PRIu64 ", small %" PRIu64 ", paper %" PRIu64, names->tiny[0], names->small[0],
               names->paper[0]);
}

static void print_help(const program *program)
{
    printf("%s: %s\n\nflags:\n", program->name, program->summary);
    for (unsigned i = 0; i < program->option_count; i++) {
        const option *option = &program->options[i];
        const char *operand[] = {"", " N", " N|NAME", " RxC|NAME", " TEXT"};
        char flag[40];
        snprintf(flag, sizeof flag, "%s%s", option->flag, operand[option->kind]);
        printf("  %-20s %s", flag, option->help);
        print_names(option);
        print_default(option);
        printf("\n");
    }
    printf("  %-20s this text\n", "--help");
}

static const option *find_option(const program *program, const char *argument, size_t length)
{
    for (unsigned i = 0; i < program->option_count; i++) {
        const option *option = &program->options[i];
        if (strlen(option->flag) == length && strncmp(option->flag, argument, length) == 0)
            return option;
    }
    return NULL;
}

static void set_value(const program *program, const option *option, const char *text)
{
    if (text == NULL)
        refuse_value(program, option, NULL);
    if (option->kind == OPTION_TEXT)
        *(const char **)option->value = text;
    else if (!set_number(option, text))
        refuse_value(program, option, text);
}

void options_read(const program *program, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        size_t length = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        const option *option = find_option(program, argv[i], length);
        if (strcmp(argv[i], "--help") == 0) {
            print_help(program);
            exit(0);
        }
        if (option == NULL)
            options_refuse(program, argv[i], "no such flag");
        if (option->kind != OPTION_SWITCH)
            set_value(program, option, equals != NULL ? equals + 1 : argv[++i]); /* argv ends with NULL */
        else if (equals != NULL)
            options_refuse(program, option->flag, "takes no value");
        else
            *(bool *)option->value = true;
    }
}
