/* SPDX-License-Identifier: MIT */
/*
 * The store: every event's record, durable in LMDB.
 *
 * One process owns a store directory (flock on LOCK); one thread, the
 * engine's, owns the only write transaction and every function here that is
 * not marked "any thread". All changes of a batch become durable together
 * when store_commit returns, and leave no trace in memory or on disk when it
 * does not.
 *
 * Records live in generations in order of arrival, forgotten by dropping a
 * whole generation; what is not settled, and every dead letter, is carried
 * along. The indexes (`due`, `order`, `dlq`) and the counters are derived
 * from the record by store_put: no caller keeps them. The layout is
 * docs/format.md; why it is so is docs/adr/.
 *
 * Errors: kind ERR_AGAIN means no room (map, quota or disk full): abort, the
 * batch may be tried again later. Any other kind means that the store cannot
 * be trusted to go on: acknowledge nothing and end the process.
 */
#ifndef ONCED_STORE_STORE_H
#define ONCED_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/record.h"

enum { STORE_ID_MAX = 255, STORE_TENANT_MAX = 255 };
enum { STORE_CODE_MAX = 64, STORE_TEXT_MAX = 255, STORE_ACTOR_MAX = 64 };
enum { STORE_ROUTES_MAX = 1024 };

struct store_options {
    const char *path;
    uint64_t max_bytes;   /* soft quota; the map is twice that */
    int64_t retention_ms; /* ids are remembered at least that long */
    bool create;          /* make it where there is none */
    bool read_only;       /* inspect the store of a stopped worker: no write
                             transaction, nothing is changed */
    bool restore;         /* open a backup, which is refused otherwise (but
                             for reading), and nothing but a backup */
    const char *load;     /* the name of the load that it is opened for: also
                             where that one did not end, and no other one; a
                             store that is created has its mark from the
                             first. NULL: for none */
    bool no_sync;         /* tests and simulation only */
    uint32_t ids_per_generation; /* 0: by the rule of docs/format.md */
    const struct clock *clock;   /* kept by the caller */
};

struct store;

/* Opens, or creates, and checks the store; see the start order in
 * docs/format.md. ERR_AGAIN: another process owns it. ERR_DATA: not a store,
 * a newer format, or damaged. */
bool store_open(struct store **out, const struct store_options *options,
                struct err *err) MUST_CHECK;
/* No transaction may be open; NULL is fine. */
void store_close(struct store **at);

/* Raised by every store_open for writing: claims of an older epoch belong to
 * a process that is gone. */
uint32_t store_epoch(const struct store *store);
const char *store_path(const struct store *store);

/* The store's clock: never behind what it has stamped, follows jumps forward
 * of the wall clock by at most one hour at a time. */
int64_t store_now_ms(struct store *store);

/* --- names -------------------------------------------------------------- */

/* The lasting number of a route or namespace; a new name gets the next one,
 * in a transaction of its own (none may be open). */
bool store_route_number(struct store *store, const char *name, uint16_t *number,
                        struct err *err) MUST_CHECK;
bool store_namespace_number(struct store *store, const char *name,
                            uint16_t *number, struct err *err) MUST_CHECK;

/* Every route that the store ever knew, by number; NULL past the last. The
 * name lives as long as the store. */
const char *store_route_name(const struct store *store, uint16_t number);

/* Likewise of a stream: a topic as one group of one cluster reads it. Numbers
 * begin with 1. The first one raises the format of the store: a program that
 * knows of no streams opens it no more. */
bool store_stream_number(struct store *store, const char *name,
                         uint16_t *number, struct err *err) MUST_CHECK;
const char *store_stream_name(const struct store *store, uint16_t number);

/* Likewise of a namespace. */
const char *store_namespace_name(const struct store *store, uint16_t number);

/* What the route asks for; takes effect at once, is not stored. */
struct store_retention {
    int64_t ids_ms;      /* settled records read as absent after that */
    int64_t envelope_ms; /* envelopes likewise */
    int64_t result_ms;
};
void store_set_retention(struct store *store, uint16_t route,
                         const struct store_retention *retention);

/* --- identity ----------------------------------------------------------- */

struct identity {
    uint8_t hash[16]; /* keyed per store, over length-prefixed parts */
};

/* Any thread. */
struct identity store_identity(const struct store *store, uint16_t namespace,
                               struct slice tenant, struct slice id);

