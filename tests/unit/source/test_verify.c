/* SPDX-License-Identifier: MIT */
#include "source/verify.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A request as Standard Webhooks has it; a NULL header is left out. */
static enum verify_status check_standard(const struct verifier *verifier,
                                         const char *id, const char *time,
                                         const char *signature)
{
    struct signed_request request;
    enum verify_status status;

    request_start(&request, SLICE(STANDARD_BODY));
    if (id != NULL) {
        request_header_text(&request, "Webhook-Id", id);
    }
    if (time != NULL) {
        request_header_text(&request, "Webhook-Timestamp", time);
    }
    if (signature != NULL) {
        request_header_text(&request, "Webhook-Signature", signature);
    }
    status = verifier_check(verifier, &request.envelope, SIGNED_MS);
    request_end(&request);
    return status;
}

Test(verify, standard_webhooks_must_fail_and_must_pass)
{
    static const struct {
        const char *id, *time, *signature;
        enum verify_status status;
    } cases[] = {
        {STANDARD_ID, "1614265330", "v1," STANDARD_SIGNATURE, VERIFY_OK},
        {STANDARD_ID, "1614265330", "v1," DECOY " v1," STANDARD_SIGNATURE,
         VERIFY_OK},
        {STANDARD_ID, "1614265330", "v2," DECOY " v1," STANDARD_SIGNATURE,
         VERIFY_OK},
        {STANDARD_ID, "1614265330", "v1," STANDARD_SIGNATURE " v1," DECOY,
         VERIFY_OK},
        /* the right HMAC and 32 zeros, given out as an Ed25519 signature */
        {STANDARD_ID, "1614265330",
         "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OEAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAAAAA==",
         VERIFY_MISMATCH},
        {STANDARD_ID, "1614265330", "  v1," STANDARD_SIGNATURE "  junk v1",
         VERIFY_OK},
        {STANDARD_ID, "1614265330", "v1,dawfeoifkpqwoekfpqoekf",
         VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "v1,", VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "v1,g0hM9SsE", VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "v1," DECOY, VERIFY_MISMATCH},
        {STANDARD_ID, "1614265330", "v2," STANDARD_SIGNATURE, VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", STANDARD_SIGNATURE, VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "v1a," PAIR_SIGNATURE, VERIFY_MISMATCH},
        {STANDARD_ID, "1614265330", "v1a," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "v1=" STANDARD_SIGNATURE, VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "V1," STANDARD_SIGNATURE, VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330", "", VERIFY_MISSING},
        {STANDARD_ID, "1614265330", NULL, VERIFY_MISSING},
        {STANDARD_ID, NULL, "v1," STANDARD_SIGNATURE, VERIFY_MISSING},
        {STANDARD_ID, "", "v1," STANDARD_SIGNATURE, VERIFY_MISSING},
        {NULL, "1614265330", "v1," STANDARD_SIGNATURE, VERIFY_MISSING},
        {STANDARD_ID, "hello", "v1," STANDARD_SIGNATURE, VERIFY_MALFORMED},
        {STANDARD_ID, "1614265330junk", "v1," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "+1614265330", "v1," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "01614265330", "v1," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "-1614265330", "v1," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "18446744073709551615", "v1," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "9223372036854776", "v1," STANDARD_SIGNATURE,
         VERIFY_MALFORMED},
        {STANDARD_ID, "1614265331", "v1," STANDARD_SIGNATURE, VERIFY_MISMATCH},
        {STANDARD_ID "x", "1614265330", "v1," STANDARD_SIGNATURE,
         VERIFY_MISMATCH},
    };
    struct verifier *verifier =
        open_preset("standard-webhooks", "whsec_" STANDARD_KEY);

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum verify_status status = check_standard(
            verifier, cases[i].id, cases[i].time, cases[i].signature);

        cr_expect_eq(status, cases[i].status, "%zu: %s", i,
                     verify_status_name(status));
    }
    verifier_free(verifier);
}

Test(verify, the_window_is_two_sided_and_looked_at_last)
{
    static const struct {
        int64_t tolerance_ms, off_ms;
        enum verify_status status;
    } cases[] = {
        {-1, 0, VERIFY_OK},
        {-1, 300999, VERIFY_OK},
        {-1, 301000, VERIFY_TOO_OLD},
        {-1, -300000, VERIFY_OK},
        {-1, -300001, VERIFY_TOO_NEW},
        {-1, -301000, VERIFY_TOO_NEW},
        {0, 999, VERIFY_OK},
        {0, 1000, VERIFY_TOO_OLD},
        {0, -1, VERIFY_TOO_NEW},
        {INT64_MAX, 100000000000, VERIFY_OK},
        {INT64_MAX, -SIGNED_MS, VERIFY_OK},
    };
    struct signed_request right, wrong;

    request_start(&right, SLICE(STANDARD_BODY));
    request_header_text(&right, "webhook-id", STANDARD_ID);
    request_header_text(&right, "webhook-timestamp", "1614265330");
    request_start(&wrong, SLICE(STANDARD_BODY));
    request_header_text(&wrong, "webhook-signature", "v1," DECOY);
    request_header_text(&wrong, "webhook-id", STANDARD_ID);
    request_header_text(&wrong, "webhook-timestamp", "1614265330");
    request_header_text(&right, "webhook-signature", "v1," STANDARD_SIGNATURE);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct verifier *verifier = open_verifier(
            (struct verify_options){.scheme = "standard-webhooks",
                                    .tolerance_ms = cases[i].tolerance_ms},
            "whsec_" STANDARD_KEY);
        int64_t now = SIGNED_MS + cases[i].off_ms;

        cr_expect_eq(verifier_check(verifier, &right.envelope, now),
                     cases[i].status, "%zu", i);
        cr_expect_eq(verifier_check_untimed(verifier, &right.envelope),
                     VERIFY_OK);
        cr_expect_eq(verifier_check(verifier, &wrong.envelope, now),
                     VERIFY_MISMATCH);
        verifier_free(verifier);
    }
    request_end(&right);
    request_end(&wrong);
}

