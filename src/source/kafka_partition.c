/* SPDX-License-Identifier: MIT */
#include "source/kafka_partition.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "source/kafka_delivery.h"
#include "source/kafka_loop.h"

enum { INBOX_FULL_MS = 20 };

/* --- lines ---------------------------------------------------------------- */

static bool begin_line(struct log_line *line, enum log_level level,
                       const struct kafka_partition *partition,
                       const char *text)
{
    if (!log_begin(line, level, "kafka", text)) {
        return false;
    }
    log_str(line, "group", slice_of(partition->source->options.group));
    log_str(line, "topic", slice_of(partition->feed->topic));
    log_int(line, "partition", partition->assignment.number);
    return true;
}

/* Two offsets, and what lies between them. */
static void tell_offsets(const struct kafka_partition *partition,
                         enum log_level level, const char *text,
                         const char *const names[2], const int64_t offsets[2])
{
    struct log_line line;

    if (begin_line(&line, level, partition, text)) {
        log_int(&line, names[0], offsets[0]);
        log_int(&line, names[1], offsets[1]);
        log_end(&line);
    }
}

/* --- begin ---------------------------------------------------------------- */

static void on_wake(struct assignment *assignment)
{
    struct kafka_partition *partition = assignment->context;

    kafka_loop_wake(partition->source);
}

static void prepare_order(struct kafka_partition *partition,
                          struct assignment_order *order,
                          enum assignment_order_kind kind)
{
    *order = (struct assignment_order){
        .kind = kind,
        .assignment = &partition->assignment,
        .committed = partition->committed,
        .log_start = partition->log_start,
        .log_end = partition->log_end,
        .low_water = -1,
        .done = kafka_loop_done,
    };
}

static void add_to_list(struct kafka_source *source,
                        struct kafka_partition *partition)
{
    CHECK(pthread_mutex_lock(&source->lock) == 0);
    source->partitions = mem_grow(source->partitions, source->n_partitions + 1,
                                  sizeof(struct kafka_partition *));
    source->partitions[source->n_partitions++] = partition;
    CHECK(pthread_mutex_unlock(&source->lock) == 0);
}

struct kafka_partition *kafka_partition_add(struct kafka_source *source,
                                            const struct kafka_feed *feed,
                                            int32_t number)
{
    struct kafka_partition *partition = mem_new(1, sizeof *partition);

    partition->assignment = (struct assignment){
        .stream = feed->stream,
        .number = number,
        .epoch = ++source->epoch,
        .wake = on_wake,
        .context = partition,
    };
    atomic_init(&partition->assignment.low_water, -1);
    partition->source = source;
    partition->feed = feed;
    partition->committed = -1;
    partition->log_start = -1;
    partition->log_end = -1;
    partition->highest = partition->stored = -1;
    partition->queue =
        rd_kafka_queue_get_partition(source->client, feed->topic, number);
    CHECK(partition->queue != NULL);
    rd_kafka_queue_forward(partition->queue, NULL);
    kafka_loop_watch(source, partition->queue);
    add_to_list(source, partition);
    return partition;
}

struct kafka_partition *kafka_partition_find(struct kafka_source *source,
                                             const char *topic, int32_t number)
{
    for (size_t i = 0; i < source->n_partitions; i++) {
        struct kafka_partition *partition = source->partitions[i];

        if (partition->phase < KAFKA_FENCING &&
            partition->assignment.number == number &&
            strcmp(partition->feed->topic, topic) == 0) {
            return partition;
        }
    }
    return NULL;
}

/* --- orders --------------------------------------------------------------- */

static void drop_taken(struct kafka_partition *partition)
{
    while (partition->taken_at < partition->n_taken) {
        rd_kafka_message_destroy(partition->taken[partition->taken_at++]);
    }
    if (!partition->is_with_engine) {
        partition->is_built = false;
    }
}

void kafka_partition_open(struct kafka_partition *partition)
{
    static const uint8_t none[KAFKA_TOPIC_ID_SIZE];

    partition->stored = partition->committed;
    prepare_order(partition, &partition->open, ASSIGNMENT_OPEN);
    if (memcmp(partition->topic_id, none, sizeof none) != 0) {
        partition->open.topic_id = partition->topic_id;
    }
    engine_assign(partition->source->options.engine, &partition->open);
}

void kafka_partition_drain(struct kafka_partition *partition)
{
    if (partition->phase >= KAFKA_DRAINING) {
        return;
    }
    partition->phase = KAFKA_DRAINING;
    drop_taken(partition);
    prepare_order(partition, &partition->drain, ASSIGNMENT_DRAIN);
    engine_assign(partition->source->options.engine, &partition->drain);
}

void kafka_partition_fence(struct kafka_partition *partition)
{
    if (partition->phase >= KAFKA_FENCING) {
        return;
    }
    partition->phase = KAFKA_FENCING;
    atomic_store(&partition->is_fenced, true);
    drop_taken(partition);
    prepare_order(partition, &partition->fence, ASSIGNMENT_FENCE);
    engine_assign(partition->source->options.engine, &partition->fence);
}

