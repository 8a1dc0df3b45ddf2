/* SPDX-License-Identifier: MIT */
#include "source/kafka.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "source/kafka_loop.h"
#include "source/kafka_rebalance.h"
#include "source/kafka_shared.h"

enum { WHY_SIZE = 512, VALUE_SIZE = 64 };

/* --- topics --------------------------------------------------------------- */

static struct kafka_feed *find_feed(struct kafka_source *source,
                                    const char *topic)
{
    for (size_t i = 0; i < source->n_feeds; i++) {
        if (strcmp(source->feeds[i].topic, topic) == 0) {
            return &source->feeds[i];
        }
    }
    return NULL;
}

static bool add_route(struct kafka_source *source,
                      const struct kafka_route *route, struct err *err)
{
    for (size_t i = 0; i < route->n_topics; i++) {
        struct kafka_feed *feed = find_feed(source, route->topics[i]);

        if (route->topics[i][0] == '^') {
            return err_set(err, ERR_CONFIG,
                           "route \"%s\": topic \"%s\": patterns are not "
                           "supported",
                           route->name, route->topics[i]);
        }
        CHECK(feed != NULL);
        if (feed->n_routes > 0 && feed->routes[feed->n_routes - 1] == route) {
            continue; /* named twice */
        }
        feed->routes = mem_grow(feed->routes, feed->n_routes + 1,
                                sizeof(struct kafka_route *));
        feed->routes[feed->n_routes++] = route;
    }
    if (route->engine_route >= source->n_unanswered) {
        source->n_unanswered = route->engine_route + 1;
    }
    return true;
}

static bool make_feeds(struct kafka_source *source, struct err *err)
{
    const struct kafka_source_options *options = &source->options;

    source->feeds = mem_new(options->n_streams, sizeof *source->feeds);
    for (size_t i = 0; i < options->n_streams; i++) {
        source->feeds[source->n_feeds++] = (struct kafka_feed){
            .topic = options->streams[i].topic,
            .stream = options->streams[i].stream,
        };
    }
    for (size_t i = 0; i < options->n_routes; i++) {
        if (!add_route(source, &options->routes[i], err)) {
            return false;
        }
    }
    source->unanswered =
        mem_new(source->n_unanswered, sizeof *source->unanswered);
    return true;
}

/* --- what the library tells ----------------------------------------------- */

static void on_error(rd_kafka_t *client, int code, const char *why,
                     void *opaque)
{
    struct kafka_source *source = opaque;
    struct log_line line;

    CHECK(client == source->client);
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        kafka_loop_fail(source);
        return;
    }
    if (log_begin(&line, LOG_WARN, "kafka", "cluster")) {
        log_str(&line, "cluster", slice_of(source->options.cluster->name));
        log_str(&line, "group", slice_of(source->options.group));
        log_str(&line, "err", slice_of(why));
        log_end(&line);
    }
}

/* The library tries again with the next one. */
static void on_commit(rd_kafka_t *client, rd_kafka_resp_err_t code,
                      rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
    const struct kafka_source *source = opaque;
    struct log_line line;

    (void)client;
    (void)offsets;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR ||
        code == RD_KAFKA_RESP_ERR__NO_OFFSET) {
        return;
    }
    if (log_begin(&line, LOG_WARN, "kafka", "offsets were not committed")) {
        log_str(&line, "group", slice_of(source->options.group));
        log_str(&line, "err", slice_of(rd_kafka_err2str(code)));
        log_end(&line);
    }
}

/* --- the consumer --------------------------------------------------------- */

static int64_t read_ms(const rd_kafka_conf_t *conf, const char *name)
{
    char text[VALUE_SIZE];
    size_t size = sizeof text;
    uint64_t value = 0;

    CHECK(rd_kafka_conf_get(conf, name, text, &size) == RD_KAFKA_CONF_OK);
    CHECK(text_u64(slice_of(text), &value));
    return (int64_t)value;
}

static void name_member(const struct kafka_source *source,
                        rd_kafka_conf_t *conf)
{
    const struct kafka_source_options *options = &source->options;
    const char *configured =
        kafka_cluster_setting(options->cluster, "group.instance.id");
    struct buf name = BUF_INIT;

    kafka_conf_force(conf, "group.id", options->group);
    if (configured == NULL) {
        buf_printf(&name, "onced-%s-%s", options->store_id, options->group);
        kafka_conf_force(conf, "group.instance.id", buf_cstr(&name));
        buf_free(&name);
    } else if (configured[0] == '\0') {
        kafka_conf_force(conf, "group.instance.id", NULL);
    }
}

/* Another member may have the partitions when this one was silent for the
 * shorter of the two. */
static void read_limits(struct kafka_source *source,
                        const rd_kafka_conf_t *conf)
{
    int64_t session_ms = read_ms(conf, "session.timeout.ms");
    int64_t poll_ms = read_ms(conf, "max.poll.interval.ms");

    source->silence_ms = session_ms < poll_ms ? session_ms : poll_ms;
}

static bool make_consumer(struct kafka_source *source, struct err *err)
{
    char why[WHY_SIZE];
    rd_kafka_conf_t *conf;
    rd_kafka_queue_t *queue;
    rd_kafka_resp_err_t code;

    if (!kafka_conf_new(&conf, KAFKA_USE_CONSUMER, source->options.cluster,
                        err)) {
        return false;
    }
    name_member(source, conf);
    read_limits(source, conf);
    rd_kafka_conf_set_opaque(conf, source);
    rd_kafka_conf_set_rebalance_cb(conf, kafka_rebalance_on);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    source->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (source->client == NULL) {
        rd_kafka_conf_destroy(conf);
        return err_set(err, ERR_CONFIG, "kafka cluster \"%s\": %s",
                       source->options.cluster->name, why);
    }
    (void)rd_kafka_poll_set_consumer(source->client);
    queue = rd_kafka_queue_get_consumer(source->client);
    kafka_loop_watch(source, queue);
    rd_kafka_queue_destroy(queue);
    code = kafka_rebalance_subscribe(source);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ||
           err_set(err, ERR_CONFIG, "kafka group \"%s\": %s",
                   source->options.group, rd_kafka_err2str(code));
}

