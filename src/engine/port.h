/* SPDX-License-Identifier: MIT */
/*
 * The two ports of the engine: what a source hands in, and what a handler is
 * given. Adapters on both sides know neither the store nor each other.
 *
 * Ownership moves with the object. A source builds a `struct delivery`,
 * engine_deliver takes it, and `answer` gives it back, on the engine's
 * thread, after the commit that makes the answer true. The engine builds a
 * `struct attempt`, `start` takes it, attempt_finish gives it back.
 */
#ifndef ONCED_ENGINE_PORT_H
#define ONCED_ENGINE_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/queue.h"
#include "core/envelope.h"
#include "core/outcome.h"
#include "core/record.h"

struct engine;

/* --- sources ------------------------------------------------------------ */

/* One event of a delivery. Slices live as long as the delivery. */
struct arrival {
    size_t route; /* index into the engine's routes */
    struct slice tenant;
    struct slice id;
    uint64_t order_key;
    struct fingerprint fingerprint;
    enum reason unusable;  /* it can never run (undecodable); else NONE */
    const char *why;       /* for `unusable`, static text */
    struct slice envelope; /* flat form */
    int64_t offset;        /* where the delivery has an assignment */
    int64_t event_wall_ms; /* when it happened, as the source knows; 0: it does
                              not. What is older than the memory is not run */
    /* filled by the engine before `answer` */
    enum answer_kind answer;
    enum record_state state; /* after the decision */
    /* the engine's own */
    uint8_t identity[16];
    bool repeated, drifted;
};

/* What the source says to its sender, for the delivery as a whole. */
enum delivery_answer {
    DELIVERY_ACCEPTED,      /* durable, at least one event is new */
    DELIVERY_DUPLICATE,     /* durable, none is new */
    DELIVERY_MISMATCH,      /* refused: known id with other content */
    DELIVERY_NO_ROOM,       /* not stored: come back later */
    DELIVERY_STOPPED_ROUTE, /* not stored: dead letters are full */
    DELIVERY_FENCED,        /* not looked at: its assignment is over */
};

struct assignment;
struct partition_state;

struct delivery {
    struct queue_item item; /* first: the inbox links it here */
    struct arrival *arrivals;
    size_t n_arrivals;
    /* The partition that the arrivals come from, in order of their offsets
     * (several may have one: a message that is an event on several routes);
     * NULL where the source has none. */
    struct assignment *assignment;
    enum delivery_answer result;
    int64_t retry_after_s; /* for NO_ROOM and the like */
    /* Engine's thread, after the commit; must not block. Takes back. */
    void (*answer)(struct delivery *delivery);
};

/* Any thread. False when the inbox is full or closed; the delivery then
 * stays the caller's. item.cost_bytes must be set. */
bool engine_deliver(struct engine *engine, struct delivery *delivery);

/* --- partitioned sources ------------------------------------------------- */

/* One assignment of one partition to this process: from the rebalance that
 * gave it to the one that takes it away. It is the epoch of its deliveries:
 * the next assignment of the same partition is another object. The source
 * makes it and frees it, when FENCE is done and each of its deliveries was
 * answered. */
struct assignment {
    /* the source's; not changed after OPEN */
    size_t stream;  /* index into the engine's streams */
    int32_t number; /* of the partition */
    uint32_t epoch; /* for logs */
    /* Engine's thread, after a commit: low_water moved, or there is other
     * room on a route. Must not block, and may come without a cause. */
    void (*wake)(struct assignment *assignment);
    void *context;
    /* written by the engine, read by any thread */
    _Atomic int64_t low_water;     /* the next offset to commit: what was
                                      received below it is settled; < 0: none */
    _Atomic int64_t head_since_ms; /* store time at which the event that holds
                                      low_water was received; 0: none does */
    atomic_size_t unsettled;       /* received, and not below low_water */
    /* the engine's own */
    struct partition_state *partition;
};

enum assignment_order_kind {
    /* It begins. Events of the partition that lie below `committed` settle
     * as moved, the others are due again. */
    ASSIGNMENT_OPEN,
    /* It is about to end: of what waits only first attempts begin that close
     * a hole below what is settled or runs, the rest is parked; done when no
     * offset waits any more (at once, if FENCE comes before). Deliveries are
     * fenced from here on. */
    ASSIGNMENT_DRAIN,
    /* It is over. */
    ASSIGNMENT_FENCE,
};

struct assignment_order {
    struct queue_item item; /* first */
    enum assignment_order_kind kind;
    struct assignment *assignment;
    /* OPEN: what the broker says; < 0: nothing */
    int64_t committed;          /* of the group */
    int64_t log_start, log_end; /* of the partition */
    const uint8_t *topic_id;    /* 16 bytes; NULL: not told */
    /* out */
    int64_t low_water;    /* OPEN: of the store, < 0: none; DRAIN and FENCE:
                             the final one of the assignment, < 0: none */
    uint32_t incarnation; /* OPEN: how often the topic was seen re-created */
    bool recreated;       /* OPEN: just now: its offsets begin anew */
    size_t moved, parked; /* OPEN, DRAIN: events that settled as moved, or
                             wait for the broker; parked */
    /* Engine's thread, after the commit; must not block. Takes back. */
    void (*done)(struct assignment_order *order);
};

/* Any thread; always has room. */
void engine_assign(struct engine *engine, struct assignment_order *order);

/* Any thread: how many more events the route has use for now, waiting
 * retries and those behind them in order not counted; 0 while it is paused,
 * its handler unreachable, or the store full. A source that has others to
 * give takes them from elsewhere, or none. */
size_t engine_room(const struct engine *engine, size_t route);

