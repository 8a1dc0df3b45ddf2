/* SPDX-License-Identifier: MIT */
#include "engine/engine.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/world.h"

static struct world world;

static void setup(void)
{
    world_init(&world);
}

static void teardown(void)
{
    world_fini(&world);
}

TestSuite(edges, .init = setup, .fini = teardown);

static enum record_state state_of(const char *id)
{
    return world_record(&world, 0, id).state;
}

Test(edges, a_rerun_without_an_envelope_is_refused)
{
    const int64_t hour = 3600000;

    world.routes[0].retention.envelope_ms = hour;
    world.routes[1].retention.envelope_ms = hour;
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 200);
    for (int i = 0; i < 100; i++) {
        world_pass(&world, 120000);
    }
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
    cr_assert_eq(world_order(&world, COMMAND_RERUN, 0, "e1"), COMMAND_REFUSED);
    world_pass(&world, 1000);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
}

Test(edges, nothing_is_left_to_wait_on_a_retired_route)
{
    static const struct {
        enum command_kind kind;
        const char *id;
        enum command_status status;
        enum record_state state;
    } orders[] = {
        {COMMAND_RERUN, "done", COMMAND_REFUSED, RECORD_SUCCEEDED},
        {COMMAND_REPLAY, "dead", COMMAND_REFUSED, RECORD_DEAD},
        {COMMAND_RESOLVE_NOT_APPLIED, "dead", COMMAND_REFUSED, RECORD_DEAD},
        {COMMAND_REPLAY, "doubt", COMMAND_REFUSED, RECORD_UNCERTAIN},
        {COMMAND_RESOLVE_NOT_APPLIED, "doubt", COMMAND_REFUSED,
         RECORD_UNCERTAIN},
        {COMMAND_REPLAY, "wait", COMMAND_REFUSED, RECORD_PENDING},
        {COMMAND_RESOLVE_APPLIED, "dead", COMMAND_DONE, RECORD_SUCCEEDED},
        {COMMAND_RESOLVE_APPLIED, "doubt", COMMAND_DONE, RECORD_SUCCEEDED},
        {COMMAND_DISCARD, "wait", COMMAND_DONE, RECORD_FAILED},
    };

    world.routes[0].policy.backoff_ms = 3600000;
    world.routes[0].policy.max_backoff_ms = 3600000;
    world_open(&world);
    world_deliver(&world, 0, "done", "x");
    world_end(&world, "done", END_STATUS, 200);
    world_deliver(&world, 0, "dead", "x");
    world_end(&world, "dead", END_STATUS, 404);
    world_deliver(&world, 0, "doubt", "x");
    world_end(&world, "doubt", END_STATUS, 500);
    world_deliver(&world, 0, "wait", "x");
    world_end(&world, "wait", END_STATUS, 429);
    world_close(&world);
    world.routes[0].retired = true;
    world.routes[0].handler.ops = NULL;
    world_open(&world);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        cr_expect_eq(world_order(&world, orders[i].kind, 0, orders[i].id),
                     orders[i].status, "order %zu", i);
        cr_expect_eq(state_of(orders[i].id), orders[i].state, "order %zu", i);
    }
}

Test(edges, a_held_key_is_free_for_the_event_that_holds_it)
{
    struct sent *sent[2];

    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    world_turn(&world);
    world_end(&world, "k1", END_STATUS, 200);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    world_turn(&world);
    cr_assert_eq(world_order(&world, COMMAND_RERUN, 0, "k1"), COMMAND_DONE);
    cr_assert_null(world_attempt(&world, "k1"), "waits for k2");
    world_end(&world, "k2", END_STATUS, 404);
    cr_assert_eq(state_of("k2"), RECORD_DEAD);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "k2"), COMMAND_DONE);
    world_pass(&world, 100000);
    cr_assert_not_null(world_attempt(&world, "k2"), "each waits for the other");
    world_end(&world, "k2", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "k1"));
    sent_free(sent[0]);
    sent_free(sent[1]);
}

Test(edges, to_discard_what_waits_frees_no_key)
{
    struct sent *sent[3];

    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    world_turn(&world);
    world_end(&world, "k1", END_STATUS, 200);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    sent[2] = world_send_keyed(&world, 0, "k3", 7);
    world_turn(&world);
    cr_assert_eq(world_order(&world, COMMAND_RERUN, 0, "k1"), COMMAND_DONE);
    cr_assert_eq(world.n_running, 1);
    cr_assert_eq(world_order(&world, COMMAND_DISCARD, 0, "k3"), COMMAND_DONE);
    cr_assert_eq(world.n_running, 1, "two events of one key run at a time");
    world_end(&world, "k2", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "k1"));
    for (int i = 0; i < 3; i++) {
        sent_free(sent[i]);
    }
}

