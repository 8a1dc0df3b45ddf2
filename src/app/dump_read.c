/* SPDX-License-Identifier: MIT */
#include "app/dump_read.h"

#include <stdlib.h>
#include <string.h>

#include "app/dump.h"
#include "app/dump_member.h"
#include "base/text.h"
#include "core/envelope.h"
#include "source/value.h"

enum { HISTORY_MAX = 1000000 };

static void free_owned(struct dump_owned *owned)
{
    while (owned != NULL) {
        struct dump_owned *next = owned->next;

        buf_free(&owned->bytes);
        free(owned);
        owned = next;
    }
}

/* --- the record ----------------------------------------------------------- */

static void read_state(struct member_reading *parse, const json_t *line,
                       struct record *record)
{
    const json_t *reason = member_get(parse, line, "reason");

    if (!record_state_parse(member_word(parse, line, "state"),
                            &record->state)) {
        member_fail(parse, "state", "is none");
    }
    if (!json_is_null(reason) &&
        !reason_parse(member_word(parse, line, "reason"), &record->reason)) {
        member_fail(parse, "reason", "is none");
    }
}

static void read_flags(struct member_reading *parse, const json_t *line,
                       struct record *record)
{
    const json_t *words = member_get(parse, line, "flags"), *word;
    size_t i;

    if (!json_is_array(words)) {
        member_fail(parse, "flags", "is no list");
    }
    json_array_foreach(words, i, word)
    {
        enum record_flag flag;

        if (!json_is_string(word) ||
            !record_flag_parse(json_string_value(word), &flag)) {
            member_fail(parse, "flags", "has one that is not known");
            return;
        }
        record->flags |= (uint32_t)flag;
    }
}

static void read_counters(struct member_reading *parse, const json_t *line,
                          struct record *record)
{
    record->run = member_u32(parse, line, "run");
    record->attempt = member_u32(parse, line, "attempts");
    record->tries = member_u32(parse, line, "tries");
    record->crashes = member_u32(parse, line, "crashes");
    record->probes = member_u32(parse, line, "probes");
    record->backoffs = member_u32(parse, line, "backoffs");
    record->deliveries = member_u32(parse, line, "deliveries");
    record->drifts = member_u32(parse, line, "drift");
    record->status = (uint16_t)member_number(parse, line, "status", UINT16_MAX);
}

static void read_times(struct member_reading *parse, const json_t *line,
                       struct record *record)
{
    record->first_seen_ms = member_time(parse, line, "first_seen");
    record->last_seen_ms = member_time(parse, line, "last_seen");
    record->changed_ms = member_time(parse, line, "changed");
    record->clock_ms = member_time(parse, line, "clock");
    record->due_ms = member_time_or(parse, line, "due", RECORD_NEVER);
    record->doubt_since_ms = member_time_or(parse, line, "doubt_since", 0);
}

static void read_order_key(struct member_reading *parse, const json_t *line,
                           struct record *record)
{
    uint8_t bytes[8];

    if (!json_is_null(member_get(parse, line, "order_key")) &&
        member_hex(parse, line, "order_key", bytes, sizeof bytes)) {
        record->order_key = bytes_get_be64(bytes);
    }
}

static void read_fingerprint(struct member_reading *parse, const json_t *line,
                             struct fingerprint *out)
{
    const json_t *from = member_get(parse, line, "fingerprint");
    enum fingerprint_mode mode = FINGERPRINT_NONE;

    if (json_is_null(from)) {
        return;
    }
    if (!fingerprint_mode_parse(member_word(parse, from, "mode"), &mode)) {
        member_fail(parse, "mode", "is none of a fingerprint");
    }
    out->mode = (uint8_t)mode;
    out->version = (uint8_t)member_number(parse, from, "version", UINT8_MAX);
    (void)member_hex(parse, from, "digest", out->digest, sizeof out->digest);
}

static void read_record(struct member_reading *parse, const json_t *line,
                        struct record *record)
{
    read_state(parse, line, record);
    read_flags(parse, line, record);
    read_counters(parse, line, record);
    read_times(parse, line, record);
    read_order_key(parse, line, record);
    read_fingerprint(parse, line, &record->fingerprint);
}

/* Dumps from before there were topics have none. */
static void read_position(struct member_reading *parse, const json_t *line,
                          struct load_event *event)
{
    const json_t *from = json_object_get(line, "position");

