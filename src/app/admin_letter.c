/* SPDX-License-Identifier: MIT */
/*
 * The replay of a dead letter that was kept elsewhere, with what arrived. The
 * store's word on its event goes first: what is dead is replayed, what is
 * known otherwise is left as it is. Only what the store does not know is
 * delivered, as a new event under the id that it had.
 */
#include <stdlib.h>
#include <string.h>

#include "app/admin_internal.h"
#include "app/dump_read.h"
#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "source/event.h"

struct letter {
    struct admin_request *request;
    const struct config_route *route;
    size_t index; /* of the route */
    struct slice tenant, id;
    struct buf names; /* tenant and id, where the route's rules gave them */
    struct buf flat;  /* what arrived, or nothing */
    struct envelope original;
    uint32_t replays, max_replays; /* max_replays 0: any number */
    bool assume_not_applied, dry_run;
    const char *why;
};

/* What the store knows. */
struct letter_look {
    const struct letter *letter;
    bool is_known, has_failed;
    enum record_state state;
    uint64_t replays;      /* in the event's history */
    bool may_be_forgotten; /* as the engine judges of one that is new */
    struct err err;
};

/* --- what was asked for -------------------------------------------------- */

static bool refuse_body(const struct letter *letter, const char *name,
                        const char *what)
{
    admin_problem(letter->request, MHD_HTTP_BAD_REQUEST, "\"%s\" %s", name,
                  what);
    return false;
}

static bool take_route(struct letter *letter, const json_t *body)
{
    const json_t *route = json_object_get(body, "route");
    const char *name = json_string_value(route);

    if (name == NULL || strlen(name) != json_string_length(route)) {
        return refuse_body(letter, "route", "must be the name of one");
    }
    letter->index = admin_route(letter->request, name);
    if (letter->index == SIZE_MAX) {
        return false;
    }
    letter->route = &letter->request->admin->config->routes[letter->index];
    return true;
}

static bool take_request(struct letter *letter, const json_t *body)
{
    const json_t *from = json_object_get(body, "request");
    struct err err;

    if (from == NULL || json_is_null(from)) {
        return true;
    }
    if (!dump_read_request(from, &letter->flat, &err)) {
        admin_problem(letter->request, MHD_HTTP_BAD_REQUEST, "\"request\": %s",
                      err.text);
        return false;
    }
    return envelope_open(buf_slice(&letter->flat), &letter->original) ||
           refuse_body(letter, "request", "cannot be an event's");
}

/* Empty where it is not given. */
static bool take_name(const struct letter *letter, const json_t *body,
                      const char *name, struct slice *out)
{
    const json_t *member = json_object_get(body, name);
    const char *problem = NULL;

    *out =
        (struct slice){json_string_value(member), json_string_length(member)};
    if (member != NULL && !json_is_string(member)) {
        problem = "must be a string";
    } else if (out->len > 0) {
        problem = value_check_id(*out);
    }
    return problem == NULL || refuse_body(letter, name, problem);
}

static bool take_count(const struct letter *letter, const json_t *body,
                       const char *name, uint32_t *out)
{
    const json_t *member = json_object_get(body, name);
    json_int_t value = json_integer_value(member);

    if (member != NULL &&
        (!json_is_integer(member) || value < 0 || value > UINT32_MAX)) {
        return refuse_body(letter, name, "must be a number");
    }
    *out = (uint32_t)value;
    return true;
}

static bool is_topic_of(const struct config_route *route, struct slice topic)
{
    for (size_t i = 0; i < route->kafka.topics.n; i++) {
        if (slice_eq(slice_of(route->kafka.topics.items[i]), topic)) {
            return true;
        }
    }
    return false;
}

static bool refuse_value(const struct letter *letter, const char *what,
                         const char *why)
{
    admin_problem(letter->request, MHD_HTTP_BAD_REQUEST, "%s: %s", what, why);
    return false;
}

/* The tenant behind the id, where the route has tenants. */
static bool read_names(struct letter *letter)
{
    const struct config_route *route = letter->route;
    const char *why = NULL;
    size_t id_len;

    if (!event_read_name(&route->id, &letter->original, &letter->names, &why)) {
        return refuse_value(letter, "the id", why);
    }
    id_len = letter->names.len;
    if (route->tenant.n_choices > 0 &&
        !event_read_name(&route->tenant, &letter->original, &letter->names,
                         &why)) {
        return refuse_value(letter, "the tenant", why);
    }
    letter->id = (struct slice){letter->names.data, id_len};
    letter->tenant = slice_from(buf_slice(&letter->names), id_len);
    return true;
}

