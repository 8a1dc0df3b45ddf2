/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(verify_options, secrets_that_cannot_be_right_are_refused)
{
    static const struct {
        const char *scheme, *secret, *part;
    } cases[] = {
        {"standard-webhooks", "w", "is not \"whsec_\""},
        {"standard-webhooks", "whsec_%", "is not \"whsec_\""},
        {"standard-webhooks", "whsec_wronglength", "must have 24 to 64"},
        {"standard-webhooks", "hwsec_" STANDARD_KEY, "is not \"whsec_\""},
        {"standard-webhooks", "whsec_", "must have 24 to 64"},
        {"standard-webhooks", "whsec_" STANDARD_KEY STANDARD_KEY STANDARD_KEY,
         "must have 24 to 64"},
        {"standard-webhooks", "v1,whsec_" STANDARD_KEY, "starts with \"v1,\""},
        {"standard-webhooks", " whsec_" STANDARD_KEY, "starts with a blank"},
        {"standard-webhooks", "whsec_" STANDARD_KEY "\n", "ends with a blank"},
        {"standard-webhooks", "whpk_" STANDARD_KEY, "must have 32"},
        {"standard-webhooks", "whpk_!", "is not base64"},
        {"standard-webhooks", "whsk_" STANDARD_KEY, "must have 64"},
        {"standard-webhooks",
         "whsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAAAAAAAAAA==",
         "halves do not belong together"},
        {"svix", "whsec_" STANDARD_KEY " ", "ends with a blank"},
        {"stripe", "", "is empty"},
        {"stripe", "whsec_test_secret ", "ends with a blank"},
        {"stripe", "\twhsec_test_secret", "starts with a blank"},
        {"stripe", PUBLIC_KEY, "is a key pair's"},
        {"github", PRIVATE_KEY, "is a key pair's"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct slice secret = slice_of(cases[i].secret);
        const struct verify_options options = {
            .scheme = cases[i].scheme,
            .secrets = &secret,
            .n_secrets = 1,
        };
        struct verifier *verifier;
        struct err err = {0};

        cr_expect_not(verifier_new(&verifier, &options, &err), "%s",
                      cases[i].secret);
        cr_expect_null(verifier);
        cr_expect_eq(err.kind, ERR_CONFIG);
        cr_expect_not_null(strstr(err.text, "secrets/0: "), "%s", err.text);
        cr_expect_not_null(strstr(err.text, cases[i].part), "%s", err.text);
        cr_expect_null(strstr(err.text, "MfKQ"), "%s", err.text);
        cr_expect_null(strstr(err.text, "test_secret"), "%s", err.text);
        cr_expect_null(strstr(err.text, "wronglength"), "%s", err.text);
    }
}

Test(verify_options, secrets_that_others_take_are_taken)
{
    static const char *const secrets[] = {
        STANDARD_KEY,
        ("whsec_" STANDARD_KEY),
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr",
        PUBLIC_KEY,
        PRIVATE_KEY,
        "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4",
    };

    for (size_t i = 0; i < COUNT(secrets); i++) {
        verifier_free(open_preset("standard-webhooks", secrets[i]));
    }
}

/* The right value is Python's: hmac over base64.b64decode(secret + "=="). */
Test(verify_options, an_unpadded_secret_is_the_key_that_others_make_of_it)
{
    struct verifier *verifier =
        open_preset("standard-webhooks", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr");
    struct signed_request request;

    request_start(&request, SLICE(STANDARD_BODY));
    request_header_text(&request, "webhook-id", STANDARD_ID);
    request_header_text(&request, "webhook-timestamp", "1614265330");
    request_header_text(&request, "webhook-signature",
                        "v1,yK2tMbA6BHPrMEJ1lLv7UlJJbgFoqGenJkiajZ29evg=");
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                 VERIFY_OK);
    request_end(&request);
    verifier_free(verifier);
}

static void expect_refused(struct verify_options options, const char *part)
{
    struct slice secret = SLICE("00ff");
    struct verifier *verifier;
    struct err err = {0};

    options.secrets = &secret;
    options.n_secrets = 1;
    cr_expect_not(verifier_new(&verifier, &options, &err), "%s", part);
    cr_expect_null(verifier);
    cr_expect_eq(err.kind, ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, part), "%s", err.text);
}

static void expect_pieces_refused(const char *const *pieces, size_t n,
                                  const char *part)
{
    expect_refused((struct verify_options){.scheme = "hmac",
                                           .header = "X-S",
                                           .signed_pieces = pieces,
                                           .n_signed = n},
                   part);
}

Test(verify_options, pieces_that_cannot_be_signed_are_refused)
{
    static const char *const bad[][2] = {
        {"bodies", "signed: \"bodies\" must be"},
        {"text:", "nothing stands behind"},
        {"header:a b", "is not the name of a header"},
        {"json:x", "is not a JSON pointer"},
        {"timestamp", "timestamp: is missing"},
    };
    static const char *const no_body[] = {"url", "header:X-Id"};
    const char *many[VERIFY_PIECES_MAX + 1];

    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *const pieces[] = {"body", bad[i][0]};

        expect_pieces_refused(pieces, 2, bad[i][1]);
    }
    expect_pieces_refused(no_body, 2, "nothing of the body is signed");
    for (size_t i = 0; i < COUNT(many); i++) {
        many[i] = "body";
    }
    expect_pieces_refused(many, COUNT(many), "signed: has more than 16 parts");
}

