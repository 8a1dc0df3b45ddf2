/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "support/signed_request.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void explain(const struct verifier *verifier,
                    const struct signed_request *request, struct buf *out)
{
    buf_clear(out);
    verifier_explain(verifier, &request->envelope, SIGNED_MS, out);
}

static void expect_part(struct buf *text, const char *part)
{
    cr_expect_not_null(strstr(buf_cstr(text), part), "\"%s\" is not in:\n%s",
                       part, buf_cstr(text));
}

static void expect_no_part(struct buf *text, const char *part)
{
    cr_expect_null(strstr(buf_cstr(text), part), "\"%s\" is in:\n%s", part,
                   buf_cstr(text));
}

/* A sender that does it by `theirs` meets a receiver that has `ours`. */
struct mistake {
    struct verify_options theirs;
    const char *their_secret, *their_body;
    struct verify_options ours;
    const char *our_secret, *our_body;
    const char *line;
};

#define HMAC(...)                                                              \
    {                                                                          \
        .scheme = "hmac", .header = "X-S", __VA_ARGS__                         \
    }

static const char *const url_body[] = {"url", "body"};
static const char *const dotted[] = {"timestamp", "text:.", "body"};
static const char *const coloned[] = {"timestamp", "text::", "body"};

static const struct mistake mistakes[] = {
    {{.scheme = "github"},
     "s",
     "{}",
     {.scheme = "github"},
     "s",
     "{}\n",
     "  body: without its final newline\n"},
    {{.scheme = "github"},
     "s",
     "{}",
     {.scheme = "github"},
     "s",
     "{}\r\n",
     "  body: without its final newline\n"},
    {{.scheme = "github"},
     "s",
     "{}\n",
     {.scheme = "github"},
     "s",
     "{}",
     "  body: with a newline behind it\n"},
    {{.scheme = "github"},
     "s",
     "a\nb\n",
     {.scheme = "github"},
     "s",
     "a\r\nb\r\n",
     "  body: with LF line ends in place of CRLF\n"},
    {{.scheme = "github"},
     "s",
     "a\r\nb",
     {.scheme = "github"},
     "s",
     "a\nb",
     "  body: with CRLF line ends in place of LF\n"},
    {{.scheme = "github"},
     "s",
     "",
     {.scheme = "github"},
     "s",
     "--multipart",
     "  body: empty"},
    {HMAC(.key_encoding = "base64"), "c2VjcmV0", "x",
     HMAC(.key_encoding = NULL), "c2VjcmV0", "x",
     "  secret: decoded from base64\n"},
    {HMAC(.key_encoding = "hex"), "00aa11", "x", HMAC(.key_encoding = NULL),
     "00aa11", "x", "  secret: decoded from hex\n"},
    {HMAC(.key_encoding = NULL), "00aa11", "x", HMAC(.key_encoding = "hex"),
     "00aa11", "x", "  secret: as plain text\n"},
    /* printable bytes that end in a newline, so that utf8 cannot say it */
    {HMAC(.key_encoding = "hex"), "7365637265740a", "x",
     HMAC(.key_encoding = NULL), "secret", "x",
     "  secret: with a newline behind it\n"},
    {HMAC(.key_encoding = "base64"), "c2VjcmV0", "x",
     HMAC(.key_encoding = NULL), "whsec_c2VjcmV0", "x",
     "  secret: without its prefix, decoded from base64\n"},
    {HMAC(.key_encoding = NULL), "c2VjcmV0", "x", HMAC(.key_encoding = NULL),
     "whsec_c2VjcmV0", "x", "  secret: as plain text, without its prefix\n"},
    {HMAC(.algorithm = "sha1"), "s", "x", HMAC(.algorithm = "sha256"), "s", "x",
     "  algorithm: sha1\n"},
    {HMAC(.algorithm = "sha512"), "s", "x", HMAC(.algorithm = "sha384"), "s",
     "x", "  algorithm: sha512\n"},
    {HMAC(.encoding = "base64"), "s", "x", HMAC(.encoding = "hex"), "s", "x",
     "  encoding: base64\n"},
    {HMAC(.prefix = NULL), "s", "x", HMAC(.prefix = "sha256="), "s", "x",
     "  prefix: none\n"},
    {HMAC(.prefix = "sha256="), "s", "x", HMAC(.prefix = NULL), "s", "x",
     "  prefix: sha256=\n"},
    {HMAC(.timestamp_header = "X-T", .signed_pieces = dotted, .n_signed = 3),
     "s", "x",
     HMAC(.timestamp_header = "X-T", .signed_pieces = coloned, .n_signed = 3),
     "s", "x", "  signed: timestamp, \".\", body\n"},
    {HMAC(.signed_pieces = url_body, .n_signed = 2,
          .public_url = "https://a.example:443/hook"),
     "s", "x",
     HMAC(.signed_pieces = url_body, .n_signed = 2,
          .public_url = "http://a.example/hook"),
     "s", "x", "  public_url: https://a.example:443/hook\n"},
    {HMAC(.signed_pieces = url_body, .n_signed = 2,
          .public_url = "http://a.example/hook"),
     "s", "x",
     HMAC(.signed_pieces = url_body, .n_signed = 2,
          .public_url = "https://a.example:8443"),
     "s", "x", "  public_url: http://a.example\n"},
};

