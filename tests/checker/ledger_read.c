/* SPDX-License-Identifier: MIT */
#include "checker/ledger_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "checker/ledger_members.h"
#include "checker/ledger_names.h"

/* --- the members that a line has ------------------------------------------ */

enum field_type {
    FIELD_TEXT,   /* null reads as empty */
    FIELD_SHOWN,  /* as FIELD_TEXT; a number as its digits */
    FIELD_COUNT,  /* null reads as 0 */
    FIELD_NUMBER, /* whole, not negative */
    FIELD_FLAG,
    FIELD_EFFECT, /* a flag, or not there */
    FIELD_WORD,   /* one of `words`, into an enum */
    FIELD_HISTORY,
};

struct field {
    const char *name;
    enum field_type type;
    bool required;
    size_t offset;
    const char *const *words;
};

#define AT(member) offsetof(struct ledger_line, member)
#define NEED(name, type, member)                                               \
    {                                                                          \
        name, FIELD_##type, true, AT(member), NULL                             \
    }
#define MAY(name, type, member)                                                \
    {                                                                          \
        name, FIELD_##type, false, AT(member), NULL                            \
    }
#define NEED_WORD(name, member, words)                                         \
    {                                                                          \
        name, FIELD_WORD, true, AT(member), words                              \
    }
#define MAY_WORD(name, member, words)                                          \
    {                                                                          \
        name, FIELD_WORD, false, AT(member), words                             \
    }
#define EVENT_NAME(line)                                                       \
    NEED("route", TEXT, line.event.route),                                     \
        MAY("tenant", TEXT, line.event.tenant),                                \
        NEED("id", TEXT, line.event.id)

static const struct field route_fields[] = {
    NEED("route", TEXT, route.route),
    NEED("namespace", TEXT, route.namespace),
    NEED_WORD("on_uncertain", route.on_uncertain, ledger_on_uncertain_names),
    NEED_WORD("after_dead", route.after_dead, ledger_after_dead_names),
    NEED("ordered", FLAG, route.ordered),
    MAY_WORD("respond", route.respond, ledger_respond_names),
    MAY_WORD("drift", route.drift, ledger_drift_names),
    {0},
};
static const struct field sent_fields[] = {
    NEED("t", NUMBER, sent.t_ms),
    NEED("try", COUNT, sent.try),
    EVENT_NAME(sent),
    NEED("hash", TEXT, sent.hash),
    MAY("order", TEXT, sent.order),
    MAY("valid", FLAG, sent.valid),
    {0},
};
static const struct field resp_fields[] = {
    NEED("t", NUMBER, resp.t_ms),
    NEED("try", COUNT, resp.try),
    NEED("status", NUMBER, resp.status),
    MAY("body", TEXT, resp.body),
    MAY("retry_after", NUMBER, resp.retry_after_s),
    {0},
};
static const struct field inv_fields[] = {
    NEED("t", NUMBER, inv.t_ms),
    NEED("n", COUNT, inv.n),
    EVENT_NAME(inv),
    NEED("hash", TEXT, inv.hash),
    NEED("key", TEXT, inv.key),
    NEED("attempt", COUNT, inv.attempt),
    NEED("process", COUNT, inv.process),
    {0},
};
static const struct field done_fields[] = {
    NEED("t", NUMBER, done.t_ms),
    NEED("n", COUNT, done.n),
    NEED_WORD("end", done.end, ledger_end_names),
    MAY("status", NUMBER, done.status),
    MAY("effect", EFFECT, done.effect),
    {0},
};
static const struct field order_fields[] = {
    NEED("t", NUMBER, order.t_ms),
    NEED_WORD("kind", order.kind, ledger_order_names),
    NEED("route", TEXT, order.event.route),
    MAY("tenant", TEXT, order.event.tenant),
    MAY("id", TEXT, order.event.id),
    NEED_WORD("verdict", order.verdict, ledger_verdict_names),
    {0},
};
static const struct field fault_fields[] = {
    NEED("t", NUMBER, fault.t_ms),
    NEED("kind", TEXT, fault.kind),
    MAY("process", COUNT, fault.process),
    {0},
};
static const struct field start_fields[] = {
    NEED("t", NUMBER, start.t_ms),
    NEED("process", COUNT, start.process),
    MAY("store", TEXT, start.store),
    {0},
};
static const struct field phase_fields[] = {
    NEED("t", NUMBER, phase.t_ms),
    MAY("within_ms", NUMBER, phase.within_ms),
    {0},
};
static const struct field forgotten_fields[] = {
    NEED("t", NUMBER, forgotten.t_ms),
    EVENT_NAME(forgotten),
    {0},
};
#define PLACE(line)                                                            \
    NEED("topic", TEXT, line.place.topic),                                     \
        NEED("partition", NUMBER, line.place.partition)

