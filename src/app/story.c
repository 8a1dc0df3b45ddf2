/* SPDX-License-Identifier: MIT */
#include "app/story.h"

#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "core/envelope.h"
#include "engine/engine.h"

/* --- values -------------------------------------------------------------- */

json_t *story_text(struct slice text)
{
    struct buf wide = BUF_INIT;
    json_t *json;

    if (slice_is_utf8(text)) {
        return json_stringn(text.len == 0 ? "" : text.data, text.len);
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte >= 0x80) {
            buf_add_byte(&wide, (char)(0xc0 | byte >> 6));
            byte = (unsigned char)(0x80 | (byte & 0x3f));
        }
        buf_add_byte(&wide, (char)byte);
    }
    json = json_stringn(wide.data, wide.len);
    buf_free(&wide);
    return json;
}

/* Null for the empty string. */
static json_t *text_or_null(const char *text)
{
    return text[0] == '\0' ? json_null() : story_text(slice_of(text));
}

static json_t *number_or_null(uint32_t number)
{
    return number == 0 ? json_null() : json_integer((json_int_t)number);
}

static void set(json_t *object, const char *name, json_t *value)
{
    int failed = json_object_set_new(object, name, value);

    CHECK(failed == 0);
}

static void add(json_t *array, json_t *value)
{
    int failed = json_array_append_new(array, value);

    CHECK(failed == 0);
}

json_t *story_time(int64_t wall_ms)
{
    char text[TEXT_TIME_SIZE];

    if (wall_ms == RECORD_NEVER) {
        return json_null();
    }
    text_time(wall_ms, text);
    return json_string(text);
}

void story_set_bytes(json_t *object, const char *name, struct slice bytes)
{
    struct buf text = BUF_INIT;
    char key[64];

    if (slice_is_utf8(bytes)) {
        set(object, name, story_text(bytes));
        return;
    }
    (void)snprintf(key, sizeof key, "%s_base64", name);
    text_base64(bytes, &text);
    set(object, key, json_stringn(text.data, text.len));
    buf_free(&text);
}

/* --- headers ------------------------------------------------------------- */

bool story_is_credential(struct slice header_name)
{
    return header_is_credential(header_name);
}

static json_t *headers_json(const struct headers *headers)
{
    json_t *all = json_array();
    struct header header;
    size_t at = 0;

    while (headers_next(headers, &at, &header)) {
        json_t *pair = json_array();

        add(pair, story_text(header.name));
        if (header.is_null) {
            add(pair, json_null());
        } else {
            add(pair, story_is_credential(header.name)
                          ? json_string("***")
                          : story_text(header.value));
        }
        add(all, pair);
    }
    return all;
}

/* --- the short form ------------------------------------------------------ */

json_t *story_event(const struct store *store, const struct store_entry *entry)
{
    const struct record *record = &entry->record;
    const char *route = store_route_name(store, record->route);
    json_t *event = json_object();

    CHECK(route != NULL);
    set(event, "route", json_string(route));
    set(event, "tenant", story_text(store_entry_tenant(entry)));
    set(event, "id", story_text(store_entry_id(entry)));
    set(event, "state", json_string(record_state_name(record->state)));
    set(event, "run", json_integer(record->run));
    set(event, "attempts", json_integer(record->attempt));
    set(event, "deliveries", json_integer(record->deliveries));
    set(event, "first_seen", story_time(record->first_seen_ms));
    set(event, "last_seen", story_time(record->last_seen_ms));
    set(event, "changed", story_time(record->changed_ms));
    set(event, "due", story_time(record->due_ms));
    set(event, "reason", text_or_null(reason_name(record->reason)));
    set(event, "code", text_or_null(entry->code));
    set(event, "why", text_or_null(entry->text));
    set(event, "drift", json_integer(record->drifts));
    return event;
}

/* --- request and result -------------------------------------------------- */

static json_t *envelope_json(const struct envelope *envelope)
{
    json_t *request = json_object();

    switch (envelope->kind) {
    case ENVELOPE_HTTP:
        set(request, "method", story_text(envelope->method));
        set(request, "path", story_text(envelope->path));
        set(request, "query", story_text(envelope->query));
        break;
    case ENVELOPE_KAFKA:
        set(request, "topic", story_text(envelope->topic));
        set(request, "partition", json_integer(envelope->partition));
        set(request, "offset", json_integer(envelope->offset));
        set(request, "timestamp",
            envelope->timestamp_ms < 0 ? json_null()
                                       : story_time(envelope->timestamp_ms));
        if (envelope->has_key) {
            story_set_bytes(request, "key", envelope->key);
        } else {
            set(request, "key", json_null());
        }
        break;
    }
    set(request, "received", story_time(envelope->received_wall_ms));
    set(request, "headers", headers_json(&envelope->headers));
    if (envelope->has_body) {
        story_set_bytes(request, "body", envelope->body);
    } else {
        set(request, "body", json_null());
    }
    return request;
}

