/* SPDX-License-Identifier: MIT */
#include "core/record.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>

#include "unit/core/record_world.h"

/* What the engine has to do. */
enum effect {
    CHANGED = 1 << 0,
    COUNTED = 1 << 1,
    STARTED = 1 << 2,
    PROBES = 1 << 3,
    KEEPS = 1 << 4,
    TAKES = 1 << 5,
    STORES = 1 << 6,
};

/* Attempt 2 is the record's; every input carries 2, arrives with a free slot,
 * tells of a success, of something applied, or can never be decoded. */
struct row {
    enum record_state state;
    uint32_t flags;
    enum input_kind input;
    enum record_state next;
    enum move move, also;
    int effects;
    enum answer_kind answer;
    enum verdict verdict;
};

#define IGNORED(state, flags, input)                                           \
    {                                                                          \
        state, flags, input, state, MOVE_NONE, MOVE_NONE, 0, ANSWER_NONE,      \
            VERDICT_DONE                                                       \
    }
#define REPEATED(state, flags, input)                                          \
    {                                                                          \
        state, flags, input, state, MOVE_REPEATED, MOVE_NONE, COUNTED,         \
            ANSWER_DUPLICATE, VERDICT_DONE                                     \
    }
#define MOVED(state, flags, input, next, move, effects)                        \
    {                                                                          \
        state, flags, input, next, move, MOVE_NONE, CHANGED | (effects),       \
            ANSWER_NONE, VERDICT_DONE                                          \
    }
#define ORDERED_TO(state, flags, input, verdict)                               \
    {                                                                          \
        state, flags, input, state, MOVE_NONE, MOVE_NONE, 0, ANSWER_NONE,      \
            verdict                                                            \
    }
#define REFUSED(state, flags, input)                                           \
    ORDERED_TO(state, flags, input, VERDICT_REFUSED)
#define NOTHING_TO_DO(state, flags, input)                                     \
    ORDERED_TO(state, flags, input, VERDICT_NOTHING_TO_DO)

enum {
    WAITS = RECORD_ORDERED | RECORD_ORDER_WAIT,
    PROBING = RECORD_PROBING,
};

