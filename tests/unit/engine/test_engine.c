/* SPDX-License-Identifier: MIT */
#include "engine/engine.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"
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

TestSuite(engine, .init = setup, .fini = teardown);

static enum record_state state_of(const char *id)
{
    return world_record(&world, 0, id).state;
}

Test(engine, a_new_event_is_accepted_and_started_once)
{
    world_open(&world);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world.started, 1);
    cr_assert_eq(world_attempt(&world, "e1")->number, 1);
    cr_assert_eq(state_of("e1"), RECORD_RUNNING);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_DUPLICATE);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_DUPLICATE);
    world_pass(&world, 86000000);
    cr_assert_eq(world.started, 1);
}

Test(engine, two_deliveries_of_one_event_in_one_batch_are_one_event)
{
    struct sent *first, *second;

    world_open(&world);
    first = world_send(&world, 0, "e1", "x");
    second = world_send(&world, 0, "e1", "x");
    world_turn(&world);
    cr_assert_eq(first->delivery.result, DELIVERY_ACCEPTED);
    cr_assert_eq(second->delivery.result, DELIVERY_DUPLICATE);
    cr_assert_eq(world.started, 1);
    sent_free(first);
    sent_free(second);
}

Test(engine, the_same_id_on_another_namespace_is_another_event)
{
    world_open(&world);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world_deliver(&world, 1, "e1", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world.started, 2);
}

Test(engine, routes_that_share_a_namespace_share_their_memory)
{
    world.routes[1].namespace = "a";
    world_open(&world);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world_deliver(&world, 1, "e1", "x"), DELIVERY_DUPLICATE);
    cr_assert_eq(world.started, 1);
}

Test(engine, repeats_are_counted_at_once_and_stored_a_second_later)
{
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 200);
    for (int i = 0; i < 3; i++) {
        world_deliver(&world, 0, "e1", i == 2 ? "other" : "x");
    }
    cr_assert_eq(world_record(&world, 0, "e1").deliveries, 4);
    cr_assert_eq(world_record(&world, 0, "e1").drifts, 1);
    world_pass(&world, 1000);
    world_close(&world);
    world_open(&world);
    cr_assert_eq(world_record(&world, 0, "e1").deliveries, 4);
    cr_assert_eq(world_record(&world, 0, "e1").drifts, 1);
    cr_assert_eq(world.started, 1);
}

Test(engine, failures_are_retried_with_backoff_until_one_succeeds)
{
    char key[ATTEMPT_KEY_SIZE];

    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    (void)snprintf(key, sizeof key, "%s",
                   world_attempt(&world, "e1")->idempotency_key);
    world_end(&world, "e1", END_STATUS, 429);
    cr_assert_eq(state_of("e1"), RECORD_PENDING);
    world_pass(&world, 999);
    cr_assert_eq(world.started, 1, "not before its time");
    world_pass(&world, 1);
    cr_assert_eq(world.started, 2);
    cr_assert_eq(world_attempt(&world, "e1")->number, 2);
    cr_assert_str_eq(world_attempt(&world, "e1")->idempotency_key, key);
    world_end(&world, "e1", END_STATUS, 500);
    cr_assert_eq(state_of("e1"), RECORD_UNCERTAIN);
    world_pass(&world, 2000);
    cr_assert_eq(world_attempt(&world, "e1")->number, 3);
    cr_assert_str_eq(world_attempt(&world, "e1")->idempotency_key, key);
    cr_assert_eq(world_attempt(&world, "e1")->envelope.body.len, 1);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
    cr_assert_eq(world_history(&world, 0, "e1", MOVE_STARTED), 2);
    cr_assert_eq(world_history(&world, 0, "e1", MOVE_SUCCEEDED), 1);
}

Test(engine, no_more_attempts_run_at_one_time_than_allowed)
{
    char id[8];

    world.routes[0].concurrency = 2;
    world_open(&world);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof id, "e%d", i);
        world_deliver(&world, 0, id, "x");
    }
    cr_assert_eq(world.n_running, 2);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(world.n_running, 2);
    cr_assert_not_null(world_attempt(&world, "e2"), "the oldest goes next");
    cr_assert_eq(world_deliver(&world, 0, "e9", "x"), DELIVERY_ACCEPTED);
    world_end(&world, "e0", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "e3"));
    cr_assert_null(world_attempt(&world, "e9"), "nothing is overtaken");
}

