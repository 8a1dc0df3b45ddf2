/* SPDX-License-Identifier: MIT */
#include "engine/load.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "support/world.h"

/* Route a tries again what is uncertain, b holds it. */
struct rig {
    struct world world;
    struct load *load;
    struct err err;
};

static uint64_t no_random(void *self)
{
    (void)self;
    return 0;
}

static void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    world_init(&rig->world);
    rig->world.routes[1].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world_open(&rig->world);
    world_close(&rig->world);
}

static void rig_begin(struct rig *rig)
{
    struct world *world = &rig->world;
    char path[80];
    struct store_options options = {
        .path = path,
        .max_bytes = world->max_bytes,
        .retention_ms = INT64_MAX,
        .load = "the dump of A",
        .no_sync = true,
        .clock = &world->clock,
    };
    struct engine_options engine = {
        .routes = world->routes,
        .n_routes = WORLD_ROUTES,
        .clock = &world->clock,
        .random = no_random,
        .inbox_items = 16,
        .inbox_bytes = 1 << 20,
    };

    (void)snprintf(path, sizeof path, "%s/store", world->dir);
    cr_assert(store_open(&world->store, &options, &rig->err), "%s",
              rig->err.text);
    engine.store = world->store;
    cr_assert(load_begin(&rig->load, &engine, "operator", &rig->err), "%s",
              rig->err.text);
}

static void rig_drop(struct rig *rig)
{
    load_free(&rig->load);
    store_close(&rig->world.store);
}

static void rig_end(struct rig *rig)
{
    cr_assert(load_end(rig->load, &rig->err), "%s", rig->err.text);
    rig_drop(rig);
}

static struct record make_record(enum record_state state)
{
    struct record record = {
        .state = state,
        .reason = state == RECORD_DEAD ? REASON_REFUSED : REASON_NONE,
        .run = 1,
        .attempt = state == RECORD_PENDING ? 0 : 1,
        .deliveries = 1,
        .epoch = 1, /* the world's own first */
        .first_seen_ms = 1000,
        .last_seen_ms = 1000,
        .changed_ms = 2000,
        .clock_ms = 1000,
        .due_ms = state >= RECORD_SUCCEEDED ? RECORD_NEVER : 3000,
        .doubt_since_ms = state == RECORD_UNCERTAIN ? 1500 : 0,
    };

    return record;
}

static struct load_event make_event(const char *route, const char *id,
                                    enum record_state state)
{
    return (struct load_event){
        .route = route,
        .namespace = route,
        .id = slice_of(id),
        .record = make_record(state),
        .code = "",
        .text = state == RECORD_DEAD ? "dead" : "",
    };
}

static struct buf make_envelope(void)
{
    const struct envelope envelope = {
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = 1000,
        .method = SLICE_INIT("POST"),
        .path = SLICE_INIT("/"),
        .body = SLICE_INIT("{}"),
        .has_body = true,
    };
    struct buf flat = BUF_INIT;

    envelope_encode(&envelope, &flat);
    return flat;
}

static enum load_verdict take(struct rig *rig, const struct load_event *event)
{
    enum load_verdict verdict = LOAD_CONFLICT;

    cr_assert(load_event(rig->load, event, &verdict, &rig->err), "%s",
              rig->err.text);
    return verdict;
}

static enum load_verdict take_one(struct rig *rig, const char *route,
                                  const char *id, enum record_state state)
{
    struct load_event event = make_event(route, id, state);
    struct buf envelope = make_envelope();
    enum load_verdict verdict;

    event.has_envelope = true;
    event.envelope = buf_slice(&envelope);
    verdict = take(rig, &event);
    buf_free(&envelope);
    return verdict;
}

static void rig_fini(struct rig *rig)
{
    world_fini(&rig->world);
}

/* --- what is settled --------------------------------------------------------
 */

