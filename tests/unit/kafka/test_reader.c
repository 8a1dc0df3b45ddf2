/* SPDX-License-Identifier: MIT */
#include "kafka/reader.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "support/kafka_mock.h"

enum { PARTITIONS = 3 };

static struct kafka_mock mock;

/* A topic "p" beside those of the mock. */
static void begin(void)
{
    mock = kafka_mock_new();
    cr_assert_eq(rd_kafka_mock_topic_create(mock.cluster, "p", PARTITIONS, 1),
                 RD_KAFKA_RESP_ERR_NO_ERROR);
}

struct write {
    const char *topic;
    int32_t partition;
    const char *key, *value; /* NULL: none */
};

static void send_one(rd_kafka_t *producer, const struct write *write)
{
    size_t value_len = write->value == NULL ? 0 : strlen(write->value);
    size_t key_len = write->key == NULL ? 0 : strlen(write->key);
    const rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = write->topic},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = write->partition},
        {.vtype = RD_KAFKA_VTYPE_VALUE,
         .u.mem = {(void *)(uintptr_t)write->value, value_len}},
        {.vtype = RD_KAFKA_VTYPE_KEY,
         .u.mem = {(void *)(uintptr_t)write->key, key_len}},
        {.vtype = RD_KAFKA_VTYPE_HEADER, .u.header = {"h", "\x00\xff", 2}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = 1700000000123},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
    };

    CHECK(rd_kafka_produceva(producer, parts, sizeof parts / sizeof parts[0]) ==
          NULL);
}

static void produce(const struct write *writes, size_t n)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *producer;
    char why[256];

    CHECK(rd_kafka_conf_set(conf, "bootstrap.servers", mock.bootstrap, why,
                            sizeof why) == RD_KAFKA_CONF_OK);
    producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    CHECK(producer != NULL);
    for (size_t i = 0; i < n; i++) {
        send_one(producer, &writes[i]);
    }
    CHECK(rd_kafka_flush(producer, 20000) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(producer);
}

static bool open_on(const char *bootstrap, const char *topic,
                    struct kafka_reader **reader, struct err *err)
{
    const char *settings[][2] = {{"bootstrap.servers", bootstrap}};
    const struct kafka_cluster cluster = {"main",
                                          (const char *const(*)[2])settings, 1};

    return kafka_reader_open(reader, &cluster, topic, err);
}

static struct kafka_reader *open_topic(const char *topic)
{
    struct kafka_reader *reader;
    struct err err;

    cr_assert(open_on(mock.bootstrap, topic, &reader, &err), "%s", err.text);
    return reader;
}

Test(reader, every_partition_is_read_from_its_start_to_where_it_ended)
{
    static const struct write early[] = {{"p", 0, "a", "0"},
                                         {"p", 2, "b", "0"},
                                         {"p", 0, NULL, "1"},
                                         {"p", 0, "a", NULL}};
    static const struct write late[] = {{"p", 0, "late", "x"},
                                        {"p", 1, "late", "x"}};
    struct kafka_reader *reader;
    struct envelope got;
    struct err err;
    int64_t next[PARTITIONS] = {0};

    begin();
    produce(early, 4);
    reader = open_topic("p");
    produce(late, 2);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(kafka_reader_next(reader, &got, &err), KAFKA_READ,
                     "%d: %s", i, err.text);
        cr_assert(slice_eq(got.topic, SLICE("p")));
        cr_assert(got.partition == 0 || got.partition == 2);
        cr_assert_eq(got.offset, next[got.partition]++);
        cr_assert_eq(got.timestamp_ms, 1700000000123);
        cr_assert_gt(got.received_wall_ms, 1700000000123);
        cr_assert_eq(got.headers.count, 1);
        cr_assert_eq(got.has_key, got.offset != 1);
        cr_assert_eq(got.has_body, got.offset != 2);
    }
    cr_assert_eq(next[0], 3);
    cr_assert_eq(next[2], 1);
    cr_assert_eq(kafka_reader_next(reader, &got, &err), KAFKA_READ_END);
    cr_assert_eq(kafka_reader_next(reader, &got, &err), KAFKA_READ_END);
    kafka_reader_free(reader);
    kafka_mock_free(&mock);
}

Test(reader, an_empty_topic_ends_at_once)
{
    struct kafka_reader *reader;
    struct envelope got;
    struct err err;

    begin();
    reader = open_topic("t");
    cr_assert_eq(kafka_reader_next(reader, &got, &err), KAFKA_READ_END);
    kafka_reader_free(reader);
    kafka_mock_free(&mock);
}

Test(reader, what_is_left_unread_is_let_go)
{
    static const struct write writes[] = {{"p", 0, "a", "0"},
                                          {"p", 1, "b", "1"}};
    struct kafka_reader *reader;
    struct envelope got;
    struct err err;

    begin();
    produce(writes, 2);
    reader = open_topic("p");
    cr_assert_eq(kafka_reader_next(reader, &got, &err), KAFKA_READ);
    kafka_reader_free(reader);
    kafka_reader_free(NULL);
    kafka_mock_free(&mock);
}

Test(reader, what_cannot_be_read_is_told_by_its_kind)
{
    char name[251] = "";
    struct kafka_reader *reader;
    struct err err;

    begin();
    rd_kafka_mock_topic_set_error(mock.cluster, "gone",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    cr_assert_not(open_on(mock.bootstrap, "gone", &reader, &err));
    cr_expect_eq(err.kind, ERR_NOT_FOUND, "%s", err.text);
    cr_expect(strstr(err.text, "\"main\": gone: ") != NULL, "%s", err.text);
    rd_kafka_mock_topic_set_error(mock.cluster, "closed",
                                  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    cr_assert_not(open_on(mock.bootstrap, "closed", &reader, &err));
    cr_expect_eq(err.kind, ERR_IO, "%s", err.text);
    cr_assert_not(open_on(mock.bootstrap, "", &reader, &err));
    cr_expect_eq(err.kind, ERR_USAGE, "%s", err.text);
    memset(name, 'x', sizeof name - 1);
    cr_assert_not(open_on(mock.bootstrap, name, &reader, &err));
    cr_expect_eq(err.kind, ERR_USAGE, "%s", err.text);
    kafka_mock_free(&mock);
}
