/* SPDX-License-Identifier: MIT */
#include "handler/http_reply.h"

#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "handler/wire.h"
#include "onced/handler.h"

enum { RETRY_AFTER_MAX_S = 366 * 24 * 3600 };

/* True of this answer and this moment, or not for the caller: a repeat must
 * not get it, and the first caller gets what a repeat gets. */
static bool is_of_one_answer(struct slice name)
{
    static const char *const names[] = {
        "content-length",      "date",
        "set-cookie",          "set-cookie2",
        "x-request-id",        "request-id",
        "authentication-info", "idempotent-replayed",
        "idempotency-status",
    };
    static const char *const prefixes[] = {"onced-", "ratelimit", "x-ratelimit",
                                           "x-rate-limit"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        struct slice prefix = slice_of(prefixes[i]);

        if (name.len >= prefix.len &&
            slice_eq_nocase((struct slice){name.data, prefix.len}, prefix)) {
            return true;
        }
    }
    return wire_is_one_of(name, names, sizeof names / sizeof names[0]);
}

/* libcurl 7.88 leaves the line's end in a value that is empty. */
static struct slice value_of(const struct curl_header *header)
{
    return (struct slice){header->value, strcspn(header->value, "\r\n")};
}

/* Every header of the last answer, in order. */
static struct headers read_headers(CURL *easy, struct buf *flat)
{
    struct headers all = {.count = 0};
    struct curl_header *at = NULL;

    while ((at = curl_easy_nextheader(easy, CURLH_HEADER, -1, at)) != NULL) {
        headers_add(flat, slice_of(at->name), value_of(at));
        all.count++;
    }
    all.flat = buf_slice(flat);
    return all;
}

static struct headers kept_headers(const struct headers *all, struct buf *flat)
{
    struct headers kept = {.count = 0};
    struct header header;

    for (size_t at = 0; headers_next(all, &at, &header);) {
        if (wire_is_token(header.name) && wire_is_value(header.value) &&
            !wire_is_hop_by_hop(all, header.name) &&
            !is_of_one_answer(header.name)) {
            headers_add(flat, header.name, header.value);
            kept.count++;
        }
    }
    kept.flat = buf_slice(flat);
    return kept;
}

static void take_code(const struct headers *all, struct attempt *attempt)
{
    struct slice code;

    if (!headers_find(all, SLICE(ONCED_HEADER_CODE), &code) || code.len == 0 ||
        code.len >= sizeof attempt->code) {
        return;
    }
    for (size_t i = 0; i < code.len; i++) {
        if (code.data[i] < 0x20 || code.data[i] > 0x7e) {
            return;
        }
    }
    memcpy(attempt->code, code.data, code.len);
    attempt->code[code.len] = '\0';
}

static void take_retry_after(CURL *easy, struct attempt *attempt)
{
    curl_off_t seconds = 0;

    CHECK(curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK);
    if (seconds > 0) {
        attempt->retry_after_ms =
            (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
    }
}

bool http_reply_take(CURL *easy, struct slice body, bool body_omitted,
                     struct attempt *attempt)
{
    struct result result = {.body_omitted = body_omitted, .body = body};
    struct buf all_flat = BUF_INIT;
    struct buf kept_flat = BUF_INIT;
    struct headers all;
    long status = 0;

    CHECK(curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK);
    attempt->status = (int)status;
    if (status < 200 || status > 599) {
        return false;
    }
    all = read_headers(easy, &all_flat);
    take_code(&all, attempt);
    take_retry_after(easy, attempt);
    result.status = (uint16_t)status;
    result.headers = kept_headers(&all, &kept_flat);
    result_encode(&result, &attempt->result);
    buf_free(&all_flat);
    buf_free(&kept_flat);
    return true;
}
