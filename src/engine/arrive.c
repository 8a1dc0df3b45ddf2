/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mark.h"
#include "engine/internal.h"
#include "engine/partition.h"

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

/* A new id from before what is remembered may have been handled and
 * forgotten; one that is known to be forgotten, and that was settled after
 * the event happened, was. */
static bool is_too_old(const struct engine *engine,
                       const struct arrival *arrival,
                       const struct store_entry *entry)
{
    int64_t ms = arrival->event_wall_ms;

    return entry->record.state == RECORD_NONE && ms > 0 &&
           (ms < store_forgotten_until_ms(engine->store) ||
            (entry->expired_seq != 0 && ms <= entry->expired_ms));
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

/* Where the event comes from, as far as it is new, and that the offset waits
 * for it. */
static void place(struct engine *engine, const struct arrival *arrival,
                  struct partition_state *partition, struct store_entry *entry)
{
    if (entry->record.state == RECORD_NONE ||
        record_is_settled(&entry->record)) {
        entry->position = (struct store_position){
            .stream = partition->stream,
            .partition = partition->assignment->number,
            .offset = arrival->offset,
        };
    }
    partition_wait(engine, partition, &entry->identity, arrival->offset);
}

static void fill_answer(struct arrival *arrival, const struct event_step *step)
{
    const struct decision *decision = &step->decision;
    const struct store_entry *entry = step->entry;

    arrival->answer = decision->answer;
    arrival->state = entry->record.state;
    arrival->repeated = decision->counted;
    arrival->drifted = decision->move == MOVE_DRIFTED;
    memcpy(arrival->identity, entry->identity.hash, sizeof arrival->identity);
}

/* `partition` NULL: from a sender that is answered. */
static bool apply_arrival(struct engine *engine, struct arrival *arrival,
                          struct partition_state *partition, struct err *err)
{
    struct route *route = &engine->routes[arrival->route];
    struct store_entry entry;
    struct event_step step = {.route = route, .entry = &entry};

    CHECK(arrival->route < engine->n_routes);
    if (store_find(engine->store, route->namespace, arrival->tenant,
                   arrival->id, &entry, err) == STORE_FAILED) {
        return false;
    }
    step.detail = arrival->why;
    step.input = arrival_input(engine, arrival, route);
    step.input.pins = partition != NULL;
    if (is_too_old(engine, arrival, &entry)) {
        MARK(arrival_too_old);
        step.input.kind = INPUT_UNUSABLE;
        step.input.reason = REASON_TOO_OLD;
        step.detail = "older than the ids that are remembered";
    }
    if (partition != NULL) {
        place(engine, arrival, partition, &entry);
    }
    if (!event_order_blocked(engine, step.input.order_key, &entry,
                             &step.input.order_blocked, err) ||
        !event_step(engine, &step, err)) {
        return false;
    }
    if (partition != NULL && record_is_settled(&entry.record)) {
        partition_settle(engine, &entry.identity);
    }
    fill_answer(arrival, &step);
    if (step.decision.take_envelope &&
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

/* Arrivals of one message, from `i` on. */
static size_t count_events(const struct delivery *delivery, size_t i)
{
    size_t n = 1;

    while (i + n < delivery->n_arrivals &&
           delivery->arrivals[i + n].offset == delivery->arrivals[i].offset) {
        n++;
    }
    return n;
}

static void answer_repeat(struct arrival *arrivals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        arrivals[i].answer = ANSWER_DUPLICATE;
        arrivals[i].drifted = false;
    }
}

static bool apply_message(struct engine *engine,
                          struct partition_state *partition,
                          struct arrival *arrivals, uint16_t n, struct err *err)
{
    int64_t offset = arrivals->offset;

    if (!tracker_receive(partition->tracker, offset, n, engine->batch.now_ms)) {
        answer_repeat(arrivals, n);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (!apply_arrival(engine, &arrivals[i], partition, err)) {
            return false;
        }
    }
    return partition_pass_awaited(engine, partition, offset, err);
}

static bool apply_messages(struct engine *engine, struct delivery *delivery,
                           struct err *err)
{
    struct partition_state *partition = delivery->assignment->partition;
    size_t i = 0;

    while (i < delivery->n_arrivals) {
        struct arrival *arrivals = &delivery->arrivals[i];
        size_t n = count_events(delivery, i);

        CHECK(n <= UINT16_MAX);
        if (!apply_message(engine, partition, arrivals, (uint16_t)n, err)) {
            return false;
        }
        i += n;
    }
    return true;
}

static bool apply_all(struct engine *engine, struct delivery *delivery,
                      struct err *err)
{
    if (delivery->assignment != NULL) {
        return apply_messages(engine, delivery, err);
    }
    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        if (!apply_arrival(engine, &delivery->arrivals[i], NULL, err)) {
            return false;
        }
    }
    return true;
}

static bool is_fenced(const struct delivery *delivery)
{
    const struct assignment *assignment = delivery->assignment;

    return assignment != NULL &&
           (assignment->partition == NULL || assignment->partition->is_closing);
}

bool arrive_apply(struct engine *engine, struct delivery *delivery,
                  struct err *err)
{
    delivery->result = DELIVERY_ACCEPTED;
    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        delivery->arrivals[i].repeated = false;
    }
    if (delivery->assignment != NULL && engine->batch.waits_for_room) {
        /* An order that ends its assignment may wait, too. */
        delivery->result = DELIVERY_NO_ROOM;
        delivery->retry_after_s = NO_ROOM_RETRY_MS / 1000;
        return true;
    }
    if (is_fenced(delivery)) {
        MARK(delivery_fenced);
        delivery->result = DELIVERY_FENCED;
        return true;
    }
    if (!check_doors(engine, delivery, err)) {
        return false;
    }
    if (delivery->result != DELIVERY_ACCEPTED) {
        return true;
    }
    if (!apply_all(engine, delivery, err)) {
        return false;
    }
    delivery->result = whole_answer(delivery);
    return true;
}
