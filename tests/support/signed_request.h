/* SPDX-License-Identifier: MIT */
/*
 * HTTP deliveries and verifiers for tests of values and signatures, and the
 * published examples that several of them use.
 */
#ifndef ONCED_TEST_SIGNED_REQUEST_H
#define ONCED_TEST_SIGNED_REQUEST_H

#include <criterion/criterion.h>

#include "base/bytes.h"
#include "core/envelope.h"
#include "source/verify.h"

/* The second at which most of the published vectors were signed. */
enum { SIGNED_S = 1614265330 };
#define SIGNED_MS (INT64_C(1000) * SIGNED_S)

#define STANDARD_KEY "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define STANDARD_ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define STANDARD_BODY "{\"test\": 2432232314}"
#define STANDARD_SIGNATURE "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define PUBLIC_KEY "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
#define PRIVATE_KEY                                                            \
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSK" \
    "Jp4AJ6p9lMicMFs6Kvg=="
#define PAIR_SIGNATURE                                                         \
    "hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo" \
    "3mNl8EM+m7TBAg=="
#define DECOY "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="

#define STRIPE_BODY                                                            \
    "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}"
#define STRIPE_V1                                                              \
    "af4ead0627a34a8cca29808e8de9ada8e41a92e6237c63cef6eacf51d36cca34"

#define GITHUB_SECRET "It's a Secret to Everybody"
#define GITHUB_SIGNATURE                                                       \
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

struct signed_request {
    struct buf flat;
    struct envelope envelope;
};

static inline void request_start(struct signed_request *request,
                                 struct slice body)
{
    *request = (struct signed_request){
        .envelope = {.kind = ENVELOPE_HTTP,
                     .method = SLICE("POST"),
                     .path = SLICE("/hook"),
                     .body = body,
                     .has_body = true},
    };
}

static inline void request_header(struct signed_request *request,
                                  const char *name, struct slice value)
{
    headers_add(&request->flat, slice_of(name), value);
    request->envelope.headers.flat = buf_slice(&request->flat);
    request->envelope.headers.count++;
}

static inline void request_header_text(struct signed_request *request,
                                       const char *name, const char *value)
{
    request_header(request, name, slice_of(value));
}

static inline void request_query(struct signed_request *request,
                                 const char *query)
{
    request->envelope.query = slice_of(query);
    request->envelope.has_query = query != NULL;
}

static inline void request_end(struct signed_request *request)
{
    buf_free(&request->flat);
}

static inline struct verifier *open_verifier(struct verify_options options,
                                             const char *secret)
{
    struct slice secrets[1] = {slice_of(secret)};
    struct verifier *verifier;
    struct err err = {0};

    options.secrets = secrets;
    options.n_secrets = 1;
    cr_assert(verifier_new(&verifier, &options, &err), "%s: %s", options.scheme,
              err.text);
    return verifier;
}

static inline struct verifier *open_preset(const char *scheme,
                                           const char *secret)
{
    return open_verifier(
        (struct verify_options){.scheme = scheme, .tolerance_ms = -1}, secret);
}

/* The status of a request with one header, at SIGNED_MS. */
static inline enum verify_status check_one(const struct verifier *verifier,
                                           const char *name, const char *value,
                                           struct slice body)
{
    struct signed_request request;
    enum verify_status status;

    request_start(&request, body);
    request_header_text(&request, name, value);
    status = verifier_check(verifier, &request.envelope, SIGNED_MS);
    request_end(&request);
    return status;
}

#endif
