/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "app/admin_internal.h"
#include "base/check.h"
#include "base/text.h"
#include "core/envelope.h"

/* --- members of the body ------------------------------------------------- */

bool admin_get_bool(struct admin_request *request, const json_t *body,
                    const char *name, bool *out)
{
    const json_t *member = json_object_get(body, name);

    *out = json_is_true(member);
    if (member != NULL && !json_is_boolean(member)) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "\"%s\" must be true or false", name);
        return false;
    }
    return true;
}

bool admin_get_why(struct admin_request *request, const json_t *body,
                   const char **out)
{
    const json_t *member = json_object_get(body, "why");
    struct slice text;

    *out = json_string_value(member);
    text = slice_of(*out);
    if (member == NULL) {
        return true;
    }
    if (*out == NULL || text.len > STORE_TEXT_MAX / 2 ||
        strcspn(*out, "\r\n\t\x1b\x7f") < text.len) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "\"why\" must be one line of at most %d bytes",
                      STORE_TEXT_MAX / 2);
        return false;
    }
    return true;
}

/* --- answers ------------------------------------------------------------- */

static unsigned http_status(enum command_status status)
{
    switch (status) {
    case COMMAND_DONE:
    case COMMAND_NOTHING_TO_DO:
        return MHD_HTTP_OK;
    case COMMAND_IN_DOUBT:
    case COMMAND_REFUSED:
        return MHD_HTTP_CONFLICT;
    case COMMAND_NOT_FOUND:
        return MHD_HTTP_NOT_FOUND;
    case COMMAND_BUSY:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    UNREACHABLE("every status has an answer");
}

static void answer_order(struct admin_request *request,
                         const struct command *command)
{
    unsigned status = http_status(command->status);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:b}", "route", request->segments[2],
                  "result", admin_status_name(command->status), "why",
                  command->why, "dry_run", command->dry_run);

    CHECK(json != NULL);
    if (command->id.len > 0) {
        (void)json_object_set_new(json, "id",
                                  json_string(request->segments[3]));
    }
    if (command->id.len > 0 && command->status != COMMAND_NOT_FOUND &&
        command->status != COMMAND_BUSY) {
        (void)json_object_set_new(
            json, "state", json_string(record_state_name(command->state)));
    }
    if (status >= 400) {
        (void)json_object_set_new(
            json, "title", json_string(MHD_get_reason_phrase_for(status)));
        (void)json_object_set_new(json, "status", json_integer(status));
        (void)json_object_set_new(json, "detail", json_string(command->why));
    }
    admin_answer(request, status, json);
}

/* --- orders on one event ------------------------------------------------- */

/* What a resolved event's callers get from now on. */
static bool take_result(struct admin_request *request, const json_t *body,
                        struct buf *flat)
{
    const json_t *status = json_object_get(body, "status");
    const json_t *text = json_object_get(body, "body");
    const json_t *base64 = json_object_get(body, "body_base64");
    struct result result = {.status = MHD_HTTP_OK};
    struct buf bytes = BUF_INIT;
    const char *problem = NULL;

    if (status == NULL && text == NULL && base64 == NULL) {
        return true;
    }
    if (status != NULL && (json_integer_value(status) < 200 ||
                           json_integer_value(status) > 599)) {
        problem = "\"status\" must be 200 to 599";
    } else if (text != NULL && base64 != NULL) {
        problem = "either \"body\" or \"body_base64\"";
    } else if ((text != NULL && !json_is_string(text)) ||
               (base64 != NULL &&
                (!json_is_string(base64) ||
                 !text_unbase64(slice_of(json_string_value(base64)),
                                &bytes)))) {
        problem = "\"body\" must be a string, \"body_base64\" base64";
    }
    if (problem != NULL) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST, "%s", problem);
    } else {
        if (status != NULL) {
            result.status = (uint16_t)json_integer_value(status);
        }
        result.body = text != NULL ? (struct slice){json_string_value(text),
                                                    json_string_length(text)}
                                   : buf_slice(&bytes);
        result_encode(&result, flat);
    }
    buf_free(&bytes);
    return problem == NULL;
}

