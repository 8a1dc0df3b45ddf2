/* SPDX-License-Identifier: MIT */
/*
 * What the files of the store share. Nothing outside src/store includes it.
 *
 * Two kinds of memory mirror the disk and must follow it through commit and
 * abort. `struct store_state` is plain data: store_begin copies it, an abort
 * copies it back. What is too big to copy (id tables, counters, the state of
 * routes) is changed in place, and every change is noted in the journal,
 * which an abort undoes.
 */
#ifndef ONCED_STORE_STORE_INTERNAL_H
#define ONCED_STORE_STORE_INTERNAL_H

#include <lmdb.h>
#include <stdatomic.h>

#include "store/store.h"
#include "store/store_bloom.h"
#include "store/store_table.h"

/* A store has the first format until it knows a stream. */
enum { STORE_SLOTS = 64, STORE_FORMAT_FIRST = 1, STORE_FORMAT = 2 };
enum { STORE_TABLES_MAX = 5 * STORE_SLOTS + 8 };
enum { STORE_NAMES_MAX = STORE_ROUTES_MAX };

/* --- the tables of LMDB ------------------------------------------------- */

struct store_dbis {
    MDB_dbi meta, due, order, dlq, dlqpay, bloom;
    MDB_dbi rec[STORE_SLOTS], idx[STORE_SLOTS], rsp[STORE_SLOTS];
    MDB_dbi audit[STORE_SLOTS], pay[STORE_SLOTS];
};

enum gen_state { GEN_OPEN = 1, GEN_SEALING, GEN_SEALED };

/* Records from first_seq up to the next generation's. */
struct generation {
    uint32_t number; /* its slot is number % STORE_SLOTS */
    enum gen_state state;
    uint64_t first_seq;
    uint64_t ids; /* once it is closed */
    int64_t opened_ms, closed_ms;
    uint32_t bloom_blocks; /* once it is closed */
};

/* Envelopes of events that first came while it was the newest. */
struct pay_slice {
    uint32_t number;
    uint64_t first_seq;
    int64_t opened_ms, closed_ms;
};

/* --- memory that follows the transaction -------------------------------- */

/* Where the background work stands; lost in a crash and begun again. */
struct store_work {
    size_t seal_slot;      /* of the closed generation's table */
    uint32_t bloom_chunk;  /* next chunk of its filter to write */
    uint64_t carry_seq;    /* next record of the oldest generation */
    bool slice_going;      /* the oldest slice is being dropped */
    uint8_t slice_due[19]; /* the due entry to look at next */
};

struct store_state {
    uint64_t next_seq, next_audit, commit;
    uint32_t incarnation, epoch;
    int64_t clock_mark_ms, expiry_mark_ms, forgotten_until_ms;
    int64_t copied_wall_ms;      /* of a backup; 0: it is none */
    int64_t last_backup_wall_ms; /* 0: none was made */
    bool loading;                /* a load into it has not ended */
    /* Live ones are numbered without a gap; the last is the open one. */
    uint32_t first_gen, last_gen;
    uint32_t first_slice, last_slice;
    struct generation gens[STORE_SLOTS];
    struct pay_slice slices[STORE_SLOTS];
    struct store_work work;
};

/* What else is known of the generation in a slot. */
struct gen_memory {
    uint32_t number;                   /* of which one; 0: nothing here */
    struct id_table *table;            /* open and sealing ones */
    struct bloom *bloom;               /* sealing and sealed ones */
    uint32_t (*counts)[RECORD_STATES]; /* by route */
    bool *noted; /* by route: the journal has the counters */
};

/* The earliest entry of the due index of one route and state. */
struct first_due {
    int64_t ms; /* RECORD_NEVER: there is none */
    bool stale; /* look it up before the commit */
};

struct route_values {
    struct first_due first_due[RECORD_STATES]; /* of unsettled states */
    bool paused;
    bool unreachable;
    uint64_t dead_bytes;
    uint32_t dead_holders; /* dead letters that hold an ordering key */
};

