/* SPDX-License-Identifier: MIT */
#include "engine/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/internal.h"

enum { COMMIT_EVENTS = 1000, COMMIT_BYTES = 4 << 20 };

struct load {
    struct engine *engine;
    const char *actor;
    bool is_marked;       /* the store is, by the first transaction */
    bool is_open;         /* a transaction is */
    size_t events, bytes; /* in it */
    bool failed;          /* half of an event may be in it */
    struct load_counts counts, durable;
};

/* --- transactions --------------------------------------------------------- */

static bool begin(struct load *load, struct err *err)
{
    struct store *store = load->engine->store;

    if (load->is_open) {
        return true;
    }
    if (store_is_full(store)) {
        return err_set(err, ERR_AGAIN, "no room in the store");
    }
    load->engine->batch.now_ms = store_now_ms(store);
    if (!store_begin(store, err)) {
        return false;
    }
    load->is_open = true;
    if (!load->is_marked) {
        load->is_marked = store_set_loading(store, true, err);
    }
    return load->is_marked;
}

/* Sealing keeps up: a step takes more ids than a commit brings. */
static bool commit(struct load *load, struct err *err)
{
    struct store *store = load->engine->store;
    bool more;

    if (!load->is_open) {
        return true;
    }
    if (!store_maintain(store, &more, err)) {
        return false;
    }
    load->is_open = false;
    load->events = 0;
    load->bytes = 0;
    load->engine->batch.n_notes = 0; /* nobody is told of each */
    if (!store_commit(store, err)) {
        return false;
    }
    load->durable = load->counts;
    return true;
}

static bool commit_some(struct load *load, struct err *err)
{
    return (load->events < COMMIT_EVENTS && load->bytes < COMMIT_BYTES) ||
           commit(load, err);
}

/* --- life ----------------------------------------------------------------- */

/* What a route remembers no more is there all the same: it must not come in
 * a second time. */
static struct engine_route *keep_all(const struct engine_options *options)
{
    struct engine_route *routes = mem_new(options->n_routes, sizeof *routes);

    for (size_t i = 0; i < options->n_routes; i++) {
        routes[i] = options->routes[i];
        routes[i].retention =
            (struct store_retention){INT64_MAX, INT64_MAX, INT64_MAX};
    }
    return routes;
}

bool load_begin(struct load **out, const struct engine_options *options,
                const char *actor, struct err *err)
{
    struct load *load = mem_new(1, sizeof *load);
    struct engine_options all = *options;
    struct engine_route *routes = keep_all(options);
    bool ok;

    CHECK(actor != NULL);
    load->actor = actor;
    all.routes = routes;
    ok = engine_build(&load->engine, &all, err);
    free(routes);
    if (!ok) {
        load_free(&load);
    }
    *out = load;
    return ok;
}

void load_free(struct load **at)
{
    struct load *load = *at;

    *at = NULL;
    if (load == NULL) {
        return;
    }
    if (load->is_open) {
        store_abort(load->engine->store);
    }
    engine_free(&load->engine);
    free(load);
}

bool load_end(struct load *load, struct err *err)
{
    return begin(load, err) &&
           store_set_loading(load->engine->store, false, err) &&
           commit(load, err);
}

void load_keep(struct load *load)
{
    if (!load->failed) {
        (void)commit(load, NULL); /* what fails is not kept, then */
    }
}

const struct load_counts *load_counts(const struct load *load)
{
    return &load->durable;
}

/* --- names ---------------------------------------------------------------- */

/* New names are given their numbers outside of transactions. */
static bool find_route(struct load *load, const char *name, uint16_t *number,
                       struct err *err)
{
    struct store *store = load->engine->store;
    const char *known;

    for (uint16_t i = 0; (known = store_route_name(store, i)) != NULL; i++) {
        if (strcmp(known, name) == 0) {
            *number = i;
            return true;
        }
    }
    return commit(load, err) && store_route_number(store, name, number, err);
}

static bool find_namespace(struct load *load, const char *name,
                           uint16_t *number, struct err *err)
{
    struct store *store = load->engine->store;
    const char *known;

    for (uint16_t i = 0; (known = store_namespace_name(store, i)) != NULL;
         i++) {
        if (strcmp(known, name) == 0) {
            *number = i;
            return true;
        }
    }
    return commit(load, err) &&
           store_namespace_number(store, name, number, err);
}

/* Likewise; those that it has are found by their names. */
static bool find_stream(struct load *load, const struct load_event *event,
                        struct store_position *position, struct err *err)
{
    struct store *store = load->engine->store;
    const char *known;

