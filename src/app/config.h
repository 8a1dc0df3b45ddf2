/* SPDX-License-Identifier: MIT */
/*
 * The configuration: one JSON file with comments, read once at start.
 *
 * config_load reports every error of the file at once, each with its JSON
 * pointer, and never prints a secret. What it returns is checked and
 * complete: defaults are filled in, values from the environment and from
 * files are read, paths are absolute. One table (options.h) holds every key
 * with its type, default, range, help and the field below that it fills;
 * docs/config.md and config/onced.schema.json are generated from it.
 */
#ifndef ONCED_APP_CONFIG_H
#define ONCED_APP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "core/outcome.h"
#include "core/record.h"
#include "engine/engine.h"
#include "handler/exec.h"
#include "handler/http.h"
#include "handler/kafka.h"
#include "handler/noop.h"
#include "kafka/client.h"
#include "source/http.h"
#include "source/value.h"
#include "source/verify.h"

struct config_strings {
    char **items; /* n of them, and a NULL behind */
    size_t n;
};

/* Names and values of a map, in the order of the file. */
struct config_pairs {
    const char *(*items)[2];
    size_t n;
};

/* "clusters": librdkafka's properties, by the name of the cluster. */
struct config_clusters {
    struct config_cluster {
        char *name;
        struct config_pairs properties;
    } * items;
    size_t n;
};

struct config_statuses {
    uint16_t items[OUTCOME_STATUSES_MAX];
    size_t n;
    bool set; /* the key was there; its list may be empty */
};

/* "verify" as configured; `verifier` of the route is made from it. */
struct config_verify {
    char *algorithm, *header, *encoding, *prefix, *key_encoding;
    struct config_strings signed_pieces;
    bool has_timestamp;
    char *timestamp_header, *timestamp_unit;
    int64_t tolerance_ms; /* < 0: the scheme's default */
    struct config_strings secrets;
};

enum config_handler {
    CONFIG_HANDLER_NONE, /* retired route */
    CONFIG_HANDLER_HTTP,
    CONFIG_HANDLER_EXEC,
    CONFIG_HANDLER_NOOP,
    CONFIG_HANDLER_KAFKA,
};

struct config_route {
    char *name;
    char *namespace;
    bool retired;
    struct policy policy;
    struct outcome_rules rules;
    struct store_retention retention;
    uint64_t max_dead_bytes;
    enum on_dead_full on_dead_full;
    bool has_source, has_http_source, has_kafka_source;
    struct {
        char *cluster, *group;
        struct config_strings topics;
    } kafka; /* source.kafka */
    /* source.http */
    char *path;
    struct config_strings methods;
    struct config_strings allow;
    uint64_t max_body_bytes;
    char *public_url;          /* as the sender knows the path, or NULL */
    struct verifier *verifier; /* NULL: "none" was spelled out */
    bool has_verify;
    char *verify_scheme;
    struct config_verify verify;
    struct value id, tenant, order_by; /* "none": choices is not NULL, but
                                          n_choices is 0 */
    uint16_t answer_status;
    char *answer_body;
    char *answer_content_type;
    struct config_pairs answer_headers; /* without Content-Type */
    bool has_dead_kafka;
    struct {
        char *cluster, *topic;
        struct config_strings headers;
    } dead_kafka; /* dead_letter.kafka */
    /* handler */
    bool has_handler, has_http, has_exec, has_noop, has_kafka;
    enum config_handler handler; /* the one of the four that is there */
    struct {
        char *cluster, *topic;
        enum kafka_key key;
    } produce; /* handler.kafka */
    uint32_t concurrency;
    uint64_t max_result_bytes;
    struct config_pairs handler_headers, environment;
    struct config_strings command, environment_lines; /* "NAME=value" */
    struct config_statuses not_applied, final;
    char *url, *cwd, *ca_file, *noop_delay;
    struct http_handler_options http; /* strings owned by the config, like */
    struct exec_handler_options exec; /* these; lease_dir: by worker */
    struct noop_handler_options noop;
};

struct config_token {
    char *name;
    bool may_operate; /* role operate, else read */
    char *secret;
};

struct config {
    char *file;   /* absolute */
    char *folder; /* of the file */
    struct {
        char *path;
        uint64_t max_bytes;
        int64_t retention_ms;
    } store;
    struct {
        struct config_strings addresses;
        uint64_t max_body_bytes;
        int64_t request_timeout_ms;
        uint32_t max_connections;
        uint64_t max_in_flight_bytes; /* bodies held, all connections */
        uint32_t threads;             /* 0: one per processor, at most 4 */
        bool has_tls;
        char *tls_certificate, *tls_key, *tls_client_ca;
        struct config_strings trusted_proxies;
    } listen;
    struct {
        uint32_t max_items;
        uint64_t max_bytes;
    } inbox;
    struct {
        char *socket;
        char *address; /* NULL: TCP is not served */
        struct config_token *tokens;
        size_t n_tokens;
    } admin;
    struct {
        enum log_level level;
        enum log_format format;
    } log;
    int64_t shutdown_timeout_ms;
    struct config_pairs kafka; /* items NULL: it is not there */
    struct config_clusters clusters;
    struct config_route *routes;
    size_t n_routes;
    /* `kafka` and `clusters` together, as the clients take them; those of the
     * routes are among them. */
    struct kafka_cluster *all_clusters;
    size_t n_all_clusters;
    struct config_strings streams; /* "cluster/topic/group" of all routes */
    struct buf warnings; /* lines for stderr: group-readable secret, … */
};

/* On failure `problems` gets one line per error ("/routes/0/id: …"), and err
 * the summary; kind ERR_CONFIG, or ERR_NOT_FOUND when there is no file. */
bool config_load(struct config **out, const char *path, struct buf *problems,
                 struct err *err) MUST_CHECK;
void config_free(struct config *config);

/* The place of a cluster that a route names, in all_clusters. */
size_t config_cluster_index(const struct config *config, const char *name);

/* The place in `streams` of a route's i-th topic. */
size_t config_stream_index(const struct config *config,
                           const struct config_route *route, size_t topic);

/* Makes clients of all clusters, for a moment, and talks to nobody; for
 * `check`. False with a line in `problems` for each that cannot be made. */
bool config_try_clients(const struct config *config,
                        struct buf *problems) MUST_CHECK;

/* What is in force, as JSON, secrets masked (`check --effective`). */
void config_write_effective(const struct config *config, struct buf *out);

/* Generated pages. */
void config_write_docs(struct buf *out);   /* docs/config.md */
void config_write_schema(struct buf *out); /* config/onced.schema.json */

#endif
