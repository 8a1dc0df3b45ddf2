/* SPDX-License-Identifier: MIT */
/* Dead letters that are told elsewhere: each until it was, and for each death.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"
#include "support/partition_rig.h"
#include "support/world.h"

enum { LETTERS = 256 };

static struct world world;
static struct part a;

/* What was handed out and is not finished, oldest first. */
static struct dead_letter *letters[LETTERS];
static size_t n_letters;
static size_t told; /* ever */

static void publish(void *self, struct dead_letter *letter)
{
    (void)self;
    cr_assert_lt(n_letters, LETTERS);
    letters[n_letters++] = letter;
    told++;
}

static void nothing(void *self)
{
    (void)self;
}

static const struct publisher_ops ops = {publish, nothing, nothing};

static void tell_of(size_t route)
{
    world.routes[route].tells_dead = true;
    world.routes[route].publisher.ops = &ops;
}

static void setup(void)
{
    world_init(&world);
    tell_of(0);
    world.streams = rig_streams;
    world.n_streams = 1;
}

/* Without a turn of the engine. */
static void give_back(size_t i, bool published)
{
    struct dead_letter *letter = letters[i];

    memmove(&letters[i], &letters[i + 1],
            (--n_letters - i) * sizeof letters[0]);
    letter->published = published;
    (void)snprintf(letter->text, sizeof letter->text, "no broker");
    dead_letter_finish(letter);
}

static void finish(bool published)
{
    give_back(0, published);
    world_turn(&world);
}

static void crash(void)
{
    while (n_letters > 0) {
        give_back(0, false);
    }
    world_crash(&world);
    world_open(&world);
    world_turn(&world);
}

static void teardown(void)
{
    while (n_letters > 0) {
        give_back(0, false);
    }
    world_crash(&world);
    world_fini(&world);
}

TestSuite(outbox, .init = setup, .fini = teardown);

static void die_of(const char *id, int status)
{
    world_deliver(&world, 0, id, "x");
    world_end(&world, id, END_STATUS, status);
    cr_assert_eq(world_record(&world, 0, id).state, RECORD_DEAD);
}

static void die(const char *id)
{
    die_of(id, 404);
}

static bool is_told(size_t i, const char *id)
{
    return i < n_letters && slice_eq(letters[i]->id, slice_of(id));
}

/* Only what is asked for, and at that time. */
static void expect_again_after(int64_t ms)
{
    world_pass(&world, ms - 1);
    cr_assert_eq(n_letters, 0, "before %lld ms", (long long)ms);
    world_pass(&world, 1);
    cr_assert_eq(n_letters, 1, "after %lld ms", (long long)ms);
}

Test(outbox, a_letter_says_what_died_of_what)
{
    char key[ATTEMPT_KEY_SIZE];
    const struct dead_letter *letter;

    world_open(&world);
    world_deliver(&world, 0, "e0", "body");
    memcpy(key, world_attempt(&world, "e0")->idempotency_key, sizeof key);
    world_deliver(&world, 0, "e0", "body");
    world_pass(&world, 250);
    (void)snprintf(world_attempt(&world, "e0")->code, ATTEMPT_CODE_SIZE,
                   "no-such-account");
    world_end(&world, "e0", END_STATUS, 404);
    cr_assert_eq(n_letters, 1);
    letter = letters[0];
    cr_expect_str_eq(letter->route, "a");
    cr_expect(is_told(0, "e0"));
    cr_expect_eq(letter->tenant.len, 0);
    cr_expect_str_eq(letter->idempotency_key, key);
    cr_expect_eq(letter->reason, REASON_REFUSED);
    cr_expect_str_eq(letter->code, "no-such-account");
    cr_expect_not_null(strstr(letter->why, "status 404"), "%s", letter->why);
    cr_expect_eq(letter->run, 1);
    cr_expect_eq(letter->attempts, 1);
    cr_expect_eq(letter->first_seen_ms,
                 world_record(&world, 0, "e0").first_seen_ms);
    cr_expect_eq(letter->died_ms, letter->first_seen_ms + 250);
    cr_assert(letter->has_envelope);
    cr_expect(slice_eq(letter->envelope.body, SLICE("body")));
}

