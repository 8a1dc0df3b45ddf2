/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine share. A turn is one batch:
 *
 *     inbox -> results, commands, assignments, due events, deliveries
 *           -> commit -> effects
 *
 *   engine.c    life, inbox, the turn and its wait
 *   batch.c     one transaction and what is let out, or undone, after it
 *   event.c     one step of one event, with all that follows in the store
 *   arrive.c    deliveries
 *   attempt.c   building and starting attempts, their results
 *   due.c       what may start now; the breaker of a route
 *   command.c   orders of operators
 *   partition.c which offsets are settled
 *   partition_end.c   assignments that end
 *   partition_open.c  assignments that begin, and what waited for them
 *   tracker.c   the offsets of one assignment
 *   waits.c     which offsets wait for which event
 *   room.c      how many more events a route has use for
 *   outbox.c    dead letters that are told elsewhere
 *   repeats.c   counts of repeats that ride with a later commit
 *   recover.c   attempts that an earlier process left behind
 *   restore.c   what was unsettled in a backup
 */
#ifndef ONCED_ENGINE_INTERNAL_H
#define ONCED_ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "engine/engine.h"

enum inbox_kind {
    INBOX_DELIVERY,
    INBOX_RESULT,
    INBOX_COMMAND,
    INBOX_ASSIGNMENT,
    INBOX_LETTER,
};

enum {
    BATCH_MAX_ITEMS = 1024,
    BATCH_MAX_BYTES = 8 << 20,
    COMMANDS_RESERVED = 1024,
    ASSIGNMENTS_RESERVED = 1 << 20, /* orders: few for each partition */
    LETTERS_MAX = 64,               /* of a route, on their way */
    HOUSEKEEPING_MS = 60 * 1000,
    NO_ROOM_RETRY_MS = 1000,
    ORPHAN_LOOK_MS = 1000,
    PROBE_FIRST_MS = 1000,
    PROBE_MAX_MS = 15 * 1000,
};

/* A list of items in order of arrival. */
struct item_list {
    struct queue_item *head, **tail;
};

/* The dead letters of a route that are to be told elsewhere; see outbox.c. */
struct outbox {
    struct letter *on_their_way;
    size_t n_on_their_way;
    uint64_t cursor;  /* those up to it were looked at */
    bool has_more;    /* behind the cursor */
    bool has_failed;  /* one since the list was begun */
    int64_t begin_ms; /* store time at which it may be begun again */
    int64_t delay_ms;
    /* of the open batch */
    uint64_t new_cursor;
    bool new_has_more;
};

struct route {
    struct engine_route conf;
    uint16_t number;
    uint16_t namespace;
    uint32_t running; /* attempts in flight */
    uint32_t orphans; /* of an earlier process, still running */
    /* of the open batch; folded into the rest after the commit */
    uint32_t starting, ending;
    bool heard, unheard; /* an attempt reached the handler, or did not */
    bool told_stopped;   /* the log knows that its dead letters are full */
    /* the breaker */
    bool unreachable;
    int64_t probe_at_ms; /* store time of the next try while unreachable */
    int64_t probe_delay_ms;
    /* room.c */
    int64_t load;
    int64_t new_load; /* of the open batch */
    atomic_size_t room;
    struct outbox outbox;
};

/* An attempt with what the engine keeps beside it. */
struct job {
    struct attempt attempt; /* first: its context is the job */
    struct route *route;
    struct buf strings;  /* tenant and id */
    struct buf envelope; /* flat form that attempt.envelope looks into */
    struct job *next;    /* in the batch's list of starts */
};

/* What is told to logs and metrics when the commit has returned. */
struct note {
    const struct route *route;
    enum record_state state;
    enum reason reason;
    uint32_t attempts, run;
    int64_t took_ms; /* from acceptance to settlement */
    size_t id_len;
    char id[STORE_ID_MAX];
};

struct partitions;
struct repeats;

/* An attempt of an earlier process that still runs. */
struct orphan {
    struct identity identity;
    uint32_t attempt;
    struct route *route;
    int64_t kill_at_ms; /* store time */
    bool ended;         /* in the open batch */
    struct orphan *next;
};

struct batch {
    int64_t now_ms;
    struct item_list results, commands, assignments, letters, deliveries;
    struct job *starts, **starts_tail;
    struct note *notes;
    size_t n_notes, cap_notes;
    bool dirty;          /* something was put: a commit is needed */
    bool full;           /* no room for new events */
    bool waits_for_room; /* a batch was put off: results wait, nothing starts */
};

struct engine {
    struct route *routes;
    size_t n_routes;
    struct store *store;
    const struct clock *clock;
    uint64_t (*random)(void *self);
    void *random_self;
    uint32_t epoch;
    struct queue *inbox;
    struct batch batch;
    struct repeats *repeats;
    struct partitions *partitions;
    struct orphan *orphans;
    int64_t orphans_look_ms;  /* store time of the next look */
    int64_t housekeeping_ms;  /* likewise */
    int64_t no_room_until_ms; /* likewise: refuse new events till then */
    bool maintenance_waits;   /* store_maintain has another step */
    bool is_tight;            /* the last batch found no room */
    bool told_full;           /* the log knows that there is no room */
    size_t running;           /* attempts in flight, all routes */
    atomic_size_t commands;   /* in the inbox or in work */
    atomic_bool stopping;
    atomic_bool waiting;
    _Atomic int64_t last_turn_boot_ms;
};