struct store_route {
    char *name;
    struct store_retention retention;
    bool configured; /* somebody set the retention */
    struct route_values now, saved;
    bool touched; /* in this transaction: `saved` holds what it was */
};

struct id_change {
    struct identity identity;
    uint32_t slot;
    uint64_t before; /* 0: was not there */
};

struct count_change {
    uint32_t slot;
    uint16_t route;
    uint32_t before[RECORD_STATES];
};

struct journal {
    struct id_change *ids;
    size_t n_ids, cap_ids;
    struct count_change *counts;
    size_t n_counts, cap_counts;
    uint16_t touched_routes[STORE_ROUTES_MAX];
    size_t n_touched;
    uint32_t new_ids;
    bool wrote;        /* anything at all */
    bool gens_changed; /* memory of generations must follow */
    bool no_room;      /* the map or the disk was full */
};

struct store_clock {
    int64_t base_ms, base_boot_ms; /* store time at that boot time */
    int64_t allowance_ms;          /* how far it may follow the wall now */
    int64_t agreed_boot_ms;        /* since when both agree */
    bool agreed, frozen;
    _Atomic int64_t expiry_ms; /* the time by which things expire */
};

struct store_space {
    int64_t looked_boot_ms;
    int64_t refused_boot_ms;
    bool looked, quota_spent, disk_full, refused;
    uint64_t bytes;
    uint64_t looked_used_bytes; /* of data.mdb, at that look */
    uint64_t allocated; /* of data.mdb, from its start; see keep_headroom */
};

struct store {
    char *path;
    struct store_options options;
    int dir_fd, lock_fd;
    MDB_env *env;
    MDB_txn *txn;
    struct store_dbis db;
    uint8_t uuid[16], hash_key[16];
    struct store_state state, saved;
    struct gen_memory memory[STORE_SLOTS];
    struct journal journal;
    struct store_clock clock;
    struct store_space space;
    struct store_route routes[STORE_ROUTES_MAX];
    char *namespaces[STORE_NAMES_MAX];
    char *streams[STORE_NAMES_MAX]; /* from 1 */
    uint16_t n_routes, n_namespaces;
    uint16_t n_streams;            /* the next number */
    uint32_t format;               /* as the store says */
    int64_t created_ms;            /* likewise */
    _Atomic int64_t keep_since_ms; /* see store_keep_since; listings read it */
    bool told_kept;  /* the log knows that it keeps a generation */
    char *open_load; /* name of the load that had not ended; NULL: none */
};

static inline uint32_t slot_of(uint32_t number)
{
    return number % STORE_SLOTS;
}

static inline struct generation *gen_at(struct store *store, uint32_t number)
{
    return &store->state.gens[slot_of(number)];
}

static inline struct generation *gen_current(struct store *store)
{
    return gen_at(store, store->state.last_gen);
}

static inline struct pay_slice *slice_at(struct store *store, uint32_t number)
{
    return &store->state.slices[slot_of(number)];
}

/* --- store_open.c ------------------------------------------------------- */

/* Lock, file system, version gate, env and tables, format row: all but the
 * content. What store_verify begins with too. */
bool store_open_files(struct store **out, const struct store_options *options,
                      struct err *err) MUST_CHECK;

/* --- store_files.c ------------------------------------------------------ */

/* Opens the directory and takes the lock. */
bool store_files_lock(struct store *store, struct err *err) MUST_CHECK;
/* Refuses network and user-space file systems. */
bool store_files_check_system(struct store *store, struct err *err) MUST_CHECK;
/* Builds an empty store under new/ and renames it into place. */
bool store_files_create(struct store *store, struct err *err) MUST_CHECK;
/* The name of the data file is on the disk when it returns. */
bool store_files_sync_directory(const struct store *store,
                                struct err *err) MUST_CHECK;
/* There is a data file. */
bool store_files_exist(const struct store *store);
/* *env is to be closed also when it fails. */
bool store_files_open_env(struct store *store, const char *path, MDB_env **env,
                          struct err *err) MUST_CHECK;
/* Only the table of the format row: that of a newer format may be all that
 * is known of its layout. */