Test(engine, an_ordering_key_lets_one_event_go_at_a_time)
{
    struct sent *sent[4];

    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    sent[2] = world_send_keyed(&world, 0, "k3", 7);
    sent[3] = world_send_keyed(&world, 0, "other", 8);
    world_turn(&world);
    cr_assert_eq(world.n_running, 2);
    cr_assert_not_null(world_attempt(&world, "k1"));
    cr_assert_not_null(world_attempt(&world, "other"));
    world_end(&world, "k1", END_STATUS, 503);
    cr_assert_null(world_attempt(&world, "k2"), "a retry keeps the key");
    world_pass(&world, 1000);
    cr_assert_eq(world_attempt(&world, "k1")->number, 2);
    world_end(&world, "k1", END_STATUS, 404);
    cr_assert_eq(state_of("k1"), RECORD_DEAD);
    cr_assert_not_null(world_attempt(&world, "k2"), "a dead one lets go");
    world_end(&world, "k2", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "k3"));
    for (int i = 0; i < 4; i++) {
        sent_free(sent[i]);
    }
}

Test(engine, a_dead_event_holds_its_key_where_the_route_says_so)
{
    struct sent *sent[2];

    world.routes[0].policy.after_dead = AFTER_DEAD_HOLD;
    world_open(&world);
    sent[0] = world_send_keyed(&world, 0, "k1", 7);
    sent[1] = world_send_keyed(&world, 0, "k2", 7);
    world_turn(&world);
    world_end(&world, "k1", END_STATUS, 404);
    world_pass(&world, 100000);
    cr_assert_eq(state_of("k1"), RECORD_DEAD);
    cr_assert_eq(world.n_running, 0);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "k1"), COMMAND_DONE);
    cr_assert_not_null(world_attempt(&world, "k1"));
    world_end(&world, "k1", END_STATUS, 200);
    cr_assert_not_null(world_attempt(&world, "k2"));
    sent_free(sent[0]);
    sent_free(sent[1]);
}

Test(engine, a_paused_route_accepts_and_starts_nothing_also_after_a_restart)
{
    world_open(&world);
    cr_assert_eq(world_order(&world, COMMAND_PAUSE, 0, ""), COMMAND_DONE);
    cr_assert_eq(world_order(&world, COMMAND_PAUSE, 0, ""),
                 COMMAND_NOTHING_TO_DO);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_ACCEPTED);
    world_close(&world);
    world_open(&world);
    world_pass(&world, 5000);
    cr_assert_eq(world.started, 0);
    cr_assert_eq(world_deliver(&world, 1, "e1", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world.started, 1, "the other route goes on");
    cr_assert_eq(world_order(&world, COMMAND_RESUME, 0, ""), COMMAND_DONE);
    cr_assert_eq(world.started, 2);
}

Test(engine, an_unreachable_handler_is_tried_by_one_event_at_a_time)
{
    char id[8];

    world_open(&world);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof id, "e%d", i);
        world_deliver(&world, 0, id, "x");
    }
    cr_assert_eq(world.n_running, 4);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof id, "e%d", i);
        world_end(&world, id, END_UNREACHED, 0);
    }
    cr_assert_eq(world.n_running, 0);
    for (int i = 0; i < 40; i++) {
        world_pass(&world, 15000);
        cr_assert_eq(world.n_running, 1, "one probe, at least every 15 s");
        (void)snprintf(id, sizeof id, "%.*s", (int)world.running[0]->id.len,
                       world.running[0]->id.data);
        world_end(&world, id, END_UNREACHED, 0);
        cr_assert_eq(world.n_running, 0);
    }
    world_pass(&world, 15000);
    (void)snprintf(id, sizeof id, "%.*s", (int)world.running[0]->id.len,
                   world.running[0]->id.data);
    world_end(&world, id, END_STATUS, 200);
    cr_assert_eq(world.n_running, 4, "all that wait are due");
    while (world.n_running > 0) {
        (void)snprintf(id, sizeof id, "%.*s", (int)world.running[0]->id.len,
                       world.running[0]->id.data);
        world_end(&world, id, END_STATUS, 200);
    }
    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof id, "e%d", i);
        cr_assert_eq(state_of(id), RECORD_SUCCEEDED);
    }
}

