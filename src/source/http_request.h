/* SPDX-License-Identifier: MIT */
/*
 * One request, from its request line to its answer:
 *
 *     HEAD -> BODY -> HELD -> DECIDED -> ANSWERED
 *        \       \-> DECIDED
 *         \-> DROP -> ANSWERED
 *
 * HELD is the engine's time: the connection is suspended, libmicrohttpd tells
 * nothing of it (also not that the peer is gone), and so the request cannot
 * end before the loop has resumed it. In every other phase it may end at any
 * moment: the peer hangs up, or the deadline passes.
 *
 * The loop's thread only.
 */
#ifndef ONCED_SOURCE_HTTP_REQUEST_H
#define ONCED_SOURCE_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/envelope.h"
#include "engine/port.h"
#include "source/http_answer.h"
#include "source/http_connection.h"
#include "source/http_table.h"
#include "source/http_target.h"
#include "source/http_vet.h"

struct MHD_Connection;

enum http_phase {
    HTTP_PHASE_HEAD,
    HTTP_PHASE_BODY,
    HTTP_PHASE_DROP, /* refused; its body is read for the sender's sake */
    HTTP_PHASE_HELD,
    HTTP_PHASE_DECIDED,
    HTTP_PHASE_ANSWERED,
};

struct http_request {
    struct delivery delivery; /* first: it comes back as this */
    struct http_request *next_back;
    struct http_connection *connection;
    struct MHD_Connection *handle;
    struct http_shared *shared;
    enum http_phase phase;
    /* the head */
    char *raw_target; /* NULL: it is too long */
    size_t raw_target_len;
    struct http_target target;
    char *method;
    struct buf headers; /* flat */
    uint32_t n_headers;
    struct http_framing framing;
    const struct http_group *group; /* NULL until a path was matched */
    /* the body */
    struct buf body;
    uint64_t body_seen;     /* bytes that came, kept or not */
    uint64_t bytes_claimed; /* of shared->bodies_bytes */
    /* what is handed to the engine; it borrows from these */
    struct buf values, envelope;
    /* what is answered */
    bool is_accepted; /* else `refusal` holds */
    struct http_answer refusal;
    const char *log_why; /* what the log says and the answer does not */
};

/* From the request line; `target` may be NULL. */
struct http_request *http_request_new(struct http_connection *connection,
                                      struct MHD_Connection *handle,
                                      const char *target);
void http_request_free(struct http_request *request);

/* One call of libmicrohttpd's handler: once behind the headers, then for
 * every piece of the body (which is taken whole), once at its end, and once
 * after the engine's answer. False: end the connection. */
struct http_call {
    struct MHD_Connection *handle;
    const char *method, *version;
    struct slice data;
};
bool http_request_step(struct http_request *request,
                       const struct http_call *call);

/* The engine has decided; the memory that it held is let go. */
void http_request_decided(struct http_request *request);

/* The deadline has passed. Returns the last words for the peer, or NULL. */
const char *http_request_expire(struct http_request *request);

/* Claims room for `n` bytes of bodies; false when all of it is used. */
bool http_request_claim(struct http_request *request, uint64_t n);

/* The usual answers of its group. */
const struct http_ready_pair *
http_request_ready(const struct http_request *request);

/* The request will be answered with this refusal. Returns false always. */
bool http_request_refuse(struct http_request *request, unsigned status,
                         enum http_outcome outcome, const char *detail);

#endif
