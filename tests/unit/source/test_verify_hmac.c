/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TWILIO                                                                 \
    .scheme = "hmac", .algorithm = "sha1", .encoding = "base64",               \
    .header = "X-Twilio-Signature", .signed_pieces = twilio_pieces,            \
    .n_signed = 2

static const char *const twilio_pieces[] = {"url", "form-sorted"};
static const char *const square_pieces[] = {"url", "body"};

static const char form_type[] =
    "application/x-www-form-urlencoded; charset=UTF-8";
static const char *const every_piece[] = {
    "text:v1:", "timestamp", "text::",  "header:X-Id", "text::",
    "query:a",  "text::",    "json:/n", "text::",      "body",
};

static struct verifier *open_every_piece(void)
{
    const struct verify_options options = {
        .scheme = "hmac",
        .algorithm = "sha384",
        .header = "X-Signature",
        .timestamp_header = "X-Time",
        .signed_pieces = every_piece,
        .n_signed = COUNT(every_piece),
        .tolerance_ms = -1,
    };

    return open_verifier(options, "key");
}

static enum verify_status check_every_piece(const char *id, const char *query,
                                            const char *body,
                                            const char *signature)
{
    struct verifier *verifier = open_every_piece();
    struct signed_request request;
    enum verify_status status;

    request_start(&request, slice_of(body));
    request_header_text(&request, "X-Time", "1614265330");
    request_header_text(&request, "X-Signature", signature);
    if (id != NULL) {
        request_header_text(&request, "x-id", id);
    }
    request_query(&request, query);
    status = verifier_check(verifier, &request.envelope, SIGNED_MS);
    request_end(&request);
    verifier_free(verifier);
    return status;
}

Test(verify_hmac, hmac_signs_any_pieces)
{
    /* printf 'v1:1614265330:i1:x y:1.50:{"n":1.50}' |
     * openssl dgst -sha384 -hmac key */
    static const char right[] =
        "e28b78ff3b5287bbcd3747dbd80b703493b407b1d7e7697ad9dfa27a2df56101d34ca6"
        "a2465f38bc913304cbffc3d376";
    /* printf 'v1:1614265330:i1:x y::{"n":null}' | … */
    static const char null_member[] =
        "4220a474c50b19e21f1e9159dedcbe5ebf385e9c3b5df13bae831d98f517b34d81648d"
        "7cf965a6cce0460e674a8c1860";

    cr_expect_eq(check_every_piece("i1", "a=x+y", "{\"n\":1.50}", right),
                 VERIFY_OK);
    cr_expect_eq(check_every_piece("i1", "a=x+y", "{\"n\":null}", null_member),
                 VERIFY_OK);
    cr_expect_eq(check_every_piece("i2", "a=x+y", "{\"n\":1.50}", right),
                 VERIFY_MISMATCH);
    cr_expect_eq(check_every_piece(NULL, "a=x+y", "{\"n\":1.50}", right),
                 VERIFY_MISSING);
    cr_expect_eq(check_every_piece("i1", NULL, "{\"n\":1.50}", right),
                 VERIFY_MISSING);
    cr_expect_eq(check_every_piece("i1", "a=x+y&a=z", "{\"n\":1.50}", right),
                 VERIFY_MALFORMED);
    cr_expect_eq(check_every_piece("i1", "a=%1", "{\"n\":1.50}", right),
                 VERIFY_MALFORMED);
    cr_expect_eq(
        check_every_piece("i1", "a=x+y", "{\"n\":1.50,\"n\":1}", right),
        VERIFY_MALFORMED);
    cr_expect_eq(check_every_piece("i1", "a=x+y", "{\"n\":[]}", right),
                 VERIFY_MALFORMED);
    cr_expect_eq(check_every_piece("i1", "a=x+y", "{", right),
                 VERIFY_MALFORMED);
    cr_expect_eq(check_every_piece("i1", "a=x+y", "{\"n\":\"\\u0000\"}", right),
                 VERIFY_MALFORMED);
    cr_expect_eq(check_every_piece("i1", "a=x+y", "{\"n\":\"\\ud800\"}", right),
                 VERIFY_MALFORMED);
}