Test(engine, dead_letters_are_replayed_once_under_the_same_key)
{
    char key[ATTEMPT_KEY_SIZE];

    world_open(&world);
    world_deliver(&world, 0, "e1", "body");
    (void)snprintf(key, sizeof key, "%s",
                   world_attempt(&world, "e1")->idempotency_key);
    world_end(&world, "e1", END_STATUS, 404);
    cr_assert_eq(state_of("e1"), RECORD_DEAD);
    cr_assert_eq(world_record(&world, 0, "e1").reason, REASON_REFUSED);
    cr_assert_eq(world_deliver(&world, 0, "e1", "body"), DELIVERY_DUPLICATE);
    cr_assert_eq(world.started, 1);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "e1"), COMMAND_DONE);
    cr_assert_eq(world_attempt(&world, "e1")->number, 2);
    cr_assert_str_eq(world_attempt(&world, "e1")->idempotency_key, key);
    cr_assert(
        slice_eq(world_attempt(&world, "e1")->envelope.body, SLICE("body")));
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "e1"),
                 COMMAND_NOTHING_TO_DO);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
    cr_assert_eq(world.started, 2);
}

Test(engine, a_rerun_gets_a_new_key)
{
    char key[ATTEMPT_KEY_SIZE];

    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    (void)snprintf(key, sizeof key, "%s",
                   world_attempt(&world, "e1")->idempotency_key);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(world_order(&world, COMMAND_RERUN, 0, "e1"), COMMAND_DONE);
    cr_assert_eq(world_attempt(&world, "e1")->number, 2);
    cr_assert_str_neq(world_attempt(&world, "e1")->idempotency_key, key);
}

Test(engine, orders_on_unknown_events_say_so)
{
    world_open(&world);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "nobody"),
                 COMMAND_NOT_FOUND);
    cr_assert_eq(world_order(&world, COMMAND_DISCARD, 0, "nobody"),
                 COMMAND_NOT_FOUND);
}

Test(engine, an_event_in_doubt_is_held_where_the_route_says_so)
{
    world.routes[0].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_TIMEOUT, 0);
    cr_assert_eq(state_of("e1"), RECORD_DEAD);
    cr_assert_eq(world_record(&world, 0, "e1").reason, REASON_UNCERTAIN);
    cr_assert_eq(world_order(&world, COMMAND_REPLAY, 0, "e1"),
                 COMMAND_IN_DOUBT);
    cr_assert_eq(world.started, 1);
    cr_assert_eq(world_order(&world, COMMAND_RESOLVE_APPLIED, 0, "e1"),
                 COMMAND_DONE);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
    cr_assert_eq(world.started, 1);
}

/* Puts an attempt of a process that is gone into the store. */
static void leave_running(const char *id)
{
    static const struct policy policy = {.timeout_ms = 10000,
                                         .give_up_after_ms = 3600000,
                                         .max_crashes = 20,
                                         .backoff_ms = 1000,
                                         .max_backoff_ms = 600000};
    char path[80];
    struct store_options options = {.path = path,
                                    .max_bytes = world.max_bytes,
                                    .retention_ms = 86400000,
                                    .create = true,
                                    .no_sync = true,
                                    .clock = &world.clock};
    struct envelope envelope = {.kind = ENVELOPE_HTTP,
                                .method = SLICE("POST"),
                                .path = SLICE("/a"),
                                .has_body = true};
    struct input input = {.kind = INPUT_ARRIVE, .may_start = true};
    struct buf flat = BUF_INIT;
    struct store_entry entry;
    struct store *store;
    struct err err;
    uint16_t namespace;

    (void)snprintf(path, sizeof path, "%s/store", world.dir);
    cr_assert(store_open(&store, &options, &err), "%s", err.text);
    cr_assert(store_route_number(store, "a", &input.route, &err));
    cr_assert(store_namespace_number(store, "a", &namespace, &err));
    input.epoch = store_epoch(store);
    cr_assert(store_begin(store, &err));
    cr_assert_eq(
        store_find(store, namespace, SLICE(""), slice_of(id), &entry, &err),
        STORE_ABSENT);
    (void)record_step(&entry.record, &input, &policy, world.ms);
    cr_assert_eq(entry.record.state, RECORD_RUNNING);
    envelope_encode(&envelope, &flat);
    cr_assert(store_put(store, &entry, &err));
    cr_assert(store_put_envelope(store, &entry, buf_slice(&flat), &err));
    cr_assert(store_commit(store, &err));
    store_close(&store);
    buf_free(&flat);
}