static const struct row rows[] = {
    {RECORD_NONE, 0, INPUT_ARRIVE, RECORD_RUNNING, MOVE_RECEIVED, MOVE_STARTED,
     CHANGED | STARTED | TAKES, ANSWER_ACCEPTED, VERDICT_DONE},
    {RECORD_NONE, 0, INPUT_UNUSABLE, RECORD_DEAD, MOVE_DEAD_ON_ARRIVAL,
     MOVE_NONE, CHANGED | TAKES, ANSWER_DEAD, VERDICT_DONE},
    IGNORED(RECORD_NONE, 0, INPUT_DUE),
    IGNORED(RECORD_NONE, 0, INPUT_HEARTBEAT),
    IGNORED(RECORD_NONE, 0, INPUT_OUTCOME),
    IGNORED(RECORD_NONE, 0, INPUT_CRASHED),
    IGNORED(RECORD_NONE, 0, INPUT_PROBED),
    REFUSED(RECORD_NONE, 0, INPUT_REPLAY),
    REFUSED(RECORD_NONE, 0, INPUT_RERUN),
    REFUSED(RECORD_NONE, 0, INPUT_RESOLVE_APPLIED),
    REFUSED(RECORD_NONE, 0, INPUT_RESOLVE_NOT_APPLIED),
    REFUSED(RECORD_NONE, 0, INPUT_DISCARD),
    IGNORED(RECORD_NONE, 0, INPUT_ORDER_FREE),
    IGNORED(RECORD_NONE, 0, INPUT_WAKE),
    IGNORED(RECORD_NONE, 0, INPUT_RESTORED),
    IGNORED(RECORD_NONE, 0, INPUT_PARK),
    IGNORED(RECORD_NONE, 0, INPUT_UNPARK),
    IGNORED(RECORD_NONE, 0, INPUT_MOVED),
    IGNORED(RECORD_NONE, 0, INPUT_SUPERSEDED),
    IGNORED(RECORD_NONE, 0, INPUT_GONE),
    IGNORED(RECORD_NONE, 0, INPUT_EVIDENCE),

    REPEATED(RECORD_PENDING, 0, INPUT_ARRIVE),
    {RECORD_PENDING, PINS, INPUT_ARRIVE, RECORD_PENDING, MOVE_REPEATED,
     MOVE_NONE, CHANGED, ANSWER_DUPLICATE, VERDICT_DONE},
    {RECORD_PENDING, PARKED, INPUT_ARRIVE, RECORD_PENDING, MOVE_REPEATED,
     MOVE_WOKEN, CHANGED, ANSWER_DUPLICATE, VERDICT_DONE},
    {RECORD_PENDING, AWAITED, INPUT_ARRIVE, RECORD_PENDING, MOVE_REPEATED,
     MOVE_WOKEN, CHANGED | TAKES, ANSWER_DUPLICATE, VERDICT_DONE},
    REPEATED(RECORD_PENDING, 0, INPUT_UNUSABLE),
    REPEATED(RECORD_PENDING, AWAITED, INPUT_UNUSABLE),
    MOVED(RECORD_PENDING, 0, INPUT_DUE, RECORD_RUNNING, MOVE_STARTED, STARTED),
    IGNORED(RECORD_PENDING, WAITS, INPUT_DUE),
    IGNORED(RECORD_PENDING, PARKED, INPUT_DUE),
    IGNORED(RECORD_PENDING, AWAITED, INPUT_DUE),
    IGNORED(RECORD_PENDING, 0, INPUT_HEARTBEAT),
    IGNORED(RECORD_PENDING, 0, INPUT_OUTCOME),
    IGNORED(RECORD_PENDING, 0, INPUT_CRASHED),
    IGNORED(RECORD_PENDING, 0, INPUT_PROBED),
    MOVED(RECORD_PENDING, 0, INPUT_REPLAY, RECORD_PENDING, MOVE_REPLAYED, 0),
    NOTHING_TO_DO(RECORD_PENDING, WAITS, INPUT_REPLAY),
    NOTHING_TO_DO(RECORD_PENDING, PARKED, INPUT_REPLAY),
    NOTHING_TO_DO(RECORD_PENDING, AWAITED, INPUT_REPLAY),
    REFUSED(RECORD_PENDING, RECORD_ERASED, INPUT_REPLAY),
    REFUSED(RECORD_PENDING, 0, INPUT_RERUN),
    REFUSED(RECORD_PENDING, 0, INPUT_RESOLVE_APPLIED),
    REFUSED(RECORD_PENDING, 0, INPUT_RESOLVE_NOT_APPLIED),
    MOVED(RECORD_PENDING, 0, INPUT_DISCARD, RECORD_FAILED, MOVE_DISCARDED, 0),
    MOVED(RECORD_PENDING, WAITS, INPUT_DISCARD, RECORD_FAILED, MOVE_DISCARDED,
          0),
    IGNORED(RECORD_PENDING, 0, INPUT_ORDER_FREE),
    MOVED(RECORD_PENDING, WAITS, INPUT_ORDER_FREE, RECORD_PENDING,
          MOVE_ORDER_FREE, 0),
    IGNORED(RECORD_PENDING, 0, INPUT_WAKE), /* due already */
    IGNORED(RECORD_PENDING, WAITS, INPUT_WAKE),
    IGNORED(RECORD_PENDING, PARKED, INPUT_WAKE),
    MOVED(RECORD_PENDING, 0, INPUT_RESTORED, RECORD_UNCERTAIN, MOVE_RESTORED,
          0),
    MOVED(RECORD_PENDING, WAITS, INPUT_RESTORED, RECORD_UNCERTAIN,
          MOVE_RESTORED, 0),
    MOVED(RECORD_PENDING, AWAITED, INPUT_RESTORED, RECORD_UNCERTAIN,
          MOVE_RESTORED, 0),
    IGNORED(RECORD_PENDING, 0, INPUT_PARK),
    MOVED(RECORD_PENDING, PINS, INPUT_PARK, RECORD_PENDING, MOVE_PARKED, 0),
    IGNORED(RECORD_PENDING, PARKED, INPUT_PARK),
    IGNORED(RECORD_PENDING, 0, INPUT_UNPARK),
    IGNORED(RECORD_PENDING, AWAITED, INPUT_UNPARK),
    MOVED(RECORD_PENDING, PARKED, INPUT_UNPARK, RECORD_PENDING, MOVE_WOKEN, 0),
    IGNORED(RECORD_PENDING, 0, INPUT_MOVED),
    MOVED(RECORD_PENDING, PARKED, INPUT_MOVED, RECORD_FAILED, MOVE_MOVED, 0),
    MOVED(RECORD_PENDING, AWAITED, INPUT_MOVED, RECORD_FAILED, MOVE_MOVED, 0),
    MOVED(RECORD_PENDING, 0, INPUT_SUPERSEDED, RECORD_FAILED, MOVE_SUPERSEDED,
          0),
    IGNORED(RECORD_PENDING, 0, INPUT_GONE),
    MOVED(RECORD_PENDING, PARKED, INPUT_GONE, RECORD_PENDING, MOVE_WOKEN, 0),
    MOVED(RECORD_PENDING, RECORD_PINS, INPUT_GONE, RECORD_PENDING, MOVE_NONE,
          0),
    MOVED(RECORD_PENDING, AWAITED, INPUT_GONE, RECORD_DEAD, MOVE_DEAD, 0),
    IGNORED(RECORD_PENDING, 0, INPUT_EVIDENCE),

    REPEATED(RECORD_RUNNING, 0, INPUT_ARRIVE),
    {RECORD_RUNNING, PINS, INPUT_ARRIVE, RECORD_RUNNING, MOVE_REPEATED,
     MOVE_NONE, CHANGED, ANSWER_DUPLICATE, VERDICT_DONE},
    {RECORD_RUNNING, LEFT, INPUT_ARRIVE, RECORD_RUNNING, MOVE_REPEATED,
     MOVE_NONE, CHANGED | TAKES, ANSWER_DUPLICATE, VERDICT_DONE},
    REPEATED(RECORD_RUNNING, 0, INPUT_UNUSABLE),
    REPEATED(RECORD_RUNNING, LEFT, INPUT_UNUSABLE),
    IGNORED(RECORD_RUNNING, 0, INPUT_DUE), /* a passed lease only says: look */
    MOVED(RECORD_RUNNING, 0, INPUT_HEARTBEAT, RECORD_RUNNING, MOVE_HEARTBEAT,
          0),
    MOVED(RECORD_RUNNING, 0, INPUT_OUTCOME, RECORD_SUCCEEDED, MOVE_SUCCEEDED,
          KEEPS),
    MOVED(RECORD_RUNNING, LEFT, INPUT_OUTCOME, RECORD_SUCCEEDED, MOVE_SUCCEEDED,
          KEEPS),
    MOVED(RECORD_RUNNING, 0, INPUT_CRASHED, RECORD_UNCERTAIN, MOVE_CRASHED, 0),
    MOVED(RECORD_RUNNING, PINS, INPUT_CRASHED, RECORD_UNCERTAIN, MOVE_CRASHED,
          0),
    MOVED(RECORD_RUNNING, LEFT, INPUT_CRASHED, RECORD_UNCERTAIN, MOVE_CRASHED,
          0),
    IGNORED(RECORD_RUNNING, 0, INPUT_PROBED),
    REFUSED(RECORD_RUNNING, 0, INPUT_REPLAY),
    REFUSED(RECORD_RUNNING, 0, INPUT_RERUN),
    REFUSED(RECORD_RUNNING, 0, INPUT_RESOLVE_APPLIED),
    REFUSED(RECORD_RUNNING, 0, INPUT_RESOLVE_NOT_APPLIED),
    REFUSED(RECORD_RUNNING, 0, INPUT_DISCARD),
    IGNORED(RECORD_RUNNING, 0, INPUT_ORDER_FREE),
    IGNORED(RECORD_RUNNING, 0, INPUT_WAKE),
    MOVED(RECORD_RUNNING, 0, INPUT_RESTORED, RECORD_UNCERTAIN, MOVE_RESTORED,
          0),
    MOVED(RECORD_RUNNING, LEFT, INPUT_RESTORED, RECORD_UNCERTAIN, MOVE_RESTORED,
          0),
    IGNORED(RECORD_RUNNING, 0, INPUT_PARK),
    IGNORED(RECORD_RUNNING, PINS, INPUT_PARK),
    IGNORED(RECORD_RUNNING, 0, INPUT_UNPARK),
    IGNORED(RECORD_RUNNING, 0, INPUT_MOVED),
    IGNORED(RECORD_RUNNING, 0, INPUT_SUPERSEDED),
    IGNORED(RECORD_RUNNING, 0, INPUT_GONE),
    IGNORED(RECORD_RUNNING, LEFT, INPUT_GONE),
    IGNORED(RECORD_RUNNING, 0, INPUT_EVIDENCE),

    REPEATED(RECORD_UNCERTAIN, 0, INPUT_ARRIVE),
    {RECORD_UNCERTAIN, PINS, INPUT_ARRIVE, RECORD_UNCERTAIN, MOVE_REPEATED,
     MOVE_NONE, CHANGED, ANSWER_DUPLICATE, VERDICT_DONE},
    {RECORD_UNCERTAIN, PARKED, INPUT_ARRIVE, RECORD_UNCERTAIN, MOVE_REPEATED,
     MOVE_WOKEN, CHANGED, ANSWER_DUPLICATE, VERDICT_DONE},
    {RECORD_UNCERTAIN, AWAITED, INPUT_ARRIVE, RECORD_UNCERTAIN, MOVE_REPEATED,
     MOVE_WOKEN, CHANGED | TAKES, ANSWER_DUPLICATE, VERDICT_DONE},
    REPEATED(RECORD_UNCERTAIN, 0, INPUT_UNUSABLE),
    REPEATED(RECORD_UNCERTAIN, AWAITED, INPUT_UNUSABLE),
    MOVED(RECORD_UNCERTAIN, 0, INPUT_DUE, RECORD_RUNNING, MOVE_STARTED,
          STARTED),
    IGNORED(RECORD_UNCERTAIN, PARKED, INPUT_DUE),
    IGNORED(RECORD_UNCERTAIN, AWAITED, INPUT_DUE),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_HEARTBEAT),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_OUTCOME),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_CRASHED),
    MOVED(RECORD_UNCERTAIN, PROBING, INPUT_CRASHED, RECORD_UNCERTAIN,
          MOVE_UNCERTAIN, 0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_PROBED),
    MOVED(RECORD_UNCERTAIN, PROBING, INPUT_PROBED, RECORD_SUCCEEDED,
          MOVE_APPLIED, KEEPS),
    MOVED(RECORD_UNCERTAIN, 0, INPUT_REPLAY, RECORD_UNCERTAIN, MOVE_REPLAYED,
          0),
    NOTHING_TO_DO(RECORD_UNCERTAIN, PARKED, INPUT_REPLAY),
    NOTHING_TO_DO(RECORD_UNCERTAIN, AWAITED, INPUT_REPLAY),
    REFUSED(RECORD_UNCERTAIN, 0, INPUT_RERUN),
    MOVED(RECORD_UNCERTAIN, 0, INPUT_RESOLVE_APPLIED, RECORD_SUCCEEDED,
          MOVE_APPLIED, KEEPS),
    MOVED(RECORD_UNCERTAIN, 0, INPUT_RESOLVE_NOT_APPLIED, RECORD_PENDING,
          MOVE_NOT_APPLIED, 0),
    MOVED(RECORD_UNCERTAIN, AWAITED, INPUT_RESOLVE_NOT_APPLIED, RECORD_PENDING,
          MOVE_NOT_APPLIED, 0),
    MOVED(RECORD_UNCERTAIN, AWAITED, INPUT_RESOLVE_APPLIED, RECORD_SUCCEEDED,
          MOVE_APPLIED, KEEPS),
    MOVED(RECORD_UNCERTAIN, 0, INPUT_DISCARD, RECORD_FAILED, MOVE_DISCARDED, 0),
    MOVED(RECORD_UNCERTAIN, AWAITED, INPUT_DISCARD, RECORD_FAILED,
          MOVE_DISCARDED, 0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_ORDER_FREE),
    MOVED(RECORD_UNCERTAIN, WAITS, INPUT_ORDER_FREE, RECORD_UNCERTAIN,
          MOVE_ORDER_FREE, 0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_WAKE), /* due already */
    IGNORED(RECORD_UNCERTAIN, PROBING, INPUT_WAKE),
    MOVED(RECORD_UNCERTAIN, 0, INPUT_RESTORED, RECORD_UNCERTAIN, MOVE_RESTORED,
          0),
    MOVED(RECORD_UNCERTAIN, PROBING, INPUT_RESTORED, RECORD_UNCERTAIN,
          MOVE_RESTORED, 0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_PARK),
    IGNORED(RECORD_UNCERTAIN, PROBING, INPUT_PARK),
    MOVED(RECORD_UNCERTAIN, PINS, INPUT_PARK, RECORD_UNCERTAIN, MOVE_PARKED, 0),
    MOVED(RECORD_UNCERTAIN, PINS | PROBING, INPUT_PARK, RECORD_UNCERTAIN,
          MOVE_PARKED, 0),
    IGNORED(RECORD_UNCERTAIN, PARKED, INPUT_PARK),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_UNPARK),
    IGNORED(RECORD_UNCERTAIN, AWAITED, INPUT_UNPARK),
    MOVED(RECORD_UNCERTAIN, PARKED, INPUT_UNPARK, RECORD_UNCERTAIN, MOVE_WOKEN,
          0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_MOVED),
    MOVED(RECORD_UNCERTAIN, PARKED, INPUT_MOVED, RECORD_FAILED, MOVE_MOVED, 0),
    MOVED(RECORD_UNCERTAIN, AWAITED, INPUT_MOVED, RECORD_FAILED, MOVE_MOVED, 0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_SUPERSEDED),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_GONE),
    MOVED(RECORD_UNCERTAIN, PARKED, INPUT_GONE, RECORD_UNCERTAIN, MOVE_WOKEN,
          0),
    MOVED(RECORD_UNCERTAIN, RECORD_PINS, INPUT_GONE, RECORD_UNCERTAIN,
          MOVE_NONE, 0),
    MOVED(RECORD_UNCERTAIN, AWAITED, INPUT_GONE, RECORD_DEAD, MOVE_DEAD, 0),
    IGNORED(RECORD_UNCERTAIN, 0, INPUT_EVIDENCE),

    REPEATED(RECORD_SUCCEEDED, 0, INPUT_ARRIVE),
    REPEATED(RECORD_SUCCEEDED, RECORD_LEFT, INPUT_ARRIVE),
    REPEATED(RECORD_SUCCEEDED, 0, INPUT_UNUSABLE),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_DUE),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_HEARTBEAT),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_OUTCOME), /* it says the same */
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_CRASHED),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_PROBED),
    NOTHING_TO_DO(RECORD_SUCCEEDED, 0, INPUT_REPLAY),
    MOVED(RECORD_SUCCEEDED, 0, INPUT_RERUN, RECORD_PENDING, MOVE_RERUN, 0),
    REFUSED(RECORD_SUCCEEDED, RECORD_ERASED, INPUT_RERUN),
    REFUSED(RECORD_SUCCEEDED, RECORD_LEFT, INPUT_RERUN),
    NOTHING_TO_DO(RECORD_SUCCEEDED, 0, INPUT_RESOLVE_APPLIED),
    REFUSED(RECORD_SUCCEEDED, 0, INPUT_RESOLVE_NOT_APPLIED),
    NOTHING_TO_DO(RECORD_SUCCEEDED, 0, INPUT_DISCARD),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_ORDER_FREE),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_WAKE),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_RESTORED),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_PARK),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_UNPARK),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_MOVED),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_SUPERSEDED),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_GONE),
    IGNORED(RECORD_SUCCEEDED, RECORD_LEFT, INPUT_GONE),
    IGNORED(RECORD_SUCCEEDED, 0, INPUT_EVIDENCE),

    REPEATED(RECORD_FAILED, 0, INPUT_ARRIVE),
    REPEATED(RECORD_FAILED, RECORD_LEFT, INPUT_ARRIVE),
    {RECORD_FAILED, RECORD_RELEASED, INPUT_ARRIVE, RECORD_RUNNING,
     MOVE_RECEIVED, MOVE_STARTED, CHANGED | STARTED | TAKES, ANSWER_ACCEPTED,
     VERDICT_DONE},
    REPEATED(RECORD_FAILED, 0, INPUT_UNUSABLE),
    {RECORD_FAILED, RECORD_RELEASED | RECORD_LEFT, INPUT_ARRIVE, RECORD_RUNNING,
     MOVE_RECEIVED, MOVE_STARTED, CHANGED | STARTED | TAKES, ANSWER_ACCEPTED,
     VERDICT_DONE},
    REPEATED(RECORD_FAILED, RECORD_RELEASED, INPUT_UNUSABLE),
    IGNORED(RECORD_FAILED, 0, INPUT_DUE),
    IGNORED(RECORD_FAILED, 0, INPUT_HEARTBEAT),
    MOVED(RECORD_FAILED, 0, INPUT_OUTCOME, RECORD_FAILED, MOVE_DISPUTED, 0),
    IGNORED(RECORD_FAILED, 0, INPUT_CRASHED),
    IGNORED(RECORD_FAILED, 0, INPUT_PROBED),
    NOTHING_TO_DO(RECORD_FAILED, 0, INPUT_REPLAY),
    REFUSED(RECORD_FAILED, 0, INPUT_RERUN),
    REFUSED(RECORD_FAILED, 0, INPUT_RESOLVE_APPLIED),
    NOTHING_TO_DO(RECORD_FAILED, 0, INPUT_RESOLVE_NOT_APPLIED),
    NOTHING_TO_DO(RECORD_FAILED, 0, INPUT_DISCARD),
    IGNORED(RECORD_FAILED, 0, INPUT_ORDER_FREE),
    IGNORED(RECORD_FAILED, 0, INPUT_WAKE),
    IGNORED(RECORD_FAILED, 0, INPUT_RESTORED),
    IGNORED(RECORD_FAILED, 0, INPUT_PARK),
    IGNORED(RECORD_FAILED, 0, INPUT_UNPARK),
    IGNORED(RECORD_FAILED, 0, INPUT_MOVED),
    IGNORED(RECORD_FAILED, 0, INPUT_SUPERSEDED),
    IGNORED(RECORD_FAILED, 0, INPUT_GONE),
    IGNORED(RECORD_FAILED, RECORD_LEFT, INPUT_GONE),
    MOVED(RECORD_FAILED, 0, INPUT_EVIDENCE, RECORD_FAILED, MOVE_DISPUTED, 0),
    IGNORED(RECORD_FAILED, RECORD_DISPUTED, INPUT_EVIDENCE),

    REPEATED(RECORD_DEAD, 0, INPUT_ARRIVE),
    {RECORD_DEAD, RECORD_LEFT, INPUT_ARRIVE, RECORD_DEAD, MOVE_REPEATED,
     MOVE_NONE, CHANGED | TAKES, ANSWER_DUPLICATE, VERDICT_DONE},
    REPEATED(RECORD_DEAD, 0, INPUT_UNUSABLE),
    REPEATED(RECORD_DEAD, RECORD_LEFT, INPUT_UNUSABLE),
    IGNORED(RECORD_DEAD, 0, INPUT_DUE),
    IGNORED(RECORD_DEAD, 0, INPUT_HEARTBEAT),
    MOVED(RECORD_DEAD, 0, INPUT_OUTCOME, RECORD_DEAD, MOVE_DISPUTED, 0),
    IGNORED(RECORD_DEAD, 0, INPUT_CRASHED),
    IGNORED(RECORD_DEAD, 0, INPUT_PROBED),
    MOVED(RECORD_DEAD, 0, INPUT_REPLAY, RECORD_PENDING, MOVE_REPLAYED, 0),
    REFUSED(RECORD_DEAD, RECORD_ERASED, INPUT_REPLAY),
    REFUSED(RECORD_DEAD, RECORD_LEFT, INPUT_REPLAY),
    REFUSED(RECORD_DEAD, 0, INPUT_RERUN),
    MOVED(RECORD_DEAD, 0, INPUT_RESOLVE_APPLIED, RECORD_SUCCEEDED, MOVE_APPLIED,
          KEEPS),
    MOVED(RECORD_DEAD, 0, INPUT_RESOLVE_NOT_APPLIED, RECORD_PENDING,
          MOVE_NOT_APPLIED, 0),
    REFUSED(RECORD_DEAD, RECORD_ERASED, INPUT_RESOLVE_NOT_APPLIED),
    REFUSED(RECORD_DEAD, RECORD_LEFT, INPUT_RESOLVE_NOT_APPLIED),
    MOVED(RECORD_DEAD, 0, INPUT_DISCARD, RECORD_FAILED, MOVE_DISCARDED, 0),
    IGNORED(RECORD_DEAD, 0, INPUT_ORDER_FREE),
    IGNORED(RECORD_DEAD, 0, INPUT_WAKE),
    IGNORED(RECORD_DEAD, 0, INPUT_RESTORED),
    IGNORED(RECORD_DEAD, 0, INPUT_PARK),
    IGNORED(RECORD_DEAD, 0, INPUT_UNPARK),
    IGNORED(RECORD_DEAD, 0, INPUT_MOVED),
    IGNORED(RECORD_DEAD, 0, INPUT_SUPERSEDED),
    IGNORED(RECORD_DEAD, 0, INPUT_GONE),
    IGNORED(RECORD_DEAD, RECORD_LEFT, INPUT_GONE),
    MOVED(RECORD_DEAD, 0, INPUT_EVIDENCE, RECORD_DEAD, MOVE_DISPUTED, 0),
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static struct record record_of(const struct row *row)
{
    bool waits = (row->flags & (RECORD_ORDER_WAIT | RECORD_PARKED)) != 0;
    struct record record = {
        .state = row->state,
        .flags = row->flags,
        .reason = row->state == RECORD_DEAD ? REASON_EXHAUSTED : REASON_NONE,
        .run = 1,
        .attempt = 2,
        .tries = 2,
        .probes = 1,
        .deliveries = 1,
        .first_seen_ms = START - MINUTE,
        .last_seen_ms = START - MINUTE,
        .changed_ms = START - SECOND,
        .clock_ms = START - MINUTE,
        .due_ms =
            waits || row->state >= RECORD_SUCCEEDED ? RECORD_NEVER : START,
        .doubt_since_ms =
            row->state == RECORD_UNCERTAIN ? START - MINUTE / 2 : 0,
        .order_key = (row->flags & RECORD_ORDERED) != 0 ? 7 : 0,
    };

    return row->state == RECORD_NONE ? (struct record){0} : record;
}

