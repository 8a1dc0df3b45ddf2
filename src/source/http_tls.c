/* SPDX-License-Identifier: MIT */
#include "source/http_tls.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

static bool read_pem(const char *path, char **out, struct err *err)
{
    gnutls_datum_t data;
    int code = gnutls_load_file(path, &data);
    if (code != GNUTLS_E_SUCCESS) {
        return err_set(err, ERR_CONFIG, "tls: %s: %s", path,
                       gnutls_strerror(code));
    }
    *out = mem_dup((struct slice){(const char *)data.data, data.size});
    gnutls_memset(data.data, 0, data.size);
    gnutls_free(data.data);
    return true;
}

static gnutls_datum_t datum_of(char *text)
{
    size_t len = strlen(text);
    CHECK(len <= UINT_MAX);
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)len};
}

/* libmicrohttpd says only that it did not start; this says why. */
static bool try_out(const struct http_tls *tls, const char *certificate,
                    const char *client_ca, struct err *err)
{
    gnutls_certificate_credentials_t credentials;
    bool ok = false;
    CHECK(gnutls_certificate_allocate_credentials(&credentials) == 0);

    gnutls_datum_t pem = datum_of(tls->certificate);
    gnutls_datum_t key = datum_of(tls->key);
    int code = gnutls_certificate_set_x509_key_mem(credentials, &pem, &key,
                                                   GNUTLS_X509_FMT_PEM);
    if (code < 0) {
        (void)err_set(err, ERR_CONFIG, "tls: %s and its key: %s", certificate,
                      gnutls_strerror(code));
        goto out;
    }
    if (tls->client_ca != NULL) {
        gnutls_datum_t ca = datum_of(tls->client_ca);
        code = gnutls_certificate_set_x509_trust_mem(credentials, &ca,
                                                     GNUTLS_X509_FMT_PEM);
        if (code <= 0) {
            (void)err_set(err, ERR_CONFIG, "tls: %s has no CA certificate",
                          client_ca);
            goto out;
        }
    }
    ok = true;
out:
    gnutls_certificate_free_credentials(credentials);
    return ok;
}

bool http_tls_load(struct http_tls *tls, const char *certificate,
                   const char *key, const char *client_ca, struct err *err)
{
    *tls = (struct http_tls){0};
    if (certificate == NULL && key == NULL && client_ca == NULL) {
        return true;
    }
    if (certificate == NULL || key == NULL) {
        return err_set(err, ERR_CONFIG, "tls needs a certificate and a key");
    }
    if (read_pem(certificate, &tls->certificate, err) &&
        read_pem(key, &tls->key, err) &&
        (client_ca == NULL || read_pem(client_ca, &tls->client_ca, err)) &&
        try_out(tls, certificate, client_ca, err)) {
        return true;
    }
    http_tls_free(tls);
    return false;
}

void http_tls_free(struct http_tls *tls)
{
    if (tls->key != NULL) {
        gnutls_memset(tls->key, 0, strlen(tls->key));
    }
    free(tls->certificate);
    free(tls->key);
    free(tls->client_ca);
    *tls = (struct http_tls){0};
}

void http_tls_demand_client(void *session)
{
    /* GnuTLS keeps the pointer. */
    static gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
    };

    CHECK(session != NULL);
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert2(session, &purpose, 1, 0);
}

void http_tls_send(void *session, const void *data, size_t len)
{
    CHECK(session != NULL);
    (void)gnutls_record_send(session, data, len); /* a last word at most */
}
