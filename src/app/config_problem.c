/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

/* A key is an outsider's text: it is escaped as RFC 6901 says, and what would
 * break the line is replaced. */
static void add_token(struct buf *pointer, const char *key)
{
    for (; *key != '\0'; key++) {
        unsigned char byte = (unsigned char)*key;

        if (byte == '~') {
            buf_add_str(pointer, "~0");
        } else if (byte == '/') {
            buf_add_str(pointer, "~1");
        } else {
            buf_add_byte(pointer,
                         (char)(byte < 0x20 || byte == 0x7f ? '?' : byte));
        }
    }
}

size_t config_enter(struct config_reading *reading, const char *key)
{
    size_t mark = reading->pointer.len;

    buf_add_byte(&reading->pointer, '/');
    add_token(&reading->pointer, key);
    return mark;
}

size_t config_enter_item(struct config_reading *reading, size_t i)
{
    size_t mark = reading->pointer.len;

    buf_printf(&reading->pointer, "/%zu", i);
    return mark;
}

void config_leave(struct config_reading *reading, size_t mark)
{
    CHECK(mark <= reading->pointer.len);
    reading->pointer.len = mark;
}

static void add_line(struct buf *out, struct slice pointer, const char *format,
                     va_list arguments) __attribute__((format(printf, 3, 0)));

static void add_line(struct buf *out, struct slice pointer, const char *format,
                     va_list arguments)
{
    char text[512];

    if (vsnprintf(text, sizeof(text), format, arguments) < 0) {
        text[0] = '\0';
    }
    buf_add_slice(out, pointer.len > 0 ? pointer : SLICE("/"));
    buf_printf(out, ": %s\n", text);
}

void config_problem(struct config_reading *reading, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_line(reading->problems, buf_slice(&reading->pointer), format,
             arguments);
    va_end(arguments);
    reading->n_problems++;
}

void config_warn(struct config_reading *reading, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_line(&reading->config->warnings, buf_slice(&reading->pointer), format,
             arguments);
    va_end(arguments);
}

void config_problem_at(struct config_reading *reading, const char *member,
                       const char *format, ...)
{
    size_t mark = reading->pointer.len;
    va_list arguments;

    buf_printf(&reading->pointer, "/%s", member);
    va_start(arguments, format);
    add_line(reading->problems, buf_slice(&reading->pointer), format,
             arguments);
    va_end(arguments);
    reading->n_problems++;
    config_leave(reading, mark);
}

/* A line of what was noted, up to its newline; false at the end. */
static bool next_line(struct slice *rest, struct slice *line)
{
    size_t end = slice_find(*rest, '\n');

    if (rest->len == 0) {
        return false;
    }
    *line = (struct slice){rest->data, end};
    *rest = slice_from(*rest, end < rest->len ? end + 1 : end);
    return true;
}

bool config_has_problem(const struct config_reading *reading,
                        const char *member)
{
    struct slice rest = buf_slice(reading->problems);
    struct buf prefix = BUF_INIT;
    struct slice line;
    bool found = false;

    buf_add_slice(&prefix, buf_slice(&reading->pointer));
    buf_printf(&prefix, "/%s", member);
    while (!found && next_line(&rest, &line)) {
        if (!slice_starts(line, buf_slice(&prefix))) {
            continue;
        }
        line = slice_from(line, prefix.len);
        found = line.len > 0 && (line.data[0] == '/' || line.data[0] == ':');
    }
    buf_free(&prefix);
    return found;
}