static int effects_of(const struct decision *decision)
{
    return (decision->changed ? CHANGED : 0) |
           (decision->counted ? COUNTED : 0) | (decision->start ? STARTED : 0) |
           (decision->probe ? PROBES : 0) |
           (decision->keep_result ? KEEPS : 0) |
           (decision->take_envelope ? TAKES : 0) |
           (decision->keep_envelope ? STORES : 0);
}

static void expect_row(const struct row *row, const struct world *world,
                       const struct decision *decision)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s, flags %x, input %d",
                   record_state_name(row->state), row->flags, row->input);
    cr_expect_eq(world->record.state, row->next, "%s: state", name);
    cr_expect_eq(decision->move, row->move, "%s: move", name);
    cr_expect_eq(decision->also, row->also, "%s: also", name);
    cr_expect_eq(decision->answer, row->answer, "%s: answer", name);
    cr_expect_eq(decision->verdict, row->verdict, "%s: verdict", name);
    cr_expect_eq(effects_of(decision), row->effects, "%s: effects", name);
    cr_expect_neq(decision->why[0], '\0', "%s: why", name);
}

static void try_row(const struct row *row)
{
    const struct record before = record_of(row);
    struct world world = world_new();
    struct decision decision;

    world.record = before;
    world.input.attempt = row->state == RECORD_NONE ? 0 : 2;
    world.input.may_start = true;
    world.input.reason = REASON_UNDECODABLE;
    decision = feed(&world, row->input);
    expect_row(row, &world, &decision);
    if (row->effects == 0) {
        cr_expect(record_is_same(&before, &world.record), "state %d, input %d",
                  row->state, row->input);
    }
}