    position->stream = 0;
    if (event->stream == NULL) {
        return true;
    }
    for (uint16_t i = 1; (known = store_stream_name(store, i)) != NULL; i++) {
        if (strcmp(known, event->stream) == 0) {
            position->stream = i;
            return true;
        }
    }
    return commit(load, err) &&
           store_stream_number(store, event->stream, &position->stream, err);
}

/* --- what holds for all --------------------------------------------------- */

bool load_forget_until(struct load *load, int64_t until_ms, struct err *err)
{
    int64_t now_ms;

    if (!begin(load, err)) {
        return false;
    }
    now_ms = load->engine->batch.now_ms;
    store_forget_until(load->engine->store,
                       until_ms < now_ms ? until_ms : now_ms);
    return true;
}

bool load_pause(struct load *load, const char *route, struct err *err)
{
    uint16_t number;

    load->failed =
        !(find_route(load, route, &number, err) && begin(load, err) &&
          store_set_paused(load->engine->store, number, true, err));
    return !load->failed;
}

/* --- an event ------------------------------------------------------------- */

/* The same, but for what happened to it on the way in. */
static bool is_same(const struct store_entry *there,
                    const struct load_event *event)
{
    const struct record *a = &there->record, *b = &event->record;

    if (a->route != b->route || a->run != b->run || a->attempt != b->attempt ||
        a->first_seen_ms != b->first_seen_ms || a->order_key != b->order_key ||
        a->deliveries != b->deliveries || a->drifts != b->drifts ||
        !fingerprint_eq(&a->fingerprint, &b->fingerprint)) {
        return false;
    }
    if (!record_is_settled(b)) {
        return (a->flags & RECORD_RESTORED) != 0 &&
               (a->state == RECORD_UNCERTAIN || a->state == RECORD_DEAD);
    }
    return a->state == b->state && a->reason == b->reason &&
           a->flags == b->flags && a->status == b->status &&
           a->changed_ms == b->changed_ms;
}

/* What runs holds its key: behind another it is in doubt at once (M26). */
static void end_attempt(struct record *record)
{
    if (record->state != RECORD_RUNNING) {
        return;
    }
    record->state = RECORD_UNCERTAIN;
    if (record->doubt_since_ms == 0) {
        record->doubt_since_ms = record->changed_ms;
    }
    if ((record->flags & RECORD_LEFT) != 0) {
        record->flags |= RECORD_PARKED;
    }
}

/* Its place in the order of its key is behind those that are here. */
static bool line_up(struct engine *engine, struct store_entry *entry,
                    struct err *err)
{
    struct record *record = &entry->record;
    bool blocked;

    if (record_is_settled(record) || (record->flags & RECORD_ORDERED) == 0) {
        return true;
    }
    record->flags |= RECORD_ORDER_WAIT;
    if (!event_order_blocked(engine, record->order_key, entry, &blocked, err)) {
        return false;
    }
    if (blocked) {
        end_attempt(record);
    } else {
        record->flags &= ~(uint32_t)RECORD_ORDER_WAIT;
    }
    if (blocked || (record->flags & RECORD_PARKED) != 0) {
        record->due_ms = RECORD_NEVER;
    } else if (record->due_ms == RECORD_NEVER) {
        record->due_ms = engine->batch.now_ms;
    }
    return true;
}

static bool put_history(struct store *store, const struct store_entry *entry,
                        const struct load_event *event, struct err *err)
{
    for (size_t i = 0; i < event->n_history; i++) {
        if (!store_add_audit(store, entry, &event->history[i], err)) {
            return false;
        }
    }
    return true;
}

static bool put(struct engine *engine, const struct load_event *event,
                struct store_entry *entry, struct err *err)
{
    struct store *store = engine->store;

    entry->record = event->record;
    entry->position = event->position;
    (void)snprintf(entry->code, sizeof entry->code, "%s", event->code);
    (void)snprintf(entry->text, sizeof entry->text, "%s", event->text);
    return line_up(engine, entry, err) && store_put(store, entry, err) &&
           (!event->has_envelope ||
            store_put_envelope(store, entry, event->envelope, err)) &&
           (!event->has_result ||
            store_put_result(store, entry, event->result, err)) &&
           put_history(store, entry, event, err);
}

