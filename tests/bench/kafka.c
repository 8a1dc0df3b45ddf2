/* SPDX-License-Identifier: MIT */
/*
 * Messages for the worker to read, and what reading them costs without it.
 *
 *     kafka fill SERVERS TOPIC PARTITIONS MESSAGES BYTES KEYS
 *     kafka read SERVERS TOPIC GROUP MESSAGES
 *     kafka committed SERVERS TOPIC PARTITIONS GROUP
 *
 * fill makes the topic and writes JSON objects of about so many bytes, each
 * with an id of its own, over so many keys (0: each has its own). read is
 * librdkafka alone: one consumer of a group that takes messages in batches and
 * drops them. committed sums up the offsets of a group. Prints one line of
 * JSON.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/text.h"

enum { BATCH = 1024, POLL_MS = 1000, FLUSH_MS = 120 * 1000, EX_USAGE = 64 };
enum { BYTES_MAX = 64 * 1024 };

static _Noreturn void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_kafka: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) !=
        RD_KAFKA_CONF_OK) {
        fail(name, why);
    }
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *made = rd_kafka_new(type, conf, why, sizeof why);
    if (made == NULL) {
        fail("client", why);
    }
    return made;
}

/* --- fill ----------------------------------------------------------------- */

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message,
                      void *opaque)
{
    (void)producer;
    (void)opaque;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail("produce", rd_kafka_err2str(message->err));
    }
}

static size_t make_value(char *value, size_t bytes, uint64_t n)
{
    int head =
        snprintf(value, BYTES_MAX, "{\"id\":\"event-%012llu\",\"pad\":\"",
                 (unsigned long long)n);
    size_t len = (size_t)head;
    while (len + 2 < bytes) {
        value[len++] = 'x';
    }
    value[len++] = '"';
    value[len++] = '}';
    return len;
}

static void produce(rd_kafka_t *producer, const char *topic, uint64_t n,
                    uint64_t keys, size_t bytes)
{
    char key[32];
    char value[BYTES_MAX];
    size_t len = make_value(value, bytes, n);
    int key_len = snprintf(key, sizeof key, "key-%llu",
                           (unsigned long long)(keys == 0 ? n : n % keys));
    rd_kafka_resp_err_t code;
    while ((code = rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic),
                                     RD_KAFKA_V_KEY(key, (size_t)key_len),
                                     RD_KAFKA_V_VALUE(value, len),
                                     RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                     RD_KAFKA_V_END)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        (void)rd_kafka_poll(producer, POLL_MS);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail("produce", rd_kafka_err2str(code));
    }
    (void)rd_kafka_poll(producer, 0);
}