Test(record, every_state_knows_every_input)
{
    bool seen[RECORD_STATES][INPUT_KINDS] = {{false}};

    for (size_t i = 0; i < ROWS; i++) {
        seen[rows[i].state][rows[i].input] = true;
        try_row(&rows[i]);
    }
    for (size_t state = 0; state < RECORD_STATES; state++) {
        for (size_t input = 0; input < INPUT_KINDS; input++) {
            cr_expect(seen[state][input], "no row for %zu, %zu", state, input);
        }
    }
}

Test(record, names_are_distinct_and_parse_back)
{
    for (enum record_state i = RECORD_NONE; i <= RECORD_DEAD; i++) {
        enum record_state parsed = RECORD_NONE;

        cr_expect_eq(record_state_parse(record_state_name(i), &parsed),
                     i != RECORD_NONE);
        cr_expect_eq(parsed, i);
    }
    for (enum reason i = REASON_NONE; i <= REASON_DISCARDED; i++) {
        enum reason parsed = REASON_NONE;

        cr_expect_eq(reason_parse(reason_name(i), &parsed), i != REASON_NONE);
        cr_expect_eq(parsed, i);
    }
    for (enum move i = MOVE_NONE; i <= MOVE_RELEASED; i++) {
        for (enum move j = MOVE_NONE; j < i; j++) {
            cr_expect_str_neq(move_name(i), move_name(j));
        }
    }
}