Test(engine, an_attempt_cut_short_by_a_crash_is_tried_again)
{
    leave_running("e1");
    world_open(&world);
    world_pass(&world, 2000);
    cr_assert_eq(world.started, 1);
    cr_assert_eq(world_attempt(&world, "e1")->number, 2);
    cr_assert_eq(world_record(&world, 0, "e1").crashes, 1);
    cr_assert_eq(world_history(&world, 0, "e1", MOVE_CRASHED), 1);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
}

Test(engine, an_attempt_cut_short_by_a_crash_is_held_on_a_hold_route)
{
    world.routes[0].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    leave_running("e1");
    world_open(&world);
    world_pass(&world, 100000);
    cr_assert_eq(world.started, 0);
    cr_assert_eq(state_of("e1"), RECORD_DEAD);
    cr_assert_eq(world_record(&world, 0, "e1").reason, REASON_UNCERTAIN);
}

Test(engine, an_attempt_whose_process_still_runs_is_left_alone)
{
    leave_running("e1");
    world.alive = true;
    world.routes[0].concurrency = 1;
    world_open(&world);
    world_pass(&world, 5000);
    cr_assert_eq(state_of("e1"), RECORD_RUNNING);
    cr_assert_eq(world_deliver(&world, 0, "e2", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world.started, 0, "it counts for the concurrency");
    world.alive = false;
    world_pass(&world, 1000);
    world_pass(&world, 1000);
    cr_assert_eq(world.started, 1);
    if (world_attempt(&world, "e2") != NULL) {
        world_end(&world, "e2", END_STATUS, 200);
    }
    cr_assert_eq(world_attempt(&world, "e1")->number, 2);
    cr_assert_eq(world.kills, 0);
}

Test(engine, a_process_that_outlives_its_time_is_killed)
{
    leave_running("e1");
    world.alive = true;
    world_open(&world);
    world_pass(&world, 20000);
    world_pass(&world, 1000);
    cr_assert_eq(world.kills, 1);
    world_pass(&world, 5000);
    cr_assert_eq(world_attempt(&world, "e1")->number, 2);
}

/* One attempt at a time asks whether the handler is there again. What is due
 * waits for the orphan, and the engine must not turn for it meanwhile. */
Test(engine, an_orphan_of_an_unreachable_handler_is_waited_for)
{
    leave_running("e1");
    world.alive = true;
    world_open(&world);
    cr_assert_eq(world_deliver(&world, 0, "e2", "x"), DELIVERY_ACCEPTED);
    world_end(&world, "e2", END_UNREACHED, 0);
    world_pass(&world, 2000);
    cr_assert_eq(world.started, 1);
    cr_assert_gt(due_next_ms(world.engine), world.ms);
    world.alive = false;
    world_pass(&world, 1000);
    cr_assert_eq(world.started, 2);
}

Test(engine, unsettled_events_of_a_route_that_is_gone_stop_the_start)
{
    struct err err = {ERR_NONE, ""};

    world_open(&world);
    cr_assert_eq(world_order(&world, COMMAND_PAUSE, 0, ""), COMMAND_DONE);
    world_deliver(&world, 0, "e1", "x");
    world_close(&world);
    world.routes[0].name = "renamed";
    cr_assert_not(world_try_open(&world, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "\"a\""), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "1 pending"), "%s", err.text);
    world.routes[0].name = "a";
    world.routes[0].retired = true;
    world.routes[0].handler.ops = NULL;
    world_open(&world);
    world_pass(&world, 5000);
    cr_assert_eq(world.started, 0);
    cr_assert_eq(world_order(&world, COMMAND_DISCARD, 0, "e1"), COMMAND_DONE);
    cr_assert_eq(state_of("e1"), RECORD_FAILED);
}