/* Each would let a body through that nobody signed. */
Test(verify_hmac, a_form_scheme_leaves_no_body_unsigned)
{
    static const char *const only_form[] = {"form-sorted"};
    static const struct {
        const char *type, *query, *body;
    } cases[] = {
        {"application/json", "foo=1&bar=2", "{}"},
        {NULL, "foo=1&bar=2", "a=1"},
        {form_type, "foo=1&bar=2", "&&&"},
        {form_type, "foo=1&bar=2", "a=%zz"},
        {form_type,
         "bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61"
         "caaff8a",
         "&&&"},
        {"application/json",
         "bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61"
         "caaff8a",
         "{ }"},
        {"application/json",
         "bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61"
         "caaff8a&bodySHA256=1",
         "{}"},
    };
    struct verifier *verifier = open_verifier(
        (struct verify_options){TWILIO, .public_url = "https://a.example"},
        "12345");
    struct verifier *no_url =
        open_verifier((struct verify_options){.scheme = "hmac",
                                              .algorithm = "sha1",
                                              .encoding = "base64",
                                              .header = "X-Twilio-Signature",
                                              .signed_pieces = only_form,
                                              .n_signed = 1},
                      "12345");
    struct signed_request request;

    for (size_t i = 0; i < COUNT(cases); i++) {
        request_start(&request, slice_of(cases[i].body));
        request_query(&request, cases[i].query);
        request_header_text(&request, "X-Twilio-Signature",
                            "RSOYDt4T1cUTdK1PDd93/VVr8B8=");
        if (cases[i].type != NULL) {
            request_header_text(&request, "Content-Type", cases[i].type);
        }
        cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                     VERIFY_MALFORMED, "%zu", i);
        request_end(&request);
    }
    request_start(&request, SLICE("{}"));
    request_query(&request, "bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc"
                            "21fe77e8310c060f61caaff8a");
    request_header_text(&request, "X-Twilio-Signature",
                        "RSOYDt4T1cUTdK1PDd93/VVr8B8=");
    cr_expect_eq(verifier_check(no_url, &request.envelope, SIGNED_MS),
                 VERIFY_MALFORMED);
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                 VERIFY_MISMATCH);
    request_end(&request);
    verifier_free(verifier);
    verifier_free(no_url);
}

Test(verify_hmac, a_form_of_too_many_fields_is_refused)
{
    struct verifier *verifier = open_verifier(
        (struct verify_options){TWILIO, .public_url = "https://a.example"},
        "12345");
    struct signed_request request;
    struct buf body = BUF_INIT;

    for (int i = 0; i < 4097; i++) {
        buf_add_str(&body, "a&");
    }
    request_start(&request, buf_slice(&body));
    request_header_text(&request, "Content-Type", form_type);
    request_header_text(&request, "X-Twilio-Signature",
                        "RSOYDt4T1cUTdK1PDd93/VVr8B8=");
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                 VERIFY_MALFORMED);
    request.envelope.body.len -= 2;
    cr_expect_eq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                 VERIFY_MISMATCH);
    request_end(&request);
    buf_free(&body);
    verifier_free(verifier);
}

Test(verify_hmac, without_a_public_url_the_requested_one_is_signed)
{
    struct verifier *verifier =
        open_verifier((struct verify_options){.scheme = "hmac",
                                              .encoding = "base64",
                                              .header = "X-Signature",
                                              .signed_pieces = square_pieces,
                                              .n_signed = 2},
                      "signature-key");
    struct signed_request request;

    request_start(&request,
                  SLICE("{\"data\":{\"type\":\"webhooks\",\"id\":\"fake_id\"}"
                        "}"));
    request.envelope.path = SLICE("/webhooks");
    request_header_text(&request, "X-Signature",
                        "W3FlCNk5IA3ZQ2LHTWoajvzfaDu/OwY2tNHIHC3IUOA=");
    cr_expect_eq(verifier_check(verifier, &request.envelope, 0),
                 VERIFY_MISSING);
    request_header_text(&request, "Host", "webhook.site");
    cr_expect_eq(verifier_check(verifier, &request.envelope, 0), VERIFY_OK);
    request_query(&request, "");
    cr_expect_eq(verifier_check(verifier, &request.envelope, 0),
                 VERIFY_MISMATCH);
    request_end(&request);
    verifier_free(verifier);
}
