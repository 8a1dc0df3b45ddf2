/* SPDX-License-Identifier: MIT */
/*
 * What the files of the admin API share.
 *
 *   admin.c          life, listeners
 *   admin_request.c  one request: target, rights, dispatch, answer
 *   admin_command.c  orders to the engine, and waiting for them
 *   admin_read.c     health, metrics, status, events
 *   admin_order.c    orders on one event or route
 *   admin_replay.c   the filtered replay and rerun
 *   admin_letter.c   the replay of a dead letter from elsewhere
 *
 * Every connection has a thread of its own (there are few), so that a
 * request may simply wait for the engine.
 */
#ifndef ONCED_APP_ADMIN_INTERNAL_H
#define ONCED_APP_ADMIN_INTERNAL_H

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "app/admin.h"
#include "source/http_bind.h"

enum {
    ADMIN_CONNECTIONS = 64,
    ADMIN_BODY_MAX = 1 << 20,
    ADMIN_LETTER_MAX = 64 << 20,
    ADMIN_SEGMENTS_MAX = 8,
    ADMIN_QUERY_MAX = 16,
    ADMIN_BATCH = 64,
};

struct admin_listener {
    struct admin *admin;
    struct MHD_Daemon *daemon;
    struct http_address address;
    char *text; /* "unix:/path" or "host:port" */
};

struct admin {
    const struct config *config;
    struct engine *engine;
    struct store *store;
    struct kafka_setup *kafka;
    struct admin_listener listeners[2];
    atomic_bool ready;
    pthread_mutex_t lock;
    pthread_cond_t ending_changed;
    /* under the lock */
    bool ending;
    size_t serving; /* requests that an endpoint works on */
    size_t sending; /* and those that it is done with, not yet told */
    pthread_cond_t answered;
};

/* Waits; false when the admin API ends meanwhile. */
bool admin_wait(struct admin *admin, int64_t ms);
bool admin_is_ending(struct admin *admin);

/* Around the work of an endpoint: until its answer is out the end of the admin
 * API waits for it. False when it ends already. */
bool admin_begin_serving(struct admin *admin);
void admin_begin_sending(struct admin *admin);
void admin_end_sending(struct admin *admin);

/* --- one request --------------------------------------------------------- */

enum admin_right { ADMIN_OPEN, ADMIN_READ, ADMIN_OPERATE };

struct admin_parameter {
    const char *name, *value;
};

struct admin_request {
    struct admin *admin;
    const struct admin_endpoint *endpoint;
    struct MHD_Connection *connection;
    bool is_local; /* came by the unix socket */
    bool has_begun;
    bool is_sending; /* counted in the admin's `sending` */
    char *target;    /* as it stood on the request line */
    struct buf words;
    /* decoded, in `words` */
    const char *segments[ADMIN_SEGMENTS_MAX];
    size_t n_segments;
    struct admin_parameter query[ADMIN_QUERY_MAX];
    size_t n_query;
    char actor[STORE_ACTOR_MAX + 1];
    struct buf body;
    bool body_too_large;
    /* the answer; status 0: none yet */
    unsigned status;
    const char *content_type;
    const char *allow; /* of a 405 */
    bool is_last;      /* close the connection */
    struct buf answer;
};

/* One row per endpoint; "*" in the path stands for any one segment. */
struct admin_endpoint {
    const char *method;
    const char *path;
    enum admin_right right;
    const char *parameters; /* blank-separated names that may be given */
    void (*serve)(struct admin_request *request);
};

/* NULL where it is not given. */
const char *admin_parameter(const struct admin_request *request,
                            const char *name);

/* Answers; the JSON is consumed. */
void admin_answer(struct admin_request *request, unsigned status, json_t *json);
void admin_problem(struct admin_request *request, unsigned status,
                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* By the kind of the error. */
void admin_failed(struct admin_request *request, const struct err *err);

/* The body as a JSON object with none but the named members (NULL-ended);
 * an empty body is an empty object. NULL after a problem was answered. */
json_t *admin_body(struct admin_request *request, const char *const *members);

/* The same where strings may hold NUL bytes, so that each is to be taken with
 * its length. */
json_t *admin_body_with_nul(struct admin_request *request,
                            const char *const *members);

/* Members of the body; false after a problem was answered. `why` is what the
 * operator says for the history, NULL where nothing is said. */
bool admin_get_bool(struct admin_request *request, const json_t *body,
                    const char *name, bool *out);
bool admin_get_why(struct admin_request *request, const json_t *body,
                   const char **out);

/* The engine's index of the route that a segment names; SIZE_MAX after the
 * problem was answered. */
size_t admin_route(struct admin_request *request, const char *name);

/* A caller who went away wants no more. */
bool admin_caller_is_there(const struct admin_request *request);

/* Whether the target names an event that could be: false after the problem
 * was answered. */
bool admin_event_ok(struct admin_request *request);

/* MHD's callbacks; cls is the listener. */
void *admin_request_begin(void *cls, const char *target,
                          struct MHD_Connection *connection);
enum MHD_Result admin_request_serve(void *cls,
                                    struct MHD_Connection *connection,
                                    const char *url, const char *method,
                                    const char *version, const char *data,
                                    size_t *data_len, void **state);
void admin_request_end(void *cls, struct MHD_Connection *connection,
                       void **state, enum MHD_RequestTerminationCode code);

/* --- orders -------------------------------------------------------------- */

struct admin_batch;

struct admin_order {
    struct command command; /* first */
    struct admin_batch *batch;
};

/* Hands them to the engine and returns when all are done. */
void admin_run(struct admin *admin, struct admin_order *orders, size_t n);

/* "done" "nothing-to-do" "in-doubt" "refused" "not-found" "busy" */
const char *admin_status_name(enum command_status status);

/* --- endpoints ----------------------------------------------------------- */

void admin_health(struct admin_request *request);
void admin_ready(struct admin_request *request);
void admin_metrics(struct admin_request *request);
void admin_status(struct admin_request *request);
void admin_events(struct admin_request *request);
void admin_event(struct admin_request *request);
void admin_replay(struct admin_request *request);
void admin_rerun(struct admin_request *request);
void admin_resolve(struct admin_request *request);
void admin_discard(struct admin_request *request);
void admin_pause(struct admin_request *request);
void admin_resume(struct admin_request *request);
void admin_replay_all(struct admin_request *request);
void admin_replay_letter(struct admin_request *request);
void admin_backup(struct admin_request *request);
void admin_rerun_all(struct admin_request *request);

#endif