/* --- what OPEN brought to light ------------------------------------------- */

static void tell_start(const struct kafka_partition *partition)
{
    struct log_line line;

    if (begin_line(&line, LOG_INFO, partition, "partition assigned")) {
        log_int(&line, "epoch", partition->assignment.epoch);
        log_int(&line, "committed", partition->committed);
        log_int(&line, "low_water", partition->open.low_water);
        log_int(&line, "log_end", partition->log_end);
        log_int(&line, "waiting", (int64_t)partition->open.parked);
        log_end(&line);
    }
}

static void tell_recreated(const struct kafka_partition *partition)
{
    struct log_line line;

    if (begin_line(&line, LOG_WARN, partition,
                   "the topic was made anew: its offsets begin again")) {
        log_int(&line, "incarnation", partition->open.incarnation);
        log_int(&line, "low_water", partition->open.low_water);
        log_int(&line, "log_end", partition->log_end);
        log_end(&line);
    }
}

static void tell_skip(const struct kafka_partition *partition)
{
    struct log_line line;
    bool has_moved = partition->open.moved > 0;

    if (begin_line(&line, has_moved ? LOG_WARN : LOG_INFO, partition,
                   "the group has gone on without this store")) {
        log_int(&line, "low_water", partition->open.low_water);
        log_int(&line, "committed", partition->committed);
        log_int(&line, "moved", (int64_t)partition->open.moved);
        log_end(&line);
    }
}

static void look_for_gap(struct kafka_partition *partition)
{
    static const char *const gap[] = {"committed", "log_start"};
    static const char *const cut[] = {"committed", "log_end"};

    if (partition->committed < 0) {
        return;
    }
    if (partition->log_start > partition->committed) {
        atomic_fetch_add(&partition->source->tally.gaps, 1);
        tell_offsets(
            partition, LOG_WARN, "messages were deleted before they came here",
            gap, (const int64_t[]){partition->committed, partition->log_start});
    }
    if (partition->log_end >= 0 && partition->log_end < partition->committed) {
        tell_offsets(
            partition, LOG_WARN, "the log ends before the committed offset",
            cut, (const int64_t[]){partition->committed, partition->log_end});
    }
}

/* The group's offset is of a log that is no more. The library by itself would
 * not commit one before it. */
static void set_group_back(struct kafka_partition *partition)
{
    rd_kafka_topic_partition_list_t *offsets =
        rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(offsets, partition->feed->topic,
                                      partition->assignment.number)
        ->offset = partition->log_start;
    (void)rd_kafka_commit(partition->source->client, offsets, 1);
    rd_kafka_topic_partition_list_destroy(offsets);
    partition->stored = partition->log_start;
}

static void opened(struct kafka_partition *partition)
{
    static const char *const rewind[] = {"committed", "low_water"};
    const struct assignment_order *open = &partition->open;

    tell_start(partition);
    look_for_gap(partition);
    if (open->recreated) {
        tell_recreated(partition);
    } else if (open->low_water > 0 && open->low_water > partition->committed) {
        atomic_fetch_add(&partition->source->tally.rewound, 1);
        tell_offsets(
            partition, LOG_WARN,
            "the group's offset lies before what is settled here: what comes "
            "again is known by its ids",
            rewind, (const int64_t[]){partition->committed, open->low_water});
    } else if (open->low_water >= 0 && open->low_water < partition->committed) {
        tell_skip(partition);
    }
    if (partition->phase == KAFKA_OPENING) {
        partition->phase = KAFKA_OPEN;
        if (partition->log_end >= 0 &&
            partition->log_end < partition->committed) {
            set_group_back(partition);
        }
    }
}

static void tell_end(const struct kafka_partition *partition)
{
    struct log_line line;

    if (begin_line(&line, LOG_INFO, partition, "partition is over")) {
        log_int(&line, "epoch", partition->assignment.epoch);
        log_int(&line, "low_water", partition->fence.low_water);
        log_int(&line, "parked", (int64_t)partition->drain.parked);
        log_end(&line);
    }
}

void kafka_partition_done(struct kafka_partition *partition,
                          const struct assignment_order *order)
{
    switch (order->kind) {
    case ASSIGNMENT_OPEN:
        opened(partition);
        return;
    case ASSIGNMENT_DRAIN:
        partition->drained = true;
        return;
    case ASSIGNMENT_FENCE:
        CHECK(partition->phase == KAFKA_FENCING);
        partition->phase = KAFKA_OVER;
        tell_end(partition);
        return;
    }
    UNREACHABLE("every order has returned");
}

/* --- serving -------------------------------------------------------------- */

