/* SPDX-License-Identifier: MIT */
#include "checker/ledger.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "checker/ledger_read.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define NAME                                                                   \
    {                                                                          \
        SLICE_INIT("r"), SLICE_INIT("t"), SLICE_INIT("a\"\\\n\xc3\xa4")        \
    }
#define NAME_TEXT                                                              \
    "\"route\":\"r\",\"tenant\":\"t\",\"id\":\"a\\\"\\\\\\u000a\xc3\xa4\""

static const struct ledger_name name = NAME;
#define PLACE_TEXT "\"topic\":\"q\",\"partition\":3"

static const struct ledger_place place = {SLICE_INIT("q"), 3};
static const struct ledger_row rows[] = {
    {SLICE_INIT("2026-11-30T00:00:00.000Z"), SLICE_INIT("replayed"), 2, 1,
     SLICE_INIT("ops"), SLICE_INIT("why")},
    {SLICE_INIT(""), SLICE_INIT("succeeded"), 3, 1, SLICE_INIT(""),
     SLICE_INIT("")},
};

/* One line of every kind. */
static void write_all(struct ledger *ledger)
{
    ledger_route(ledger,
                 &(struct ledger_route){SLICE("r"), SLICE("n"), LEDGER_HOLD,
                                        LEDGER_HOLD_KEY, LEDGER_RESULT,
                                        LEDGER_DRIFT_REJECT, true});
    ledger_sent(ledger, &(struct ledger_sent){1, 2, name, SLICE("ab"),
                                              SLICE("k"), false});
    ledger_resp(ledger, &(struct ledger_resp){3, 2, 503, SLICE("busy"), 7});
    ledger_inv(ledger, &(struct ledger_inv){4, 5, name, SLICE("ab"),
                                            SLICE("key"), 6, 7});
    ledger_done(ledger, &(struct ledger_done){8, 5, LEDGER_END_EXIT, 75,
                                              LEDGER_EFFECT_APPLIED});
    ledger_order(ledger, &(struct ledger_order){9, LEDGER_RESOLVE_NOT_APPLIED,
                                                name, LEDGER_NOTHING_TO_DO});
    ledger_fault(ledger, &(struct ledger_fault){10, SLICE("crash"), 7});
    ledger_start(ledger, &(struct ledger_start){11, 8, SLICE("x")});
    ledger_heal(ledger, &(struct ledger_phase){12, 60000});
    ledger_quiet(ledger, &(struct ledger_phase){13, 0});
    ledger_forgotten(ledger, &(struct ledger_forgotten){14, name});
    ledger_msg(ledger, &(struct ledger_msg){15, place, 9, name, SLICE("ab"),
                                            SLICE("k")});
    ledger_assign(ledger, &(struct ledger_owner){16, 8, place, 4});
    ledger_revoke(ledger, &(struct ledger_owner){17, 8, place, -1});
    ledger_lost(ledger, &(struct ledger_owner){18, 8, place, -1});
    ledger_commit(ledger, &(struct ledger_commit){19, place, 5, 8});
    ledger_reset(ledger, &(struct ledger_commit){20, place, 0, 0});
    ledger_skip(ledger,
                &(struct ledger_skip){21, LEDGER_SKIP_TRUNCATED, place, 6, 7});
    ledger_event(ledger, &(struct ledger_event){name, SLICE("n"), LEDGER_DEAD,
                                                SLICE("refused"), 1, 2, 3, 4, 5,
                                                6, UINT64_MAX, SLICE("soon"),
                                                rows, COUNT(rows), SLICE("x")});
}

