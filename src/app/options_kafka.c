/* SPDX-License-Identifier: MIT */
/* The keys of a route that speak of Kafka. */
#include "app/config.h"
#include "app/options.h"
#include "app/options_rows.h"

#define FIELD(member) OPTIONS_FIELD(struct config_route, member)

#define CLUSTER_ROW(member)                                                    \
    {                                                                          \
        .key = "cluster", .type = OPTION_STRING, FIELD(member),                \
        .preset = "\"default\"",                                               \
        .help =                                                                \
            "A name of `clusters`; `default` is the object `kafka` at the "    \
            "top."                                                             \
    }

static const struct option source_options[] = {
    {.key = "topics",
     .type = OPTION_STRINGS,
     .flags = OPTION_REQUIRED,
     FIELD(kafka.topics),
     .help = "The topics that are read, by their names; no patterns."},
    {.key = "group",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(kafka.group),
     .help = "The consumer group. Routes of one cluster that name the same one "
             "share one consumer."},
    CLUSTER_ROW(kafka.cluster),
};

const struct option_section options_kafka_source = {
    .path = "routes[].source.kafka",
    .options = source_options,
    .n = OPTIONS_COUNT(source_options),
    .intro =
        "Offsets are committed when everything below them is settled. A new "
        "group starts at the beginning of its topics. Several routes may read "
        "a topic in one group: a message is then one event on each of them, "
        "and they must differ in their namespace. `verify` and the `status`, "
        "`body` and `headers` of `respond` do not go with it, and values are "
        "taken from `kafka:…`, `json:…`, `body:sha256` and `const:…` only.",
    .example = "\"source\": { \"kafka\": { \"topics\": [\"orders\"], "
               "\"group\": \"onced\" } }",
};

static const struct option handler_options[] = {
    {.key = "topic",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(produce.topic),
     .help = "Where the event is written."},
    CLUSTER_ROW(produce.cluster),
    {.key = "key",
     .type = OPTION_CHOICE,
     FIELD(produce.key),
     .preset = "\"id\"",
     .choices = "id|key|none",
     .help = "The message's key: the event's id, the key of the message that "
             "arrived, or none."},
    {.key = "timeout",
     .type = OPTION_DURATION,
     FIELD(policy.timeout_ms),
     .preset = "\"30s\"",
     .min = 10,
     .max = OPTIONS_DAY,
     .help = "Of one attempt, until the brokers have the message. Handlers "
             "that write to one topic share the longest."},
    {.key = "concurrency",
     .type = OPTION_COUNT,
     FIELD(concurrency),
     .preset = "256",
     .min = 1,
     .max = 65536,
     .help = "Attempts at one time."},
};

const struct option_section options_kafka_handler = {
    .path = "routes[].handler.kafka",
    .options = handler_options,
    .n = OPTIONS_COUNT(handler_options),
    .intro = "Writes the event to a topic, with an idempotent producer and "
             "`acks=all`. What the message looks like, and what a delivery "
             "report means, is in [kafka.md](kafka.md).",
    .example = "\"handler\": { \"kafka\": { \"topic\": \"webhooks\", "
               "\"key\": \"id\" } }",
};

static const struct option dead_letter_options[] = {
    {.key = "topic",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(dead_kafka.topic),
     .help = "Where dead letters are written."},
    CLUSTER_ROW(dead_kafka.cluster),
    {.key = "headers",
     .type = OPTION_STRINGS,
     .flags = OPTION_LIST_ONLY,
     FIELD(dead_kafka.headers),
     .otherwise = "none",
     .choices = "connect|spring",
     .help = "Headers beside onced's own: as Kafka Connect, or as "
             "spring-kafka writes them."},
};

const struct option_section options_kafka_dead_letter = {
    .path = "routes[].dead_letter.kafka",
    .options = dead_letter_options,
    .n = OPTIONS_COUNT(dead_letter_options),
    .intro = "Each dead letter is also written to a topic, with all that "
             "arrived and with headers that say why it is there; see "
             "[kafka.md](kafka.md). It is written again until a broker has it; "
             "nothing else waits for that.",
    .example = "\"dead_letter\": { \"kafka\": { \"topic\": \"orders.dlq\", "
               "\"headers\": [\"spring\"] } }",
};