Test(load, what_is_settled_is_taken_as_it_is)
{
    struct rig rig;
    struct record record;

    rig_init(&rig);
    rig_begin(&rig);
    cr_expect_eq(take_one(&rig, "a", "ok", RECORD_SUCCEEDED), LOAD_TAKEN);
    cr_expect_eq(take_one(&rig, "a", "no", RECORD_DEAD), LOAD_TAKEN);
    cr_expect_eq(load_counts(rig.load)->taken, 0, "not durable yet");
    rig_end(&rig);
    world_open(&rig.world);
    record = world_record(&rig.world, 0, "ok");
    cr_expect_eq(record.state, RECORD_SUCCEEDED);
    cr_expect_eq(record.attempt, 1);
    cr_expect_eq(record.changed_ms, 2000);
    cr_expect_eq(world_record(&rig.world, 0, "no").state, RECORD_DEAD);
    cr_expect_eq(world_deliver(&rig.world, 0, "ok", "x"), DELIVERY_DUPLICATE);
    cr_expect_eq(rig.world.started, 0);
    cr_expect_eq(world_order(&rig.world, COMMAND_REPLAY, 0, "no"),
                 COMMAND_DONE);
    cr_expect_not_null(world_attempt(&rig.world, "no"));
    rig_fini(&rig);
}

Test(load, what_is_settled_needs_no_route_that_is_configured)
{
    struct rig rig;
    struct load_event event = make_event("gone", "x", RECORD_PENDING);
    enum load_verdict verdict;

    rig_init(&rig);
    rig_begin(&rig);
    cr_expect_eq(take_one(&rig, "gone", "done", RECORD_SUCCEEDED), LOAD_TAKEN);
    cr_expect_eq(take_one(&rig, "other", "done", RECORD_DEAD), LOAD_TAKEN);
    cr_assert_not(load_event(rig.load, &event, &verdict, &rig.err));
    cr_expect_eq(rig.err.kind, ERR_CONFIG);
    cr_expect_not_null(strstr(rig.err.text, "retired"), "%s", rig.err.text);
    load_keep(rig.load);
    cr_expect_eq(load_counts(rig.load)->taken, 2);
    rig_drop(&rig);
    rig_begin(&rig);
    rig_end(&rig);
    world_open(&rig.world);
    rig_fini(&rig);
}

/* --- what an engine could not work with -------------------------------------
 */

struct spoilt {
    const char *what; /* part of the error */
    enum record_state state;
    uint32_t flags;
    bool no_envelope;
    uint32_t run, attempt;
};

static void expect_check(struct rig *rig, const struct spoilt *spoilt)
{
    struct load_event event = make_event("a", "x", spoilt->state);
    struct buf envelope = make_envelope();
    enum load_verdict verdict;
    bool ok;

    event.record.flags |= spoilt->flags;
    event.record.run = spoilt->run == 0 ? 1 : spoilt->run;
    if (spoilt->attempt != 0) {
        event.record.attempt = spoilt->attempt;
    }
    event.has_envelope = !spoilt->no_envelope;
    event.envelope = buf_slice(&envelope);
    ok = load_check_event(&event, &rig->world.routes[0], &rig->err);
    cr_expect_eq(ok, spoilt->what == NULL);
    if (!ok) {
        cr_expect_eq(rig->err.kind, ERR_DATA);
        cr_expect_not_null(strstr(rig->err.text, spoilt->what), "%s: %s",
                           spoilt->what, rig->err.text);
    }
    cr_expect_eq(load_event(rig->load, &event, &verdict, &rig->err), ok,
                 "the load refuses what the check does");
    buf_free(&envelope);
}

