/* SPDX-License-Identifier: MIT */
/* What `onced dump` would print of the store, for the checker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "sim/sim.h"

struct export
{
    struct sim *sim;
    struct store *store;
    struct list entries; /* as the store lists them, newest first */
    struct ledger_row *rows;
    struct store_audit *audits; /* that the rows look into */
    size_t n_rows, cap_rows;
};

static bool keep_entry(void *ctx, const struct store_entry *entry)
{
    struct export *export = ctx;

    *(struct store_entry *)list_add(&export->entries, sizeof *entry) = *entry;
    return true;
}

static bool keep_row(void *ctx, const struct store_audit *audit)
{
    struct export *export = ctx;

    if (export->n_rows == export->cap_rows) {
        export->cap_rows = export->cap_rows == 0 ? 64 : export->cap_rows * 2;
        export->rows =
            mem_grow(export->rows, export->cap_rows, sizeof *export->rows);
        export->audits =
            mem_grow(export->audits, export->cap_rows, sizeof *export->audits);
    }
    export->audits[export->n_rows++] = *audit;
    return true;
}

static void fill_rows(struct export *export)
{
    for (size_t i = 0; i < export->n_rows; i++) {
        const struct store_audit *audit = &export->audits[i];

        export->rows[i] = (struct ledger_row){
            .what = slice_of(move_name(audit->move)),
            .attempt = audit->attempt,
            .run = audit->run,
            .actor = slice_of(audit->actor),
            .why = slice_of(audit->why),
        };
    }
}

/* The record alone tells of the first delivery, and of a success of the first
 * attempt that no row speaks of. */
static bool collect_rows(struct export *export, const struct store_entry *entry,
                         struct err *err)
{
    const struct record *record = &entry->record;
    struct store_audit row = {.move = MOVE_RECEIVED};
    bool has_success = false;

    export->n_rows = 0;
    (void)keep_row(export, &row);
    if (!store_each_audit(export->store, entry, keep_row, export, err)) {
        return false;
    }
    for (size_t i = 0; i < export->n_rows; i++) {
        has_success |= export->audits[i].move == MOVE_SUCCEEDED ||
                       export->audits[i].move == MOVE_APPLIED;
    }
    if (record->attempt == 1 && record->state == RECORD_SUCCEEDED &&
        !has_success) {
        row = (struct store_audit){
            .move = MOVE_SUCCEEDED, .attempt = 1, .run = record->run};
        (void)keep_row(export, &row);
    }
    fill_rows(export);
    return true;
}

/* --- what belongs to an event ------------------------------------------------
 */

static const struct invocation *
last_success(struct sim *sim, const struct store_entry *entry, size_t route)
{
    for (size_t i = sim->invocations.n; i > 0; i--) {
        const struct invocation *invocation = sim->invocations.at[i - 1];

        if (invocation->route == &sim->routes[route] &&
            invocation->number == entry->record.attempt &&
            invocation->told_end == LEDGER_END_STATUS &&
            invocation->told_status == 200 &&
            slice_eq(slice_of(invocation->event->id), store_entry_id(entry))) {
            return invocation;
        }
    }
    return NULL;
}

static void check_result(struct export *export, const struct store_entry *entry,
                         const struct invocation *success)
{
    struct buf flat = BUF_INIT;
    struct err err = {ERR_NONE, ""};
    struct result result;

    if (store_get_result(export->store, entry, &flat, &err) != STORE_FOUND) {
        sim_fail(export->sim, "the result of %s is not there: %s",
                 success->event->id, err.text);
    } else if (!result_open(buf_slice(&flat), &result) ||
               (!result.body_omitted &&
                result.body.len != success->result_len)) {
        sim_fail(export->sim, "the result of %s is another one",
                 success->event->id);
    }
    buf_free(&flat);
}

static void check_envelope(struct export *export,
                           const struct store_entry *entry)
{
    struct buf flat = BUF_INIT;
    struct err err = {ERR_NONE, ""};

    if (store_get_envelope(export->store, entry, &flat, &err) != STORE_FOUND) {
        sim_fail(export->sim, "the envelope of the dead %.*s is not there: %s",
                 (int)entry->id_len, entry->id, err.text);
    }
    buf_free(&flat);
}

