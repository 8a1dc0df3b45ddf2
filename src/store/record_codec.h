/* SPDX-License-Identifier: MIT */
/*
 * The stored form of a record: one row of a `rec` table. Pure.
 *
 * The form is described byte by byte in docs/format.md. Rows of one event
 * keep their size from update to update (until a counter passes 255, or a
 * time lies 49 days behind the first), so that an update overwrites its row
 * in place. The CRC covers the row and its
 * sequence number: a row that stands at another key does not decode.
 */
#ifndef ONCED_STORE_RECORD_CODEC_H
#define ONCED_STORE_RECORD_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/record.h"
#include "store/store.h"

/* What a row says; tenant and id borrow. */
struct record_row {
    struct identity identity;
    uint64_t origin;
    uint16_t namespace;
    struct slice tenant, id;
    struct record record;
    struct store_position position; /* stream 0: it has none */
};

enum {
    RECORD_CODEC_FIXED = 49 + FINGERPRINT_SIZE + 16,
    RECORD_CODEC_MAX = RECORD_CODEC_FIXED + 32 + 8 + 6 + 10 + 14 +
                       STORE_TENANT_MAX + STORE_ID_MAX
};

/* Returns how many bytes of `out` it used. */
size_t record_codec_encode(const struct record_row *row, uint64_t seq,
                           uint8_t out[RECORD_CODEC_MAX]);

/* False when the bytes are not a row of a known version for `seq`. */
bool record_codec_decode(struct slice bytes, uint64_t seq,
                         struct record_row *out) MUST_CHECK;

/* The identity alone, for a start that reads very many rows: the CRC is
 * checked and the layout, what the other fields say is not. */
bool record_codec_identity(struct slice bytes, uint64_t seq,
                           struct identity *out) MUST_CHECK;

#endif
