/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/metrics.h"
#include "engine/internal.h"
#include "engine/partition.h"

/* --- deciding
 * ------------------------------------------------------------------ */

/* Results first: they free slots. Commands and what is due come before new
 * deliveries, so that nothing older is overtaken. */
static bool decide_results(struct engine *engine, struct err *err)
{
    for (struct queue_item *item = engine->batch.results.head; item != NULL;
         item = item->next) {
        if (!attempt_apply_result(engine, (struct attempt *)item, err)) {
            return false;
        }
    }
    return recover_orphans(engine, err);
}

static bool decide_commands(struct engine *engine, struct err *err)
{
    for (struct queue_item *item = engine->batch.commands.head; item != NULL;
         item = item->next) {
        struct command *command = (struct command *)item;

        if (command->kind != COMMAND_READ &&
            !command_apply(engine, command, err)) {
            return false;
        }
    }
    return true;
}

static bool decide_all(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    struct queue_item *item;

    if (!batch->waits_for_room && !decide_results(engine, err)) {
        return false;
    }
    if (!decide_commands(engine, err)) {
        return false;
    }
    if (!batch->waits_for_room &&
        (!partitions_apply_orders(engine, err) || !due_apply(engine, err) ||
         !outbox_apply(engine, err))) {
        return false;
    }
    for (item = batch->deliveries.head; item != NULL; item = item->next) {
        if (!arrive_apply(engine, (struct delivery *)item, err)) {
            return false;
        }
    }
    breaker_write(engine);
    return partitions_write(engine, err);
}

/* What rides along with a commit, or is due on its own. */
static bool ride_along(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    bool wanted =
        engine->maintenance_waits || batch->now_ms >= engine->housekeeping_ms;

    /* Where room is short, what cannot wait goes first, and alone. */
    if (batch->waits_for_room || (engine->is_tight && batch->dirty)) {
        return true;
    }
    if (batch->dirty || batch->now_ms >= repeats_due_ms(engine->repeats)) {
        if (!repeats_flush(engine, err)) {
            return false;
        }
    }
    if (!batch->dirty && !wanted) {
        return true;
    }
    batch->dirty = true;
    return store_maintain(engine->store, &engine->maintenance_waits, err);
}

/* --- after the commit
 * ------------------------------------------------------------ */

static void release_results(struct engine *engine)
{
    struct batch *batch = &engine->batch;
    struct queue_item *item = batch->results.head;

    batch->results.head = NULL;
    batch->results.tail = &batch->results.head;
    while (item != NULL) {
        struct queue_item *next = item->next;

        attempt_tell(engine, (struct attempt *)item);
        attempt_free((struct attempt *)item);
        item = next;
    }
}

static bool has_reads(const struct batch *batch)
{
    for (const struct queue_item *item = batch->commands.head; item != NULL;
         item = item->next) {
        if (((const struct command *)item)->kind == COMMAND_READ) {
            return true;
        }
    }
    return false;
}

/* Reads come behind the commit, in a transaction of their own: they show what
 * is durable, and nothing else; and a batch that is put off does not keep
 * them. */
static void answer_reads(struct engine *engine)
{
    struct err err = {ERR_NONE, ""};
    bool ok;

    if (!has_reads(&engine->batch)) {
        return;
    }
    ok = store_begin(engine->store, &err);
    for (struct queue_item *item = engine->batch.commands.head; item != NULL;
         item = item->next) {
        struct command *command = (struct command *)item;

        if (command->kind != COMMAND_READ) {
            continue;
        }
        if (!ok || !command_apply(engine, command, &err)) {
            command->status = COMMAND_BUSY;
            command->why = "the store could not be read";
        }
    }
    if (ok) {
        store_abort(engine->store);
    }
    if (err.kind != ERR_NONE) {
        log_error("engine", "read for an operator", &err);
    }
}

static bool is_replay(const struct command *command)
{
    return command->kind == COMMAND_REPLAY && command->status == COMMAND_DONE &&
           !command->dry_run;
}

static void release_commands(struct engine *engine)
{
    struct batch *batch = &engine->batch;
    struct queue_item *item;

    answer_reads(engine);
    item = batch->commands.head;

    batch->commands.head = NULL;
    batch->commands.tail = &batch->commands.head;
    while (item != NULL) {
        struct queue_item *next = item->next;
        struct command *command = (struct command *)item;

        if (is_replay(command)) {
            MARK(replay_after_commit);
        }
        command_tell(engine, command);
        atomic_fetch_sub(&engine->commands, 1);
        command->done(command);
        item = next;
    }
}