/* engine.c: all of engine_new but the recovery: nothing in the store changes
 * but names. */
bool engine_build(struct engine **out, const struct engine_options *options,
                  struct err *err) MUST_CHECK;

/* batch.c: one transaction over the batch's items. */
bool batch_run(struct engine *engine, struct err *err) MUST_CHECK;
void batch_note_settled(struct engine *engine, const struct route *route,
                        const struct store_entry *entry);

/* event.c */
struct route *event_route(struct engine *engine,
                          const struct store_entry *entry);
/* Steps the entry and writes what changed: record, history, the next event
 * of its key. `detail` (or NULL) goes before the core's reason in the
 * history, `actor` names an operator. */
struct event_step {
    struct route *route;
    struct store_entry *entry;
    struct input input;
    const char *detail;
    const char *actor;
    struct decision decision; /* out */
};
bool event_step(struct engine *engine, struct event_step *step,
                struct err *err) MUST_CHECK;
/* An input with the fields that every step needs. */
struct input event_input(struct engine *engine, enum input_kind kind);
/* Whether an earlier event holds the entry's ordering key. */
bool event_order_blocked(struct engine *engine, uint64_t order_key,
                         const struct store_entry *entry, bool *blocked,
                         struct err *err) MUST_CHECK;

/* arrive.c */
bool arrive_apply(struct engine *engine, struct delivery *delivery,
                  struct err *err) MUST_CHECK;

/* attempt.c */
bool attempt_prepare(struct engine *engine, struct route *route,
                     struct store_entry *entry, struct slice envelope,
                     struct err *err) MUST_CHECK;
bool attempt_apply_result(struct engine *engine, struct attempt *attempt,
                          struct err *err) MUST_CHECK;
/* Log and metrics, when what it led to is durable. */
void attempt_tell(struct engine *engine, const struct attempt *attempt);
void attempt_free(struct attempt *attempt);
void attempt_start(struct job *job);

/* due.c */
bool due_apply(struct engine *engine, struct err *err) MUST_CHECK;
/* Whether a new attempt may start on the route in this batch. */
bool due_may_start(const struct engine *engine, const struct route *route);
/* Store time at which due_apply has something to do; RECORD_NEVER: none. */
int64_t due_next_ms(const struct engine *engine);
/* The breakers that the batch's outcomes open or close are written with it. */
void breaker_write(struct engine *engine);
/* Folds the batch's outcomes into the breaker, after the commit. */
void breaker_fold(struct engine *engine, struct route *route);

/* command.c */
bool command_apply(struct engine *engine, struct command *command,
                   struct err *err) MUST_CHECK;
/* The log's line, when the order is durable or refused. */
void command_tell(const struct engine *engine, const struct command *command);

/* room.c. At the start: nothing is counted; this one is. */
void room_reset(struct engine *engine);
void room_count(struct route *route, const struct record *record);
/* A step of an event of the route. */
void room_follow(struct route *route, const struct record *before,
                 const struct record *after);
/* After the commit. True when there is more room on a route than there was. */
bool room_fold(struct engine *engine);
void room_aborted(struct engine *engine);

/* outbox.c. It died: it is to be told; in the transaction that says so. */
bool outbox_add(struct engine *engine, struct route *route,
                const struct store_entry *entry, struct err *err) MUST_CHECK;
/* At the start: there may be some of an earlier process. */
void outbox_begin(struct engine *engine);
/* What came back, and what is to go, inside the transaction. */
bool outbox_apply(struct engine *engine, struct err *err) MUST_CHECK;
void outbox_committed(struct engine *engine);
void outbox_aborted(struct engine *engine);
/* Store time at which there is something to do; RECORD_NEVER: none. */
int64_t outbox_next_ms(const struct engine *engine);
/* What came back and was not looked at is freed. */
void outbox_free(struct engine *engine);

/* repeats.c: deliveries and drifts of known events, counted in memory until
 * a commit takes them along (at most a second later). */
struct repeats *repeats_new(void);
void repeats_free(struct repeats *repeats);
void repeats_add(struct repeats *repeats, const uint8_t identity[16],
                 bool drifted, int64_t now_ms);
/* Adds what is counted for the entry to its record (not stored). */
void repeats_overlay(const struct repeats *repeats, struct store_entry *entry);
int64_t repeats_due_ms(const struct repeats *repeats);
/* What is counted goes with this turn. */
void repeats_hurry(struct repeats *repeats);
bool repeats_flush(struct engine *engine, struct err *err) MUST_CHECK;
/* After a commit, or its failure: what it took along is forgotten, or is not.
 */
void repeats_flushed(struct repeats *repeats, bool committed);

/* recover.c */
bool recover_attempts(struct engine *engine, struct err *err) MUST_CHECK;
/* Looks at the orphans; inside the transaction. */
bool recover_orphans(struct engine *engine, struct err *err) MUST_CHECK;
/* After the commit those that have ended are forgotten; after its failure they
 * are looked at again. */
void recover_orphans_seen(struct engine *engine, bool committed);
/* The lease of a running attempt passed. */
bool recover_lapsed(struct engine *engine, struct route *route,
                    struct store_entry *entry, struct err *err) MUST_CHECK;

#endif