    if (from == NULL || json_is_null(from)) {
        return;
    }
    event->stream = member_word(parse, from, "stream");
    event->position.partition =
        (int32_t)member_number(parse, from, "partition", INT32_MAX);
    event->position.offset =
        (int64_t)member_number(parse, from, "offset", INT64_MAX);
}

/* As a delivery's would be. */
static void check_name(struct member_reading *parse, const char *name,
                       struct slice value)
{
    const char *problem = value_check_id(value);

    if (problem != NULL) {
        member_fail(parse, name, problem);
    }
}

static void read_names(struct member_reading *parse, const json_t *line,
                       struct load_event *event)
{
    event->route = member_name(parse, line, "route");
    event->namespace = member_name(parse, line, "namespace");
    event->tenant = member_must_bytes(parse, line, "tenant");
    event->id = member_must_bytes(parse, line, "id");
    if (event->tenant.len > 0) {
        check_name(parse, "tenant", event->tenant);
    }
    check_name(parse, "id", event->id);
}

/* --- request and result --------------------------------------------------- */

static struct slice read_part(struct member_reading *parse, const json_t *part)
{
    if (json_is_string(part)) {
        return member_string(part);
    }
    return member_base64(parse, json_object_get(part, "base64"), "headers");
}

static void read_header(struct member_reading *parse, const json_t *header,
                        struct buf *flat)
{
    struct slice name = read_part(parse, json_array_get(header, 0));
    const json_t *value = json_array_get(header, 1);

    if (json_is_null(value)) {
        headers_add_null(flat, name);
    } else {
        headers_add(flat, name, read_part(parse, value));
    }
}

static void read_headers(struct member_reading *parse, const json_t *object,
                         struct buf *flat)
{
    const json_t *headers = member_get(parse, object, "headers"), *header;
    size_t i;

    if (!json_is_array(headers)) {
        member_fail(parse, "headers", "is no list");
    }
    json_array_foreach(headers, i, header)
    {
        if (json_array_size(header) != 2) {
            member_fail(parse, "headers", "has one that is no pair");
            return;
        }
        read_header(parse, header, flat);
    }
}

static void read_kafka(struct member_reading *parse, const json_t *from,
                       struct envelope *out)
{
    int64_t partition = member_signed(parse, from, "partition");

    out->kind = ENVELOPE_KAFKA;
    out->topic = member_must_bytes(parse, from, "topic");
    out->offset = member_signed(parse, from, "offset");
    out->timestamp_ms = member_signed(parse, from, "timestamp_ms");
    out->has_key = member_bytes(parse, from, "key", &out->key);
    if (partition < INT32_MIN || partition > INT32_MAX) {
        member_fail(parse, "partition", "is no such number");
        return;
    }
    out->partition = (int32_t)partition;
}

static void read_http(struct member_reading *parse, const json_t *from,
                      struct envelope *out)
{
    out->kind = ENVELOPE_HTTP;
    out->method = member_must_bytes(parse, from, "method");
    out->path = member_must_bytes(parse, from, "path");
    out->has_query = member_bytes(parse, from, "query", &out->query);
}

static void read_envelope(struct member_reading *parse, const json_t *from,
                          struct buf *flat)
{
    struct envelope envelope = {.kind = ENVELOPE_HTTP};
    struct buf headers = BUF_INIT;

    if (json_object_get(from, "topic") != NULL ||
        json_object_get(from, "topic_base64") != NULL) {
        read_kafka(parse, from, &envelope);
    } else {
        read_http(parse, from, &envelope);
    }
    envelope.received_wall_ms = member_time(parse, from, "received");
    envelope.has_body = member_bytes(parse, from, "body", &envelope.body);
    read_headers(parse, from, &headers);
    if (!parse->bad) {
        envelope.headers.flat = buf_slice(&headers);
        envelope_encode(&envelope, flat);
    }
    buf_free(&headers);
}

static void read_request(struct member_reading *parse, const json_t *line,
                         struct dump_read *out)
{
    const json_t *from = member_get(parse, line, "request");

    if (json_is_null(from)) {
        return;
    }
    read_envelope(parse, from, &out->envelope);
    if (!parse->bad) {
        out->event.has_envelope = true;
        out->event.envelope = buf_slice(&out->envelope);
    }
}

bool dump_read_request(const json_t *request, struct buf *flat, struct err *err)
{
    struct dump_owned *owned = NULL;
    struct member_reading parse = {.err = err, .owned = &owned};

    read_envelope(&parse, request, flat);
    free_owned(owned);
    return !parse.bad;
}

