/* SPDX-License-Identifier: MIT */
#include "source/kafka.h"

#include "support/kafka_rig.h"

static const char *const topics[] = {"t"};

static struct kafka_route route_by_key(void)
{
    return (struct kafka_route){.name = "r",
                                .topics = topics,
                                .n_topics = 1,
                                .id = rig_value("kafka:key"),
                                .order_by = rig_value("kafka:key")};
}

static void free_route(struct kafka_route *route)
{
    value_free(&route->id);
    value_free(&route->order_by);
}

static struct assignment *assignment(void)
{
    return rig.orders[0]->assignment;
}

Test(kafka, what_is_settled_is_committed_at_the_end)
{
    struct kafka_route route = route_by_key();

    rig_begin();
    rig_produce_numbers(10);
    rig_start(&route, 1);
    rig_wait_arrivals(10);
    cr_expect_eq(assignment()->stream, 7);
    cr_expect_eq(assignment()->number, 0);
    cr_expect_lt(rig.orders[0]->committed, 0);
    cr_expect_eq(rig.orders[0]->log_start, 0);
    cr_expect_eq(rig.orders[0]->log_end, 10);
    for (int i = 0; i < 10; i++) {
        cr_expect_eq(rig.arrivals[i].offset, i);
        cr_expect_eq(atoi(rig.arrivals[i].id), i);
        cr_expect(rig.arrivals[i].has_order);
    }
    rig_low_water(assignment(), 7);
    kafka_source_stop_intake(rig.source);
    kafka_source_free(&rig.source);
    cr_expect_eq(rig.n_orders, 3);
    cr_expect_eq(rig.kinds[1], ASSIGNMENT_DRAIN);
    cr_expect_eq(rig.kinds[2], ASSIGNMENT_FENCE);
    cr_expect_eq(rig_committed(), 7);
    rig_end();
    free_route(&route);
}

Test(kafka, nothing_is_delivered_before_the_engine_has_opened)
{
    struct kafka_route route = route_by_key();

    rig_begin();
    rig.opens = false;
    rig_produce_numbers(3);
    rig_start(&route, 1);
    rig_wait_orders(1);
    cr_expect_eq(rig.n_arrivals, 0);
    rig.orders[0]->done(rig.orders[0]);
    rig_wait_arrivals(3);
    rig_end();
    free_route(&route);
}

Test(kafka, no_more_is_taken_than_there_is_room_for)
{
    struct kafka_route route = route_by_key();
    size_t offers = 0;
    size_t seen = 0;

    rig_begin();
    rig_set_room(3, false);
    rig_produce_numbers(8);
    rig_start(&route, 1);
    while (seen < 6) {
        rig_wait_offers(++offers);
        cr_expect_leq(rig_offered(offers), 3);
        seen += rig_offered(offers);
        rig_set_room(seen < 6 ? 3 : 0, false);
        rig_answer(DELIVERY_ACCEPTED);
    }
    assignment()->wake(assignment());
    rig_set_room(1, true);
    assignment()->wake(assignment());
    rig_wait_arrivals(8);
    while (seen < 8) {
        cr_expect_eq(rig_offered(++offers), 1);
        seen++;
    }
    rig_end();
    free_route(&route);
}

Test(kafka, what_found_no_room_is_offered_again_before_what_is_behind_it)
{
    struct kafka_route route = route_by_key();
    size_t first;

    rig_begin();
    rig_set_room(3, false);
    rig_produce_numbers(6);
    rig_start(&route, 1);
    rig_wait_offers(1);
    first = rig_offered(1);
    rig_answer(DELIVERY_NO_ROOM);
    rig_wait_offers(2);
    rig_answer(DELIVERY_STOPPED_ROUTE);
    rig_wait_offers(3);
    rig_set_room(3, true);
    rig_answer(DELIVERY_ACCEPTED);
    rig_wait_arrivals(6 + 2 * first);
    for (size_t i = 0; i < 3 * first; i++) {
        cr_expect_eq(rig.arrivals[i].offset, (int64_t)(i % first), "%zu", i);
    }
    for (size_t i = 3 * first; i < rig.n_arrivals; i++) {
        cr_expect_eq(rig.arrivals[i].offset, (int64_t)(i - 2 * first), "%zu",
                     i);
    }
    rig_end();
    free_route(&route);
}

