/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "engine/internal.h"

static enum command_status status_of(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_DONE:
        return COMMAND_DONE;
    case VERDICT_NOTHING_TO_DO:
        return COMMAND_NOTHING_TO_DO;
    case VERDICT_IN_DOUBT:
        return COMMAND_IN_DOUBT;
    case VERDICT_REFUSED:
        return COMMAND_REFUSED;
    }
    UNREACHABLE("every verdict is mapped");
}

static enum input_kind input_of(enum command_kind kind)
{
    switch (kind) {
    case COMMAND_REPLAY:
        return INPUT_REPLAY;
    case COMMAND_RERUN:
        return INPUT_RERUN;
    case COMMAND_RESOLVE_APPLIED:
        return INPUT_RESOLVE_APPLIED;
    case COMMAND_RESOLVE_NOT_APPLIED:
        return INPUT_RESOLVE_NOT_APPLIED;
    case COMMAND_DISCARD:
        return INPUT_DISCARD;
    case COMMAND_PAUSE:
    case COMMAND_RESUME:
    case COMMAND_READ:
    case COMMAND_FLUSH:
    case COMMAND_BACKED_UP:
        break;
    }
    UNREACHABLE("only orders on one event change its record");
}

static bool settle(struct command *command, enum command_status status,
                   const char *why)
{
    command->status = status;
    command->why = why;
    return true;
}

static bool set_paused(struct engine *engine, struct command *command,
                       struct err *err)
{
    const struct route *route = &engine->routes[command->route];
    bool paused = command->kind == COMMAND_PAUSE;

    if (route->conf.retired) {
        return settle(command, COMMAND_REFUSED, "the route is retired");
    }
    if (store_is_paused(engine->store, route->number) == paused) {
        return settle(command, COMMAND_NOTHING_TO_DO,
                      paused ? "it is paused already" : "it is not paused");
    }
    if (command->dry_run) {
        return settle(command, COMMAND_DONE, "would be done");
    }
    engine->batch.dirty = true;
    command->status = COMMAND_DONE;
    command->why = paused ? "paused" : "resumed";
    return store_set_paused(engine->store, route->number, paused, err);
}

/* What it will do, or would; the copy of the record is thrown away. Nothing
 * may be left to wait where nothing is ever run. */
static void try_step(struct engine *engine, struct command *command,
                     const struct event_step *step)
{
    struct record copy = step->entry->record;
    struct decision decision = record_step(
        &copy, &step->input, &step->route->conf.policy, engine->batch.now_ms);

    command->state = copy.state;
    command->status = status_of(decision.verdict);
    command->why = decision.why;
    command->retired = command->status == COMMAND_DONE &&
                       step->route->conf.retired && !record_is_settled(&copy);
    if (command->retired) {
        command->state = step->entry->record.state;
        command->status = COMMAND_REFUSED;
        command->why = "the route is retired: nothing would run it";
    }
    command->not_kept = command->status == COMMAND_REFUSED &&
                        step->input.kind == INPUT_RERUN &&
                        step->entry->record.state == RECORD_SUCCEEDED &&
                        (step->entry->record.flags & RECORD_ERASED) != 0;
}

/* What the operator knows of the answer; where that is nothing, it is noted
 * as done and unknown, so that no earlier answer is taken for it. */
static bool keep_result(struct engine *engine, const struct command *command,
                        const struct store_entry *entry, struct err *err)
{
    const struct result unknown = {.body_omitted = true};
    struct buf flat = BUF_INIT;
    bool ok;

    if (command->result.len > 0) {
        buf_add_slice(&flat, command->result);
    } else {
        result_encode(&unknown, &flat);
    }
    ok = store_put_result(engine->store, entry, buf_slice(&flat), err);
    buf_free(&flat);
    return ok;
}

/* A first attempt that succeeds writes no row: its record tells the time,
 * until a rerun makes that the time of something else. */
static bool keep_first_success(struct engine *engine,
                               const struct store_entry *entry, struct err *err)
{
    const struct store_audit audit = {
        .at_ms = entry->record.changed_ms,
        .move = MOVE_SUCCEEDED,
        .attempt = entry->record.attempt,
        .run = entry->record.run,
    };

    if (entry->record.state != RECORD_SUCCEEDED || entry->record.attempt > 1) {
        return true;
    }
    return store_add_audit(engine->store, entry, &audit, err);
}

/* Slices of envelopes are dropped whole, and no record is told. */
static bool see_envelope(struct engine *engine, struct store_entry *entry,
                         struct err *err)
{
    struct buf envelope = BUF_INIT;
    enum store_found found =
        store_get_envelope(engine->store, entry, &envelope, err);

