/* SPDX-License-Identifier: MIT */
#include "app/kafka_setup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "app/labels.h"
#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "handler/kafka.h"
#include "handler/kafka_publisher.h"

enum { DRAIN_MS = 3000 };

/* The routes that read in one group of one cluster. */
struct group {
    const struct kafka_cluster *cluster;
    const char *name;
    struct kafka_route *routes;
    size_t n_routes;
    struct kafka_stream *streams;
    size_t n_streams;
    _Atomic(struct kafka_source *) source;
};

struct kafka_setup {
    const struct config *config;
    struct kafka_producer **producers; /* of each cluster; NULL: none */
    struct publisher *publishers;      /* of each route; ops NULL: none */
    struct group *groups;
    size_t n_groups;
};

/* --- groups -----------------------------------------------------------------
 */

static struct group *group_of(struct kafka_setup *setup,
                              const struct config_route *route)
{
    const struct config *config = setup->config;
    const struct kafka_cluster *cluster =
        &config
             ->all_clusters[config_cluster_index(config, route->kafka.cluster)];
    struct group *group;

    for (size_t i = 0; i < setup->n_groups; i++) {
        group = &setup->groups[i];
        if (group->cluster == cluster &&
            strcmp(group->name, route->kafka.group) == 0) {
            return group;
        }
    }
    group = &setup->groups[setup->n_groups++];
    group->cluster = cluster;
    group->name = route->kafka.group;
    return group;
}

static void add_stream(struct group *group, const char *topic, size_t stream)
{
    for (size_t i = 0; i < group->n_streams; i++) {
        if (group->streams[i].stream == stream) {
            return;
        }
    }
    group->streams =
        mem_grow(group->streams, group->n_streams + 1, sizeof *group->streams);
    group->streams[group->n_streams++] =
        (struct kafka_stream){.topic = topic, .stream = stream};
}

static void add_route(struct kafka_setup *setup, size_t index)
{
    const struct config_route *route = &setup->config->routes[index];
    struct group *group = group_of(setup, route);

    group->routes =
        mem_grow(group->routes, group->n_routes + 1, sizeof *group->routes);
    group->routes[group->n_routes++] = (struct kafka_route){
        .engine_route = index,
        .name = route->name,
        .topics = (const char *const *)route->kafka.topics.items,
        .n_topics = route->kafka.topics.n,
        .id = route->id,
        .tenant = route->tenant,
        .order_by = route->order_by,
    };
    for (size_t i = 0; i < route->kafka.topics.n; i++) {
        add_stream(group, route->kafka.topics.items[i],
                   config_stream_index(setup->config, route, i));
    }
}

static void warn_version(const struct config *config)
{
    const char *problem = kafka_version_problem();
    struct log_line line;

    if (config->n_all_clusters == 0 || problem == NULL) {
        return;
    }
    if (log_begin(&line, LOG_WARN, "kafka", problem)) {
        log_str(&line, "librdkafka", slice_of(rd_kafka_version_str()));
        log_end(&line);
    }
}

/* --- what is written --------------------------------------------------------
 */

static bool producer_of(struct kafka_setup *setup, const char *cluster,
                        struct kafka_producer **out, struct err *err)
{
    size_t index = config_cluster_index(setup->config, cluster);
    struct kafka_producer **producer = &setup->producers[index];

    if (*producer == NULL &&
        !kafka_producer_new(producer, &setup->config->all_clusters[index],
                            err)) {
        return false;
    }
    *out = *producer;
    return true;
}

bool kafka_setup_handler(struct kafka_setup *setup, size_t route,
                         struct handler *out, struct err *err)
{
    const struct config_route *from = &setup->config->routes[route];
    struct kafka_handler_options options = {
        .topic = from->produce.topic,
        .key = from->produce.key,
        .timeout_ms = from->policy.timeout_ms,
    };

    return producer_of(setup, from->produce.cluster, &options.producer, err) &&
           kafka_handler_new(out, &options, err);
}

static bool asks_for(const struct config_strings *headers, const char *whose)
{
    for (size_t i = 0; i < headers->n; i++) {
        if (strcmp(headers->items[i], whose) == 0) {
            return true;
        }
    }
    return false;
}

static bool make_publisher(struct kafka_setup *setup, size_t route,
                           struct err *err)
{
    const struct config_route *from = &setup->config->routes[route];
    struct kafka_publisher_options options = {
        .topic = from->dead_kafka.topic,
        .want_connect = asks_for(&from->dead_kafka.headers, "connect"),
        .want_spring = asks_for(&from->dead_kafka.headers, "spring"),
        .group = from->kafka.group,
    };