Test(kafka, a_full_inbox_is_tried_again)
{
    struct kafka_route route = route_by_key();

    rig_begin();
    rig.inbox_full = true;
    rig_produce_numbers(4);
    rig_start(&route, 1);
    rig_wait_orders(1);
    pthread_mutex_lock(&rig.lock);
    rig.inbox_full = false;
    pthread_mutex_unlock(&rig.lock);
    rig_wait_arrivals(4);
    cr_expect_eq(rig.arrivals[0].offset, 0);
    rig_end();
    free_route(&route);
}

Test(kafka, a_partition_drains_before_it_is_fenced_and_its_end_is_stored)
{
    struct kafka_route route = route_by_key();

    rig_begin();
    rig.drains = false;
    rig_produce_numbers(5);
    rig_start(&route, 1);
    rig_wait_arrivals(5);
    /* The work goes on for longer than the time to drain. */
    kafka_source_free(&rig.source);
    cr_expect_eq(rig.kinds[1], ASSIGNMENT_DRAIN);
    cr_expect_eq(rig.kinds[2], ASSIGNMENT_FENCE);
    cr_expect_lt(rig_committed(), 0);
    rig_end();
    free_route(&route);
}

static void *finish_drain(void *unused)
{
    (void)unused;
    rig_wait_orders(2);
    rig_low_water(assignment(), 4);
    rig.orders[1]->done(rig.orders[1]);
    return NULL;
}

Test(kafka, what_settles_while_it_drains_is_committed)
{
    struct kafka_route route = route_by_key();
    pthread_t thread;

    rig_begin();
    rig.drains = false;
    rig_produce_numbers(5);
    rig_start(&route, 1);
    rig_wait_arrivals(5);
    cr_assert_eq(pthread_create(&thread, NULL, finish_drain, NULL), 0);
    kafka_source_free(&rig.source);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(rig_committed(), 4);
    rig_end();
    free_route(&route);
}

/* The machine slept, or the process was stopped. */
Test(kafka, silence_fences_and_stores_nothing)
{
    struct kafka_route route = route_by_key();
    struct kafka_source_counts counts;

    rig_begin();
    rig_produce_numbers(5);
    rig_start(&route, 1);
    rig_wait_arrivals(5);
    pthread_mutex_lock(&rig.lock);
    rig.opens = false;
    pthread_mutex_unlock(&rig.lock);
    atomic_store(&rig.skew_ms, 20000);
    atomic_store(&assignment()->low_water, 5);
    rig_wait_orders(2);
    cr_expect_eq(rig.kinds[1], ASSIGNMENT_FENCE);
    /* It joins anew, and gets all again under the next epoch. */
    rig_wait_orders(3);
    cr_expect_eq(rig.kinds[2], ASSIGNMENT_OPEN);
    cr_expect_eq(rig.epochs[2], rig.epochs[0] + 1);
    cr_expect_lt(rig.orders[2]->committed, 0);
    rig.orders[2]->done(rig.orders[2]);
    rig_wait_arrivals(10);
    cr_expect_eq(rig.arrivals[5].offset, 0);
    counts = kafka_source_count(rig.source);
    cr_expect_eq(counts.assigned, 2);
    cr_expect_eq(counts.repeated, 0);
    rig_end();
    free_route(&route);
}