Test(load, what_an_engine_could_not_work_with_is_refused)
{
    static const struct spoilt all[] = {
        {"not settled", RECORD_PENDING, 0, true, 0, 0},
        {"not settled", RECORD_RUNNING, 0, true, 0, 0},
        {"not settled", RECORD_UNCERTAIN, 0, true, 0, 0},
        {"not settled", RECORD_UNCERTAIN, RECORD_ERASED, true, 0, 0},
        {"erased", RECORD_PENDING, RECORD_ERASED, false, 0, 0},
        {"erased", RECORD_SUCCEEDED, RECORD_ERASED, false, 0, 0},
        {"dead letter", RECORD_DEAD, 0, true, 0, 0},
        {"attempts", RECORD_UNCERTAIN, 0, false, 0, UINT32_MAX},
        {"attempts", RECORD_DEAD, 0, false, 0, (1U << 30) + 1},
        {"run", RECORD_SUCCEEDED, 0, false, UINT32_MAX, 0},
        {"flag", RECORD_SUCCEEDED, RECORD_PROBING, false, 0, 0},
        {"not settled", RECORD_RUNNING, RECORD_PINS, true, 0, 0},
        {"nobody keeps it", RECORD_RUNNING, RECORD_LEFT, true, 0, 0},
        {"not kept here", RECORD_PENDING, RECORD_PINS | RECORD_LEFT, true, 0,
         0},
        {NULL, RECORD_RUNNING, RECORD_PINS | RECORD_LEFT, true, 0, 0},
        {NULL, RECORD_DEAD, RECORD_LEFT, true, 0, 0},
        {NULL, RECORD_DEAD, RECORD_ERASED, true, 0, 0},
        {NULL, RECORD_SUCCEEDED, 0, true, 1U << 30, 1U << 30},
    };
    struct rig rig;

    rig_init(&rig);
    rig_begin(&rig);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        expect_check(&rig, &all[i]);
        rig_drop(&rig);
        rig_begin(&rig);
    }
    rig_end(&rig);
    rig_fini(&rig);
}

/* --- what is not
 * -------------------------------------------------------------- */

Test(load, what_was_not_settled_becomes_uncertain)
{
    static const enum record_state states[] = {RECORD_PENDING, RECORD_RUNNING,
                                               RECORD_UNCERTAIN};
    struct rig rig;
    struct attempt *attempt;
    char id[8];

    rig_init(&rig);
    rig_begin(&rig);
    cr_assert(load_pause(rig.load, "a", &rig.err), "%s", rig.err.text);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(id, sizeof id, "a%zu", i);
        cr_expect_eq(take_one(&rig, "a", id, states[i]), LOAD_TAKEN);
        (void)snprintf(id, sizeof id, "b%zu", i);
        cr_expect_eq(take_one(&rig, "b", id, states[i]), LOAD_TAKEN);
    }
    rig_end(&rig);
    world_open(&rig.world);
    for (size_t i = 0; i < 3; i++) {
        struct record record;

        (void)snprintf(id, sizeof id, "b%zu", i);
        record = world_record(&rig.world, 1, id);
        cr_expect_eq(record.state, RECORD_DEAD);
        cr_expect_eq(record.reason, REASON_UNCERTAIN);
        cr_expect_eq(world_history(&rig.world, 1, id, MOVE_RESTORED), 1);
        (void)snprintf(id, sizeof id, "a%zu", i);
        record = world_record(&rig.world, 0, id);
        cr_expect_eq(record.state, RECORD_UNCERTAIN, "%s", id);
        cr_expect(record.flags & RECORD_RESTORED);
        cr_expect_eq(record.crashes, 0, "its process is none of ours");
    }
    cr_expect_eq(world_order(&rig.world, COMMAND_RESUME, 0, ""), COMMAND_DONE);
    attempt = world_attempt(&rig.world, "a1");
    cr_assert_not_null(attempt);
    cr_expect_eq(attempt->number, 2);
    cr_expect_null(world_attempt(&rig.world, "b1"));
    rig_fini(&rig);
}