/* Messages that every route of the topic has room for. */
static size_t credits(const struct kafka_partition *partition)
{
    const struct kafka_source *source = partition->source;
    const struct kafka_feed *feed = partition->feed;
    size_t least = KAFKA_TAKE_MAX;

    if (atomic_load(&partition->assignment.unsettled) >= KAFKA_UNSETTLED_MAX) {
        return 0;
    }
    for (size_t i = 0; i < feed->n_routes && least > 0; i++) {
        size_t route = feed->routes[i]->engine_route;
        size_t room = engine_room(source->options.engine, route);
        size_t used = source->unanswered[route];
        size_t rest = room > used ? room - used : 0;

        least = rest < least ? rest : least;
    }
    return least;
}

/* True when the queue may hold more. */
static bool take(struct kafka_partition *partition, size_t n)
{
    ssize_t got =
        rd_kafka_consume_batch_queue(partition->queue, 0, partition->taken, n);

    partition->taken_at = 0;
    partition->n_taken = got > 0 ? (size_t)got : 0;
    return partition->n_taken == n;
}

static void count_unanswered(struct kafka_partition *partition, bool adds)
{
    const struct delivery *delivery = &partition->delivery->delivery;
    size_t *unanswered = partition->source->unanswered;

    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        size_t *n = &unanswered[delivery->arrivals[i].route];

        CHECK(adds || *n > 0);
        *n = adds ? *n + 1 : *n - 1;
    }
}

static void offer_later(struct kafka_partition *partition, int64_t after_ms)
{
    struct kafka_source *source = partition->source;

    partition->offer_boot_ms = source->now_ms + after_ms;
    kafka_loop_at(source, partition->offer_boot_ms);
}

static void offer(struct kafka_partition *partition)
{
    struct kafka_source *source = partition->source;

    if (partition->offer_boot_ms > source->now_ms) {
        kafka_loop_at(source, partition->offer_boot_ms);
        return;
    }
    /* From here on the engine may answer it. */
    count_unanswered(partition, true);
    partition->is_with_engine = true;
    if (!engine_deliver(source->options.engine,
                        &partition->delivery->delivery)) {
        count_unanswered(partition, false);
        partition->is_with_engine = false;
        offer_later(partition, INBOX_FULL_MS);
    }
}

bool kafka_partition_serve(struct kafka_partition *partition)
{
    bool has_more = partition->taken_at < partition->n_taken;
    size_t n;

    if (partition->phase != KAFKA_OPEN || partition->is_with_engine ||
        atomic_load(&partition->source->is_stopping)) {
        return false;
    }
    if (partition->is_built) {
        offer(partition);
        return false;
    }
    n = credits(partition);
    if (n == 0) {
        return false;
    }
    if (!has_more) {
        has_more = take(partition, n);
    }
    if (partition->n_taken == 0) {
        return false;
    }
    partition->is_built = kafka_delivery_build(partition, n);
    if (partition->source->rejoin_why != NULL) {
        return true;
    }
    if (!partition->is_built) {
        return has_more;
    }
    partition->offer_boot_ms = 0;
    offer(partition);
    return false;
}

void kafka_partition_answered(struct kafka_partition *partition)
{
    const struct delivery *delivery = &partition->delivery->delivery;
    int64_t after_s = delivery->retry_after_s;

    CHECK(partition->is_with_engine);
    count_unanswered(partition, false);
    partition->is_with_engine = false;
    if (kafka_delivery_settle(partition) ||
        partition->phase >= KAFKA_DRAINING) {
        partition->is_built = false;
        return;
    }
    offer_later(partition, (after_s > 0 ? after_s : 1) * 1000);
}

int64_t kafka_partition_unstored(const struct kafka_partition *partition)
{
    int64_t low_water = atomic_load(&partition->assignment.low_water);

    return low_water > partition->stored ? low_water : -1;
}

/* --- end ------------------------------------------------------------------ */

static void free_partition(struct kafka_partition *partition)
{
    drop_taken(partition);
    rd_kafka_queue_io_event_enable(partition->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(partition->queue);
    kafka_delivery_free(&partition->delivery);
    free(partition);
}

void kafka_partition_sweep(struct kafka_source *source)
{
    size_t kept = 0;

    CHECK(pthread_mutex_lock(&source->lock) == 0);
    for (size_t i = 0; i < source->n_partitions; i++) {
        struct kafka_partition *partition = source->partitions[i];

        if (partition->phase == KAFKA_OVER && !partition->is_with_engine) {
            free_partition(partition);
        } else {
            source->partitions[kept++] = partition;
        }
    }
    source->n_partitions = kept;
    CHECK(pthread_mutex_unlock(&source->lock) == 0);
}

void kafka_partition_clear(struct kafka_source *source)
{
    kafka_partition_sweep(source);
    for (size_t i = 0; i < source->n_partitions; i++) {
        struct kafka_partition *partition = source->partitions[i];

        drop_taken(partition);
        rd_kafka_queue_io_event_enable(partition->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(partition->queue);
    }
    free(source->partitions);
    source->partitions = NULL;
    source->n_partitions = 0;
}
