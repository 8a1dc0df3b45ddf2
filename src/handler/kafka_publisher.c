/* SPDX-License-Identifier: MIT */
#include "handler/kafka_publisher.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "handler/kafka_request.h"
#include "kafka/dead_letter.h"
#include "kafka/dead_letter_names.h"

enum { TIMEOUT_MS = 30 * 1000 };

struct kafka_publisher {
    struct kafka_producer *producer;
    struct kafka_topic *topic;
    struct kafka_dead_letter_form form;
    char *group;
};

struct flight {
    struct kafka_send send; /* first */
    struct kafka_publisher *publisher;
    struct dead_letter *letter;
    struct buf original; /* headers of a webhook, what may not go left out */
    struct buf headers;
};

/* --- one letter ----------------------------------------------------------- */

static void leave_out(const struct headers *all, struct buf *flat,
                      struct headers *out)
{
    struct header header;

    out->count = 0;
    for (size_t at = 0; headers_next(all, &at, &header);) {
        if (kafka_request_is_passed_on(all, header.name) ||
            slice_eq(header.name, SLICE(DEAD_LETTER_REPLAYS))) {
            headers_add(flat, header.name, header.value);
            out->count++;
        }
    }
    out->flat = buf_slice(flat);
}

static void build(struct kafka_send *send)
{
    struct flight *flight = (struct flight *)send;
    const struct dead_letter *from = flight->letter;
    struct kafka_dead_letter letter = {
        .route = slice_of(from->route),
        .tenant = from->tenant,
        .id = from->id,
        .idempotency_key = slice_of(from->idempotency_key),
        .reason = slice_of(reason_name(from->reason)),
        .code = slice_of(from->code),
        .why = slice_of(from->why),
        .run = from->run,
        .attempts = from->attempts,
        .deliveries = from->deliveries,
        .first_seen_ms = from->first_seen_ms,
        .died_ms = from->died_ms,
        .has_original = from->has_envelope,
        .original = from->envelope,
    };

    if (from->has_envelope && from->envelope.kind == ENVELOPE_HTTP) {
        leave_out(&from->envelope.headers, &flight->original,
                  &letter.original.headers);
    }
    kafka_dead_letter_write(&letter, &flight->publisher->form, &flight->headers,
                            &send->message);
}

static void done(struct kafka_send *send)
{
    struct flight *flight = (struct flight *)send;
    struct dead_letter *letter = flight->letter;
    int len;

    letter->published = send->sent == KAFKA_SENT;
    letter->text[0] = '\0';
    if (!letter->published) {
        len = snprintf(letter->text, sizeof letter->text, "kafka: %s",
                       rd_kafka_err2str(send->error));
        CHECK(len > 0);
    }
    buf_free(&flight->original);
    buf_free(&flight->headers);
    free(flight);
    dead_letter_finish(letter);
}

/* --- the port ------------------------------------------------------------ */

static void kafka_publish(void *self, struct dead_letter *letter)
{
    struct kafka_publisher *publisher = self;
    struct flight *flight = mem_new(1, sizeof *flight);

    flight->publisher = publisher;
    flight->letter = letter;
    flight->send.topic = publisher->topic;
    flight->send.build = build;
    flight->send.done = done;
    kafka_producer_send(publisher->producer, &flight->send);
}

static void kafka_stop(void *self)
{
    struct kafka_publisher *publisher = self;

    kafka_producer_stop(publisher->producer);
}

static void kafka_free(void *self)
{
    struct kafka_publisher *publisher = self;

    free(publisher->group);
    free(publisher);
}

static const struct publisher_ops ops = {
    .publish = kafka_publish,
    .stop = kafka_stop,
    .free = kafka_free,
};

bool kafka_publisher_new(struct publisher *out,
                         const struct kafka_publisher_options *options,
                         struct err *err)
{
    struct kafka_publisher *publisher = mem_new(1, sizeof *publisher);

    publisher->producer = options->producer;
    publisher->group = mem_dup(slice_of(options->group));
    publisher->form = (struct kafka_dead_letter_form){
        .want_connect = options->want_connect,
        .want_spring = options->want_spring,
        .group = slice_of(publisher->group),
        .max_bytes = kafka_producer_max_bytes(options->producer),
    };
    if (!kafka_producer_topic(options->producer, options->topic, TIMEOUT_MS,
                              &publisher->topic, err)) {
        kafka_free(publisher);
        return false;
    }
    *out = (struct publisher){&ops, publisher};
    return true;
}
