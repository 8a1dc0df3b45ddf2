/* SPDX-License-Identifier: MIT */
/*
 * The record of an event, and the one function that changes its state.
 *
 *     decision = record_step(record, input, policy, now)
 *
 * is pure: no I/O, no clock, no allocation, no logging; what happened and the
 * time come in, what is to be done goes out, with the reason in words. The
 * engine calls it inside the write transaction, so that all races are settled
 * here. The moves and their guards are the table M1–M31 of docs/states.md;
 * tests/unit/core/test_record.c has a row for every state and input.
 *
 * Times are store time in milliseconds, and greater than 0. `attempt` is the
 * fence: it only grows, and an input that carries another attempt's number
 * changes nothing.
 */
#ifndef ONCED_CORE_RECORD_H
#define ONCED_CORE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/outcome.h"

enum record_state {
    RECORD_NONE, /* not known; never stored */
    RECORD_PENDING,
    RECORD_RUNNING,
    RECORD_UNCERTAIN,
    RECORD_SUCCEEDED,
    RECORD_FAILED,
    RECORD_DEAD,
};
enum { RECORD_STATES = RECORD_DEAD + 1 };

enum reason {
    REASON_NONE,
    REASON_EXHAUSTED,
    REASON_REFUSED,
    REASON_UNCERTAIN,
    REASON_POISON,
    REASON_UNDECODABLE,
    REASON_TOO_OLD,
    REASON_DRIFT,
    REASON_BUSINESS,
    REASON_MOVED,
    REASON_SUPERSEDED,
    REASON_DISCARDED,
};
enum { REASONS = REASON_DISCARDED + 1 };

enum record_flag {
    RECORD_RELEASED = 1U << 0,   /* FAILED, nothing applied: next one runs */
    RECORD_ERASED = 1U << 1,     /* the envelope is gone */
    RECORD_DISPUTED = 1U << 2,   /* later evidence contradicts the result */
    RECORD_RESTORED = 1U << 3,   /* was unsettled when a backup was restored */
    RECORD_PARKED = 1U << 4,     /* PINS, and its partition is elsewhere, or has
                                    to bring it again */
    RECORD_ORDER_WAIT = 1U << 5, /* an earlier event of its key is open */
    RECORD_PROBING = 1U << 6,    /* UNCERTAIN, and a probe is under way */
    RECORD_ORDERED = 1U << 7,    /* holds its place in the order of its key:
                                    unsettled, or DEAD under after_dead hold */
    RECORD_PINS = 1U << 8,       /* unsettled, and only a partition brought it:
                                    no offset past it is committed, and the
                                    partition's next owner gets it again */
    RECORD_LEFT = 1U << 9,       /* what arrived is not kept here, the broker
                                    has it: settled so, or PINS, and either in
                                    its first attempt or PARKED */
};
enum { RECORD_FLAGS = 10 };

/* A due time that never comes: something else wakes the event. */
#define RECORD_NEVER INT64_MAX

enum { FINGERPRINT_SIZE = 16 };

/* What "the same content" means: equal version, mode and digest. */
struct fingerprint {
    uint8_t version;
    uint8_t mode;                     /* enum fingerprint_mode */
    uint8_t digest[FINGERPRINT_SIZE]; /* of SHA-256, the first half */
};

enum fingerprint_mode {
    FINGERPRINT_NONE, /* content is not compared */
    FINGERPRINT_RAW,
    FINGERPRINT_JSON,
    FINGERPRINT_FORM,
    FINGERPRINT_MULTIPART,
};
enum { FINGERPRINT_MODES = FINGERPRINT_MULTIPART + 1 };

bool fingerprint_eq(const struct fingerprint *a, const struct fingerprint *b);

struct record {
    enum record_state state;
    enum reason reason;
    uint32_t flags;
    uint16_t route;   /* number of the route that owns it */
    uint16_t status;  /* of the last answer; 0 where there was none */
    uint32_t run;     /* from 1 */
    uint32_t attempt; /* the fence; never goes back */
    uint32_t tries;   /* attempts that count for max_attempts */
    uint32_t crashes; /* attempts that a crash of ours cut short */
    uint32_t probes;
    uint32_t backoffs; /* exponent of the next delay */
    uint32_t deliveries;
    uint32_t drifts; /* deliveries whose content differed */
    uint32_t epoch;  /* of the process that made the last claim */
    int64_t first_seen_ms;
    int64_t last_seen_ms;
    int64_t changed_ms;     /* the last move but a heartbeat; RUNNING: when the
                               attempt began */
    int64_t clock_ms;       /* start of give_up_after: accept, replay, rerun */
    int64_t due_ms;         /* RUNNING: end of the lease. RECORD_NEVER when
                               settled, PARKED or in ORDER_WAIT, and only
                               then */
    int64_t doubt_since_ms; /* start of the earliest attempt that may have
                               taken effect; 0: none */
    uint64_t order_key;     /* 0: none */
    struct fingerprint fingerprint;
};