static void create(rd_kafka_t *producer, const char *topic, int partitions)
{
    char why[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(producer);
    rd_kafka_NewTopic_t *made =
        rd_kafka_NewTopic_new(topic, partitions, 1, why, sizeof why);
    rd_kafka_event_t *event;
    size_t n;
    if (made == NULL) {
        fail(topic, why);
    }
    rd_kafka_CreateTopics(producer, &made, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, FLUSH_MS);
    if (event == NULL || rd_kafka_event_error(event) != 0) {
        fail("create", topic);
    }
    const rd_kafka_topic_result_t *result =
        *rd_kafka_CreateTopics_result_topics(
            rd_kafka_event_CreateTopics_result(event), &n);
    if (rd_kafka_topic_result_error(result) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail(topic, rd_kafka_topic_result_error_string(result));
    }
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(made);
    rd_kafka_queue_destroy(queue);
}

static void fill(char **args)
{
    int partitions = (int)strtol(args[2], NULL, 10);
    uint64_t messages = strtoull(args[3], NULL, 10);
    size_t bytes = strtoull(args[4], NULL, 10);
    uint64_t keys = strtoull(args[5], NULL, 10);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *producer;
    CHECK(bytes < BYTES_MAX);
    set(conf, "bootstrap.servers", args[0]);
    set(conf, "linger.ms", "20");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    producer = client(RD_KAFKA_PRODUCER, conf);
    create(producer, args[1], partitions);
    for (uint64_t n = 0; n < messages; n++) {
        produce(producer, args[1], n, keys, bytes);
    }
    if (rd_kafka_flush(producer, FLUSH_MS) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail("flush", "not all was written in time");
    }
    rd_kafka_destroy(producer);
    (void)printf("{\"messages\":%llu}\n", (unsigned long long)messages);
}

/* --- read ----------------------------------------------------------------- */

static rd_kafka_t *subscribe(char **args)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *consumer;
    set(conf, "bootstrap.servers", args[0]);
    set(conf, "group.id", args[2]);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    consumer = client(RD_KAFKA_CONSUMER, conf);
    CHECK(rd_kafka_poll_set_consumer(consumer) == RD_KAFKA_RESP_ERR_NO_ERROR);
    (void)rd_kafka_topic_partition_list_add(topics, args[1],
                                            RD_KAFKA_PARTITION_UA);
    CHECK(rd_kafka_subscribe(consumer, topics) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(topics);
    return consumer;
}

static void read_all(char **args)
{
    uint64_t wanted = strtoull(args[3], NULL, 10);
    uint64_t messages = 0;
    uint64_t bytes = 0;
    int64_t first_ns = 0;
    rd_kafka_t *consumer = subscribe(args);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
    rd_kafka_message_t *batch[BATCH];
    while (messages < wanted) {
        ssize_t n = rd_kafka_consume_batch_queue(queue, POLL_MS, batch, BATCH);
        CHECK(n >= 0);
        if (n > 0 && first_ns == 0) {
            first_ns = now_ns();
        }
        for (ssize_t i = 0; i < n; i++) {
            if (batch[i]->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                fail("consume", rd_kafka_message_errstr(batch[i]));
            }
            messages++;
            bytes += batch[i]->len;
            rd_kafka_message_destroy(batch[i]);
        }
    }
    double seconds = (double)(now_ns() - first_ns) / 1e9;
    rd_kafka_queue_destroy(queue);
    (void)rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    (void)printf("{\"messages\":%llu,\"bytes\":%llu,\"rate\":%.0f}\n",
                 (unsigned long long)messages, (unsigned long long)bytes,
                 (double)messages / seconds);
}

static void committed(char **args)
{
    int partitions = (int)strtol(args[2], NULL, 10);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(partitions);
    rd_kafka_t *consumer;
    rd_kafka_resp_err_t code;
    int64_t sum = 0;
    set(conf, "bootstrap.servers", args[0]);
    set(conf, "group.id", args[3]);
    consumer = client(RD_KAFKA_CONSUMER, conf);
    (void)rd_kafka_topic_partition_list_add_range(list, args[1], 0,
                                                  partitions - 1);
    code = rd_kafka_committed(consumer, list, FLUSH_MS);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail("committed", rd_kafka_err2str(code));
    }
    for (int i = 0; i < list->cnt; i++) {
        sum += list->elems[i].offset > 0 ? list->elems[i].offset : 0;
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(consumer);
    (void)printf("{\"committed\":%lld}\n", (long long)sum);
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "fill") == 0) {
        fill(argv + 2);
    } else if (argc == 6 && strcmp(argv[1], "read") == 0) {
        read_all(argv + 2);
    } else if (argc == 6 && strcmp(argv[1], "committed") == 0) {
        committed(argv + 2);
    } else {
        (void)fputs(
            "usage: kafka fill SERVERS TOPIC PARTITIONS MESSAGES BYTES KEYS\n"
            "       kafka read SERVERS TOPIC GROUP MESSAGES\n"
            "       kafka committed SERVERS TOPIC PARTITIONS GROUP\n",
            stderr);
        return EX_USAGE;
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