#define HMAC(...)                                                              \
    {                                                                          \
        .scheme = "hmac", .header = "a", __VA_ARGS__                           \
    }

Test(verify_options, options_that_make_no_sense_are_refused)
{
    static const struct {
        struct verify_options options;
        const char *part;
    } cases[] = {
        {{.scheme = "hmac"}, "header: "},
        {{.scheme = "hmac", .header = "a b"}, "header: "},
        {HMAC(.algorithm = "sha3"), "algorithm: "},
        {HMAC(.encoding = "utf8"), "encoding: "},
        {HMAC(.key_encoding = "x"), "key_encoding: "},
        {HMAC(.timestamp_header = "b", .timestamp_unit = "us"),
         "timestamp/unit: "},
        {HMAC(.timestamp_unit = "s"), "timestamp/header: is missing"},
        {HMAC(.timestamp_header = "b c"), "timestamp/header: "},
        {HMAC(.timestamp_header = "b"), "the timestamp is not signed"},
        {HMAC(.algorithm = "ed25519", .key_encoding = "hex"),
         "secrets/0: is 2 bytes long"},
        {HMAC(.key_encoding = "base64", .public_url = "x"), "public_url: "},
        {{.scheme = "github", .prefix = "x"},
         "prefix: only the scheme \"hmac\" takes it"},
        {{.scheme = "stripe", .timestamp_unit = "s"},
         "timestamp: only the scheme \"hmac\" takes it"},
        {{.scheme = "gitbub"}, "scheme: \"gitbub\" is unknown"},
        {{.scheme = "none"}, "secrets: "},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_refused(cases[i].options, cases[i].part);
    }
}

Test(verify_options, public_urls_are_looked_at)
{
    static const char *const bad[] = {
        "",
        "a.example",
        "https://",
        "ftp://a.example",
        "https:///x",
        "https://a.example/?x=1",
        "https://a b",
        "https://a.example/#x",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        expect_refused(
            (struct verify_options){.scheme = "github", .public_url = bad[i]},
            "public_url: ");
    }
}

Test(verify_options, none_needs_no_verifier_and_the_others_a_secret)
{
    struct verify_options options = {.scheme = "none"};
    struct verifier *verifier = (struct verifier *)&options;
    struct err err = {0};

    cr_expect(verifier_new(&verifier, &options, &err));
    cr_expect_null(verifier);
    verifier_free(verifier);
    options.scheme = "github";
    cr_expect_not(verifier_new(&verifier, &options, &err));
    cr_expect_str_eq(err.text, "secrets: at least one is needed");
}

Test(verify_options, key_encodings_are_honoured)
{
    static const char *const keys[][2] = {
        {"utf8", GITHUB_SECRET},
        {"hex", "4974277320612053656372657420746F204576657279626F6479"},
        {"base64", "SXQncyBhIFNlY3JldCB0byBFdmVyeWJvZHk="},
    };

    for (size_t i = 0; i < COUNT(keys); i++) {
        struct verifier *verifier =
            open_verifier((struct verify_options){.scheme = "hmac",
                                                  .header = "X-S",
                                                  .prefix = "sha256=",
                                                  .key_encoding = keys[i][0]},
                          keys[i][1]);

        cr_expect_eq(check_one(verifier, "X-S", GITHUB_SIGNATURE,
                               SLICE("Hello, World!")),
                     VERIFY_OK, "%s", keys[i][0]);
        verifier_free(verifier);
    }
}

static bool is_listed(const char *const *names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

Test(verify_options, presets_have_names_and_ids)
{
    static const char *const expected[][2] = {
        {"standard-webhooks", "header:webhook-id"},
        {"svix", "header:svix-id header:webhook-id"},
        {"stripe", "json:/id"},
        {"github", "header:X-GitHub-Delivery"},
        {"slack", "json:/event_id"},
        {"shopify", "header:X-Shopify-Webhook-Id"},
    };
    const char *const *names = verify_scheme_names();

    for (size_t i = 0; i < COUNT(expected); i++) {
        cr_expect(is_listed(names, expected[i][0]));
        cr_expect_str_eq(verify_scheme_id(expected[i][0]), expected[i][1]);
    }
    cr_expect_not(is_listed(names, "hmac"));
    cr_expect_null(verify_scheme_id("hmac"));
    cr_expect_null(verify_scheme_id("none"));
}

Test(verify_options, statuses_have_names)
{
    cr_expect_str_eq(verify_status_name(VERIFY_OK), "ok");
    cr_expect_str_eq(verify_status_name(VERIFY_MISMATCH), "mismatch");
    cr_expect_str_eq(verify_status_name(VERIFY_TOO_OLD), "too-old");
    for (int i = 0; i < VERIFY_STATUSES; i++) {
        cr_expect_not_null(verify_status_name((enum verify_status)i));
    }
}
