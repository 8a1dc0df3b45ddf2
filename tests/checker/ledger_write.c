/* SPDX-License-Identifier: MIT */
#include "checker/ledger.h"

#include <string.h>

#include "checker/ledger_names.h"

void ledger_fini(struct ledger *ledger)
{
    buf_free(&ledger->text);
    *ledger = LEDGER_INIT;
}

struct slice ledger_text(const struct ledger *ledger)
{
    return buf_slice(&ledger->text);
}

bool ledger_drain(struct ledger *ledger, FILE *file, struct err *err)
{
    size_t len = ledger->text.len;

    if (fwrite(ledger->text.data, 1, len, file) != len || fflush(file) != 0) {
        return err_set(err, ERR_IO, "write ledger");
    }
    buf_clear(&ledger->text);
    return true;
}

/* --- values --------------------------------------------------------------- */

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\';
}

static void put_escaped(struct buf *out, unsigned char byte)
{
    if (byte >= 0x20) {
        buf_add_byte(out, '\\');
        buf_add_byte(out, (char)byte);
    } else {
        buf_printf(out, "\\u%04x", byte);
    }
}

static void put_string(struct buf *out, struct slice text)
{
    size_t from = 0;

    buf_reserve(out, text.len + 2);
    buf_add_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (!is_plain(byte)) {
            buf_add(out, text.data + from, i - from);
            put_escaped(out, byte);
            from = i + 1;
        }
    }
    if (from < text.len) {
        buf_add(out, text.data + from, text.len - from);
    }
    buf_add_byte(out, '"');
}

static void put_u64(struct buf *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    buf_add(out, digits + at, sizeof digits - at);
}

/* `name` is ",\"id\":" with all its signs, so that it is copied at once. */
static void text(struct ledger *ledger, const char *name, struct slice value)
{
    buf_add_str(&ledger->text, name);
    put_string(&ledger->text, value);
}

static void word(struct ledger *ledger, const char *name, const char *value)
{
    text(ledger, name, slice_of(value));
}

static void number(struct ledger *ledger, const char *name, uint64_t value)
{
    buf_add_str(&ledger->text, name);
    put_u64(&ledger->text, value);
}

