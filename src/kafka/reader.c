/* SPDX-License-Identifier: MIT */
#include "kafka/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "kafka/message.h"

enum {
    OPEN_MS = 15 * 1000,    /* until the broker has said what there is */
    SILENCE_MS = 30 * 1000, /* without a message or an end */
    POLL_MS = 1000,
    WHY_SIZE = 512,
    TOPIC_MAX = 249,
};

struct part {
    int32_t number;
    int64_t end; /* what lies there and behind was written later */
    bool is_started, is_done;
};

struct kafka_reader {
    const char *cluster; /* its name */
    rd_kafka_t *client;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    struct part *parts;
    size_t n_parts, n_open;
    rd_kafka_message_t *message; /* the last one */
    struct buf headers;
};

static int64_t now_ms(void)
{
    return clock_boot_ms(clock_system());
}

static bool fail(const struct kafka_reader *reader, const char *what,
                 rd_kafka_resp_err_t error, struct err *err)
{
    enum err_kind kind = ERR_IO;

    if (error == RD_KAFKA_RESP_ERR__TIMED_OUT ||
        error == RD_KAFKA_RESP_ERR__TRANSPORT ||
        error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        kind = ERR_UNREACHABLE;
    } else if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
               error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
               error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION) {
        kind = ERR_NOT_FOUND;
    }
    return err_set(err, kind, "kafka cluster \"%s\": %s: %s", reader->cluster,
                   what, rd_kafka_err2str(error));
}

/* --- what there is ------------------------------------------------------- */

static bool make_client(struct kafka_reader *reader,
                        const struct kafka_cluster *cluster, const char *topic,
                        struct err *err)
{
    char why[WHY_SIZE];
    rd_kafka_conf_t *conf;

    if (topic[0] == '\0' || strlen(topic) > TOPIC_MAX) {
        return err_set(err, ERR_USAGE,
                       "the name of a topic has 1 to %d characters", TOPIC_MAX);
    }
    if (!kafka_conf_new(&conf, KAFKA_USE_READER, cluster, err)) {
        return false;
    }
    reader->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (reader->client == NULL) {
        rd_kafka_conf_destroy(conf);
        return err_set(err, ERR_CONFIG, "kafka cluster \"%s\": %s",
                       cluster->name, why);
    }
    reader->topic = rd_kafka_topic_new(reader->client, topic, NULL);
    CHECK(reader->topic != NULL);
    reader->queue = rd_kafka_queue_new(reader->client);
    return true;
}

static void add_parts(struct kafka_reader *reader,
                      const struct rd_kafka_metadata_topic *topic)
{
    reader->n_parts = (size_t)topic->partition_cnt;
    reader->parts = mem_new(reader->n_parts, sizeof *reader->parts);
    for (size_t i = 0; i < reader->n_parts; i++) {
        reader->parts[i].number = topic->partitions[i].id;
    }
}

/* In short waits, so that the library's callbacks run meanwhile: they may
 * have to fetch a token first. */
static bool find_parts(struct kafka_reader *reader, struct err *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    int64_t until_ms = now_ms() + OPEN_MS;
    rd_kafka_resp_err_t error;

    do {
        (void)rd_kafka_poll(reader->client, 0);
        error = rd_kafka_metadata(reader->client, 0, reader->topic, &metadata,
                                  POLL_MS);
    } while (error != RD_KAFKA_RESP_ERR_NO_ERROR && now_ms() < until_ms);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        CHECK(metadata->topic_cnt == 1);
        error = metadata->topics[0].err;
        add_parts(reader, &metadata->topics[0]);
        rd_kafka_metadata_destroy(metadata);
    }
    return error == RD_KAFKA_RESP_ERR_NO_ERROR ||
           fail(reader, rd_kafka_topic_name(reader->topic), error, err);
}

static bool fail_part(const struct kafka_reader *reader, int32_t number,
                      rd_kafka_resp_err_t error, struct err *err)
{
    return fail(reader, rd_kafka_topic_name(reader->topic), error, err) ||
           err_wrap(err, "partition %" PRId32, number);
}

