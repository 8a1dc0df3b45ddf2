/* SPDX-License-Identifier: MIT */
/* What the table cannot say of the keys of a route that speak of Kafka. */
#include <string.h>

#include "app/config_internal.h"
#include "base/check.h"

enum {
    TOPIC_MAX = 249,
    /* For the bound of the memory: what brokers take unless told otherwise. */
    MESSAGE_BYTES = 1048576,
};

#define GIVE_UP_AFTER_MS (INT64_C(3600) * 1000)

/* --- topics and clusters ---------------------------------------------------*/

static const char *topic_problem(const char *topic)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    size_t len = strlen(topic);

    if (topic[0] == '^') {
        return "must be the name of a topic; patterns are not supported";
    }
    if (len > TOPIC_MAX || strspn(topic, allowed) != len ||
        strcmp(topic, ".") == 0 || strcmp(topic, "..") == 0) {
        return "must be the name of a topic, 1 to 249 of A-Z a-z 0-9 . _ -";
    }
    return NULL;
}

static void check_topic(struct config_reading *reading, const char *topic)
{
    const char *problem = topic ? topic_problem(topic) : NULL;

    if (problem) {
        config_problem_at(reading, "topic", "%s", problem);
    }
}

static void check_cluster(struct config_reading *reading, const char *name)
{
    size_t index;

    if (!name || config_clusters_find(reading->config, name, &index)) {
        return;
    }
    if (strcmp(name, CONFIG_DEFAULT_CLUSTER) == 0) {
        config_problem_at(reading, "cluster",
                          "is \"default\", which is the object \"kafka\" at "
                          "the top, and there is none");
    } else {
        config_problem_at(reading, "cluster",
                          "there is none of that name in \"clusters\"");
    }
}

/* NULL, where it could not be read, is like nothing. */
static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static bool has_topic(const struct config_strings *topics, const char *topic)
{
    for (size_t i = 0; i < topics->n; i++) {
        if (strcmp(topics->items[i], topic) == 0) {
            return true;
        }
    }
    return false;
}

/* What goes to a topic would come back by it, and so on for ever. */
static void check_target(struct config_reading *reading,
                         const struct config_route *route, const char *cluster,
                         const char *topic)
{
    check_cluster(reading, cluster);
    check_topic(reading, topic);
    if (topic && same(cluster, route->kafka.cluster) &&
        has_topic(&route->kafka.topics, topic)) {
        config_problem_at(reading, "topic",
                          "is one that the route reads: it would go round for "
                          "ever");
    }
}

/* --- a route's source ------------------------------------------------------*/

static void check_topics(struct config_reading *reading,
                         const struct config_strings *topics)
{
    size_t mark = config_enter(reading, "topics");

    for (size_t i = 0; i < topics->n; i++) {
        const char *problem = topic_problem(topics->items[i]);
        size_t item = config_enter_item(reading, i);

        if (problem) {
            config_problem(reading, "%s", problem);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(topics->items[k], topics->items[i]) == 0) {
                config_problem(reading, "is in the list twice");
            }
        }
        config_leave(reading, item);
    }
    config_leave(reading, mark);
}

/* What is for a sender that waits for an answer. */
static void check_http_only(struct config_reading *reading,
                            const struct config_route *route)
{
    const struct {
        const char *member;
        bool is_there;
    } keys[] = {{"respond/status", route->answer_status != 0},
                {"respond/body", route->answer_body != NULL},
                {"respond/headers", route->answer_headers.n > 0}};

    if (route->has_verify) {
        config_problem_at(reading, "verify",
                          "goes with a source that is http: the right to write "
                          "to a topic is the broker's to give");
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].is_there) {
            config_problem_at(reading, keys[i].member,
                              "goes with a source that is http: here nobody "
                              "is answered");
        }
    }
}

/* In order for each key of a message, unless told otherwise. */
static void fill_order(struct config_reading *reading,
                       struct config_route *route)
{
    const struct slice key = SLICE("kafka:key");
    struct err err;
    bool ok;