static void release_deliveries(struct batch *batch)
{
    struct queue_item *item = batch->deliveries.head;

    batch->deliveries.head = NULL;
    batch->deliveries.tail = &batch->deliveries.head;
    while (item != NULL) {
        struct queue_item *next = item->next;
        struct delivery *delivery = (struct delivery *)item;

        delivery->answer(delivery);
        MARK(answer_handed_over);
        item = next;
    }
}

static void count_repeats(struct engine *engine)
{
    const struct batch *batch = &engine->batch;
    struct queue_item *item;

    for (item = batch->deliveries.head; item != NULL; item = item->next) {
        const struct delivery *delivery = (struct delivery *)item;

        for (size_t i = 0; i < delivery->n_arrivals; i++) {
            const struct arrival *arrival = &delivery->arrivals[i];

            if (arrival->repeated) {
                repeats_add(engine->repeats, arrival->identity,
                            arrival->drifted, batch->now_ms);
            }
        }
    }
}

static void fold_routes(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct route *route = &engine->routes[i];

        CHECK(route->running + route->starting >= route->ending);
        route->running = route->running + route->starting - route->ending;
        engine->running = engine->running + route->starting - route->ending;
        breaker_fold(engine, route);
        route->starting = 0;
        route->ending = 0;
    }
}

void batch_note_settled(struct engine *engine, const struct route *route,
                        const struct store_entry *entry)
{
    struct batch *batch = &engine->batch;
    struct note *note;

    if (batch->n_notes == batch->cap_notes) {
        batch->cap_notes = batch->cap_notes == 0 ? 64 : batch->cap_notes * 2;
        batch->notes =
            mem_grow(batch->notes, batch->cap_notes, sizeof *batch->notes);
    }
    note = &batch->notes[batch->n_notes++];
    note->route = route;
    note->state = entry->record.state;
    note->reason = entry->record.reason;
    note->attempts = entry->record.attempt;
    note->run = entry->record.run;
    /* A rerun's clock starts with the order; the first run's is moved on by
     * time that does not count, but took what it took. */
    note->took_ms =
        batch->now_ms - (entry->record.run == 1 ? entry->record.first_seen_ms
                                                : entry->record.clock_ms);
    note->id_len = entry->id_len;
    memcpy(note->id, entry->id, entry->id_len);
}

static void tell_settled(struct engine *engine, const struct note *note)
{
    size_t index = (size_t)(note->route - engine->routes);
    struct log_line line;

    metric_add(METRIC_SETTLED, index,
               (size_t)(note->state - RECORD_SUCCEEDED) * REASONS +
                   (size_t)note->reason,
               1);
    metric_observe(METRIC_EVENT_SECONDS, index, (double)note->took_ms / 1000.0);
    if (log_begin(&line, LOG_INFO, "engine", "event settled")) {
        log_str(&line, "route", slice_of(note->route->conf.name));
        log_str(&line, "id", (struct slice){note->id, note->id_len});
        log_str(&line, "state", slice_of(record_state_name(note->state)));
        if (note->reason != REASON_NONE) {
            log_str(&line, "reason", slice_of(reason_name(note->reason)));
        }
        log_int(&line, "attempts", note->attempts);
        log_int(&line, "run", note->run);
        log_int(&line, "took_ms", note->took_ms);
        log_end(&line);
    }
}

static void release_starts(struct batch *batch)
{
    struct job *job = batch->starts;

    batch->starts = NULL;
    batch->starts_tail = &batch->starts;
    while (job != NULL) {
        struct job *next = job->next;

        attempt_start(job);
        job = next;
    }
}

static void release_notes(struct engine *engine)
{
    struct batch *batch = &engine->batch;

    for (size_t i = 0; i < batch->n_notes; i++) {
        tell_settled(engine, &batch->notes[i]);
        if (batch->notes[i].state == RECORD_DEAD) {
            MARK(dead_after_commit);
        }
    }
    batch->n_notes = 0;
}

/* The commit has returned: now, and only now, memory follows the disk and
 * effects go out; first those that others wait for, so that they work while
 * the logs and metrics of the rest are written. */
static void release(struct engine *engine)
{
    struct batch *batch = &engine->batch;

    count_repeats(engine);
    fold_routes(engine);
    partitions_committed(engine);
    if (room_fold(engine)) {
        partitions_wake(engine);
    }
    recover_orphans_seen(engine, true);
    if (batch->now_ms >= engine->housekeeping_ms) {
        engine->housekeeping_ms =
            batch->now_ms + (batch->full ? NO_ROOM_RETRY_MS : HOUSEKEEPING_MS);
    }
    release_deliveries(batch);
    release_starts(batch);
    if (!batch->waits_for_room) {
        partitions_release_orders(engine);
        outbox_committed(engine);
    }
    release_notes(engine);
    if (!batch->waits_for_room) {
        release_results(engine);
    }
    release_commands(engine);
}

