/* SPDX-License-Identifier: MIT */
#include "kafka/producer.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "kafka/message.h"
#include "support/kafka_mock.h"

/* --- messages that are waited for ----------------------------------------- */

struct test_send {
    struct kafka_send send; /* first */
    struct envelope message;
    bool is_done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void build(struct kafka_send *send)
{
    send->message = ((struct test_send *)send)->message;
}

static void done(struct kafka_send *send)
{
    struct test_send *t = (struct test_send *)send;
    pthread_mutex_lock(&lock);
    cr_assert_not(t->is_done);
    t->is_done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static struct test_send text(struct kafka_topic *topic, const char *body)
{
    return (struct test_send){
        .send = {.topic = topic, .build = build, .done = done},
        .message = {
            .kind = ENVELOPE_KAFKA, .body = slice_of(body), .has_body = true}};
}

static void wait_for(struct test_send *t)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&lock);
    while (!t->is_done)
        cr_assert_eq(pthread_cond_timedwait(&changed, &lock, &until), 0);
    pthread_mutex_unlock(&lock);
}

static void run(struct kafka_producer *producer, struct test_send *t)
{
    kafka_producer_send(producer, &t->send);
    wait_for(t);
}

/* Sends until one arrives: the library itself refuses a topic for a while
 * after a broker did, and there is none between two clients. */
static bool comes_through(struct kafka_producer *producer,
                          struct kafka_topic *topic, struct test_send *t)
{
    for (int n = 0; n < 2000; n++) {
        *t = text(topic, "w");
        run(producer, t);
        if (t->send.sent == KAFKA_SENT)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    return false;
}

static struct kafka_producer *producer_of(const char *bootstrap,
                                          const char *name, const char *value)
{
    const char *settings[][2] = {{"bootstrap.servers", bootstrap},
                                 {name, value}};
    struct kafka_cluster cluster = {
        "default", (const char *const(*)[2])settings, name == NULL ? 1 : 2};
    struct kafka_producer *producer;
    struct err err;
    cr_assert(kafka_producer_new(&producer, &cluster, &err), "%s", err.text);
    return producer;
}

static struct kafka_topic *topic_of(struct kafka_producer *producer,
                                    const char *name, int64_t timeout_ms)
{
    struct kafka_topic *topic;
    struct err err;
    cr_assert(kafka_producer_topic(producer, name, timeout_ms, &topic, &err),
              "%s", err.text);
    return topic;
}

/* --- what is proved ------------------------------------------------------- */

Test(producer, a_report_proves_what_the_table_says)
{
    static const struct {
        rd_kafka_resp_err_t error;
        rd_kafka_msg_status_t status;
        enum kafka_sent sent;
    } rows[] = {
        {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_MSG_STATUS_PERSISTED, KAFKA_SENT},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
         KAFKA_NOT_SENT},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
         RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED, KAFKA_MAYBE_SENT},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
         KAFKA_NOT_SENT},
        {RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
         KAFKA_NOT_SENT},
        {RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED,
         KAFKA_MAYBE_SENT},
        {RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
         KAFKA_NOT_SENT},
        {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT,
         RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED, KAFKA_MAYBE_SENT},
        {RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
         KAFKA_NOT_SENT},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
         RD_KAFKA_MSG_STATUS_NOT_PERSISTED, KAFKA_REFUSED},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
         RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED, KAFKA_REFUSED},
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
         KAFKA_REFUSED},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD,
         RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED, KAFKA_REFUSED},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
         RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED, KAFKA_MAYBE_SENT},
        {RD_KAFKA_RESP_ERR_UNKNOWN, RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED,
         KAFKA_MAYBE_SENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(kafka_sent_of(rows[i].error, rows[i].status), rows[i].sent,
                     "%s", rd_kafka_err2name(rows[i].error));
}

/* --- on a broker ---------------------------------------------------------- */

