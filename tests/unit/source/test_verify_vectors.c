/* SPDX-License-Identifier: MIT */
/*
 * The published vectors, each put back into the request that it was made for.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* How a vector becomes a request of ours. Where it brings no header, the
 * signature is put under X-Signature; where there is no body either, what was
 * signed is the body. */
struct vector_plan {
    const char *name;
    struct verify_options options;
    const char *secret; /* NULL: the vector's key */
    const char *type, *path, *query, *body;
    bool is_left_out;
};

#define TWILIO                                                                 \
    .scheme = "hmac", .algorithm = "sha1", .encoding = "base64",               \
    .header = "X-Twilio-Signature", .signed_pieces = twilio_pieces,            \
    .n_signed = 2

#define PLAIN(a, e)                                                            \
    {                                                                          \
        .scheme = "hmac", .algorithm = (a), .encoding = (e),                   \
        .header = "X-Signature"                                                \
    }

static const char *const twilio_pieces[] = {"url", "form-sorted"};
static const char *const discord_pieces[] = {"timestamp", "body"};
static const char *const square_pieces[] = {"url", "body"};
static const char *const adyen_pieces[] = {
    "json:/pspReference",        "text::", "json:/originalReference", "text::",
    "json:/merchantAccountCode", "text::", "json:/merchantReference", "text::",
    "json:/amount/value",        "text::", "json:/amount/currency",   "text::",
    "json:/eventCode",           "text::", "json:/success",
};

static const char form_type[] =
    "application/x-www-form-urlencoded; charset=UTF-8";
static const char twilio_form[] =
    "To=%2B18005551212&Digits=1234&CallSid=CA1234567890ABCDE&"
    "From=%2B14158675309&Caller=%2B14158675309&Digits=1234";

static const struct vector_plan plans[] = {
    {.name = "standard-webhooks v1",
     .options = {.scheme = "standard-webhooks"},
     .secret = "whsec_" STANDARD_KEY},
    {.name = "standard-webhooks v1a",
     .options = {.scheme = "standard-webhooks"},
     .secret = PUBLIC_KEY},
    {.name = "github sha256", .options = {.scheme = "github"}},
    {.name = "github sha1 (legacy)",
     .options = {.scheme = "hmac",
                 .algorithm = "sha1",
                 .header = "X-Hub-Signature",
                 .prefix = "sha1="}},
    {.name = "github utf8 emoji", .options = {.scheme = "github"}},
    {.name = "stripe t=1614265330", .options = {.scheme = "stripe"}},
    {.name = "slack v0", .options = {.scheme = "slack"}},
    {.name = "twilio form",
     .options = {TWILIO, .public_url = "https://mycompany.com"},
     .type = form_type,
     .path = "/myapp.php",
     .query = "foo=1&bar=2",
     .body = twilio_form},
    {.name = "twilio form, :443 variant",
     .options = {TWILIO, .public_url = "https://mycompany.com:443/myapp.php"},
     .type = form_type,
     .path = "/behind/the/proxy",
     .query = "foo=1&bar=2",
     .body = twilio_form},
    {.name = "twilio http :80 variant",
     .options = {TWILIO, .public_url = "http://mycompany.com:80"},
     .type = form_type,
     .path = "/myapp.php",
     .query = "foo=1&bar=2",
     .body = twilio_form},
    {.name = "twilio json bodySHA256",
     .options = {TWILIO, .public_url = "https://mycompany.com"},
     .type = "application/json",
     .path = "/myapp.php",
     .query = "foo=1&bar=2&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e"
              "41502b283a80c7cf19632632f96e6620",
     .body = "{\"property\": \"value\", \"boolean\": true}"},
    {.name = "twilio array param",
     .options = {TWILIO, .public_url = "https://mycompany.com"},
     .type = form_type,
     .path = "/myapp.php",
     .query = "foo=1&bar=2",
     .body = "MessagingBinding.Address=%2B1415xxxxxxx&"
             "MessagingBinding.Address=%2B1325xxxxxxx&"
             "MessagingBinding.Address=%2B1415xxxxxxx"},
    {.name = "adyen standard (lib)",
     .options = {.scheme = "hmac",
                 .encoding = "base64",
                 .key_encoding = "hex",
                 .header = "X-Signature",
                 .signed_pieces = adyen_pieces,
                 .n_signed = COUNT(adyen_pieces)},
     .body = "{\"pspReference\":\"pspReference\",\"originalReference\":"
             "\"originalReference\",\"merchantAccountCode\":\"merchantAccount"
             "\",\"merchantReference\":\"reference\",\"amount\":{\"value\":"
             "1000,\"currency\":\"EUR\"},\"eventCode\":\"CAPTURE\","
             "\"success\":\"true\"}"},
    {.name = "square",
     .options = {.scheme = "hmac",
                 .encoding = "base64",
                 .header = "x-square-hmacsha256-signature",
                 .signed_pieces = square_pieces,
                 .n_signed = 2,
                 .public_url = "https://webhook.site/"
                               "679a4f3a-dcfa-49ee-bac5-9d0edad886b9"}},
    {.name = "square plain",
     .options = {.scheme = "hmac",
                 .encoding = "base64",
                 .header = "X-Signature",
                 .signed_pieces = square_pieces,
                 .n_signed = 2,
                 .public_url = "https://webhook.site"},
     .path = "/webhooks",
     .body = "{\"data\":{\"type\":\"webhooks\",\"id\":\"fake_id\"}}"},
    {.name = "discord PING (RFC 8032 test-1 key)",
     .options = {.scheme = "hmac",
                 .algorithm = "ed25519",
                 .key_encoding = "hex",
                 .header = "X-Signature-Ed25519",
                 .timestamp_header = "X-Signature-Timestamp",
                 .signed_pieces = discord_pieces,
                 .n_signed = 2}},
    /* ECDSA is not among the algorithms. */
    {.name = "sendgrid single", .is_left_out = true},
    {.name = "twitter/X CRC", .options = PLAIN("sha256", "base64")},
    {.name = "convoy sha512 hex", .options = PLAIN("sha512", "hex")},
    {.name = "convoy/github sha256 hex", .options = PLAIN("sha256", "hex")},
    {.name = "convoy/shopify sha256 base64", .options = {.scheme = "shopify"}},
    {.name = "outpost sha1", .options = PLAIN("sha1", "hex")},
    {.name = "outpost md5", .options = PLAIN("md5", "hex")},
    {.name = "adnanh sha1", .options = PLAIN("sha1", "hex")},
    {.name = "adnanh sha256", .options = PLAIN("sha256", "hex")},
    {.name = "adnanh sha256 empty body", .options = PLAIN("sha256", "hex")},
    {.name = "adnanh sha512", .options = PLAIN("sha512", "hex")},
    {.name = "zoom url_validation (secret \"test\")",
     .options = PLAIN("sha256", "hex")},
};

