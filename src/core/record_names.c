/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "base/bytes.h"
#include "base/check.h"
#include "core/record.h"

static const char *const state_names[RECORD_STATES] = {
    [RECORD_NONE] = "NONE",           [RECORD_PENDING] = "PENDING",
    [RECORD_RUNNING] = "RUNNING",     [RECORD_UNCERTAIN] = "UNCERTAIN",
    [RECORD_SUCCEEDED] = "SUCCEEDED", [RECORD_FAILED] = "FAILED",
    [RECORD_DEAD] = "DEAD",
};

static const char *const reason_names[REASONS] = {
    [REASON_NONE] = "",
    [REASON_EXHAUSTED] = "exhausted",
    [REASON_REFUSED] = "refused",
    [REASON_UNCERTAIN] = "uncertain",
    [REASON_POISON] = "poison",
    [REASON_UNDECODABLE] = "undecodable",
    [REASON_TOO_OLD] = "too-old",
    [REASON_DRIFT] = "drift",
    [REASON_BUSINESS] = "business",
    [REASON_MOVED] = "moved",
    [REASON_SUPERSEDED] = "superseded",
    [REASON_DISCARDED] = "discarded",
};

static const char *const move_names[MOVES] = {
    [MOVE_NONE] = "none",
    [MOVE_RECEIVED] = "received",
    [MOVE_STARTED] = "started",
    [MOVE_DEAD_ON_ARRIVAL] = "dead-on-arrival",
    [MOVE_HEARTBEAT] = "heartbeat",
    [MOVE_SUCCEEDED] = "succeeded",
    [MOVE_FAILED] = "failed",
    [MOVE_RETRY] = "retry",
    [MOVE_UNCERTAIN] = "uncertain",
    [MOVE_CRASHED] = "crashed",
    [MOVE_PROBE] = "probe",
    [MOVE_APPLIED] = "applied",
    [MOVE_NOT_APPLIED] = "not-applied",
    [MOVE_DEAD] = "dead",
    [MOVE_REPLAYED] = "replayed",
    [MOVE_DISCARDED] = "discarded",
    [MOVE_REPEATED] = "repeated",
    [MOVE_DISPUTED] = "disputed",
    [MOVE_RERUN] = "rerun",
    [MOVE_RESTORED] = "restored",
    [MOVE_PARKED] = "parked",
    [MOVE_MOVED] = "moved",
    [MOVE_SUPERSEDED] = "superseded",
    [MOVE_ORDER_FREE] = "order-free",
    [MOVE_WOKEN] = "woken",
    [MOVE_DRIFTED] = "drifted",
    [MOVE_RELEASED] = "released",
};

const char *record_state_name(enum record_state state)
{
    CHECK(state <= RECORD_DEAD);
    return state_names[state];
}

bool record_state_parse(const char *name, enum record_state *out)
{
    for (enum record_state i = RECORD_PENDING; i <= RECORD_DEAD; i++) {
        if (slice_eq_nocase(slice_of(name), slice_of(state_names[i]))) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *reason_name(enum reason reason)
{
    CHECK(reason <= REASON_DISCARDED);
    return reason_names[reason];
}

bool reason_parse(const char *name, enum reason *out)
{
    for (enum reason i = REASON_EXHAUSTED; i <= REASON_DISCARDED; i++) {
        if (slice_eq_nocase(slice_of(name), slice_of(reason_names[i]))) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *move_name(enum move move)
{
    CHECK(move <= MOVE_RELEASED);
    return move_names[move];
}