static bool start_part(struct kafka_reader *reader, struct part *part,
                       struct err *err)
{
    int64_t first;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        reader->client, rd_kafka_topic_name(reader->topic), part->number,
        &first, &part->end, OPEN_MS);

    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return fail_part(reader, part->number, error, err);
    }
    part->is_done = first >= part->end;
    if (part->is_done) {
        return true;
    }
    if (rd_kafka_consume_start_queue(reader->topic, part->number, first,
                                     reader->queue) != 0) {
        return fail_part(reader, part->number, rd_kafka_last_error(), err);
    }
    part->is_started = true;
    reader->n_open++;
    return true;
}

bool kafka_reader_open(struct kafka_reader **out,
                       const struct kafka_cluster *cluster, const char *topic,
                       struct err *err)
{
    struct kafka_reader *reader = mem_new(1, sizeof *reader);
    bool ok;

    reader->cluster = cluster->name;
    ok = make_client(reader, cluster, topic, err) && find_parts(reader, err);
    for (size_t i = 0; ok && i < reader->n_parts; i++) {
        ok = start_part(reader, &reader->parts[i], err);
    }
    if (!ok) {
        kafka_reader_free(reader);
        reader = NULL;
    }
    *out = reader;
    return ok;
}

/* --- messages ------------------------------------------------------------ */

static struct part *part_of(struct kafka_reader *reader, int32_t number)
{
    for (size_t i = 0; i < reader->n_parts; i++) {
        if (reader->parts[i].number == number) {
            return &reader->parts[i];
        }
    }
    return NULL;
}

static void end_part(struct kafka_reader *reader, struct part *part)
{
    if (!part->is_done) {
        part->is_done = true;
        reader->n_open--;
    }
}

/* NULL: none came in time. */
static void take(struct kafka_reader *reader)
{
    if (reader->message != NULL) {
        rd_kafka_message_destroy(reader->message);
    }
    (void)rd_kafka_poll(reader->client, 0);
    reader->message = rd_kafka_consume_queue(reader->queue, POLL_MS);
}

/* Whether the last one is to be read. The offsets of a partition may have
 * holes: past its last message only its end is told. */
static bool is_wanted(struct kafka_reader *reader)
{
    const rd_kafka_message_t *message = reader->message;
    struct part *part = part_of(reader, message->partition);
    bool is_message = message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    bool wanted;

    if (part == NULL) {
        return false;
    }
    wanted = is_message && !part->is_done && message->offset < part->end;
    if (!is_message || message->offset + 1 >= part->end) {
        end_part(reader, part);
    }
    return wanted;
}

static bool is_error(const rd_kafka_message_t *message)
{
    return message->err != RD_KAFKA_RESP_ERR_NO_ERROR &&
           message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF;
}

enum kafka_read kafka_reader_next(struct kafka_reader *reader,
                                  struct envelope *out, struct err *err)
{
    int64_t until_ms = now_ms() + SILENCE_MS;

    while (reader->n_open > 0) {
        take(reader);
        if (reader->message == NULL && now_ms() >= until_ms) {
            (void)fail(reader, rd_kafka_topic_name(reader->topic),
                       RD_KAFKA_RESP_ERR__TIMED_OUT, err);
            return KAFKA_READ_FAILED;
        }
        if (reader->message == NULL) {
            continue;
        }
        if (is_error(reader->message)) {
            (void)fail_part(reader, reader->message->partition,
                            reader->message->err, err);
            return KAFKA_READ_FAILED;
        }
        if (is_wanted(reader)) {
            kafka_message_open(reader->message, clock_wall_ms(clock_system()),
                               &reader->headers, out);
            return KAFKA_READ;
        }
    }
    return KAFKA_READ_END;
}

void kafka_reader_free(struct kafka_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->message != NULL) {
        rd_kafka_message_destroy(reader->message);
    }
    for (size_t i = 0; i < reader->n_parts; i++) {
        if (reader->parts[i].is_started) {
            (void)rd_kafka_consume_stop(reader->topic, reader->parts[i].number);
        }
    }
    if (reader->queue != NULL) {
        rd_kafka_queue_destroy(reader->queue);
    }
    if (reader->topic != NULL) {
        rd_kafka_topic_destroy(reader->topic);
    }
    if (reader->client != NULL) {
        rd_kafka_destroy(reader->client);
    }
    buf_free(&reader->headers);
    free(reader->parts);
    free(reader);
}
