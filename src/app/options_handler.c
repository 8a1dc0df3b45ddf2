/* SPDX-License-Identifier: MIT */
/* The keys of a route's handler. */
#include "app/config.h"
#include "app/options.h"
#include "app/options_rows.h"

#define FIELD(member) OPTIONS_FIELD(struct config_route, member)

static const struct option http_options[] = {
    {.key = "url",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     FIELD(url),
     .help = "Where events are sent, `http` or `https`. The query of the "
             "delivery is appended."},
    {.key = "timeout",
     .type = OPTION_DURATION,
     FIELD(policy.timeout_ms),
     .preset = "\"10s\"",
     .min = 1,
     .max = OPTIONS_DAY,
     .help = "Of one attempt."},
    {.key = "connect_timeout",
     .type = OPTION_DURATION,
     FIELD(http.connect_timeout_ms),
     .preset = "\"5s\"",
     .min = 1,
     .max = OPTIONS_HOUR,
     .help = "Of the connection, DNS and TLS included."},
    {.key = "concurrency",
     .type = OPTION_COUNT,
     FIELD(concurrency),
     .preset = "32",
     .min = 1,
     .max = 4096,
     .help = "Attempts at one time."},
    {.key = "headers",
     .type = OPTION_SECRET_MAP,
     FIELD(handler_headers),
     .otherwise = "none",
     .help = "Headers that replace those of the delivery; values may be "
             "secrets."},
    {.key = "max_result",
     .type = OPTION_SIZE,
     FIELD(max_result_bytes),
     .preset = "\"1MiB\"",
     .max = 64 * OPTIONS_MIB,
     .help = "How much of the answer's body is kept."},
    {.key = "follow_redirects",
     .type = OPTION_COUNT,
     FIELD(http.follow_redirects),
     .preset = "0",
     .max = 10,
     .help = "How many are followed."},
    {.key = "ca_file",
     .type = OPTION_FILE,
     FIELD(ca_file),
     .otherwise = "the system's",
     .help = "The authorities that are believed, PEM."},
    {.key = "not_applied",
     .type = OPTION_STATUSES,
     FIELD(not_applied),
     .otherwise = "408 409 421 425 429",
     .help = "Statuses that prove that nothing was done: tried again."},
    {.key = "final",
     .type = OPTION_STATUSES,
     FIELD(final),
     .otherwise = "other 4xx",
     .help = "Statuses that are the receiver's last word: dead letters."},
};

static const struct option_section http_section = {
    .path = "routes[].handler.http",
    .options = http_options,
    .n = OPTIONS_COUNT(http_options),
    .intro =
        "The event is sent with its method, query, body and end-to-end "
        "headers, and `Idempotency-Key` (the same on every attempt), "
        "`Onced-Route`, `Onced-Event-Id`, `Onced-Attempt`. These and `Host` "
        "cannot be set in `headers`.",
    .example =
        "\"handler\": { \"http\": { \"url\": \"https://app.internal/hooks\", "
        "\"timeout\": \"30s\",\n"
        "             \"headers\": { \"Authorization\": { \"env\": "
        "\"APP_TOKEN\" } } } }",
};

static const struct option exec_options[] = {
    {.key = "command",
     .type = OPTION_STRINGS,
     .flags = OPTION_REQUIRED | OPTION_LIST_ONLY,
     FIELD(command),
     .help = "The program and its arguments; no shell. Without a slash it is "
             "searched in `PATH`, else it is relative to this file."},
    {.key = "cwd",
     .type = OPTION_PATH,
     FIELD(cwd),
     .otherwise = "the folder of this file",
     .help = "Where it runs."},
    {.key = "timeout",
     .type = OPTION_DURATION,
     FIELD(policy.timeout_ms),
     .preset = "\"30s\"",
     .min = 1,
     .max = OPTIONS_DAY,
     .help = "Of one attempt; past it the process group is killed."},
    {.key = "concurrency",
     .type = OPTION_COUNT,
     FIELD(concurrency),
     .preset = "4",
     .min = 1,
     .max = 1024,
     .help = "Processes at one time."},
    {.key = "environment",
     .type = OPTION_SECRET_MAP,
     FIELD(environment),
     .otherwise = "none",
     .help = "More variables; values may be secrets."},
    {.key = "max_result",
     .type = OPTION_SIZE,
     FIELD(max_result_bytes),
     .preset = "\"1MiB\"",
     .max = 64 * OPTIONS_MIB,
     .help = "How much of the output is kept; the rest is dropped."},
};

static const struct option_section exec_section = {
    .path = "routes[].handler.exec",
    .options = exec_options,
    .n = OPTIONS_COUNT(exec_options),
    .intro =
        "One process per attempt. The body is its standard input, its "
        "standard output the result. Its environment has `ONCED_ROUTE`, "
        "`ONCED_EVENT_ID`, `ONCED_TENANT`, `ONCED_ATTEMPT`, "
        "`IDEMPOTENCY_KEY`, `CONTENT_TYPE`, `ONCED_METHOD`, `ONCED_PATH`, "
        "`ONCED_QUERY`, `ONCED_HEADER_<NAME>`; of onced's own environment it "
        "has `PATH`, `HOME`, `LANG` and `TZ`.",
    .example = "\"handler\": { \"exec\": { \"command\": [\"./on-payment\", "
               "\"--live\"], \"concurrency\": 8 } }",
};

static const struct option noop_options[] = {
    {.key = "delay",
     .type = OPTION_STRING,
     FIELD(noop_delay),
     .preset = "\"0ms\"",
     .help = "How long an attempt takes: `5ms`, or `0ms..5ms` for anything "
             "between."},
    {.key = "fail",
     .type = OPTION_SHARE,
     FIELD(noop.fail),
     .preset = "0",
     .help = "The share of attempts that end with status 503, 0 to 1."},
    {.key = "timeout",
     .type = OPTION_DURATION,
     FIELD(policy.timeout_ms),
     .preset = "\"10s\"",
     .min = 1,
     .max = OPTIONS_DAY,
     .help = "Of one attempt."},
    {.key = "concurrency",
     .type = OPTION_COUNT,
     FIELD(concurrency),
     .preset = "256",
     .min = 1,
     .max = 65536,
     .help = "Attempts at one time."},
};

static const struct option_section noop_section = {
    .path = "routes[].handler.noop",
    .options = noop_options,
    .n = OPTIONS_COUNT(noop_options),
    .intro = "Does nothing and succeeds: for dry runs, tests and benchmarks.",
    .example = "\"handler\": { \"noop\": { \"delay\": \"0ms..5ms\", \"fail\": "
               "0.1 } }",
};

static const struct option handler_options[] = {
    {.key = "http",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_http),
     .section = &http_section,
     .otherwise = "none",
     .help = "Sends the event to a URL."},
    {.key = "exec",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_exec),
     .section = &exec_section,
     .otherwise = "none",
     .help = "Runs a program."},
    {.key = "noop",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_noop),
     .section = &noop_section,
     .otherwise = "none",
     .help = "Does nothing."},
    {.key = "kafka",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(has_kafka),
     .section = &options_kafka_handler,
     .otherwise = "none",
     .help = "Writes it to a topic."},
    {.key = "plugin", .flags = OPTION_UNSUPPORTED},
    {.key = "rate", .flags = OPTION_UNSUPPORTED},
};

const struct option_section options_handler = {
    .path = "routes[].handler",
    .options = handler_options,
    .n = OPTIONS_COUNT(handler_options),
    .intro = "Exactly one of these.",
};