/* --- dead letters that are told elsewhere --------------------------------- */

/* An event that died on a route whose dead letters are published. It is
 * handed out again and again until one was published. Slices live as long as
 * the object. */
struct dead_letter {
    struct queue_item item; /* first */
    struct engine *engine;
    void *context; /* the engine's */
    const char *route;
    struct slice tenant, id;
    char idempotency_key[33];
    enum reason reason;
    const char *code, *why; /* "" where there is none */
    uint32_t run, attempts, deliveries;
    int64_t first_seen_ms, died_ms; /* store time */
    bool has_envelope;
    struct envelope envelope;
    /* out */
    bool published;
    char text[160]; /* why not, one line */
};

/* Any thread; always has room. */
void dead_letter_finish(struct dead_letter *letter);

struct publisher_ops {
    /* Engine's thread; takes the letter and must not block. */
    void (*publish)(void *self, struct dead_letter *letter);
    /* Finishes every letter, published or not, before it returns; not on the
     * engine's thread. */
    void (*stop)(void *self);
    void (*free)(void *self);
};

struct publisher {
    const struct publisher_ops *ops; /* NULL: none */
    void *self;
};

/* --- handlers ------------------------------------------------------------ */

enum { ATTEMPT_KEY_SIZE = 33, ATTEMPT_CODE_SIZE = 65, ATTEMPT_TEXT_SIZE = 160 };

struct attempt {
    struct queue_item item; /* first */
    struct engine *engine;
    void *context; /* the engine's */
    /* what is to be done; read-only for the handler */
    const char *route;
    struct slice tenant, id;
    char idempotency_key[ATTEMPT_KEY_SIZE]; /* same over attempts of a run */
    uint8_t identity[16]; /* with `number` it names the attempt for ever */
    uint32_t number;      /* the attempt, from 1 */
    int64_t timeout_ms;
    struct envelope envelope;
    /* what came of it; the handler fills it */
    enum attempt_end end;
    int status;
    int64_t retry_after_ms;       /* < 0: not told */
    char code[ATTEMPT_CODE_SIZE]; /* Onced-Code, or the exit status */
    char text[ATTEMPT_TEXT_SIZE]; /* one line for people: "connect: refused" */
    struct buf result;            /* flat form; empty where there is none */
    int64_t took_ms;
};

/* Any thread; always has room (attempts are counted when they start). */
void attempt_finish(struct attempt *attempt);

struct handler_ops {
    /* Engine's thread; takes the attempt and must not block. */
    void (*start)(void *self, struct attempt *attempt);
    /* Whether an attempt that an earlier process started still runs (an exec
     * handler's lease is busy). NULL: never. Engine's thread. */
    bool (*is_alive)(void *self, const uint8_t identity[16], uint32_t number);
    /* Ends such an attempt; is_alive turns false soon after. */
    void (*kill)(void *self, const uint8_t identity[16], uint32_t number);
    /* Ends every running attempt; each is finished (as broken or timed out)
     * before it returns. Called once, at shutdown, not on engine's thread. */
    void (*stop)(void *self);
    void (*free)(void *self);
};

struct handler {
    const struct handler_ops *ops;
    void *self;
};

/* --- operators ------------------------------------------------------------ */

enum command_kind {
    COMMAND_REPLAY,
    COMMAND_RERUN,
    COMMAND_RESOLVE_APPLIED,
    COMMAND_RESOLVE_NOT_APPLIED,
    COMMAND_DISCARD,
    COMMAND_PAUSE,
    COMMAND_RESUME,
    COMMAND_READ,      /* calls `read` in a transaction, changes nothing */
    COMMAND_FLUSH,     /* makes the counts of repeats durable, for a listing */
    COMMAND_BACKED_UP, /* tells the store when a backup of it was made */
};

enum command_status {
    COMMAND_DONE,
    COMMAND_NOTHING_TO_DO, /* already so */
    COMMAND_IN_DOUBT,      /* skipped: it may have taken effect */
    COMMAND_REFUSED,       /* not in this state */
    COMMAND_NOT_FOUND,
    COMMAND_BUSY, /* no room in the store now */
};

struct store;
struct store_entry;

/* One operator's order on one event or route. The caller keeps what it points
 * to until `done`. An order on many events is many commands: those that
 * arrive together share a commit. */
struct command {
    struct queue_item item; /* first */
    enum command_kind kind;
    const char *actor; /* who: a token's name or a user; for the audit */
    const char *note;  /* why, in the operator's words; may be NULL */
    size_t route;      /* index; SIZE_MAX with READ, FLUSH, BACKED_UP: none */
    struct slice tenant, id;
    bool assume_not_applied; /* REPLAY */
    bool dry_run;            /* says what it would do, changes nothing */
    uint32_t only_run;       /* RERUN: refused unless at this run; 0: any */
    struct slice result;     /* RESOLVE_APPLIED: flat form, or empty */
    int64_t backup_wall_ms;  /* BACKED_UP: when it was done */
    /* READ: on the engine's thread, inside the transaction. `entry` is the
     * event, counters of the last second included; NULL without one. */
    void (*read)(void *ctx, struct store *store, struct store_entry *entry);
    void *ctx;
    /* out */
    enum command_status status;
    enum record_state state; /* of the event, after it */
    bool not_kept;           /* RERUN: refused, as what arrived is gone */
    bool retired;            /* refused, as its route runs nothing */
    const char *why;         /* static text */
    /* Engine's thread, after the commit; must not block. Takes back. */
    void (*done)(struct command *command);
};

/* Any thread. False when there is no room even in the reserved part. */
bool engine_command(struct engine *engine, struct command *command);

#endif