static const struct field msg_fields[] = {
    NEED("t", NUMBER, msg.t_ms),
    PLACE(msg),
    NEED("offset", NUMBER, msg.offset),
    EVENT_NAME(msg),
    NEED("hash", TEXT, msg.hash),
    MAY("order", TEXT, msg.order),
    {0},
};
static const struct field owner_fields[] = {
    NEED("t", NUMBER, owner.t_ms),
    NEED("process", COUNT, owner.process),
    PLACE(owner),
    MAY("committed", NUMBER, owner.committed),
    {0},
};
static const struct field commit_fields[] = {
    NEED("t", NUMBER, commit.t_ms),
    PLACE(commit),
    NEED("offset", NUMBER, commit.offset),
    MAY("process", COUNT, commit.process),
    {0},
};
static const struct field skip_fields[] = {
    NEED("t", NUMBER, skip.t_ms),
    NEED_WORD("kind", skip.kind, ledger_skip_names),
    PLACE(skip),
    NEED("from", NUMBER, skip.from),
    NEED("to", NUMBER, skip.to),
    {0},
};
static const struct field event_fields[] = {
    EVENT_NAME(event),
    NEED("namespace", TEXT, event.namespace),
    NEED_WORD("state", event.state, ledger_state_names),
    MAY("reason", TEXT, event.reason),
    NEED("run", COUNT, event.run),
    NEED("attempts", COUNT, event.attempts),
    MAY("tries", COUNT, event.tries),
    MAY("crashes", COUNT, event.crashes),
    MAY("deliveries", COUNT, event.deliveries),
    MAY("drift", COUNT, event.drift),
    NEED("origin", COUNT, event.origin),
    MAY("due", SHOWN, event.due),
    MAY("history", HISTORY, event.rows),
    MAY("store", TEXT, event.store),
    {0},
};
static const struct field dump_head_fields[] = {
    MAY("store", TEXT, dump_head.store),
    {0},
};
static const struct field dump_end_fields[] = {
    NEED("events", COUNT, dump_end.events),
    {0},
};

struct line_form {
    const char *name; /* the value of "l"; NULL: none */
    const struct field *fields;
};

static const struct line_form forms[] = {
    [LINE_ROUTE] = {"route", route_fields},
    [LINE_SENT] = {"sent", sent_fields},
    [LINE_RESP] = {"resp", resp_fields},
    [LINE_INV] = {"inv", inv_fields},
    [LINE_DONE] = {"done", done_fields},
    [LINE_ORDER] = {"order", order_fields},
    [LINE_FAULT] = {"fault", fault_fields},
    [LINE_START] = {"start", start_fields},
    [LINE_HEAL] = {"heal", phase_fields},
    [LINE_QUIET] = {"quiet", phase_fields},
    [LINE_FORGOTTEN] = {"forgotten", forgotten_fields},
    [LINE_MSG] = {"msg", msg_fields},
    [LINE_ASSIGN] = {"assign", owner_fields},
    [LINE_REVOKE] = {"revoke", owner_fields},
    [LINE_LOST] = {"lost", owner_fields},
    [LINE_COMMIT] = {"commit", commit_fields},
    [LINE_RESET] = {"reset", commit_fields},
    [LINE_SKIP] = {"skip", skip_fields},
    [LINE_EVENT] = {"event", event_fields},
    [LINE_DUMP_HEAD] = {NULL, dump_head_fields},
    [LINE_DUMP_END] = {NULL, dump_end_fields},
};
enum { FORMS = sizeof forms / sizeof forms[0], FIELDS_MAX = 20 };

/* --- values --------------------------------------------------------------- */

void ledger_reader_fini(struct ledger_reader *reader)
{
    buf_free(&reader->text);
    free(reader->rows);
    *reader = LEDGER_READER_INIT;
}

/* The buffer has room for the whole line, so what was decoded stays put. */
static bool take_text(struct ledger_reader *reader, struct json_value value,
                      struct slice *out)
{
    size_t start = reader->text.len;

    if (value.type == JSON_NULL) {
        *out = (struct slice){NULL, 0};
        return true;
    }
    if (value.type != JSON_STRING) {
        return false;
    }
    *out = (struct slice){value.raw.data + 1, value.raw.len - 2};
    if (memchr(out->data, '\\', out->len) == NULL) {
        return true;
    }
    if (!json_string_is_text(value)) {
        return false;
    }
    json_decode_string(value, &reader->text);
    *out = slice_from(buf_slice(&reader->text), start);
    return true;
}

