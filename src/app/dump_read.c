/* SPDX-License-Identifier: MIT */
#include "app/dump_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/dump.h"
#include "base/check.h"
#include "base/text.h"
#include "core/envelope.h"

enum { NAME_MAX_BYTES = 255, HISTORY_MAX = 1000000 };

/* The store's times have 48 bits. */
#define TIME_MAX_MS INT64_C(0xfffffffffffe)

/* --- lines ---------------------------------------------------------------- */

static bool is_blank(const struct buf *text)
{
    return slice_trim(buf_slice(text)).len == 0;
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

/* --- members -------------------------------------------------------------- */

struct dump_owned {
    struct dump_owned *next;
    struct buf bytes;
};

/* The first thing that is wrong is told. */
struct parse {
    bool bad;
    struct err *err;
    struct dump_owned **owned;
};

static void fail(struct parse *parse, const char *name, const char *what)
{
    if (!parse->bad) {
        (void)err_set(parse->err, ERR_DATA, "\"%s\" %s", name, what);
        parse->bad = true;
    }
}

static const json_t *get(struct parse *parse, const json_t *object,
                         const char *name)
{
    const json_t *member = json_object_get(object, name);

    if (member == NULL) {
        fail(parse, name, "is missing");
    }
    return member;
}

static uint64_t get_number(struct parse *parse, const json_t *object,
                           const char *name, uint64_t max)
{
    const json_t *member = get(parse, object, name);
    json_int_t value = json_integer_value(member);

    if (!json_is_integer(member) || value < 0 || (uint64_t)value > max) {
        fail(parse, name, "is no such number");
        return 0;
    }
    return (uint64_t)value;
}

static uint32_t get_u32(struct parse *parse, const json_t *object,
                        const char *name)
{
    return (uint32_t)get_number(parse, object, name, UINT32_MAX);
}

static int64_t get_signed(struct parse *parse, const json_t *object,
                          const char *name)
{
    const json_t *member = get(parse, object, name);

    if (!json_is_integer(member)) {
        fail(parse, name, "is no number");
    }
    return json_integer_value(member);
}

static int64_t get_time(struct parse *parse, const json_t *object,
                        const char *name)
{
    const json_t *member = get(parse, object, name);
    int64_t ms = 0;

    if (!json_is_string(member) ||
        !text_parse_time(slice_of(json_string_value(member)), &ms) || ms <= 0 ||
        ms > TIME_MAX_MS) {
        fail(parse, name, "is no time");
        return 1;
    }
    return ms;
}

/* `none` where null stands. */
static int64_t get_time_or(struct parse *parse, const json_t *object,
                           const char *name, int64_t none)
{
    return json_is_null(get(parse, object, name))
               ? none
               : get_time(parse, object, name);
}

static struct slice own_base64(struct parse *parse, const json_t *text,
                               const char *name)
{
    struct dump_owned *owned = mem_new(1, sizeof *owned);

    owned->next = *parse->owned;
    *parse->owned = owned;
    if (!json_is_string(text) ||
        !text_unbase64(
            (struct slice){json_string_value(text), json_string_length(text)},
            &owned->bytes)) {
        fail(parse, name, "is no base64");
    }
    return buf_slice(&owned->bytes);
}

static struct slice string_of(const json_t *text)
{
    return (struct slice){json_string_value(text), json_string_length(text)};
}

/* What stands in `name`, or in `name`_base64; false for null. */
static bool get_bytes(struct parse *parse, const json_t *object,
                      const char *name, struct slice *out)
{
    const json_t *member = json_object_get(object, name), *base64;
    char key[64];

    *out = (struct slice){NULL, 0};
    (void)snprintf(key, sizeof key, "%s_base64", name);
    base64 = json_object_get(object, key);
    if (member != NULL && base64 != NULL) {
        fail(parse, name, "stands there twice");
    } else if (base64 != NULL) {
        *out = own_base64(parse, base64, key);
        return true;
    } else if (json_is_string(member)) {
        *out = string_of(member);
        return true;
    } else if (!json_is_null(member)) {
        fail(parse, name, member == NULL ? "is missing" : "is no text");
    }
    return false;
}

static struct slice must_get_bytes(struct parse *parse, const json_t *object,
                                   const char *name)
{
    struct slice bytes;

    if (!get_bytes(parse, object, name, &bytes)) {
        fail(parse, name, "is null");
    }
    return bytes;
}

/* One line of text, as the store keeps it; "" for null. */
static void copy_text(struct parse *parse, const json_t *object,
                      const char *name, char *out, size_t size)
{
    struct slice text;

    out[0] = '\0';
    if (!get_bytes(parse, object, name, &text)) {
        return;
    }
    if (text.len >= size || slice_find(text, '\0') < text.len) {
        fail(parse, name, "is too long");
        return;
    }
    if (text.len > 0) {
        memcpy(out, text.data, text.len);
    }
    out[text.len] = '\0';
}

static bool is_name(const json_t *name)
{
    return json_string_length(name) > 0 &&
           json_string_length(name) <= NAME_MAX_BYTES &&
           json_string_length(name) == strlen(json_string_value(name));
}

static const char *get_word(struct parse *parse, const json_t *object,
                            const char *name)
{
    const json_t *member = get(parse, object, name);

    if (!is_name(member)) {
        fail(parse, name, "is no name");
        return "";
    }
    return json_string_value(member);
}

static bool get_hex(struct parse *parse, const json_t *object, const char *name,
                    void *out, size_t size)
{
    const char *text = json_string_value(get(parse, object, name));
    struct buf bytes = BUF_INIT;
    bool ok =
        text != NULL && text_unhex(slice_of(text), &bytes) && bytes.len == size;

    if (ok) {
        memcpy(out, bytes.data, size);
    } else {
        fail(parse, name, "is no such hex text");
    }
    buf_free(&bytes);
    return ok;
}

/* --- the record ----------------------------------------------------------- */

static void read_state(struct parse *parse, const json_t *line,
                       struct record *record)
{
    const json_t *reason = get(parse, line, "reason");

    if (!record_state_parse(get_word(parse, line, "state"), &record->state)) {
        fail(parse, "state", "is none");
    }
    if (!json_is_null(reason) &&
        !reason_parse(get_word(parse, line, "reason"), &record->reason)) {
        fail(parse, "reason", "is none");
    }
}

static void read_flags(struct parse *parse, const json_t *line,
                       struct record *record)
{
    const json_t *words = get(parse, line, "flags"), *word;
    size_t i;

    if (!json_is_array(words)) {
        fail(parse, "flags", "is no list");
    }
    json_array_foreach(words, i, word)
    {
        enum record_flag flag;

        if (!json_is_string(word) ||
            !record_flag_parse(json_string_value(word), &flag)) {
            fail(parse, "flags", "has one that is not known");
            return;
        }
        record->flags |= (uint32_t)flag;
    }
}

static void read_counters(struct parse *parse, const json_t *line,
                          struct record *record)
{
    record->run = get_u32(parse, line, "run");
    record->attempt = get_u32(parse, line, "attempts");
    record->tries = get_u32(parse, line, "tries");
    record->crashes = get_u32(parse, line, "crashes");
    record->probes = get_u32(parse, line, "probes");
    record->backoffs = get_u32(parse, line, "backoffs");
    record->deliveries = get_u32(parse, line, "deliveries");
    record->drifts = get_u32(parse, line, "drift");
    record->status = (uint16_t)get_number(parse, line, "status", UINT16_MAX);
}

static void read_times(struct parse *parse, const json_t *line,
                       struct record *record)
{
    record->first_seen_ms = get_time(parse, line, "first_seen");
    record->last_seen_ms = get_time(parse, line, "last_seen");
    record->changed_ms = get_time(parse, line, "changed");
    record->clock_ms = get_time(parse, line, "clock");
    record->due_ms = get_time_or(parse, line, "due", RECORD_NEVER);
    record->doubt_since_ms = get_time_or(parse, line, "doubt_since", 0);
}

static void read_order_key(struct parse *parse, const json_t *line,
                           struct record *record)
{
    uint8_t bytes[8];

    if (!json_is_null(get(parse, line, "order_key")) &&
        get_hex(parse, line, "order_key", bytes, sizeof bytes)) {
        record->order_key = bytes_get_be64(bytes);
    }
}

static void read_fingerprint(struct parse *parse, const json_t *line,
                             struct fingerprint *out)
{
    const json_t *from = get(parse, line, "fingerprint");
    enum fingerprint_mode mode = FINGERPRINT_NONE;

    if (json_is_null(from)) {
        return;
    }
    if (!fingerprint_mode_parse(get_word(parse, from, "mode"), &mode)) {
        fail(parse, "mode", "is none of a fingerprint");
    }
    out->mode = (uint8_t)mode;
    out->version = (uint8_t)get_number(parse, from, "version", UINT8_MAX);
    (void)get_hex(parse, from, "digest", out->digest, sizeof out->digest);
}

static void read_record(struct parse *parse, const json_t *line,
                        struct record *record)
{
    read_state(parse, line, record);
    read_flags(parse, line, record);
    read_counters(parse, line, record);
    read_times(parse, line, record);
    read_order_key(parse, line, record);
    read_fingerprint(parse, line, &record->fingerprint);
    if (!parse->bad) {
        const char *problem = record_problem(record);

        parse->bad = problem != NULL;
        if (parse->bad) {
            (void)err_set(parse->err, ERR_DATA, "%s", problem);
        }
    }
}

static void read_names(struct parse *parse, const json_t *line,
                       struct load_event *event)
{
    event->route = get_word(parse, line, "route");
    event->namespace = get_word(parse, line, "namespace");
    event->tenant = must_get_bytes(parse, line, "tenant");
    event->id = must_get_bytes(parse, line, "id");
    if (event->tenant.len > STORE_TENANT_MAX) {
        fail(parse, "tenant", "is too long");
    }
    if (event->id.len == 0 || event->id.len > STORE_ID_MAX) {
        fail(parse, "id", "is empty, or too long");
    }
}

/* --- request and result --------------------------------------------------- */

static struct slice read_part(struct parse *parse, const json_t *part)
{
    if (json_is_string(part)) {
        return string_of(part);
    }
    return own_base64(parse, json_object_get(part, "base64"), "headers");
}

static void read_headers(struct parse *parse, const json_t *object,
                         struct buf *flat)
{
    const json_t *headers = get(parse, object, "headers"), *header;
    size_t i;

    if (!json_is_array(headers)) {
        fail(parse, "headers", "is no list");
    }
    json_array_foreach(headers, i, header)
    {
        if (json_array_size(header) != 2) {
            fail(parse, "headers", "has one that is no pair");
            return;
        }
        headers_add(flat, read_part(parse, json_array_get(header, 0)),
                    read_part(parse, json_array_get(header, 1)));
    }
}

static void read_kafka(struct parse *parse, const json_t *from,
                       struct envelope *out)
{
    int64_t partition = get_signed(parse, from, "partition");

    out->kind = ENVELOPE_KAFKA;
    out->topic = must_get_bytes(parse, from, "topic");
    out->offset = get_signed(parse, from, "offset");
    out->timestamp_ms = get_signed(parse, from, "timestamp_ms");
    out->has_key = get_bytes(parse, from, "key", &out->key);
    if (partition < INT32_MIN || partition > INT32_MAX) {
        fail(parse, "partition", "is no such number");
        return;
    }
    out->partition = (int32_t)partition;
}

static void read_http(struct parse *parse, const json_t *from,
                      struct envelope *out)
{
    out->kind = ENVELOPE_HTTP;
    out->method = must_get_bytes(parse, from, "method");
    out->path = must_get_bytes(parse, from, "path");
    out->has_query = get_bytes(parse, from, "query", &out->query);
}

static void read_request(struct parse *parse, const json_t *line,
                         struct dump_read *out)
{
    const json_t *from = get(parse, line, "request");
    struct envelope envelope = {.kind = ENVELOPE_HTTP};
    struct buf headers = BUF_INIT;

    if (json_is_null(from)) {
        return;
    }
    if (json_object_get(from, "topic") != NULL ||
        json_object_get(from, "topic_base64") != NULL) {
        read_kafka(parse, from, &envelope);
    } else {
        read_http(parse, from, &envelope);
    }
    envelope.received_wall_ms = get_time(parse, from, "received");
    envelope.has_body = get_bytes(parse, from, "body", &envelope.body);
    read_headers(parse, from, &headers);
    if (out->event.record.flags & RECORD_ERASED) {
        fail(parse, "request", "is there, and flagged as erased");
    }
    if (!parse->bad) {
        envelope.headers.flat = buf_slice(&headers);
        envelope_encode(&envelope, &out->envelope);
        out->event.has_envelope = true;
        out->event.envelope = buf_slice(&out->envelope);
    }
    buf_free(&headers);
}

static void read_result(struct parse *parse, const json_t *line,
                        struct dump_read *out)
{
    const json_t *from = get(parse, line, "result");
    struct result result = {.status = 0};
    struct buf headers = BUF_INIT;

    if (json_is_null(from)) {
        return;
    }
    result.status = (uint16_t)get_number(parse, from, "status", UINT16_MAX);
    result.body_omitted = !get_bytes(parse, from, "body", &result.body);
    read_headers(parse, from, &headers);
    if (!parse->bad) {
        result.headers.flat = buf_slice(&headers);
        result_encode(&result, &out->result);
        out->event.has_result = true;
        out->event.result = buf_slice(&out->result);
    }
    buf_free(&headers);
}

/* --- history -------------------------------------------------------------- */

static void read_row(struct parse *parse, const json_t *from,
                     struct store_audit *out)
{
    out->at_ms = get_time(parse, from, "at");
    out->attempt = get_u32(parse, from, "attempt");
    out->run = get_u32(parse, from, "run");
    copy_text(parse, from, "actor", out->actor, sizeof out->actor);
    copy_text(parse, from, "why", out->why, sizeof out->why);
    if (!move_parse(get_word(parse, from, "what"), &out->move)) {
        fail(parse, "what", "is no move");
    }
}

static void read_history(struct parse *parse, const json_t *line,
                         struct dump_read *out)
{
    const json_t *rows = get(parse, line, "history"), *row;
    size_t i, n = json_array_size(rows);

    if (!json_is_array(rows) || n > HISTORY_MAX) {
        fail(parse, "history", "is no list");
        return;
    }
    if (n == 0) {
        return;
    }
    out->history = mem_new(n, sizeof *out->history);
    json_array_foreach(rows, i, row)
    {
        read_row(parse, row, &out->history[i]);
    }
    out->event.history = out->history;
    out->event.n_history = n;
}

/* --- lines of a dump ------------------------------------------------------ */

static void read_paused(struct parse *parse, const json_t *line,
                        const json_t **out)
{
    const json_t *names = get(parse, line, "paused"), *name;
    size_t i;

    *out = names;
    if (!json_is_array(names)) {
        fail(parse, "paused", "is no list");
    }
    json_array_foreach(names, i, name)
    {
        if (!is_name(name)) {
            fail(parse, "paused", "has one that is no name");
        }
    }
}

bool dump_read_header(const json_t *line, struct dump_header *out,
                      struct err *err)
{
    const json_t *version = json_object_get(line, "onced_dump");
    struct parse parse = {.err = err};

    if (!json_is_integer(version)) {
        return err_set(err, ERR_DATA, "it is not the header of a dump");
    }
    if (json_integer_value(version) != DUMP_VERSION) {
        return err_set(err, ERR_DATA,
                       "the dump has version %lld, this onced reads %d",
                       (long long)json_integer_value(version), DUMP_VERSION);
    }
    out->forgotten_until_ms =
        get_time_or(&parse, line, "forgotten_until", INT64_MIN);
    read_paused(&parse, line, &out->paused);
    return !parse.bad;
}

bool dump_read_event(const json_t *line, struct dump_read *out, struct err *err)
{
    struct parse parse = {.err = err, .owned = &out->owned};

    *out = (struct dump_read){.history = NULL};
    out->event.code = out->code;
    out->event.text = out->text;
    read_names(&parse, line, &out->event);
    read_record(&parse, line, &out->event.record);
    copy_text(&parse, line, "code", out->code, sizeof out->code);
    copy_text(&parse, line, "text", out->text, sizeof out->text);
    read_request(&parse, line, out);
    read_result(&parse, line, out);
    read_history(&parse, line, out);
    return !parse.bad;
}

void dump_read_fini(struct dump_read *read)
{
    while (read->owned != NULL) {
        struct dump_owned *owned = read->owned;

        read->owned = owned->next;
        buf_free(&owned->bytes);
        free(owned);
    }
    buf_free(&read->envelope);
    buf_free(&read->result);
    free(read->history);
    read->history = NULL;
}

/* --- ids that were handled elsewhere -------------------------------------- */

static struct slice get_string(struct parse *parse, const json_t *line,
                               const char *name)
{
    const json_t *member = json_object_get(line, name);

    if (member != NULL && !json_is_string(member)) {
        fail(parse, name, "is no text");
    }
    return string_of(member);
}

bool dump_read_seen(const json_t *line, struct dump_seen *out, struct err *err)
{
    struct parse parse = {.err = err};

    *out = (struct dump_seen){.route = NULL};
    if (json_object_get(line, "route") != NULL) {
        out->route = get_word(&parse, line, "route");
    }
    if (json_object_get(line, "at") != NULL) {
        out->at_ms = get_time_or(&parse, line, "at", 0);
    }
    (void)get(&parse, line, "id");
    out->id = get_string(&parse, line, "id");
    out->tenant = get_string(&parse, line, "tenant");
    return !parse.bad;
}