/* --- when there is no room
 * ---------------------------------------------------------- */

/* Nothing was stored. Senders and operators are told to come back; results
 * stay, and are tried again until there is room. */
static void abandon(struct engine *engine, const struct err *why)
{
    struct batch *batch = &engine->batch;
    struct queue_item *item;

    log_error("engine", "no room in the store, batch put off", why);
    engine->no_room_until_ms = batch->now_ms + NO_ROOM_RETRY_MS;
    engine->is_tight = true;
    MARK(batch_put_off);
    if (batch->results.head != NULL) {
        MARK(results_wait);
    }
    repeats_flushed(engine->repeats, false);
    recover_orphans_seen(engine, false);
    partitions_aborted(engine);
    outbox_aborted(engine);
    room_aborted(engine);
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct route *route = &engine->routes[i];

        route->starting = route->ending = 0;
        route->heard = route->unheard = false;
    }
    while (batch->starts != NULL) {
        struct job *job = batch->starts;

        batch->starts = job->next;
        attempt_free(&job->attempt);
    }
    batch->starts_tail = &batch->starts;
    batch->n_notes = 0;
    for (item = batch->deliveries.head; item != NULL; item = item->next) {
        struct delivery *delivery = (struct delivery *)item;

        delivery->result = DELIVERY_NO_ROOM;
        delivery->retry_after_s = 1;
    }
    for (item = batch->commands.head; item != NULL; item = item->next) {
        struct command *command = (struct command *)item;

        command->status = COMMAND_BUSY;
        command->why = "there is no room in the store now";
    }
    release_deliveries(batch);
    release_commands(engine);
}

/* --- one batch
 * ------------------------------------------------------------------------ */

/* A batch may be both. */
static bool is_claim(const struct batch *batch)
{
    return batch->deliveries.head != NULL || batch->starts != NULL;
}

static bool is_record(const struct batch *batch)
{
    return batch->results.head != NULL && !batch->waits_for_room;
}

static bool commit_marked(struct engine *engine, struct err *err)
{
    const struct batch *batch = &engine->batch;

    if (is_claim(batch)) {
        MARK(claim_before_commit);
    }
    if (is_record(batch)) {
        MARK(record_before_commit);
    }
    if (!store_commit(engine->store, err)) {
        return false;
    }
    if (is_claim(batch)) {
        MARK(claim_after_commit);
    }
    if (is_record(batch)) {
        MARK(record_after_commit);
    }
    if (engine->maintenance_waits) {
        MARK(upkeep_committed);
    }
    return true;
}

static bool commit(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    int64_t start_ms = clock_boot_ms(engine->clock);
    size_t items = 0;

    if (!batch->dirty) {
        store_abort(engine->store);
        return true;
    }
    if (!commit_marked(engine, err)) {
        return false;
    }
    for (const struct queue_item *item = batch->deliveries.head; item != NULL;
         item = item->next) {
        items++;
    }
    metric_observe(METRIC_COMMIT_SECONDS, 0,
                   (double)(clock_boot_ms(engine->clock) - start_ms) / 1000.0);
    metric_observe(METRIC_BATCH_ITEMS, 0, (double)items);
    repeats_flushed(engine->repeats, true);
    engine->is_tight = false;
    return true;
}

/* Once when it begins, and once when it is over. */
static void tell_room(struct engine *engine)
{
    bool full = engine->batch.full;
    struct log_line line;

    if (full != engine->told_full &&
        log_begin(&line, LOG_WARN, "engine",
                  full ? "no room: new events are refused until there is some"
                       : "there is room again")) {
        log_end(&line);
    }
    engine->told_full = full;
}

bool batch_run(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    struct err why = {ERR_NONE, ""};
    bool ok;

    batch->dirty = false;
    batch->waits_for_room = batch->now_ms < engine->no_room_until_ms;
    batch->full = batch->waits_for_room || store_is_full(engine->store);
    tell_room(engine);
    if (batch->full &&
        engine->housekeeping_ms > batch->now_ms + NO_ROOM_RETRY_MS) {
        engine->housekeeping_ms = batch->now_ms + NO_ROOM_RETRY_MS;
    }
    ok = store_begin(engine->store, &why);
    if (ok && (!decide_all(engine, &why) || !ride_along(engine, &why))) {
        store_abort(engine->store);
        ok = false;
    }
    if (ok && commit(engine, &why)) {
        release(engine);
        return true;
    }
    if (why.kind == ERR_AGAIN) {
        abandon(engine, &why);
        return true;
    }
    if (err != NULL) {
        *err = why;
    }
    return false;
}