    if (!from->has_dead_kafka) {
        return true;
    }
    return (producer_of(setup, from->dead_kafka.cluster, &options.producer,
                        err) &&
            kafka_publisher_new(&setup->publishers[route], &options, err)) ||
           err_wrap(err, "route \"%s\"", from->name);
}

const struct publisher *kafka_setup_publisher(const struct kafka_setup *setup,
                                              size_t route)
{
    return &setup->publishers[route];
}

/* --- life ------------------------------------------------------------------
 */

bool kafka_setup_new(struct kafka_setup **out, const struct config *config,
                     struct err *err)
{
    struct kafka_setup *setup = mem_new(1, sizeof *setup);

    setup->config = config;
    setup->producers =
        mem_new(config->n_all_clusters + 1, sizeof(struct kafka_producer *));
    setup->publishers = mem_new(config->n_routes, sizeof *setup->publishers);
    setup->groups = mem_new(config->n_routes, sizeof *setup->groups);
    warn_version(config);
    for (size_t i = 0; i < config->n_routes; i++) {
        if (config->routes[i].has_kafka_source) {
            add_route(setup, i);
        }
        if (!make_publisher(setup, i, err)) {
            kafka_setup_free(setup);
            return false;
        }
    }
    *out = setup;
    return true;
}

static bool start_group(struct group *group,
                        const struct kafka_setup_start *start, struct err *err)
{
    struct buf store_id = BUF_INIT;
    struct kafka_source *source = NULL;
    bool ok;

    text_hex(store_uuid(start->store), &store_id);
    ok = kafka_source_start(&source,
                            &(struct kafka_source_options){
                                .cluster = group->cluster,
                                .group = group->name,
                                .routes = group->routes,
                                .n_routes = group->n_routes,
                                .streams = group->streams,
                                .n_streams = group->n_streams,
                                .outcomes = labels_kafka_outcomes(),
                                .store_id = buf_cstr(&store_id),
                                .drain_ms = DRAIN_MS,
                                .engine = start->engine,
                                .clock = clock_system(),
                                .fatal = start->fatal,
                                .fatal_ctx = start->fatal_ctx,
                            },
                            err);
    buf_free(&store_id);
    atomic_store(&group->source, ok ? source : NULL);
    return ok;
}

bool kafka_setup_start(struct kafka_setup *setup,
                       const struct kafka_setup_start *start, struct err *err)
{
    for (size_t i = 0; i < setup->n_groups; i++) {
        if (!start_group(&setup->groups[i], start, err)) {
            return false;
        }
    }
    return true;
}

void kafka_setup_stop_intake(struct kafka_setup *setup)
{
    for (size_t i = 0; setup != NULL && i < setup->n_groups; i++) {
        struct kafka_source *source = atomic_load(&setup->groups[i].source);

        if (source != NULL) {
            kafka_source_stop_intake(source);
        }
    }
}

void kafka_setup_end(struct kafka_setup *setup)
{
    if (setup == NULL) {
        return;
    }
    for (size_t i = 0; i < setup->n_groups; i++) {
        struct kafka_source *source =
            atomic_exchange(&setup->groups[i].source, NULL);

        kafka_source_free(&source);
    }
    for (size_t i = 0; i < setup->config->n_routes; i++) {
        const struct publisher *publisher = &setup->publishers[i];

        if (publisher->ops != NULL) {
            publisher->ops->stop(publisher->self);
        }
    }
}

static void free_publishers(struct kafka_setup *setup)
{
    for (size_t i = 0; i < setup->config->n_routes; i++) {
        const struct publisher *publisher = &setup->publishers[i];

        if (publisher->ops != NULL) {
            publisher->ops->free(publisher->self);
        }
    }
    free(setup->publishers);
}

void kafka_setup_free(struct kafka_setup *setup)
{
    if (setup == NULL) {
        return;
    }
    free_publishers(setup);
    for (size_t i = 0; i < setup->config->n_all_clusters; i++) {
        kafka_producer_free(setup->producers[i]);
    }
    for (size_t i = 0; i < setup->n_groups; i++) {
        free(setup->groups[i].routes);
        free(setup->groups[i].streams);
    }
    free(setup->producers);
    free(setup->groups);
    free(setup);
}

void kafka_setup_each_source(struct kafka_setup *setup,
                             void (*visit)(void *ctx, const char *cluster,
                                           struct kafka_source *source),
                             void *ctx)
{
    for (size_t i = 0; setup != NULL && i < setup->n_groups; i++) {
        struct kafka_source *source = atomic_load(&setup->groups[i].source);

        if (source != NULL) {
            visit(ctx, setup->groups[i].cluster->name, source);
        }
    }
}