/* M26 */
static bool make_uncertain(struct load *load, struct store_entry *entry,
                           struct err *err)
{
    struct event_step step = {
        .route = event_route(load->engine, entry),
        .entry = entry,
        .input = event_input(load->engine, INPUT_RESTORED),
        .detail = "loaded",
        .actor = load->actor,
    };

    if (record_is_settled(&entry->record)) {
        return true;
    }
    CHECK(step.route != NULL);
    load->counts.uncertain++;
    return event_step(load->engine, &step, err);
}

static const struct engine_route *route_of(const struct load *load,
                                           const struct load_event *event)
{
    size_t index = engine_route_index(load->engine, slice_of(event->route));

    return index == SIZE_MAX ? NULL : &load->engine->routes[index].conf;
}

static bool take(struct load *load, const struct load_event *event,
                 struct store_entry *entry, struct err *err)
{
    load->events++;
    load->bytes += event->envelope.len + event->result.len;
    load->counts.taken++;
    return put(load->engine, event, entry, err) &&
           make_uncertain(load, entry, err);
}

/* True also when it was there: the verdict says so. */
static bool settle(struct load *load, const struct load_event *event,
                   uint16_t namespace, enum load_verdict *verdict,
                   struct err *err)
{
    struct store_entry entry;

    switch (store_find(load->engine->store, namespace, event->tenant, event->id,
                       &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        *verdict = LOAD_TAKEN;
        return take(load, event, &entry, err);
    case STORE_FOUND:
        break;
    }
    *verdict = is_same(&entry, event) ? LOAD_KNOWN : LOAD_CONFLICT;
    *(*verdict == LOAD_KNOWN ? &load->counts.known : &load->counts.conflicts) +=
        1;
    return true;
}

bool load_event(struct load *load, const struct load_event *event,
                enum load_verdict *verdict, struct err *err)
{
    struct load_event numbered = *event;
    uint16_t namespace;

    if (!load_check_event(event, route_of(load, event), err)) {
        return false;
    }
    load->failed = !(
        find_route(load, event->route, &numbered.record.route, err) &&
        find_namespace(load, event->namespace, &namespace, err) &&
        find_stream(load, event, &numbered.position, err) && begin(load, err) &&
        settle(load, &numbered, namespace, verdict, err) &&
        commit_some(load, err));
    return !load->failed;
}

/* --- an id ---------------------------------------------------------------- */

/* Remembered from now on for as long as any: that is what it is for. */
static void make_seen(const struct load *load, const struct load_seen *seen,
                      struct record *record)
{
    int64_t now_ms = load->engine->batch.now_ms;
    int64_t at_ms =
        seen->at_ms > 0 && seen->at_ms < now_ms ? seen->at_ms : now_ms;

    *record = (struct record){
        .state = RECORD_SUCCEEDED,
        .flags = RECORD_ERASED,
        .route = load->engine->routes[seen->route].number,
        .run = 1,
        .first_seen_ms = at_ms,
        .last_seen_ms = at_ms,
        .changed_ms = now_ms,
        .clock_ms = at_ms,
        .due_ms = RECORD_NEVER,
    };
}

static bool put_seen(struct load *load, const struct load_seen *seen,
                     struct store_entry *entry, struct err *err)
{
    struct store *store = load->engine->store;
    struct store_audit audit = {
        .at_ms = load->engine->batch.now_ms,
        .move = MOVE_SEEN,
        .run = 1,
        .why = "seen elsewhere",
    };

    (void)snprintf(audit.actor, sizeof audit.actor, "%s", load->actor);
    make_seen(load, seen, &entry->record);
    load->events++;
    load->counts.taken++;
    return store_put(store, entry, err) &&
           store_add_audit(store, entry, &audit, err);
}

static bool settle_seen(struct load *load, const struct load_seen *seen,
                        enum load_verdict *verdict, struct err *err)
{
    struct store_entry entry;

    switch (store_find(load->engine->store,
                       load->engine->routes[seen->route].namespace,
                       seen->tenant, seen->id, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_FOUND:
        *verdict = LOAD_KNOWN;
        load->counts.known++;
        return true;
    case STORE_ABSENT:
        break;
    }
    *verdict = LOAD_TAKEN;
    return put_seen(load, seen, &entry, err);
}

bool load_seen(struct load *load, const struct load_seen *seen,
               enum load_verdict *verdict, struct err *err)
{
    CHECK(seen->route < load->engine->n_routes);
    load->failed =
        !(begin(load, err) && settle_seen(load, seen, verdict, err) &&
          commit_some(load, err));
    return !load->failed;
}
