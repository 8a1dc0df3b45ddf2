/* SPDX-License-Identifier: MIT */
/*
 * What the checker keeps of a ledger, for its own files alone. All is
 * allocated from one arena and freed with it. `at` is the place of a line in
 * the ledger: a total order, in which things happened.
 */
#ifndef CHECKER_CHECKER_INTERNAL_H
#define CHECKER_CHECKER_INTERNAL_H

#include <uthash.h>

#include "checker/checker.h"
#include "checker/ledger_read.h"

#define NOT_YET UINT64_MAX /* an `at` that never comes */

struct route_track {
    UT_hash_handle hh; /* by name */
    struct ledger_route conf;
};

struct process_track {
    UT_hash_handle hh; /* by number */
    uint64_t number;
    uint64_t crashed_at; /* NOT_YET: it did not crash */
    struct slice store;
};

struct owner_track {
    struct owner_track *next;
    const struct process_track *process;
    uint64_t at;
};

/* A partition, and its messages in order of their offsets. */
struct part_track {
    UT_hash_handle hh;       /* by topic and number */
    struct part_track *next; /* of all, in order of appearance */
    struct slice name, topic;
    int64_t number;
    struct try_track **messages;
    size_t n, cap;
    size_t passed;                     /* of these, below what was committed */
    int64_t committed;                 /* < 0: nothing */
    const struct process_track *owner; /* NULL: not known, or none */
    struct owner_track *owners;        /* all, the latest first */
    bool is_read;                      /* somebody was given it, or committed */
};

/* A request; or a message, which is never answered. */
struct try_track {
    UT_hash_handle hh; /* by number */
    uint64_t number;
    struct event_track *event;
    struct try_track *next; /* of the event */
    struct slice hash, order, body;
    uint64_t sent_at, resp_at; /* resp_at NOT_YET: its outcome is unknown */
    int64_t sent_ms, resp_ms;
    int64_t status;
    bool valid;
    bool shared; /* the event was forgotten while it was open: it may have
                    reached either */
    /* of a message */
    struct part_track *part; /* NULL: it is a request */
    int64_t offset;
    uint64_t committed_at; /* NOT_YET: no offset behind it was committed */
    bool skipped;
    enum ledger_skip_kind skip;
};

struct inv_track {
    UT_hash_handle hh; /* by number */
    uint64_t n;
    struct event_track *event;
    struct inv_track *next; /* of the event */
    struct process_track *process;
    struct route_track *route;
    struct slice hash, key;
    uint64_t attempt;
    uint64_t at, done_at; /* done_at NOT_YET: never told */
    int64_t begin_ms, done_ms;
    enum ledger_end end;
    int64_t status;
    enum ledger_effect effect;
};

struct order_track {
    struct order_track *next; /* of the event */
    int64_t t_ms;
    uint64_t at;
    enum ledger_order_kind kind;
    enum ledger_verdict verdict;
};

/* What a further store exported of an event. */
struct export_track {
    struct export_track *next;
    struct ledger_event *export;
};

struct event_track {
    UT_hash_handle hh; /* by namespace, tenant and id */
    struct slice identity;
    struct event_track *next;   /* of all, in order of appearance */
    struct event_track *before; /* the one of this name that was forgotten */
    struct route_track *route;  /* that it was first named with */
    struct slice tenant, id;
    struct try_track *tries, *last_try;
    struct inv_track *invs, *last_inv;
    struct order_track *orders, *last_order;
    struct ledger_event *export; /* NULL: not in the export; of several
                                    stores: what came of it in the end */
    struct export_track *others; /* of further stores */
    bool forgotten;
    bool exported_twice;
    bool may_wait; /* behind a dead letter that holds its key */
};

/* A downstream key, and whose it is. */
struct key_track {
    UT_hash_handle hh;
    struct slice key;
    struct event_track *event;
};

struct arena_block {
    struct arena_block *next;
    size_t used;
    char bytes[];
};

struct checker {
    struct arena_block *arena;
    struct ledger_reader reader;
    struct buf scratch;
    struct route_track *routes;
    struct process_track *processes;
    struct try_track *tries;
    struct inv_track *invs;
    struct event_track *by_name;
    struct key_track *keys;
    struct part_track *parts; /* by name */
    struct part_track *first_part, *last_part;
    struct event_track *first, *last; /* all events */
    uint64_t lines;                   /* `at` of the line under way */
    int64_t now_ms;
    uint64_t crashes, restores, orders;
    uint64_t moved; /* invocations in another store than the one before */
    int64_t heal_ms, within_ms, quiet_ms; /* < 0: there was none */
    bool has_export;
    bool in_dump;
    struct slice dump_store; /* of the dump under way */
    uint64_t dumped;
    struct checker_finding *findings;
    size_t n_findings;
    uint64_t totals[CHECKER_CHECKS];
    struct attempt_facts *facts; /* see lay_out_attempts */
    size_t facts_cap;
};

/* Zeroed, aligned for anything; freed with the checker. */
void *arena_new(struct checker *checker, size_t size);
struct slice arena_copy(struct checker *checker, struct slice text);

