/* SPDX-License-Identifier: MIT */
/* Rows of a `rec` table: arbitrary bytes never crash the decoder, and what
 * decodes encodes to the same bytes. Most inputs get a CRC that fits, so that
 * what lies behind it is reached. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/record_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CRC_SIZE = 4 };

static void try_row(const uint8_t *bytes, size_t len, uint64_t seq)
{
    struct record_row row;
    uint8_t again[RECORD_CODEC_MAX];

    if (!record_codec_decode((struct slice){(const char *)bytes, len}, seq,
                             &row)) {
        return;
    }
    if (record_codec_encode(&row, seq, again) != len ||
        memcmp(again, bytes, len) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t copy[RECORD_CODEC_MAX + 8], key[8];
    uint64_t seq = 7;

    try_row(data, size, seq);
    if (size < CRC_SIZE || size > sizeof copy) {
        return 0;
    }
    memcpy(copy, data, size);
    bytes_put_be64(key, seq);
    bytes_put_be32(copy, hash_crc32c(hash_crc32c(0, key, sizeof key),
                                     copy + CRC_SIZE, size - CRC_SIZE));
    try_row(copy, size, seq);
    return 0;
}