Test(outbox, what_was_published_is_not_told_again)
{
    world_open(&world);
    die("e0");
    finish(true);
    world_pass(&world, 3600000);
    cr_expect_eq(told, 1);
    crash();
    world_pass(&world, 3600000);
    cr_expect_eq(told, 1);
    cr_expect_eq(world_record(&world, 0, "e0").state, RECORD_DEAD);
}

Test(outbox, what_was_not_published_is_told_again_at_ever_longer_times)
{
    static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};

    world_open(&world);
    die("e0");
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        finish(false);
        expect_again_after(1000 * seconds[i]);
    }
    finish(true);
    die("e1");
    cr_expect_eq(n_letters, 1, "there is a broker again");
    finish(false);
    expect_again_after(1000);
}

/* While the broker is not there the others are not tried, and those that are
 * on their way are waited for. */
Test(outbox, the_list_is_begun_again_when_all_are_back)
{
    world_open(&world);
    die("e0");
    die("e1");
    cr_assert_eq(n_letters, 2);
    finish(false);
    die("e2");
    world_pass(&world, 5000);
    world_deliver(&world, 1, "b0", "x"); /* any batch */
    cr_expect_eq(n_letters, 1, "e1 is on its way");
    finish(true);
    cr_expect_eq(n_letters, 2);
    cr_expect(is_told(0, "e0") || is_told(1, "e0"));
    cr_expect(is_told(0, "e2") || is_told(1, "e2"));
}

Test(outbox, a_second_death_is_told_too)
{
    world_open(&world);
    die("e0");
    cr_expect_eq(world_order(&world, COMMAND_REPLAY, 0, "e0"), COMMAND_DONE);
    world_end(&world, "e0", END_STATUS, 404);
    cr_expect_eq(n_letters, 1, "the first is on its way");
    finish(true);
    cr_assert_eq(n_letters, 1);
    cr_expect_eq(letters[0]->attempts, 2);
    finish(true);
    world_pass(&world, 100000);
    cr_expect_eq(told, 2);
    cr_expect_eq(world_order(&world, COMMAND_REPLAY, 0, "e0"), COMMAND_DONE);
    world_end(&world, "e0", END_STATUS, 404);
    cr_assert_eq(n_letters, 1);
    cr_expect_eq(letters[0]->attempts, 3);
}

Test(outbox, a_death_of_the_second_run_is_told_for_it)
{
    world_open(&world);
    world_deliver(&world, 0, "e0", "x");
    world_end(&world, "e0", END_STATUS, 200);
    world_order(&world, COMMAND_RERUN, 0, "e0");
    world_end(&world, "e0", END_STATUS, 404);
    cr_assert_eq(n_letters, 1);
    cr_expect_eq(letters[0]->run, 2);
}

/* Its next delivery came by another route, which tells of its own dead. */
Test(outbox, a_death_is_told_by_the_route_that_owns_it)
{
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        world.routes[i].namespace = "a";
        world.routes[i].policy.respond = RESPOND_RESULT;
        world.routes[i].rules.respond = RESPOND_RESULT;
        world.routes[i].policy.on_error = ON_ERROR_DEAD;
        tell_of(i);
    }
    world_open(&world);
    die_of("e0", 422);
    finish(false);
    cr_expect_eq(world_order(&world, COMMAND_RESOLVE_NOT_APPLIED, 0, "e0"),
                 COMMAND_DONE);
    world_deliver(&world, 1, "e0", "x");
    world_end(&world, "e0", END_STATUS, 422);
    cr_assert_eq(n_letters, 1);
    cr_expect_str_eq(letters[0]->route, "b");
    world_pass(&world, 60000);
    cr_expect_eq(n_letters, 1, "it is b's");
    finish(true);
    world_pass(&world, 60000);
    cr_expect_eq(told, 2);
}

Test(outbox, a_replay_that_succeeds_leaves_nothing_to_tell)
{
    world_open(&world);
    die("e0");
    world_order(&world, COMMAND_REPLAY, 0, "e0");
    world_end(&world, "e0", END_STATUS, 200);
    finish(false);
    world_pass(&world, 100000);
    cr_expect_eq(told, 1);
    crash();
    world_pass(&world, 100000);
    cr_expect_eq(told, 1);
}