static bool take_letter(struct letter *letter, const json_t *body)
{
    return take_route(letter, body) && take_request(letter, body) &&
           take_name(letter, body, "id", &letter->id) &&
           take_name(letter, body, "tenant", &letter->tenant) &&
           take_count(letter, body, "replays", &letter->replays) &&
           take_count(letter, body, "max_replays", &letter->max_replays) &&
           admin_get_bool(letter->request, body, "assume_not_applied",
                          &letter->assume_not_applied) &&
           admin_get_bool(letter->request, body, "dry_run", &letter->dry_run) &&
           admin_get_why(letter->request, body, &letter->why);
}

/* --- the answer ---------------------------------------------------------- */

static void set(json_t *json, const char *name, json_t *value)
{
    CHECK(json_object_set_new(json, name, value) == 0);
}

static void tell(const struct letter *letter, const char *result)
{
    struct log_line line;

    if (!letter->dry_run &&
        log_begin(&line, LOG_INFO, "admin", "dead letter from elsewhere")) {
        log_str(&line, "actor", slice_of(letter->request->actor));
        log_str(&line, "route", slice_of(letter->route->name));
        log_str(&line, "id", letter->id);
        log_str(&line, "result", slice_of(result));
        log_end(&line);
    }
}

/* State NONE: the store does not know the event. */
static void answer(const struct letter *letter, const char *result,
                   enum record_state state, const char *why)
{
    bool is_refused =
        strcmp(result, "refused") == 0 || strcmp(result, "in-doubt") == 0;
    unsigned status = is_refused ? MHD_HTTP_CONFLICT : MHD_HTTP_OK;
    json_t *json = json_pack(
        "{s:s, s:s%, s:s%, s:s, s:s, s:b}", "route", letter->route->name,
        "tenant", letter->tenant.len == 0 ? "" : letter->tenant.data,
        letter->tenant.len, "id", letter->id.len == 0 ? "" : letter->id.data,
        letter->id.len, "result", result, "why", why, "dry_run",
        letter->dry_run);

    CHECK(json != NULL);
    if (state != RECORD_NONE) {
        set(json, "state", json_string(record_state_name(state)));
    }
    if (is_refused) {
        set(json, "title", json_string(MHD_get_reason_phrase_for(status)));
        set(json, "status", json_integer(status));
        set(json, "detail", json_string(why));
    }
    tell(letter, result);
    admin_answer(letter->request, status, json);
}

/* --- a new event --------------------------------------------------------- */

struct handover {
    struct delivery delivery; /* first */
    struct arrival arrival;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool is_answered;
};

/* Once the lock is free the handover may be gone. */
static void take_back(struct delivery *delivery)
{
    struct handover *handover = (struct handover *)delivery;

    CHECK(pthread_mutex_lock(&handover->lock) == 0);
    handover->is_answered = true;
    CHECK(pthread_cond_signal(&handover->answered) == 0);
    CHECK(pthread_mutex_unlock(&handover->lock) == 0);
}

/* False when the engine does not take it. */
static bool hand_over(struct engine *engine, struct handover *handover)
{
    bool took = engine_deliver(engine, &handover->delivery);

    if (took) {
        CHECK(pthread_mutex_lock(&handover->lock) == 0);
        while (!handover->is_answered) {
            CHECK(pthread_cond_wait(&handover->answered, &handover->lock) == 0);
        }
        CHECK(pthread_mutex_unlock(&handover->lock) == 0);
    }
    (void)pthread_cond_destroy(&handover->answered);
    (void)pthread_mutex_destroy(&handover->lock);
    return took;
}

/* When it happened, as far as its source would know. */
static int64_t event_wall_ms(const struct envelope *original)
{
    int64_t ms = original->kind == ENVELOPE_KAFKA ? original->timestamp_ms
                                                  : original->received_wall_ms;

    return ms > 0 ? ms : 0;
}

static void answer_delivery(const struct letter *letter,
                            const struct handover *handover)
{
    const struct arrival *arrival = &handover->arrival;

    switch (handover->delivery.result) {
    case DELIVERY_ACCEPTED:
        if (arrival->answer == ANSWER_DEAD) {
            answer(letter, "refused", arrival->state,
                   "older than the ids that are remembered");
        } else {
            answer(letter, "delivered", arrival->state,
                   "not known here: delivered as a new event");
        }
        return;
    case DELIVERY_DUPLICATE:
        answer(letter, "nothing-to-do", arrival->state,
               "it was delivered meanwhile");
        return;
    case DELIVERY_MISMATCH:
        answer(letter, "refused", arrival->state,
               "the id is known with other content");
        return;
    case DELIVERY_NO_ROOM:
        admin_problem(letter->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "the store is full");
        return;
    case DELIVERY_STOPPED_ROUTE:
        admin_problem(letter->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "the route is stopped: its dead letters are full");
        return;
    case DELIVERY_FENCED:
        break;
    }
    UNREACHABLE("only deliveries with an assignment are fenced");
}