Test(kafka, an_answer_of_an_epoch_that_is_over_changes_nothing)
{
    struct kafka_route route = route_by_key();

    rig_begin();
    rig_set_room(1, false);
    rig_produce_numbers(3);
    rig_start(&route, 1);
    rig_wait_offers(1);
    atomic_store(&rig.skew_ms, 20000);
    rig_wait_orders(3);
    cr_expect_eq(rig.kinds[1], ASSIGNMENT_FENCE);
    cr_expect_eq(rig.kinds[2], ASSIGNMENT_OPEN);
    atomic_store(&assignment()->low_water, 1);
    rig_set_room(2, false); /* one is with the engine until it is answered */
    rig_wait_offers(2);
    cr_expect_eq(rig.arrivals[1].offset, 0);
    rig_set_room(0, false);
    rig_answer(DELIVERY_FENCED);
    rig_answer(DELIVERY_DUPLICATE);
    kafka_source_free(&rig.source);
    cr_expect_lt(rig_committed(), 0);
    rig_end();
    free_route(&route);
}

Test(kafka, an_offset_of_the_group_below_what_is_settled_is_a_rewind)
{
    struct kafka_route route = route_by_key();

    rig_begin();
    rig_produce_numbers(6);
    rig_commit(2);
    rig.store_low_water = 4;
    rig_start(&route, 1);
    rig_wait_arrivals(4);
    cr_expect_eq(rig.orders[0]->committed, 2);
    cr_expect_eq(rig.arrivals[0].offset, 2);
    cr_expect_eq(kafka_source_count(rig.source).rewound, 1);
    rig_end();
    free_route(&route);
}

Test(kafka, a_message_is_an_event_on_every_route_of_its_topic)
{
    static const struct rig_message messages[] = {{"k", "{\"id\":\"a\"}"},
                                                  {"k", ""},
                                                  {"k", NULL},
                                                  {NULL, "{\"id\":\"b\"}"}};
    static const struct {
        size_t route;
        int64_t offset;
        const char *id;
        bool unusable, has_body, has_order;
    } expected[] = {
        {0, 0, "k", false, true, true},     {1, 0, "a", false, true, false},
        {0, 1, "k", false, true, true},     {1, 1, "t/0/1", true, true, false},
        {0, 2, "k", false, false, true},    {1, 2, "t/0/2", true, false, false},
        {0, 3, "t/0/3", true, true, false}, {1, 3, "b", false, true, false}};
    struct kafka_route routes[2] = {route_by_key(),
                                    {.engine_route = 1,
                                     .name = "q",
                                     .topics = topics,
                                     .n_topics = 1,
                                     .id = rig_value("json:/id")}};

    rig_begin();
    rig_produce(messages, 4);
    rig_start(routes, 2);
    rig_wait_arrivals(8);
    for (size_t i = 0; i < 8; i++) {
        const struct rig_arrival *got = &rig.arrivals[i];

        cr_expect_eq(got->route, expected[i].route, "%zu", i);
        cr_expect_eq(got->offset, expected[i].offset, "%zu", i);
        cr_expect_str_eq(got->id, expected[i].id, "%zu", i);
        cr_expect_eq(got->unusable, expected[i].unusable, "%zu", i);
        cr_expect_eq(got->has_body, expected[i].has_body, "%zu", i);
        cr_expect_eq(got->has_order, expected[i].has_order, "%zu", i);
    }
    rig_end();
    free_route(&routes[0]);
    free_route(&routes[1]);
}

static void see(void *ctx, const struct kafka_partition_view *view)
{
    *(struct kafka_partition_view *)ctx = *view;
}

Test(kafka, the_lag_is_what_is_not_settled)
{
    struct kafka_route route = route_by_key();
    struct kafka_partition_view view = {0};

    rig_begin();
    rig_produce_numbers(10);
    rig_start(&route, 1);
    rig_wait_arrivals(10);
    rig_low_water(assignment(), 4);
    kafka_source_each_partition(rig.source, see, &view);
    cr_expect_str_eq(view.group, "g");
    cr_expect_str_eq(view.topic, "t");
    cr_expect_eq(view.low_water, 4);
    cr_expect_eq(view.log_end, 10);
    cr_expect_eq(view.lag, 6);
    rig_end();
    free_route(&route);
}