static enum load_verdict take_ordered(struct rig *rig, const char *id,
                                      uint32_t flags)
{
    struct load_event event = make_event("a", id, RECORD_PENDING);
    struct buf envelope = make_envelope();
    enum load_verdict verdict;

    event.has_envelope = true;
    event.envelope = buf_slice(&envelope);
    event.record.order_key = 77;
    event.record.flags = RECORD_ORDERED | flags;
    if (flags != 0) {
        event.record.due_ms = RECORD_NEVER;
    }
    verdict = take(rig, &event);
    buf_free(&envelope);
    return verdict;
}

static void finish(struct rig *rig, const char *id)
{
    world_turn(&rig->world);
    cr_assert_not_null(world_attempt(&rig->world, id), "%s", id);
    cr_expect_eq(rig->world.n_running, 1);
    world_end(&rig->world, id, END_STATUS, 200);
}

Test(load, the_order_of_a_key_is_kept)
{
    struct rig rig;

    rig_init(&rig);
    rig_begin(&rig);
    (void)take_ordered(&rig, "1", 0);
    (void)take_ordered(&rig, "2", RECORD_ORDER_WAIT);
    (void)take_ordered(&rig, "3", RECORD_ORDER_WAIT);
    rig_end(&rig);
    world_open(&rig.world);
    finish(&rig, "1");
    finish(&rig, "2");
    finish(&rig, "3");
    rig_fini(&rig);
}

/* What arrives at the copy stands in the line of what was loaded into it. */
Test(load, an_ordering_key_is_the_same_in_every_store)
{
    struct world first, second;
    struct sent *sent[3];
    uint64_t keys[2];

    world_init(&first);
    world_init(&second);
    second.routes[1].namespace = "a";
    second.routes[0].namespace = "elsewhere";
    world_open(&first);
    world_open(&second);
    sent[0] = world_send_keyed(&first, 0, "1", 77);
    sent[1] = world_send_keyed(&second, 1, "1", 77);
    sent[2] = world_send_keyed(&second, 0, "2", 77);
    world_turn(&first);
    world_turn(&second);
    keys[0] = world_record(&first, 0, "1").order_key;
    keys[1] = world_record(&second, 1, "1").order_key;
    cr_expect_neq(keys[0], 0);
    cr_expect_eq(keys[0], keys[1]);
    cr_expect_neq(world_record(&second, 0, "2").order_key, keys[0],
                  "another namespace");
    for (size_t i = 0; i < 3; i++) {
        sent_free(sent[i]);
    }
    world_fini(&first);
    world_fini(&second);
}

/* The event that it waited for there is settled here, or is none. */
Test(load, nothing_waits_for_a_key_that_nobody_holds)
{
    struct rig rig;

    rig_init(&rig);
    rig_begin(&rig);
    (void)take_ordered(&rig, "2", RECORD_ORDER_WAIT);
    (void)take_ordered(&rig, "3", RECORD_ORDER_WAIT);
    rig_end(&rig);
    world_open(&rig.world);
    finish(&rig, "2");
    finish(&rig, "3");
    rig_fini(&rig);
}

/* There a rerun ran, in front of an older event of its key. */
Test(load, what_ran_stands_in_line_too)
{
    struct rig rig;
    struct load_event event = make_event("a", "2", RECORD_RUNNING);
    struct buf envelope = make_envelope();
    struct record record;

    rig_init(&rig);
    rig_begin(&rig);
    (void)take_ordered(&rig, "1", RECORD_ORDER_WAIT);
    event.has_envelope = true;
    event.envelope = buf_slice(&envelope);
    event.record.order_key = 77;
    event.record.flags = RECORD_ORDERED;
    cr_expect_eq(take(&rig, &event), LOAD_TAKEN);
    event.id = SLICE("3");
    event.has_envelope = false;
    event.record.flags |= RECORD_PINS | RECORD_LEFT;
    event.stream = "default/t/g";
    cr_expect_eq(take(&rig, &event), LOAD_TAKEN);
    rig_end(&rig);
    world_open(&rig.world);
    record = world_record(&rig.world, 0, "3");
    cr_expect_eq(record.state, RECORD_UNCERTAIN);
    cr_expect_eq(record.flags, RECORD_ORDERED | RECORD_ORDER_WAIT |
                                   RECORD_PINS | RECORD_LEFT | RECORD_PARKED |
                                   RECORD_RESTORED);
    record = world_record(&rig.world, 0, "2");
    cr_expect_eq(record.state, RECORD_UNCERTAIN);
    cr_expect_eq(record.doubt_since_ms, 2000, "since its attempt began");
    cr_expect_eq(record.attempt, 1);
    finish(&rig, "1");
    finish(&rig, "2");
    buf_free(&envelope);
    rig_fini(&rig);
}

