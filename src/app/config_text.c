/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

/* The offset behind the string that starts at `at`. One that does not end in
 * its line is the parser's to refuse. */
static size_t skip_string(struct slice text, size_t at)
{
    CHECK(text.data[at] == '"');
    for (at++; at < text.len && text.data[at] != '\n'; at++) {
        if (text.data[at] == '"') {
            return at + 1;
        }
        if (text.data[at] == '\\' && at + 1 < text.len &&
            text.data[at + 1] != '\n') {
            at++;
        }
    }
    return at;
}

static bool starts_at(struct slice text, size_t at, struct slice with)
{
    return slice_starts(slice_from(text, at), with);
}

/* The offset behind the comment that starts at `at`; 0 when it has no end. */
static size_t skip_comment(struct slice text, size_t at)
{
    if (starts_at(text, at, SLICE("//"))) {
        return at + slice_find(slice_from(text, at), '\n');
    }
    for (size_t end = at + 2; end < text.len; end++) {
        if (starts_at(text, end, SLICE("*/"))) {
            return end + 2;
        }
    }
    return 0;
}

/* Overwrites comments with blanks, so that nothing moves. False, and where it
 * starts, for one that does not end. */
static bool blank(struct buf *text, size_t *offset)
{
    struct slice all = buf_slice(text);

    for (size_t at = 0; at < all.len;) {
        if (all.data[at] == '"') {
            at = skip_string(all, at);
            continue;
        }
        if (!starts_at(all, at, SLICE("//")) &&
            !starts_at(all, at, SLICE("/*"))) {
            at++;
            continue;
        }
        size_t end = skip_comment(all, at);

        if (end == 0) {
            *offset = at;
            return false;
        }
        for (; at < end; at++) {
            if (text->data[at] != '\n') {
                text->data[at] = ' ';
            }
        }
    }
    return true;
}

static bool is_mark(char byte)
{
    return byte != '\0' && strchr("{}[],:\" \t\r\n", byte) != NULL;
}

/* The end of the token at `at`: a string, a word or number, or a mark. */
static size_t token_end(struct slice text, size_t at)
{
    if (text.data[at] == '"') {
        return skip_string(text, at);
    }
    if (is_mark(text.data[at])) {
        return at + 1;
    }
    while (at < text.len && !is_mark(text.data[at])) {
        at++;
    }
    return at;
}

/* The parser says where it stopped; people look for where it starts. */
static size_t token_start(struct slice text, size_t offset)
{
    size_t at = 0;

    while (at < text.len) {
        size_t end = token_end(text, at);

        if (offset < end) {
            return at;
        }
        at = end;
    }
    return offset;
}

/* The line and column (in characters), both from 1. */
static void position(struct slice text, size_t offset, size_t *line,
                     size_t *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte == '\n') {
            (*line)++;
            *column = 1;
        } else if ((byte & 0xc0) != 0x80) {
            (*column)++;
        }
    }
}

static void note_at(struct config_reading *reading, const char *name,
                    struct slice text, size_t offset, const char *what)
{
    size_t line, column;

    position(text, offset, &line, &column);
    buf_printf(reading->problems, "%s:%zu:%zu: %s\n", name, line, column, what);
    reading->n_problems++;
}

/* jansson's text ends in "near '…'", which may be a secret. */
static void cut_near(json_error_t *error)
{
    char *near = strstr(error->text, " near ");

    if (near) {
        *near = '\0';
    }
}

json_t *config_text_parse(struct config_reading *reading, const char *name,
                          struct buf *text)
{
    struct buf original = BUF_INIT;
    json_error_t error;
    json_t *root = NULL;
    size_t offset;

    buf_add_slice(&original, buf_slice(text));
    if (!blank(text, &offset)) {
        note_at(reading, name, buf_slice(&original), offset,
                "the comment that starts here does not end");
        goto out;
    }
    root = json_loadb(text->data, text->len, JSON_REJECT_DUPLICATES, &error);
    if (root) {
        goto out;
    }
    cut_near(&error);
    offset = error.position > 0 ? (size_t)error.position - 1 : 0;
    note_at(reading, name, buf_slice(&original),
            token_start(buf_slice(text), offset), error.text);
    if (json_error_code(&error) == json_error_duplicate_key) {
        root = json_loadb(text->data, text->len, 0, &error);
    }
out:
    buf_free(&original);
    return root;
}
