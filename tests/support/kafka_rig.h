/* SPDX-License-Identifier: MIT */
/*
 * The Kafka source against a mock broker and an engine that does as the test
 * says: the source's three calls of the engine end here.
 */
#ifndef ONCED_TEST_KAFKA_RIG_H
#define ONCED_TEST_KAFKA_RIG_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/port.h"
#include "source/kafka.h"
#include "support/kafka_mock.h"

enum { RIG_MAX = 256, RIG_WAIT_S = 60, RIG_ROUTES = 2 };

/* An arrival as it came, in words: route, offset, id, order or not, body. */
struct rig_arrival {
    size_t route;
    int64_t offset;
    char id[64], body[64];
    bool has_body, has_order, unusable;
    size_t delivery; /* the how manieth offer it came with */
};

struct kafka_rig {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kafka_mock mock;
    struct kafka_source *source;
    /* what the engine does */
    bool answers, opens, drains, inbox_full;
    size_t room;
    int64_t store_low_water; /* OPEN gives it */
    /* what it was given */
    struct rig_arrival arrivals[RIG_MAX];
    size_t n_arrivals, n_offers;
    struct delivery *waiting[RIG_MAX];
    size_t n_waiting;
    struct assignment_order *orders[RIG_MAX];
    enum assignment_order_kind kinds[RIG_MAX];
    uint32_t epochs[RIG_MAX];
    size_t n_orders;
    atomic_llong skew_ms; /* of its clock */
};

static struct kafka_rig rig = {.lock = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER};

/* --- the engine ----------------------------------------------------------- */

static inline void rig_copy(char *to, size_t room, struct slice from)
{
    (void)snprintf(to, room, "%.*s", (int)from.len, from.data);
}

static inline void rig_note(const struct arrival *arrival)
{
    struct rig_arrival *note = &rig.arrivals[rig.n_arrivals++];
    struct envelope envelope;

    cr_assert_leq(rig.n_arrivals, RIG_MAX);
    cr_assert(envelope_open(arrival->envelope, &envelope));
    *note = (struct rig_arrival){.route = arrival->route,
                                 .offset = arrival->offset,
                                 .has_body = envelope.has_body,
                                 .has_order = arrival->order_key != 0,
                                 .unusable = arrival->unusable != REASON_NONE,
                                 .delivery = rig.n_offers};
    rig_copy(note->id, sizeof note->id, arrival->id);
    rig_copy(note->body, sizeof note->body, envelope.body);
}

bool engine_deliver(struct engine *engine, struct delivery *delivery)
{
    bool took = false;

    (void)engine;
    pthread_mutex_lock(&rig.lock);
    if (!rig.inbox_full) {
        took = true;
        rig.n_offers++;
        for (size_t i = 0; i < delivery->n_arrivals; i++) {
            rig_note(&delivery->arrivals[i]);
        }
        rig.waiting[rig.n_waiting++] = delivery;
        if (rig.answers) {
            rig.n_waiting--;
            delivery->result = DELIVERY_ACCEPTED;
            delivery->answer(delivery);
        }
    }
    pthread_cond_broadcast(&rig.changed);
    pthread_mutex_unlock(&rig.lock);
    return took;
}

void engine_assign(struct engine *engine, struct assignment_order *order)
{
    (void)engine;
    pthread_mutex_lock(&rig.lock);
    rig.orders[rig.n_orders] = order;
    rig.epochs[rig.n_orders] = order->assignment->epoch;
    rig.kinds[rig.n_orders++] = order->kind;
    cr_assert_leq(rig.n_orders, RIG_MAX);
    if (order->kind == ASSIGNMENT_OPEN) {
        order->low_water = rig.store_low_water;
    }
    if (order->kind == ASSIGNMENT_OPEN    ? rig.opens
        : order->kind == ASSIGNMENT_DRAIN ? rig.drains
                                          : true) {
        order->done(order);
    }
    pthread_cond_broadcast(&rig.changed);
    pthread_mutex_unlock(&rig.lock);
}

size_t engine_room(const struct engine *engine, size_t route)
{
    size_t room;

    (void)engine;
    (void)route;
    pthread_mutex_lock(&rig.lock);
    room = rig.room;
    pthread_mutex_unlock(&rig.lock);
    return room;
}

/* --- waiting -------------------------------------------------------------- */

static inline void rig_wait(size_t *count, size_t least, const char *what)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RIG_WAIT_S;
    pthread_mutex_lock(&rig.lock);
    while (*count < least) {
        cr_assert_eq(pthread_cond_timedwait(&rig.changed, &rig.lock, &until), 0,
                     "%s: %zu of %zu", what, *count, least);
    }
    pthread_mutex_unlock(&rig.lock);
}

static inline void rig_wait_arrivals(size_t n)
{
    rig_wait(&rig.n_arrivals, n, "arrivals");
}

static inline void rig_wait_offers(size_t n)
{
    rig_wait(&rig.n_offers, n, "offers");
}

/* How many events came with the n-th offer. */
static inline size_t rig_offered(size_t n)
{
    size_t count = 0;

    pthread_mutex_lock(&rig.lock);
    for (size_t i = 0; i < rig.n_arrivals; i++) {
        count += rig.arrivals[i].delivery == n;
    }
    pthread_mutex_unlock(&rig.lock);
    return count;
}

static inline void rig_set_room(size_t room, bool answers)
{
    pthread_mutex_lock(&rig.lock);
    rig.room = room;
    rig.answers = answers;
    pthread_mutex_unlock(&rig.lock);
}

static inline void rig_wait_orders(size_t n)
{
    rig_wait(&rig.n_orders, n, "orders");
}