Test(outbox, what_was_discarded_is_not_told)
{
    world_open(&world);
    die("e0");
    finish(false);
    die("e1");
    cr_expect_eq(world_order(&world, COMMAND_DISCARD, 0, "e1"), COMMAND_DONE);
    world_pass(&world, 1000);
    cr_assert_eq(n_letters, 1);
    cr_expect(is_told(0, "e0"));
    finish(false);
    world_order(&world, COMMAND_DISCARD, 0, "e0");
    world_pass(&world, 100000);
    crash();
    world_pass(&world, 100000);
    cr_expect_eq(told, 2);
}

static void bury(int first, int last)
{
    for (int i = first; i <= last; i++) {
        struct sent *sent = world_send(&world, 0, world_id(i), "x");

        sent->arrivals[0].unusable = REASON_UNDECODABLE;
        world_turn(&world);
        sent_free(sent);
    }
}

Test(outbox, many_go_some_at_a_time_and_in_order)
{
    world_open(&world);
    bury(0, 199);
    cr_assert_eq(n_letters, LETTERS_MAX);
    for (int i = 0; i < 200; i++) {
        cr_assert(is_told(0, world_id(i)), "%d", i);
        finish(true);
        cr_assert_leq(n_letters, LETTERS_MAX);
    }
    world_pass(&world, 100000);
    cr_expect_eq(told, 200);
}

static bool none_is_there_twice(void)
{
    for (size_t i = 0; i < n_letters; i++) {
        for (size_t j = i + 1; j < n_letters; j++) {
            if (slice_eq(letters[i]->id, letters[j]->id)) {
                return false;
            }
        }
    }
    return true;
}

Test(outbox, none_is_on_its_way_twice)
{
    world_open(&world);
    bury(0, 99);
    for (int i = 0; i < 400; i++) {
        if (n_letters == 0) {
            world_pass(&world, 60000);
        }
        if (n_letters > 0) {
            give_back((size_t)(i * 31) % n_letters, i % 3 == 0);
            world_turn(&world);
        }
        cr_assert(none_is_there_twice());
    }
    for (int i = 0; i < 300 && n_letters > 0; i++) {
        finish(true);
    }
    world_pass(&world, 60000);
    while (n_letters > 0) {
        finish(true);
    }
    told = 0;
    crash();
    cr_expect_eq(told, 0, "all were published");
}

Test(outbox, the_next_process_tells_the_rest)
{
    world_open(&world);
    bury(0, 69);
    for (int i = 0; i < 10; i++) {
        finish(true);
    }
    give_back(0, true); /* never looked at */
    told = 0;
    crash();
    cr_expect_eq(n_letters, 60);
    cr_expect(is_told(0, "e10"));
    cr_expect(is_told(59, "e69"));
}

Test(outbox, a_route_without_a_publisher_keeps_no_list)
{
    world_open(&world);
    world_deliver(&world, 1, "e0", "x");
    world_end(&world, "e0", END_STATUS, 404);
    tell_of(1);
    crash();
    world_pass(&world, 100000);
    cr_expect_eq(told, 0, "what died before is not news");
    world_deliver(&world, 1, "e1", "x");
    world_end(&world, "e1", END_STATUS, 404);
    cr_expect_eq(told, 1);
    cr_expect_str_eq(letters[0]->route, "b");
}

/* Like one that only restores a backup. */
Test(outbox, a_process_without_a_publisher_leaves_it_to_the_next)
{
    int64_t wait_ms;
    struct err err;

    world.routes[0].publisher.ops = NULL;
    world_open(&world);
    world_deliver(&world, 0, "e0", "x");
    world_end(&world, "e0", END_STATUS, 404);
    wait_ms = outbox_next_ms(world.engine);
    cr_expect_eq(wait_ms, RECORD_NEVER);
    cr_expect(engine_turn(world.engine, 0, &err));
    world.routes[0].publisher.ops = &ops;
    crash();
    cr_expect_eq(told, 1);
    cr_expect(is_told(0, "e0"));
}

Test(outbox, nothing_new_goes_while_the_engine_stops)
{
    world_open(&world);
    world_deliver(&world, 0, "e1", "x");
    die("e0");
    engine_stop_intake(world.engine);
    world_end(&world, "e1", END_STATUS, 404);
    cr_expect_eq(n_letters, 1);
    finish(true);
    world_pass(&world, 100000);
    cr_expect_eq(told, 1);
    crash();
    cr_expect_eq(n_letters, 1);
    cr_expect(is_told(0, "e1"));
}

