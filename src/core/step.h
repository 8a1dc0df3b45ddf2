/* SPDX-License-Identifier: MIT */
/*
 * The inside of record_step; private to src/core.
 *
 * There is one function for each state (step_none … step_dead), which reads
 * the input and makes the moves that the state allows. Moves are made through
 * the helpers below; they write every field of the record but `state`, which
 * record_step alone sets to `next` at the end.
 */
#ifndef ONCED_CORE_STEP_H
#define ONCED_CORE_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/record.h"

enum {
    STEP_GRACE_MS = 5000, /* a lease outlives the attempt's time-out by that */
    STEP_LOOK_MS = 1000,  /* a live attempt past its lease is looked at again */
    STEP_RETRY_AFTER_MAX_MS = 24 * 60 * 60 * 1000,
};

struct step {
    struct record *record;
    const struct input *input;
    const struct policy *policy;
    int64_t now_ms;
    enum record_state next;
    struct decision decision;
};

/* --- one for each state -------------------------------------------------- */

void step_none(struct step *step);
void step_pending(struct step *step);
void step_running(struct step *step);
void step_uncertain(struct step *step);
void step_succeeded(struct step *step);
void step_failed(struct step *step);
void step_dead(struct step *step);

/* --- what does not move it ------------------------------------------------ */

/* The input means nothing in this state. */
void step_ignore(struct step *step, const char *why);

/* An operator's order that is not carried out. */
void step_refuse(struct step *step, enum verdict verdict, const char *why);

/* A delivery of a known event: counted, and answered by its state (M22). What
 * a partition brought may go on by it (M28). */
void step_repeat(struct step *step);

/* --- moves ---------------------------------------------------------------- */

/* Makes `move`, or as the second of one step `also`. */
void step_to(struct step *step, enum record_state next, enum move move,
             const char *why);

/* A new event, or the next run of a released key: PENDING, and RUNNING at
 * once where the input lets it start (M1 M2 M25). */
void step_accept(struct step *step);

/* RUNNING under the next attempt number (M2 M4 M11). */
void step_claim(struct step *step, const char *why);

/* What is due goes on: an attempt, a probe, or the end (M4 M11 M12 M15). */
void step_due(struct step *step);

/* UNCERTAIN, then as the route says: under `retry` due at `due_ms`, under
 * `hold` dead, under `probe` asked for after a while (M9 M10 M15 M26). Not
 * for what was left with the broker. */
void step_doubt(struct step *step, enum move move, int64_t due_ms,
                const char *why);

/* The doubt begins with the attempt, or wait, that ends now. */
void step_begin_doubt(struct step *step);

/* UNCERTAIN and parked, until the broker delivers again what was left with it
 * (M10 M26). */
void step_await_broker(struct step *step, enum move move, const char *why);

/* Parked no more: due now, and what is UNCERTAIN as the route says (M28). */
void step_unpark(struct step *step, const char *why);

/* No probe could tell; the next one, or the end of them (M12 M15). */
void step_probe_again(struct step *step, const char *why);

void step_succeed(struct step *step, enum move move, const char *why);

/* FAILED with nothing applied: the key is free again (M7 M14). */
void step_release(struct step *step, enum move move, const char *why);

/* FAILED for good, without an answer of the handler (M19 M28 M29). */
void step_drop(struct step *step, enum move move, enum reason reason,
               const char *why);

void step_die(struct step *step, enum reason reason, const char *why);

/* --- orders that PENDING, UNCERTAIN and DEAD share ------------------------ */

/* Whether what arrived is fit to run at all; if not, the order is refused. */
bool step_may_run(struct step *step);

/* Whether a replay may run it now; if not, the order is refused. Clears the
 * doubt where the operator answers for it. */
bool step_may_replay(struct step *step);

/* --- parts of moves ------------------------------------------------------- */

bool step_has(const struct step *step, enum record_flag flag);
void step_set(struct step *step, enum record_flag flag);
void step_clear(struct step *step, enum record_flag flag);

/* `delay_ms` from now; never so late that it would read as RECORD_NEVER. */
int64_t step_in(const struct step *step, int64_t delay_ms);

/* Due then, or not before its key or its partition is free. */
void step_set_due(struct step *step, int64_t due_ms);

/* Into the order of its key; due at once, or when nothing holds the key. */
void step_line_up(struct step *step);

/* New limits: from here on the clock runs and the tries count. */
void step_restart(struct step *step);

bool step_tries_are_spent(const struct step *step);

/* Why the limits allow no try at `due_ms`, or NULL where they do. */
const char *step_spent(const struct step *step, int64_t due_ms);

#endif
