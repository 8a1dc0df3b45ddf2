/* SPDX-License-Identifier: MIT */
/*
 * kafka_tool: what tests do to a broker, fast and in lines of JSON.
 *
 *     kafka_tool -b SERVERS [-X name=value]... COMMAND ...
 *
 * main.c lists the commands. What cannot be done ends the process with one
 * line on stderr and a code of sysexits.h: a tool of tests has nothing to
 * save. A message is one JSON object, the same for produce and consume:
 *
 *     {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000,
 *      "key": "k", "value": null, "headers": [["n", "v"], ["m", null]]}
 *
 * Bytes that are not UTF-8 stand in "key_base64" and "value_base64", and as
 * {"base64": "…"} in a header. Null is not the empty string.
 */
#ifndef ONCED_TESTS_KAFKA_TOOL_H
#define ONCED_TESTS_KAFKA_TOOL_H

#include <jansson.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    TOOL_SETTINGS_MAX = 32,
    TOOL_TIMEOUT_MS = 20000, /* for one request */
};

struct tool {
    const char *servers;
    const char *settings[TOOL_SETTINGS_MAX]; /* "name=value" */
    size_t n_settings;
    char **args; /* what stands behind the command, ended by NULL */
    size_t n_args;
};

struct tool_command {
    const char *name;
    const char *usage; /* its arguments */
    size_t min_args;
    bool is_local; /* needs no broker */
    int (*run)(const struct tool *tool);
};

/* --- client.c ------------------------------------------------------------ */

/* Prints the text with "kafka_tool: " before it and exits. */
_Noreturn void tool_die(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A client with the tool's settings over `ours`, which ends with NULL. The
 * caller destroys it. `on_delivery` may be NULL. */
rd_kafka_t *tool_client(
    const struct tool *tool, rd_kafka_type_t type, const char *const (*ours)[2],
    void (*on_delivery)(rd_kafka_t *, const rd_kafka_message_t *, void *));

/* Prints one line and frees the object. Any thread. */
void tool_say(json_t *line);

/* What was said so far is seen by the reader. Any thread. */
void tool_flush(void);

/* The whole text as a number, or the end of the process: `what` is in the
 * message. */
int64_t tool_number(const char *text, const char *what);

/* "TOPIC:PARTITION:OFFSET" into the list; OFFSET is a number, `beginning` or
 * `end`. */
void tool_add_position(rd_kafka_topic_partition_list_t *list, const char *text);

/* [{"topic", "partition", "offset"}…]; a new reference. */
json_t *tool_positions(const rd_kafka_topic_partition_list_t *list);

/* --- admin.c ------------------------------------------------------------- */

/* A client for one admin request after another. */
struct admin {
    rd_kafka_t *client;
    rd_kafka_queue_t *queue;
    rd_kafka_AdminOptions_t *options;
};

void admin_init(struct admin *admin, const struct tool *tool);
void admin_fini(struct admin *admin);

/* The result of the request made just before; the caller destroys it. NULL
 * with `*error` set where it failed as a whole; the text is to be freed. */
rd_kafka_event_t *admin_try(struct admin *admin, char **error);

/* The same; a failure ends the process. */
rd_kafka_event_t *admin_wait(struct admin *admin);

int topics_create(const struct tool *tool);
int topics_delete(const struct tool *tool);
int topics_add_partitions(const struct tool *tool);
int topics_delete_records(const struct tool *tool);

/* --- groups.c ------------------------------------------------------------ */

int groups_committed(const struct tool *tool);
int groups_list(const struct tool *tool);
int groups_describe(const struct tool *tool);
int groups_set_offsets(const struct tool *tool);
int groups_delete(const struct tool *tool);

/* --- message.c, produce.c, consume.c ------------------------------------- */

/* Adds "NAME" or, where the bytes are not UTF-8, "NAME_base64". `data` NULL
 * is null. */
void message_put_bytes(json_t *object, const char *name, const void *data,
                       size_t len);

/* The other way: false for null and for a member that is absent. */
bool message_get_bytes(const json_t *object, const char *name, struct buf *out);

/* As JSON, and back; NULL where there are none. New references. */
json_t *message_headers_json(const rd_kafka_message_t *message);
rd_kafka_headers_t *message_headers(const json_t *list);

int messages_produce(const struct tool *tool);
int messages_consume(const struct tool *tool);
int messages_watermarks(const struct tool *tool);

/* --- mock.c -------------------------------------------------------------- */

int mock_run(const struct tool *tool);

#endif