bool store_files_open_meta(MDB_env *env, MDB_dbi *out,
                           struct err *err) MUST_CHECK;
/* All tables; `flags` is MDB_CREATE when the store is made. */
bool store_files_open_tables(MDB_env *env, unsigned flags,
                             struct store_dbis *out,
                             struct err *err) MUST_CHECK;
/* LMDB leaves the data file open across exec: a handler would inherit it. */
bool store_files_close_on_exec(MDB_env *env, struct err *err) MUST_CHECK;
/* The folder that `path` stands in. */
bool store_files_sync_parent(const char *path, struct err *err) MUST_CHECK;
/* Free on the disk, and how much of it is left alone. */
uint64_t store_files_free_bytes(const struct store *store);
uint64_t store_files_reserve_bytes(const struct store *store);
/* Allocates the first `bytes` of data.mdb, holes and what lies behind its end
 * included; its size stays. */
bool store_files_allocate(const struct store *store, uint64_t bytes);

/* --- store_size.c ------------------------------------------------------- */

/* The file has all pages that are in use. */
bool store_size_check(struct store *store, struct err *err) MUST_CHECK;
/* After a commit: it is as long as LMDB counts. */
void store_size_keep(struct store *store);

/* --- store_db.c: LMDB calls with our errors ----------------------------- */

/* The error of an LMDB return code; false always. */
bool store_db_fail(struct store *store, int rc, const char *what,
                   struct err *err);

/* The row under `key`, as it stands. */
enum store_found store_db_get(MDB_txn *txn, MDB_dbi dbi, struct slice key,
                              struct slice *value, struct err *err) MUST_CHECK;

/* Sealed rows: the CRC-32C of key and payload stands before the payload. */
enum store_found store_db_get_sealed(MDB_txn *txn, MDB_dbi dbi,
                                     struct slice key, struct slice *payload,
                                     struct err *err) MUST_CHECK;
/* False when the CRC does not fit. */
bool store_db_unseal(struct slice key, struct slice value,
                     struct slice *payload);

/* Writes a row as it is; for rows that bring their own CRC. */
bool store_db_put(struct store *store, MDB_dbi dbi, struct slice key,
                  struct slice value, struct err *err) MUST_CHECK;
/* The same for a row that most likely comes last. */
bool store_db_append(struct store *store, MDB_dbi dbi, struct slice key,
                     struct slice value, struct err *err) MUST_CHECK;
/* Writes a sealed row. */
bool store_db_put_sealed(struct store *store, MDB_dbi dbi, struct slice key,
                         struct slice payload, struct err *err) MUST_CHECK;
/* Absent is an answer, no error. */
enum store_found store_db_delete(struct store *store, MDB_dbi dbi,
                                 struct slice key, struct err *err) MUST_CHECK;
/* It must be there; else the table is damaged. */
bool store_db_remove(struct store *store, MDB_dbi dbi, struct slice key,
                     const char *what, struct err *err) MUST_CHECK;
/* All rows of a table. */
bool store_db_empty(struct store *store, MDB_dbi dbi,
                    struct err *err) MUST_CHECK;

/* The first row at or behind `key`. */
enum store_found store_db_seek(MDB_txn *txn, MDB_dbi dbi, struct slice *key,
                               struct slice *value, struct err *err) MUST_CHECK;
/* The step of a cursor (MDB_FIRST, MDB_NEXT, MDB_SET_RANGE, …). */
enum store_found store_db_step(MDB_cursor *cursor, MDB_cursor_op op,
                               struct slice *key, struct slice *value,
                               struct err *err) MUST_CHECK;

/* --- keys --------------------------------------------------------------- */

/* The bytes of a key; numbers in it are big-endian, so that they sort. */
struct store_key {
    uint8_t bytes[24];
    uint8_t len;
};

static inline struct slice key_slice(const struct store_key *key)
{
    return (struct slice){(const char *)key->bytes, key->len};
}

static inline struct store_key key_u64(uint64_t value)
{
    struct store_key key = {.len = 8};

    bytes_put_be64(key.bytes, value);
    return key;
}

