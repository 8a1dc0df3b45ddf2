/* SPDX-License-Identifier: MIT */
/*
 * Which rare moves the core was asked to make. The linker puts this in front
 * of record_step (--wrap), so that the engine need not tell.
 */
#include "sim/sim.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
struct decision __real_record_step(struct record *record,
                                   const struct input *input,
                                   const struct policy *policy, int64_t now_ms);
struct decision __wrap_record_step(struct record *record,
                                   const struct input *input,
                                   const struct policy *policy, int64_t now_ms);
/* NOLINTEND(bugprone-reserved-identifier) */

static const char *const words[PATHS] = {
    [PATH_REPEAT_IN_FLIGHT] = "a repeat of an event that is not settled",
    [PATH_REPEAT_OF_SETTLED] = "a repeat of one that succeeded or failed",
    [PATH_REPEAT_OF_DEAD] = "a repeat of a dead letter",
    [PATH_DRIFTED] = "a repeat with other content",
    [PATH_CRASHED] = "an attempt that a dead process left is in doubt",
    [PATH_LEASE_PROLONGED] = "an attempt lives longer than its lease",
    [PATH_RERUN] = "a success is run again",
    [PATH_HOLDER_REPLAYED] = "a dead letter that holds its key is replayed",
    [PATH_POISONED] = "dead after more than max_crashes",
    [PATH_EXHAUSTED] = "dead without doubt, its limits are reached",
    [PATH_DOUBT_HELD] = "dead in doubt",
    [PATH_KEY_FREED_BY_SUCCESS] = "the next of a key may go: success",
    [PATH_KEY_FREED_BY_DEATH] = "the same after a death",
    [PATH_KEY_FREED_BY_DISCARD] = "the same after a discard",
    [PATH_PARKED] = "an event waits for its partition",
    [PATH_UNPARKED] = "its partition is back",
    [PATH_MOVED] = "another worker had it",
    [PATH_GONE] = "it waited for the broker, which has it no more",
    [PATH_TOO_OLD] = "it is older than the memory",
    [PATH_PIN_TAKEN_OVER] = "its partition no longer waits for it",
    [PATH_LEFT_CRASHED] = "an attempt died, and only the broker has the event",
    [PATH_LEFT_KEPT] = "what only the broker had is kept after an attempt",
    [PATH_LEFT_BROUGHT] = "what only the broker had came again",
};

const char *path_words(enum path path)
{
    return words[path];
}

static enum path repeat_of(const struct record *before)
{
    if (!record_is_settled(before)) {
        return PATH_REPEAT_IN_FLIGHT;
    }
    return before->state == RECORD_DEAD ? PATH_REPEAT_OF_DEAD
                                        : PATH_REPEAT_OF_SETTLED;
}

static bool holds_key(const struct record *record)
{
    return (record->flags & RECORD_ORDERED) != 0 &&
           (record->flags & RECORD_ORDER_WAIT) == 0;
}

/* PATHS where the move is not rare. */
static enum path path_of_move(enum move move, const struct record *before)
{
    if (move == MOVE_REPEATED) {
        return repeat_of(before);
    }
    if (move == MOVE_REPLAYED && before->state == RECORD_DEAD) {
        return holds_key(before) ? PATH_HOLDER_REPLAYED : PATHS;
    }
    if (move == MOVE_DRIFTED) {
        return PATH_DRIFTED;
    }
    if (move == MOVE_CRASHED) {
        return PATH_CRASHED;
    }
    if (move == MOVE_HEARTBEAT) {
        return PATH_LEASE_PROLONGED;
    }
    return move == MOVE_RERUN ? PATH_RERUN : PATHS;
}

static enum path path_of_death(const struct record *before,
                               const struct record *after)
{
    if (after->state != RECORD_DEAD || before->state == RECORD_DEAD) {
        return PATHS;
    }
    if (after->reason == REASON_POISON) {
        return PATH_POISONED;
    }
    if (after->reason == REASON_EXHAUSTED) {
        return PATH_EXHAUSTED;
    }
    return after->reason == REASON_UNCERTAIN ? PATH_DOUBT_HELD : PATHS;
}

static enum path path_of_key(const struct record *before,
                             const struct record *after)
{
    if (!holds_key(before) || (after->flags & RECORD_ORDERED) != 0) {
        return PATHS;
    }
    if (after->state == RECORD_SUCCEEDED) {
        return PATH_KEY_FREED_BY_SUCCESS;
    }
    return after->state == RECORD_DEAD ? PATH_KEY_FREED_BY_DEATH
                                       : PATH_KEY_FREED_BY_DISCARD;
}

static bool is_changed(const struct record *before, const struct record *after)
{
    return before->state != after->state || before->flags != after->flags ||
           before->due_ms != after->due_ms;
}

static bool is_taken_over(const struct record *before,
                          const struct record *after)
{
    return !record_is_settled(before) && (before->flags & RECORD_PINS) != 0 &&
           (after->flags & RECORD_PINS) == 0;
}

static enum path path_of_partition(const struct record *before,
                                   const struct record *after,
                                   const struct input *input)
{
    if (!is_changed(before, after)) {
        return PATHS;
    }
    if (input->kind == INPUT_ARRIVE) {
        return is_taken_over(before, after) ? PATH_PIN_TAKEN_OVER : PATHS;
    }
    if (input->kind == INPUT_UNUSABLE) {
        return input->reason == REASON_TOO_OLD ? PATH_TOO_OLD : PATHS;
    }
    if (input->kind == INPUT_CRASHED) {
        return (before->flags & RECORD_LEFT) != 0 ? PATH_LEFT_CRASHED : PATHS;
    }
    return input->kind == INPUT_PARK     ? PATH_PARKED
           : input->kind == INPUT_UNPARK ? PATH_UNPARKED
           : input->kind == INPUT_MOVED  ? PATH_MOVED
           : input->kind == INPUT_GONE   ? PATH_GONE
                                         : PATHS;
}

static enum path path_of_left(const struct record *before,
                              const struct decision *decision)
{
    if (decision->keep_envelope) {
        return PATH_LEFT_KEPT;
    }
    return decision->take_envelope && before->state != RECORD_NONE &&
                   (before->flags & RECORD_LEFT) != 0
               ? PATH_LEFT_BROUGHT
               : PATHS;
}

static void see(enum path path)
{
    if (path != PATHS && sim_current != NULL) {
        sim_current->sights.paths[path]++;
    }
}

struct decision __wrap_record_step(struct record *record,
                                   const struct input *input,
                                   const struct policy *policy, int64_t now_ms)
{
    const struct record before = *record;
    struct decision decision =
        __real_record_step(record, input, policy, now_ms);

    see(path_of_move(decision.move, &before));
    see(path_of_death(&before, record));
    see(path_of_key(&before, record));
    see(path_of_partition(&before, record, input));
    see(path_of_left(&before, &decision));
    return decision;
}