/* Writes a finding down; the text is one line. */
void report(struct checker *checker, enum checker_check check,
            const struct event_track *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* --- what several checks ask ---------------------------------------------- */

static inline bool is_acknowledged(const struct try_track *try)
{
    return try->resp_at != NOT_YET && try->status >= 200 && try->status < 300;
}

static inline bool has_history(const struct event_track *event)
{
    return event->export != NULL && event->export->rows != NULL;
}

/* The order was carried out, or a crash hid whether it was. */
static inline bool order_may_count(const struct order_track *order)
{
    return order->verdict == LEDGER_DONE || order->verdict == LEDGER_UNKNOWN;
}

/* Orders of a kind that may have been carried out. */
uint64_t count_orders(const struct event_track *event,
                      enum ledger_order_kind kind);
/* Orders of a kind that were. */
uint64_t count_orders_done(const struct event_track *event,
                           enum ledger_order_kind kind);
/* What onced was told of the invocation. */
enum told {
    TOLD_NOTHING, /* no end, or one that may not have been heard */
    TOLD_SUCCESS,
    TOLD_NOT_APPLIED, /* proof that there was no effect */
    TOLD_DOUBT,
};
enum told inv_told(const struct inv_track *inv);

bool event_is_settled(const struct ledger_event *export);

/* The rows of a history that mean something here, as bits. */
enum row {
    ROW_RETRY = 1U << 0,
    ROW_UNCERTAIN = 1U << 1,
    ROW_CRASHED = 1U << 2,
    ROW_RELEASED = 1U << 3,
    ROW_RESTORED = 1U << 4,
    ROW_REPLAYED = 1U << 5,
    ROW_RERUN = 1U << 6,
    ROW_NOT_APPLIED = 1U << 7,
    ROW_APPLIED = 1U << 8,
    ROW_PROBE = 1U << 9,
    ROW_DEAD = 1U << 10,
    ROW_DISCARDED = 1U << 11,
    ROW_SUCCEEDED = 1U << 12,
    ROW_FAILED = 1U << 13,
    ROW_SETTLED_OTHERWISE = 1U << 14, /* dead on arrival, moved, superseded */
};
/* 0 for any other. */
unsigned row_bit(const struct ledger_row *row);
const char *row_name(enum row bit);

/* Rows that have one of the bits. */
uint64_t count_rows(const struct event_track *event, unsigned bits);

/* What is known of one attempt number of an event. */
struct attempt_facts {
    unsigned rows; /* of the history, with this number */
    uint64_t run;
    const struct inv_track *inv; /* the last one of that number, or NULL */
};

/* Lays out an event's attempts, 0 to `attempts` of its export, which it must
 * have. What has a higher number is left out. False where there are so many
 * numbers that most cannot be known. Until the next call. */
bool lay_out_attempts(struct checker *checker, const struct event_track *event);

/* --- the checks ------------------------------------------------------------
 */

void check_answers(struct checker *checker, const struct event_track *event);
void check_content(struct checker *checker, const struct event_track *event);
void check_attempts(struct checker *checker, const struct event_track *event);
void check_effects(struct checker *checker, struct event_track *event);
void check_export(struct checker *checker, const struct event_track *event);

/* The last attempt of an event's first life: until its history tells one of
 * the rows in `ends`, or to the end where it is settled; UINT64_MAX: it has
 * not ended. */
uint64_t first_life(const struct ledger_event *export, unsigned ends,
                    bool is_settled);
/* Whether the store that exported this made the invocation. */
bool inv_is_of(const struct inv_track *inv, const struct ledger_event *export);
/* When onced no longer waited for the invocation, as far as can be told. */
uint64_t inv_end(const struct inv_track *inv);

/* check_stores.c: whether the event is known to several stores. */
bool event_is_shared(const struct event_track *event);
/* One more store has the event. False: that store had it before. */
bool stores_add_export(struct checker *checker, struct event_track *event,
                       struct ledger_event *export);
/* Of each store alone what is checked of attempts and exports; and what two
 * stores may both have done. */
void check_stores(struct checker *checker, struct event_track *event);

/* check_offsets.c: lines of partitions. */
bool offsets_take_msg(struct checker *checker, const struct ledger_msg *line,
                      struct event_track *event, struct err *err);
bool offsets_take_owner(struct checker *checker, enum ledger_kind kind,
                        const struct ledger_owner *line,
                        const struct process_track *process);
bool offsets_take_commit(struct checker *checker,
                         const struct ledger_commit *line, bool is_reset);
bool offsets_take_skip(struct checker *checker, const struct ledger_skip *line);
void offsets_free(struct checker *checker);
/* C6, and what of C1 and C9 is told by offsets. */
void check_offsets(struct checker *checker);

/* checker_feed.c */
void event_add_try(struct event_track *event, struct try_track *try);
struct slice event_keep_hash(struct checker *checker,
                             const struct event_track *event,
                             struct slice hash);

/* Over all events of every ordering key; sorts, so once for all. Also C9,
 * which has to know who waits for whom. */
void check_order_and_rest(struct checker *checker);

#endif