static bool take_count(struct json_value value, uint64_t *out)
{
    if (value.type == JSON_NULL) {
        *out = 0;
        return true;
    }
    return value.type == JSON_NUMBER && text_u64(value.raw, out);
}

static bool take_number(struct json_value value, int64_t *out)
{
    uint64_t number;

    if (value.type != JSON_NUMBER || !text_u64(value.raw, &number) ||
        number > INT64_MAX) {
        return false;
    }
    *out = (int64_t)number;
    return true;
}

static bool take_word(struct json_value value, const char *const *words,
                      unsigned *out)
{
    struct slice text;

    if (value.type != JSON_STRING) {
        return false;
    }
    text = (struct slice){value.raw.data + 1, value.raw.len - 2};
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (slice_eq(text, slice_of(words[i]))) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool take_shown(struct ledger_reader *reader, struct json_value value,
                       struct slice *out)
{
    if (value.type == JSON_NUMBER) {
        *out = value.raw;
        return true;
    }
    return take_text(reader, value, out);
}

/* --- the history ---------------------------------------------------------- */

static bool take_row(struct ledger_reader *reader, struct json_value item,
                     struct ledger_row *row)
{
    struct ledger_members members;
    bool ok = item.type == JSON_OBJECT;

    if (!ok) {
        return false;
    }
    *row = (struct ledger_row){.attempt = 0};
    members = ledger_members_of(item.raw);
    while (ok && ledger_next_member(&members)) {
        struct json_value value = members.value;

        if (slice_eq(members.name, SLICE("at"))) {
            ok = take_shown(reader, value, &row->at);
        } else if (slice_eq(members.name, SLICE("what"))) {
            ok = take_text(reader, value, &row->what);
        } else if (slice_eq(members.name, SLICE("attempt"))) {
            ok = take_count(value, &row->attempt);
        } else if (slice_eq(members.name, SLICE("run"))) {
            ok = take_count(value, &row->run);
        } else if (slice_eq(members.name, SLICE("actor"))) {
            ok = take_text(reader, value, &row->actor);
        } else if (slice_eq(members.name, SLICE("why"))) {
            ok = take_text(reader, value, &row->why);
        }
    }
    return ok;
}

static void reserve_row(struct ledger_reader *reader, size_t n)
{
    if (n == reader->rows_cap) {
        reader->rows_cap = n == 0 ? 16 : n * 2;
        reader->rows =
            mem_grow(reader->rows, reader->rows_cap, sizeof *reader->rows);
    }
}

/* An empty history is one, too: `rows` is not NULL then. */
static bool take_history(struct ledger_reader *reader, struct json_value value,
                         struct ledger_line *out)
{
    struct json_value item;
    size_t at = 0, n = 0;

    if (value.type != JSON_ARRAY) {
        return false;
    }
    reserve_row(reader, 0);
    while (json_next_item(value, &at, &item)) {
        reserve_row(reader, n);
        if (!take_row(reader, item, &reader->rows[n++])) {
            return false;
        }
    }
    out->event.n_rows = n;
    out->event.rows = reader->rows;
    return true;
}

/* --- lines ---------------------------------------------------------------- */

static bool take_effect(struct json_value value, enum ledger_effect *out)
{
    *out = value.type == JSON_TRUE    ? LEDGER_EFFECT_APPLIED
           : value.type == JSON_FALSE ? LEDGER_EFFECT_NONE
                                      : LEDGER_EFFECT_UNSEEN;
    return value.type == JSON_TRUE || value.type == JSON_FALSE ||
           value.type == JSON_NULL;
}

static bool take_field(struct ledger_reader *reader, const struct field *field,
                       struct json_value value, struct ledger_line *out)
{
    void *at = (char *)out + field->offset;

    switch (field->type) {
    case FIELD_TEXT:
        return take_text(reader, value, at);
    case FIELD_SHOWN:
        return take_shown(reader, value, at);
    case FIELD_COUNT:
        return take_count(value, at);
    case FIELD_NUMBER:
        return take_number(value, at);
    case FIELD_FLAG:
        *(bool *)at = value.type == JSON_TRUE;
        return value.type == JSON_TRUE || value.type == JSON_FALSE;
    case FIELD_EFFECT:
        return take_effect(value, at);
    case FIELD_WORD:
        return take_word(value, field->words, at);
    case FIELD_HISTORY:
        return take_history(reader, value, out);
    }
    UNREACHABLE("every type of field returns");
}

static bool find_form(struct json_value value, enum ledger_kind *kind)
{
    for (enum ledger_kind i = LINE_ROUTE; i <= LINE_EVENT; i++) {
        struct slice name = slice_of(forms[i].name);

        if (value.type == JSON_STRING && value.raw.len == name.len + 2 &&
            memcmp(value.raw.data + 1, name.data, name.len) == 0) {
            *kind = i;
            return true;
        }
    }
    return false;
}

/* A line without "l" is one of a dump. */
static bool find_kind(struct slice text, enum ledger_kind *kind)
{
    struct ledger_members members = ledger_members_of(text);

    *kind = LINE_EVENT;
    while (ledger_next_member(&members)) {
        if (slice_eq(members.name, SLICE("l"))) {
            return find_form(members.value, kind);
        }
        if (slice_eq(members.name, SLICE("onced_dump"))) {
            *kind = LINE_DUMP_HEAD;
            return true;
        }
        if (slice_eq(members.name, SLICE("end"))) {
            *kind = LINE_DUMP_END;
            return true;
        }
    }
    return true;
}

static void set_defaults(struct ledger_line *out)
{
    enum ledger_kind kind = out->kind;

    memset(out, 0, sizeof *out);
    out->kind = kind;
    if (kind == LINE_SENT) {
        out->sent.valid = true;
    } else if (kind == LINE_RESP) {
        out->resp.retry_after_s = -1;
    } else if (kind == LINE_HEAL) {
        out->phase.within_ms = 30000;
    } else if (kind == LINE_ASSIGN) {
        out->owner.committed = -1;
    }
}

static bool take_members(struct ledger_reader *reader, struct slice text,
                         struct ledger_line *out, struct err *err)
{
    const struct field *fields = forms[out->kind].fields;
    struct ledger_members members = ledger_members_of(text);
    bool seen[FIELDS_MAX] = {false};

    while (ledger_next_member(&members)) {
        size_t i = 0;

        while (fields[i].name != NULL &&
               !slice_eq(members.name, slice_of(fields[i].name))) {
            i++;
        }
        CHECK(i < FIELDS_MAX);
        if (fields[i].name == NULL) {
            continue;
        }
        if (seen[i] || !take_field(reader, &fields[i], members.value, out)) {
            return err_set(err, ERR_DATA, "\"%s\" is not as it should be",
                           fields[i].name);
        }
        seen[i] = true;
    }
    for (size_t i = 0; fields[i].name != NULL; i++) {
        if (fields[i].required && !seen[i]) {
            return err_set(err, ERR_DATA, "\"%s\" is missing", fields[i].name);
        }
    }
    return true;
}

bool ledger_read(struct ledger_reader *reader, struct slice line,
                 struct ledger_line *out, struct err *err)
{
    struct slice text = slice_trim(line);

    if (json_check(text, NULL) != JSON_OK || text.data[0] != '{') {
        return err_set(err, ERR_DATA, "it is no JSON object");
    }
    if (!find_kind(text, &out->kind)) {
        return err_set(err, ERR_DATA, "\"l\" is no kind of line");
    }
    buf_clear(&reader->text);
    buf_reserve(&reader->text, text.len);
    set_defaults(out);
    return take_members(reader, text, out, err);
}

bool ledger_line_time(const struct ledger_line *line, int64_t *t_ms)
{
    switch (line->kind) {
    case LINE_SENT:
        *t_ms = line->sent.t_ms;
        return true;
    case LINE_RESP:
        *t_ms = line->resp.t_ms;
        return true;
    case LINE_INV:
        *t_ms = line->inv.t_ms;
        return true;
    case LINE_DONE:
        *t_ms = line->done.t_ms;
        return true;
    case LINE_ORDER:
        *t_ms = line->order.t_ms;
        return true;
    case LINE_FAULT:
        *t_ms = line->fault.t_ms;
        return true;
    case LINE_START:
        *t_ms = line->start.t_ms;
        return true;
    case LINE_HEAL:
    case LINE_QUIET:
        *t_ms = line->phase.t_ms;
        return true;
    case LINE_FORGOTTEN:
        *t_ms = line->forgotten.t_ms;
        return true;
    case LINE_MSG:
        *t_ms = line->msg.t_ms;
        return true;
    case LINE_ASSIGN:
    case LINE_REVOKE:
    case LINE_LOST:
        *t_ms = line->owner.t_ms;
        return true;
    case LINE_COMMIT:
    case LINE_RESET:
        *t_ms = line->commit.t_ms;
        return true;
    case LINE_SKIP:
        *t_ms = line->skip.t_ms;
        return true;
    case LINE_ROUTE:
    case LINE_EVENT:
    case LINE_DUMP_HEAD:
    case LINE_DUMP_END:
        return false;
    }
    UNREACHABLE("every kind of line returns");
}
