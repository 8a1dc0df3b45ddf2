/* SPDX-License-Identifier: MIT */
/* Long random lives: whatever comes in, in whatever order, some things hold. */
#include "core/record.h"

#include <criterion/criterion.h>

#include "unit/core/record_world.h"

enum { LIVES = 4000, STEPS = 120 };

struct life {
    struct world world;
    uint64_t seed; /* xorshift */
    uint32_t successes_of_run;
    bool has_envelope; /* the store, of the event */
    uint32_t awaited;  /* times that only the broker could help it on */
};

static uint32_t draw(struct life *life, uint32_t below)
{
    life->seed ^= life->seed << 13;
    life->seed ^= life->seed >> 7;
    life->seed ^= life->seed << 17;
    return (uint32_t)(life->seed >> 32) % below;
}

static void draw_policy(struct life *life)
{
    struct policy *policy = &life->world.policy;

    policy->respond = (enum respond_mode)draw(life, 3);
    policy->on_uncertain = (enum on_uncertain)draw(life, 3);
    policy->after_dead = (enum after_dead)draw(life, 2);
    policy->on_error = (enum on_error)draw(life, 3);
    policy->on_drift = (enum on_drift)draw(life, 3);
    policy->max_attempts = draw(life, 5);
    policy->max_probes = draw(life, 4);
    policy->max_crashes = draw(life, 4);
    policy->jitter_permille = draw(life, 1001);
    policy->downstream_ttl_ms = draw(life, 2) * HOUR;
    policy->give_up_after_ms = draw(life, 3) * HOUR;
}

static void draw_input(struct life *life)
{
    const struct record *record = &life->world.record;
    struct input *input = &life->world.input;

    *input = (struct input){
        .kind = (enum input_kind)draw(life, INPUT_KINDS),
        .attempt = draw(life, 4) != 0 ? record->attempt
                                      : draw(life, record->attempt + 2),
        .random = draw(life, UINT32_MAX),
        .route = 1,
        .order_key = draw(life, 2),
        .order_blocked = draw(life, 4) == 0,
        .fingerprint = {1, (uint8_t)draw(life, 2), {(uint8_t)draw(life, 2)}},
        .pins = draw(life, 2) == 0,
        .epoch = 1 + draw(life, 2),
        .may_start = draw(life, 2) == 0,
        .reason = draw(life, 2) == 0 ? REASON_TOO_OLD : REASON_DRIFT,
        .outcome = (enum outcome)draw(life, 6),
        .retry_after_ms = (int64_t)draw(life, 120000) - MINUTE,
        .probe = (enum probe_answer)draw(life, 3),
        .assume_not_applied = draw(life, 8) == 0,
    };
}

static bool may_leave_settled(const struct record *before, enum input_kind kind)
{
    bool person = kind >= INPUT_REPLAY && kind <= INPUT_DISCARD;
    bool released = before->state == RECORD_FAILED &&
                    (before->flags & RECORD_RELEASED) != 0 &&
                    kind == INPUT_ARRIVE;

    return person || released;
}

/* I1: one success of a run. */
static void count_successes(struct life *life, const struct record *before)
{
    const struct record *after = &life->world.record;

    if (after->run != before->run) {
        cr_assert(before->state == RECORD_SUCCEEDED ||
                  before->state == RECORD_NONE);
        life->successes_of_run = 0;
    }
    if (after->state == RECORD_SUCCEEDED && before->state != after->state) {
        life->successes_of_run++;
    }
    cr_assert_leq(life->successes_of_run, 1);
}

/* I5: what is in doubt runs again only where the key is trusted. I11: every
 * attempt and every probe has a number of its own. */
static void expect_fenced(const struct life *life, const struct record *before,
                          const struct decision *decision)
{
    bool claims = decision->start || decision->probe;

    cr_assert_eq(life->world.record.attempt,
                 before->attempt + (claims ? 1 : 0));
    cr_assert(!decision->start || before->doubt_since_ms == 0 ||
              life->world.policy.on_uncertain == ON_UNCERTAIN_RETRY);
}

/* What is settled stays so, but for people and released keys; nothing is
 * forgotten, and nothing changes that the decision does not tell. */
