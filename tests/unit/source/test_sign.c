/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define STANDARD_SECRET "whsec_" STANDARD_KEY

/* The headers one a line, for comparison. */
static void list(struct slice flat, struct buf *out)
{
    struct headers headers = {flat, 0};
    struct header header;
    size_t at = 0;

    buf_clear(out);
    while (headers_next(&headers, &at, &header)) {
        buf_add_slice(out, header.name);
        buf_add_str(out, ": ");
        buf_add_slice(out, header.value);
        buf_add_byte(out, '\n');
    }
}

static void expect_headers(const char *scheme, const char *secret,
                           const char *id, const char *body,
                           const char *expected)
{
    struct verifier *verifier =
        open_verifier((struct verify_options){.scheme = scheme}, secret);
    struct buf flat = BUF_INIT;
    struct buf text = BUF_INIT;
    struct err err = {0};

    cr_expect(verifier_sign(verifier, slice_of(id), SIGNED_MS + 999,
                            slice_of(body), &flat, &err),
              "%s: %s", scheme, err.text);
    list(buf_slice(&flat), &text);
    cr_expect_str_eq(buf_cstr(&text), expected);
    buf_free(&flat);
    buf_free(&text);
    verifier_free(verifier);
}

/* The right values are the published vectors'. */
Test(sign, senders_headers_are_made_as_the_vectors_have_them)
{
    expect_headers("standard-webhooks", STANDARD_SECRET, STANDARD_ID,
                   STANDARD_BODY,
                   "webhook-id: " STANDARD_ID "\n"
                   "webhook-timestamp: 1614265330\n"
                   "webhook-signature: v1," STANDARD_SIGNATURE "\n");
    expect_headers("standard-webhooks", PRIVATE_KEY, STANDARD_ID, STANDARD_BODY,
                   "webhook-id: " STANDARD_ID "\n"
                   "webhook-timestamp: 1614265330\n"
                   "webhook-signature: v1a," PAIR_SIGNATURE "\n");
    expect_headers("svix", STANDARD_SECRET, STANDARD_ID, STANDARD_BODY,
                   "svix-id: " STANDARD_ID "\n"
                   "svix-timestamp: 1614265330\n"
                   "svix-signature: v1," STANDARD_SIGNATURE "\n");
    expect_headers(
        "stripe", "whsec_test_secret", "ignored",
        "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}",
        "Stripe-Signature: t=1614265330,v1=af4ead0627a34a8cca29808e8de9ada8e41"
        "a92e6237c63cef6eacf51d36cca34\n");
    expect_headers("github", "It's a Secret to Everybody", "72d3162e",
                   "Hello, World!",
                   "X-GitHub-Delivery: 72d3162e\n"
                   "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8"
                   "a37570b6d7586c22c46f4379c8b043e17\n");
    expect_headers("github", "It's a Secret to Everybody", "", "Hello, World!",
                   "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8"
                   "a37570b6d7586c22c46f4379c8b043e17\n");
    expect_headers("shopify", "Convoy", "w1", "Test Payload Body",
                   "X-Shopify-Webhook-Id: w1\n"
                   "X-Shopify-Hmac-Sha256: "
                   "16FUVH58NeMcTIIOICN2UJOcPTTa4TbjCndXymGrtM8=\n");
}

static const char *const pieces[] = {"timestamp", "text:.", "header:X-Id",
                                     "json:/a", "body"};
static const char *const url_pieces[] = {"url", "form-sorted"};

static const struct {
    struct verify_options options;
    const char *secret, *body;
} schemes[] = {
    {{.scheme = "standard-webhooks"}, STANDARD_SECRET, STANDARD_BODY},
    {{.scheme = "standard-webhooks"}, PRIVATE_KEY, STANDARD_BODY},
    {{.scheme = "svix"}, STANDARD_SECRET, ""},
    {{.scheme = "stripe"}, "whsec_x", "{}"},
    {{.scheme = "github"}, "s", "payload=1"},
    {{.scheme = "slack"}, "s", "\x01\xff\r\n"},
    {{.scheme = "shopify"}, "s", "{}"},
    {{.scheme = "hmac", .header = "X-S"}, "s", "x"},
    {{.scheme = "hmac",
      .algorithm = "sha512",
      .header = "X-S",
      .encoding = "base64",
      .prefix = "v9=",
      .key_encoding = "hex",
      .timestamp_header = "X-T",
      .timestamp_unit = "ms",
      .signed_pieces = pieces,
      .n_signed = COUNT(pieces)},
     "00FF",
     "{\"a\":1}"},
    {{.scheme = "hmac",
      .algorithm = "sha1",
      .header = "X-S",
      .signed_pieces = url_pieces,
      .n_signed = COUNT(url_pieces),
      .public_url = "https://a.example/hook"},
     "s",
     "b=2&a=1"},
};

