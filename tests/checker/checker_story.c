/* SPDX-License-Identifier: MIT */
/* What the ledger knows of one event, for people. */
#include <inttypes.h>

#include "checker/checker_internal.h"
#include "checker/ledger_names.h"

void checker_put_name(const struct event_track *event, struct buf *out)
{
    if (event == NULL) {
        buf_add_str(out, "the run");
        return;
    }
    buf_add_slice(out, event->route->conf.route);
    buf_add_byte(out, '/');
    if (event->tenant.len > 0) {
        buf_add_slice(out, event->tenant);
        buf_add_byte(out, '/');
    }
    buf_add_slice(out, event->id);
}

static void put_state(const struct event_track *event, struct buf *out)
{
    const struct ledger_event *export = event->export;

    if (export == NULL) {
        buf_add_str(out, "    not in the export\n");
        return;
    }
    buf_printf(out, "    state %s", ledger_state_names[export->state]);
    if (export->reason.len > 0) {
        buf_add_byte(out, '(');
        buf_add_slice(out, export->reason);
        buf_add_byte(out, ')');
    }
    buf_add_str(out, ", due ");
    buf_add_slice(out, export->due.len > 0 ? export->due : SLICE("never"));
    buf_printf(out,
               ", run %" PRIu64 ", attempts %" PRIu64 ", tries %" PRIu64
               ", crashes %" PRIu64 ", deliveries %" PRIu64 ", origin %" PRIu64
               "\n",
               export->run, export->attempts, export->tries, export->crashes,
               export->deliveries, export->origin);
}

static void put_message(const struct try_track *try, struct buf *out)
{
    buf_add_str(out, "    message ");
    buf_add_slice(out, try->part->topic);
    buf_printf(out, "/%" PRId64 "/%" PRId64 " at %" PRId64 ", content ",
               try->part->number, try->offset, try->sent_ms);
    buf_add_slice(out, try->hash);
    buf_add_str(out, try->committed_at != NOT_YET ? ": committed\n" : ": open");
    if (try->committed_at == NOT_YET) {
        buf_printf(out, "%s%s\n", try->skipped ? ", " : "",
                   try->skipped ? ledger_skip_names[try->skip] : "");
    }
}

static void put_try(const struct try_track *try, struct buf *out)
{
    if (try->part != NULL) {
        put_message(try, out);
        return;
    }
    buf_printf(out, "    try %" PRIu64 " sent at %" PRId64 "%s, content ",
               try->number, try->sent_ms, try->valid ? "" : ", invalid");
    buf_add_slice(out, try->hash);
    if (try->resp_at == NOT_YET) {
        buf_add_str(out, ": no answer\n");
    } else {
        buf_printf(out, ": %" PRId64 " at %" PRId64 "\n", try->status,
                   try->resp_ms);
    }
}

static void put_inv(const struct inv_track *inv, struct buf *out)
{
    buf_printf(out,
               "    invocation %" PRIu64 ": attempt %" PRIu64
               " of process %" PRIu64 " at %" PRId64 ", key ",
               inv->n, inv->attempt, inv->process->number, inv->begin_ms);
    buf_add_slice(out, inv->key);
    if (inv->done_at == NOT_YET) {
        buf_add_str(out, ": never ended");
    } else {
        buf_printf(out, ": %s %" PRId64 " at %" PRId64 "%s",
                   ledger_end_names[inv->end], inv->status, inv->done_ms,
                   inv->effect == LEDGER_EFFECT_APPLIED ? ", with its effect"
                                                        : "");
    }
    if (inv->process->crashed_at != NOT_YET) {
        buf_add_str(out, "; the process crashed");
    }
    buf_add_byte(out, '\n');
}

static void put_row(const struct ledger_row *row, struct buf *out)
{
    buf_add_str(out, "    history ");
    buf_add_slice(out, row->at);
    buf_add_byte(out, ' ');
    buf_add_slice(out, row->what);
    buf_printf(out, ", attempt %" PRIu64 ", run %" PRIu64, row->attempt,
               row->run);
    if (row->actor.len > 0) {
        buf_add_str(out, ", by ");
        buf_add_slice(out, row->actor);
    }
    if (row->why.len > 0) {
        buf_add_str(out, ": ");
        buf_add_slice(out, row->why);
    }
    buf_add_byte(out, '\n');
}

void checker_put_story(const struct event_track *event, struct buf *out)
{
    put_state(event, out);
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        put_try(try, out);
    }
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        put_inv(inv, out);
    }
    for (const struct order_track *order = event->orders; order != NULL;
         order = order->next) {
        buf_printf(out, "    order %s at %" PRId64 ": %s\n",
                   ledger_order_names[order->kind], order->t_ms,
                   ledger_verdict_names[order->verdict]);
    }
    for (size_t i = 0; event->export != NULL && i < event->export->n_rows;
         i++) {
        put_row(&event->export->rows[i], out);
    }
}