/* Answers what waits longest. */
static inline void rig_answer(enum delivery_answer result)
{
    struct delivery *delivery;

    rig_wait(&rig.n_waiting, 1, "deliveries");
    pthread_mutex_lock(&rig.lock);
    delivery = rig.waiting[0];
    memmove(rig.waiting, rig.waiting + 1,
            --rig.n_waiting * sizeof rig.waiting[0]);
    pthread_mutex_unlock(&rig.lock);
    delivery->result = result;
    delivery->retry_after_s = result == DELIVERY_NO_ROOM ? 1 : 0;
    delivery->answer(delivery);
}

/* The engine has settled all below. */
static inline void rig_low_water(struct assignment *assignment, int64_t offset)
{
    atomic_store(&assignment->low_water, offset);
    assignment->wake(assignment);
}

/* --- the broker ----------------------------------------------------------- */

static inline rd_kafka_t *rig_client(rd_kafka_type_t type, const char *group)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *client;
    char why[256];

    CHECK(rd_kafka_conf_set(conf, "bootstrap.servers", rig.mock.bootstrap, why,
                            sizeof why) == RD_KAFKA_CONF_OK);
    /* All that is produced comes in one piece. */
    CHECK(rd_kafka_conf_set(conf, "linger.ms", "500", why, sizeof why) ==
          RD_KAFKA_CONF_OK);
    if (group != NULL) {
        CHECK(rd_kafka_conf_set(conf, "group.id", group, why, sizeof why) ==
              RD_KAFKA_CONF_OK);
    }
    client = rd_kafka_new(type, conf, why, sizeof why);
    CHECK(client != NULL);
    return client;
}

struct rig_message {
    const char *key, *value; /* NULL: none */
};

static inline void rig_produce(const struct rig_message *messages, size_t n)
{
    rd_kafka_t *producer = rig_client(RD_KAFKA_PRODUCER, NULL);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, "t", NULL);

    for (size_t i = 0; i < n; i++) {
        const char *key = messages[i].key;
        const char *value = messages[i].value;
        size_t key_len = key == NULL ? 0 : strlen(key);
        size_t value_len = value == NULL ? 0 : strlen(value);

        CHECK(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY,
                               (void *)(uintptr_t)value, value_len, key,
                               key_len, NULL) == 0);
    }
    CHECK(rd_kafka_flush(producer, RIG_WAIT_S * 1000) ==
          RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(producer);
}

/* `n` messages with ids "0", "1", …, as their keys. */
static inline void rig_produce_numbers(size_t n)
{
    char keys[RIG_MAX][8];
    struct rig_message messages[RIG_MAX];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%zu", i);
        messages[i] = (struct rig_message){keys[i], "v"};
    }
    rig_produce(messages, n);
}

static inline rd_kafka_topic_partition_list_t *rig_position(int64_t offset)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(list, "t", 0)->offset = offset;
    return list;
}

/* Of the group "g" on the partition; < 0: none. */
static inline int64_t rig_committed(void)
{
    rd_kafka_t *client = rig_client(RD_KAFKA_CONSUMER, "g");
    rd_kafka_topic_partition_list_t *list = rig_position(0);
    int64_t offset;

    CHECK(rd_kafka_committed(client, list, RIG_WAIT_S * 1000) ==
          RD_KAFKA_RESP_ERR_NO_ERROR);
    offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return offset;
}

static inline void rig_commit(int64_t offset)
{
    rd_kafka_t *client = rig_client(RD_KAFKA_CONSUMER, "g");
    rd_kafka_topic_partition_list_t *list = rig_position(offset);

    CHECK(rd_kafka_commit(client, list, 0) == RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
}

/* --- the source ----------------------------------------------------------- */

static int64_t rig_wall_ms(void *self)
{
    (void)self;
    return clock_wall_ms(clock_system());
}

static int64_t rig_boot_ms(void *self)
{
    (void)self;
    return clock_boot_ms(clock_system()) + atomic_load(&rig.skew_ms);
}

static inline void rig_fatal(void *ctx, const char *why)
{
    (void)ctx;
    cr_assert_fail("%s", why);
}

static inline struct value rig_value(const char *text)
{
    struct value value = {0};
    struct slice slice = slice_of(text);
    struct err err;

    cr_assert(value_add_choice(&value, &slice, 1, &err), "%s", err.text);
    return value;
}

/* Starts a broker, and defaults for the engine. */
static inline void rig_begin(void)
{
    rig.mock = kafka_mock_new();
    rig.answers = rig.opens = rig.drains = true;
    rig.room = 1000;
    rig.store_low_water = -1;
}

static inline void rig_start(const struct kafka_route *routes, size_t n)
{
    static const struct clock clock = {rig_wall_ms, rig_boot_ms, NULL};
    static const struct kafka_stream streams[] = {{"t", 7}};
    static const size_t outcomes[8];
    static const char *settings[2][2] = {{"bootstrap.servers", NULL},
                                         {"session.timeout.ms", "6000"}};
    static struct kafka_cluster cluster = {
        "default", (const char *const(*)[2])settings, 2};
    struct err err;
    struct kafka_source_options options = {
        .cluster = &cluster,
        .group = "g",
        .routes = routes,
        .n_routes = n,
        .streams = streams,
        .n_streams = 1,
        .outcomes = outcomes,
        .store_id = "s",
        .drain_ms = 300,
        .engine = (struct engine *)&rig,
        .clock = &clock,
        .fatal = rig_fatal,
    };

    settings[0][1] = rig.mock.bootstrap;
    cr_assert(kafka_source_start(&rig.source, &options, &err), "%s", err.text);
}

static inline void rig_end(void)
{
    kafka_source_free(&rig.source);
    kafka_mock_free(&rig.mock);
}

#endif
