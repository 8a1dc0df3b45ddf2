/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "app/dump_read.h"

static bool is_blank(const struct buf *text)
{
    return slice_trim(buf_slice(text)).len == 0;
}

/* Some editors begin a file with one. */
static void drop_byte_order_mark(struct buf *text)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};

    if (text->len >= sizeof mark &&
        memcmp(text->data, mark, sizeof mark) == 0) {
        text->len -= sizeof mark;
        memmove(text->data, text->data + sizeof mark, text->len);
    }
}

static enum dump_line take_line(struct dump_lines *lines, struct err *err)
{
    int byte;

    buf_clear(&lines->text);
    lines->number++;
    while ((byte = getc_unlocked(lines->file)) != EOF && byte != '\n') {
        if (lines->text.len == DUMP_LINE_MAX) {
            (void)err_set(err, ERR_DATA, "it is over %d bytes", DUMP_LINE_MAX);
            return DUMP_LINES_FAILED;
        }
        buf_add_byte(&lines->text, (char)byte);
    }
    if (ferror(lines->file) != 0) {
        (void)err_set(err, ERR_IO, "read: %s", strerror(errno));
        return DUMP_LINES_FAILED;
    }
    if (lines->text.len > 0 && lines->text.data[lines->text.len - 1] == '\r') {
        lines->text.len--;
    }
    if (lines->number == 1) {
        drop_byte_order_mark(&lines->text);
    }
    return byte == EOF && lines->text.len == 0 ? DUMP_LINES_END : DUMP_LINE;
}

enum dump_line dump_next_line(struct dump_lines *lines, struct err *err)
{
    enum dump_line found;

    do {
        found = take_line(lines, err);
    } while (found == DUMP_LINE && is_blank(&lines->text));
    return found;
}

json_t *dump_parse_line(const struct dump_lines *lines, struct err *err)
{
    json_error_t problem;
    json_t *line =
        json_loadb(lines->text.data, lines->text.len,
                   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);

    if (line == NULL) {
        (void)err_set(err, ERR_DATA, "it is no JSON: %s", problem.text);
    } else if (!json_is_object(line)) {
        (void)err_set(err, ERR_DATA, "it is no JSON object");
        json_decref(line);
        line = NULL;
    }
    return line;
}
