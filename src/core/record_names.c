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
    [MOVE_SEEN] = "seen",
};

/* By the number of the bit. */
static const char *const flag_names[RECORD_FLAGS] = {
    "released",   "erased",  "disputed", "restored", "parked",
    "order-wait", "probing", "ordered",  "pins",     "left",
};
_Static_assert(RECORD_LEFT == 1U << (RECORD_FLAGS - 1),
               "every flag has a name");

static const char *const mode_names[FINGERPRINT_MODES] = {
    [FINGERPRINT_NONE] = "none",           [FINGERPRINT_RAW] = "raw",
    [FINGERPRINT_JSON] = "json",           [FINGERPRINT_FORM] = "form",
    [FINGERPRINT_MULTIPART] = "multipart",
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
    CHECK(move <= MOVE_SEEN);
    return move_names[move];
}

bool move_parse(const char *name, enum move *out)
{
    for (enum move i = MOVE_RECEIVED; i <= MOVE_SEEN; i++) {
        if (slice_eq(slice_of(name), slice_of(move_names[i]))) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *record_flag_name(enum record_flag flag)
{
    for (size_t i = 0; i < RECORD_FLAGS; i++) {
        if ((uint32_t)flag == 1U << i) {
            return flag_names[i];
        }
    }
    UNREACHABLE("it is one flag");
}

bool record_flag_parse(const char *name, enum record_flag *out)
{
    for (size_t i = 0; i < RECORD_FLAGS; i++) {
        if (slice_eq(slice_of(name), slice_of(flag_names[i]))) {
            *out = (enum record_flag)(1U << i);
            return true;
        }
    }
    return false;
}

const char *fingerprint_mode_name(enum fingerprint_mode mode)
{
    CHECK(mode <= FINGERPRINT_MULTIPART);
    return mode_names[mode];
}

bool fingerprint_mode_parse(const char *name, enum fingerprint_mode *out)
{
    for (enum fingerprint_mode i = FINGERPRINT_NONE; i <= FINGERPRINT_MULTIPART;
         i++) {
        if (slice_eq(slice_of(name), slice_of(mode_names[i]))) {
            *out = i;
            return true;
        }
    }
    return false;
}