    buf_free(&envelope);
    if (found == STORE_ABSENT) {
        entry->record.flags |= RECORD_ERASED;
    }
    return found != STORE_FAILED;
}

static bool change_event(struct engine *engine, struct command *command,
                         struct store_entry *entry, struct err *err)
{
    struct event_step step = {
        .route = event_route(engine, entry),
        .entry = entry,
        .input = event_input(engine, input_of(command->kind)),
        .detail = command->note,
        .actor = command->actor,
    };
    char claim[STORE_TEXT_MAX + 1];

    if (step.route == NULL) {
        return settle(command, COMMAND_REFUSED,
                      "the event's route is not configured");
    }
    step.input.assume_not_applied = command->assume_not_applied;
    if (command->assume_not_applied) {
        (void)snprintf(claim, sizeof claim, "said to be not applied%s%s",
                       command->note == NULL ? "" : ", ",
                       command->note == NULL ? "" : command->note);
        step.detail = claim;
    }
    if (command->only_run != 0 && entry->record.run != command->only_run) {
        return settle(command, COMMAND_NOTHING_TO_DO,
                      "it was run again already");
    }
    if ((command->kind == COMMAND_RERUN && !see_envelope(engine, entry, err)) ||
        !event_order_blocked(engine, entry->record.order_key, entry,
                             &step.input.order_blocked, err)) {
        return false;
    }
    try_step(engine, command, &step);
    if (command->dry_run || command->status != COMMAND_DONE) {
        return true;
    }
    if (command->kind == COMMAND_RERUN &&
        !keep_first_success(engine, entry, err)) {
        return false;
    }
    if (!event_step(engine, &step, err)) {
        return false;
    }
    if (command->kind == COMMAND_REPLAY) {
        MARK(replay_before_commit);
    }
    return !step.decision.keep_result ||
           keep_result(engine, command, entry, err);
}

void command_tell(const struct engine *engine, const struct command *command)
{
    struct log_line line;

    if (command->route == SIZE_MAX || command->kind == COMMAND_READ ||
        !log_begin(&line, LOG_INFO, "engine", "operator's order")) {
        return;
    }
    log_str(&line, "actor", slice_of(command->actor));
    log_str(&line, "route", slice_of(engine->routes[command->route].conf.name));
    log_str(&line, "id", command->id);
    log_str(&line, "result", slice_of(command->why));
    log_end(&line);
}

/* By the namespace of its route; of one that had another once, by that. */
static enum store_found find_event(struct engine *engine,
                                   const struct command *command,
                                   struct store_entry *entry, struct err *err)
{
    const struct route *route = &engine->routes[command->route];
    enum store_found found =
        store_find(engine->store, route->namespace, command->tenant,
                   command->id, entry, err);

    for (uint16_t n = 0; found == STORE_ABSENT &&
                         store_namespace_name(engine->store, n) != NULL;
         n++) {
        found = store_find(engine->store, n, command->tenant, command->id,
                           entry, err);
        if (found == STORE_FOUND && entry->record.route != route->number) {
            found = STORE_ABSENT;
        }
    }
    return found;
}

static bool on_event(struct engine *engine, struct command *command,
                     struct err *err)
{
    struct store_entry entry;

    switch (find_event(engine, command, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return settle(command, COMMAND_NOT_FOUND, "no such event is known");
    case STORE_FOUND:
        break;
    }
    command->state = entry.record.state;
    if (command->kind != COMMAND_READ) {
        return change_event(engine, command, &entry, err);
    }
    repeats_overlay(engine->repeats, &entry);
    command->read(command->ctx, engine->store, &entry);
    return settle(command, COMMAND_DONE, "read");
}

bool command_apply(struct engine *engine, struct command *command,
                   struct err *err)
{
    if (command->kind == COMMAND_READ && command->route == SIZE_MAX) {
        command->read(command->ctx, engine->store, NULL);
        return settle(command, COMMAND_DONE, "read");
    }
    if (command->kind == COMMAND_FLUSH) {
        repeats_hurry(engine->repeats);
        return settle(command, COMMAND_DONE, "flushed");
    }
    if (command->kind == COMMAND_BACKED_UP) {
        engine->batch.dirty = true;
        (void)settle(command, COMMAND_DONE, "noted");
        return store_set_last_backup(engine->store, command->backup_wall_ms,
                                     err);
    }
    CHECK(command->route < engine->n_routes);
    if (command->kind == COMMAND_PAUSE || command->kind == COMMAND_RESUME) {
        return set_paused(engine, command, err);
    }
    return on_event(engine, command, err);
}