static const char *const lines[] = {
    "{\"l\":\"route\",\"route\":\"r\",\"namespace\":\"n\","
    "\"on_uncertain\":\"hold\",\"after_dead\":\"hold\","
    "\"respond\":\"result\",\"drift\":\"reject\",\"ordered\":true}",
    "{\"l\":\"sent\",\"t\":1,\"try\":2," NAME_TEXT
    ",\"hash\":\"ab\",\"order\":\"k\",\"valid\":false}",
    "{\"l\":\"resp\",\"t\":3,\"try\":2,\"status\":503,\"body\":\"busy\","
    "\"retry_after\":7}",
    "{\"l\":\"inv\",\"t\":4,\"n\":5," NAME_TEXT
    ",\"hash\":\"ab\",\"key\":\"key\",\"attempt\":6,\"process\":7}",
    "{\"l\":\"done\",\"t\":8,\"n\":5,\"end\":\"exit\",\"status\":75,"
    "\"effect\":true}",
    "{\"l\":\"order\",\"t\":9,\"kind\":\"resolve-not-applied\"," NAME_TEXT
    ",\"verdict\":\"nothing-to-do\"}",
    "{\"l\":\"fault\",\"t\":10,\"kind\":\"crash\",\"process\":7}",
    "{\"l\":\"start\",\"t\":11,\"process\":8,\"store\":\"x\"}",
    "{\"l\":\"heal\",\"t\":12,\"within_ms\":60000}",
    "{\"l\":\"quiet\",\"t\":13}",
    "{\"l\":\"forgotten\",\"t\":14," NAME_TEXT "}",
    "{\"l\":\"msg\",\"t\":15," PLACE_TEXT ",\"offset\":9," NAME_TEXT
    ",\"hash\":\"ab\",\"order\":\"k\"}",
    "{\"l\":\"assign\",\"t\":16,\"process\":8," PLACE_TEXT ",\"committed\":4}",
    "{\"l\":\"revoke\",\"t\":17,\"process\":8," PLACE_TEXT "}",
    "{\"l\":\"lost\",\"t\":18,\"process\":8," PLACE_TEXT "}",
    "{\"l\":\"commit\",\"t\":19," PLACE_TEXT ",\"offset\":5,\"process\":8}",
    "{\"l\":\"reset\",\"t\":20," PLACE_TEXT ",\"offset\":0}",
    "{\"l\":\"skip\",\"t\":21,\"kind\":\"truncated\"," PLACE_TEXT
    ",\"from\":6,\"to\":7}",
    "{\"l\":\"event\"," NAME_TEXT
    ",\"namespace\":\"n\",\"state\":\"DEAD\",\"reason\":\"refused\",\"run\":1,"
    "\"attempts\":2,\"tries\":3,\"crashes\":4,\"deliveries\":5,\"drift\":6,"
    "\"origin\":18446744073709551615,\"due\":\"soon\",\"history\":["
    "{\"at\":\"2026-11-30T00:00:00.000Z\",\"what\":\"replayed\",\"attempt\":2,"
    "\"run\":1,\"actor\":\"ops\",\"why\":\"why\"},{\"at\":\"\","
    "\"what\":\"succeeded\",\"attempt\":3,\"run\":1,\"actor\":null,"
    "\"why\":null}],\"store\":\"x\"}",
};

Test(ledger, each_kind_of_line_is_written_as_documented)
{
    struct ledger ledger = LEDGER_INIT;
    struct slice rest;

    write_all(&ledger);
    cr_expect(ledger.lines == COUNT(lines));
    rest = ledger_text(&ledger);
    for (size_t i = 0; i < COUNT(lines); i++) {
        size_t len = slice_find(rest, '\n');
        struct slice line = {rest.data, len};

        cr_assert(len < rest.len);
        cr_expect(slice_eq(line, slice_of(lines[i])), "%.*s\nwant\n%s",
                  (int)len, rest.data, lines[i]);
        rest = slice_from(rest, len + 1);
    }
    cr_expect(rest.len == 0);
    ledger_fini(&ledger);
}

static bool name_eq(const struct ledger_name *a)
{
    return slice_eq(a->route, name.route) && slice_eq(a->tenant, name.tenant) &&
           slice_eq(a->id, name.id);
}

static bool place_eq(const struct ledger_place *a)
{
    return slice_eq(a->topic, place.topic) && a->partition == place.partition;
}

static void expect_event(const struct ledger_event *event)
{
    cr_expect(name_eq(&event->event) && event->state == LEDGER_DEAD);
    cr_expect(slice_eq(event->namespace, SLICE("n")));
    cr_expect(slice_eq(event->reason, SLICE("refused")));
    cr_expect(slice_eq(event->due, SLICE("soon")));
    cr_expect(event->run == 1 && event->attempts == 2 && event->tries == 3);
    cr_expect(event->crashes == 4 && event->deliveries == 5);
    cr_expect(event->drift == 6 && event->origin == UINT64_MAX);
    cr_expect(slice_eq(event->store, SLICE("x")));
    cr_assert(event->n_rows == COUNT(rows));
    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_expect(slice_eq(event->rows[i].at, rows[i].at));
        cr_expect(slice_eq(event->rows[i].what, rows[i].what));
        cr_expect(slice_eq(event->rows[i].actor, rows[i].actor));
        cr_expect(slice_eq(event->rows[i].why, rows[i].why));
        cr_expect(event->rows[i].attempt == rows[i].attempt);
        cr_expect(event->rows[i].run == rows[i].run);
    }
}