static void make_request(const struct mistake *mistake,
                         struct signed_request *request)
{
    struct verifier *sender =
        open_verifier(mistake->theirs, mistake->their_secret);
    struct err err = {0};

    request_start(request, slice_of(mistake->our_body));
    cr_assert(verifier_sign(sender, SLICE("id"), SIGNED_MS,
                            slice_of(mistake->their_body), &request->flat,
                            &err),
              "%s", err.text);
    request->envelope.headers.flat = buf_slice(&request->flat);
    request->envelope.headers.count =
        mistake->theirs.timestamp_header != NULL ||
                strcmp(mistake->theirs.scheme, "github") == 0
            ? 2
            : 1;
    verifier_free(sender);
}

Test(explain, usual_mistakes_are_named)
{
    struct buf text = BUF_INIT;

    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const struct mistake *mistake = &mistakes[i];
        struct verifier *verifier =
            open_verifier(mistake->ours, mistake->our_secret);
        struct signed_request request;

        make_request(mistake, &request);
        cr_expect_neq(verifier_check(verifier, &request.envelope, SIGNED_MS),
                      VERIFY_OK, "%zu", i);
        explain(verifier, &request, &text);
        expect_part(&text, mistake->line);
        expect_part(&text, "\nit would match with\n");
        request_end(&request);
        verifier_free(verifier);
    }
    buf_free(&text);
}

Test(explain, tells_the_whole_story_of_a_right_request)
{
    struct verifier *verifier = open_verifier(
        (struct verify_options){.scheme = "stripe"}, "whsec_test_secret");
    struct signed_request request;
    struct buf text = BUF_INIT;

    request_start(&request, SLICE("{\n  \"id\": \"evt_test_webhook\",\n  "
                                  "\"object\": \"event\"\n}"));
    request_header_text(
        &request, "stripe-signature",
        "t=1614265330,v1=af4ead0627a34a8cca29808e8de9ada8e41a92e6237c63cef6eac"
        "f51d36cca34");
    explain(verifier, &request, &text);
    expect_part(&text, "scheme: stripe\n");
    expect_part(&text, "header Stripe-Signature: there\n");
    expect_part(&text, "timestamp: 1614265330, 2021-02-25T15:02:10.000Z, ");
    expect_part(
        &text,
        "body: 51 bytes, sha256 "
        "b5d1269472e8074df9f095c4ca5d33b232e828ead93f4f8f676df648141b998e\n");
    expect_part(&text, "signed text: 62 bytes\n"
                       "  00000000  31 36 31 34 32 36 35 33 33 30 2e 7b 0a 20 "
                       "20 22  |1614265330.{.  \"|\n");
    expect_part(&text, "matches: secrets/0\n");
    expect_part(&text, "result: ok\n");
    expect_no_part(&text, "it would match");
    expect_no_part(&text, "whsec_");
    expect_no_part(&text, "test_secret");
    verifier_explain(verifier, &request.envelope, SIGNED_MS + 600000, &text);
    expect_part(&text, "result: too-old\n");
    buf_free(&text);
    request_end(&request);
    verifier_free(verifier);
}

Test(explain, a_long_text_is_shown_at_both_ends)
{
    struct verifier *verifier =
        open_verifier((struct verify_options){.scheme = "github"}, "s");
    struct signed_request request;
    struct buf body = BUF_INIT;
    struct buf text = BUF_INIT;

    for (int i = 0; i < 1000; i++) {
        buf_add_byte(&body, (char)('a' + i % 26));
    }
    request_start(&request, buf_slice(&body));
    request_header_text(&request, "X-Hub-Signature-256", "sha256=00");
    explain(verifier, &request, &text);
    expect_part(&text, "signed text: 1000 bytes\n");
    expect_part(&text, "|abcdefghijklmnop|\n");
    expect_part(&text, " 736 bytes ");
    expect_part(&text, "  000003e0  ");
    expect_part(&text, "|efghijkl|\n");
    expect_no_part(&text, "  00000080  ");
    expect_part(&text, "result: malformed\n");
    expect_part(&text, "none of the usual mistakes");
    cr_expect_lt(text.len, 3000);
    buf_free(&body);
    buf_free(&text);
    request_end(&request);
    verifier_free(verifier);
}

Test(explain, says_what_is_missing_or_there_twice)
{
    struct verifier *verifier =
        open_verifier((struct verify_options){.scheme = "svix"},
                      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    struct signed_request request;
    struct buf text = BUF_INIT;

    request_start(&request, SLICE("x"));
    request_header_text(&request, "svix-id", "1");
    request_header_text(&request, "svix-timestamp", "1");
    request_header_text(&request, "svix-timestamp", "1");
    explain(verifier, &request, &text);
    expect_part(&text, "header svix-signature: missing\n");
    expect_part(&text, "header svix-timestamp: there more than once");
    expect_part(&text, "header svix-id: there\n");
    expect_part(&text,
                "expected: a list, divided by ' ', of v1,base64 v1a,base64\n");
    expect_part(&text, "result: malformed\n");
    request_end(&request);
    request_start(&request, SLICE("x"));
    explain(verifier, &request, &text);
    expect_part(&text, "header webhook-signature: missing\n");
    expect_part(&text, "none of those called svix-signature");
    expect_part(&text, "result: missing\n");
    request_end(&request);
    buf_free(&text);
    verifier_free(verifier);
}