static void integer(struct ledger *ledger, const char *name, int64_t value)
{
    buf_add_str(&ledger->text, name);
    if (value < 0) {
        buf_add_byte(&ledger->text, '-');
    }
    put_u64(&ledger->text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void flag(struct ledger *ledger, const char *name, bool value)
{
    buf_add_str(&ledger->text, name);
    buf_add_str(&ledger->text, value ? "true" : "false");
}

static void text_or_null(struct ledger *ledger, const char *name,
                         struct slice value)
{
    if (value.len > 0) {
        text(ledger, name, value);
    } else {
        buf_add_str(&ledger->text, name);
        buf_add_str(&ledger->text, "null");
    }
}

static void event_name(struct ledger *ledger, const struct ledger_name *name)
{
    text(ledger, ",\"route\":", name->route);
    text(ledger, ",\"tenant\":", name->tenant);
    text(ledger, ",\"id\":", name->id);
}

/* `head` is all up to the value of t. */
static void begin(struct ledger *ledger, const char *head, int64_t t_ms)
{
    integer(ledger, head, t_ms);
}

static void end(struct ledger *ledger)
{
    buf_add(&ledger->text, "}\n", 2);
    ledger->lines++;
}

/* --- lines ---------------------------------------------------------------- */

void ledger_route(struct ledger *ledger, const struct ledger_route *line)
{
    text(ledger, "{\"l\":\"route\",\"route\":", line->route);
    text(ledger, ",\"namespace\":", line->namespace);
    word(ledger,
         ",\"on_uncertain\":", ledger_on_uncertain_names[line->on_uncertain]);
    word(ledger, ",\"after_dead\":", ledger_after_dead_names[line->after_dead]);
    word(ledger, ",\"respond\":", ledger_respond_names[line->respond]);
    word(ledger, ",\"drift\":", ledger_drift_names[line->drift]);
    flag(ledger, ",\"ordered\":", line->ordered);
    end(ledger);
}

void ledger_sent(struct ledger *ledger, const struct ledger_sent *line)
{
    begin(ledger, "{\"l\":\"sent\",\"t\":", line->t_ms);
    number(ledger, ",\"try\":", line->try);
    event_name(ledger, &line->event);
    text(ledger, ",\"hash\":", line->hash);
    if (line->order.len > 0) {
        text(ledger, ",\"order\":", line->order);
    }
    flag(ledger, ",\"valid\":", line->valid);
    end(ledger);
}

void ledger_resp(struct ledger *ledger, const struct ledger_resp *line)
{
    begin(ledger, "{\"l\":\"resp\",\"t\":", line->t_ms);
    number(ledger, ",\"try\":", line->try);
    integer(ledger, ",\"status\":", line->status);
    if (line->body.data != NULL) {
        text(ledger, ",\"body\":", line->body);
    }
    if (line->retry_after_s >= 0) {
        integer(ledger, ",\"retry_after\":", line->retry_after_s);
    }
    end(ledger);
}

void ledger_inv(struct ledger *ledger, const struct ledger_inv *line)
{
    begin(ledger, "{\"l\":\"inv\",\"t\":", line->t_ms);
    number(ledger, ",\"n\":", line->n);
    event_name(ledger, &line->event);
    text(ledger, ",\"hash\":", line->hash);
    text(ledger, ",\"key\":", line->key);
    number(ledger, ",\"attempt\":", line->attempt);
    number(ledger, ",\"process\":", line->process);
    end(ledger);
}

void ledger_done(struct ledger *ledger, const struct ledger_done *line)
{
    begin(ledger, "{\"l\":\"done\",\"t\":", line->t_ms);
    number(ledger, ",\"n\":", line->n);
    word(ledger, ",\"end\":", ledger_end_names[line->end]);
    integer(ledger, ",\"status\":", line->status);
    if (line->effect != LEDGER_EFFECT_UNSEEN) {
        flag(ledger, ",\"effect\":", line->effect == LEDGER_EFFECT_APPLIED);
    }
    end(ledger);
}

void ledger_order(struct ledger *ledger, const struct ledger_order *line)
{
    begin(ledger, "{\"l\":\"order\",\"t\":", line->t_ms);
    word(ledger, ",\"kind\":", ledger_order_names[line->kind]);
    event_name(ledger, &line->event);
    word(ledger, ",\"verdict\":", ledger_verdict_names[line->verdict]);
    end(ledger);
}

void ledger_fault(struct ledger *ledger, const struct ledger_fault *line)
{
    begin(ledger, "{\"l\":\"fault\",\"t\":", line->t_ms);
    text(ledger, ",\"kind\":", line->kind);
    number(ledger, ",\"process\":", line->process);
    end(ledger);
}

void ledger_start(struct ledger *ledger, const struct ledger_start *line)
{
    begin(ledger, "{\"l\":\"start\",\"t\":", line->t_ms);
    number(ledger, ",\"process\":", line->process);
    if (line->store.len > 0) {
        text(ledger, ",\"store\":", line->store);
    }
    end(ledger);
}

void ledger_heal(struct ledger *ledger, const struct ledger_phase *line)
{
    begin(ledger, "{\"l\":\"heal\",\"t\":", line->t_ms);
    integer(ledger, ",\"within_ms\":", line->within_ms);
    end(ledger);
}

void ledger_quiet(struct ledger *ledger, const struct ledger_phase *line)
{
    begin(ledger, "{\"l\":\"quiet\",\"t\":", line->t_ms);
    end(ledger);
}

void ledger_forgotten(struct ledger *ledger,
                      const struct ledger_forgotten *line)
{
    begin(ledger, "{\"l\":\"forgotten\",\"t\":", line->t_ms);
    event_name(ledger, &line->event);
    end(ledger);
}

/* --- partitions ----------------------------------------------------------- */

static void place(struct ledger *ledger, const struct ledger_place *of)
{
    text(ledger, ",\"topic\":", of->topic);
    integer(ledger, ",\"partition\":", of->partition);
}

void ledger_msg(struct ledger *ledger, const struct ledger_msg *line)
{
    begin(ledger, "{\"l\":\"msg\",\"t\":", line->t_ms);
    place(ledger, &line->place);
    integer(ledger, ",\"offset\":", line->offset);
    event_name(ledger, &line->event);
    text(ledger, ",\"hash\":", line->hash);
    if (line->order.len > 0) {
        text(ledger, ",\"order\":", line->order);
    }
    end(ledger);
}

static void owner(struct ledger *ledger, const struct ledger_owner *line)
{
    number(ledger, ",\"process\":", line->process);
    place(ledger, &line->place);
}

void ledger_assign(struct ledger *ledger, const struct ledger_owner *line)
{
    begin(ledger, "{\"l\":\"assign\",\"t\":", line->t_ms);
    owner(ledger, line);
    if (line->committed >= 0) {
        integer(ledger, ",\"committed\":", line->committed);
    }
    end(ledger);
}

void ledger_revoke(struct ledger *ledger, const struct ledger_owner *line)
{
    begin(ledger, "{\"l\":\"revoke\",\"t\":", line->t_ms);
    owner(ledger, line);
    end(ledger);
}

void ledger_lost(struct ledger *ledger, const struct ledger_owner *line)
{
    begin(ledger, "{\"l\":\"lost\",\"t\":", line->t_ms);
    owner(ledger, line);
    end(ledger);
}

void ledger_commit(struct ledger *ledger, const struct ledger_commit *line)
{
    begin(ledger, "{\"l\":\"commit\",\"t\":", line->t_ms);
    place(ledger, &line->place);
    integer(ledger, ",\"offset\":", line->offset);
    if (line->process != 0) {
        number(ledger, ",\"process\":", line->process);
    }
    end(ledger);
}

void ledger_reset(struct ledger *ledger, const struct ledger_commit *line)
{
    begin(ledger, "{\"l\":\"reset\",\"t\":", line->t_ms);
    place(ledger, &line->place);
    integer(ledger, ",\"offset\":", line->offset);
    end(ledger);
}

void ledger_skip(struct ledger *ledger, const struct ledger_skip *line)
{
    begin(ledger, "{\"l\":\"skip\",\"t\":", line->t_ms);
    word(ledger, ",\"kind\":", ledger_skip_names[line->kind]);
    place(ledger, &line->place);
    integer(ledger, ",\"from\":", line->from);
    integer(ledger, ",\"to\":", line->to);
    end(ledger);
}

/* --- the export ----------------------------------------------------------- */

static void history_row(struct ledger *ledger, const struct ledger_row *row)
{
    text(ledger, "{\"at\":", row->at);
    text(ledger, ",\"what\":", row->what);
    number(ledger, ",\"attempt\":", row->attempt);
    number(ledger, ",\"run\":", row->run);
    text_or_null(ledger, ",\"actor\":", row->actor);
    text_or_null(ledger, ",\"why\":", row->why);
    buf_add_byte(&ledger->text, '}');
}

void ledger_event(struct ledger *ledger, const struct ledger_event *line)
{
    buf_add_str(&ledger->text, "{\"l\":\"event\"");
    event_name(ledger, &line->event);
    text(ledger, ",\"namespace\":", line->namespace);
    word(ledger, ",\"state\":", ledger_state_names[line->state]);
    text_or_null(ledger, ",\"reason\":", line->reason);
    number(ledger, ",\"run\":", line->run);
    number(ledger, ",\"attempts\":", line->attempts);
    number(ledger, ",\"tries\":", line->tries);
    number(ledger, ",\"crashes\":", line->crashes);
    number(ledger, ",\"deliveries\":", line->deliveries);
    number(ledger, ",\"drift\":", line->drift);
    number(ledger, ",\"origin\":", line->origin);
    text_or_null(ledger, ",\"due\":", line->due);
    buf_add_str(&ledger->text, ",\"history\":[");
    for (size_t i = 0; i < line->n_rows; i++) {
        if (i > 0) {
            buf_add_byte(&ledger->text, ',');
        }
        history_row(ledger, &line->rows[i]);
    }
    buf_add_byte(&ledger->text, ']');
    if (line->store.len > 0) {
        text(ledger, ",\"store\":", line->store);
    }
    end(ledger);
}