/* There a rerun held the key in front of an older event. */
Test(load, one_holds_a_key_even_where_another_did)
{
    struct rig rig;

    rig_init(&rig);
    rig_begin(&rig);
    (void)take_ordered(&rig, "1", RECORD_ORDER_WAIT);
    (void)take_ordered(&rig, "2", 0);
    rig_end(&rig);
    world_open(&rig.world);
    finish(&rig, "1");
    finish(&rig, "2");
    rig_fini(&rig);
}

/* --- partitions -------------------------------------------------------------
 */

static const struct store_position at_7_of_3 = {.partition = 3, .offset = 7};

static enum load_verdict take_at(struct rig *rig, const char *id,
                                 enum record_state state, uint32_t flags)
{
    struct load_event event = make_event("a", id, state);
    struct buf envelope = make_envelope();
    enum load_verdict verdict;

    event.record.flags = flags;
    if ((flags & RECORD_PARKED) != 0) {
        event.record.due_ms = RECORD_NEVER;
    }
    event.stream = "eu/orders/onced";
    event.position = at_7_of_3;
    event.position.stream = 77; /* of another store */
    event.has_envelope = (flags & RECORD_LEFT) == 0;
    event.envelope = buf_slice(&envelope);
    verdict = take(rig, &event);
    buf_free(&envelope);
    return verdict;
}

static struct store_entry look(struct rig *rig, const char *id)
{
    struct world *world = &rig->world;
    struct store_entry entry;
    uint16_t namespace;

    cr_assert(store_namespace_number(world->store, "a", &namespace, &rig->err));
    cr_assert(store_begin(world->store, &rig->err));
    cr_assert_eq(store_find(world->store, namespace, SLICE(""), slice_of(id),
                            &entry, &rig->err),
                 STORE_FOUND, "%s", id);
    store_abort(world->store);
    return entry;
}

Test(load, a_position_comes_along_by_the_name_of_its_stream)
{
    struct rig rig;
    struct store_entry entry;
    struct store_low_water low_water;
    struct identity identity;
    uint64_t origin = 0;
    uint16_t number;

    rig_init(&rig);
    for (int round = 0; round < 2; round++) {
        enum load_verdict wanted = round == 0 ? LOAD_TAKEN : LOAD_KNOWN;

        rig_begin(&rig);
        cr_assert(
            store_stream_number(rig.world.store, "other", &number, &rig.err));
        cr_expect_eq(take_one(&rig, "a", "h", RECORD_SUCCEEDED), wanted);
        cr_expect_eq(take_at(&rig, "ok", RECORD_SUCCEEDED, RECORD_LEFT),
                     wanted);
        cr_expect_eq(take_at(&rig, "no", RECORD_DEAD, 0), wanted);
        rig_end(&rig);
    }
    world_open(&rig.world);
    cr_expect_str_eq(store_stream_name(rig.world.store, 2), "eu/orders/onced");
    cr_expect_null(store_stream_name(rig.world.store, 3));
    cr_expect_eq(look(&rig, "h").position.stream, 0);
    entry = look(&rig, "ok");
    cr_expect_eq(entry.position.stream, 2);
    cr_expect_eq(entry.position.partition, 3);
    cr_expect_eq(entry.position.offset, 7);
    cr_expect_eq(entry.record.flags, RECORD_LEFT);
    entry = look(&rig, "no");
    cr_expect_eq(entry.position.stream, 2);
    /* how far a partition was read, and what was to be published, does not */
    cr_assert(store_begin(rig.world.store, &rig.err));
    cr_expect_eq(
        store_get_low_water(rig.world.store, 2, 3, &low_water, &rig.err),
        STORE_ABSENT);
    cr_expect_eq(store_outbox_next(rig.world.store, entry.record.route, &origin,
                                   &identity, &rig.err),
                 STORE_ABSENT);
    store_abort(rig.world.store);
    rig_fini(&rig);
}

