/* SPDX-License-Identifier: MIT */
#include "handler/http_transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "handler/http_reply.h"
#include "handler/http_request.h"

/* An idle connection is used again for less than two seconds. Servers close
 * idle ones after two and more, and a request that meets the close on its
 * way is in doubt. */
enum { IDLE_MAX_S = 1 };

/* --- callbacks of libcurl ------------------------------------------------ */

/* The connection is up, and the request is about to be sent. libcurl sends a
 * request once more by itself where a reused connection closes without a
 * byte; a second request is right only behind a redirect. */
static int before_request(void *self, char *remote, char *local,
                          int remote_port, int local_port)
{
    struct http_transfer *transfer = self;
    long redirects = 0;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    CHECK(curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_COUNT,
                            &redirects) == CURLE_OK);
    if ((long)transfer->n_sent > redirects) {
        transfer->was_resend = true;
        return CURL_PREREQFUNC_ABORT;
    }
    transfer->n_sent++;
    return CURL_PREREQFUNC_OK;
}

/* Line by line. An answer that ends in its headers is none, which libcurl
 * does not say. */
static size_t on_header(char *data, size_t size, size_t n, void *self)
{
    struct http_transfer *transfer = self;
    size_t len = size * n;

    if (slice_starts((struct slice){data, len}, SLICE("HTTP/"))) {
        transfer->has_headers = false;
    } else if (len > 0 && (data[0] == '\r' || data[0] == '\n')) {
        transfer->has_headers = true;
    }
    transfer->header_bytes += len;
    return transfer->header_bytes <= HTTP_ANSWER_HEADER_BYTES ? len : 0;
}

/* What is over the cap is read and dropped: a handler that still writes may
 * still work, and only its end proves that it is done. */
static size_t on_body(char *data, size_t size, size_t n, void *self)
{
    struct http_transfer *transfer = self;
    size_t len = size * n;

    if (transfer->body_omitted) {
        return len;
    }
    if (len > transfer->max_result_bytes - transfer->body.len) {
        transfer->body_omitted = true;
        buf_free(&transfer->body);
    } else {
        buf_add(&transfer->body, data, len);
    }
    return len;
}

/* --- set-up ----------------------------------------------------------------
 */

/* An option can only fail for want of memory, or where the library lacks it:
 * CMakeLists.txt asks for a version that has them all. */
#define SET(easy, option, value)                                               \
    CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK)

static void set_callbacks(struct http_transfer *transfer)
{
    CURL *easy = transfer->easy;

    SET(easy, CURLOPT_PRIVATE, transfer);
    SET(easy, CURLOPT_ERRORBUFFER, transfer->error);
    SET(easy, CURLOPT_PREREQFUNCTION, before_request);
    SET(easy, CURLOPT_PREREQDATA, transfer);
    SET(easy, CURLOPT_HEADERFUNCTION, on_header);
    SET(easy, CURLOPT_HEADERDATA, transfer);
    SET(easy, CURLOPT_WRITEFUNCTION, on_body);
    SET(easy, CURLOPT_WRITEDATA, transfer);
}

static void set_options(CURL *easy, const struct http_handler_options *o)
{
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_PROXY, "");
    /* One request at a time on a connection: how it ends is then known. */
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)o->connect_timeout_ms);
    SET(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_MAX_S);
    SET(easy, CURLOPT_FOLLOWLOCATION, o->follow_redirects > 0 ? 1L : 0L);
    SET(easy, CURLOPT_MAXREDIRS, (long)o->follow_redirects);
    SET(easy, CURLOPT_POSTREDIR, (long)CURL_REDIR_POST_ALL);
    if (o->ca_file != NULL) {
        SET(easy, CURLOPT_CAINFO, o->ca_file);
    }
}

struct http_transfer *http_transfer_new(const struct backend *backend,
                                        const struct http_handler_options *o)
{
    struct http_transfer *transfer = mem_new(1, sizeof *transfer);

    transfer->easy = curl_easy_init();
    CHECK(transfer->easy != NULL);
    transfer->backend = backend;
    transfer->max_result_bytes = o->max_result_bytes;
    set_callbacks(transfer);
    set_options(transfer->easy, o);
    return transfer;
}

void http_transfer_free(struct http_transfer *transfer)
{
    if (transfer == NULL) {
        return;
    }
    CHECK(transfer->attempt == NULL);
    curl_easy_cleanup(transfer->easy);
    buf_free(&transfer->url);
    free(transfer);
}

/* --- one attempt --------------------------------------------------------- */

static bool sends_body(struct slice method, struct slice body)
{
    return body.len > 0 || slice_eq(method, SLICE("POST")) ||
           slice_eq(method, SLICE("PUT")) || slice_eq(method, SLICE("PATCH"));
}

static void set_method(CURL *easy, struct slice method, struct slice body)
{
    char *name = mem_dup(method);

    SET(easy, CURLOPT_HTTPGET, 1L); /* forgets what the last one had */
    if (slice_eq(method, SLICE("HEAD"))) {
        SET(easy, CURLOPT_NOBODY, 1L);
    } else if (sends_body(method, body)) {
        SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        SET(easy, CURLOPT_POSTFIELDS, body.len > 0 ? body.data : "");
    }
    SET(easy, CURLOPT_CUSTOMREQUEST, name);
    free(name);
}