/* Two numbers in a row, as most indexes are keyed. */
static inline struct store_key key_u64_u64(uint64_t a, uint64_t b)
{
    struct store_key key = {.len = 16};

    bytes_put_be64(key.bytes, a);
    bytes_put_be64(key.bytes + 8, b);
    return key;
}

static inline struct store_key key_u16_u64(uint16_t a, uint64_t b)
{
    struct store_key key = {.len = 10};

    bytes_put_be16(key.bytes, a);
    bytes_put_be64(key.bytes + 2, b);
    return key;
}

static inline struct store_key key_u32_u32(uint32_t a, uint32_t b)
{
    struct store_key key = {.len = 8};

    bytes_put_be32(key.bytes, a);
    bytes_put_be32(key.bytes + 4, b);
    return key;
}

/* --- store_meta.c ------------------------------------------------------- */

/* The first rows of a new store. */
bool store_meta_write_format(struct store *store, struct err *err) MUST_CHECK;
/* Format version, store id and hash key; refuses a newer format. */
bool store_meta_read_format(struct store *store, struct err *err) MUST_CHECK;
/* Everything else into memory, but for ids and filters. */
bool store_meta_load(struct store *store, struct err *err) MUST_CHECK;
/* One row each, as memory has it now. */
bool store_meta_save_state(struct store *store, struct err *err) MUST_CHECK;
bool store_meta_save_gen(struct store *store, uint32_t number,
                         struct err *err) MUST_CHECK;
bool store_meta_drop_gen(struct store *store, uint32_t number,
                         struct err *err) MUST_CHECK;
bool store_meta_save_slice(struct store *store, uint32_t number,
                           struct err *err) MUST_CHECK;
bool store_meta_drop_slice(struct store *store, uint32_t number,
                           struct err *err) MUST_CHECK;
bool store_meta_save_route(struct store *store, uint16_t route,
                           struct err *err) MUST_CHECK;
/* The format row says STORE_FORMAT from here on. */
bool store_meta_raise_format(struct store *store, struct err *err) MUST_CHECK;
/* `letter` is 'r' for a route, 'n' for a namespace, 't' for a stream. */
bool store_meta_save_name(struct store *store, char letter, uint16_t number,
                          struct slice name, struct err *err) MUST_CHECK;
bool store_meta_save_counts(struct store *store, uint32_t slot, uint16_t route,
                            struct err *err) MUST_CHECK;
/* The generations as a read transaction of any thread sees them. */
struct gen_range {
    uint32_t first, last;
    uint64_t first_seq[STORE_SLOTS];
};
bool store_meta_read_ranges(struct store *store, MDB_txn *txn,
                            struct gen_range *out, struct err *err) MUST_CHECK;

/* --- store_journal.c ---------------------------------------------------- */

/* `before`: what the table said of the identity; 0: nothing. */
void store_journal_id(struct store *store, uint32_t slot,
                      const struct identity *identity, uint64_t before);
/* Before the counters of (slot, route) change. */
void store_journal_counts(struct store *store, uint32_t slot, uint16_t route);
/* Before `now` of the route changes. */
struct route_values *store_journal_route(struct store *store, uint16_t number);
/* Writes what the journal says has changed. */
bool store_journal_flush(struct store *store, struct err *err) MUST_CHECK;
/* After the transaction: it was committed; it was not. */
void store_journal_keep(struct store *store);
void store_journal_undo(struct store *store);
void store_journal_free(struct store *store);

/* --- store_ids.c -------------------------------------------------------- */

/* The newest sequence number of an identity. */
enum store_found store_ids_find(struct store *store,
                                const struct identity *identity, uint64_t *seq,
                                struct err *err) MUST_CHECK;
/* In the table of the open generation. */
void store_ids_set(struct store *store, const struct identity *identity,
                   uint64_t seq);
/* Fills the table of a generation from its records. */
bool store_ids_fill(struct store *store, uint32_t number,
                    struct err *err) MUST_CHECK;
/* The filter of a sealed one, made anew where it is damaged. */
bool store_ids_load_bloom(struct store *store, uint32_t number,
                          struct err *err) MUST_CHECK;