static void expect_round_trip(size_t i)
{
    struct verifier *verifier =
        open_verifier(schemes[i].options, schemes[i].secret);
    struct signed_request request;
    struct buf changed = BUF_INIT;
    struct buf text = BUF_INIT;
    struct err err = {0};

    request_start(&request, slice_of(schemes[i].body));
    cr_assert(verifier_sign(verifier, SLICE("id_1"), SIGNED_MS,
                            request.envelope.body, &request.flat, &err),
              "%zu: %s", i, err.text);
    list(buf_slice(&request.flat), &text);
    for (size_t k = 0; k < text.len; k++) {
        request.envelope.headers.count += text.data[k] == '\n';
    }
    request.envelope.headers.flat = buf_slice(&request.flat);
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                 VERIFY_OK, "%zu", i);
    buf_add_slice(&changed, request.envelope.body);
    buf_add_str(&changed, "x");
    request.envelope.body = buf_slice(&changed);
    cr_expect_neq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                  VERIFY_OK, "%zu", i);
    buf_free(&changed);
    buf_free(&text);
    request_end(&request);
    verifier_free(verifier);
}

Test(sign, what_is_signed_is_verified)
{
    const char *const *names = verify_scheme_names();

    for (size_t i = 0; i < COUNT(schemes); i++) {
        expect_round_trip(i);
    }
    for (; *names != NULL; names++) {
        bool is_tried = false;

        for (size_t i = 0; i < COUNT(schemes); i++) {
            is_tried |= strcmp(*names, schemes[i].options.scheme) == 0;
        }
        cr_expect(is_tried, "%s has no round trip", *names);
    }
}

Test(sign, the_first_secret_signs)
{
    const struct slice secrets[] = {SLICE("new"), SLICE("old")};
    const struct verify_options both = {
        .scheme = "github", .secrets = secrets, .n_secrets = 2};
    const struct verify_options first = {
        .scheme = "github", .secrets = secrets, .n_secrets = 1};
    struct buf a = BUF_INIT;
    struct buf b = BUF_INIT;
    struct verifier *verifier;

    cr_assert(verifier_new(&verifier, &both, NULL));
    cr_assert(verifier_sign(verifier, SLICE("i"), 0, SLICE("body"), &a, NULL));
    verifier_free(verifier);
    cr_assert(verifier_new(&verifier, &first, NULL));
    cr_assert(verifier_sign(verifier, SLICE("i"), 0, SLICE("body"), &b, NULL));
    verifier_free(verifier);
    cr_expect(slice_eq(buf_slice(&a), buf_slice(&b)));
    buf_free(&a);
    buf_free(&b);
}

static void expect_refused(struct verify_options options, const char *secret,
                           const char *id, const char *body, const char *part)
{
    struct verifier *verifier = open_verifier(options, secret);
    struct buf flat = BUF_INIT;
    struct err err = {0};

    buf_add_str(&flat, "kept");
    cr_expect_not(verifier_sign(verifier, slice_of(id), SIGNED_MS,
                                slice_of(body), &flat, &err));
    cr_expect_not_null(strstr(err.text, part), "%s", err.text);
    cr_expect_str_eq(buf_cstr(&flat), "kept");
    buf_free(&flat);
    verifier_free(verifier);
}

Test(sign, what_cannot_be_signed_is_refused)
{
    static const char *const query[] = {"query:a", "body"};
    const struct verify_options standard = {.scheme = "standard-webhooks"};
    const struct verify_options with_query = {.scheme = "hmac",
                                              .header = "X-S",
                                              .signed_pieces = query,
                                              .n_signed = COUNT(query)};
    const struct verify_options no_url = {.scheme = "hmac",
                                          .header = "X-S",
                                          .signed_pieces = url_pieces,
                                          .n_signed = COUNT(url_pieces)};
    struct verify_options form = no_url;

    form.public_url = "https://a.example/";
    expect_refused(standard, PUBLIC_KEY, "id", "x", "public key");
    expect_refused(standard, STANDARD_SECRET, "", "x", "is not given: the id");
    expect_refused(standard, STANDARD_SECRET, "a\r\nX: y", "x",
                   "control character");
    expect_refused(with_query, "s", "id", "x", "is not given");
    expect_refused(no_url, "s", "id", "a=1", "is not given");
    expect_refused(form, "s", "id", "a=%z", "not of the form");
}
