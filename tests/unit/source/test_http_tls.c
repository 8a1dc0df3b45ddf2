/* SPDX-License-Identifier: MIT */
#include "source/http_tls.h"

#include <criterion/criterion.h>
#include <gnutls/gnutls.h>

#include "source/http.h"
#include "support/http_fixture.h"

#define SIMPLE                                                                 \
    "POST /hook HTTP/1.1\r\nHost: a\r\nId: 1\r\nContent-Length: 2\r\n\r\nhi"

static struct fixture fixture;
static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

/* One certificate with its key: self-signed, or by `ca`. */
static void make(const char *name, const char *ca, const char *extensions)
{
    char command[1024], by[128] = "";
    if (ca != NULL)
        (void)snprintf(by, sizeof(by), "-CA %s.pem -CAkey %s.key", ca, ca);
    (void)snprintf(command, sizeof(command),
                   "cd %s && openssl req -x509 -newkey ec -pkeyopt "
                   "ec_paramgen_curve:prime256v1 -nodes -keyout %s.key -out "
                   "%s.pem -subj /CN=%s -days 2 %s %s 2>/dev/null",
                   folder, name, name, name, by, extensions);
    cr_assert_eq(system(command), 0, "%s", command);
}

#define LEAF "-addext basicConstraints=critical,CA:FALSE "

static void setup(void)
{
    (void)strcpy(folder, "/tmp/onced-tls-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    make("ca", NULL, "");
    make("stranger", NULL, "");
    make("server", "ca", LEAF "-addext extendedKeyUsage=serverAuth");
    make("client", "ca", LEAF "-addext extendedKeyUsage=clientAuth");
    make("other", "stranger", LEAF "-addext extendedKeyUsage=clientAuth");
    fixture_init(&fixture);
    fixture_route(&fixture, "/hook");
    fixture.options.tls_certificate = strdup(in_folder("server.pem"));
    fixture.options.tls_key = strdup(in_folder("server.key"));
}

static void teardown(void)
{
    char command[128];
    fixture_end(&fixture);
    free((char *)fixture.options.tls_certificate);
    free((char *)fixture.options.tls_key);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(http_tls, .init = setup, .fini = teardown, .timeout = 60);

/* --- a client ------------------------------------------------------------- */

struct tls_client {
    struct client plain;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

/* `name` is its certificate, or NULL. False when the handshake fails. */
static bool tls_open(struct tls_client *to, const char *name,
                     const char *priorities)
{
    client_open(&to->plain, &fixture);
    CHECK(gnutls_init(&to->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) == 0);
    CHECK(gnutls_certificate_allocate_credentials(&to->credentials) == 0);
    if (name != NULL) {
        char pem[32], key[32];
        (void)snprintf(pem, sizeof(pem), "%s.pem", name);
        (void)snprintf(key, sizeof(key), "%s.key", name);
        CHECK(gnutls_certificate_set_x509_key_file(
                  to->credentials, in_folder(pem), in_folder(key),
                  GNUTLS_X509_FMT_PEM) == 0);
    }
    CHECK(gnutls_priority_set_direct(to->session, priorities, NULL) == 0);
    CHECK(gnutls_credentials_set(to->session, GNUTLS_CRD_CERTIFICATE,
                                 to->credentials) == 0);
    gnutls_transport_set_int(to->session, to->plain.fd);
    int code;
    do {
        code = gnutls_handshake(to->session);
    } while (code < 0 && !gnutls_error_is_fatal(code));
    return code == 0;
}

static void tls_close(struct tls_client *to)
{
    gnutls_deinit(to->session);
    gnutls_certificate_free_credentials(to->credentials);
    client_close(&to->plain);
}

/* The status of the answer; 0 when there is none. */
static int tls_ask(struct tls_client *to)
{
    char text[4096];
    size_t len = 0;
    if (gnutls_record_send(to->session, SIMPLE, strlen(SIMPLE)) < 0)
        return 0;
    while (len < sizeof(text) - 1) {
        ssize_t n =
            gnutls_record_recv(to->session, text + len, sizeof(text) - 1 - len);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            return 0;
        len += (size_t)n;
        text[len] = '\0';
        if (strstr(text, "\r\n\r\n") != NULL)
            return atoi(text + strlen("HTTP/1.1 "));
    }
    return 0;
}

/* With TLS 1.3 a client learns that it was refused only when it reads. */
static int tls_status(const char *name, const char *priorities)
{
    struct tls_client to;
    int status = tls_open(&to, name, priorities) ? tls_ask(&to) : 0;
    tls_close(&to);
    return status;
}

/* --- tests ---------------------------------------------------------------- */

Test(http_tls, deliveries_come_over_tls_1_2_and_1_3_and_no_older)
{
    fixture_start(&fixture);
    cr_assert_eq(tls_status(NULL, "NORMAL"), 202);
    cr_assert_eq(tls_status(NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.2"), 202);
    cr_assert_eq(tls_status(NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.1"), 0);
    cr_assert_eq(client_status(&fixture, SIMPLE), 0);
}

Test(http_tls, a_connection_is_kept_over_tls)
{
    struct tls_client to;
    fixture_start(&fixture);
    cr_assert(tls_open(&to, NULL, "NORMAL"));
    for (int i = 0; i < 20; i++)
        cr_assert_eq(tls_ask(&to), 202, "request %d", i);
    tls_close(&to);
}

Test(http_tls, only_clients_of_the_ca_come_in)
{
    static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                           "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    char *ca = strdup(in_folder("ca.pem"));
    fixture.options.tls_client_ca = ca;
    fixture_start(&fixture);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(tls_status("client", versions[i]), 202, "%zu", i);
        cr_assert_eq(tls_status(NULL, versions[i]), 0, "%zu", i);
        cr_assert_eq(tls_status("other", versions[i]), 0, "%zu", i);
        cr_assert_eq(tls_status("stranger", versions[i]), 0, "%zu", i);
        /* of the CA, but not made for a client */
        cr_assert_eq(tls_status("server", versions[i]), 0, "%zu", i);
    }
    cr_assert_eq(engine_taken(fixture.engine), 2);
    free(ca);
}

Test(http_tls, a_handshake_that_never_ends_is_cut_off)
{
    struct client silent;
    fixture.options.request_timeout_ms = 300;
    fixture_start(&fixture);
    client_open(&silent, &fixture);
    cr_assert(client_is_at_end(&silent));
    client_close(&silent);
}

Test(http_tls, files_that_do_not_fit_are_configuration_errors)
{
    struct http_tls tls;
    struct err err;
    const char *certificate = fixture.options.tls_certificate;
    cr_assert_not(http_tls_load(&tls, certificate, NULL, NULL, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    cr_assert_not(
        http_tls_load(&tls, certificate, in_folder("client.key"), NULL, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "server.pem"));
    cr_assert_not(http_tls_load(&tls, in_folder("none.pem"),
                                fixture.options.tls_key, NULL, &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    cr_assert_not(http_tls_load(&tls, certificate, fixture.options.tls_key,
                                in_folder("ca.key"), &err));
    cr_assert_eq(err.kind, ERR_CONFIG);
    cr_assert(http_tls_load(&tls, NULL, NULL, NULL, &err));
    cr_assert_null(tls.certificate);
}