static void deliver(const struct letter *letter, uint64_t order_key)
{
    struct handover handover = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .answered = PTHREAD_COND_INITIALIZER,
    };
    struct arrival *arrival = &handover.arrival;

    arrival->route = letter->index;
    arrival->tenant = letter->tenant;
    arrival->id = letter->id;
    arrival->order_key = order_key;
    arrival->envelope = buf_slice(&letter->flat);
    arrival->event_wall_ms =
        letter->assume_not_applied ? 0 : event_wall_ms(&letter->original);
    event_fingerprint(letter->original.body, &arrival->fingerprint);
    handover.delivery.arrivals = arrival;
    handover.delivery.n_arrivals = 1;
    handover.delivery.answer = take_back;
    handover.delivery.item.cost_bytes = sizeof handover + letter->flat.len;
    if (hand_over(letter->request->admin->engine, &handover)) {
        answer_delivery(letter, &handover);
    } else {
        admin_problem(letter->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "the worker takes nothing in now");
    }
}

/* Why an event that the store does not know is not run; NULL: it may be. */
static const char *problem_as_new(const struct letter *letter)
{
    if (letter->flat.len == 0) {
        return "not known here, and what arrived is not in the letter";
    }
    return letter->route->retired ? "the route is retired" : NULL;
}

/* False after the problem was answered. */
static bool read_order(const struct letter *letter, uint64_t *key)
{
    struct buf scratch = BUF_INIT;
    const char *why = NULL;
    bool ok = event_read_order(&letter->route->order_by, &letter->original,
                               &scratch, key, &why);

    buf_free(&scratch);
    return ok || refuse_value(letter, "the ordering key", why);
}

static void run_as_new(const struct letter *letter,
                       const struct letter_look *look)
{
    const char *problem = problem_as_new(letter);
    uint64_t order_key;

    if (problem != NULL) {
        answer(letter, "refused", RECORD_NONE, problem);
    } else if (look->may_be_forgotten && !letter->assume_not_applied) {
        answer(letter, "in-doubt", RECORD_NONE,
               "not known here, but older than what the store remembers: it "
               "may have been handled");
    } else if (!read_order(letter, &order_key)) {
        return;
    } else if (letter->dry_run) {
        answer(letter, "delivered", RECORD_NONE,
               "not known here: to be delivered as a new event");
    } else {
        deliver(letter, order_key);
    }
}

/* --- an event that the store knows --------------------------------------- */

static bool count_replay(void *ctx, const struct store_audit *audit)
{
    struct letter_look *look = ctx;

    look->replays += audit->move == MOVE_REPLAYED ? 1 : 0;
    return true;
}

static void look_at_event(void *ctx, struct store *store,
                          struct store_entry *entry)
{
    struct letter_look *look = ctx;

    look->is_known = true;
    look->replays = 0;
    look->state = entry->record.state;
    if (!store_each_audit(store, entry, count_replay, look, &look->err)) {
        look->has_failed = true;
    }
}

static bool find_namespace(const struct store *store, const char *name,
                           uint16_t *number)
{
    const char *known;

    for (*number = 0; (known = store_namespace_name(store, *number)) != NULL;
         (*number)++) {
        if (strcmp(known, name) == 0) {
            return true;
        }
    }
    return false;
}

static void look_for_traces(void *ctx, struct store *store,
                            struct store_entry *unused)
{
    struct letter_look *look = ctx;
    const struct letter *letter = look->letter;
    int64_t happened_ms = event_wall_ms(&letter->original);
    struct store_entry entry = {.expired_seq = 0};
    uint16_t namespace;

    (void)unused;
    look->has_failed =
        find_namespace(store, letter->route->namespace, &namespace) &&
        store_find(store, namespace, letter->tenant, letter->id, &entry,
                   &look->err) == STORE_FAILED;
    look->may_be_forgotten =
        happened_ms > 0 &&
        (happened_ms < store_forgotten_until_ms(store) ||
         (entry.expired_seq != 0 && happened_ms <= entry.expired_ms));
}

