/* SPDX-License-Identifier: MIT */
#include "source/event.h"

#include <string.h>

#include "base/hash.h"

enum { FINGERPRINT_VERSION = 1 };

void event_fingerprint(struct slice body, struct fingerprint *out)
{
    uint8_t digest[SHA256_SIZE];

    hash_sha256(body, digest);
    out->version = FINGERPRINT_VERSION;
    out->mode = FINGERPRINT_RAW;
    memcpy(out->digest, digest, sizeof out->digest);
}

uint64_t event_order_key(struct slice value)
{
    uint8_t digest[SHA256_SIZE];
    uint64_t key;

    hash_sha256(value, digest);
    key = bytes_get_be64(digest);
    return key == 0 ? 1 : key;
}

bool event_read_name(const struct value *value, const struct envelope *envelope,
                     struct buf *bytes, const char **why)
{
    size_t start = bytes->len;

    if (value_eval(value, envelope, bytes, why) == VALUE_OK) {
        *why = value_check_id(slice_from(buf_slice(bytes), start));
    }
    if (*why != NULL) {
        bytes->len = start;
    }
    return *why == NULL;
}

bool event_read_order(const struct value *value,
                      const struct envelope *envelope, struct buf *scratch,
                      uint64_t *key, const char **why)
{
    size_t start = scratch->len;
    enum value_status status = VALUE_ABSENT;

    *key = 0;
    if (value->n_choices > 0) {
        status = value_eval(value, envelope, scratch, why);
    }
    if (status == VALUE_OK) {
        *key = event_order_key(slice_from(buf_slice(scratch), start));
    }
    scratch->len = start;
    return status == VALUE_OK || status == VALUE_ABSENT;
}