/* --- the transaction ---------------------------------------------------- */

bool store_begin(struct store *store, struct err *err) MUST_CHECK;
/* Ends the transaction either way. */
bool store_commit(struct store *store, struct err *err) MUST_CHECK;
void store_abort(struct store *store);

/* True when the quota or the disk leaves no room for new events; what
 * settles known ones still goes, into blocks that are allocated ahead. Call it
 * before each batch: the quota is looked at once a second. */
bool store_is_full(struct store *store);

/* --- records; inside the transaction ------------------------------------ */

/* Of a message; stream 0: of none. */
struct store_position {
    uint16_t stream; /* number */
    int32_t partition;
    int64_t offset;
};

struct store_entry {
    struct identity identity;
    uint64_t seq;    /* where it stands; 0: not stored yet */
    uint64_t origin; /* its first sequence; names its audit, never changes */
    uint64_t expired_seq; /* the store's: a forgotten record that a new one
                             under this identity replaces; 0: none */
    int64_t expired_ms;   /* when that one was settled */
    struct record record; /* change it, then store_put */
    struct record stored; /* as the store has it; state NONE when new */
    struct store_position position; /* of the message that it came with; goes
                                       with the record */
    uint16_t namespace;
    uint8_t tenant_len, id_len;
    char tenant[STORE_TENANT_MAX];
    char id[STORE_ID_MAX];
    char code[STORE_CODE_MAX + 1]; /* of a dead letter, from the handler */
    char text[STORE_TEXT_MAX + 1]; /* why it is dead */
};

struct slice store_entry_id(const struct store_entry *entry);
struct slice store_entry_tenant(const struct store_entry *entry);

enum store_found { STORE_FOUND, STORE_ABSENT, STORE_FAILED };

/* Fills `entry` either way: when absent, ready to become a new record. */
enum store_found store_find(struct store *store, uint16_t namespace,
                            struct slice tenant, struct slice id,
                            struct store_entry *entry,
                            struct err *err) MUST_CHECK;

/* By identity alone (an attempt in flight, a lease). */
enum store_found store_find_identity(struct store *store,
                                     const struct identity *identity,
                                     struct store_entry *entry,
                                     struct err *err) MUST_CHECK;

/* Writes a new or changed record with all that follows from it: due and
 * order index, dead-letter table (the envelope moves along), counters. A
 * record outside the current generation is written anew at its end. */
bool store_put(struct store *store, struct store_entry *entry,
               struct err *err) MUST_CHECK;

/* The envelope (flat form). Put after store_put; replaces an older one. */
bool store_put_envelope(struct store *store, const struct store_entry *entry,
                        struct slice flat, struct err *err) MUST_CHECK;
/* Appends a copy to `out`. Absent: erased, expired or never kept. */
enum store_found store_get_envelope(struct store *store,
                                    const struct store_entry *entry,
                                    struct buf *out,
                                    struct err *err) MUST_CHECK;

bool store_put_result(struct store *store, const struct store_entry *entry,
                      struct slice flat, struct err *err) MUST_CHECK;
enum store_found store_get_result(struct store *store,
                                  const struct store_entry *entry,
                                  struct buf *out, struct err *err) MUST_CHECK;

struct store_audit {
    int64_t at_ms;
    enum move move;
    uint32_t attempt;
    uint32_t run;
    char actor[STORE_ACTOR_MAX + 1]; /* "" where nobody ordered it */
    char why[STORE_TEXT_MAX + 1];
};

bool store_add_audit(struct store *store, const struct store_entry *entry,
                     const struct store_audit *audit,
                     struct err *err) MUST_CHECK;

/* The story so far, oldest first; false from `visit` ends it. */
bool store_each_audit(struct store *store, const struct store_entry *entry,
                      bool (*visit)(void *ctx, const struct store_audit *),
                      void *ctx, struct err *err) MUST_CHECK;

/* The next entry of the due index of `route` behind (*due_ms, *seq), in
 * order of due time; start with INT64_MIN and 0. STORE_ABSENT: none is due
 * at or before `until_ms`. The index may change between calls. */
enum store_found store_next_due(struct store *store, uint16_t route,
                                int64_t until_ms, int64_t *due_ms,
                                uint64_t *seq, struct store_entry *entry,
                                struct err *err) MUST_CHECK;