Test(verify, milliseconds_are_another_unit)
{
    static const char *const pieces[] = {"timestamp", "body"};
    const struct verify_options options = {
        .scheme = "hmac",
        .header = "X-Signature",
        .timestamp_header = "X-Time",
        .timestamp_unit = "ms",
        .signed_pieces = pieces,
        .n_signed = 2,
        .tolerance_ms = 1000,
    };
    struct verifier *verifier = open_verifier(options, "key");
    struct signed_request request;

    /* printf '1614265330500abc' | openssl dgst -sha256 -hmac key */
    request_start(&request, SLICE("abc"));
    request_header_text(&request, "X-Time", "1614265330500");
    request_header_text(
        &request, "X-Signature",
        "abf493f8ff3ac3be8100ffd741e7ca9f49afa901e873f9f6ac439847d65ec00b");
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS + 1500),
                 VERIFY_OK);
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS + 1501),
                 VERIFY_TOO_OLD);
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS - 501),
                 VERIFY_TOO_NEW);
    request_end(&request);
    verifier_free(verifier);
}

Test(verify, at_most_sixteen_signatures_are_tried)
{
    struct verifier *verifier =
        open_preset("standard-webhooks", "whsec_" STANDARD_KEY);
    struct buf text = BUF_INIT;

    for (int i = 0; i < 15; i++) {
        buf_add_str(&text, "v1," DECOY " ");
    }
    buf_add_str(&text, "v1," STANDARD_SIGNATURE);
    cr_expect_eq(
        check_standard(verifier, STANDARD_ID, "1614265330", buf_cstr(&text)),
        VERIFY_OK);
    buf_clear(&text);
    for (int i = 0; i < 16; i++) {
        buf_add_str(&text, "v1," DECOY " ");
    }
    buf_add_str(&text, "v1," STANDARD_SIGNATURE);
    cr_expect_eq(
        check_standard(verifier, STANDARD_ID, "1614265330", buf_cstr(&text)),
        VERIFY_MISMATCH);
    buf_free(&text);
    verifier_free(verifier);
}

