/* SPDX-License-Identifier: MIT */
#include "handler/kafka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mark.h"
#include "handler/kafka_request.h"

struct kafka_handler {
    struct kafka_producer *producer;
    struct kafka_topic *topic;
    char *topic_name;
    enum kafka_key key;
};

struct flight {
    struct kafka_send send; /* first */
    struct kafka_handler *handler;
    struct attempt *attempt;
    struct buf headers;
    int64_t began_boot_ms;
};

/* --- what a report means -------------------------------------------------- */

/* The statuses are those of HTTP, of which core/outcome.h knows what they
 * prove: 403, 404, 413 and 415 are a matter of set-up, 422 is about this
 * event. */
static int status_of(rd_kafka_resp_err_t error)
{
    static const struct {
        rd_kafka_resp_err_t error;
        int status;
    } table[] = {
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 403},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, 403},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, 404},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, 404},
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, 404},
        {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, 404},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 413},
        {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, 413},
        {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, 413},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, 415},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].error == error) {
            return table[i].status;
        }
    }
    return 422;
}

enum attempt_end kafka_attempt_end(enum kafka_sent sent,
                                   rd_kafka_resp_err_t error, int *status)
{
    *status = 0;
    switch (sent) {
    case KAFKA_SENT:
        *status = 200;
        return END_STATUS;
    case KAFKA_REFUSED:
        *status = status_of(error);
        return END_STATUS;
    case KAFKA_NOT_SENT:
        return END_UNREACHED;
    case KAFKA_MAYBE_SENT:
        return error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT ||
                       error == RD_KAFKA_RESP_ERR__TIMED_OUT
                   ? END_TIMEOUT
                   : END_BROKEN;
    }
    UNREACHABLE("every report returns");
}

/* {"topic":"t","partition":0,"offset":1}; topics' names need no escapes. */
static void set_result(const struct flight *flight, struct buf *out)
{
    struct buf headers = BUF_INIT;
    struct buf body = BUF_INIT;
    struct result result = {.status = 200, .headers.count = 1};

    buf_add_str(&body, "{\"topic\":\"");
    buf_add_str(&body, flight->handler->topic_name);
    buf_printf(&body, "\",\"partition\":%" PRId32, flight->send.partition);
    if (flight->send.offset >= 0) {
        buf_printf(&body, ",\"offset\":%" PRId64 "}", flight->send.offset);
    } else {
        buf_add_str(&body, ",\"offset\":null}");
    }
    headers_add(&headers, SLICE("Content-Type"), SLICE("application/json"));
    result.headers.flat = buf_slice(&headers);
    result.body = buf_slice(&body);
    result_encode(&result, out);
    buf_free(&headers);
    buf_free(&body);
}

static void set_text(const struct flight *flight, struct attempt *attempt)
{
    const struct kafka_send *send = &flight->send;
    int len;

    if (send->sent == KAFKA_SENT) {
        len = snprintf(attempt->text, sizeof attempt->text,
                       "written to partition %" PRId32 ", offset %" PRId64,
                       send->partition, send->offset);
    } else {
        len = snprintf(attempt->text, sizeof attempt->text, "kafka: %s",
                       rd_kafka_err2str(send->error));
        CHECK(len > 0);
        len = snprintf(attempt->code, sizeof attempt->code, "%s",
                       rd_kafka_err2name(send->error));
    }
    CHECK(len > 0);
}

/* --- one attempt ---------------------------------------------------------- */

static void build(struct kafka_send *send)
{
    struct flight *flight = (struct flight *)send;

    kafka_request_build(flight->attempt, flight->handler->key, &flight->headers,
                        &send->message);
    MARK(request_before_send);
}

static void done(struct kafka_send *send)
{
    struct flight *flight = (struct flight *)send;
    struct attempt *attempt = flight->attempt;

    attempt->end = kafka_attempt_end(send->sent, send->error, &attempt->status);
    attempt->retry_after_ms = -1;
    attempt->code[0] = '\0';
    attempt->took_ms = clock_boot_ms(clock_system()) - flight->began_boot_ms;
    set_text(flight, attempt);
    if (send->sent == KAFKA_SENT) {
        set_result(flight, &attempt->result);
    }
    buf_free(&flight->headers);
    free(flight);
    MARK(request_answered);
    attempt_finish(attempt);
}

/* --- the port ------------------------------------------------------------ */

static void kafka_start(void *self, struct attempt *attempt)
{
    struct kafka_handler *handler = self;
    struct flight *flight = mem_new(1, sizeof *flight);

    flight->handler = handler;
    flight->attempt = attempt;
    flight->began_boot_ms = clock_boot_ms(clock_system());
    flight->send.topic = handler->topic;
    flight->send.build = build;
    flight->send.done = done;
    kafka_producer_send(handler->producer, &flight->send);
}

static void kafka_stop(void *self)
{
    struct kafka_handler *handler = self;

    kafka_producer_stop(handler->producer);
}

static void kafka_free(void *self)
{
    struct kafka_handler *handler = self;

    free(handler->topic_name);
    free(handler);
}

static const struct handler_ops ops = {
    .start = kafka_start,
    .stop = kafka_stop,
    .free = kafka_free,
};

bool kafka_handler_new(struct handler *out,
                       const struct kafka_handler_options *options,
                       struct err *err)
{
    struct kafka_handler *handler = mem_new(1, sizeof *handler);

    handler->producer = options->producer;
    handler->topic_name = mem_strdup(options->topic);
    handler->key = options->key;
    if (!kafka_producer_topic(options->producer, options->topic,
                              options->timeout_ms, &handler->topic, err)) {
        kafka_free(handler);
        return false;
    }
    *out = (struct handler){&ops, handler};
    return true;
}
