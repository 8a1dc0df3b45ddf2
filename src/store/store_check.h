/* SPDX-License-Identifier: MIT */
/*
 * The content of a store, checked against itself: every CRC, the indexes
 * against the records both ways, and what is counted against a recount.
 * For store_verify, which runs it in a process of its own.
 */
#ifndef ONCED_STORE_STORE_CHECK_H
#define ONCED_STORE_STORE_CHECK_H

#include "store/record_codec.h"
#include "store/store_internal.h"

struct check {
    struct store *store;
    struct store_report *report;
    const char **stage;         /* what is being read, for a crash */
    uint32_t generation;        /* of the table that is being read */
    uint64_t n_ids;             /* in the index that is being read */
    uint64_t n_open, n_ordered; /* records seen that an index must have */
    uint64_t n_due, n_order, n_buried, n_buried_bodies;
    uint64_t dead_bytes[STORE_ROUTES_MAX];
    uint32_t dead_holders[STORE_ROUTES_MAX];
    uint32_t counts[STORE_SLOTS][STORE_ROUTES_MAX][RECORD_STATES];
};

/* In the read transaction of store->txn, on a store whose content was
 * loaded. Findings go into the report. */
void store_check_all(struct check *check);

/* --- store_check_meta.c ------------------------------------------------- */

/* A row of `meta`: names in sequence, low-waters of known streams, and an
 * outbox of known events. */
void store_check_meta(struct check *check, struct slice key,
                      struct slice value);
/* A store that knows streams is refused to programs that do not. */
void store_check_format(struct check *check);

/* --- store_check.c ------------------------------------------------------ */

/* The record at `seq`; false where there is none, or a damaged one. */
bool store_check_load(struct check *check, uint64_t seq,
                      struct record_row *row);

void store_check_bad(struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