static inline bool record_is_settled(const struct record *record)
{
    return record->state >= RECORD_SUCCEEDED;
}

/* The invariants of one record; CHECKed before encoding, after decoding and
 * around every step. */
void record_check(const struct record *record);

/* The first of them that a record from outside breaks, in words; NULL where
 * it keeps them all. */
const char *record_problem(const struct record *record);

enum on_uncertain { ON_UNCERTAIN_RETRY, ON_UNCERTAIN_HOLD, ON_UNCERTAIN_PROBE };
enum after_dead { AFTER_DEAD_CONTINUE, AFTER_DEAD_HOLD };
enum on_error { ON_ERROR_CACHE, ON_ERROR_RETRY, ON_ERROR_DEAD };
enum on_drift { ON_DRIFT_ACK, ON_DRIFT_DEAD, ON_DRIFT_REJECT };

/* The rules as configured now: for a delivery those of the route it came by,
 * for all else those of the route that owns the record. */
struct policy {
    enum respond_mode respond;
    enum on_uncertain on_uncertain;
    enum after_dead after_dead;
    enum on_error on_error;
    enum on_drift on_drift;
    int64_t timeout_ms;       /* of one attempt */
    int64_t give_up_after_ms; /* from clock_ms; a try that would begin later is
                                 not made */
    uint32_t max_attempts;    /* 0: no limit */
    uint32_t max_crashes;
    int64_t backoff_ms, max_backoff_ms;
    uint32_t jitter_permille;
    int64_t probe_interval_ms;
    uint32_t max_probes;       /* 0: no limit */
    int64_t downstream_ttl_ms; /* 0: the receiver remembers keys for ever */
};

enum input_kind {
    INPUT_ARRIVE,    /* a delivery of the event */
    INPUT_UNUSABLE,  /* a delivery that can never run: reason is set (M3) */
    INPUT_DUE,       /* due, and a slot, the key and the route are free */
    INPUT_HEARTBEAT, /* the attempt is alive (M5) */
    INPUT_OUTCOME,   /* the attempt ended */
    INPUT_CRASHED,   /* its owner is gone without an outcome (M10) */
    INPUT_PROBED,    /* a probe ended: probe is set */
    INPUT_REPLAY,
    INPUT_RERUN,
    INPUT_RESOLVE_APPLIED,
    INPUT_RESOLVE_NOT_APPLIED,
    INPUT_DISCARD,
    INPUT_ORDER_FREE, /* no earlier event of its key is open any more */
    INPUT_WAKE,       /* due now: the breaker closed */
    INPUT_RESTORED,   /* a backup was restored (M26) */
    INPUT_PARK,       /* its partition was revoked (M27) */
    INPUT_UNPARK,     /* its partition came back at or below it (M28) */
    INPUT_MOVED,      /* its partition came back above it (M28) */
    INPUT_SUPERSEDED, /* a newer version settled first (M29) */
    INPUT_GONE,       /* the broker has its message no more (M31) */
    INPUT_EVIDENCE,   /* a late answer of an attempt that lost the fence */
};
enum { INPUT_KINDS = INPUT_EVIDENCE + 1 };

enum probe_answer { PROBE_APPLIED, PROBE_NOT_APPLIED, PROBE_UNKNOWN };

struct input {
    enum input_kind kind;
    uint32_t attempt; /* OUTCOME, HEARTBEAT, CRASHED, PROBED, EVIDENCE; also
                         of operators that saw one (0: did not look) */
    uint32_t random;  /* any value; spreads the backoff */
    uint32_t epoch;   /* of this process: DUE and ARRIVE */
    /* ARRIVE, UNUSABLE */
    uint16_t route;
    uint64_t order_key;
    bool order_blocked; /* an earlier event of its key is open */
    struct fingerprint fingerprint;
    bool pins;      /* ARRIVE: from a partition, whose low-water it holds; else
                       from a sender that is answered, and does not come back */
    bool may_start; /* a slot is free and nothing older is ready: claim it in
                       the same transaction (M2) */
    enum reason reason; /* UNUSABLE */
    /* OUTCOME */
    enum outcome outcome;
    uint16_t status;
    int64_t retry_after_ms; /* what the handler asked for; < 0: nothing */
    /* PROBED */
    enum probe_answer probe;
    /* REPLAY */
    bool assume_not_applied; /* the operator says so (clears the doubt) */
};

