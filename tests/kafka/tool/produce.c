/* SPDX-License-Identifier: MIT */
/*
 * Messages from stdin to the broker. One thread reads, the other serves the
 * delivery reports, so that whoever writes a line and waits for its report
 * gets it.
 */
#include "tool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/check.h"

enum { SERVE_MS = 50, FLUSH_MS = 60000 };

struct producer {
    rd_kafka_t *client;
    bool is_quiet;
    atomic_bool is_ending;
    atomic_llong delivered, failed;
};

/* Delivery reports reach one producer; a process has no other. */
static struct producer producer;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message,
                        void *opaque)
{
    (void)client;
    (void)opaque;
    json_int_t n = (json_int_t)(intptr_t)message->_private;
    if (message->err) {
        atomic_fetch_add(&producer.failed, 1);
        tool_say(json_pack("{s:I, s:s}", "n", n, "error",
                           rd_kafka_err2name(message->err)));
        return;
    }
    atomic_fetch_add(&producer.delivered, 1);
    if (!producer.is_quiet) {
        tool_say(json_pack("{s:I, s:s, s:i, s:I}", "n", n, "topic",
                           rd_kafka_topic_name(message->rkt), "partition",
                           (int)message->partition, "offset",
                           (json_int_t)message->offset));
    }
}

static void *serve_reports(void *opaque)
{
    (void)opaque;
    while (!atomic_load(&producer.is_ending)) {
        if (rd_kafka_poll(producer.client, SERVE_MS) > 0) {
            tool_flush();
        }
    }
    return NULL;
}

struct parts {
    struct buf key, value;
    rd_kafka_vu_t vus[8];
    size_t n;
};

static void add_part(struct parts *parts, rd_kafka_vu_t part)
{
    CHECK(parts->n < sizeof parts->vus / sizeof *parts->vus);
    parts->vus[parts->n++] = part;
}

/* What librdkafka copies; the headers it takes. */
static void make_parts(struct parts *parts, const json_t *line, long long n)
{
    const char *topic = json_string_value(json_object_get(line, "topic"));
    if (!topic) {
        tool_die(EX_DATAERR, "message %lld has no topic", n);
    }
    const json_t *partition = json_object_get(line, "partition");
    parts->n = 0;
    add_part(parts, (rd_kafka_vu_t){RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic});
    add_part(parts, (rd_kafka_vu_t){
                        RD_KAFKA_VTYPE_PARTITION,
                        .u.i32 = json_is_integer(partition)
                                     ? (int32_t)json_integer_value(partition)
                                     : RD_KAFKA_PARTITION_UA});
    add_part(parts, (rd_kafka_vu_t){RD_KAFKA_VTYPE_MSGFLAGS,
                                    .u.i = RD_KAFKA_MSG_F_COPY});
    add_part(parts, (rd_kafka_vu_t){RD_KAFKA_VTYPE_OPAQUE,
                                    .u.ptr = (void *)(intptr_t)n});
    add_part(parts, (rd_kafka_vu_t){RD_KAFKA_VTYPE_TIMESTAMP,
                                    .u.i64 = json_integer_value(
                                        json_object_get(line, "timestamp"))});
    if (message_get_bytes(line, "key", &parts->key)) {
        add_part(parts,
                 (rd_kafka_vu_t){RD_KAFKA_VTYPE_KEY,
                                 .u.mem = {parts->key.data, parts->key.len}});
    }
    if (message_get_bytes(line, "value", &parts->value)) {
        add_part(parts, (rd_kafka_vu_t){
                            RD_KAFKA_VTYPE_VALUE,
                            .u.mem = {parts->value.data, parts->value.len}});
    }
}

/* Waits while the queue is full: the other thread empties it. */
static void send_parts(struct parts *parts, const json_t *line, long long n)
{
    rd_kafka_headers_t *headers =
        message_headers(json_object_get(line, "headers"));
    if (headers) {
        add_part(parts,
                 (rd_kafka_vu_t){RD_KAFKA_VTYPE_HEADERS, .u.headers = headers});
    }
    const struct timespec pause = {.tv_nsec = 1000000};
    for (;;) {
        rd_kafka_error_t *error =
            rd_kafka_produceva(producer.client, parts->vus, parts->n);
        if (!error) {
            return;
        }
        if (rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            tool_die(EX_DATAERR, "message %lld: %s", n,
                     rd_kafka_error_string(error));
        }
        rd_kafka_error_destroy(error);
        nanosleep(&pause, NULL);
    }
}

static long long produce_lines(void)
{
    struct parts parts = {0};
    char *text = NULL;
    size_t cap = 0;
    ssize_t len;
    long long n = 0;
    while ((len = getline(&text, &cap, stdin)) > 0) {
        json_error_t error;
        json_t *line = json_loadb(text, (size_t)len, JSON_ALLOW_NUL, &error);
        if (!line) {
            tool_die(EX_DATAERR, "message %lld: %s", n, error.text);
        }
        make_parts(&parts, line, n);
        send_parts(&parts, line, n);
        json_decref(line);
        n++;
    }
    free(text);
    buf_free(&parts.key);
    buf_free(&parts.value);
    return n;
}

int messages_produce(const struct tool *tool)
{
    static const char *const settings[][2] = {
        {"enable.idempotence", "true"}, /* acks=all, in order, none twice */
        {"linger.ms", "1"},
        {"queue.buffering.max.messages", "200000"},
        {NULL, NULL},
    };
    producer.is_quiet = tool->n_args && strcmp(tool->args[0], "quiet") == 0;
    producer.client =
        tool_client(tool, RD_KAFKA_PRODUCER, settings, on_delivery);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve_reports, NULL)) {
        tool_die(EX_OSERR, "no thread");
    }
    long long n = produce_lines();
    atomic_store(&producer.is_ending, true);
    pthread_join(thread, NULL);
    rd_kafka_flush(producer.client, FLUSH_MS);
    rd_kafka_destroy(producer.client);
    if (producer.is_quiet) {
        tool_say(json_pack("{s:I}", "delivered",
                           (json_int_t)atomic_load(&producer.delivered)));
    }
    tool_flush();
    if (atomic_load(&producer.delivered) != n) {
        tool_die(EX_UNAVAILABLE, "%lld of %lld messages were not delivered",
                 n - atomic_load(&producer.delivered), n);
    }
    return 0;
}