static void expect_told(const struct life *life, const struct record *before,
                        const struct decision *decision)
{
    const struct record *after = &life->world.record;

    if (before->state >= RECORD_SUCCEEDED && before->state != after->state) {
        cr_assert(may_leave_settled(before, life->world.input.kind));
    }
    cr_assert(before->state == RECORD_NONE || after->state != RECORD_NONE);
    cr_assert(decision->changed || decision->counted ||
              record_is_same(before, after));
}

/* Every attempt but a first one that a partition brought, and every probe, is
 * made with a stored envelope; and what is said to be kept is, until it is
 * said to be erased. */
static void expect_kept(struct life *life, const struct record *before,
                        const struct decision *decision)
{
    const struct record *after = &life->world.record;
    bool first = before->state == RECORD_NONE && life->world.input.pins;

    life->has_envelope = life->has_envelope || decision->take_envelope ||
                         decision->keep_envelope;
    cr_assert(!decision->start || life->has_envelope || first);
    cr_assert(!decision->probe || life->has_envelope);
    cr_assert(after->state == RECORD_NONE || life->has_envelope ||
              (after->flags & (RECORD_LEFT | RECORD_ERASED)) != 0);
    cr_assert(!decision->keep_envelope || (before->flags & RECORD_LEFT) != 0);
    cr_assert((after->flags & RECORD_LEFT) == 0 ||
              (before->flags & RECORD_LEFT) != 0 || first);
}

/* What depends on a partition came from one, and is told to no sender; what is
 * away runs nowhere, and comes back by the partition or by a delivery. */
static void expect_partitioned(const struct life *life,
                               const struct record *before,
                               const struct decision *decision)
{
    const struct record *after = &life->world.record;
    const struct input *input = &life->world.input;
    bool accepted =
        input->kind == INPUT_ARRIVE && decision->move != MOVE_DRIFTED;
    bool was_parked = (before->flags & RECORD_PARKED) != 0;

    if (accepted) {
        cr_assert((after->flags & RECORD_PARKED) == 0);
        cr_assert(input->pins || (after->flags & RECORD_PINS) == 0);
    }
    cr_assert((after->flags & RECORD_PINS) == 0 ||
              (before->flags & RECORD_PINS) != 0 || input->pins);
    cr_assert(!was_parked || !decision->start);
    if (was_parked && (after->flags & RECORD_PARKED) == 0) {
        cr_assert(record_is_settled(after) || input->kind == INPUT_ARRIVE ||
                  input->kind == INPUT_UNPARK || input->kind == INPUT_GONE);
        cr_assert(record_is_settled(after) || life->has_envelope ||
                  decision->take_envelope);
    }
    if (input->kind == INPUT_GONE && decision->changed) {
        cr_assert((before->flags & RECORD_PINS) != 0);
        cr_assert((after->flags & (RECORD_PINS | RECORD_LEFT)) == 0);
    }
}

static void live(struct life *life)
{
    for (int i = 0; i < STEPS; i++) {
        struct world *world = &life->world;
        struct record before = world->record;
        struct decision decision;

        if (draw(life, 8) == 0) {
            draw_policy(life);
        }
        draw_input(life);
        world->now_ms += draw(life, 60000);
        if (draw(life, 3) == 0 && world->record.due_ms != RECORD_NEVER) {
            world->input.kind = INPUT_DUE;
            world->now_ms += world->record.due_ms > world->now_ms
                                 ? world->record.due_ms - world->now_ms
                                 : 0;
        }
        decision = record_step(&world->record, &world->input, &world->policy,
                               world->now_ms);
        count_successes(life, &before);
        expect_fenced(life, &before, &decision);
        expect_told(life, &before, &decision);
        expect_kept(life, &before, &decision);
        expect_partitioned(life, &before, &decision);
        if (!life->has_envelope && (before.flags & RECORD_PARKED) != 0) {
            life->awaited++;
        }
    }
}

Test(random, the_invariants_hold_over_any_life)
{
    uint32_t reached[RECORD_STATES] = {0}, awaited = 0;

    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        struct life life = {.world = world_new(), .seed = seed << 32 | seed};

        draw_policy(&life);
        live(&life);
        reached[life.world.record.state]++;
        awaited += life.awaited;
    }
    for (int state = RECORD_PENDING; state <= RECORD_DEAD; state++) {
        cr_expect_gt(reached[state], 0, "no life ended in state %d", state);
    }
    cr_expect_gt(awaited, 0);
}