Test(record, names_are_those_of_the_documents)
{
    enum record_state state = RECORD_NONE;

    cr_expect_str_eq(record_state_name(RECORD_UNCERTAIN), "UNCERTAIN");
    cr_expect_str_eq(reason_name(REASON_TOO_OLD), "too-old");
    cr_expect_str_eq(reason_name(REASON_NONE), "");
    cr_expect_str_eq(move_name(MOVE_RECEIVED), "received");
    cr_expect(record_state_parse("dead", &state));
    cr_expect_eq(state, RECORD_DEAD);
    cr_expect_not(record_state_parse("DEADLY", &state));
}

Test(record, fingerprints_are_equal_in_all_parts_or_not)
{
    const struct fingerprint first = {1, FINGERPRINT_JSON, {1, 2, 3}};
    struct fingerprint other = first;

    cr_expect(fingerprint_eq(&first, &other));
    other.version = 2;
    cr_expect_not(fingerprint_eq(&first, &other));
    other = first;
    other.mode = FINGERPRINT_RAW;
    cr_expect_not(fingerprint_eq(&first, &other));
    other = first;
    other.digest[FINGERPRINT_SIZE - 1] = 1;
    cr_expect_not(fingerprint_eq(&first, &other));
}

Test(record, every_reason_fits_its_states_only)
{
    struct record record = {
        .run = 1, .due_ms = RECORD_NEVER, .state = RECORD_DEAD};

    for (enum reason i = REASON_EXHAUSTED; i <= REASON_BUSINESS; i++) {
        record.reason = i;
        record_check(&record);
    }
    record.state = RECORD_FAILED;
    for (enum reason i = REASON_BUSINESS; i <= REASON_DISCARDED; i++) {
        record.reason = i;
        record_check(&record);
    }
}

