/* SPDX-License-Identifier: MIT */
/*
 * A broker in this process, with errors on order: librdkafka's mock cluster.
 * The topics "t" and "t2" have one partition.
 */
#ifndef ONCED_TEST_KAFKA_MOCK_H
#define ONCED_TEST_KAFKA_MOCK_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { MOCK_PRODUCE = 0, MOCK_INIT_PRODUCER_ID = 22 }; /* API keys */
enum { MOCK_READ_MS = 20 * 1000 };

struct kafka_mock {
    rd_kafka_t *owner;
    rd_kafka_mock_cluster_t *cluster;
    const char *bootstrap;
};

static inline struct kafka_mock kafka_mock_new(void)
{
    struct kafka_mock mock;
    char why[256];

    mock.owner =
        rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
    CHECK(mock.owner != NULL);
    mock.cluster = rd_kafka_mock_cluster_new(mock.owner, 1);
    CHECK(mock.cluster != NULL);
    CHECK(rd_kafka_mock_topic_create(mock.cluster, "t", 1, 1) ==
          RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(rd_kafka_mock_topic_create(mock.cluster, "t2", 1, 1) ==
          RD_KAFKA_RESP_ERR_NO_ERROR);
    mock.bootstrap = rd_kafka_mock_cluster_bootstraps(mock.cluster);
    return mock;
}

static inline void kafka_mock_free(struct kafka_mock *mock)
{
    rd_kafka_mock_cluster_destroy(mock->cluster);
    rd_kafka_destroy(mock->owner);
}

/* A plain reader of the topic's only partition, from its first message. */
static inline rd_kafka_t *kafka_mock_reader(const struct kafka_mock *mock,
                                            const char *topic)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *reader;
    char why[256];

    CHECK(rd_kafka_conf_set(conf, "bootstrap.servers", mock->bootstrap, why,
                            sizeof why) == RD_KAFKA_CONF_OK);
    CHECK(rd_kafka_conf_set(conf, "group.id", "reader", why, sizeof why) ==
          RD_KAFKA_CONF_OK);
    reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    CHECK(reader != NULL);
    CHECK(rd_kafka_poll_set_consumer(reader) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    CHECK(rd_kafka_assign(reader, list) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    return reader;
}

/* The next message, or NULL when none came in time. */
static inline rd_kafka_message_t *kafka_mock_next(rd_kafka_t *reader)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, MOCK_READ_MS);

    if (message != NULL && message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_message_destroy(message);
        return NULL;
    }
    return message;
}

static inline void kafka_mock_reader_free(rd_kafka_t *reader)
{
    rd_kafka_consumer_close(reader);
    rd_kafka_destroy(reader);
}

#endif
