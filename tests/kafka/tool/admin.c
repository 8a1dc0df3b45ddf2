/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

enum { ERROR_SIZE = 512, LOOK_MS = 10 };

void admin_init(struct admin *admin, const struct tool *tool)
{
    admin->client = tool_client(tool, RD_KAFKA_PRODUCER, NULL, NULL);
    admin->queue = rd_kafka_queue_new(admin->client);
    admin->options =
        rd_kafka_AdminOptions_new(admin->client, RD_KAFKA_ADMIN_OP_ANY);
    char error[ERROR_SIZE];
    if (rd_kafka_AdminOptions_set_request_timeout(
            admin->options, TOOL_TIMEOUT_MS, error, sizeof error)) {
        tool_die(EX_SOFTWARE, "%s", error);
    }
}

void admin_fini(struct admin *admin)
{
    rd_kafka_AdminOptions_destroy(admin->options);
    rd_kafka_queue_destroy(admin->queue);
    rd_kafka_destroy(admin->client);
}

rd_kafka_event_t *admin_try(struct admin *admin, char **error)
{
    *error = NULL;
    rd_kafka_event_t *event =
        rd_kafka_queue_poll(admin->queue, 2 * TOOL_TIMEOUT_MS);
    if (!event) {
        *error = mem_strdup("no answer");
    } else if (rd_kafka_event_error(event)) {
        *error = mem_strdup(rd_kafka_event_error_string(event));
        rd_kafka_event_destroy(event);
        event = NULL;
    }
    return event;
}

rd_kafka_event_t *admin_wait(struct admin *admin)
{
    char *error;
    rd_kafka_event_t *event = admin_try(admin, &error);
    if (!event) {
        tool_die(EX_UNAVAILABLE, "%s", error);
    }
    return event;
}

static void check_topics(const rd_kafka_topic_result_t **results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rd_kafka_topic_result_error(results[i])) {
            tool_die(EX_DATAERR, "%s: %s",
                     rd_kafka_topic_result_name(results[i]),
                     rd_kafka_topic_result_error_string(results[i]));
        }
    }
}

/* --- what the brokers know already --------------------------------------- */

/* How many of the topic's partitions have a leader; -1 for no such topic. */
static int count_led(const struct rd_kafka_metadata *metadata,
                     const char *topic)
{
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const rd_kafka_metadata_topic_t *at = &metadata->topics[i];
        if (strcmp(at->topic, topic) != 0) {
            continue;
        }
        int led = 0;
        for (int j = 0; j < at->partition_cnt; j++) {
            led += at->partitions[j].leader >= 0;
        }
        return led;
    }
    return -1;
}

/* A change is answered before every broker knows of it. */
static void wait_led(struct admin *admin, const char *topic, int wanted)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    for (int looks = TOOL_TIMEOUT_MS / LOOK_MS; looks > 0; looks--) {
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t code = rd_kafka_metadata(
            admin->client, 1, NULL, &metadata, TOOL_TIMEOUT_MS);
        if (code) {
            tool_die(EX_UNAVAILABLE, "%s", rd_kafka_err2str(code));
        }
        bool is_so = count_led(metadata, topic) == wanted;
        rd_kafka_metadata_destroy(metadata);
        if (is_so) {
            return;
        }
        nanosleep(&pause, NULL);
    }
    tool_die(EX_UNAVAILABLE, "%s does not get its partitions", topic);
}

/* --- topics -------------------------------------------------------------- */

struct new_topic {
    char *name;
    int partitions, replication;
    rd_kafka_NewTopic_t *topic;
};

/* "TOPIC[:PARTITIONS[:REPLICATION]]"; -1 is the broker's default. */
static void parse_topic(struct new_topic *topic, const char *text)
{
    topic->name = mem_strdup(text);
    topic->partitions = 1;
    topic->replication = -1;
    char *partitions = strchr(topic->name, ':');
    if (!partitions) {
        return;
    }
    *partitions++ = '\0';
    char *replication = strchr(partitions, ':');
    if (replication) {
        *replication++ = '\0';
        topic->replication = (int)tool_number(replication, "replication");
    }
    topic->partitions = (int)tool_number(partitions, "partitions");
}

static void make_topic(struct new_topic *topic)
{
    char error[ERROR_SIZE];
    topic->topic =
        rd_kafka_NewTopic_new(topic->name, topic->partitions,
                              topic->replication, error, sizeof error);
    if (!topic->topic) {
        tool_die(EX_USAGE, "%s: %s", topic->name, error);
    }
}

