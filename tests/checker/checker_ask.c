/* SPDX-License-Identifier: MIT */
/* What several checks ask of what was fed. */
#include <string.h>

#include "base/check.h"
#include "checker/checker_internal.h"

static uint64_t count(const struct event_track *event,
                      enum ledger_order_kind kind, bool maybe)
{
    uint64_t n = 0;

    for (const struct order_track *order = event->orders; order != NULL;
         order = order->next) {
        n += order->kind == kind &&
             (order->verdict == LEDGER_DONE ||
              (maybe && order->verdict == LEDGER_UNKNOWN));
    }
    return n;
}

uint64_t count_orders(const struct event_track *event,
                      enum ledger_order_kind kind)
{
    return count(event, kind, true);
}

uint64_t count_orders_done(const struct event_track *event,
                           enum ledger_order_kind kind)
{
    return count(event, kind, false);
}

bool event_is_settled(const struct ledger_event *export)
{
    return export->state >= LEDGER_SUCCEEDED;
}

/* --- invocations ------------------------------------------------------------
 */

static enum told told_by_status(const struct inv_track *inv)
{
    if (inv->status >= 200 && inv->status < 300) {
        return TOLD_SUCCESS;
    }
    if (inv->status >= 300 && inv->status < 400 &&
        inv->route->conf.respond == LEDGER_RESULT) {
        return TOLD_SUCCESS;
    }
    return inv->status >= 400 && inv->status < 500 ? TOLD_NOT_APPLIED
                                                   : TOLD_DOUBT;
}

/* sysexits(3) are 64 to 78. */
static enum told told_by_exit(const struct inv_track *inv)
{
    if (inv->status == 0) {
        return TOLD_SUCCESS;
    }
    return inv->status >= 64 && inv->status <= 78 ? TOLD_NOT_APPLIED
                                                  : TOLD_DOUBT;
}

enum told inv_told(const struct inv_track *inv)
{
    if (inv->done_at == NOT_YET) {
        return TOLD_NOTHING;
    }
    switch (inv->end) {
    case LEDGER_END_STATUS:
        return told_by_status(inv);
    case LEDGER_END_EXIT:
        return told_by_exit(inv);
    case LEDGER_END_UNREACHED:
        return TOLD_NOT_APPLIED;
    case LEDGER_END_SIGNAL:
    case LEDGER_END_TIMEOUT:
    case LEDGER_END_BROKEN:
        return TOLD_DOUBT;
    case LEDGER_END_LOST:
        return TOLD_NOTHING;
    }
    UNREACHABLE("every end returns");
}

/* --- histories --------------------------------------------------------------
 */

static const struct {
    const char *what;
    enum row bit;
} row_words[] = {
    {"retry", ROW_RETRY},
    {"uncertain", ROW_UNCERTAIN},
    {"crashed", ROW_CRASHED},
    {"released", ROW_RELEASED},
    {"restored", ROW_RESTORED},
    {"replayed", ROW_REPLAYED},
    {"rerun", ROW_RERUN},
    {"not-applied", ROW_NOT_APPLIED},
    {"applied", ROW_APPLIED},
    {"probe", ROW_PROBE},
    {"dead", ROW_DEAD},
    {"discarded", ROW_DISCARDED},
    {"succeeded", ROW_SUCCEEDED},
    {"failed", ROW_FAILED},
    {"dead-on-arrival", ROW_SETTLED_OTHERWISE},
    {"moved", ROW_SETTLED_OTHERWISE},
    {"superseded", ROW_SETTLED_OTHERWISE},
};
enum { ROW_WORDS = sizeof row_words / sizeof row_words[0] };

unsigned row_bit(const struct ledger_row *row)
{
    for (size_t i = 0; i < ROW_WORDS; i++) {
        if (slice_eq(row->what, slice_of(row_words[i].what))) {
            return row_words[i].bit;
        }
    }
    return 0;
}

const char *row_name(enum row bit)
{
    for (size_t i = 0; i < ROW_WORDS; i++) {
        if (row_words[i].bit == bit) {
            return row_words[i].what;
        }
    }
    UNREACHABLE("every bit has a word");
}

uint64_t count_rows(const struct event_track *event, unsigned bits)
{
    const struct ledger_event *export = event->export;
    uint64_t n = 0;

    for (size_t i = 0; export != NULL && i < export->n_rows; i++) {
        n += (row_bit(&export->rows[i]) & bits) != 0;
    }
    return n;
}

/* --- attempts ----------------------------------------------------------------
 */

static uint64_t count_invs(const struct event_track *event)
{
    uint64_t n = 0;

    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        n++;
    }
    return n;
}

/* A rerun's row has the number of the last attempt of the run before it. */
static void number_runs(struct checker *checker, uint64_t attempts)
{
    uint64_t run = 1;

    for (uint64_t i = 0; i <= attempts; i++) {
        checker->facts[i].run = run;
        if ((checker->facts[i].rows & ROW_RERUN) != 0) {
            run++;
        }
    }
}

bool lay_out_attempts(struct checker *checker, const struct event_track *event)
{
    const struct ledger_event *export = event->export;
    uint64_t attempts = export->attempts;
    size_t need = (size_t)attempts + 1;

    /* Every attempt has an invocation, or a row, or is the last. */
    if (attempts > count_invs(event) + export->n_rows + 1) {
        return false;
    }
    if (need > checker->facts_cap) {
        checker->facts = mem_grow(checker->facts, need, sizeof *checker->facts);
        checker->facts_cap = need;
    }
    memset(checker->facts, 0, need * sizeof *checker->facts);
    for (size_t i = 0; i < export->n_rows; i++) {
        if (export->rows[i].attempt <= attempts) {
            checker->facts[export->rows[i].attempt].rows |=
                row_bit(&export->rows[i]);
        }
    }
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv->attempt <= attempts) {
            checker->facts[inv->attempt].inv = inv;
        }
    }
    number_runs(checker, attempts);
    return true;
}

uint64_t first_life(const struct ledger_event *export, unsigned ends,
                    bool is_settled)
{
    for (size_t i = 0; i < export->n_rows; i++) {
        if ((row_bit(&export->rows[i]) & ends) != 0) {
            return export->rows[i].attempt;
        }
    }
    return is_settled ? export->attempts : UINT64_MAX;
}

bool inv_is_of(const struct inv_track *inv, const struct ledger_event *export)
{
    return inv->process->store.len == 0 ||
           slice_eq(inv->process->store, export->store);
}

uint64_t inv_end(const struct inv_track *inv)
{
    uint64_t end = inv->done_at < inv->process->crashed_at
                       ? inv->done_at
                       : inv->process->crashed_at;

    return inv->done_at != NOT_YET && inv->end == LEDGER_END_LOST ? inv->at
                                                                  : end;
}
