/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <stdio.h>
#include <sysexits.h>

/* Takes no part in a group: it assigns itself and commits nothing. */
static const char *const settings[][2] = {
    {"group.id", "kafka_tool"},       {"enable.auto.commit", "false"},
    {"enable.partition.eof", "true"}, {"auto.offset.reset", "earliest"},
    {"fetch.wait.max.ms", "20"},      {NULL, NULL},
};

static void add_partitions(rd_kafka_t *client, const char *topic,
                           rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(client, 0, handle, &metadata, TOOL_TIMEOUT_MS);
    if (!code) {
        code = metadata->topics[0].err;
    }
    if (code) {
        tool_die(EX_UNAVAILABLE, "%s: %s", topic, rd_kafka_err2str(code));
    }
    for (int i = 0; i < metadata->topics[0].partition_cnt; i++) {
        rd_kafka_topic_partition_list_add(list, topic, i)->offset =
            RD_KAFKA_OFFSET_BEGINNING;
    }
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
}

static rd_kafka_topic_partition_list_t *partitions_of(rd_kafka_t *client,
                                                      const struct tool *tool)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(8);
    for (size_t i = 0; i < tool->n_args; i++) {
        add_partitions(client, tool->args[i], list);
    }
    return list;
}

static void say_message(const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    int64_t at_wall_ms = rd_kafka_message_timestamp(message, &type);
    json_t *line = json_pack(
        "{s:s, s:i, s:I, s:I, s:s}", "topic", rd_kafka_topic_name(message->rkt),
        "partition", (int)message->partition, "offset",
        (json_int_t)message->offset, "timestamp", (json_int_t)at_wall_ms,
        "timestamp_type",
        type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? "append" : "create");
    message_put_bytes(line, "key", message->key, message->key_len);
    message_put_bytes(line, "value", message->payload, message->len);
    json_t *headers = message_headers_json(message);
    json_object_set_new(line, "headers", headers ? headers : json_array());
    tool_say(line);
}

/* True where the message is a partition's end. */
static bool take(const rd_kafka_message_t *message)
{
    switch ((int)message->err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        say_message(message);
        return false;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        return true;
    default:
        tool_die(EX_UNAVAILABLE, "%s", rd_kafka_message_errstr(message));
    }
}

int messages_consume(const struct tool *tool)
{
    rd_kafka_t *client = tool_client(tool, RD_KAFKA_CONSUMER, settings, NULL);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *list = partitions_of(client, tool);
    int open = list->cnt;
    rd_kafka_resp_err_t code = rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code) {
        tool_die(EX_SOFTWARE, "%s", rd_kafka_err2str(code));
    }
    while (open > 0) {
        rd_kafka_message_t *message =
            rd_kafka_consumer_poll(client, TOOL_TIMEOUT_MS);
        if (!message) {
            tool_die(EX_UNAVAILABLE, "the broker is silent");
        }
        open -= take(message);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    tool_flush();
    return 0;
}

int messages_watermarks(const struct tool *tool)
{
    rd_kafka_t *client = tool_client(tool, RD_KAFKA_CONSUMER, settings, NULL);
    rd_kafka_topic_partition_list_t *list = partitions_of(client, tool);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *at = &list->elems[i];
        int64_t low, high;
        rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
            client, at->topic, at->partition, &low, &high, TOOL_TIMEOUT_MS);
        if (code) {
            tool_die(EX_UNAVAILABLE, "%s: %s", at->topic,
                     rd_kafka_err2str(code));
        }
        tool_say(json_pack("{s:s, s:i, s:I, s:I}", "topic", at->topic,
                           "partition", (int)at->partition, "low",
                           (json_int_t)low, "high", (json_int_t)high));
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return 0;
}