    if (route->order_by.choices || config_has_problem(reading, "order_by")) {
        return;
    }
    ok = value_add_choice(&route->order_by, &key, 1, &err);
    CHECK(ok);
}

void config_kafka_source_check(struct config_reading *reading,
                               struct config_route *route)
{
    size_t source = config_enter(reading, "source");
    size_t kafka = config_enter(reading, "kafka");
    const char *problem = route->kafka.group
                              ? value_check_id(slice_of(route->kafka.group))
                              : NULL;

    check_topics(reading, &route->kafka.topics);
    check_cluster(reading, route->kafka.cluster);
    if (problem) {
        config_problem_at(reading, "group", "%s", problem);
    }
    config_leave(reading, kafka);
    config_leave(reading, source);
    check_http_only(reading, route);
    fill_order(reading, route);
    if (route->policy.give_up_after_ms < 0) {
        route->policy.give_up_after_ms = GIVE_UP_AFTER_MS;
    }
    route->max_body_bytes = MESSAGE_BYTES;
}

/* Two routes that share a topic: one message is an event on each of them. */
void config_kafka_check_pair(struct config_reading *reading,
                             const struct config_route *earlier,
                             const struct config_route *later)
{
    const struct config_strings *topics = &earlier->kafka.topics;

    if (!same(earlier->kafka.group, later->kafka.group) ||
        !same(earlier->kafka.cluster, later->kafka.cluster) ||
        !same(earlier->namespace, later->namespace)) {
        return;
    }
    for (size_t i = 0; i < topics->n; i++) {
        if (has_topic(&later->kafka.topics, topics->items[i])) {
            config_problem_at(reading, "namespace",
                              "is that of route \"%s\", which reads topic "
                              "\"%s\" in the same group",
                              earlier->name ? earlier->name : "?",
                              topics->items[i]);
            return;
        }
    }
}

/* --- what is written -------------------------------------------------------*/

void config_kafka_handler_check(struct config_reading *reading,
                                struct config_route *route)
{
    size_t mark = config_enter(reading, "kafka");

    route->handler = CONFIG_HANDLER_KAFKA;
    check_target(reading, route, route->produce.cluster, route->produce.topic);
    config_leave(reading, mark);
}

void config_dead_letter_check(struct config_reading *reading,
                              const struct config_route *route)
{
    size_t dead = config_enter(reading, "dead_letter");
    size_t kafka = config_enter(reading, "kafka");

    if (route->has_dead_kafka) {
        check_target(reading, route, route->dead_kafka.cluster,
                     route->dead_kafka.topic);
    }
    config_leave(reading, kafka);
    config_leave(reading, dead);
}

/* --- streams ---------------------------------------------------------------*/

/* Whether it is there, and where it is or would be. */
static bool find_stream(const struct config *config,
                        const struct config_route *route, size_t topic,
                        struct buf *name, size_t *index)
{
    buf_clear(name);
    buf_printf(name, "%s/%s/%s", route->kafka.cluster,
               route->kafka.topics.items[topic], route->kafka.group);
    for (*index = 0; *index < config->streams.n; (*index)++) {
        if (strcmp(config->streams.items[*index], buf_cstr(name)) == 0) {
            return true;
        }
    }
    return false;
}

void config_streams_make(struct config *config)
{
    struct buf name = BUF_INIT;
    size_t index;

    for (size_t i = 0; i < config->n_routes; i++) {
        const struct config_route *route = &config->routes[i];

        for (size_t k = 0; k < route->kafka.topics.n; k++) {
            if (!find_stream(config, route, k, &name, &index)) {
                config_strings_add(&config->streams, mem_dup(buf_slice(&name)));
            }
        }
    }
    buf_free(&name);
}

size_t config_stream_index(const struct config *config,
                           const struct config_route *route, size_t topic)
{
    struct buf name = BUF_INIT;
    size_t index;
    bool found = find_stream(config, route, topic, &name, &index);

    CHECK(found);
    buf_free(&name);
    return index;
}
