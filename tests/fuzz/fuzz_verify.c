/* SPDX-License-Identifier: MIT */
/*
 * Requests against every scheme. The keys are unknown to the fuzzer, so no
 * request of its making may be accepted; what is signed here must be; and
 * neither explaining nor evaluating an expression may go wrong.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/check.h"
#include "core/envelope.h"
#include "source/value.h"
#include "source/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { NOW_S = 1614265330, SECTIONS = 6 };
#define NOW_MS (INT64_C(1000) * NOW_S)

static const char *const pieces[] = {"timestamp", "text:.", "header:X-Id",
                                     "query:a",   "text::", "json:/a/b",
                                     "text:;",    "body"};
static const char *const url_pieces[] = {"url", "form-sorted"};

static const struct {
    struct verify_options options;
    struct slice secret;
} schemes[] = {
    {{.scheme = "standard-webhooks"},
     SLICE("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")},
    {{.scheme = "svix"},
     SLICE("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0"
           "dRqSKJp4AJ6p9lMicMFs6Kvg==")},
    {{.scheme = "stripe"}, SLICE("whsec_fuzz")},
    {{.scheme = "github"}, SLICE("fuzz")},
    {{.scheme = "slack"}, SLICE("fuzz")},
    {{.scheme = "shopify"}, SLICE("fuzz")},
    {{.scheme = "hmac",
      .algorithm = "sha512",
      .header = "X-S",
      .encoding = "base64",
      .timestamp_header = "X-T",
      .timestamp_unit = "ms",
      .signed_pieces = pieces,
      .n_signed = COUNT(pieces)},
     SLICE("fuzz")},
    {{.scheme = "hmac",
      .algorithm = "sha1",
      .header = "X-S",
      .signed_pieces = url_pieces,
      .n_signed = COUNT(url_pieces),
      .public_url = "https://a.example"},
     SLICE("fuzz")},
};

static struct verifier *verifiers[COUNT(schemes)];
static struct value value;

static void prepare(void)
{
    static const struct slice alternatives[] = {
        SLICE("json:/a/b"), SLICE("query:a"), SLICE("header:webhook-id"),
        SLICE("body:sha256")};

    for (size_t i = 0; i < COUNT(schemes); i++) {
        struct verify_options options = schemes[i].options;

        options.secrets = &schemes[i].secret;
        options.n_secrets = 1;
        options.tolerance_ms = -1;
        CHECK(verifier_new(&verifiers[i], &options, NULL));
    }
    for (size_t i = 0; i < COUNT(alternatives); i++) {
        CHECK(value_add_choice(&value, &alternatives[i], 1, NULL));
    }
    CHECK(value_add_choice(&value, alternatives, COUNT(alternatives), NULL));
}

/* The input is cut at 0x1e; the last section takes the rest. */
static void cut(struct slice input, struct slice sections[SECTIONS])
{
    for (size_t i = 0; i < SECTIONS; i++) {
        size_t end = i + 1 == SECTIONS ? input.len : slice_find(input, '\x1e');

        sections[i] = (struct slice){input.data, end};
        input = slice_from(input, end < input.len ? end + 1 : end);
    }
}

static void check_request(const struct verifier *verifier,
                          const struct slice sections[SECTIONS])
{
    const char *const *names = verifier_single_headers(verifier);
    struct envelope request = {.kind = ENVELOPE_HTTP,
                               .path = SLICE("/"),
                               .query = sections[4],
                               .has_query = true,
                               .body = sections[5],
                               .has_body = true};
    struct buf flat = BUF_INIT;
    struct buf out = BUF_INIT;
    const char *why;

    for (size_t i = 0; names[i] != NULL && i < 3; i++) {
        headers_add(&flat, slice_of(names[i]), sections[i]);
        request.headers.count++;
    }
    headers_add(&flat, SLICE("Content-Type"), sections[3]);
    request.headers.count++;
    request.headers.flat = buf_slice(&flat);
    CHECK(verifier_check(verifier, &request, NOW_MS) != VERIFY_OK);
    CHECK(verifier_check_untimed(verifier, &request) != VERIFY_OK);
    verifier_explain(verifier, &request, NOW_MS, &out);
    buf_clear(&out);
    (void)value_eval(&value, &request, &out, &why);
    (void)value_check_id(buf_slice(&out));
    buf_free(&flat);
    buf_free(&out);
}

static void check_round_trip(const struct verifier *verifier, struct slice id,
                             struct slice body)
{
    struct envelope request = {
        .kind = ENVELOPE_HTTP, .body = body, .has_body = true};
    struct buf flat = BUF_INIT;

    if (verifier_sign(verifier, id, NOW_MS, body, &flat, NULL)) {
        struct header header;

        request.headers.flat = buf_slice(&flat);
        for (size_t at = 0; headers_next(&request.headers, &at, &header);) {
            request.headers.count++;
        }
        CHECK(verifier_check(verifier, &request, NOW_MS) == VERIFY_OK);
    }
    buf_free(&flat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice sections[SECTIONS];
    const struct verifier *verifier;

    if (verifiers[0] == NULL) {
        prepare();
    }
    if (size == 0) {
        return 0;
    }
    verifier = verifiers[data[0] % COUNT(schemes)];
    cut((struct slice){(const char *)data + 1, size - 1}, sections);
    check_request(verifier, sections);
    check_round_trip(verifier, sections[2], sections[5]);
    return 0;
}
