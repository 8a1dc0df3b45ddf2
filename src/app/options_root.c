/* SPDX-License-Identifier: MIT */
/* The keys outside of "routes", in the order of docs/config.md. */
#include "app/config.h"
#include "app/options.h"
#include "app/options_rows.h"

#define FIELD(member) OPTIONS_FIELD(struct config, member)
#define TOKEN(member) OPTIONS_FIELD(struct config_token, member)

static const struct option store_options[] = {
    {.key = "path",
     .type = OPTION_PATH,
     FIELD(store.path),
     .preset = "\"var/onced\"",
     .help = "The store's folder, on a local disk. One process owns it."},
    {.key = "max_size",
     .type = OPTION_SIZE,
     FIELD(store.max_bytes),
     .preset = "\"16GiB\"",
     .min = 16 * OPTIONS_MIB,
     .max = 16 * OPTIONS_TIB,
     .help = "What the store may take. When it is full, new events are "
             "answered 503 until room is made."},
    {.key = "retention",
     .type = OPTION_DURATION,
     FIELD(store.retention_ms),
     .preset = "\"35d\"",
     .min = OPTIONS_SECOND,
     .max = 3650 * OPTIONS_DAY,
     .help = "How long the id of a settled event is remembered at least. "
             "Events that are not settled never expire."},
};

static const struct option_section store_section = {
    .path = "store",
    .options = store_options,
    .n = OPTIONS_COUNT(store_options),
    .intro = "Where events are kept, and for how long.",
    .example =
        "\"store\": { \"path\": \"/var/lib/onced\", \"max_size\": \"64GiB\" }",
};

static const struct option tls_options[] = {
    {.key = "certificate",
     .type = OPTION_FILE,
     .flags = OPTION_REQUIRED,
     FIELD(listen.tls_certificate),
     .help = "The certificate chain, PEM."},
    {.key = "key",
     .type = OPTION_SECRET_FILE,
     .flags = OPTION_REQUIRED,
     FIELD(listen.tls_key),
     .help = "Its private key, PEM."},
    {.key = "client_ca",
     .type = OPTION_FILE,
     FIELD(listen.tls_client_ca),
     .otherwise = "no certificate is asked for",
     .help = "When set, only clients with a certificate of this authority "
             "are served."},
};

static const struct option_section tls_section = {
    .path = "listen.tls",
    .options = tls_options,
    .n = OPTIONS_COUNT(tls_options),
    .intro = "TLS on the TCP addresses; without it they speak plain HTTP.",
    .example = "\"tls\": { \"certificate\": \"tls/chain.pem\", "
               "\"key\": \"tls/key.pem\" }",
};

static const struct option listen_options[] = {
    {.key = "address",
     .type = OPTION_STRINGS,
     FIELD(listen.addresses),
     .preset = "[\"127.0.0.1:8080\"]",
     .help = "Where webhooks arrive: `host:port`, `[v6]:port` or "
             "`unix:/path`. The host is a number; `0.0.0.0` and `[::]` are "
             "all interfaces."},
    {.key = "max_body",
     .type = OPTION_SIZE,
     FIELD(listen.max_body_bytes),
     .preset = "\"1MiB\"",
     .min = 1,
     .max = 256 * OPTIONS_MIB,
     .help = "The largest body, for routes that do not say their own."},
    {.key = "request_timeout",
     .type = OPTION_DURATION,
     FIELD(listen.request_timeout_ms),
     .preset = "\"10s\"",
     .min = 100,
     .max = OPTIONS_HOUR,
     .help = "From the first byte of a request to the last of its body."},
    {.key = "max_connections",
     .type = OPTION_COUNT,
     FIELD(listen.max_connections),
     .preset = "4096",
     .min = 1,
     .max = 65536,
     .help = "Connections at one time, over all addresses."},
    {.key = "max_in_flight",
     .type = OPTION_SIZE,
     FIELD(listen.max_in_flight_bytes),
     .preset = "\"128MiB\"",
     .min = 64 * OPTIONS_KIB,
     .max = 64 * OPTIONS_GIB,
     .help = "Bodies held in memory at one time, over all connections; above "
             "it requests get 503."},
    {.key = "threads",
     .type = OPTION_COUNT,
     FIELD(listen.threads),
     .preset = "0",
     .max = 64,
     .help = "Threads per TCP address. 0: one per processor, at most 4."},
    {.key = "tls",
     .type = OPTION_OBJECT,
     .flags = OPTION_OPTIONAL,
     FIELD(listen.has_tls),
     .section = &tls_section,
     .otherwise = "plain HTTP",
     .help = "Certificate and key."},
    {.key = "trusted_proxies",
     .type = OPTION_STRINGS,
     FIELD(listen.trusted_proxies),
     .otherwise = "none is trusted",
     .help = "Networks whose `X-Forwarded-For` is believed."},
};

