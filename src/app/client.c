/* SPDX-License-Identifier: MIT */
#include "app/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

enum {
    CONNECT_TIMEOUT_MS = 2000,
    ANSWER_TIMEOUT_MS = 60000,
    ANSWER_MAX = 256 << 20,
};

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
    struct buf *text = ctx;

    if (size * n > ANSWER_MAX - text->len) {
        return 0; /* ends the transfer */
    }
    buf_add(text, data, size * n);
    return size * n;
}

#define SET(curl, option, value)                                               \
    CHECK(curl_easy_setopt((curl), (option), (value)) == CURLE_OK)

static void set_up(CURL *curl, const struct client_request *request,
                   struct buf *text)
{
    struct buf url = BUF_INIT;

    buf_printf(&url, "http://onced%s", request->target);
    SET(curl, CURLOPT_UNIX_SOCKET_PATH, request->socket);
    SET(curl, CURLOPT_URL, buf_cstr(&url));
    SET(curl, CURLOPT_PATH_AS_IS, 1L); /* an id may be ".." */
    SET(curl, CURLOPT_PROTOCOLS_STR, "http");
    SET(curl, CURLOPT_PROXY, "");
    SET(curl, CURLOPT_NOSIGNAL, 1L);
    SET(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    SET(curl, CURLOPT_TIMEOUT_MS,
        request->is_long ? 0L : (long)ANSWER_TIMEOUT_MS);
    SET(curl, CURLOPT_WRITEFUNCTION, take);
    SET(curl, CURLOPT_WRITEDATA, (void *)text);
    buf_free(&url);
}

static bool call(CURL *curl, const struct client_request *request, long *status,
                 struct err *err)
{
    CURLcode code = curl_easy_perform(curl);
    long error = 0;

    if (code == CURLE_COULDNT_CONNECT) {
        (void)curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error); /* or 0 */
    }
    if (error == EACCES || error == EPERM) {
        return err_set(err, ERR_IO, "connect to %s: %s", request->socket,
                       strerror((int)error));
    }
    if (code == CURLE_COULDNT_CONNECT) {
        return err_set(err, ERR_UNREACHABLE, "no worker listens on %s",
                       request->socket);
    }
    if (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR) {
        return err_set(err, ERR_IO,
                       "the worker on %s ended before it answered: what was "
                       "ordered may be done in part; order it again",
                       request->socket);
    }
    if (code != CURLE_OK) {
        return err_set(err, ERR_IO, "%s: %s", request->socket,
                       curl_easy_strerror(code));
    }
    return curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status) ==
               CURLE_OK ||
           err_set(err, ERR_IO, "%s: no status", request->socket);
}

static bool parse(const struct buf *text, json_t **answer, struct err *err)
{
    json_error_t error;

    *answer = json_loadb(text->len == 0 ? "" : text->data, text->len,
                         JSON_ALLOW_NUL, &error);
    if (json_is_object(*answer)) {
        return true;
    }
    json_decref(*answer);
    return err_set(err, ERR_IO, "the worker's answer is not JSON");
}

bool client_call(const struct client_request *request, long *status,
                 json_t **answer, struct err *err)
{
    CURL *curl = curl_easy_init();
    char *body = NULL;
    struct curl_slist *headers = NULL;
    struct buf text = BUF_INIT;
    bool ok;

    CHECK(curl != NULL);
    set_up(curl, request, &text);
    if (request->body != NULL) {
        body = json_dumps(request->body, JSON_COMPACT);
        headers = curl_slist_append(NULL, "Content-Type: application/json");
        CHECK(body != NULL);
        CHECK(headers != NULL);
        SET(curl, CURLOPT_POSTFIELDS, body);
        SET(curl, CURLOPT_HTTPHEADER, headers);
    }
    ok = call(curl, request, status, err) && parse(&text, answer, err);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    free(body);
    buf_free(&text);
    return ok;
}