Test(edges, an_ordering_key_of_one_route_holds_no_other)
{
    struct sent *sent[2];

    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "e1", 7);
    sent[1] = world_send_keyed(&world, 1, "e1", 7);
    world_turn(&world);
    cr_assert_eq(world.n_running, 2, "the routes share nothing");
    sent_free(sent[0]);
    sent_free(sent[1]);
}

Test(edges, what_was_held_goes_on_where_after_dead_became_continue)
{
    struct sent *sent[2];

    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    world_turn(&world);
    world_end(&world, "k1", END_STATUS, 404);
    world_pass(&world, 1000);
    cr_assert_eq(world.n_running, 0);
    world_close(&world);
    world.routes[0].policy.after_dead = AFTER_DEAD_CONTINUE;
    world_open(&world);
    world_pass(&world, 1000);
    cr_assert_not_null(world_attempt(&world, "k2"));
    sent_free(sent[0]);
    sent_free(sent[1]);
}

Test(edges, the_key_of_a_run_outlives_another_namespace)
{
    char key[ATTEMPT_KEY_SIZE];

    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    (void)snprintf(key, sizeof key, "%s",
                   world_attempt(&world, "e1")->idempotency_key);
    world_end(&world, "e1", END_TIMEOUT, 0);
    world_close(&world);
    world.routes[0].namespace = "other";
    world_open(&world);
    world_pass(&world, 5000);
    cr_assert_not_null(world_attempt(&world, "e1"));
    cr_assert_str_eq(world_attempt(&world, "e1")->idempotency_key, key);
}

static void flush_done(struct command *command)
{
    command->ctx = NULL;
}

static int64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

Test(edges, a_flush_that_was_put_off_does_not_stop_the_clock)
{
    static char big[900001];
    struct command flush = {.kind = COMMAND_FLUSH,
                            .actor = "",
                            .route = SIZE_MAX,
                            .ctx = &world,
                            .done = flush_done};
    struct sent *sent[12];
    struct err err;
    char id[16];
    int64_t start;

    memset(big, 'x', sizeof big - 1);
    world.max_bytes = 2 << 20;
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 200);
    world_deliver(&world, 0, "e1", "x");
    for (int i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof id, "b%d", i);
        sent[i] = world_send(&world, 0, id, big);
        sent[i]->delivery.item.cost_bytes = 1000;
    }
    cr_assert(engine_command(world.engine, &flush));
    cr_assert(engine_turn(world.engine, 0, &err));
    cr_assert_eq(sent[11]->delivery.result, DELIVERY_NO_ROOM);
    cr_assert_null(flush.ctx);
    world.ms += 1000;
    start = now_ms();
    cr_assert(engine_turn(world.engine, 3000, &err));
    cr_assert_lt(now_ms() - start, 1000, "the flush is overdue");
    for (int i = 0; i < 12; i++) {
        if (sent[i]->answered)
            sent_free(sent[i]);
    }
}

static void order_done(struct command *command)
{
    (void)command;
}

Test(edges, results_find_room_behind_any_number_of_orders)
{
    static struct command orders[4096];
    size_t n = 0;

    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    for (n = 0; n < 4096; n++) {
        orders[n] = (struct command){.kind = COMMAND_FLUSH,
                                     .actor = "",
                                     .route = SIZE_MAX,
                                     .done = order_done};
        if (!engine_command(world.engine, &orders[n])) {
            break;
        }
    }
    cr_assert_lt(n, 4096);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
}

Test(edges, an_unusable_event_is_kept_or_dropped_but_ends_nothing)
{
    struct sent *sent;

    world.routes[0].max_dead_bytes = 1;
    world.routes[0].on_dead_full = DEAD_FULL_DROP_OLDEST;
    world_open(&world);
    sent = world_send(&world, 0, "e1", "x");
    sent->arrivals[0].unusable = REASON_UNDECODABLE;
    sent->arrivals[0].why = "no JSON";
    world_turn(&world);
    cr_assert_eq(sent->delivery.result, DELIVERY_ACCEPTED);
    sent_free(sent);
}

/* Whether the count of a repeat is lost when a body of `size`, behind it in
 * its batch, finds no room. */
static bool loses_count_at(size_t size)
{
    static char big[4 << 20];
    struct sent *first, *second = NULL;
    bool lost = false;
    struct err err;

    world_init(&world);
    memset(big, 'x', sizeof big - 1);
    big[size] = '\0';
    world.max_bytes = 2 << 20;
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 200);
    world_deliver(&world, 0, "e1", "x");
    first = world_send(&world, 0, "big", big);
    cr_assert(engine_turn(world.engine, 0, &err));
    if (first->delivery.result == DELIVERY_NO_ROOM) {
        world.ms += 1000;
        second = world_send(&world, 0, "small", "x");
        world_turn(&world);
        lost = world_record(&world, 0, "e1").deliveries != 2;
        sent_free(second);
    }
    sent_free(first);
    world_fini(&world);
    return lost;
}