Test(producer, a_message_arrives_as_it_was_given)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(mock.bootstrap, NULL, NULL);
    struct kafka_topic *topic = topic_of(producer, "t", 20000);
    struct buf headers = BUF_INIT, again = BUF_INIT;
    struct test_send full = text(topic, "va\nlue"), bare = text(topic, "");
    struct test_send null = text(topic, NULL);
    rd_kafka_t *reader = kafka_mock_reader(&mock, "t");
    rd_kafka_message_t *message;
    struct envelope got;
    headers_add(&headers, SLICE("b"), (struct slice){"\0\xff\x01", 3});
    headers_add_null(&headers, SLICE("n"));
    headers_add(&headers, SLICE("e"), SLICE(""));
    headers_add(&headers, SLICE("b"), SLICE("again"));
    full.message.headers = (struct headers){buf_slice(&headers), 4};
    full.message.timestamp_ms = 1700000000123;
    full.message.key = SLICE("k");
    full.message.has_key = true;
    bare.message.has_key = true;
    null.message.has_body = false;
    run(producer, &full);
    run(producer, &bare);
    run(producer, &null);
    cr_assert_eq(full.send.sent, KAFKA_SENT, "%s",
                 rd_kafka_err2name(full.send.error));
    cr_assert_eq(full.send.partition, 0);
    cr_assert_eq(full.send.offset, 0);
    cr_assert_eq(null.send.offset, 2);

    message = kafka_mock_next(reader);
    cr_assert_not_null(message);
    kafka_message_open(message, 42, &again, &got);
    cr_assert_eq(got.kind, ENVELOPE_KAFKA);
    cr_assert_eq(got.received_wall_ms, 42);
    cr_assert(slice_eq(got.topic, SLICE("t")));
    cr_assert(got.partition == 0 && got.offset == 0);
    cr_assert_eq(got.timestamp_ms, 1700000000123);
    cr_assert(got.has_key && slice_eq(got.key, SLICE("k")));
    cr_assert(got.has_body && slice_eq(got.body, SLICE("va\nlue")));
    cr_assert_eq(got.headers.count, 4);
    cr_assert(slice_eq(got.headers.flat, buf_slice(&headers)));
    rd_kafka_message_destroy(message);

    message = kafka_mock_next(reader);
    cr_assert_not_null(message);
    kafka_message_open(message, 0, &again, &got);
    cr_assert(got.has_key && got.key.len == 0);
    cr_assert(got.has_body && got.body.len == 0);
    cr_assert_eq(got.headers.count, 0);
    cr_assert_eq(got.offset, 1);
    cr_assert_gt(got.timestamp_ms, 1700000000123);
    rd_kafka_message_destroy(message);

    message = kafka_mock_next(reader);
    cr_assert_not_null(message);
    kafka_message_open(message, 0, &again, &got);
    cr_assert_not(got.has_key);
    cr_assert_not(got.has_body);
    rd_kafka_message_destroy(message);

    kafka_mock_reader_free(reader);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
    buf_free(&headers);
    buf_free(&again);
}

