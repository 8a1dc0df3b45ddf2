/* SPDX-License-Identifier: MIT */
/*
 * TLS for the listening side: certificate and key, and certificates of
 * clients where a CA for them is configured.
 */
#ifndef ONCED_SOURCE_HTTP_TLS_H
#define ONCED_SOURCE_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* TLS 1.2 and later, in the words of GnuTLS. */
#define HTTP_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* PEM texts; all NULL: no TLS. */
struct http_tls {
    char *certificate, *key, *client_ca;
};

/* Reads the files and checks that they fit together: ERR_CONFIG names the
 * file. Paths may be NULL; a key needs a certificate. */
bool http_tls_load(struct http_tls *tls, const char *certificate,
                   const char *key, const char *client_ca,
                   struct err *err) MUST_CHECK;
void http_tls_free(struct http_tls *tls);

/* Makes the handshake of a new session fail unless the client shows a
 * certificate of the CA: by itself libmicrohttpd only asks for one.
 * `session` is a gnutls_session_t. */
void http_tls_demand_client(void *session);

/* Sends what fits without blocking; what does not is lost. */
void http_tls_send(void *session, const void *data, size_t len);

#endif