void http_transfer_begin(struct http_transfer *transfer,
                         struct attempt *attempt)
{
    const struct envelope *envelope = &attempt->envelope;
    CURL *easy = transfer->easy;

    CHECK(transfer->attempt == NULL);
    CHECK(attempt->timeout_ms > 0);
    transfer->attempt = attempt;
    attempt->retry_after_ms = -1;
    attempt->code[0] = '\0';
    transfer->n_sent = 0;
    transfer->was_resend = false;
    transfer->has_headers = false;
    transfer->header_bytes = 0;
    transfer->body_omitted = false;
    transfer->error[0] = '\0';
    backend_url(transfer->backend, envelope, &transfer->url);
    transfer->headers = http_request_headers(transfer->backend, attempt);
    SET(easy, CURLOPT_URL, transfer->url.data);
    SET(easy, CURLOPT_HTTPHEADER, transfer->headers);
    SET(easy, CURLOPT_TIMEOUT_MS, (long)attempt->timeout_ms);
    set_method(easy,
               envelope->kind == ENVELOPE_KAFKA ? SLICE("POST")
                                                : envelope->method,
               envelope->body);
}

/* --- its end ------------------------------------------------------------- */

static void explain(struct attempt *attempt, const char *phase,
                    const char *what)
{
    int len =
        snprintf(attempt->text, sizeof attempt->text, "%s: %s", phase, what);

    CHECK(len > 0);
}

static const char *phase_of(CURLcode code)
{
    static const struct {
        CURLcode code;
        const char *phase;
    } phases[] = {
        {CURLE_COULDNT_RESOLVE_HOST, "resolve"},
        {CURLE_COULDNT_CONNECT, "connect"},
        {CURLE_OPERATION_TIMEDOUT, "connect"},
        {CURLE_SSL_CONNECT_ERROR, "tls"},
        {CURLE_PEER_FAILED_VERIFICATION, "tls"},
        {CURLE_SSL_CACERT_BADFILE, "tls"},
        {CURLE_ABORTED_BY_CALLBACK, "stopped"},
    };

    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (phases[i].code == code) {
            return phases[i].phase;
        }
    }
    return "request";
}

/* The library's own words, or the system's where it only has numbers. */
static const char *words_of(const struct http_transfer *transfer, CURLcode code,
                            char *space, size_t size)
{
    long error = 0;

    CHECK(curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &error) ==
          CURLE_OK);
    if (code == CURLE_COULDNT_CONNECT && error != 0) {
        return strerror_r((int)error, space, size);
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return "the worker shuts down";
    }
    return transfer->error[0] != '\0' ? transfer->error
                                      : curl_easy_strerror(code);
}

static void end_without_answer(const struct http_transfer *transfer,
                               CURLcode code)
{
    struct attempt *attempt = transfer->attempt;
    char space[128];

    if (transfer->n_sent == 0) {
        attempt->end = END_UNREACHED;
        explain(attempt, phase_of(code),
                words_of(transfer, code, space, sizeof space));
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        attempt->end = END_TIMEOUT;
        explain(attempt, "answer", "timed out");
    } else if (transfer->was_resend) {
        attempt->end = END_BROKEN;
        explain(attempt, "answer", "the connection closed without one");
    } else if (code == CURLE_OK) {
        attempt->end = END_BROKEN;
        explain(attempt, "answer", "it ended in its headers");
    } else if (transfer->header_bytes > HTTP_ANSWER_HEADER_BYTES) {
        attempt->end = END_BROKEN;
        explain(attempt, "answer", "its headers are too large");
    } else {
        attempt->end = END_BROKEN;
        explain(attempt, "answer",
                words_of(transfer, code, space, sizeof space));
    }
}

static void end_with_answer(const struct http_transfer *transfer)
{
    struct attempt *attempt = transfer->attempt;
    bool is_final = http_reply_take(transfer->easy, buf_slice(&transfer->body),
                                    transfer->body_omitted, attempt);
    int len = snprintf(attempt->text, sizeof attempt->text, "status %d%s",
                       attempt->status, is_final ? "" : " is no answer");

    CHECK(len > 0);
    attempt->end = is_final ? END_STATUS : END_BROKEN;
}

struct attempt *http_transfer_end(struct http_transfer *transfer, CURLcode code)
{
    struct attempt *attempt = transfer->attempt;
    curl_off_t took_us = 0;

    CHECK(attempt != NULL);
    /* With the last redirect that is allowed, the answer is that redirect. */
    if ((code == CURLE_OK && transfer->has_headers) ||
        code == CURLE_TOO_MANY_REDIRECTS) {
        end_with_answer(transfer);
    } else {
        end_without_answer(transfer, code);
    }
    CHECK(curl_easy_getinfo(transfer->easy, CURLINFO_TOTAL_TIME_T, &took_us) ==
          CURLE_OK);
    attempt->took_ms = took_us / 1000;
    SET(transfer->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    buf_clear(&transfer->url);
    buf_free(&transfer->body);
    transfer->attempt = NULL;
    return attempt;
}
