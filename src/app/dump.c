/* SPDX-License-Identifier: MIT */
#include "app/dump.h"

#include <errno.h>
#include <string.h>

#include "app/story.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/envelope.h"

static void set(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

static void add(json_t *array, json_t *value)
{
    CHECK(json_array_append_new(array, value) == 0);
}

static void set_number(json_t *object, const char *name, uint64_t number)
{
    set(object, name, json_integer((json_int_t)number));
}

static void set_hex(json_t *object, const char *name, struct slice bytes)
{
    struct buf text = BUF_INIT;

    text_hex(bytes, &text);
    set(object, name, json_stringn(text.data, text.len));
    buf_free(&text);
}

/* Null for the empty string. */
static void set_text(json_t *object, const char *name, const char *text)
{
    if (text[0] == '\0') {
        set(object, name, json_null());
    } else {
        story_set_bytes(object, name, slice_of(text));
    }
}

/* Null for `none`. */
static void set_time(json_t *object, const char *name, int64_t ms, int64_t none)
{
    set(object, name, ms == none ? json_null() : story_time(ms));
}

/* Null where there is none, which is not the empty string. */
static void set_optional(json_t *object, const char *name, bool has,
                         struct slice bytes)
{
    if (has) {
        story_set_bytes(object, name, bytes);
    } else {
        set(object, name, json_null());
    }
}

/* --- the record ----------------------------------------------------------- */

static json_t *flags_json(uint32_t flags)
{
    json_t *words = json_array();

    for (size_t i = 0; i < RECORD_FLAGS; i++) {
        if ((flags & 1U << i) != 0) {
            add(words,
                json_string(record_flag_name((enum record_flag)(1U << i))));
        }
    }
    return words;
}

static json_t *fingerprint_json(const struct fingerprint *fingerprint)
{
    static const struct fingerprint none;
    json_t *json;

    if (fingerprint_eq(fingerprint, &none)) {
        return json_null();
    }
    json = json_object();
    set_number(json, "version", fingerprint->version);
    set(json, "mode",
        json_string(
            fingerprint_mode_name((enum fingerprint_mode)fingerprint->mode)));
    set_hex(json, "digest",
            (struct slice){(const char *)fingerprint->digest,
                           sizeof fingerprint->digest});
    return json;
}

static void set_counters(json_t *event, const struct record *record)
{
    set_number(event, "run", record->run);
    set_number(event, "attempts", record->attempt);
    set_number(event, "tries", record->tries);
    set_number(event, "crashes", record->crashes);
    set_number(event, "probes", record->probes);
    set_number(event, "backoffs", record->backoffs);
    set_number(event, "deliveries", record->deliveries);
    set_number(event, "drift", record->drifts);
    set_number(event, "status", record->status);
}

static void set_times(json_t *event, const struct record *record)
{
    set(event, "first_seen", story_time(record->first_seen_ms));
    set(event, "last_seen", story_time(record->last_seen_ms));
    set(event, "changed", story_time(record->changed_ms));
    set(event, "clock", story_time(record->clock_ms));
    set_time(event, "due", record->due_ms, RECORD_NEVER);
    set_time(event, "doubt_since", record->doubt_since_ms, 0);
}

static void set_order_key(json_t *event, uint64_t order_key)
{
    uint8_t bytes[8];

    if (order_key == 0) {
        set(event, "order_key", json_null());
        return;
    }
    bytes_put_be64(bytes, order_key);
    set_hex(event, "order_key",
            (struct slice){(const char *)bytes, sizeof bytes});
}

/* Null where it came with no message of a partition. */
static bool set_position(json_t *event, const struct store *store,
                         const struct store_position *position, struct err *err)
{
    const char *stream = store_stream_name(store, position->stream);

    if (position->stream == 0) {
        set(event, "position", json_null());
        return true;
    }
    if (stream == NULL) {
        return err_set(err, ERR_DATA, "it names an unknown stream");
    }
    set(event, "position",
        json_pack("{s:s, s:i, s:I}", "stream", stream, "partition",
                  (int)position->partition, "offset",
                  (json_int_t)position->offset));
    return true;
}

static json_t *record_json(const struct store *store,
                           const struct store_entry *entry)
{
    const struct record *record = &entry->record;
    json_t *event = json_object();

    set(event, "route", json_string(store_route_name(store, record->route)));
    set(event, "namespace",
        json_string(store_namespace_name(store, entry->namespace)));
    story_set_bytes(event, "tenant", store_entry_tenant(entry));
    story_set_bytes(event, "id", store_entry_id(entry));
    set(event, "state", json_string(record_state_name(record->state)));
    set_text(event, "reason", reason_name(record->reason));
    set_text(event, "code", entry->code);
    set_text(event, "text", entry->text);
    set_counters(event, record);
    set_number(event, "origin", entry->origin);
    set(event, "flags", flags_json(record->flags));
    set_times(event, record);
    set_order_key(event, record->order_key);
    set(event, "fingerprint", fingerprint_json(&record->fingerprint));
    story_set_key(event, store, entry);
    return event;
}

/* --- request and result --------------------------------------------------- */

/* Text, or where it is no UTF-8 { "base64": … }. */
static json_t *bytes_json(struct slice bytes)
{
    struct buf text = BUF_INIT;
    json_t *json;

    if (slice_is_utf8(bytes)) {
        return json_stringn(bytes.len == 0 ? "" : bytes.data, bytes.len);
    }
    text_base64(bytes, &text);
    json = json_pack("{s:s%}", "base64", text.data, text.len);
    buf_free(&text);
    return json;
}

static json_t *headers_json(const struct headers *headers)
{
    json_t *all = json_array();
    struct header header;
    size_t at = 0;

    while (headers_next(headers, &at, &header)) {
        add(all,
            json_pack("[o, o]", bytes_json(header.name),
                      header.is_null ? json_null() : bytes_json(header.value)));
    }
    return all;
}

static void set_http(json_t *request, const struct envelope *envelope)
{
    story_set_bytes(request, "method", envelope->method);
    story_set_bytes(request, "path", envelope->path);
    set_optional(request, "query", envelope->has_query, envelope->query);
}

static void set_kafka(json_t *request, const struct envelope *envelope)
{
    story_set_bytes(request, "topic", envelope->topic);
    set(request, "partition", json_integer(envelope->partition));
    set(request, "offset", json_integer(envelope->offset));
    set(request, "timestamp_ms", json_integer(envelope->timestamp_ms));
    set_optional(request, "key", envelope->has_key, envelope->key);
}

json_t *dump_request(const struct envelope *envelope)
{
    json_t *request = json_object();

    switch (envelope->kind) {
    case ENVELOPE_HTTP:
        set_http(request, envelope);
        break;
    case ENVELOPE_KAFKA:
        set_kafka(request, envelope);
        break;
    }
    set(request, "received", story_time(envelope->received_wall_ms));
    set(request, "headers", headers_json(&envelope->headers));
    set_optional(request, "body", envelope->has_body, envelope->body);
    return request;
}

static bool set_request(json_t *event, struct store *store,
                        const struct store_entry *entry, struct err *err)
{
    struct buf flat = BUF_INIT;
    struct envelope envelope;
    enum store_found found = store_get_envelope(store, entry, &flat, err);
    bool ok = found != STORE_FAILED;

    if (found == STORE_FOUND) {
        ok = envelope_open(buf_slice(&flat), &envelope) ||
             err_set(err, ERR_DATA, "its envelope is damaged");
    }
    if (ok) {
        set(event, "request",
            found == STORE_FOUND ? dump_request(&envelope) : json_null());
    }
    buf_free(&flat);
    return ok;
}

static json_t *result_json(const struct result *result)
{
    json_t *json = json_object();

    set_number(json, "status", result->status);
    set(json, "headers", headers_json(&result->headers));
    set_optional(json, "body", !result->body_omitted, result->body);
    return json;
}

static bool set_result(json_t *event, struct store *store,
                       const struct store_entry *entry, struct err *err)
{
    struct buf flat = BUF_INIT;
    struct result result;
    enum store_found found = store_get_result(store, entry, &flat, err);
    bool ok = found != STORE_FAILED;

    if (found == STORE_FOUND) {
        ok = result_open(buf_slice(&flat), &result) ||
             err_set(err, ERR_DATA, "its result is damaged");
    }
    if (ok) {
        set(event, "result",
            found == STORE_FOUND ? result_json(&result) : json_null());
    }
    buf_free(&flat);
    return ok;
}

/* --- history -------------------------------------------------------------- */

static bool add_row(void *ctx, const struct store_audit *audit)
{
    json_t *rows = ctx, *row = json_object();

    set(row, "at", story_time(audit->at_ms));
    set(row, "what", json_string(move_name(audit->move)));
    set_number(row, "attempt", audit->attempt);
    set_number(row, "run", audit->run);
    set_text(row, "actor", audit->actor);
    set_text(row, "why", audit->why);
    add(rows, row);
    return true;
}

static bool set_history(json_t *event, struct store *store,
                        const struct store_entry *entry, struct err *err)
{
    json_t *rows = json_array();

    set(event, "history", rows);
    return store_each_audit(store, entry, add_row, rows, err);
}

bool dump_event(json_t **out, struct store *store,
                const struct store_entry *entry, struct err *err)
{
    json_t *event = record_json(store, entry);

    if (!set_position(event, store, &entry->position, err) ||
        !set_request(event, store, entry, err) ||
        !set_result(event, store, entry, err) ||
        !set_history(event, store, entry, err)) {
        json_decref(event);
        return err_wrap(err, "record %llu", (unsigned long long)entry->seq);
    }
    *out = event;
    return true;
}

/* --- all ------------------------------------------------------------------ */

struct dump {
    struct store *store;
    FILE *out;
    int32_t route; /* number, or -1: all */
    uint64_t events;
    bool ok;
    struct err *err;
};

static bool fail_write(const struct dump *dump)
{
    int error = errno;

    return err_set(dump->err, ERR_IO, "write the dump: %s", strerror(error));
}

/* Consumes the line. */
static bool put_line(struct dump *dump, json_t *line)
{
    bool ok = (json_dumpf(line, dump->out, JSON_COMPACT) == 0 &&
               fputc('\n', dump->out) != EOF) ||
              fail_write(dump);

    json_decref(line);
    return ok;
}

static bool put_event(void *ctx, const struct store_entry *entry)
{
    struct dump *dump = ctx;
    json_t *event;

    if (dump->route >= 0 && entry->record.route != dump->route) {
        return true;
    }
    dump->events++;
    dump->ok = dump_event(&event, dump->store, entry, dump->err) &&
               put_line(dump, event);
    return dump->ok;
}

static json_t *paused_json(const struct dump *dump)
{
    json_t *names = json_array();
    const char *name;

    for (uint16_t i = 0; (name = store_route_name(dump->store, i)) != NULL;
         i++) {
        if (store_is_paused(dump->store, i) &&
            (dump->route < 0 || dump->route == i)) {
            add(names, json_string(name));
        }
    }
    return names;
}

static bool put_header(struct dump *dump)
{
    const struct store *store = dump->store;
    json_t *header = json_object();

    set_number(header, "onced_dump", DUMP_VERSION);
    set(header, "version", json_string(ONCED_VERSION));
    set_hex(header, "store", store_uuid(store));
    set_number(header, "incarnation", store_incarnation(store));
    set(header, "at", story_time(clock_wall_ms(clock_system())));
    set(header, "route",
        dump->route < 0
            ? json_null()
            : json_string(store_route_name(store, (uint16_t)dump->route)));
    set_time(header, "forgotten_until", store_forgotten_until_ms(store),
             INT64_MIN);
    set(header, "paused", paused_json(dump));
    return put_line(dump, header);
}

static bool put_end(struct dump *dump)
{
    return put_line(dump, json_pack("{s:b, s:I}", "end", 1, "events",
                                    (json_int_t)dump->events)) &&
           (fflush(dump->out) == 0 || fail_write(dump));
}

static bool find_route(struct dump *dump, const char *name)
{
    const char *known;

    for (uint16_t i = 0; (known = store_route_name(dump->store, i)) != NULL;
         i++) {
        if (strcmp(known, name) == 0) {
            dump->route = i;
            return true;
        }
    }
    return err_set(dump->err, ERR_NOT_FOUND, "no route \"%s\"", name);
}

bool dump_write(struct store *store, const char *route, FILE *out,
                struct err *err)
{
    struct dump dump = {
        .store = store, .out = out, .route = -1, .ok = true, .err = err};
    bool ok;

    if ((route != NULL && !find_route(&dump, route)) || !put_header(&dump) ||
        !store_begin(store, err)) {
        return false;
    }
    ok = store_walk(store, put_event, &dump, err) && dump.ok;
    store_abort(store);
    return ok && put_end(&dump);
}
