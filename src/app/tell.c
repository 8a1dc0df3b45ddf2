/* SPDX-License-Identifier: MIT */
#include "app/tell.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

enum { BODY_SHOWN = 4096, COLUMNS_MAX = 16, LABEL_WIDTH = 12 };

/* --- words --------------------------------------------------------------- */

/* C0 and DEL, and C1, which UTF-8 writes as C2 80 to C2 9F. */
static bool is_control(struct slice text, size_t i)
{
    unsigned char byte = (unsigned char)text.data[i];

    return byte < 0x20 || byte == 0x7f ||
           (byte >= 0x80 && byte < 0xa0 && i > 0 &&
            (unsigned char)text.data[i - 1] == 0xc2);
}

static void put(struct buf *out, struct slice text, bool is_block)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];

        if (!is_control(text, i) ||
            (is_block && (byte == '\n' || byte == '\t'))) {
            buf_add_byte(out, byte);
            continue;
        }
        if ((unsigned char)byte >= 0x80) {
            out->len--; /* the byte before it is a part of it */
        }
        buf_add_byte(out, '?');
    }
}

static const char *get(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text == NULL ? "" : text;
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void put_word(struct buf *out, const char *text)
{
    put(out, slice_of(text), false);
}

/* "2h ago", "in 3s" */
static void put_when(struct buf *out, const char *time, int64_t now_ms)
{
    int64_t at_ms;

    if (!text_parse_time(slice_of(time), &at_ms)) {
        buf_add_byte(out, '-');
        return;
    }
    if (at_ms > now_ms) {
        buf_add_str(out, "in ");
        text_put_duration(out, at_ms - now_ms);
    } else {
        text_put_duration(out, now_ms - at_ms);
        buf_add_str(out, " ago");
    }
}

static void put_count(struct buf *out, json_int_t n, const char *what,
                      const char *plural)
{
    buf_printf(out, "%lld %s", (long long)n, n == 1 ? what : plural);
}

/* --- tables -------------------------------------------------------------- */

/* Characters, near enough to columns. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
    }
    return width;
}

static void put_row(const json_t *row, const size_t *widths, struct buf *out)
{
    size_t last = json_array_size(row), i;
    const json_t *cell;

    while (last > 0 && json_string_length(json_array_get(row, last - 1)) == 0) {
        last--;
    }
    json_array_foreach(row, i, cell)
    {
        const char *text = json_string_value(cell);

        if (i == last) {
            break;
        }
        buf_add_str(out, i == 0 ? "" : "  ");
        put_word(out, text);
        for (size_t at = width_of(text); i + 1 < last && at < widths[i]; at++) {
            buf_add_byte(out, ' ');
        }
    }
    buf_add_byte(out, '\n');
}

void tell_table(const json_t *rows, struct buf *out)
{
    size_t widths[COLUMNS_MAX] = {0};
    const json_t *row, *cell;
    size_t i, column;

    json_array_foreach(rows, i, row)
    {
        CHECK(json_array_size(row) <= COLUMNS_MAX);
        json_array_foreach(row, column, cell)
        {
            size_t width = width_of(json_string_value(cell));

            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    json_array_foreach(rows, i, row)
    {
        put_row(row, widths, out);
    }
}

/* Takes what is in `cell` as one more cell, and clears it. */
static void add_cell(json_t *row, struct buf *cell)
{
    CHECK(json_array_append_new(row, json_string(buf_cstr(cell))) == 0);
    buf_clear(cell);
}

static void add_text(json_t *row, const char *text)
{
    CHECK(json_array_append_new(row, json_string(text)) == 0);
}

/* --- a page of events ---------------------------------------------------- */

/* "exhausted (503): status 503: no try is left" */
static void put_reason(struct buf *out, const json_t *event)
{
    const char *reason = get(event, "reason"), *code = get(event, "code");
    const char *why = get(event, "why");

    put_word(out, reason);
    if (code[0] != '\0') {
        buf_add_str(out, " (");
        put_word(out, code);
        buf_add_byte(out, ')');
    }
    if (why[0] != '\0') {
        buf_add_str(out, out->len == 0 ? "" : ": ");
        put_word(out, why);
    }
}

static json_t *event_row(const json_t *event, int64_t now_ms)
{
    json_t *row = json_array();
    struct buf cell = BUF_INIT;

    add_text(row, get(event, "state"));
    add_text(row, get(event, "route"));
    buf_add_str(&cell, get(event, "tenant"));
    buf_add_str(&cell, cell.len == 0 ? "" : "/");
    buf_add_str(&cell, get(event, "id"));
    add_cell(row, &cell);
    buf_printf(&cell, "%lld", (long long)number(event, "attempts"));
    add_cell(row, &cell);
    buf_printf(&cell, "%lld", (long long)number(event, "deliveries"));
    add_cell(row, &cell);
    put_when(&cell, get(event, "first_seen"), now_ms);
    add_cell(row, &cell);
    if (get(event, "due")[0] != '\0' &&
        strcmp(get(event, "state"), "RUNNING") != 0) {
        buf_add_str(&cell, "next try ");
        put_when(&cell, get(event, "due"), now_ms);
    } else {
        put_reason(&cell, event);
    }
    add_cell(row, &cell);
    buf_free(&cell);
    return row;
}

void tell_events(const json_t *page, int64_t now_ms, struct buf *out)
{
    const json_t *events = json_object_get(page, "events");
    const char *cursor = get(page, "cursor");
    json_t *rows = json_pack("[[s,s,s,s,s,s,s]]", "STATE", "ROUTE", "ID",
                             "ATTEMPTS", "DELIVERIES", "FIRST SEEN", "WHY");
    const json_t *event;
    size_t i;

    if (json_array_size(events) == 0) {
        buf_add_str(out, "no events\n");
    } else {
        json_array_foreach(events, i, event)
        {
            CHECK(json_array_append_new(rows, event_row(event, now_ms)) == 0);
        }
        tell_table(rows, out);
    }
    if (cursor[0] != '\0') {
        buf_printf(out, "more: --cursor %s\n", cursor);
    }
    json_decref(rows);
}

/* --- one event ----------------------------------------------------------- */

static void put_label(struct buf *out, const char *label)
{
    buf_printf(out, "  %-*s", LABEL_WIDTH, label);
}

static void put_deliveries(struct buf *out, const json_t *event, int64_t now_ms)
{
    put_label(out, "deliveries");
    put_count(out, number(event, "deliveries"), "delivery", "deliveries");
    buf_add_str(out, ", first ");
    put_when(out, get(event, "first_seen"), now_ms);
    if (number(event, "deliveries") > 1) {
        buf_add_str(out, ", last ");
        put_when(out, get(event, "last_seen"), now_ms);
    }
    if (number(event, "drift") > 0) {
        buf_printf(out, ", %lld with other content",
                   (long long)number(event, "drift"));
    }
    buf_add_byte(out, '\n');
}

static void put_summary(struct buf *out, const json_t *event, int64_t now_ms)
{
    const char *due = get(event, "due");

    put_word(out, get(event, "route"));
    buf_add_str(out, "  ");
    put_word(out, get(event, "id"));
    buf_printf(out, "  %s\n", get(event, "state"));
    if (get(event, "tenant")[0] != '\0') {
        put_label(out, "tenant");
        put_word(out, get(event, "tenant"));
        buf_add_byte(out, '\n');
    }
    if (get(event, "reason")[0] != '\0' || get(event, "why")[0] != '\0') {
        struct buf reason = BUF_INIT;

        put_reason(&reason, event);
        put_label(out, "why");
        buf_add_slice(out, buf_slice(&reason));
        buf_add_byte(out, '\n');
        buf_free(&reason);
    }
    put_deliveries(out, event, now_ms);
    put_label(out, "attempts");
    buf_printf(out, "%lld", (long long)number(event, "attempts"));
    if (number(event, "run") > 1) {
        buf_printf(out, ", run %lld", (long long)number(event, "run"));
    }
    buf_add_byte(out, '\n');
    if (due[0] != '\0') {
        put_label(out, strcmp(get(event, "state"), "RUNNING") == 0
                           ? "at most"
                           : "next try");
        put_when(out, due, now_ms);
        buf_add_byte(out, '\n');
    }
    if (get(event, "idempotency_key")[0] != '\0') {
        put_label(out, "key");
        put_word(out, get(event, "idempotency_key"));
        buf_add_byte(out, '\n');
    }
}

/* The first moment is told in full, the later ones as the time since. */
static void put_moment(struct buf *cell, const char *at, int64_t start_ms)
{
    int64_t at_ms = start_ms;

    (void)text_parse_time(slice_of(at), &at_ms);
    if (start_ms == INT64_MIN || at_ms < start_ms) {
        buf_add_str(cell, at);
    } else {
        buf_add_byte(cell, '+');
        text_put_duration(cell, at_ms - start_ms);
    }
}

static json_t *history_row(const json_t *entry, int64_t start_ms)
{
    json_t *row = json_array();
    struct buf cell = BUF_INIT;

    buf_add_str(&cell, "  ");
    put_moment(&cell, get(entry, "at"), start_ms);
    add_cell(row, &cell);
    add_text(row, get(entry, "what"));
    if (number(entry, "attempt") > 0) {
        buf_printf(&cell, "attempt %lld", (long long)number(entry, "attempt"));
    }
    add_cell(row, &cell);
    if (get(entry, "actor")[0] != '\0') {
        buf_printf(&cell, "by %s%s", get(entry, "actor"),
                   get(entry, "why")[0] == '\0' ? "" : ": ");
    }
    buf_add_str(&cell, get(entry, "why"));
    add_cell(row, &cell);
    buf_free(&cell);
    return row;
}

static void put_history(struct buf *out, const json_t *history)
{
    json_t *rows = json_array();
    int64_t start_ms = INT64_MIN;
    const json_t *entry;
    size_t i;

    json_array_foreach(history, i, entry)
    {
        CHECK(json_array_append_new(rows, history_row(entry, start_ms)) == 0);
        if (i == 0) {
            (void)text_parse_time(slice_of(get(entry, "at")), &start_ms);
        }
    }
    buf_add_str(out, "\nhistory\n");
    tell_table(rows, out);
    json_decref(rows);
}

static void put_headers(struct buf *out, const json_t *headers)
{
    const json_t *header;
    size_t i;

    json_array_foreach(headers, i, header)
    {
        buf_add_str(out, "  ");
        put_word(out, json_string_value(json_array_get(header, 0)));
        buf_add_str(out, json_is_null(json_array_get(header, 1)) ? " is null"
                                                                 : ": ");
        put_word(out, json_string_value(json_array_get(header, 1)));
        buf_add_byte(out, '\n');
    }
}

static void put_body(struct buf *out, const json_t *message)
{
    const char *base64 = get(message, "body_base64");
    const json_t *text = json_object_get(message, "body");
    struct slice body = {json_string_value(text), json_string_length(text)};
    size_t more = 0;

    if (body.len > BODY_SHOWN) {
        body.len = BODY_SHOWN;
        body.len = slice_utf8_prefix(body);
        more = json_string_length(text) - body.len;
    }
    if (json_is_true(json_object_get(message, "body_omitted"))) {
        buf_add_str(out, "  (the body was too large to be kept)\n");
    } else if (base64[0] != '\0') {
        buf_printf(out, "  (%zu bytes that are not text; --json has them)\n",
                   strlen(base64) / 4 * 3);
    } else if (body.len > 0) {
        buf_add_byte(out, '\n');
        put(out, body, true);
        buf_add_str(out, body.data[body.len - 1] == '\n' ? "" : "\n");
    }
    if (more > 0) {
        buf_printf(out, "  … %zu more bytes; --json has them\n", more);
    }
}

/* "null" is no key, "" an empty one. */
static void put_key(struct buf *out, const json_t *request)
{
    const char *base64 = get(request, "key_base64");

    put_label(out, "key");
    if (base64[0] != '\0') {
        buf_printf(out, "%s (base64)", base64);
    } else if (json_is_null(json_object_get(request, "key"))) {
        buf_add_str(out, "null");
    } else {
        buf_add_byte(out, '"');
        put_word(out, get(request, "key"));
        buf_add_byte(out, '"');
    }
    buf_add_byte(out, '\n');
}

static void put_position(struct buf *out, const json_t *request)
{
    const char *time = get(request, "timestamp");

    buf_printf(out, " partition %lld offset %lld\n",
               (long long)number(request, "partition"),
               (long long)number(request, "offset"));
    if (time[0] != '\0') {
        put_label(out, "timestamp");
        buf_printf(out, "%s\n", time);
    }
    put_key(out, request);
}

static void put_request(struct buf *out, const json_t *request)
{
    const char *query = get(request, "query");

    buf_add_str(out, "\nrequest  ");
    if (!json_is_object(request)) {
        buf_add_str(out, "not kept any more\n");
        return;
    }
    if (json_object_get(request, "topic") != NULL) {
        put_word(out, get(request, "topic"));
        put_position(out, request);
    } else {
        put_word(out, get(request, "method"));
        buf_add_byte(out, ' ');
        put_word(out, get(request, "path"));
        buf_add_str(out, query[0] == '\0' ? "" : "?");
        put_word(out, query);
        buf_add_byte(out, '\n');
    }
    put_headers(out, json_object_get(request, "headers"));
    put_body(out, request);
}

void tell_event(const json_t *event, int64_t now_ms, struct buf *out)
{
    const json_t *result = json_object_get(event, "result");

    put_summary(out, event, now_ms);
    put_history(out, json_object_get(event, "history"));
    put_request(out, json_object_get(event, "request"));
    if (json_is_object(result) && number(result, "status") == 0) {
        buf_add_str(out, "\nresult  done; the answer is not known\n");
    } else if (json_is_object(result)) {
        buf_printf(out, "\nresult  status %lld\n",
                   (long long)number(result, "status"));
        put_headers(out, json_object_get(result, "headers"));
        put_body(out, result);
    }
}

/* --- status -------------------------------------------------------------- */

static json_t *route_row(const json_t *route)
{
    static const char *const counts[] = {"pending",   "running", "uncertain",
                                         "succeeded", "failed",  "dead"};
    json_t *row = json_array();
    struct buf cell = BUF_INIT;

    add_text(row, get(route, "name"));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        buf_printf(&cell, "%lld", (long long)number(route, counts[i]));
        add_cell(row, &cell);
    }
    if (json_is_true(json_object_get(route, "paused"))) {
        buf_add_str(&cell, "paused");
    } else if (json_is_true(json_object_get(route, "retired"))) {
        buf_add_str(&cell, "retired");
    }
    add_cell(row, &cell);
    buf_free(&cell);
    return row;
}