/* False after the problem was answered. */
static bool look(const struct letter *letter, struct letter_look *look)
{
    struct admin *admin = letter->request->admin;
    struct admin_order orders[] = {
        {.command = {.kind = COMMAND_READ,
                     .route = SIZE_MAX,
                     .read = look_for_traces}},
        {.command = {.kind = COMMAND_READ,
                     .route = letter->index,
                     .tenant = letter->tenant,
                     .id = letter->id,
                     .read = look_at_event}},
    };

    for (size_t i = 0; i < 2; i++) {
        orders[i].command.actor = "";
        orders[i].command.ctx = look;
    }
    admin_run(admin, orders, 2);
    for (size_t i = 0; i < 2; i++) {
        if (orders[i].command.status == COMMAND_BUSY) {
            admin_problem(letter->request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                          orders[i].command.why);
            return false;
        }
    }
    if (look->has_failed) {
        admin_failed(letter->request, &look->err);
    }
    return !look->has_failed;
}

static void replay(const struct letter *letter, const struct letter_look *look)
{
    struct admin_order order = {
        .command = {.kind = COMMAND_REPLAY,
                    .actor = letter->request->actor,
                    .note = letter->why,
                    .route = letter->index,
                    .tenant = letter->tenant,
                    .id = letter->id,
                    .assume_not_applied = letter->assume_not_applied,
                    .dry_run = letter->dry_run},
    };
    const struct command *command = &order.command;

    admin_run(letter->request->admin, &order, 1);
    switch (command->status) {
    case COMMAND_DONE:
        answer(letter, "replayed", command->state, command->why);
        return;
    case COMMAND_NOTHING_TO_DO:
    case COMMAND_IN_DOUBT:
    case COMMAND_REFUSED:
        answer(letter, admin_status_name(command->status), command->state,
               command->why);
        return;
    case COMMAND_NOT_FOUND: /* gone in between */
        run_as_new(letter, look);
        return;
    case COMMAND_BUSY:
        admin_problem(letter->request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                      command->why);
        return;
    }
    UNREACHABLE("every status is answered");
}

/* Why an event is left as it is; NULL: it is not. */
static const char *reason_to_leave(enum record_state state)
{
    switch (state) {
    case RECORD_NONE:
    case RECORD_DEAD:
        return NULL;
    case RECORD_PENDING:
        return "it waits for its next attempt";
    case RECORD_RUNNING:
        return "an attempt is under way";
    case RECORD_UNCERTAIN:
        return "it is uncertain, and not dead";
    case RECORD_SUCCEEDED:
        return "it has succeeded";
    case RECORD_FAILED:
        return "it has failed for good";
    }
    UNREACHABLE("every state returns");
}

static void run(const struct letter *letter)
{
    struct letter_look found = {.letter = letter};
    const char *leave;

    if (!look(letter, &found)) {
        return;
    }
    leave = reason_to_leave(found.state);
    if (leave != NULL) {
        answer(letter, "nothing-to-do", found.state, leave);
    } else if (letter->max_replays > 0 &&
               letter->replays + found.replays >= letter->max_replays) {
        answer(letter, "skipped", found.state,
               "it was replayed that often already");
    } else if (found.is_known) {
        replay(letter, &found);
    } else {
        run_as_new(letter, &found);
    }
}

/* --- the endpoint -------------------------------------------------------- */

/* Without an id the letter was written by somebody else: what arrived is the
 * event of the route that the message itself would be. */
static void serve_as_message(struct letter *letter)
{
    const struct envelope *original = &letter->original;

    if (letter->flat.len == 0) {
        (void)refuse_body(letter, "id", "is missing, and so is \"request\"");
    } else if (!letter->route->has_kafka_source ||
               original->kind != ENVELOPE_KAFKA) {
        (void)refuse_body(letter, "id",
                          "is missing: no message of a topic is an event of "
                          "this route");
    } else if (!is_topic_of(letter->route, original->topic)) {
        answer(letter, "other-topic", RECORD_NONE,
               "it comes from a topic that the route does not read");
    } else if (read_names(letter)) {
        run(letter);
    }
}

void admin_replay_letter(struct admin_request *request)
{
    static const char *const members[] = {
        "route",   "tenant",  "id",
        "request", "replays", "max_replays",
        "dry_run", "why",     "assume_not_applied",
        NULL};
    struct letter letter = {.request = request};
    json_t *body = admin_body_with_nul(request, members);

    if (body != NULL && take_letter(&letter, body)) {
        if (letter.id.len > 0) {
            run(&letter);
        } else {
            serve_as_message(&letter);
        }
    }
    buf_free(&letter.names);
    buf_free(&letter.flat);
    json_decref(body);
}
