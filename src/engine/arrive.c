/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mark.h"
#include "engine/internal.h"

enum { STOPPED_ROUTE_RETRY_S = 60, FULL_RETRY_S = 5 };

/* Equal keys of two namespaces, or of two tenants, are two keys. Nothing of
 * the store is in it: what is loaded from another store stands in one line
 * with what arrives here. */
static uint64_t order_key_of(const struct arrival *arrival,
                             const struct route *route)
{
    uint8_t bytes[8], digest[SHA256_SIZE];
    const struct slice parts[] = {
        slice_of(route->conf.namespace),
        arrival->tenant,
        {(const char *)bytes, sizeof bytes},
    };
    uint64_t key;

    if (arrival->order_key == 0) {
        return 0;
    }
    bytes_put_be64(bytes, arrival->order_key);
    hash_sha256_parts(parts, sizeof parts / sizeof parts[0], digest);
    key = bytes_get_be64(digest);
    return key == 0 ? 1 : key;
}

static struct input arrival_input(struct engine *engine,
                                  const struct arrival *arrival,
                                  const struct route *route)
{
    struct input input = event_input(engine, INPUT_ARRIVE);

    if (arrival->unusable != REASON_NONE) {
        input.kind = INPUT_UNUSABLE;
        input.reason = arrival->unusable;
    }
    input.route = route->number;
    input.order_key = order_key_of(arrival, route);
    input.fingerprint = arrival->fingerprint;
    /* Nothing that has waited longer is overtaken. */
    input.may_start =
        due_may_start(engine, route) &&
        store_first_due(engine->store, route->number) > engine->batch.now_ms;
    return input;
}

static bool apply_arrival(struct engine *engine, struct arrival *arrival,
                          struct err *err)
{
    struct route *route = &engine->routes[arrival->route];
    struct store_entry entry;
    struct event_step step = {.route = route, .entry = &entry};
    bool was_new;

    CHECK(arrival->route < engine->n_routes);
    if (store_find(engine->store, route->namespace, arrival->tenant,
                   arrival->id, &entry, err) == STORE_FAILED) {
        return false;
    }
    was_new = entry.record.state == RECORD_NONE;
    step.detail = arrival->why;
    step.input = arrival_input(engine, arrival, route);
    if (!event_order_blocked(engine, step.input.order_key, &entry,
                             &step.input.order_blocked, err) ||
        !event_step(engine, &step, err)) {
        return false;
    }
    arrival->answer = step.decision.answer;
    arrival->state = entry.record.state;
    arrival->repeated = step.decision.counted && !step.decision.changed;
    arrival->drifted = step.decision.move == MOVE_DRIFTED;
    memcpy(arrival->identity, entry.identity.hash, sizeof arrival->identity);
    CHECK(!was_new || step.decision.changed);
    if ((was_new || step.decision.take_envelope) &&
        !store_put_envelope(engine->store, &entry, arrival->envelope, err)) {
        return false;
    }
    return !step.decision.start ||
           attempt_prepare(engine, route, &entry, arrival->envelope, err);
}

static bool is_stopped(struct engine *engine, struct route *route)
{
    uint64_t bytes = store_dead_bytes(engine->store, route->number);
    uint64_t max = route->conf.max_dead_bytes;
    /* Letters that hold an ordering key are not dropped, nor the newest. */
    bool stopped = route->conf.on_dead_full == DEAD_FULL_STOP_ROUTE
                       ? bytes >= max
                       : bytes / 2 > max;
    struct log_line line;

    if (stopped != route->told_stopped &&
        log_begin(&line, LOG_WARN, "engine",
                  stopped ? "dead letters are full: new events are refused"
                          : "dead letters have room again")) {
        log_str(&line, "route", slice_of(route->conf.name));
        log_end(&line);
    }
    route->told_stopped = stopped;
    return stopped;
}

/* What keeps a delivery with a new event out; DELIVERY_ACCEPTED: nothing. */
static enum delivery_answer closed_door(struct engine *engine,
                                        struct route *route)
{
    if (engine->batch.full) {
        return DELIVERY_NO_ROOM;
    }
    return is_stopped(engine, route) ? DELIVERY_STOPPED_ROUTE
                                     : DELIVERY_ACCEPTED;
}

/* All events of a delivery are taken, or none: a door that is closed for one
 * of its new events is closed for the delivery. */
static bool check_doors(struct engine *engine, struct delivery *delivery,
                        struct err *err)
{
    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        const struct arrival *arrival = &delivery->arrivals[i];
        struct route *route = &engine->routes[arrival->route];
        enum delivery_answer door = closed_door(engine, route);
        struct store_entry entry;

        if (door == DELIVERY_ACCEPTED) {
            continue;
        }
        switch (store_find(engine->store, route->namespace, arrival->tenant,
                           arrival->id, &entry, err)) {
        case STORE_FAILED:
            return false;
        case STORE_FOUND:
            continue;
        case STORE_ABSENT:
            MARK(door_closed);
            if (door == DELIVERY_STOPPED_ROUTE) {
                MARK(route_stopped);
            }
            delivery->result = door;
            delivery->retry_after_s =
                door == DELIVERY_NO_ROOM ? FULL_RETRY_S : STOPPED_ROUTE_RETRY_S;
            return true;
        }
    }
    return true;
}

static enum delivery_answer whole_answer(const struct delivery *delivery)
{
    enum delivery_answer whole = DELIVERY_DUPLICATE;

    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        enum answer_kind answer = delivery->arrivals[i].answer;

        if (answer == ANSWER_MISMATCH) {
            return DELIVERY_MISMATCH;
        }
        if (answer == ANSWER_ACCEPTED || answer == ANSWER_DEAD) {
            whole = DELIVERY_ACCEPTED;
        }
    }
    return whole;
}

bool arrive_apply(struct engine *engine, struct delivery *delivery,
                  struct err *err)
{
    delivery->result = DELIVERY_ACCEPTED;
    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        delivery->arrivals[i].repeated = false;
    }
    if (!check_doors(engine, delivery, err)) {
        return false;
    }
    if (delivery->result != DELIVERY_ACCEPTED) {
        return true;
    }
    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        if (!apply_arrival(engine, &delivery->arrivals[i], err)) {
            return false;
        }
    }
    delivery->result = whole_answer(delivery);
    return true;
}
