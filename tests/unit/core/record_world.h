/* SPDX-License-Identifier: MIT */
/*
 * One event, its route's rules and a clock: what the tests of the record
 * need, in words. Every function feeds one input and returns the decision.
 */
#ifndef TESTS_UNIT_CORE_RECORD_WORLD_H
#define TESTS_UNIT_CORE_RECORD_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define START (1000 * SECOND)
#define TIMEOUT (10 * SECOND)
#define LEASE (TIMEOUT + 5 * SECOND) /* of an attempt or a probe */

struct world {
    struct record record;
    struct policy policy;
    struct input input; /* what the next input starts from */
    int64_t now_ms;
};

static inline struct world world_new(void)
{
    return (struct world){
        .policy =
            {
                .timeout_ms = TIMEOUT,
                .give_up_after_ms = 24 * HOUR,
                .max_crashes = 3,
                .backoff_ms = SECOND,
                .max_backoff_ms = 10 * MINUTE,
                .probe_interval_ms = 30 * SECOND,
                .max_probes = 5,
            },
        .input = {.route = 4, .epoch = 9, .retry_after_ms = -1},
        .now_ms = START,
    };
}

static inline struct world world_of(enum respond_mode respond,
                                    enum on_uncertain on_uncertain)
{
    struct world world = world_new();

    world.policy.respond = respond;
    world.policy.on_uncertain = on_uncertain;
    return world;
}

static inline bool is_same_state(const struct record *a, const struct record *b)
{
    return a->state == b->state && a->reason == b->reason &&
           a->flags == b->flags && a->route == b->route &&
           a->status == b->status && a->run == b->run &&
           a->order_key == b->order_key && a->epoch == b->epoch &&
           fingerprint_eq(&a->fingerprint, &b->fingerprint);
}

static inline bool is_same_count(const struct record *a, const struct record *b)
{
    return a->attempt == b->attempt && a->tries == b->tries &&
           a->crashes == b->crashes && a->probes == b->probes &&
           a->backoffs == b->backoffs && a->deliveries == b->deliveries &&
           a->drifts == b->drifts;
}

static inline bool is_same_time(const struct record *a, const struct record *b)
{
    return a->first_seen_ms == b->first_seen_ms &&
           a->last_seen_ms == b->last_seen_ms &&
           a->changed_ms == b->changed_ms && a->clock_ms == b->clock_ms &&
           a->due_ms == b->due_ms && a->doubt_since_ms == b->doubt_since_ms;
}

static inline bool record_is_same(const struct record *a,
                                  const struct record *b)
{
    return is_same_state(a, b) && is_same_count(a, b) && is_same_time(a, b);
}

static inline struct decision feed(struct world *world, enum input_kind kind)
{
    struct input input = world->input;

    input.kind = kind;
    return record_step(&world->record, &input, &world->policy, world->now_ms);
}

static inline struct decision arrive(struct world *world)
{
    world->input.may_start = true;
    return feed(world, INPUT_ARRIVE);
}

static inline struct decision arrive_and_wait(struct world *world)
{
    world->input.may_start = false;
    return feed(world, INPUT_ARRIVE);
}

/* The clock goes to the due time, and the engine has room. */
static inline struct decision come_due(struct world *world)
{
    if (world->record.due_ms > world->now_ms) {
        world->now_ms = world->record.due_ms;
    }
    return feed(world, INPUT_DUE);
}

static inline struct decision end_attempt(struct world *world, uint32_t attempt,
                                          enum outcome outcome)
{
    world->input.attempt = attempt;
    world->input.outcome = outcome;
    world->input.status = 200;
    return feed(world, INPUT_OUTCOME);
}

/* The attempt that is under way ends after a second. */
static inline struct decision end(struct world *world, enum outcome outcome)
{
    world->now_ms += SECOND;
    return end_attempt(world, world->record.attempt, outcome);
}

static inline struct decision crash(struct world *world)
{
    world->input.attempt = world->record.attempt;
    return feed(world, INPUT_CRASHED);
}

static inline struct decision probe_says(struct world *world,
                                         enum probe_answer answer)
{
    world->input.attempt = world->record.attempt;
    world->input.probe = answer;
    return feed(world, INPUT_PROBED);
}

/* An operator who did not look at the attempt. */
static inline struct decision order(struct world *world, enum input_kind kind)
{
    world->input.attempt = 0;
    return feed(world, kind);
}

/* A whole life up to the state; DEAD is (exhausted). */
static inline void live_until(struct world *world, enum record_state state)
{
    uint32_t max_attempts = world->policy.max_attempts;
    enum respond_mode respond = world->policy.respond;

    if (state == RECORD_NONE) {
        return;
    }
    if (state == RECORD_PENDING) {
        (void)arrive_and_wait(world);
        return;
    }
    (void)arrive(world);
    if (state == RECORD_UNCERTAIN) {
        (void)end(world, OUTCOME_UNKNOWN);
    } else if (state == RECORD_SUCCEEDED) {
        (void)end(world, OUTCOME_SUCCESS);
    } else if (state == RECORD_FAILED) {
        world->policy.respond = RESPOND_RESULT;
        (void)end(world, OUTCOME_REJECTED);
    } else if (state == RECORD_DEAD) {
        world->policy.respond = RESPOND_ACCEPTED;
        world->policy.max_attempts = 1;
        (void)end(world, OUTCOME_TRANSIENT);
    }
    world->policy.max_attempts = max_attempts;
    world->policy.respond = respond;
}

/* --- what a partition brings ---------------------------------------------- */

enum {
    PINS = RECORD_PINS,
    LEFT = RECORD_PINS | RECORD_LEFT,
    PARKED = RECORD_PINS | RECORD_PARKED,
    AWAITED = PARKED | RECORD_LEFT,
};

enum { RULES = 3 };
static const enum on_uncertain all_rules[RULES] = {
    ON_UNCERTAIN_RETRY, ON_UNCERTAIN_HOLD, ON_UNCERTAIN_PROBE};

/* What comes in comes from a partition. */
static inline struct world partition_world(enum on_uncertain on_uncertain)
{
    struct world world = world_of(RESPOND_ACCEPTED, on_uncertain);

    world.input.pins = true;
    world.input.fingerprint = (struct fingerprint){1, FINGERPRINT_RAW, {1}};
    return world;
}

/* Its first attempt is under way, and the broker has the message. */
static inline struct world left_world(enum on_uncertain on_uncertain)
{
    struct world world = partition_world(on_uncertain);

    (void)arrive(&world);
    return world;
}

/* A crash cut the first attempt short a second after it began, and an hour
 * later the process is another. */
static inline struct world awaited_world(enum on_uncertain on_uncertain)
{
    struct world world = left_world(on_uncertain);

    world.now_ms += SECOND;
    (void)crash(&world);
    world.now_ms = START + HOUR;
    world.input.epoch = 10;
    return world;
}

/* It waits for a try, and the store has its envelope. */
static inline struct world waiting_world(void)
{
    struct world world = left_world(ON_UNCERTAIN_RETRY);

    (void)end(&world, OUTCOME_TRANSIENT);
    return world;
}

#endif