static const char *text_of(const json_t *vector, const char *member)
{
    return json_string_value(json_object_get(vector, member));
}

static const struct vector_plan *plan_for(const char *name)
{
    for (size_t i = 0; i < COUNT(plans); i++) {
        if (strcmp(plans[i].name, name) == 0) {
            return &plans[i];
        }
    }
    cr_assert_fail("no plan for \"%s\"", name);
    return NULL;
}

static void vector_body(const json_t *vector, const struct vector_plan *plan,
                        struct buf *out)
{
    const char *coded = text_of(vector, "body_b64");

    if (coded == NULL) {
        coded = text_of(vector, "signed_b64");
    }
    if (plan->body != NULL) {
        buf_add_str(out, plan->body);
    } else {
        cr_assert(text_unbase64(slice_of(coded), out));
    }
}

static void vector_request(json_t *vector, const struct vector_plan *plan,
                           struct slice body, struct signed_request *request)
{
    json_t *headers = json_object_get(vector, "headers");
    const char *name;
    json_t *value;

    request_start(request, body);
    json_object_foreach(headers, name, value)
    {
        request_header_text(request, name, json_string_value(value));
    }
    if (headers == NULL) {
        request_header_text(request, "X-Signature", text_of(vector, "sig"));
    }
    if (plan->type != NULL) {
        request_header_text(request, "Content-Type", plan->type);
    }
    if (plan->path != NULL) {
        request->envelope.path = slice_of(plan->path);
    }
    request_query(request, plan->query);
}

/* One bit in the middle of the body; an empty one gets a byte more. */
static void expect_bound_to_body(const struct verifier *verifier,
                                 const struct signed_request *request,
                                 const char *name)
{
    struct envelope changed = request->envelope;
    struct buf body = BUF_INIT;

    buf_add_slice(&body, changed.body);
    if (body.len == 0) {
        buf_add_byte(&body, 'x');
    } else {
        body.data[body.len / 2] ^= 1;
    }
    changed.body = buf_slice(&body);
    cr_expect_neq(verifier_check_untimed(verifier, &changed), VERIFY_OK, "%s",
                  name);
    buf_free(&body);
}

/* Of the right form, but another. */
static const char *wrong_secret(const struct vector_plan *plan)
{
    const char *algorithm = plan->options.algorithm;

    if (plan->secret != NULL) {
        return plan->secret[2] == 'p'
                   ? "whpk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE="
                   : "whsec_" DECOY;
    }
    return algorithm != NULL && strcmp(algorithm, "ed25519") == 0
               ? "0000000000000000000000000000000000000000000000000000000000000"
                 "0"
                 "01"
               : "00ff";
}

static void run_vector(json_t *vector)
{
    const char *name = text_of(vector, "name");
    const struct vector_plan *plan = plan_for(name);
    struct signed_request request;
    struct buf body = BUF_INIT;
    struct verifier *verifier;

    if (plan->is_left_out) {
        return;
    }
    vector_body(vector, plan, &body);
    vector_request(vector, plan, buf_slice(&body), &request);
    verifier = open_verifier(plan->options, plan->secret == NULL
                                                ? text_of(vector, "key")
                                                : plan->secret);
    cr_expect_eq(verifier_check_untimed(verifier, &request.envelope), VERIFY_OK,
                 "%s", name);
    expect_bound_to_body(verifier, &request, name);
    verifier_free(verifier);
    verifier = open_verifier(plan->options, wrong_secret(plan));
    cr_expect_eq(verifier_check_untimed(verifier, &request.envelope),
                 VERIFY_MISMATCH, "%s", name);
    verifier_free(verifier);
    request_end(&request);
    buf_free(&body);
}

Test(verify_vectors, published_vectors_match)
{
    json_t *vectors =
        json_load_file(TEST_DATA "/webhook-vectors.json", 0, NULL);
    json_t *vector;
    size_t i;

    cr_assert_eq(json_array_size(vectors), COUNT(plans));
    json_array_foreach(vectors, i, vector)
    {
        run_vector(vector);
    }
    json_decref(vectors);
}