/* --- store_gen.c -------------------------------------------------------- */

/* The number of the generation that `seq` belongs to. */
uint32_t store_gen_of(const struct store *store, uint64_t seq);
/* Memory objects as the state of each slot wants them. */
void store_gen_follow(struct store *store);
/* Leaves it empty. */
void store_gen_free_memory(struct gen_memory *memory);
/* Ids in all generations. */
uint64_t store_gen_remembered(const struct store *store);
/* One more (by 1) or less (by -1) of the record's route and state. */
void store_gen_count(struct store *store, uint64_t seq,
                     const struct record *record, int by);
/* Counters and ids of the open generation agree. */
bool store_gen_is_consistent(const struct store *store);
/* Starts the sealing again that a crash cut short. */
bool store_gen_restart_sealing(struct store *store, struct err *err) MUST_CHECK;
/* One step each; *more when another is waiting. */
bool store_gen_seal_step(struct store *store, bool *more,
                         struct err *err) MUST_CHECK;
/* How many rows a step of background work may look at. */
uint32_t store_gen_step_items(const struct store *store);

/* --- store_forget.c ----------------------------------------------------- */

/* One step of forgetting the oldest generation. */
bool store_forget_step(struct store *store, bool *more,
                       struct err *err) MUST_CHECK;

/* --- store_record.c ----------------------------------------------------- */

/* Where a record stands, for a transaction of any thread. */
struct record_place {
    MDB_txn *txn;
    MDB_dbi dbi;
    uint64_t seq;
};

/* Fills `entry` from the row that stands there. */
bool store_record_read(struct store *store, const struct record_place *place,
                       struct slice row, struct store_entry *entry,
                       struct err *err) MUST_CHECK;
/* Gets the row, which must be there, and reads it. */
bool store_record_load(struct store *store, const struct record_place *place,
                       struct store_entry *entry, struct err *err) MUST_CHECK;
/* The same by its number in the open transaction. */
bool store_record_must_load(struct store *store, uint64_t seq,
                            struct store_entry *entry,
                            struct err *err) MUST_CHECK;
/* Writes the record anew at the end of the open generation, unchanged. */
bool store_record_carry(struct store *store, struct store_entry *entry,
                        struct err *err) MUST_CHECK;
/* Settled, no dead letter, and its last move is `keep_ms` ago. */
bool store_record_is_older(const struct store *store,
                           const struct record *record, int64_t keep_ms);
/* By what its route and the store remember it reads as absent. */
bool store_record_is_hidden(const struct store *store,
                            const struct record *record);

/* --- store_index.c: due and order --------------------------------------- */

/* What store_put or a carry changes: entry->stored at `old_seq` (0: new)
 * becomes entry->record at entry->seq. */
bool store_index_update(struct store *store, const struct store_entry *entry,
                        uint64_t old_seq, struct err *err) MUST_CHECK;
/* The earliest due times of a route that has no events. */
void store_index_start_route(struct route_values *route);
/* Looks up which of the route's earliest due times are stale, or all. */
bool store_index_refresh_due(struct store *store, uint16_t route, bool all,
                             struct err *err) MUST_CHECK;
/* Keys of `due`: made, and taken apart. */
enum { STORE_DUE_KEY_SIZE = 19 };
struct store_key store_index_key(uint16_t route, enum record_state state,
                                 int64_t due_ms, uint64_t seq);
enum record_state store_index_state_of(struct slice key);
int64_t store_index_due_of(struct slice key);
uint64_t store_index_seq_of(struct slice key);

/* --- store_dlq.c -------------------------------------------------------- */

/* A row of `dlq`; the slices borrow. */
struct store_dead {
    uint64_t origin;
    uint64_t envelope_bytes;
    struct slice code, text;
};

/* False when it is damaged. */
bool store_dlq_decode(struct slice key, struct slice value,
                      struct store_dead *out);
/* What it counts against the quota of its route. */
uint64_t store_dlq_cost(const struct store_dead *row);
/* The same change as store_index_update; the envelope moves along. */
bool store_dlq_update(struct store *store, struct store_entry *entry,
                      uint64_t old_seq, struct err *err) MUST_CHECK;