/* "-" where it is not known. */
static void add_number(json_t *row, const json_t *json)
{
    struct buf cell = BUF_INIT;

    if (json_is_integer(json)) {
        buf_printf(&cell, "%lld", (long long)json_integer_value(json));
    } else {
        buf_add_byte(&cell, '-');
    }
    add_cell(row, &cell);
    buf_free(&cell);
}

static json_t *partition_row(const json_t *partition)
{
    static const char *const numbers[] = {"partition", "low_water", "lag",
                                          "unsettled"};
    json_t *row = json_array();
    struct buf cell = BUF_INIT;

    add_text(row, get(partition, "group"));
    add_text(row, get(partition, "topic"));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        add_number(row, json_object_get(partition, numbers[i]));
    }
    if (number(partition, "head_age_ms") > 0) {
        text_put_duration(&cell, number(partition, "head_age_ms"));
    }
    add_cell(row, &cell);
    buf_free(&cell);
    return row;
}

static void put_partitions(struct buf *out, const json_t *partitions)
{
    json_t *rows = json_pack("[[s,s,s,s,s,s,s]]", "GROUP", "TOPIC", "PARTITION",
                             "LOW-WATER", "LAG", "UNSETTLED", "HEAD AGE");
    const json_t *partition;
    size_t i;

    json_array_foreach(partitions, i, partition)
    {
        CHECK(json_array_append_new(rows, partition_row(partition)) == 0);
    }
    if (json_array_size(rows) > 1) {
        buf_add_byte(out, '\n');
        tell_table(rows, out);
    }
    json_decref(rows);
}

void tell_status(const json_t *status, struct buf *out)
{
    const json_t *store = json_object_get(status, "store"), *route;
    json_t *rows =
        json_pack("[[s,s,s,s,s,s,s,s]]", "ROUTE", "PENDING", "RUNNING",
                  "UNCERTAIN", "SUCCEEDED", "FAILED", "DEAD", "");
    size_t i;

    buf_printf(out, "onced %s, %s\n", get(status, "version"),
               get(status, "state"));
    buf_add_str(out, "store ");
    put_word(out, get(store, "path"));
    buf_printf(out, ": %lld events remembered, %.1f MiB of ",
               (long long)number(store, "remembered"),
               (double)number(store, "bytes") / (1 << 20));
    text_put_size(out, (uint64_t)number(store, "max_bytes"));
    buf_add_str(out, json_is_true(json_object_get(store, "full")) ? ", FULL\n\n"
                                                                  : "\n\n");
    json_array_foreach(json_object_get(status, "routes"), i, route)
    {
        CHECK(json_array_append_new(rows, route_row(route)) == 0);
    }
    tell_table(rows, out);
    put_partitions(out, json_object_get(status, "kafka"));
    json_decref(rows);
}