Test(record, a_dead_letter_without_reason_is_a_bug, .signal = SIGABRT)
{
    struct record record = {
        .run = 1, .due_ms = RECORD_NEVER, .state = RECORD_DEAD};

    record_check(&record);
}

Test(record, a_failure_is_not_exhausted, .signal = SIGABRT)
{
    struct record record = {.run = 1,
                            .due_ms = RECORD_NEVER,
                            .state = RECORD_FAILED,
                            .reason = REASON_EXHAUSTED};

    record_check(&record);
}

Test(record, a_dead_letter_is_not_discarded, .signal = SIGABRT)
{
    struct record record = {.run = 1,
                            .due_ms = RECORD_NEVER,
                            .state = RECORD_DEAD,
                            .reason = REASON_DISCARDED};

    record_check(&record);
}

Test(record, a_settled_event_that_is_due_is_a_bug, .signal = SIGABRT)
{
    struct record record = {
        .run = 1, .due_ms = START, .state = RECORD_SUCCEEDED};

    record_check(&record);
}

Test(record, a_running_event_without_lease_is_a_bug, .signal = SIGABRT)
{
    struct record record = {.run = 1,
                            .attempt = 1,
                            .due_ms = RECORD_NEVER,
                            .state = RECORD_RUNNING};

    record_check(&record);
}

Test(record, an_uncertain_event_without_doubt_is_a_bug, .signal = SIGABRT)
{
    struct record record = {
        .run = 1, .attempt = 1, .due_ms = START, .state = RECORD_UNCERTAIN};

    record_check(&record);
}

Test(record, a_flag_of_another_state_is_a_bug, .signal = SIGABRT)
{
    struct record record = {.run = 1,
                            .flags = RECORD_RELEASED,
                            .due_ms = START,
                            .state = RECORD_PENDING};

    record_check(&record);
}

Test(record, a_place_in_the_order_of_no_key_is_a_bug, .signal = SIGABRT)
{
    struct record record = {.run = 1,
                            .flags = RECORD_ORDERED,
                            .due_ms = START,
                            .state = RECORD_PENDING};

    record_check(&record);
}