static void set_config(struct new_topic *topic, const char *setting)
{
    const char *equals = strchr(setting, '=');
    char *name = mem_dup((struct slice){setting, (size_t)(equals - setting)});
    if (rd_kafka_NewTopic_set_config(topic->topic, name, equals + 1)) {
        tool_die(EX_USAGE, "%s: bad setting '%s'", topic->name, setting);
    }
    free(name);
}

/* A setting belongs to the topic before it. */
static size_t read_topics(struct new_topic *topics, const struct tool *tool)
{
    size_t n = 0;
    for (size_t i = 0; i < tool->n_args; i++) {
        if (!strchr(tool->args[i], '=')) {
            parse_topic(&topics[n], tool->args[i]);
            make_topic(&topics[n++]);
        } else if (n) {
            set_config(&topics[n - 1], tool->args[i]);
        } else {
            tool_die(EX_USAGE, "'%s' belongs to no topic", tool->args[i]);
        }
    }
    return n;
}

int topics_create(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    struct new_topic *topics = mem_new(tool->n_args, sizeof *topics);
    size_t n = read_topics(topics, tool);
    rd_kafka_NewTopic_t **made = mem_new(n, sizeof(rd_kafka_NewTopic_t *));
    for (size_t i = 0; i < n; i++) {
        made[i] = topics[i].topic;
    }
    rd_kafka_CreateTopics(admin.client, made, n, admin.options, admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    size_t n_results;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(
            rd_kafka_event_CreateTopics_result(event), &n_results);
    check_topics(results, n_results);
    rd_kafka_event_destroy(event);
    for (size_t i = 0; i < n; i++) {
        wait_led(&admin, topics[i].name, topics[i].partitions);
        rd_kafka_NewTopic_destroy(topics[i].topic);
        free(topics[i].name);
    }
    free(made);
    free(topics);
    admin_fini(&admin);
    return 0;
}

int topics_delete(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    size_t n = tool->n_args;
    rd_kafka_DeleteTopic_t **topics =
        mem_new(n, sizeof(rd_kafka_DeleteTopic_t *));
    for (size_t i = 0; i < n; i++) {
        topics[i] = rd_kafka_DeleteTopic_new(tool->args[i]);
    }
    rd_kafka_DeleteTopics(admin.client, topics, n, admin.options, admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    size_t n_results;
    const rd_kafka_topic_result_t **results =
        rd_kafka_DeleteTopics_result_topics(
            rd_kafka_event_DeleteTopics_result(event), &n_results);
    check_topics(results, n_results);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy_array(topics, n);
    free(topics);
    for (size_t i = 0; i < n; i++) {
        wait_led(&admin, tool->args[i], -1);
    }
    admin_fini(&admin);
    return 0;
}

static void add_partitions(struct admin *admin, const char *text)
{
    struct new_topic topic = {0};
    parse_topic(&topic, text);
    char error[ERROR_SIZE];
    rd_kafka_NewPartitions_t *more = rd_kafka_NewPartitions_new(
        topic.name, (size_t)topic.partitions, error, sizeof error);
    if (!more) {
        tool_die(EX_USAGE, "%s: %s", topic.name, error);
    }
    rd_kafka_CreatePartitions(admin->client, &more, 1, admin->options,
                              admin->queue);
    rd_kafka_event_t *event = admin_wait(admin);
    size_t n_results;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreatePartitions_result_topics(
            rd_kafka_event_CreatePartitions_result(event), &n_results);
    check_topics(results, n_results);
    rd_kafka_event_destroy(event);
    rd_kafka_NewPartitions_destroy(more);
    wait_led(admin, topic.name, topic.partitions);
    free(topic.name);
}

int topics_add_partitions(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    for (size_t i = 0; i < tool->n_args; i++) {
        add_partitions(&admin, tool->args[i]);
    }
    admin_fini(&admin);
    return 0;
}

int topics_delete_records(const struct tool *tool)
{
    struct admin admin;
    admin_init(&admin, tool);
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)tool->n_args);
    for (size_t i = 0; i < tool->n_args; i++) {
        tool_add_position(list, tool->args[i]);
    }
    rd_kafka_DeleteRecords_t *before = rd_kafka_DeleteRecords_new(list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_DeleteRecords(admin.client, &before, 1, admin.options,
                           admin.queue);
    rd_kafka_event_t *event = admin_wait(&admin);
    const rd_kafka_topic_partition_list_t *low =
        rd_kafka_DeleteRecords_result_offsets(
            rd_kafka_event_DeleteRecords_result(event));
    int code = 0;
    for (int i = 0; i < low->cnt; i++) {
        code = low->elems[i].err ? EX_DATAERR : code;
    }
    tool_say(tool_positions(low));
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteRecords_destroy(before);
    admin_fini(&admin);
    return code;
}
