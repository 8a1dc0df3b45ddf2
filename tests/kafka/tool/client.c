/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/check.h"

void tool_die(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("kafka_tool: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(code);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char error[512];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) !=
        RD_KAFKA_CONF_OK) {
        tool_die(EX_USAGE, "%s", error);
    }
}

static void set_text(rd_kafka_conf_t *conf, const char *setting)
{
    const char *equals = strchr(setting, '=');
    CHECK(equals != NULL);
    char *name = mem_dup((struct slice){setting, (size_t)(equals - setting)});
    set(conf, name, equals + 1);
    free(name);
}

rd_kafka_t *tool_client(const struct tool *tool, rd_kafka_type_t type,
                        const char *const (*ours)[2],
                        void (*on_delivery)(rd_kafka_t *,
                                            const rd_kafka_message_t *, void *))
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (tool->servers) {
        set(conf, "bootstrap.servers", tool->servers);
    }
    set(conf, "log_level", "2"); /* that a broker is away is a test's wish */
    set(conf, "topic.metadata.refresh.sparse", "true");
    for (; ours && (*ours)[0]; ours++) {
        set(conf, (*ours)[0], (*ours)[1]);
    }
    for (size_t i = 0; i < tool->n_settings; i++) {
        set_text(conf, tool->settings[i]);
    }
    if (on_delivery) {
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    }
    char error[512];
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (!client) {
        tool_die(EX_USAGE, "%s", error);
    }
    return client;
}

void tool_say(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    CHECK(text != NULL);
    json_decref(line);
    bool is_written = printf("%s\n", text) >= 0; /* one call, for threads */
    free(text);
    if (!is_written) {
        tool_die(EX_IOERR, "stdout: %s", strerror(errno));
    }
}

void tool_flush(void)
{
    if (fflush(stdout)) {
        tool_die(EX_IOERR, "stdout: %s", strerror(errno));
    }
}

int64_t tool_number(const char *text, const char *what)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end) {
        tool_die(EX_USAGE, "%s is a number, not '%s'", what, text);
    }
    return value;
}

static int64_t parse_offset(const char *text)
{
    if (strcmp(text, "beginning") == 0) {
        return RD_KAFKA_OFFSET_BEGINNING;
    }
    if (strcmp(text, "end") == 0) {
        return RD_KAFKA_OFFSET_END;
    }
    return tool_number(text, "an offset");
}

void tool_add_position(rd_kafka_topic_partition_list_t *list, const char *text)
{
    char *topic = mem_strdup(text);
    char *offset = strrchr(topic, ':');
    if (offset) {
        *offset++ = '\0';
    }
    char *partition = offset ? strrchr(topic, ':') : NULL;
    if (!partition) {
        tool_die(EX_USAGE, "'%s' is not TOPIC:PARTITION:OFFSET", text);
    }
    *partition++ = '\0';
    rd_kafka_topic_partition_list_add(
        list, topic, (int32_t)tool_number(partition, "a partition"))
        ->offset = parse_offset(offset);
    free(topic);
}

json_t *tool_positions(const rd_kafka_topic_partition_list_t *list)
{
    json_t *positions = json_array();
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *at = &list->elems[i];
        json_t *position =
            json_pack("{s:s, s:i, s:I}", "topic", at->topic, "partition",
                      (int)at->partition, "offset", (json_int_t)at->offset);
        if (at->err) {
            json_object_set_new(position, "error",
                                json_string(rd_kafka_err2name(at->err)));
        }
        json_array_append_new(positions, position);
    }
    return positions;
}
