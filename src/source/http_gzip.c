/* SPDX-License-Identifier: MIT */
#include "source/http_gzip.h"

#include <limits.h>
#include <stdbool.h>
#include <zlib.h>

#include "base/check.h"

enum { GZIP_ONLY = 15 + 16, STEP_BYTES = 16 * 1024 };

/* One step into the buffer; false when its limit is passed. */
static bool step(z_stream *stream, uint64_t limit, struct buf *out, int *status)
{
    buf_reserve(out, STEP_BYTES);
    stream->next_out = (Bytef *)out->data + out->len;
    stream->avail_out = STEP_BYTES;
    *status = inflate(stream, Z_NO_FLUSH);
    out->len += STEP_BYTES - stream->avail_out;
    return out->len <= limit;
}

static enum http_gzip_status inflate_all(z_stream *stream, uint64_t limit,
                                         struct buf *out)
{
    for (;;) {
        int status;
        if (!step(stream, limit, out, &status)) {
            return HTTP_GZIP_TOO_LARGE;
        }
        if (status == Z_STREAM_END) {
            if (stream->avail_in == 0) {
                return HTTP_GZIP_OK;
            }
            status = inflateReset(stream);
        }
        /* Z_BUF_ERROR: it wants more than there is. */
        if (status != Z_OK) {
            return HTTP_GZIP_BAD;
        }
    }
}

enum http_gzip_status http_gzip_inflate(struct slice body, uint64_t max_bytes,
                                        struct buf *out)
{
    if (body.len == 0) {
        return HTTP_GZIP_BAD;
    }
    if (body.len > UINT_MAX) {
        return HTTP_GZIP_TOO_LARGE;
    }
    z_stream stream = {.next_in = (z_const Bytef *)body.data,
                       .avail_in = (uInt)body.len};
    CHECK(inflateInit2(&stream, GZIP_ONLY) == Z_OK);

    uint64_t by_ratio = (uint64_t)body.len * HTTP_GZIP_RATIO_MAX;
    uint64_t limit = out->len + (by_ratio < max_bytes ? by_ratio : max_bytes);
    enum http_gzip_status status = inflate_all(&stream, limit, out);
    (void)inflateEnd(&stream); /* only a damaged stream makes it fail */
    return status;
}
