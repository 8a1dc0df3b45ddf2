/* SPDX-License-Identifier: MIT */
#include "handler/kafka.h"

#include <criterion/criterion.h>

#include "handler/kafka_publisher.h"
#include "handler/kafka_request.h"
#include "kafka/dead_letter.h"
#include "kafka/message.h"
#include "support/attempts.h"
#include "support/kafka_mock.h"

/* --- what an end means ---------------------------------------------------- */

/* DESIGN: delivery report = SUCCEEDED, queue full or no broker = transient,
 * timed out = uncertain, too large or refused by the topic = DEAD(refused). */
Test(kafka_handler, an_end_means_what_the_table_says)
{
    static const struct outcome_rules rules = {.respond = RESPOND_ACCEPTED};
    static const struct {
        enum kafka_sent sent;
        rd_kafka_resp_err_t error;
        enum attempt_end end;
        int status;
        enum outcome outcome;
    } rows[] = {
        {KAFKA_SENT, RD_KAFKA_RESP_ERR_NO_ERROR, END_STATUS, 200,
         OUTCOME_SUCCESS},
        {KAFKA_NOT_SENT, RD_KAFKA_RESP_ERR__QUEUE_FULL, END_UNREACHED, 0,
         OUTCOME_UNREACHED},
        {KAFKA_NOT_SENT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, END_UNREACHED, 0,
         OUTCOME_UNREACHED},
        {KAFKA_MAYBE_SENT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, END_TIMEOUT, 0,
         OUTCOME_UNKNOWN},
        {KAFKA_MAYBE_SENT, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, END_BROKEN, 0,
         OUTCOME_UNKNOWN},
        {KAFKA_REFUSED, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, END_STATUS, 413,
         OUTCOME_REFUSED},
        {KAFKA_REFUSED, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
         END_STATUS, 403, OUTCOME_REFUSED},
        {KAFKA_REFUSED, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, END_STATUS, 404,
         OUTCOME_REFUSED},
        {KAFKA_REFUSED, RD_KAFKA_RESP_ERR_INVALID_RECORD, END_STATUS, 422,
         OUTCOME_REJECTED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status;
        enum attempt_end end =
            kafka_attempt_end(rows[i].sent, rows[i].error, &status);
        cr_expect_eq(end, rows[i].end, "row %zu", i);
        cr_expect_eq(status, rows[i].status, "row %zu", i);
        cr_expect_eq(outcome_of(&rules, end, status), rows[i].outcome,
                     "row %zu", i);
    }
}

/* --- the message ---------------------------------------------------------- */

static bool has_header(const struct headers *headers, const char *name,
                       const char *value)
{
    struct header header;
    for (size_t at = 0; headers_next(headers, &at, &header);)
        if (slice_eq(header.name, slice_of(name)))
            return slice_eq(header.value, slice_of(value));
    return false;
}

Test(kafka_handler, a_webhook_becomes_a_message)
{
    struct test_attempt *t = attempt_new("{\"a\":1}");
    struct buf headers = BUF_INIT;
    struct envelope message;
    t->attempt.envelope.received_wall_ms = 1700000000123;
    t->attempt.tenant = SLICE("acme");
    attempt_header(t, "Host", "example.org");
    attempt_header(t, "Content-Type", "application/json");
    attempt_header(t, "X-GitHub-Event", "push");
    attempt_header(t, "Authorization", "Bearer s");
    attempt_header(t, "X-Hub-Signature-256", "sha256=0");
    attempt_header(t, "Cookie", "c=1");
    attempt_header(t, "Connection", "x-hop");
    attempt_header(t, "X-Hop", "1");
    attempt_header(t, "Onced-Attempt", "9");
    attempt_header(t, "TraceParent", "00-1-2-01");
    kafka_request_build(&t->attempt, KAFKA_KEY_ID, &headers, &message);
    cr_assert(message.has_key && slice_eq(message.key, SLICE("evt-1")));
    cr_assert(slice_eq(message.body, SLICE("{\"a\":1}")));
    cr_assert_eq(message.timestamp_ms, 1700000000123);
    cr_assert_eq(message.headers.count, 8);
    cr_assert(has_header(&message.headers, "content-type", "application/json"));
    cr_assert(has_header(&message.headers, "traceparent", "00-1-2-01"));
    cr_assert(
        has_header(&message.headers, "http-header-x-github-event", "push"));
    cr_assert(has_header(&message.headers, "onced-route", "r"));
    cr_assert(has_header(&message.headers, "onced-event-id", "evt-1"));
    cr_assert(has_header(&message.headers, "onced-tenant", "acme"));
    cr_assert(has_header(&message.headers, "onced-attempt", "1"));
    cr_assert(has_header(&message.headers, "idempotency-key",
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"));
    kafka_request_build(&t->attempt, KAFKA_KEY_EVENT, &headers, &message);
    cr_assert_not(message.has_key);
    kafka_request_build(&t->attempt, KAFKA_KEY_NONE, &headers, &message);
    cr_assert_not(message.has_key);
    buf_free(&headers);
    attempt_free(t);
}

static void make_kafka(struct test_attempt *t)
{
    t->attempt.envelope = (struct envelope){
        .kind = ENVELOPE_KAFKA,
        .topic = SLICE("in"),
        .key = SLICE("\0\xff"),
        .has_key = true,
        .partition = 2,
        .offset = 7,
        .timestamp_ms = 1700000000000,
    };
}

Test(kafka_handler, a_message_keeps_its_headers_and_its_null)
{
    struct test_attempt *t = attempt_new("");
    struct buf headers = BUF_INIT, want = BUF_INIT;
    struct envelope message;
    make_kafka(t);
    headers_add(&t->headers, SLICE("a"), (struct slice){"\0\xff", 2});
    headers_add(&t->headers, SLICE("onced-route"), SLICE("old"));
    headers_add_null(&t->headers, SLICE("n"));
    headers_add(&t->headers, SLICE("a"), SLICE("2"));
    t->attempt.envelope.headers = (struct headers){buf_slice(&t->headers), 4};
    kafka_request_build(&t->attempt, KAFKA_KEY_EVENT, &headers, &message);
    cr_assert(message.has_key && slice_eq(message.key, SLICE("\0\xff")));
    cr_assert_not(message.has_body);
    cr_assert_eq(message.timestamp_ms, 1700000000000);
    headers_add(&want, SLICE("a"), (struct slice){"\0\xff", 2});
    headers_add_null(&want, SLICE("n"));
    headers_add(&want, SLICE("a"), SLICE("2"));
    headers_add(&want, SLICE("onced-route"), SLICE("r"));
    headers_add(&want, SLICE("onced-event-id"), SLICE("evt-1"));
    headers_add(&want, SLICE("onced-attempt"), SLICE("1"));
    headers_add(&want, SLICE("idempotency-key"),
                SLICE("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"));
    cr_assert(slice_eq(message.headers.flat, buf_slice(&want)));
    cr_assert_eq(message.headers.count, 7);
    buf_free(&headers);
    buf_free(&want);
    attempt_free(t);
}

/* --- on a broker ---------------------------------------------------------- */

static struct kafka_producer *producer_of(const struct kafka_mock *mock)
{
    const char *settings[][2] = {{"bootstrap.servers", mock->bootstrap}};
    struct kafka_cluster cluster = {"default",
                                    (const char *const(*)[2])settings, 1};
    struct kafka_producer *producer;
    struct err err;
    cr_assert(kafka_producer_new(&producer, &cluster, &err), "%s", err.text);
    return producer;
}

static struct handler handler_of(struct kafka_producer *producer,
                                 int64_t timeout_ms)
{
    struct kafka_handler_options options = {producer, "t", KAFKA_KEY_ID,
                                            timeout_ms};
    struct handler handler;
    struct err err;
    cr_assert(kafka_handler_new(&handler, &options, &err), "%s", err.text);
    return handler;
}

Test(kafka_handler, a_written_message_is_a_success_with_its_position)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(&mock);
    struct handler handler = handler_of(producer, 20000);
    struct test_attempt *t = attempt_new("hi");
    rd_kafka_t *reader = kafka_mock_reader(&mock, "t");
    rd_kafka_message_t *message;
    struct buf headers = BUF_INIT;
    struct envelope got;
    struct result result;
    struct slice type;
    cr_assert(attempt_run(&handler, t));
    cr_assert_eq(t->attempt.end, END_STATUS, "%s", t->attempt.text);
    cr_assert_eq(t->attempt.status, 200);
    cr_assert_str_eq(t->attempt.code, "");
    cr_assert(result_open(buf_slice(&t->attempt.result), &result));
    cr_assert_eq(result.status, 200);
    cr_assert(slice_eq(
        result.body, SLICE("{\"topic\":\"t\",\"partition\":0,\"offset\":0}")));
    cr_assert(headers_find(&result.headers, SLICE("content-type"), &type));
    cr_assert(slice_eq(type, SLICE("application/json")));
    message = kafka_mock_next(reader);
    cr_assert_not_null(message);
    kafka_message_open(message, 0, &headers, &got);
    cr_assert(slice_eq(got.key, SLICE("evt-1")));
    cr_assert(slice_eq(got.body, SLICE("hi")));
    cr_assert(has_header(&got.headers, "onced-route", "r"));
    rd_kafka_message_destroy(message);
    kafka_mock_reader_free(reader);
    handler.ops->stop(handler.self);
    handler.ops->free(handler.self);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
    buf_free(&headers);
    attempt_free(t);
}

Test(kafka_handler, a_refusal_has_a_code)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(&mock);
    struct handler handler = handler_of(producer, 20000);
    struct test_attempt *t = attempt_new("hi");
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    cr_assert(attempt_run(&handler, t));
    cr_assert_eq(t->attempt.end, END_STATUS);
    cr_assert_eq(t->attempt.status, 413);
    cr_assert_str_eq(t->attempt.code, "MSG_SIZE_TOO_LARGE");
    cr_assert_str_eq(t->attempt.text, "kafka: Broker: Message size too large");
    cr_assert_eq(t->attempt.result.len, 0);
    handler.ops->free(handler.self);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
    attempt_free(t);
}

Test(kafka_handler, no_broker_is_unreached_and_stop_ends_what_runs)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(&mock);
    struct handler handler = handler_of(producer, 200);
    struct test_attempt *t = attempt_new("hi");
    struct test_attempt *late = attempt_new("late");
    rd_kafka_mock_broker_set_down(mock.cluster, -1);
    cr_assert(attempt_run(&handler, t));
    cr_assert_eq(t->attempt.end, END_UNREACHED, "%s", t->attempt.text);
    handler.ops->start(handler.self, &late->attempt);
    handler.ops->stop(handler.self);
    cr_assert(late->is_finished);
    cr_assert_eq(late->attempt.end, END_UNREACHED);
    handler.ops->free(handler.self);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
    attempt_free(t);
    attempt_free(late);
}