static void expect_route(const struct ledger_route *route)
{
    cr_expect(route->on_uncertain == LEDGER_HOLD);
    cr_expect(route->after_dead == LEDGER_HOLD_KEY);
    cr_expect(route->respond == LEDGER_RESULT);
    cr_expect(route->drift == LEDGER_DRIFT_REJECT && route->ordered);
}

static void expect_sent(const struct ledger_sent *sent)
{
    cr_expect(sent->t_ms == 1 && sent->try == 2 && !sent->valid);
    cr_expect(name_eq(&sent->event));
    cr_expect(slice_eq(sent->hash, SLICE("ab")));
    cr_expect(slice_eq(sent->order, SLICE("k")));
}

static void expect_resp(const struct ledger_resp *resp)
{
    cr_expect(resp->t_ms == 3 && resp->try == 2);
    cr_expect(resp->status == 503 && resp->retry_after_s == 7);
    cr_expect(slice_eq(resp->body, SLICE("busy")));
}

static void expect_inv(const struct ledger_inv *inv)
{
    cr_expect(inv->t_ms == 4 && inv->n == 5 && name_eq(&inv->event));
    cr_expect(inv->attempt == 6 && inv->process == 7);
    cr_expect(slice_eq(inv->hash, SLICE("ab")));
    cr_expect(slice_eq(inv->key, SLICE("key")));
}

static void expect_line(const struct ledger_line *line)
{
    switch (line->kind) {
    case LINE_ROUTE:
        expect_route(&line->route);
        return;
    case LINE_SENT:
        expect_sent(&line->sent);
        return;
    case LINE_RESP:
        expect_resp(&line->resp);
        return;
    case LINE_INV:
        expect_inv(&line->inv);
        return;
    case LINE_DONE:
        cr_expect(line->done.t_ms == 8 && line->done.n == 5);
        cr_expect(line->done.end == LEDGER_END_EXIT && line->done.status == 75);
        cr_expect(line->done.effect == LEDGER_EFFECT_APPLIED);
        return;
    case LINE_ORDER:
        cr_expect(line->order.t_ms == 9 && name_eq(&line->order.event));
        cr_expect(line->order.kind == LEDGER_RESOLVE_NOT_APPLIED);
        cr_expect(line->order.verdict == LEDGER_NOTHING_TO_DO);
        return;
    case LINE_FAULT:
        cr_expect(line->fault.t_ms == 10 && line->fault.process == 7);
        cr_expect(slice_eq(line->fault.kind, SLICE("crash")));
        return;
    case LINE_START:
        cr_expect(line->start.t_ms == 11 && line->start.process == 8);
        return;
    case LINE_HEAL:
        cr_expect(line->phase.t_ms == 12 && line->phase.within_ms == 60000);
        return;
    case LINE_QUIET:
        cr_expect(line->phase.t_ms == 13);
        return;
    case LINE_FORGOTTEN:
        cr_expect(line->forgotten.t_ms == 14);
        cr_expect(name_eq(&line->forgotten.event));
        return;
    case LINE_MSG:
        cr_expect(place_eq(&line->msg.place) && line->msg.offset == 9);
        cr_expect(name_eq(&line->msg.event));
        cr_expect(slice_eq(line->msg.hash, SLICE("ab")));
        cr_expect(slice_eq(line->msg.order, SLICE("k")));
        return;
    case LINE_ASSIGN:
    case LINE_REVOKE:
    case LINE_LOST:
        cr_expect(place_eq(&line->owner.place) && line->owner.process == 8);
        cr_expect(line->kind != LINE_ASSIGN || line->owner.committed == 4);
        return;
    case LINE_COMMIT:
    case LINE_RESET:
        cr_expect(place_eq(&line->commit.place));
        cr_expect(line->commit.offset == (line->kind == LINE_COMMIT ? 5 : 0));
        cr_expect(line->commit.process == (line->kind == LINE_COMMIT ? 8 : 0));
        return;
    case LINE_SKIP:
        cr_expect(place_eq(&line->skip.place));
        cr_expect(line->skip.kind == LEDGER_SKIP_TRUNCATED);
        cr_expect(line->skip.from == 6 && line->skip.to == 7);
        return;
    case LINE_EVENT:
        expect_event(&line->event);
        return;
    case LINE_DUMP_HEAD:
    case LINE_DUMP_END:
        cr_expect(false, "a line that was not written");
        return;
    }
}

static void expect_time(const struct ledger_line *line)
{
    static const int64_t times_ms[COUNT(lines)] = {
        0, 1, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 0};
    int64_t t_ms = 0;
    bool has_time = ledger_line_time(line, &t_ms);

    cr_expect(has_time == (times_ms[line->kind] != 0));
    cr_expect(t_ms == times_ms[line->kind]);
}