Test(edges_of_room, counts_of_repeats_outlive_a_batch_that_was_put_off)
{
    for (size_t size = 3 << 20; size < 4 << 20; size += 16384) {
        cr_assert_not(loses_count_at(size), "lost at %zu", size);
    }
}

Test(edges, one_result_that_finds_no_room_keeps_no_other)
{
    static char big[6 << 20];

    world.max_bytes = 2 << 20;
    world_open(&world);
    world_deliver(&world, 0, "big", "x");
    world_deliver(&world, 1, "small", "x");
    memset(big, 'x', sizeof big);
    struct result result = {.status = 200, .body = {big, sizeof big}};
    result_encode(&result, &world_attempt(&world, "big")->result);
    world_end(&world, "big", END_STATUS, 200);
    world_pass(&world, 1000);
    world_end(&world, "small", END_STATUS, 503);
    for (int i = 0; i < 5; i++) {
        world_pass(&world, 1000);
    }
    world_pass(&world, 20000);
    cr_assert_eq(state_of("big"), RECORD_SUCCEEDED);
    cr_assert_eq(world_record(&world, 1, "small").attempt, 2);
}

static void read_result(void *ctx, struct store *store,
                        struct store_entry *entry)
{
    struct err err;

    cr_assert_eq(store_get_result(store, entry, ctx, &err), STORE_FOUND);
}

static void read_done(struct command *command)
{
    command->ctx = NULL;
}

Test(edges, the_answer_of_the_handler_is_kept)
{
    const struct result said = {.status = 201, .body = SLICE("made")};
    struct buf flat = BUF_INIT;
    struct result kept;
    struct command command = {
        .kind = COMMAND_READ,
        .actor = "",
        .id = SLICE("e1"),
        .read = read_result,
        .ctx = &flat,
        .done = read_done,
    };

    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    result_encode(&said, &world_attempt(&world, "e1")->result);
    world_end(&world, "e1", END_STATUS, 201);
    world_close(&world);
    world_open(&world);
    cr_assert(engine_command(world.engine, &command));
    world_turn(&world);
    cr_assert_null(command.ctx, "the read was answered");
    cr_assert(result_open(buf_slice(&flat), &kept));
    cr_assert_eq(kept.status, 201);
    cr_assert(slice_eq(kept.body, slice_of("made")));
    buf_free(&flat);
}

Test(edges, an_event_is_found_by_its_route_after_another_namespace)
{
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 404);
    world_close(&world);
    world.routes[0].namespace = "other";
    world_open(&world);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "e1"), COMMAND_DONE);
}

Test(edges, a_dead_holder_lets_go_also_of_what_came_before_it)
{
    struct sent *sent[3];

    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    world_turn(&world);
    world_end(&world, "k1", END_STATUS, 200);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    sent[2] = world_send_keyed(&world, 0, "k3", 7);
    world_turn(&world);
    world_end(&world, "k2", END_STATUS, 404);
    cr_assert_eq(world_order(&world, COMMAND_RERUN, 0, "k1"), COMMAND_DONE);
    world_pass(&world, 1000);
    cr_assert_eq(world.n_running, 0, "the dead one holds the key");
    world_close(&world);
    world.routes[0].policy.after_dead = AFTER_DEAD_CONTINUE;
    world_open(&world);
    world_pass(&world, 1000);
    cr_assert_not_null(world_attempt(&world, "k1"));
    world_end(&world, "k1", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "k3"));
    for (int i = 0; i < 3; i++) {
        sent_free(sent[i]);
    }
}

Test(edges, a_dead_holder_without_a_follower_lets_go_too)
{
    struct sent *sent[2];

    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    world_turn(&world);
    world_end(&world, "k1", END_STATUS, 404);
    world_close(&world);
    world.routes[0].policy.after_dead = AFTER_DEAD_CONTINUE;
    world_open(&world);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    world_turn(&world);
    cr_assert_not_null(world_attempt(&world, "k2"));
    sent_free(sent[0]);
    sent_free(sent[1]);
}

Test(edges, dead_letters_that_may_not_be_dropped_stop_the_route)
{
    struct sent *sent;
    char id[8];

    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world.routes[0].on_dead_full = DEAD_FULL_DROP_OLDEST;
    world.routes[0].max_dead_bytes = 1000;
    world_open(&world);
    for (uint64_t key = 1; key <= 100; key++) {
        enum delivery_answer answer;

        (void)snprintf(id, sizeof id, "k%u", (unsigned)key);
        sent = world_send_keyed(&world, 0, id, key);
        world_turn(&world);
        answer = sent->delivery.result;
        sent_free(sent);
        if (answer == DELIVERY_STOPPED_ROUTE) {
            cr_assert_gt(key, 2);
            return;
        }
        world_end(&world, id, END_STATUS, 404);
    }
    cr_assert_fail("100 letters in room for a few");
}
