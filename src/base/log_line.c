/* SPDX-License-Identifier: MIT */
#include "base/log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"

enum {
    /* The worst end of a line: two quotes, ,"cut":true} and a newline. */
    TAIL_MAX = 16,
    FIELDS_MAX = LOG_LINE_MAX - TAIL_MAX,
};

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    case LOG_OFF:
        break;
    }
    UNREACHABLE("no line has the level off");
}

/* What the fields may still take; quotes may stand a little over it. */
static size_t room_of(const struct log_line *line)
{
    return line->len < FIELDS_MAX ? FIELDS_MAX - line->len : 0;
}

/* False, and the line is cut, when the fields have no room for it. */
static bool put(struct log_line *line, const char *data, size_t len)
{
    if (len > room_of(line)) {
        line->cut = true;
        return false;
    }
    memcpy(line->text + line->len, data, len);
    line->len += len;
    return true;
}

/* Into the room that the fields leave for the end of the line. */
static void put_tail(struct log_line *line, const char *text)
{
    size_t len = strlen(text);

    CHECK(line->len + len <= LOG_LINE_MAX);
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static bool put_key(struct log_line *line, const char *key)
{
    size_t room = room_of(line);
    char *at = line->text + line->len;
    bool first = line->len == 0;
    int n;

    if (line->format == LOG_JSON) {
        n = snprintf(at, room, "%c\"%s\":", first ? '{' : ',', key);
    } else {
        n = snprintf(at, room, "%s%s=", first ? "" : " ", key);
    }
    CHECK(n > 0);
    if ((size_t)n >= room) {
        line->cut = true;
        return false;
    }
    line->len += (size_t)n;
    return true;
}

/* The length of the character that the text begins with; 0 where its first
 * byte begins none. */
static size_t character_length(struct slice text)
{
    for (size_t n = 1; n <= 4 && n <= text.len; n++) {
        if (slice_is_utf8((struct slice){text.data, n})) {
            return n;
        }
    }
    return 0;
}

static char short_escape(char byte)
{
    switch (byte) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return byte;
    default:
        return '\0';
    }
}

/* A character of ASCII or Latin-1 that would steer a terminal. */
static bool is_control(struct slice character)
{
    unsigned char first = (unsigned char)character.data[0];

    if (character.len == 2) {
        return first == 0xc2 && (unsigned char)character.data[1] < 0xa0;
    }
    return character.len == 1 && (first < 0x20 || first == 0x7f);
}

static int escape_bytes(enum log_format format, struct slice bytes,
                        char out[TAIL_MAX])
{
    unsigned first = (unsigned char)bytes.data[0];
    unsigned last = (unsigned char)bytes.data[bytes.len - 1];

    if (format == LOG_JSON) {
        return snprintf(out, TAIL_MAX, "\\u%04x", last);
    }
    if (bytes.len == 2) {
        return snprintf(out, TAIL_MAX, "\\x%02x\\x%02x", first, last);
    }
    return snprintf(out, TAIL_MAX, "\\x%02x", first);
}

/* Takes one character off the text and puts it as it stands in quotes. */
static bool put_character(struct log_line *line, struct slice *text)
{
    struct slice head = {text->data, character_length(*text)};
    char escaped[TAIL_MAX] = {'\\', short_escape(text->data[0])};
    bool valid = head.len > 0;

    head.len = valid ? head.len : 1;
    *text = slice_from(*text, head.len);
    if (escaped[1] != '\0') {
        return put(line, escaped, 2);
    }
    if (!valid && line->format == LOG_JSON) {
        return put(line, "\xef\xbf\xbd", 3);
    }
    if (!valid || is_control(head)) {
        int n = escape_bytes(line->format, head, escaped);

        CHECK(n > 0);
        return put(line, escaped, (size_t)n);
    }
    return put(line, head.data, head.len);
}

static void put_quoted(struct log_line *line, struct slice value)
{
    put_tail(line, "\"");
    while (value.len > 0 && put_character(line, &value)) {
    }
    put_tail(line, "\"");
}

static bool needs_quotes(struct slice value)
{
    for (size_t i = 0; i < value.len && i < LOG_LINE_MAX; i++) {
        unsigned char byte = (unsigned char)value.data[i];

        if (byte <= ' ' || byte >= 0x7f || strchr("\"\\=", byte) != NULL) {
            return true;
        }
    }
    return value.len == 0;
}

void log_str(struct log_line *line, const char *key, struct slice value)
{
    if (line->cut || !put_key(line, key)) {
        return;
    }
    if (line->format == LOG_JSON || needs_quotes(value)) {
        put_quoted(line, value);
        return;
    }
    while (value.len > 0 && put_character(line, &value)) {
    }
}

void log_int(struct log_line *line, const char *key, int64_t value)
{
    size_t before = line->len;
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, value);

    CHECK(n > 0);
    if (line->cut || !put_key(line, key)) {
        return;
    }
    /* Half a number would be another number. */
    if (!put(line, digits, (size_t)n)) {
        line->len = before;
    }
}

void log_line_open(struct log_line *line, enum log_format format,
                   enum log_level level, const char *part, const char *message)
{
    char time[TEXT_TIME_SIZE];

    line->len = 0;
    line->level = level;
    line->format = format;
    line->cut = false;
    text_time(clock_wall_ms(clock_system()), time);
    log_str(line, "ts", slice_of(time));
    log_str(line, "level", slice_of(level_name(level)));
    log_str(line, "part", slice_of(part));
    log_str(line, "msg", slice_of(message));
}

void log_line_close(struct log_line *line)
{
    if (line->format == LOG_JSON) {
        put_tail(line, line->cut ? ",\"cut\":true}\n" : "}\n");
    } else {
        put_tail(line, line->cut ? " cut=true\n" : "\n");
    }
}