Test(ledger, what_was_written_is_read)
{
    struct ledger_reader reader = LEDGER_READER_INIT;
    struct ledger_line line;
    struct err err;

    for (size_t i = 0; i < COUNT(lines); i++) {
        cr_assert(ledger_read(&reader, slice_of(lines[i]), &line, &err),
                  "%s: %s", lines[i], err.text);
        cr_expect((size_t)line.kind == i);
        expect_line(&line);
        expect_time(&line);
    }
    ledger_reader_fini(&reader);
}

Test(ledger, what_is_left_out_has_its_default)
{
    struct ledger_reader reader = LEDGER_READER_INIT;
    struct ledger_line line;

    cr_assert(ledger_read(&reader,
                          SLICE(" { \"hash\" : \"h\", \"id\":\"\\u0061\", "
                                "\"more\":[{\"l\":1},\"}\"], \"try\":1, "
                                "\"l\":\"sent\", \"route\":\"r\",\"t\":0 } "),
                          &line, NULL));
    cr_expect(line.kind == LINE_SENT && line.sent.valid);
    cr_expect(slice_eq(line.sent.event.id, SLICE("a")));
    cr_expect(line.sent.event.tenant.len == 0 && line.sent.order.len == 0);
    cr_assert(ledger_read(
        &reader, SLICE("{\"l\":\"resp\",\"t\":0,\"try\":1,\"status\":200}"),
        &line, NULL));
    cr_expect(line.resp.retry_after_s == -1 && line.resp.body.data == NULL);
    cr_assert(ledger_read(
        &reader, SLICE("{\"l\":\"done\",\"t\":0,\"n\":1,\"end\":\"lost\"}"),
        &line, NULL));
    cr_expect(line.done.effect == LEDGER_EFFECT_UNSEEN);
    cr_assert(
        ledger_read(&reader, SLICE("{\"l\":\"heal\",\"t\":0}"), &line, NULL));
    cr_expect(line.phase.within_ms == 30000);
    ledger_reader_fini(&reader);
}

Test(ledger, what_is_no_line_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"l\":\"quiet\",\"t\":1",
        "{\"l\":\"rest\",\"t\":1}",
        "{\"l\":1,\"t\":1}",
        "{\"l\":\"quiet\"}",
        "{\"l\":\"quiet\",\"t\":-1}",
        "{\"l\":\"quiet\",\"t\":1.5}",
        "{\"l\":\"quiet\",\"t\":\"1\"}",
        "{\"l\":\"quiet\",\"t\":1,\"t\":1}",
        "{\"l\":\"quiet\",\"t\":9223372036854775808}",
        "{\"l\":\"done\",\"t\":1,\"n\":1,\"end\":\"died\"}",
        "{\"l\":\"done\",\"t\":1,\"n\":1,\"end\":\"exit\",\"effect\":1}",
        "{\"l\":\"fault\",\"t\":1,\"kind\":\"\\u0000\"}",
        "{\"state\":\"LOST\"}",
        "{\"l\":\"event\",\"route\":\"r\",\"namespace\":\"r\",\"id\":\"a\","
        "\"state\":\"DEAD\",\"run\":1,\"attempts\":0,\"origin\":1,"
        "\"history\":[1]}",
    };
    struct ledger_reader reader = LEDGER_READER_INIT;
    struct ledger_line line;
    struct err err;

    for (size_t i = 0; i < COUNT(bad); i++) {
        err.kind = ERR_NONE;
        cr_expect(!ledger_read(&reader, slice_of(bad[i]), &line, &err) &&
                      err.kind == ERR_DATA,
                  "%s", bad[i]);
    }
    ledger_reader_fini(&reader);
}

Test(ledger, it_is_drained_to_a_file)
{
    struct ledger ledger = LEDGER_INIT;
    struct ledger_phase phase = {1, 0};
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    ledger_quiet(&ledger, &phase);
    cr_assert(ledger_drain(&ledger, file, NULL));
    cr_expect(ledger_text(&ledger).len == 0);
    phase.t_ms = 2;
    ledger_quiet(&ledger, &phase);
    cr_assert(ledger_drain(&ledger, file, NULL));
    (void)fclose(file);
    cr_expect_str_eq(text,
                     "{\"l\":\"quiet\",\"t\":1}\n{\"l\":\"quiet\",\"t\":2}\n");
    free(text);
    ledger_fini(&ledger);
}