Test(outbox, a_death_settles_its_offset_whether_it_is_told_or_not)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    world_end(&world, "e0", END_STATUS, 404);
    cr_expect_eq(n_letters, 1);
    cr_expect_eq(a.assignment.low_water, 1);
    cr_expect(letters[0]->has_envelope);
    cr_expect_eq(letters[0]->envelope.kind, ENVELOPE_KAFKA);
    finish(false);
    cr_expect_eq(a.assignment.low_water, 1);
}

/* Its message is no more; that it died is told all the same. */
Test(outbox, a_letter_without_a_message_is_told)
{
    world_open(&world);
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 0, "e0");
    crash();
    part_open(&world, &a, 0, 0);
    part_bring(&world, &a, 1, "e1");
    cr_assert_eq(n_letters, 1);
    cr_expect(is_told(0, "e0"));
    cr_expect_not(letters[0]->has_envelope);
    cr_expect_eq(letters[0]->reason, REASON_UNCERTAIN);
}

/* --- a store without room ---------------------------------------------------
 */

enum { BIG = 900001, N_BIG = 12 };

/* They come in the batch of the next turn, which is put off. */
static struct sent *big[N_BIG];

static void send_too_much(void)
{
    static char body[BIG];

    memset(body, 'x', sizeof body - 1);
    for (int i = 0; i < N_BIG; i++) {
        big[i] = world_send(&world, 1, world_id(1000 + i), body);
        big[i]->delivery.item.cost_bytes = 1000;
    }
}

static void expect_put_off(void)
{
    for (int i = 0; i < N_BIG; i++) {
        cr_assert_eq(big[i]->delivery.result, DELIVERY_NO_ROOM);
        sent_free(big[i]);
    }
}

Test(outbox, a_batch_that_is_put_off_tells_nothing)
{
    world.max_bytes = 2 << 20;
    world_open(&world);
    world_deliver(&world, 0, "e0", "x");
    send_too_much();
    world_end(&world, "e0", END_STATUS, 404);
    expect_put_off();
    cr_expect_eq(told, 0);
    world_pass(&world, 1000);
    cr_expect_eq(told, 1);
    send_too_much();
    finish(true);
    expect_put_off();
    world_pass(&world, 1000);
    world_pass(&world, 100000);
    cr_expect_eq(told, 1);
    crash();
    cr_expect_eq(told, 1);
}

/* A result that no store of this size takes. */
static void end_with_too_much(const char *id)
{
    static char body[6 << 20];
    const struct result result = {.status = 200, .body = {body, sizeof body}};

    memset(body, 'x', sizeof body);
    result_encode(&result, &world_attempt(&world, id)->result);
    world_end(&world, id, END_STATUS, 200);
}

/* e0 is older than the last that was told, and dies by an order while results
 * wait; the next batch is put off, too. */
Test(outbox, a_death_beside_batches_that_are_put_off_is_told)
{
    world.max_bytes = 2 << 20;
    world.routes[0].policy.backoff_ms = 600000;
    world_open(&world);
    world_deliver(&world, 0, "e0", "x");
    world_end(&world, "e0", END_STATUS, 500);
    world.routes[0].policy.max_attempts = 1;
    crash();
    die("e1");
    finish(true);
    world_deliver(&world, 1, "b0", "x");
    send_too_much();
    world_turn(&world);
    expect_put_off();
    cr_expect_eq(world_order(&world, COMMAND_RESOLVE_NOT_APPLIED, 0, "e0"),
                 COMMAND_DONE);
    cr_expect_eq(world_record(&world, 0, "e0").state, RECORD_DEAD);
    cr_expect_eq(told, 1);
    world.ms += 1000;
    end_with_too_much("b0");
    cr_expect_eq(world_record(&world, 1, "b0").state, RECORD_RUNNING);
    cr_expect_eq(told, 1);
    world_pass(&world, 1000);
    cr_expect_eq(world_record(&world, 1, "b0").state, RECORD_SUCCEEDED);
    cr_expect_eq(told, 2);
}