/* Code and text of a dead record, whose row must be there. */
bool store_dlq_load(struct store *store, MDB_txn *txn,
                    struct store_entry *entry, struct err *err) MUST_CHECK;
/* The envelope of a dead record. */
bool store_dlq_put_envelope(struct store *store,
                            const struct store_entry *entry, struct slice flat,
                            struct err *err) MUST_CHECK;

/* --- store_pay.c -------------------------------------------------------- */

/* The envelope in whichever slice has it. */
enum store_found store_pay_find(struct store *store, uint64_t origin,
                                struct slice *flat, struct err *err) MUST_CHECK;
/* Into the newest slice; an older copy goes. */
bool store_pay_put(struct store *store, uint64_t origin, struct slice flat,
                   struct err *err) MUST_CHECK;
/* Out of whichever slice has it; none is fine. */
bool store_pay_erase(struct store *store, uint64_t origin,
                     struct err *err) MUST_CHECK;
/* What a change of its record means for an envelope. */
bool store_pay_follow(struct store *store, const struct store_entry *entry,
                      struct err *err) MUST_CHECK;
/* One step of cutting and dropping slices; *more when another waits. */
bool store_pay_step(struct store *store, bool *more,
                    struct err *err) MUST_CHECK;

/* --- store_result.c ----------------------------------------------------- */

/* From one number of a record to its next; none is fine. */
bool store_result_move(struct store *store, uint64_t from, uint64_t to,
                       struct err *err) MUST_CHECK;
/* None is fine. */
bool store_result_erase(struct store *store, uint64_t seq,
                        struct err *err) MUST_CHECK;

/* --- store_audit.c ------------------------------------------------------ */

/* Brings the rows of an event along to the open generation. */
bool store_audit_carry(struct store *store, const struct store_entry *entry,
                       uint64_t old_seq, struct err *err) MUST_CHECK;
/* False when it is damaged. */
bool store_audit_decode(struct slice key, struct slice value,
                        struct store_audit *out);

/* --- store_backup.c ----------------------------------------------------- */

/* Copy mark and time of the last backup; in the open transaction. */
bool store_backup_load(struct store *store, struct err *err) MUST_CHECK;
/* Refuses to write to a backup, and to restore what is none. */
bool store_backup_may_open(const struct store *store,
                           struct err *err) MUST_CHECK;

/* --- store_dump.c ------------------------------------------------------- */

/* Which load has not ended; in the open transaction. */
bool store_load_read(struct store *store, struct err *err) MUST_CHECK;
/* Refuse a store into which a load did not end: to all but that load, and to
 * be backed up, which would pass it on as a whole one. */
bool store_load_may_open(const struct store *store, struct err *err) MUST_CHECK;
bool store_load_may_copy(const struct store *store, struct err *err) MUST_CHECK;

/* --- store_pump.c ------------------------------------------------------- */

/* LMDB's compacting copy of one snapshot, written to `fd`. `is_wanted` is
 * asked on the calling thread, with each MiB; NULL: it is. */
struct store_pump {
    MDB_env *env;
    int fd;
    bool (*is_wanted)(void *ctx);
    void *ctx;
    bool given_up; /* out: it was not wanted any more */
};

/* Any thread. 0, an errno, or a code of LMDB. */
int store_pump_run(struct store_pump *pump);

/* --- store_clock.c ------------------------------------------------------ */

/* From the stored mark, which is loaded. */
void store_clock_start(struct store *store);
/* The time by which records expire; stands still when the clock is in
 * doubt. Any thread. */
int64_t store_clock_expiry_ms(const struct store *store);

/* --- store_space.c ------------------------------------------------------ */

/* Pages of one table, in bytes. */
uint64_t store_space_of(MDB_txn *txn, MDB_dbi dbi);
/* A write found no room: that counts as a look. */
void store_space_refused(struct store *store);
/* What was found at the last looks. */
bool store_space_is_short(struct store *store);

#endif