Test(verify, every_secret_is_tried)
{
    const struct slice secrets[] = {
        SLICE("whsec_" DECOY),
        SLICE(PUBLIC_KEY),
        SLICE("whsec_" STANDARD_KEY),
    };
    const struct verify_options options = {
        .scheme = "standard-webhooks",
        .tolerance_ms = -1,
        .secrets = secrets,
        .n_secrets = COUNT(secrets),
    };
    struct verifier *verifier;

    cr_assert(verifier_new(&verifier, &options, NULL));
    cr_expect_eq(check_standard(verifier, STANDARD_ID, "1614265330",
                                "v1," STANDARD_SIGNATURE),
                 VERIFY_OK);
    cr_expect_eq(check_standard(verifier, STANDARD_ID, "1614265330",
                                "v1a," PAIR_SIGNATURE),
                 VERIFY_OK);
    cr_expect_eq(check_standard(verifier, STANDARD_ID, "1614265330",
                                "v1a," PAIR_SIGNATURE " v1," DECOY),
                 VERIFY_OK);
    cr_expect_eq(
        check_standard(verifier, STANDARD_ID, "1614265330",
                       "v1a," PAIR_SIGNATURE
                       " v1a,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                       "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="),
        VERIFY_OK);
    cr_expect_eq(check_standard(verifier, STANDARD_ID, "1614265331",
                                "v1a," PAIR_SIGNATURE),
                 VERIFY_MISMATCH);
    verifier_free(verifier);
}

Test(verify, a_private_key_verifies_too)
{
    struct verifier *verifier = open_preset("svix", PRIVATE_KEY);

    cr_expect_eq(check_standard(verifier, STANDARD_ID, "1614265330",
                                "v1a," PAIR_SIGNATURE),
                 VERIFY_OK);
    verifier_free(verifier);
}

static enum verify_status
check_svix(const char *extra_name, const char *extra_value, const char *prefix)
{
    struct verifier *verifier = open_preset("svix", "whsec_" STANDARD_KEY);
    struct signed_request request;
    enum verify_status status;
    char name[64];

    request_start(&request, SLICE(STANDARD_BODY));
    (void)snprintf(name, sizeof name, "%s-id", prefix);
    request_header_text(&request, name, STANDARD_ID);
    (void)snprintf(name, sizeof name, "%s-timestamp", prefix);
    request_header_text(&request, name, "1614265330");
    (void)snprintf(name, sizeof name, "%s-signature", prefix);
    request_header_text(&request, name, "v1," STANDARD_SIGNATURE);
    if (extra_name != NULL) {
        request_header_text(&request, extra_name, extra_value);
    }
    status = verifier_check(verifier, &request.envelope, SIGNED_MS);
    request_end(&request);
    verifier_free(verifier);
    return status;
}

Test(verify, svix_has_two_sets_of_names_and_never_mixes_them)
{
    cr_expect_eq(check_svix(NULL, NULL, "svix"), VERIFY_OK);
    cr_expect_eq(check_svix(NULL, NULL, "webhook"), VERIFY_OK);
    cr_expect_eq(check_svix("svix-id", "msg_other", "webhook"), VERIFY_MISSING);
    cr_expect_eq(check_svix("svix-timestamp", "1614265330", "webhook"),
                 VERIFY_MISSING);
    cr_expect_eq(check_svix("webhook-id", "msg_other", "svix"), VERIFY_OK);
    cr_expect_eq(check_svix("Svix-Id", STANDARD_ID, "svix"), VERIFY_MALFORMED);
}

Test(verify, stripe_reads_its_list)
{
    static const struct {
        const char *value;
        enum verify_status status;
    } cases[] = {
        {"t=1614265330,v1=" STRIPE_V1, VERIFY_OK},
        {"v1=" STRIPE_V1 ",t=1614265330", VERIFY_OK},
        {"t=1614265330,v1=" STRIPE_V1 ",v1=potato", VERIFY_OK},
        {"t=1614265330,v1=potato,v0=0,v1=" STRIPE_V1, VERIFY_OK},
        {"t=1614265330,v0=" STRIPE_V1, VERIFY_MALFORMED},
        {"t=1614265330,v1=potato", VERIFY_MALFORMED},
        {"t=1614265330,v1=00" STRIPE_V1, VERIFY_MALFORMED},
        {"t=1614265331,v1=" STRIPE_V1, VERIFY_MISMATCH},
        {"t=1614265330,t=1614265330,v1=" STRIPE_V1, VERIFY_MALFORMED},
        {"t=,t=1614265330,v1=" STRIPE_V1, VERIFY_MALFORMED},
        {"t=1614265330x,v1=" STRIPE_V1, VERIFY_MALFORMED},
        {"v1=" STRIPE_V1, VERIFY_MISSING},
        {"t=,v1=" STRIPE_V1, VERIFY_MISSING},
        {"junk", VERIFY_MALFORMED},
        {",,,", VERIFY_MALFORMED},
        {"", VERIFY_MISSING},
    };
    struct verifier *verifier = open_preset("stripe", "whsec_test_secret");

    for (size_t i = 0; i < COUNT(cases); i++) {
        cr_expect_eq(check_one(verifier, "Stripe-Signature", cases[i].value,
                               SLICE(STRIPE_BODY)),
                     cases[i].status, "%s", cases[i].value);
    }
    cr_expect_eq(
        check_one(verifier, "X-Other", "t=1614265330", SLICE(STRIPE_BODY)),
        VERIFY_MISSING);
    verifier_free(verifier);
}

Test(verify, github_takes_hex_in_any_case_behind_its_prefix)
{
    static const struct {
        const char *value;
        enum verify_status status;
    } cases[] = {
        {GITHUB_SIGNATURE, VERIFY_OK},
        {"sha256=757107EA0EB2509FC211221CCE984B8A37570B6D7586C22C46F4379C8B043"
         "E17",
         VERIFY_OK},
        {"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
         VERIFY_MALFORMED},
        {"sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1"
         "7",
         VERIFY_MALFORMED},
        {"SHA256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043"
         "e17",
         VERIFY_MALFORMED},
        {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043"
         "e",
         VERIFY_MALFORMED},
        {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043"
         "e16",
         VERIFY_MISMATCH},
        {"sha256=", VERIFY_MALFORMED},
        {"sha25", VERIFY_MALFORMED},
    };
    struct verifier *verifier = open_preset("github", GITHUB_SECRET);

    for (size_t i = 0; i < COUNT(cases); i++) {
        cr_expect_eq(check_one(verifier, "X-Hub-Signature-256", cases[i].value,
                               SLICE("Hello, World!")),
                     cases[i].status, "%s", cases[i].value);
    }
    verifier_free(verifier);
}

static bool has_name(const char *const *names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

Test(verify, headers_that_count_may_not_repeat)
{
    static const char *const names[] = {"webhook-signature",
                                        "webhook-timestamp", "webhook-id"};
    static const char *const values[] = {("v1," STANDARD_SIGNATURE),
                                         "1614265330", STANDARD_ID};
    struct verifier *verifier =
        open_preset("standard-webhooks", "whsec_" STANDARD_KEY);

    for (size_t twice = 0; twice < COUNT(names); twice++) {
        struct signed_request request;

        cr_expect(has_name(verifier_single_headers(verifier), names[twice]));
        request_start(&request, SLICE(STANDARD_BODY));
        for (size_t i = 0; i < COUNT(names); i++) {
            request_header_text(&request, names[i], values[i]);
        }
        request_header_text(&request, "X-Free", "1");
        request_header_text(&request, "X-Free", "2");
        cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                     VERIFY_OK);
        request_header_text(&request, names[twice], values[twice]);
        cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                     VERIFY_MALFORMED);
        request_end(&request);
    }
    verifier_free(verifier);
}

Test(verify, svix_lists_both_sets_of_names)
{
    struct verifier *verifier = open_preset("svix", "whsec_" STANDARD_KEY);
    const char *const *names = verifier_single_headers(verifier);

    cr_expect(has_name(names, "svix-id"));
    cr_expect(has_name(names, "svix-timestamp"));
    cr_expect(has_name(names, "svix-signature"));
    cr_expect(has_name(names, "webhook-id"));
    cr_expect(has_name(names, "webhook-timestamp"));
    cr_expect(has_name(names, "webhook-signature"));
    verifier_free(verifier);
}