/* What the source tells its caller. */
enum answer_kind {
    ANSWER_NONE,        /* nobody asks */
    ANSWER_ACCEPTED,    /* new, durable */
    ANSWER_DUPLICATE,   /* known; on result routes see below */
    ANSWER_IN_PROGRESS, /* result route: PENDING or RUNNING */
    ANSWER_REPLAY,      /* result route: the stored result */
    ANSWER_MISMATCH,    /* same key, other content (result route, or reject) */
    ANSWER_UNCERTAIN,   /* result route: UNCERTAIN */
    ANSWER_PARKED,      /* result route: DEAD */
    ANSWER_DEAD,        /* stored as a dead letter at once */
};

/* What an operator's order did. */
enum verdict {
    VERDICT_DONE,
    VERDICT_NOTHING_TO_DO, /* already so: said, and no failure */
    VERDICT_IN_DOUBT,      /* skipped: it may have taken effect */
    VERDICT_REFUSED,       /* not in this state */
};

/* The moves of the table, for audit and tests. */
enum move {
    MOVE_NONE,
    MOVE_RECEIVED,        /* M1 */
    MOVE_STARTED,         /* M2 M4 M11 M25 */
    MOVE_DEAD_ON_ARRIVAL, /* M3 */
    MOVE_HEARTBEAT,       /* M5 */
    MOVE_SUCCEEDED,       /* M6 */
    MOVE_FAILED,          /* M7 */
    MOVE_RETRY,           /* M8 */
    MOVE_UNCERTAIN,       /* M9 */
    MOVE_CRASHED,         /* M10 */
    MOVE_PROBE,           /* M12 */
    MOVE_APPLIED,         /* M13 M18 */
    MOVE_NOT_APPLIED,     /* M14 */
    MOVE_DEAD,            /* M15 M16 M31 */
    MOVE_REPLAYED,        /* M17 M30 */
    MOVE_DISCARDED,       /* M19 */
    MOVE_REPEATED,        /* M22 */
    MOVE_DISPUTED,        /* M23 */
    MOVE_RERUN,           /* M24 */
    MOVE_RESTORED,        /* M26 */
    MOVE_PARKED,          /* M27 */
    MOVE_MOVED,           /* M28 */
    MOVE_SUPERSEDED,      /* M29 */
    MOVE_ORDER_FREE,
    MOVE_WOKEN,    /* also M28 */
    MOVE_DRIFTED,  /* a repeat with other content */
    MOVE_RELEASED, /* M7, nothing applied: the key is free again */
    MOVE_SEEN,     /* handled elsewhere, before this store knew of it */
};
enum { MOVES = MOVE_SEEN + 1 };

struct decision {
    bool changed;       /* the record has to be written; a repeat may be the
                           cause */
    bool counted;       /* only deliveries, last_seen or drifts moved: may ride
                           with the next commit */
    bool start;         /* dispatch attempt record->attempt after the commit */
    bool probe;         /* start a probe after the commit */
    bool keep_result;   /* store the attempt's result; of what was resolved as
                           applied: the one that came with it, or none that can
                           be replayed (body_omitted) */
    bool take_envelope; /* store this delivery's envelope: of a new event that
                           is not LEFT, in place of an old one (M25), or of
                           one that was LEFT. Without it what is stored, or is
                           not, stays so */
    bool keep_envelope; /* store the envelope that the attempt was made with:
                           it was LEFT, and is needed again, or looked at */
    enum answer_kind answer;
    enum verdict verdict;
    enum move move;
    enum move also;  /* a second move in the same step, or MOVE_NONE: accepted
                        and started, failed and dead */
    const char *why; /* static text, never NULL */
};

/* The only function that writes record->state. Where the decision has neither
 * `changed` nor `counted` set the record is as it was. */
struct decision record_step(struct record *record, const struct input *input,
                            const struct policy *policy, int64_t now_ms);

/* Backoff n (from 0): min(max, base · 2ⁿ), spread by ± jitter. Pure. */
int64_t backoff_ms(const struct policy *policy, uint32_t n, uint32_t random);

const char *record_state_name(enum record_state state); /* "SUCCEEDED" */
/* Parsing takes any case, and no name of what is never stored (NONE, ""). */
bool record_state_parse(const char *name, enum record_state *out);
const char *reason_name(enum reason reason); /* "exhausted"; "" for none */
bool reason_parse(const char *name, enum reason *out);
const char *move_name(enum move move); /* as in `show`: "received" … */
bool move_parse(const char *name, enum move *out); /* exactly that, not NONE */
const char *record_flag_name(enum record_flag flag); /* of one: "released" … */
bool record_flag_parse(const char *name, enum record_flag *out);
const char *fingerprint_mode_name(enum fingerprint_mode mode); /* "json" … */
bool fingerprint_mode_parse(const char *name, enum fingerprint_mode *out);

#endif