Test(engine, a_full_store_takes_nothing_new_and_loses_nothing)
{
    static char big[100001];
    struct sent *sent[64];
    size_t accepted = 0;
    char id[16];

    memset(big, 'x', sizeof big - 1);
    world.max_bytes = 4 << 20;
    world.routes[0].concurrency = WORLD_ATTEMPTS_MAX;
    world_open(&world);
    for (int i = 0; i < 64; i++) {
        (void)snprintf(id, sizeof id, "e%d", i);
        sent[i] = world_send(&world, 0, id, big);
        world_pass(&world, 1000);
        accepted += sent[i]->delivery.result == DELIVERY_ACCEPTED ? 1 : 0;
    }
    cr_assert_gt(accepted, 10);
    cr_assert_lt(accepted, 64);
    cr_assert_eq(sent[63]->delivery.result, DELIVERY_NO_ROOM);
    cr_assert_gt(sent[63]->delivery.retry_after_s, 0);
    cr_assert_eq(world.started, accepted, "nothing refused was started");
    cr_assert_eq(world_deliver(&world, 0, "e0", big), DELIVERY_DUPLICATE,
                 "what is known is answered");
    world_end(&world, "e0", END_STATUS, 200);
    cr_assert_eq(state_of("e0"), RECORD_SUCCEEDED, "results still go in");
    for (int i = 0; i < 64; i++) {
        sent_free(sent[i]);
    }
}

Test(engine, a_route_whose_dead_letters_are_full_stops)
{
    world.routes[0].max_dead_bytes = 1;
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 404);
    cr_assert_eq(world_deliver(&world, 0, "e2", "x"), DELIVERY_STOPPED_ROUTE);
    cr_assert_eq(world_deliver(&world, 0, "e1", "x"), DELIVERY_DUPLICATE);
    cr_assert_eq(world_deliver(&world, 1, "e2", "x"), DELIVERY_ACCEPTED);
    cr_assert_eq(world_order(&world, COMMAND_DISCARD, 0, "e1"), COMMAND_DONE);
    cr_assert_eq(world_deliver(&world, 0, "e2", "x"), DELIVERY_ACCEPTED);
}

Test(engine, after_stop_intake_nothing_starts_and_results_are_recorded)
{
    struct sent *waiting;

    world.routes[0].concurrency = 1;
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    waiting = world_send(&world, 0, "e2", "x");
    engine_stop_intake(world.engine);
    world_turn(&world);
    cr_assert_eq(waiting->delivery.result, DELIVERY_ACCEPTED,
                 "what was in the inbox is still taken");
    sent_free(waiting);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(world.started, 1);
    cr_assert_eq(state_of("e1"), RECORD_SUCCEEDED);
    world_close(&world);
    world_open(&world);
    world_turn(&world);
    cr_assert_not_null(world_attempt(&world, "e2"));
}

Test(engine, an_orderly_end_loses_no_count_of_repeats)
{
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 200);
    world_deliver(&world, 0, "e1", "x");
    world_deliver(&world, 0, "e1", "x");
    engine_stop_intake(world.engine);
    world_turn(&world);
    world_close(&world);
    world_open(&world);
    cr_assert_eq(world_record(&world, 0, "e1").deliveries, 3);
}

Test(engine, a_rerun_leaves_the_story_of_the_first_run_whole)
{
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(world_history(&world, 0, "e1", MOVE_SUCCEEDED), 0);
    world_pass(&world, 1000);
    cr_assert_eq(world_order(&world, COMMAND_RERUN, 0, "e1"), COMMAND_DONE);
    world_end(&world, "e1", END_STATUS, 200);
    cr_assert_eq(world_history(&world, 0, "e1", MOVE_SUCCEEDED), 2);
    cr_assert_eq(world_history(&world, 0, "e1", MOVE_RERUN), 1);
}