static const struct option_section listen_section = {
    .path = "listen",
    .options = listen_options,
    .n = OPTIONS_COUNT(listen_options),
    .intro = "The listener of the webhooks. It serves the routes and nothing "
             "else.",
    .example = "\"listen\": { \"address\": [\"0.0.0.0:8443\", \"[::]:8443\"],\n"
               "            \"tls\": { \"certificate\": \"tls/chain.pem\", "
               "\"key\": \"tls/key.pem\" },\n"
               "            \"trusted_proxies\": [\"10.0.0.0/8\"] }",
};

static const struct option inbox_options[] = {
    {.key = "max_items",
     .type = OPTION_COUNT,
     FIELD(inbox.max_items),
     .preset = "16384",
     .min = 64,
     .max = 1048576,
     .help = "Deliveries that wait for the engine."},
    {.key = "max_bytes",
     .type = OPTION_SIZE,
     FIELD(inbox.max_bytes),
     .preset = "\"64MiB\"",
     .min = OPTIONS_MIB,
     .max = 64 * OPTIONS_GIB,
     .help = "What they may take together."},
};

static const struct option_section inbox_section = {
    .path = "inbox",
    .options = inbox_options,
    .n = OPTIONS_COUNT(inbox_options),
    .intro = "The queue between the listener and the engine. When it is full, "
             "senders get 503 with `Retry-After`. Results of handlers and "
             "orders of operators have room of their own.",
    .example = "\"inbox\": { \"max_items\": 4096, \"max_bytes\": \"16MiB\" }",
};

static const struct option token_options[] = {
    {.key = "name",
     .type = OPTION_STRING,
     .flags = OPTION_REQUIRED,
     TOKEN(name),
     .help = "Who acts; stands in the history of what was ordered."},
    {.key = "role",
     .type = OPTION_CHOICE,
     TOKEN(may_operate),
     .preset = "\"read\"",
     .choices = "read|operate",
     .help = "`read` looks, `operate` also acts."},
    {.key = "file",
     .type = OPTION_SECRET_PART,
     TOKEN(secret),
     .otherwise = "one of the three",
     .help = "The file that holds the token."},
    {.key = "env",
     .type = OPTION_SECRET_PART,
     TOKEN(secret),
     .otherwise = "one of the three",
     .help = "Or the environment variable that holds it."},
    {.key = "default",
     .type = OPTION_SECRET_PART,
     TOKEN(secret),
     .otherwise = "none",
     .help = "What it is when the variable is not set."},
    {.key = "value",
     .type = OPTION_SECRET_PART,
     TOKEN(secret),
     .otherwise = "one of the three",
     .help = "Or the token itself; not in production."},
};

static const struct option_section token_section = {
    .path = "admin.tokens[]",
    .options = token_options,
    .n = OPTIONS_COUNT(token_options),
    .intro = "One bearer token each. Give one of `file`, `env` and `value`.",
    .example = "\"tokens\": [ { \"name\": \"ops\", \"role\": \"operate\", "
               "\"file\": \"secrets/ops\" } ]",
};