static void tell_start(const struct kafka_source *source)
{
    struct log_line line;

    if (log_begin(&line, LOG_INFO, "kafka", "consumer started")) {
        log_str(&line, "cluster", slice_of(source->options.cluster->name));
        log_str(&line, "group", slice_of(source->options.group));
        log_int(&line, "topics", (int64_t)source->n_feeds);
        log_str(&line, "librdkafka", slice_of(rd_kafka_version_str()));
        log_end(&line);
    }
}

/* --- life ----------------------------------------------------------------- */

bool kafka_source_start(struct kafka_source **out,
                        const struct kafka_source_options *options,
                        struct err *err)
{
    struct kafka_source *source = mem_new(1, sizeof *source);

    CHECK(options->engine != NULL);
    CHECK(options->clock != NULL);
    CHECK(options->fatal != NULL);
    source->options = *options;
    CHECK(pthread_mutex_init(&source->back_lock, NULL) == 0);
    CHECK(pthread_mutex_init(&source->lock, NULL) == 0);
    source->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (source->wake_fd < 0) {
        (void)err_set(err, ERR_IO, "eventfd: %s", strerror(errno));
        goto fail;
    }
    if (!make_feeds(source, err) || !make_consumer(source, err) ||
        !kafka_loop_start(source, err)) {
        goto fail;
    }
    tell_start(source);
    *out = source;
    return true;
fail:
    kafka_source_free(&source);
    return false;
}

void kafka_source_stop_intake(struct kafka_source *source)
{
    atomic_store(&source->is_stopping, true);
}

/* A consumer that did not close would not let itself be destroyed either. */
static void destroy_consumer(struct kafka_source *source)
{
    struct log_line line;

    if (source->client == NULL) {
        return;
    }
    if (source->is_closed || !source->was_started) {
        rd_kafka_destroy_flags(source->client,
                               RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        return;
    }
    if (log_begin(&line, LOG_WARN, "kafka",
                  "the consumer did not close in time: its last offsets may "
                  "not be committed")) {
        log_str(&line, "group", slice_of(source->options.group));
        log_end(&line);
    }
}

void kafka_source_free(struct kafka_source **taken)
{
    struct kafka_source *source = *taken;

    if (source == NULL) {
        return;
    }
    *taken = NULL;
    kafka_source_stop_intake(source);
    source->was_started = source->has_thread;
    kafka_loop_stop(source);
    destroy_consumer(source);
    if (source->was_started && !source->is_closed) {
        return; /* the library goes on to use it */
    }
    if (source->wake_fd >= 0) {
        (void)close(source->wake_fd);
    }
    for (size_t i = 0; i < source->n_feeds; i++) {
        free(source->feeds[i].routes);
    }
    CHECK(pthread_mutex_destroy(&source->lock) == 0);
    CHECK(pthread_mutex_destroy(&source->back_lock) == 0);
    buf_free(&source->headers);
    free(source->feeds);
    free(source->unanswered);
    free(source);
}

/* --- for /metrics --------------------------------------------------------- */

static struct kafka_partition_view
view_of(const struct kafka_source *source,
        const struct kafka_partition *partition)
{
    const struct assignment *assignment = &partition->assignment;
    struct kafka_partition_view view = {
        .group = source->options.group,
        .topic = partition->feed->topic,
        .partition = assignment->number,
        .low_water = atomic_load(&assignment->low_water),
        .log_end = atomic_load(&partition->log_end),
        .unsettled = atomic_load(&assignment->unsettled),
        .head_since_ms = atomic_load(&assignment->head_since_ms),
    };
    int64_t low = -1;
    int64_t high = -1;

    (void)rd_kafka_get_watermark_offsets(source->client, view.topic,
                                         view.partition, &low, &high);
    if (high > view.log_end) {
        view.log_end = high;
    }
    if (view.low_water < 0) {
        view.low_water = atomic_load(&partition->committed);
    }
    if (view.low_water >= 0 && view.log_end > view.low_water) {
        view.lag = view.log_end - view.low_water;
    }
    return view;
}

void kafka_source_each_partition(
    struct kafka_source *source,
    void (*visit)(void *ctx, const struct kafka_partition_view *view),
    void *ctx)
{
    CHECK(pthread_mutex_lock(&source->lock) == 0);
    for (size_t i = 0; i < source->n_partitions; i++) {
        const struct kafka_partition *partition = source->partitions[i];

        if (!atomic_load(&partition->is_fenced)) {
            struct kafka_partition_view view = view_of(source, partition);

            visit(ctx, &view);
        }
    }
    CHECK(pthread_mutex_unlock(&source->lock) == 0);
}

struct kafka_source_counts kafka_source_count(const struct kafka_source *source)
{
    const struct kafka_tally *tally = &source->tally;

    return (struct kafka_source_counts){
        .assigned = atomic_load(&tally->assigned),
        .revoked = atomic_load(&tally->revoked),
        .lost = atomic_load(&tally->lost),
        .refused = atomic_load(&tally->refused),
        .repeated = atomic_load(&tally->repeated),
        .rewound = atomic_load(&tally->rewound),
        .gaps = atomic_load(&tally->gaps),
    };
}

const char *kafka_source_group(const struct kafka_source *source)
{
    return source->options.group;
}