/* The same for RUNNING events alone, whatever else waits. */
enum store_found store_next_running(struct store *store, uint16_t route,
                                    int64_t *due_ms, uint64_t *seq,
                                    struct store_entry *entry,
                                    struct err *err) MUST_CHECK;

/* The earliest due time of the route, RECORD_NEVER where nothing waits.
 * From memory; also outside a transaction. */
int64_t store_first_due(struct store *store, uint16_t route);

/* The oldest event that holds its place under an ordering key. */
enum store_found store_order_first(struct store *store, uint64_t order_key,
                                   struct store_entry *entry,
                                   struct err *err) MUST_CHECK;

bool store_set_paused(struct store *store, uint16_t route, bool paused,
                      struct err *err) MUST_CHECK;
bool store_is_paused(const struct store *store, uint16_t route);

/* Whether the route's handler could not be reached when last tried; it
 * outlives the process, so that a restart does not storm it. */
void store_set_unreachable(struct store *store, uint16_t route,
                           bool unreachable);
bool store_is_unreachable(const struct store *store, uint16_t route);

/* Dead letters of a route: bytes they take, and dropping the oldest, which
 * is discarded with a line in its history. One that holds an ordering key is
 * left: only a person frees it; so is the one at `keep_seq`, which has only
 * just died. STORE_ABSENT: there is none to drop. */
uint64_t store_dead_bytes(const struct store *store, uint16_t route);
/* How many of them hold an ordering key. */
uint32_t store_dead_holders(const struct store *store, uint16_t route);
enum store_found store_drop_oldest_dead(struct store *store, uint16_t route,
                                        uint64_t keep_seq,
                                        struct err *err) MUST_CHECK;

/* --- partitions; inside the transaction ---------------------------------- */

/* Of one partition of a stream that has its number, from 0 on. */
struct store_low_water {
    int64_t offset;       /* all that was received below it is settled */
    uint32_t incarnation; /* how often the topic was seen re-created */
    uint8_t topic_id[16]; /* zeros: not known */
};

enum store_found store_get_low_water(struct store *store, uint16_t stream,
                                     int32_t partition,
                                     struct store_low_water *out,
                                     struct err *err) MUST_CHECK;
bool store_put_low_water(struct store *store, uint16_t stream,
                         int32_t partition,
                         const struct store_low_water *low_water,
                         struct err *err) MUST_CHECK;

/* What was settled or seen at or after that time is not hidden, and no
 * generation that closed then is dropped, whatever retention and clock say: a
 * partition may bring it again. RECORD_NEVER: as after store_open, retention
 * and clock alone decide. Outside of a transaction; not stored. */
void store_keep_since(struct store *store, int64_t since_ms);

/* The next unsettled event (PENDING, RUNNING, UNCERTAIN) of `route`, in the
 * order of the due index, also those that are never due (parked, or behind
 * another of their key). Start with *state = RECORD_PENDING, *due_ms =
 * INT64_MIN and *seq = 0. The index may change between calls. */
enum store_found store_next_unsettled(struct store *store, uint16_t route,
                                      enum record_state *state, int64_t *due_ms,
                                      uint64_t *seq, struct store_entry *entry,
                                      struct err *err) MUST_CHECK;

/* Dead letters that are to be published: a list for each route, in order of
 * their origins. It follows nothing: what is in it may be dead no more, or
 * forgotten, by the time it is looked at. Adding what is there is fine, and
 * so is removing what is not. */
bool store_outbox_add(struct store *store, const struct store_entry *entry,
                      struct err *err) MUST_CHECK;
/* The first one behind *origin (start with 0), which it sets. */
enum store_found store_outbox_next(struct store *store, uint16_t route,
                                   uint64_t *origin, struct identity *identity,
                                   struct err *err) MUST_CHECK;
bool store_outbox_remove(struct store *store, uint16_t route, uint64_t origin,
                         struct err *err) MUST_CHECK;

/* A bounded step of what must be done in the background: closing and
 * sealing a generation, forgetting one, dropping envelopes. Rides along with
 * a transaction. `*more` when another step is waiting. */
bool store_maintain(struct store *store, bool *more,
                    struct err *err) MUST_CHECK;

/* --- listings; any thread, in a read transaction of their own ----------- */

struct store_filter {
    int32_t route; /* number, or -1: all */
    bool has_state;
    enum record_state state;
    enum reason reason; /* REASON_NONE: all */
    int64_t since_ms;   /* first seen at or after; 0: all */
    uint64_t before;    /* cursor: sequences below it; 0: from the newest */
};