static const struct option admin_options[] = {
    {.key = "socket",
     .type = OPTION_PATH,
     FIELD(admin.socket),
     .otherwise = "`admin.sock` in the store's folder",
     .help = "The unix socket that the command line talks to. Its file mode "
             "decides who may."},
    {.key = "address",
     .type = OPTION_STRING,
     FIELD(admin.address),
     .otherwise = "no TCP",
     .help = "`host:port` for `/healthz`, `/readyz`, `/metrics` and, with a "
             "token, `/v1`."},
    {.key = "tokens",
     .type = OPTION_OBJECTS,
     /* NOLINTNEXTLINE(bugprone-sizeof-expression): of the pointer */
     FIELD(admin.tokens),
     .section = &token_section,
     .item_size = sizeof(struct config_token),
     .count_offset = offsetof(struct config, admin.n_tokens),
     .otherwise = "none",
     .help = "Who may use `/v1` over TCP."},
};

static const struct option_section admin_section = {
    .path = "admin",
    .options = admin_options,
    .n = OPTIONS_COUNT(admin_options),
    .intro = "The listener of the operators: health, metrics and the admin "
             "API.",
    .example = "\"admin\": { \"address\": \"127.0.0.1:9180\",\n"
               "           \"tokens\": [ { \"name\": \"grafana\", "
               "\"file\": \"secrets/grafana\" } ] }",
};

static const struct option log_options[] = {
    {.key = "level",
     .type = OPTION_CHOICE,
     FIELD(log.level),
     .preset = "\"info\"",
     .choices = "debug|info|warn|error|off",
     .help = "The least important lines that are written."},
    {.key = "format",
     .type = OPTION_CHOICE,
     FIELD(log.format),
     .preset = "\"logfmt\"",
     .choices = "logfmt|json",
     .help = "How a line looks."},
};

static const struct option_section log_section = {
    .path = "log",
    .options = log_options,
    .n = OPTIONS_COUNT(log_options),
    .intro = "Log lines go to standard error.",
    .example = "\"log\": { \"level\": \"warn\", \"format\": \"json\" }",
};

static const struct option root_options[] = {
    {.key = "$schema",
     .type = OPTION_IGNORED,
     .otherwise = "none",
     .help = "For editors: the address of `onced.schema.json`."},
    {.key = "store",
     .type = OPTION_OBJECT,
     .section = &store_section,
     .help = "Where events are kept."},
    {.key = "listen",
     .type = OPTION_OBJECT,
     .section = &listen_section,
     .help = "Where webhooks arrive."},
    {.key = "inbox",
     .type = OPTION_OBJECT,
     .section = &inbox_section,
     .help = "How much may wait for the engine."},
    {.key = "admin",
     .type = OPTION_OBJECT,
     .section = &admin_section,
     .help = "Where operators look and act."},
    {.key = "log",
     .type = OPTION_OBJECT,
     .section = &log_section,
     .help = "What is logged, and how."},
    {.key = "shutdown_timeout",
     .type = OPTION_DURATION,
     FIELD(shutdown_timeout_ms),
     .preset = "\"10s\"",
     .max = OPTIONS_HOUR,
     .help = "How long attempts may still run after SIGTERM."},
    {.key = "routes",
     .type = OPTION_OBJECTS,
     .flags = OPTION_REQUIRED,
     /* NOLINTNEXTLINE(bugprone-sizeof-expression): of the pointer */
     FIELD(routes),
     .section = &options_route,
     .item_size = sizeof(struct config_route),
     .count_offset = offsetof(struct config, n_routes),
     .help = "What arrives where, and who handles it. At least one."},
    {.key = "kafka",
     .type = OPTION_PROPERTIES,
     FIELD(kafka),
     .otherwise = "none",
     .help = "The Kafka cluster that routes mean when they name none: "
             "[properties of librdkafka](#kafka-clusters)."},
    {.key = "clusters",
     .type = OPTION_CLUSTERS,
     FIELD(clusters),
     .otherwise = "none",
     .help = "More clusters, each under the name by which routes call it."},
};

const struct option_section options_root = {
    .path = "",
    .options = root_options,
    .n = OPTIONS_COUNT(root_options),
};
