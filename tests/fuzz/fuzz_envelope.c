/* SPDX-License-Identifier: MIT */
/* Any bytes may be opened; what opens is encoded to the same bytes again. */
#include "core/envelope.h"

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The count is that of the walk, and every header can be looked at. */
static void walk(const struct headers *headers)
{
    struct header header;
    uint32_t n = 0;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        CHECK(headers_count(headers, header.name) > 0);
        n++;
        if (n == 8) {
            return; /* counting is quadratic */
        }
    }
    CHECK(n == headers->count);
}

static void try_envelope(struct slice flat)
{
    struct envelope envelope;
    struct buf again = BUF_INIT;

    if (!envelope_open(flat, &envelope)) {
        return;
    }
    walk(&envelope.headers);
    envelope_encode(&envelope, &again);
    CHECK(slice_eq(flat, buf_slice(&again)));
    buf_free(&again);
}

static void try_result(struct slice flat)
{
    struct result result;
    struct buf again = BUF_INIT;

    if (!result_open(flat, &result)) {
        return;
    }
    walk(&result.headers);
    result_encode(&result, &again);
    CHECK(slice_eq(flat, buf_slice(&again)));
    buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice flat = {(const char *)data, size};

    try_envelope(flat);
    try_result(flat);
    return 0;
}
