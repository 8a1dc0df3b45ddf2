/* SPDX-License-Identifier: MIT */
#include "source/kafka_delivery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/text.h"
#include "kafka/message.h"
#include "source/event.h"
#include "source/kafka_loop.h"

enum { ID_TOPIC_MAX = 200 };

const char *const kafka_source_outcomes[] = {
    "accepted",      "duplicate", "conflict", "undecodable", "no-room",
    "stopped-route", "fenced",    "repeated", NULL,
};
static_assert(sizeof kafka_source_outcomes / sizeof(char *) ==
                  KAFKA_OUTCOMES + 1,
              "one name per outcome");

static void count(const struct kafka_source *source, size_t engine_route,
                  enum kafka_outcome outcome, uint64_t n)
{
    metric_add(METRIC_DELIVERIES, engine_route,
               source->options.outcomes[outcome], n);
}

/* --- one event ------------------------------------------------------------ */

/* The bytes move while they grow, so that a slice holds its place in them for
 * its data until all are there. */
static struct slice place(const struct buf *bytes, size_t start)
{
    return (struct slice){(const char *)(uintptr_t)start, bytes->len - start};
}

static void settle_place(const struct buf *bytes, struct slice *slice)
{
    slice->data = bytes->data + (uintptr_t)slice->data;
}

/* Under this id what has no usable one of its own is kept. */
static struct slice put_position(struct buf *bytes,
                                 const struct envelope *envelope)
{
    size_t start = bytes->len;
    uint8_t digest[SHA256_SIZE];

    if (envelope->topic.len <= ID_TOPIC_MAX) {
        buf_add_slice(bytes, envelope->topic);
    } else {
        hash_sha256(envelope->topic, digest);
        text_hex((struct slice){(const char *)digest, sizeof digest}, bytes);
    }
    buf_printf(bytes, "/%" PRId32 "/%" PRId64, envelope->partition,
               envelope->offset);
    if (envelope->incarnation > 0) {
        buf_printf(bytes, "~%" PRIu32, envelope->incarnation);
    }
    return place(bytes, start);
}

static bool put_value(const struct value *value,
                      const struct envelope *envelope, struct buf *bytes,
                      struct slice *out, const char **why)
{
    size_t start = bytes->len;

    if (!event_read_name(value, envelope, bytes, why)) {
        return false;
    }
    *out = place(bytes, start);
    return true;
}

/* An event without a value for the order is in none; where it cannot be read
 * the event is not run, since its order was promised. */
static bool read_event(const struct kafka_route *route,
                       const struct envelope *envelope, struct buf *bytes,
                       struct arrival *arrival)
{
    if (!put_value(&route->id, envelope, bytes, &arrival->id, &arrival->why)) {
        return false;
    }
    if (route->tenant.n_choices > 0 &&
        !put_value(&route->tenant, envelope, bytes, &arrival->tenant,
                   &arrival->why)) {
        return false;
    }
    return event_read_order(&route->order_by, envelope, bytes,
                            &arrival->order_key, &arrival->why);
}

static void fill_arrival(const struct kafka_route *route,
                         const struct envelope *envelope, struct buf *bytes,
                         struct arrival *arrival)
{
    arrival->route = route->engine_route;
    arrival->offset = envelope->offset;
    arrival->event_wall_ms =
        envelope->timestamp_ms > 0 ? envelope->timestamp_ms : 0;
    if (read_event(route, envelope, bytes, arrival)) {
        arrival->why = NULL;
        return;
    }
    arrival->unusable = REASON_UNDECODABLE;
    arrival->order_key = 0;
    arrival->tenant = (struct slice){NULL, 0};
    arrival->id = put_position(bytes, envelope);
}

/* --- a delivery ----------------------------------------------------------- */

static struct kafka_delivery *reuse(struct kafka_partition *partition)
{
    struct kafka_delivery *delivery = partition->delivery;