/* Also what the broker has alone: it delivers it again. */
Test(load, what_waits_for_a_partition_waits_for_it_here)
{
    static const struct {
        const char *id;
        enum record_state state;
        uint32_t flags;
    } all[] = {
        {"kept", RECORD_PENDING, RECORD_PINS},
        {"ran", RECORD_RUNNING, RECORD_PINS},
        {"parked", RECORD_UNCERTAIN, RECORD_PINS | RECORD_PARKED},
        {"left", RECORD_RUNNING, RECORD_PINS | RECORD_LEFT},
        {"both", RECORD_PENDING, RECORD_PINS | RECORD_LEFT | RECORD_PARKED},
    };
    struct rig rig;

    rig_init(&rig);
    for (int round = 0; round < 2; round++) {
        rig_begin(&rig);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            cr_expect_eq(take_at(&rig, all[i].id, all[i].state, all[i].flags),
                         round == 0 ? LOAD_TAKEN : LOAD_KNOWN, "%s", all[i].id);
        }
        rig_end(&rig);
    }
    world_open(&rig.world);
    world_turn(&rig.world);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct store_entry entry = look(&rig, all[i].id);

        cr_expect_eq(entry.record.state, RECORD_UNCERTAIN, "%s", all[i].id);
        cr_expect_eq(entry.record.flags,
                     (all[i].flags & RECORD_LEFT) | RECORD_PINS |
                         RECORD_PARKED | RECORD_RESTORED,
                     "%s", all[i].id);
        cr_expect_eq(entry.position.offset, 7, "%s", all[i].id);
    }
    cr_expect_eq(rig.world.started, 0);
    rig_fini(&rig);
}

/* Its message was gone from the broker while it ran there. */
Test(load, what_no_partition_brings_any_more_is_ours)
{
    struct rig rig;
    struct load_event event = make_event("a", "left", RECORD_RUNNING);
    struct buf envelope = make_envelope();

    rig_init(&rig);
    rig_begin(&rig);
    event.record.flags = RECORD_PINS | RECORD_LEFT;
    cr_expect_eq(take(&rig, &event), LOAD_TAKEN);
    event.id = SLICE("kept");
    event.record.flags = RECORD_PINS;
    event.has_envelope = true;
    event.envelope = buf_slice(&envelope);
    cr_expect_eq(take(&rig, &event), LOAD_TAKEN);
    rig_end(&rig);
    world_open(&rig.world);
    cr_expect_eq(look(&rig, "left").record.state, RECORD_DEAD);
    cr_expect_eq(look(&rig, "kept").record.flags, RECORD_RESTORED);
    world_turn(&rig.world);
    cr_expect_not_null(world_attempt(&rig.world, "kept"));
    buf_free(&envelope);
    rig_fini(&rig);
}

