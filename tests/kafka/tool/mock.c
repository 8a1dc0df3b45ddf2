/* SPDX-License-Identifier: MIT */
/*
 * librdkafka's mock cluster as a process: for faults that no real broker
 * makes on demand. It prints its servers, then answers each line of stdin
 * with `ok` or `error: …`, and ends with stdin. What it cannot prove: fencing
 * of producers, transactions, compaction, retention, topics made by clients.
 */
#include "tool.h"

#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { WORDS_MAX = 5, ERRORS_MAX = 1000 };

struct request {
    rd_kafka_mock_cluster_t *cluster;
    char *words[WORDS_MAX];
    const char *error; /* NULL: done */
};

/* The numbers of Kafka's protocol. */
static const struct api {
    const char *name;
    int16_t key;
} apis[] = {
    {"produce", 0},
    {"fetch", 1},
    {"list-offsets", 2},
    {"metadata", 3},
    {"commit", 8},
    {"committed", 9},
    {"find-coordinator", 10},
    {"join", 11},
    {"heartbeat", 12},
    {"leave", 13},
    {"sync", 14},
    {"init-producer", 22},
};

static int16_t api_of(struct request *request, const char *name)
{
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        if (strcmp(apis[i].name, name) == 0) {
            return apis[i].key;
        }
    }
    request->error = "no such kind of request";
    return -1;
}

/* By its name: NOT_COORDINATOR, _TRANSPORT (the connection is cut), NO_ERROR.
 */
static rd_kafka_resp_err_t error_of(struct request *request, const char *name)
{
    const struct rd_kafka_err_desc *known;
    size_t n;
    rd_kafka_get_err_descs(&known, &n);
    for (size_t i = 0; i < n; i++) {
        if (known[i].name && strcmp(known[i].name, name) == 0) {
            return known[i].code;
        }
    }
    request->error = "no such error";
    return RD_KAFKA_RESP_ERR_UNKNOWN;
}

static int number_of(struct request *request, const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > INT32_MAX) {
        request->error = "not a number";
        return 0;
    }
    return (int)value;
}

static void finish(struct request *request, rd_kafka_resp_err_t code)
{
    if (!request->error && code) {
        request->error = rd_kafka_err2str(code);
    }
}

static void run_down(struct request *request)
{
    int broker = number_of(request, request->words[1]);
    finish(request, rd_kafka_mock_broker_set_down(request->cluster, broker));
}

static void run_up(struct request *request)
{
    int broker = number_of(request, request->words[1]);
    finish(request, rd_kafka_mock_broker_set_up(request->cluster, broker));
}

static void run_rtt(struct request *request)
{
    int broker = number_of(request, request->words[1]);
    int rtt_ms = number_of(request, request->words[2]);
    finish(request,
           rd_kafka_mock_broker_set_rtt(request->cluster, broker, rtt_ms));
}

static void run_leader(struct request *request)
{
    int partition = number_of(request, request->words[2]);
    int broker = number_of(request, request->words[3]);
    finish(request, rd_kafka_mock_partition_set_leader(request->cluster,
                                                       request->words[1],
                                                       partition, broker));
}

static void run_coordinator(struct request *request)
{
    int broker = number_of(request, request->words[2]);
    finish(request, rd_kafka_mock_coordinator_set(request->cluster, "group",
                                                  request->words[1], broker));
}

static void run_topic(struct request *request)
{
    int partitions = number_of(request, request->words[2]);
    int copies = number_of(request, request->words[3]);
    finish(request,
           rd_kafka_mock_topic_create(request->cluster, request->words[1],
                                      partitions, copies));
}

static void run_topic_error(struct request *request)
{
    rd_kafka_resp_err_t code = error_of(request, request->words[2]);
    if (!request->error) {
        rd_kafka_mock_topic_set_error(request->cluster, request->words[1],
                                      code);
    }
}

static void run_request_error(struct request *request)
{
    int16_t api = api_of(request, request->words[1]);
    rd_kafka_resp_err_t code = error_of(request, request->words[2]);
    int count = number_of(request, request->words[3]);
    if (count > ERRORS_MAX) {
        request->error = "too many";
    }
    if (request->error) {
        return;
    }
    rd_kafka_resp_err_t codes[ERRORS_MAX];
    for (int i = 0; i < count; i++) {
        codes[i] = code;
    }
    rd_kafka_mock_push_request_errors_array(request->cluster, api,
                                            (size_t)count, codes);
}

static void run_clear_errors(struct request *request)
{
    int16_t api = api_of(request, request->words[1]);
    if (!request->error) {
        rd_kafka_mock_clear_request_errors(request->cluster, api);
    }
}

static const struct order {
    const char *name;
    int n_args;
    const char *usage;
    void (*run)(struct request *request);
} orders[] = {
    {"down", 1, "down BROKER", run_down},
    {"up", 1, "up BROKER", run_up},
    {"rtt", 2, "rtt BROKER MS", run_rtt},
    {"leader", 3, "leader TOPIC PARTITION BROKER", run_leader},
    {"coordinator", 2, "coordinator GROUP BROKER", run_coordinator},
    {"topic", 3, "topic NAME PARTITIONS REPLICATION", run_topic},
    {"topic-error", 2, "topic-error TOPIC ERROR", run_topic_error},
    {"request-error", 3, "request-error API ERROR COUNT", run_request_error},
    {"clear-errors", 1, "clear-errors API", run_clear_errors},
};

static void run_order(struct request *request, int n_words)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (strcmp(orders[i].name, request->words[0]) != 0) {
            continue;
        }
        if (orders[i].n_args == n_words - 1) {
            orders[i].run(request);
        } else {
            request->error = orders[i].usage;
        }
        return;
    }
    request->error = "no such command";
}

static void run_line(rd_kafka_mock_cluster_t *cluster, char *line)
{
    struct request request = {.cluster = cluster};
    int n = 0;
    char *rest = line, *word;
    while (n < WORDS_MAX && (word = strtok_r(rest, " \n", &rest))) {
        request.words[n++] = word;
    }
    if (n == 0) {
        return;
    }
    run_order(&request, n);
    if (request.error) {
        printf("error: %s\n", request.error);
    } else {
        puts("ok");
    }
    tool_flush();
}

static void create_topics(rd_kafka_mock_cluster_t *cluster,
                          const struct tool *tool, int brokers)
{
    for (size_t i = 1; i < tool->n_args; i++) {
        char *topic = mem_strdup(tool->args[i]);
        char *partitions = strchr(topic, ':');
        if (!partitions) {
            tool_die(EX_USAGE, "'%s' is not TOPIC:PARTITIONS", topic);
        }
        *partitions++ = '\0';
        rd_kafka_resp_err_t code = rd_kafka_mock_topic_create(
            cluster, topic, (int)tool_number(partitions, "partitions"),
            brokers);
        if (code) {
            tool_die(EX_USAGE, "%s: %s", topic, rd_kafka_err2str(code));
        }
        free(topic);
    }
}

int mock_run(const struct tool *tool)
{
    int brokers = (int)tool_number(tool->args[0], "brokers");
    rd_kafka_t *client = tool_client(tool, RD_KAFKA_PRODUCER, NULL, NULL);
    rd_kafka_mock_cluster_t *cluster =
        rd_kafka_mock_cluster_new(client, brokers);
    if (!cluster) {
        tool_die(EX_USAGE, "no mock cluster of %d brokers", brokers);
    }
    create_topics(cluster, tool, brokers);
    puts(rd_kafka_mock_cluster_bootstraps(cluster));
    tool_flush();
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        run_line(cluster, line);
    }
    free(line);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(client);
    return 0;
}