static bool set_request(json_t *event, struct store *store,
                        const struct store_entry *entry, struct err *err)
{
    struct buf flat = BUF_INIT;
    struct envelope envelope;
    bool ok = true;

    switch (store_get_envelope(store, entry, &flat, err)) {
    case STORE_FOUND:
        ok = envelope_open(buf_slice(&flat), &envelope) ||
             err_set(err, ERR_DATA, "the envelope is damaged");
        if (ok) {
            set(event, "request", envelope_json(&envelope));
        }
        break;
    case STORE_ABSENT:
        set(event, "request", json_null());
        break;
    case STORE_FAILED:
        ok = false;
        break;
    }
    buf_free(&flat);
    return ok;
}

static json_t *result_json(const struct result *result)
{
    json_t *json = json_object();

    set(json, "status", json_integer(result->status));
    set(json, "headers", headers_json(&result->headers));
    if (result->body_omitted) {
        set(json, "body", json_null());
        set(json, "body_omitted", json_true());
    } else {
        story_set_bytes(json, "body", result->body);
    }
    return json;
}

static bool set_result(json_t *event, struct store *store,
                       const struct store_entry *entry, struct err *err)
{
    struct buf flat = BUF_INIT;
    struct result result;
    bool ok = true;

    switch (store_get_result(store, entry, &flat, err)) {
    case STORE_FOUND:
        ok = result_open(buf_slice(&flat), &result) ||
             err_set(err, ERR_DATA, "the result is damaged");
        if (ok) {
            set(event, "result", result_json(&result));
        }
        break;
    case STORE_ABSENT:
        set(event, "result", json_null());
        break;
    case STORE_FAILED:
        ok = false;
        break;
    }
    buf_free(&flat);
    return ok;
}

/* --- history ------------------------------------------------------------- */

struct history {
    json_t *rows;
    const struct record *record;
    bool has_end;  /* a stored row tells of a success */
    bool inserted; /* the row that the record alone tells of is there */
};

static void add_row(struct history *history, const struct store_audit *audit)
{
    json_t *row = json_object();

    set(row, "at", story_time(audit->at_ms));
    set(row, "what", json_string(move_name(audit->move)));
    set(row, "attempt", number_or_null(audit->attempt));
    set(row, "run", number_or_null(audit->run));
    set(row, "actor", text_or_null(audit->actor));
    set(row, "why", text_or_null(audit->why));
    add(history->rows, row);
}

/* A first attempt that succeeds, or is still under way, writes no row: the
 * record has its time. */
static void add_untold(struct history *history)
{
    const struct record *record = history->record;
    struct store_audit audit = {
        .at_ms = record->changed_ms,
        .attempt = record->attempt,
        .run = record->run,
    };

    if (history->inserted || record->attempt != 1) {
        return;
    }
    history->inserted = true;
    if (record->state == RECORD_SUCCEEDED && !history->has_end) {
        audit.move = MOVE_SUCCEEDED;
        add_row(history, &audit);
    } else if (record->state == RECORD_RUNNING) {
        audit.move = MOVE_STARTED;
        add_row(history, &audit);
    }
}

static bool find_end(void *ctx, const struct store_audit *audit)
{
    struct history *history = ctx;

    history->has_end |=
        audit->move == MOVE_SUCCEEDED || audit->move == MOVE_APPLIED;
    return true;
}

static bool add_audit(void *ctx, const struct store_audit *audit)
{
    struct history *history = ctx;

    if (audit->at_ms > history->record->changed_ms) {
        add_untold(history);
    }
    add_row(history, audit);
    return true;
}

static bool set_history(json_t *event, struct store *store,
                        const struct store_entry *entry, struct err *err)
{
    const struct store_audit received = {
        .at_ms = entry->record.first_seen_ms,
        .move = MOVE_RECEIVED,
    };
    struct history history = {
        .rows = json_array(),
        .record = &entry->record,
    };
    bool ok;

    if (entry->record.deliveries > 0) { /* else it was only seen elsewhere */
        add_row(&history, &received);
    }
    ok = store_each_audit(store, entry, find_end, &history, err) &&
         store_each_audit(store, entry, add_audit, &history, err);
    add_untold(&history);
    set(event, "history", history.rows);
    return ok;
}

/* --- the full form ------------------------------------------------------- */

void story_set_key(json_t *event, const struct store *store,
                   const struct store_entry *entry)
{
    const struct downstream_key of = {
        .namespace = store_namespace_name(store, entry->namespace),
        .route = store_route_name(store, entry->record.route),
        .tenant = store_entry_tenant(entry),
        .id = store_entry_id(entry),
        .run = entry->record.run,
    };
    char key[ATTEMPT_KEY_SIZE];

    engine_downstream_key(&of, key);
    set(event, "idempotency_key", json_string(key));
}

bool story_event_full(json_t **out, struct store *store,
                      const struct store_entry *entry, struct err *err)
{
    json_t *event = story_event(store, entry);

    story_set_key(event, store, entry);
    if (!set_request(event, store, entry, err) ||
        !set_result(event, store, entry, err) ||
        !set_history(event, store, entry, err)) {
        json_decref(event);
        return false;
    }
    *out = event;
    return true;
}