/* Visits matching records, newest first, until `visit` returns false. */
bool store_list(struct store *store, const struct store_filter *filter,
                bool (*visit)(void *ctx, const struct store_entry *entry),
                void *ctx, struct err *err) MUST_CHECK;

struct store_stats {
    uint64_t bytes, max_bytes;
    uint64_t remembered;
    int64_t effective_retention_ms;
    bool full;
    uint64_t counts[STORE_ROUTES_MAX][RECORD_STATES]; /* by route number */
};

/* The engine's thread, or a store opened read-only. */
void store_stats(struct store *store, struct store_stats *out);

/* The end of the newest generation that was dropped: an event from before it
 * is too old to be told from a forgotten one. INT64_MIN: none was dropped. */
int64_t store_forgotten_until_ms(const struct store *store);

/* --- backups ------------------------------------------------------------ */

struct store_backup {
    int64_t made_wall_ms; /* all that was committed before is in it */
    uint64_t events;      /* records, settled ones too */
    uint64_t bytes;       /* of its data file */
    int64_t took_ms;
};

struct store_backup_order {
    const char *target; /* the folder to make */
    /* Asked with each MiB, on the calling thread; false ends it. NULL: it is.
     */
    bool (*is_wanted)(void *ctx);
    void *ctx;
};

/* Any thread; the writer goes on meanwhile. Copies what is committed into the
 * folder `target`, which must be empty or not there; the folder above it must
 * be. The copy is made under another name
 * beside it, read again, marked as a copy, synced and renamed: `target` is
 * whole or is not there, and after an error neither is. A copy of a backup
 * keeps its time. Pages that are freed meanwhile are not used again until it
 * is done. ERR_USAGE: something is in the way; ERR_AGAIN: it was not
 * wanted any more; ERR_IO: the cause is in the text, a full disk too. */
bool store_backup(struct store *store, const struct store_backup_order *order,
                  struct store_backup *out, struct err *err) MUST_CHECK;

/* When the store, being a backup, was made; 0: it is none. Any thread. */
int64_t store_copied_wall_ms(const struct store *store);

/* Inside a transaction, of a backup opened to be restored: it is a store from
 * the commit on, with the next incarnation. */
bool store_end_restore(struct store *store, struct err *err) MUST_CHECK;

/* When the newest backup was made, as far as the store was told; 0: never. A
 * restored store's is the one it comes from. Setting it is for inside of a
 * transaction. */
int64_t store_last_backup_wall_ms(const struct store *store);
bool store_set_last_backup(struct store *store, int64_t wall_ms,
                           struct err *err) MUST_CHECK;

/* --- offline ------------------------------------------------------------ */

struct store_report {
    uint64_t records, envelopes, dead_letters, audits, bad;
    char first_bad[256]; /* the first finding, in words */
};

/* Reads everything and checks it against everything: CRCs, indexes both
 * ways, counters, a compacting copy to nowhere. Takes the lock. False when
 * it could not be done; findings are in the report. */
bool store_verify(const char *path, struct store_report *report,
                  struct err *err) MUST_CHECK;

/* Visits every record in order of arrival, also what its route remembers no
 * more, until `visit` returns false; inside a transaction, in which `visit`
 * may read what belongs to the record and may change nothing. Takes the same
 * memory for every size of store. */
bool store_walk(struct store *store,
                bool (*visit)(void *ctx, const struct store_entry *entry),
                void *ctx, struct err *err) MUST_CHECK;

/* Its lasting id, 16 bytes that live as long as the store, and how often it
 * was begun anew: 1, and one more for each restore. */
struct slice store_uuid(const struct store *store);
uint32_t store_incarnation(const struct store *store);

/* Inside a transaction, of a store opened for a load: while that is going on,
 * and after it did not end, the store is refused to all but the same load
 * (and readers): an id that has not come yet would read as new. */
bool store_set_loading(struct store *store, bool loading,
                       struct err *err) MUST_CHECK;

/* Whether a load into the store has not ended. */
bool store_is_loading(const struct store *store);

/* Inside a transaction: what lies before `until_ms` is too old here as well
 * (see store_forgotten_until_ms). Never goes back. */
void store_forget_until(struct store *store, int64_t until_ms);

#endif