/* Runs the order with what stands in the body for all of them. */
static void run_on_event(struct admin_request *request, json_t *body,
                         struct command *command)
{
    struct admin_order order = {.command = *command};

    order.command.actor = request->actor;
    order.command.route = admin_route(request, request->segments[2]);
    order.command.tenant = slice_of(admin_parameter(request, "tenant"));
    order.command.id = slice_of(request->segments[3]);
    if (request->status == 0 && admin_event_ok(request) &&
        admin_get_bool(request, body, "dry_run", &order.command.dry_run) &&
        admin_get_why(request, body, &order.command.note)) {
        admin_run(request->admin, &order, 1);
        answer_order(request, &order.command);
    }
}

void admin_replay(struct admin_request *request)
{
    static const char *const members[] = {"assume_not_applied", "dry_run",
                                          "why", NULL};
    struct command command = {.kind = COMMAND_REPLAY};
    json_t *body = admin_body(request, members);

    if (body != NULL && admin_get_bool(request, body, "assume_not_applied",
                                       &command.assume_not_applied)) {
        run_on_event(request, body, &command);
    }
    json_decref(body);
}

void admin_rerun(struct admin_request *request)
{
    static const char *const members[] = {"dry_run", "why", NULL};
    struct command command = {.kind = COMMAND_RERUN};
    json_t *body = admin_body(request, members);

    if (body != NULL) {
        run_on_event(request, body, &command);
    }
    json_decref(body);
}

void admin_discard(struct admin_request *request)
{
    static const char *const members[] = {"dry_run", "why", NULL};
    struct command command = {.kind = COMMAND_DISCARD};
    json_t *body = admin_body(request, members);

    if (body != NULL) {
        run_on_event(request, body, &command);
    }
    json_decref(body);
}

static bool resolve_ok(struct admin_request *request, const json_t *body)
{
    const json_t *applied = json_object_get(body, "applied");

    if (!json_is_boolean(applied)) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "\"applied\" must be true or false");
        return false;
    }
    if (json_is_false(applied) &&
        (json_object_get(body, "status") != NULL ||
         json_object_get(body, "body") != NULL ||
         json_object_get(body, "body_base64") != NULL)) {
        admin_problem(request, MHD_HTTP_BAD_REQUEST,
                      "a result goes with \"applied\": true");
        return false;
    }
    return true;
}

void admin_resolve(struct admin_request *request)
{
    static const char *const members[] = {
        "applied", "status", "body", "body_base64", "dry_run", "why", NULL};
    struct command command = {.kind = COMMAND_RESOLVE_NOT_APPLIED};
    json_t *body = admin_body(request, members);
    struct buf flat = BUF_INIT;

    if (body != NULL && resolve_ok(request, body) &&
        take_result(request, body, &flat)) {
        if (json_is_true(json_object_get(body, "applied"))) {
            command.kind = COMMAND_RESOLVE_APPLIED;
            command.result = buf_slice(&flat);
        }
        run_on_event(request, body, &command);
    }
    json_decref(body);
    buf_free(&flat);
}

/* --- orders on a route --------------------------------------------------- */

static void run_on_route(struct admin_request *request, enum command_kind kind)
{
    static const char *const members[] = {"dry_run", NULL};
    json_t *body = admin_body(request, members);
    struct admin_order order = {.command = {.kind = kind}};

    if (body == NULL) {
        return;
    }
    order.command.actor = request->actor;
    order.command.route = admin_route(request, request->segments[2]);
    if (request->status == 0 &&
        admin_get_bool(request, body, "dry_run", &order.command.dry_run)) {
        admin_run(request->admin, &order, 1);
        answer_order(request, &order.command);
    }
    json_decref(body);
}

void admin_pause(struct admin_request *request)
{
    run_on_route(request, COMMAND_PAUSE);
}

void admin_resume(struct admin_request *request)
{
    run_on_route(request, COMMAND_RESUME);
}