Test(producer, what_the_broker_refuses_is_refused)
{
    static const rd_kafka_resp_err_t errors[] = {
        RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_INVALID_RECORD,
    };
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(mock.bootstrap, NULL, NULL);
    struct kafka_topic *topic = topic_of(producer, "t", 20000);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct test_send t = text(topic, "v");
        struct test_send next;
        rd_kafka_mock_push_request_errors(mock.cluster, MOCK_PRODUCE, 1,
                                          errors[i]);
        run(producer, &t);
        cr_assert_eq(t.send.sent, KAFKA_REFUSED, "%s: %s",
                     rd_kafka_err2name(errors[i]),
                     rd_kafka_err2name(t.send.error));
        cr_assert_eq(t.send.error, errors[i]);
        cr_assert(comes_through(producer, topic, &next));
    }
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, a_topic_that_is_not_there_is_refused)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer =
        producer_of(mock.bootstrap, "topic.metadata.propagation.max.ms", "100");
    struct kafka_topic *topic = topic_of(producer, "absent", 20000);
    struct test_send t = text(topic, "v");
    rd_kafka_mock_topic_set_error(mock.cluster, "absent",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    run(producer, &t);
    cr_assert_eq(t.send.sent, KAFKA_REFUSED, "%s",
                 rd_kafka_err2name(t.send.error));
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, a_message_over_the_limit_is_refused_here)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer =
        producer_of(mock.bootstrap, "message.max.bytes", "2000");
    struct test_send t = text(topic_of(producer, "t", 20000), "");
    static char large[3000];
    cr_assert_eq(kafka_producer_max_bytes(producer), 2000);
    t.message.body = (struct slice){large, sizeof large};
    run(producer, &t);
    cr_assert_eq(t.send.sent, KAFKA_REFUSED);
    cr_assert_eq(t.send.error, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, with_no_broker_nothing_was_sent)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(mock.bootstrap, NULL, NULL);
    struct test_send t = text(topic_of(producer, "t", 300), "v");
    rd_kafka_mock_broker_set_down(mock.cluster, -1);
    run(producer, &t);
    cr_assert_eq(t.send.sent, KAFKA_NOT_SENT, "%s",
                 rd_kafka_err2name(t.send.error));
    cr_assert_eq(t.send.error, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, without_an_answer_it_may_have_been_sent)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(mock.bootstrap, NULL, NULL);
    struct kafka_topic *topic = topic_of(producer, "t", 1000);
    struct test_send first = text(topic, "v");
    struct test_send t = text(topic, "w");
    struct test_send after = text(topic, "x");
    run(producer, &first);
    cr_assert_eq(first.send.sent, KAFKA_SENT);
    rd_kafka_mock_broker_push_request_error_rtts(
        mock.cluster, 1, MOCK_PRODUCE, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 4000);
    run(producer, &t);
    cr_assert_eq(t.send.sent, KAFKA_MAYBE_SENT, "%s",
                 rd_kafka_err2name(t.send.error));
    after.send.topic = topic_of(producer, "t2", 20000);
    run(producer, &after);
    cr_assert_eq(after.send.sent, KAFKA_SENT, "%s",
                 rd_kafka_err2name(after.send.error));
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, a_lost_answer_is_asked_for_again_and_stands_once)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(mock.bootstrap, NULL, NULL);
    struct kafka_topic *topic = topic_of(producer, "t", 20000);
    struct test_send t = text(topic, "v"), after = text(topic, "w");
    rd_kafka_mock_push_request_errors(mock.cluster, MOCK_PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR__TRANSPORT);
    run(producer, &t);
    run(producer, &after);
    cr_assert_eq(t.send.sent, KAFKA_SENT, "%s",
                 rd_kafka_err2name(t.send.error));
    cr_assert_eq(after.send.offset, 1);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, after_a_fatal_error_another_one_goes_on)
{
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer;
    struct kafka_topic *topic;
    struct test_send t, after;
    rd_kafka_mock_push_request_errors(
        mock.cluster, MOCK_INIT_PRODUCER_ID, 1,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    producer = producer_of(mock.bootstrap, NULL, NULL);
    topic = topic_of(producer, "t", 20000);
    t = text(topic, "v");
    run(producer, &t);
    cr_assert_eq(t.send.sent, KAFKA_NOT_SENT, "%s",
                 rd_kafka_err2name(t.send.error));
    cr_assert(comes_through(producer, topic, &after));
    cr_assert_eq(after.send.offset, 0);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, stop_gives_up_all_that_is_under_way)
{
    enum { N = 100 };
    struct kafka_mock mock = kafka_mock_new();
    struct kafka_producer *producer = producer_of(mock.bootstrap, NULL, NULL);
    struct kafka_topic *topic = topic_of(producer, "t", 60000);
    static struct test_send sends[N];
    struct test_send late = text(topic, "late"), first = text(topic, "first");
    run(producer, &first);
    rd_kafka_mock_broker_set_rtt(mock.cluster, 1, 20000);
    for (size_t i = 0; i < N; i++) {
        sends[i] = text(topic, "v");
        kafka_producer_send(producer, &sends[i].send);
    }
    kafka_producer_stop(producer);
    for (size_t i = 0; i < N; i++) {
        cr_assert(sends[i].is_done);
        cr_assert_neq(sends[i].send.sent, KAFKA_SENT);
        cr_assert_neq(sends[i].send.sent, KAFKA_REFUSED);
    }
    kafka_producer_send(producer, &late.send);
    cr_assert(late.is_done);
    cr_assert_eq(late.send.sent, KAFKA_NOT_SENT);
    kafka_producer_stop(producer);
    kafka_producer_free(producer);
    kafka_mock_free(&mock);
}

Test(producer, a_topic_has_one_time_out_and_a_name_that_kafka_allows)
{
    static const char *const bad[] = {"", ".", "..", "a b", "a/b", "\xc3\xa4"};
    struct kafka_producer *producer = producer_of("127.0.0.1:1", NULL, NULL);
    struct kafka_topic *topic;
    struct err err;
    cr_assert_eq(topic_of(producer, "a.b_C-9", 1),
                 topic_of(producer, "a.b_C-9", 2));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_not(
            kafka_producer_topic(producer, bad[i], 1000, &topic, &err));
        cr_assert_eq(err.kind, ERR_CONFIG);
    }
    kafka_producer_free(producer);
}

Test(producer, a_bad_setting_is_an_error)
{
    static const char *const settings[][2] = {{"acks", "1"}};
    struct kafka_cluster cluster = {"c", settings, 1};
    struct kafka_producer *producer;
    struct err err;
    cr_assert_not(kafka_producer_new(&producer, &cluster, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
}