Test(load, what_is_no_position_is_refused)
{
    static char long_name[1025];
    static const struct store_position positions[] = {{.partition = -1},
                                                      {.offset = -1}};
    struct load_event event = make_event("a", "x", RECORD_SUCCEEDED);
    struct err err;

    memset(long_name, 'x', sizeof long_name - 1);
    for (size_t i = 0; i < 2; i++) {
        event.stream = "a/t/g";
        event.position = positions[i];
        cr_assert_not(load_check_event(&event, NULL, &err));
        cr_expect_not_null(strstr(err.text, "position"), "%s", err.text);
    }
    event.position = at_7_of_3;
    cr_expect(load_check_event(&event, NULL, &err));
    event.stream = long_name;
    cr_expect_not(load_check_event(&event, NULL, &err));
    event.stream = long_name + 1;
    cr_expect(load_check_event(&event, NULL, &err));
    event.stream = "";
    cr_expect_not(load_check_event(&event, NULL, &err));
}

/* --- a second time
 * ------------------------------------------------------------ */

Test(load, what_is_there_is_known_and_not_overwritten)
{
    static const enum record_state states[] = {
        RECORD_PENDING,   RECORD_RUNNING, RECORD_UNCERTAIN,
        RECORD_SUCCEEDED, RECORD_FAILED,  RECORD_DEAD};
    struct rig rig;
    struct load_event other = make_event("a", "3", RECORD_SUCCEEDED);
    char id[8];

    rig_init(&rig);
    for (int round = 0; round < 2; round++) {
        rig_begin(&rig);
        for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
            (void)snprintf(id, sizeof id, "%zu", i);
            cr_expect_eq(take_one(&rig, i % 2 == 0 ? "a" : "b", id, states[i]),
                         round == 0 ? LOAD_TAKEN : LOAD_KNOWN, "%s", id);
        }
        rig_end(&rig);
    }
    rig_begin(&rig);
    other.route = other.namespace = "b";
    other.record.attempt = 2;
    cr_expect_eq(take(&rig, &other), LOAD_CONFLICT);
    other = make_event("a", "0", RECORD_SUCCEEDED);
    cr_expect_eq(take(&rig, &other), LOAD_CONFLICT);
    rig_end(&rig);
    world_open(&rig.world);
    cr_expect_eq(world_record(&rig.world, 1, "3").attempt, 1);
    cr_expect_neq(world_record(&rig.world, 0, "0").state, RECORD_SUCCEEDED);
    rig_fini(&rig);
}

/* What the route remembers no more must not come in twice. */
Test(load, what_is_older_than_the_memory_is_known)
{
    struct rig rig;

    rig_init(&rig);
    rig.world.routes[0].retention.ids_ms = 1;
    rig.world.ms += INT64_C(100) * 24 * 3600 * 1000;
    for (int round = 0; round < 2; round++) {
        rig_begin(&rig);
        cr_expect_eq(take_one(&rig, "a", "old", RECORD_SUCCEEDED),
                     round == 0 ? LOAD_TAKEN : LOAD_KNOWN);
        rig_end(&rig);
    }
    world_open(&rig.world);
    rig_fini(&rig);
}

/* --- before the end
 * ------------------------------------------------------------ */

Test(load, half_a_load_keeps_workers_out)
{
    struct rig rig;

    rig_init(&rig);
    rig_begin(&rig);
    rig_drop(&rig);
    world_open(&rig.world); /* nothing had come */
    world_close(&rig.world);

    rig_begin(&rig);
    (void)take_one(&rig, "a", "1", RECORD_SUCCEEDED);
    load_keep(rig.load);
    cr_expect_eq(load_counts(rig.load)->taken, 1);
    rig_drop(&rig);
    cr_assert_not(world_try_open(&rig.world, &rig.err));
    cr_expect_eq(rig.err.kind, ERR_DATA);

    rig_begin(&rig);
    cr_expect_eq(take_one(&rig, "a", "1", RECORD_SUCCEEDED), LOAD_KNOWN);
    rig_end(&rig);
    world_open(&rig.world);
    rig_fini(&rig);
}