static void check_belongings(struct export *export,
                             const struct store_entry *entry)
{
    struct sim *sim = export->sim;
    const char *name = store_route_name(export->store, entry->record.route);
    const struct invocation *success = NULL;

    for (size_t i = 0; i < sim->n_routes; i++) {
        if (strcmp(name, sim->routes[i].name) != 0) {
            continue;
        }
        success = last_success(sim, entry, i);
        if (entry->record.state == RECORD_DEAD &&
            sim->routes[i].conf.publisher.ops != NULL) {
            publisher_check(sim, name, entry);
        }
    }
    if (entry->record.state == RECORD_SUCCEEDED && success != NULL) {
        check_result(export, entry, success);
    } else if (entry->record.state == RECORD_DEAD &&
               (entry->record.flags & (RECORD_LEFT | RECORD_ERASED)) == 0) {
        check_envelope(export, entry);
    }
}

static void write_event(struct export *export, const struct store_entry *entry)
{
    const struct record *record = &entry->record;
    const struct ledger_event line = {
        .event = {.route =
                      slice_of(store_route_name(export->store, record->route)),
                  .tenant = store_entry_tenant(entry),
                  .id = store_entry_id(entry)},
        .namespace =
            slice_of(store_namespace_name(export->store, entry->namespace)),
        .state = (enum ledger_state)(record->state - RECORD_PENDING),
        .reason = slice_of(reason_name(record->reason)),
        .run = record->run,
        .attempts = record->attempt,
        .tries = record->tries,
        .crashes = record->crashes,
        .deliveries = record->deliveries,
        .drift = record->drifts,
        .origin = entry->origin,
        .rows = export->rows,
        .n_rows = export->n_rows,
    };

    ledger_event(&export->sim->ledger, &line);
}

static bool write_all(struct export *export, struct err *err)
{
    bool ok = store_begin(export->store, err);

    for (size_t i = export->entries.n; ok && i > 0; i--) {
        const struct store_entry *entry = export->entries.at[i - 1];

        ok = collect_rows(export, entry, err);
        if (ok) {
            check_belongings(export, entry);
            write_event(export, entry);
        }
    }
    if (ok) {
        store_abort(export->store);
    }
    return ok;
}

/* --- what is not there any more ----------------------------------------------
 */

static bool is_there(const struct export *export, const struct event *event,
                     size_t route)
{
    for (size_t i = 0; i < export->entries.n; i++) {
        const struct store_entry *entry = export->entries.at[i];
        const char *name = store_route_name(export->store, entry->record.route);

        if (strcmp(name, export->sim->routes[route].name) == 0 &&
            slice_eq(store_entry_id(entry), slice_of(event->id)) &&
            slice_eq(store_entry_tenant(entry), slice_of(event->tenant))) {
            return true;
        }
    }
    return false;
}

static void write_forgotten(struct export *export, const struct event *event,
                            size_t route)
{
    struct sim *sim = export->sim;
    const struct ledger_forgotten line = {
        .t_ms = sim->now_ms,
        .event = event_name(sim, event, route),
    };

    if (!is_there(export, event, route) &&
        operator_is_forgotten(sim, event, route, store_now_ms(export->store))) {
        sim->sights.forgotten++;
        ledger_forgotten(&sim->ledger, &line);
    }
}

/* Nothing was attempted of it, and the event had been invoked. */
static void tell_renewed(const struct export *export)
{
    struct sim *sim = export->sim;

    for (size_t i = 0; i < export->entries.n; i++) {
        const struct store_entry *entry = export->entries.at[i];
        const char *name = store_route_name(export->store, entry->record.route);

        for (size_t route = 0; route < sim->n_routes; route++) {
            struct event *event = sender_find(
                sim, route, store_entry_tenant(entry), store_entry_id(entry));

            if (event != NULL && entry->record.attempt == 0 &&
                strcmp(name, sim->routes[route].name) == 0) {
                sender_see_renewed(event, route);
            }
        }
    }
}

static void tell_forgotten(struct export *export)
{
    const struct list *events = &export->sim->events;

    for (size_t i = 0; i < events->n; i++) {
        const struct event *event = events->at[i];

        write_forgotten(export, event, event->route);
        if (event->also != SIZE_MAX) {
            write_forgotten(export, event, event->also);
        }
    }
}

void export_events(struct sim *sim)
{
    const struct store_filter all = {.route = -1};
    struct export export = {.sim = sim};
    struct err err = {ERR_NONE, ""};

    if (!process_open_store(sim, true, &export.store, &err)) {
        sim_fail(sim, "the store cannot be opened to read: %s", err.text);
        return;
    }
    if (!store_list(export.store, &all, keep_entry, &export, &err)) {
        sim_fail(sim, "the store cannot be listed: %s", err.text);
    }
    tell_forgotten(&export);
    tell_renewed(&export);
    if (!write_all(&export, &err)) {
        sim_fail(sim, "the store cannot be read: %s", err.text);
    }
    store_close(&export.store);
    list_free(&export.entries);
    free(export.rows);
    free(export.audits);
}