static void read_result(struct member_reading *parse, const json_t *line,
                        struct dump_read *out)
{
    const json_t *from = member_get(parse, line, "result");
    struct result result = {.status = 0};
    struct buf headers = BUF_INIT;

    if (json_is_null(from)) {
        return;
    }
    result.status = (uint16_t)member_number(parse, from, "status", UINT16_MAX);
    result.body_omitted = !member_bytes(parse, from, "body", &result.body);
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

static void read_row(struct member_reading *parse, const json_t *from,
                     struct store_audit *out)
{
    out->at_ms = member_time(parse, from, "at");
    out->attempt = member_u32(parse, from, "attempt");
    out->run = member_u32(parse, from, "run");
    member_text(parse, from, "actor", out->actor, sizeof out->actor);
    member_text(parse, from, "why", out->why, sizeof out->why);
    if (!move_parse(member_word(parse, from, "what"), &out->move)) {
        member_fail(parse, "what", "is no move");
    }
}

static void read_history(struct member_reading *parse, const json_t *line,
                         struct dump_read *out)
{
    const json_t *rows = member_get(parse, line, "history"), *row;
    size_t i, n = json_array_size(rows);

    if (!json_is_array(rows) || n > HISTORY_MAX) {
        member_fail(parse, "history", "is no list");
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

static void read_paused(struct member_reading *parse, const json_t *line,
                        const json_t **out)
{
    const json_t *names = member_get(parse, line, "paused"), *name;
    size_t i;

    *out = names;
    if (!json_is_array(names)) {
        member_fail(parse, "paused", "is no list");
    }
    json_array_foreach(names, i, name)
    {
        if (!member_is_name(name)) {
            member_fail(parse, "paused", "has one that is no name");
        }
    }
}

bool dump_read_header(const json_t *line, struct dump_header *out,
                      struct err *err)
{
    const json_t *version = json_object_get(line, "onced_dump");
    struct member_reading parse = {.err = err};

    if (!json_is_integer(version)) {
        return err_set(err, ERR_DATA, "it is not the header of a dump");
    }
    if (json_integer_value(version) != DUMP_VERSION) {
        return err_set(err, ERR_DATA,
                       "the dump has version %lld, this onced reads %d",
                       (long long)json_integer_value(version), DUMP_VERSION);
    }
    out->store = member_word(&parse, line, "store");
    (void)member_time(&parse, line, "at");
    out->at = json_string_value(member_get(&parse, line, "at"));
    out->route = json_is_null(member_get(&parse, line, "route"))
                     ? NULL
                     : member_name(&parse, line, "route");
    out->forgotten_until_ms =
        member_time_or(&parse, line, "forgotten_until", INT64_MIN);
    read_paused(&parse, line, &out->paused);
    return !parse.bad;
}

bool dump_read_event(const json_t *line, struct dump_read *out, struct err *err)
{
    struct member_reading parse = {.err = err, .owned = &out->owned};

    *out = (struct dump_read){.history = NULL};
    out->event.code = out->code;
    out->event.text = out->text;
    read_names(&parse, line, &out->event);
    read_record(&parse, line, &out->event.record);
    read_position(&parse, line, &out->event);
    member_text(&parse, line, "code", out->code, sizeof out->code);
    member_text(&parse, line, "text", out->text, sizeof out->text);
    read_request(&parse, line, out);
    read_result(&parse, line, out);
    read_history(&parse, line, out);
    return !parse.bad;
}

void dump_read_fini(struct dump_read *read)
{
    free_owned(read->owned);
    read->owned = NULL;
    buf_free(&read->envelope);
    buf_free(&read->result);
    free(read->history);
    read->history = NULL;
}

/* --- ids that were handled elsewhere -------------------------------------- */

static struct slice get_string(struct member_reading *parse, const json_t *line,
                               const char *name)
{
    const json_t *member = json_object_get(line, name);

    if (member != NULL && !json_is_string(member)) {
        member_fail(parse, name, "is no text");
    }
    return member_string(member);
}

bool dump_read_seen(const json_t *line, struct dump_seen *out, struct err *err)
{
    struct member_reading parse = {.err = err};

    *out = (struct dump_seen){.route = NULL};
    if (json_object_get(line, "route") != NULL) {
        out->route = member_word(&parse, line, "route");
    }
    if (json_object_get(line, "at") != NULL) {
        out->at_ms = member_time_or(&parse, line, "at", 0);
    }
    (void)member_get(&parse, line, "id");
    out->id = get_string(&parse, line, "id");
    out->tenant = get_string(&parse, line, "tenant");
    return !parse.bad;
}