Test(load, many_are_committed_on_the_way)
{
    struct rig rig;
    char id[16];

    rig_init(&rig);
    rig_begin(&rig);
    for (int i = 0; i < 2500; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        (void)take_one(&rig, "a", id, RECORD_SUCCEEDED);
    }
    cr_expect_eq(load_counts(rig.load)->taken, 2000);
    rig_drop(&rig);
    rig_begin(&rig);
    for (int i = 0; i < 2500; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        cr_expect_eq(take_one(&rig, "a", id, RECORD_SUCCEEDED),
                     i < 2000 ? LOAD_KNOWN : LOAD_TAKEN, "%d", i);
    }
    rig_end(&rig);
    world_open(&rig.world);
    rig_fini(&rig);
}

/* --- what holds for all
 * ----------------------------------------------------------- */

Test(load, a_paused_route_stays_paused)
{
    struct rig rig;

    rig_init(&rig);
    rig_begin(&rig);
    cr_assert(load_pause(rig.load, "a", &rig.err), "%s", rig.err.text);
    cr_assert(load_pause(rig.load, "new", &rig.err), "%s", rig.err.text);
    cr_assert(load_forget_until(rig.load, 500, &rig.err), "%s", rig.err.text);
    (void)take_one(&rig, "a", "1", RECORD_PENDING);
    rig_end(&rig);
    world_open(&rig.world);
    world_turn(&rig.world);
    cr_expect_eq(rig.world.started, 0);
    cr_expect_eq(store_forgotten_until_ms(rig.world.store), 500);
    cr_expect_eq(world_order(&rig.world, COMMAND_RESUME, 0, ""), COMMAND_DONE);
    cr_expect_eq(rig.world.started, 1);
    rig_fini(&rig);
}

/* --- ids
 * ------------------------------------------------------------------------------
 */

static enum load_verdict see(struct rig *rig, size_t route, const char *id,
                             int64_t at_ms)
{
    const struct load_seen seen = {
        .route = route, .id = slice_of(id), .at_ms = at_ms};
    enum load_verdict verdict = LOAD_CONFLICT;

    cr_assert(load_seen(rig->load, &seen, &verdict, &rig->err), "%s",
              rig->err.text);
    return verdict;
}

Test(load, what_was_seen_elsewhere_is_a_repeat)
{
    struct rig rig;
    struct record record;

    rig_init(&rig);
    rig_begin(&rig);
    cr_expect_eq(see(&rig, 0, "1", 500), LOAD_TAKEN);
    cr_expect_eq(see(&rig, 0, "2", 0), LOAD_TAKEN);
    cr_expect_eq(see(&rig, 0, "3", INT64_MAX), LOAD_TAKEN);
    cr_expect_eq(see(&rig, 0, "1", 700), LOAD_KNOWN);
    rig_end(&rig);
    world_open(&rig.world);
    record = world_record(&rig.world, 0, "1");
    cr_expect_eq(record.state, RECORD_SUCCEEDED);
    cr_expect_eq(record.run, 1);
    cr_expect_eq(record.attempt, 0);
    cr_expect_eq(record.flags, RECORD_ERASED, "there is nothing to run");
    cr_expect_eq(record.first_seen_ms, 500);
    cr_expect_eq(record.changed_ms, WORLD_START_MS, "remembered from now on");
    cr_expect_eq(world_record(&rig.world, 0, "2").first_seen_ms,
                 WORLD_START_MS);
    cr_expect_eq(world_record(&rig.world, 0, "3").first_seen_ms, WORLD_START_MS,
                 "not in time to come");
    cr_expect_eq(world_history(&rig.world, 0, "1", MOVE_SEEN), 1);
    cr_expect_eq(world_deliver(&rig.world, 0, "1", "x"), DELIVERY_DUPLICATE);
    cr_expect_eq(world_deliver(&rig.world, 1, "1", "x"), DELIVERY_ACCEPTED);
    cr_expect_eq(rig.world.started, 1);
    cr_expect_eq(world_order(&rig.world, COMMAND_RERUN, 0, "1"),
                 COMMAND_REFUSED);
    rig_fini(&rig);
}