    if (delivery == NULL) {
        delivery = mem_new(1, sizeof *delivery);
        delivery->partition = partition;
        partition->delivery = delivery;
    }
    buf_clear(&delivery->bytes);
    delivery->n_messages = 0;
    delivery->delivery.n_arrivals = 0;
    return delivery;
}

static void reserve_arrivals(struct kafka_delivery *delivery, size_t n)
{
    if (n > delivery->room_arrivals) {
        delivery->delivery.arrivals =
            mem_grow(delivery->delivery.arrivals, n, sizeof(struct arrival));
        delivery->room_arrivals = n;
    }
}

/* One message: an arrival for each route, and one envelope for all. */
static void add_message(struct kafka_delivery *delivery,
                        const rd_kafka_message_t *message,
                        int64_t received_wall_ms)
{
    struct kafka_partition *partition = delivery->partition;
    const struct kafka_feed *feed = partition->feed;
    struct delivery *port = &delivery->delivery;
    struct envelope envelope;
    struct fingerprint fingerprint;
    struct slice flat;
    size_t start = delivery->bytes.len;

    kafka_message_open(message, received_wall_ms, &partition->source->headers,
                       &envelope);
    envelope.incarnation = partition->open.incarnation;
    envelope_encode(&envelope, &delivery->bytes);
    flat = place(&delivery->bytes, start);
    event_fingerprint(envelope.body, &fingerprint);
    for (size_t i = 0; i < feed->n_routes; i++) {
        struct arrival *arrival = &port->arrivals[port->n_arrivals++];

        *arrival =
            (struct arrival){.envelope = flat, .fingerprint = fingerprint};
        fill_arrival(feed->routes[i], &envelope, &delivery->bytes, arrival);
    }
    delivery->n_messages++;
}

static void settle_places(struct kafka_delivery *delivery)
{
    for (size_t i = 0; i < delivery->delivery.n_arrivals; i++) {
        struct arrival *arrival = &delivery->delivery.arrivals[i];

        settle_place(&delivery->bytes, &arrival->envelope);
        settle_place(&delivery->bytes, &arrival->id);
        settle_place(&delivery->bytes, &arrival->tenant);
    }
}

/* --- what was taken ------------------------------------------------------- */

static void tell_error(const struct kafka_partition *partition,
                       const rd_kafka_message_t *message)
{
    struct log_line line;

    if (log_begin(&line, LOG_ERROR, "kafka", "partition cannot be read")) {
        log_str(&line, "topic", slice_of(partition->feed->topic));
        log_int(&line, "partition", partition->assignment.number);
        log_int(&line, "offset", message->offset);
        log_str(&line, "err", slice_of(rd_kafka_message_errstr(message)));
        log_end(&line);
    }
}

/* It comes a second time within the assignment. Where the log still reaches
 * behind what was taken, the library repeats itself, which is harmless; else
 * the log was cut or made anew, and these are other messages. */
static void drop_repeat(struct kafka_partition *partition)
{
    struct kafka_source *source = partition->source;
    int64_t low = -1;
    int64_t high = -1;

    (void)rd_kafka_get_watermark_offsets(source->client, partition->feed->topic,
                                         partition->assignment.number, &low,
                                         &high);
    if (high >= 0 && high <= partition->highest) {
        source->rejoin_why = "the log of a partition was cut, or made anew";
        return;
    }
    atomic_fetch_add(&source->tally.repeated, 1);
    for (size_t i = 0; i < partition->feed->n_routes; i++) {
        count(source, partition->feed->routes[i]->engine_route, KAFKA_REPEATED,
              1);
    }
}

static bool has_taken(const struct kafka_partition *partition)
{
    return partition->taken_at < partition->n_taken;
}

static void take_message(struct kafka_delivery *delivery,
                         rd_kafka_message_t *message, int64_t received_wall_ms)
{
    struct kafka_partition *partition = delivery->partition;

    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        tell_error(partition, message);
    } else if (message->offset <= partition->highest) {
        drop_repeat(partition);
    } else {
        add_message(delivery, message, received_wall_ms);
        partition->highest = message->offset;
    }
}