Test(kafka_handler, a_topic_that_kafka_does_not_allow_is_an_error)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(&mock);
    struct kafka_handler_options options = {producer, "a b", KAFKA_KEY_ID, 1};
    struct kafka_publisher_options letters = {.producer = producer,
                                              .topic = ""};
    struct handler handler;
    struct publisher publisher;
    struct err err;
    cr_assert_not(kafka_handler_new(&handler, &options, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    cr_assert_not(kafka_publisher_new(&publisher, &letters, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

/* --- dead letters --------------------------------------------------------- */

static pthread_mutex_t letter_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t letter_changed = PTHREAD_COND_INITIALIZER;
static int n_letters;

void dead_letter_finish(struct dead_letter *letter)
{
    (void)letter;
    pthread_mutex_lock(&letter_lock);
    n_letters++;
    pthread_cond_broadcast(&letter_changed);
    pthread_mutex_unlock(&letter_lock);
}

static void publish(struct publisher *publisher, struct dead_letter *letter)
{
    int before = n_letters;
    publisher->ops->publish(publisher->self, letter);
    pthread_mutex_lock(&letter_lock);
    while (n_letters == before)
        pthread_cond_wait(&letter_changed, &letter_lock);
    pthread_mutex_unlock(&letter_lock);
}

Test(kafka_publisher, a_letter_is_published_and_read_back)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(&mock);
    struct kafka_publisher_options options = {producer, "t", true, true, "g"};
    struct test_attempt *t = attempt_new("hi");
    struct publisher publisher;
    struct dead_letter letter = {
        .route = "r",
        .id = SLICE("evt-1"),
        .reason = REASON_REFUSED,
        .code = "card-declined",
        .why = "status 403",
        .has_envelope = true,
    };
    struct kafka_dead_letter back;
    rd_kafka_t *reader = kafka_mock_reader(&mock, "t");
    rd_kafka_message_t *message;
    struct buf headers = BUF_INIT;
    struct envelope got;
    struct err err;
    attempt_header(t, "Authorization", "Bearer s");
    attempt_header(t, "X-Kept", "1");
    letter.envelope = t->attempt.envelope;
    letter.envelope.received_wall_ms = 1700000000123;
    cr_assert(kafka_publisher_new(&publisher, &options, &err), "%s", err.text);
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    publish(&publisher, &letter);
    cr_assert_not(letter.published);
    cr_assert_str_eq(letter.text, "kafka: Broker: Message size too large");
    publish(&publisher, &letter);
    cr_assert(letter.published, "%s", letter.text);
    cr_assert_str_eq(letter.text, "");
    message = kafka_mock_next(reader);
    cr_assert_not_null(message);
    kafka_message_open(message, 0, &headers, &got);
    cr_assert(slice_eq(got.key, SLICE("evt-1")));
    cr_assert_eq(got.timestamp_ms, 1700000000123);
    cr_assert(has_header(&got.headers, "onced-code", "card-declined"));
    cr_assert(has_header(&got.headers, "__connect.errors.connector.name", "r"));
    cr_assert(kafka_dead_letter_read(&got, &back));
    cr_assert(slice_eq(back.reason, SLICE("refused")));
    cr_assert(slice_eq(back.original.body, SLICE("hi")));
    cr_assert_eq(back.original.headers.count, 1);
    cr_assert(has_header(&back.original.headers, "X-Kept", "1"));
    kafka_dead_letter_free(&back);
    rd_kafka_message_destroy(message);
    kafka_mock_reader_free(reader);
    publisher.ops->stop(publisher.self);
    letter.published = true;
    publish(&publisher, &letter);
    cr_assert_not(letter.published);
    publisher.ops->free(publisher.self);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
    buf_free(&headers);
    attempt_free(t);
}