bool kafka_delivery_build(struct kafka_partition *partition,
                          size_t max_messages)
{
    struct kafka_delivery *delivery = reuse(partition);
    struct delivery *port = &delivery->delivery;
    int64_t now_wall_ms = clock_wall_ms(partition->source->options.clock);

    reserve_arrivals(delivery, max_messages * partition->feed->n_routes);
    while (has_taken(partition) && delivery->n_messages < max_messages &&
           delivery->bytes.len < KAFKA_DELIVERY_BYTES) {
        rd_kafka_message_t *message = partition->taken[partition->taken_at++];

        take_message(delivery, message, now_wall_ms);
        rd_kafka_message_destroy(message);
    }
    settle_places(delivery);
    port->assignment = &partition->assignment;
    port->retry_after_s = 0;
    port->answer = kafka_loop_answered;
    port->item.cost_bytes = sizeof *delivery + delivery->bytes.len +
                            port->n_arrivals * sizeof *port->arrivals;
    return port->n_arrivals > 0;
}

/* --- the answer ----------------------------------------------------------- */

static enum kafka_outcome outcome_for(const struct delivery *delivery,
                                      const struct arrival *arrival)
{
    if (arrival->unusable != REASON_NONE) {
        return KAFKA_UNDECODABLE;
    }
    if (arrival->answer == ANSWER_MISMATCH) {
        return KAFKA_CONFLICT;
    }
    return delivery->result == DELIVERY_DUPLICATE ||
                   arrival->answer == ANSWER_DUPLICATE
               ? KAFKA_DUPLICATE
               : KAFKA_ACCEPTED;
}

static void count_all(const struct kafka_partition *partition,
                      const enum kafka_outcome *outcome)
{
    const struct delivery *delivery = &partition->delivery->delivery;

    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        const struct arrival *arrival = &delivery->arrivals[i];

        count(partition->source, arrival->route,
              outcome != NULL ? *outcome : outcome_for(delivery, arrival), 1);
    }
}

static void tell_no_room(const struct kafka_partition *partition,
                         enum kafka_outcome outcome)
{
    const struct delivery *delivery = &partition->delivery->delivery;
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "kafka", "delivery waits for room")) {
        log_str(&line, "topic", slice_of(partition->feed->topic));
        log_int(&line, "partition", partition->assignment.number);
        log_int(&line, "offset", delivery->arrivals[0].offset);
        log_str(&line, "why", slice_of(kafka_source_outcomes[outcome]));
        log_int(&line, "retry_after_s", delivery->retry_after_s);
        log_end(&line);
    }
}

bool kafka_delivery_settle(struct kafka_partition *partition)
{
    static const enum kafka_outcome no_room = KAFKA_NO_ROOM;
    static const enum kafka_outcome stopped_route = KAFKA_STOPPED_ROUTE;
    static const enum kafka_outcome fenced = KAFKA_FENCED;

    switch (partition->delivery->delivery.result) {
    case DELIVERY_ACCEPTED:
    case DELIVERY_DUPLICATE:
    case DELIVERY_MISMATCH:
        count_all(partition, NULL);
        return true;
    case DELIVERY_NO_ROOM:
        tell_no_room(partition, no_room);
        count_all(partition, &no_room);
        return false;
    case DELIVERY_STOPPED_ROUTE:
        tell_no_room(partition, stopped_route);
        count_all(partition, &stopped_route);
        return false;
    case DELIVERY_FENCED:
        count_all(partition, &fenced);
        return true;
    }
    UNREACHABLE("every result has returned");
}

void kafka_delivery_free(struct kafka_delivery **taken)
{
    struct kafka_delivery *delivery = *taken;

    if (delivery == NULL) {
        return;
    }
    *taken = NULL;
    buf_free(&delivery->bytes);
    free(delivery->delivery.arrivals);
    free(delivery);
}
