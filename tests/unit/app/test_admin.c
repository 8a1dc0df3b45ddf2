/* SPDX-License-Identifier: MIT */
#include "app/admin.h"

#include <criterion/criterion.h>
#include <sys/stat.h>

#include "app/client.h"
#include "support/operator.h"

static const char *const operate = "operate-secret";

/* An event on route a that ended so. */
static void ended(struct office *office, const char *id, enum attempt_end end,
                  int status)
{
    (void)world_deliver(&office->world, 0, id, "{}");
    world_end(&office->world, id, end, status);
}

/* Asks over the socket and gives the JSON of the answer. */
static json_t *ask(const struct office *office, const char *method,
                   const char *target, const char *body, int want)
{
    const struct office_call call = {
        .method = method, .target = target, .body = body};
    struct buf answer = BUF_INIT;
    int status = office_ask(office, &call, &answer);
    const char *json = strstr(buf_cstr(&answer), "\r\n\r\n");
    json_error_t error;
    json_t *root;

    cr_assert(json != NULL);
    cr_assert(status == want, "%s %s: %d, %s", method, target, status, json);
    root = json_loads(json, 0, &error);
    cr_assert(root != NULL, "%s: %s", error.text, json);
    buf_free(&answer);
    return root;
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value == NULL ? "(none)" : value;
}

Test(admin, rights_and_targets_are_checked_before_the_engine_sees_anything)
{
    static const struct {
        struct office_call call;
        int status;
        const char *says;
    } rows[] = {
        {{true, NULL, "GET", "/healthz", NULL}, 200, "ok"},
        {{true, NULL, "GET", "/readyz", NULL}, 200, "ready"},
        {{true, NULL, "HEAD", "/readyz", NULL}, 200, ""},
        {{true, NULL, "GET", "/metrics", NULL}, 200, ""},
        {{true, NULL, "GET", "/v1/status", NULL}, 401, "Bearer"},
        {{true, "nonsense", "GET", "/v1/status", NULL}, 401, "Bearer"},
        {{true, "read-secre", "GET", "/v1/status", NULL}, 401, "Bearer"},
        {{true, "read-secret", "GET", "/v1/status", NULL}, 200, "\"ready\""},
        {{true, "read-secret", "POST", "/v1/routes/a/pause", NULL},
         403,
         "role"},
        {{true, "operate-secret", "GET", "/v1/events", NULL}, 200, "events"},
        {{false, NULL, "GET", "/v1/events", NULL}, 200, "events"},
        {{false, NULL, "GET", "/v1/nothing", NULL}, 404, "problem+json"},
        {{false, NULL, "GET", "/v1/events/a", NULL}, 404, "problem+json"},
        {{false, NULL, "DELETE", "/v1/events", NULL}, 405, "Allow: GET"},
        {{false, NULL, "GET", "/v1/replay", NULL}, 405, "Allow: POST"},
        {{false, NULL, "GET", "/v1/events?stat=DEAD", NULL}, 400, "stat"},
        {{false, NULL, "GET", "/v1/events?state=GONE", NULL}, 400, "PENDING"},
        {{false, NULL, "GET", "/v1/events?reason=x", NULL}, 400, "exhausted"},
        {{false, NULL, "GET", "/v1/events?since=long", NULL}, 400, "since"},
        {{false, NULL, "GET", "/v1/events?limit=0", NULL}, 400, "1000"},
        {{false, NULL, "GET", "/v1/events?limit=1001", NULL}, 400, "1000"},
        {{false, NULL, "GET", "/v1/events?cursor=x", NULL}, 400, "cursor"},
        {{false, NULL, "GET", "/v1/events?route=c", NULL}, 404, "no route"},
        {{false, NULL, "GET", "/v1/events?limit=1&limit=2", NULL}, 400, ""},
        {{false, NULL, "GET", "/v1/events/a/%zz", NULL}, 400, "target"},
        {{false, NULL, "GET", "/v1/events/a/%00", NULL}, 400, "target"},
        {{false, NULL, "GET", "/v1/events/a/%0a", NULL}, 400, "control"},
        {{false, NULL, "GET", "/v1/events/c/x", NULL}, 404, "no route"},
        {{false, NULL, "GET", "/v1/events/a/x", NULL}, 404, "no event"},
        {{false, NULL, "POST", "/v1/replay", "[]"}, 400, "object"},
        {{false, NULL, "POST", "/v1/replay", "{\"a\":1}"}, 400, "unknown"},
        {{false, NULL, "POST", "/v1/replay", "{\"rate\":\"5\"}"}, 400, "50/s"},
        {{false, NULL, "POST", "/v1/replay", "{\"rate\":\"0/s\"}"},
         400,
         "50/s"},
        {{false, NULL, "POST", "/v1/replay", "{\"limit\":0}"}, 400, "limit"},
        {{false, NULL, "POST", "/v1/replay", "{\"route\":\"c\"}"}, 404, "c"},
        {{true, "read-secret", "POST", "/v1/backup", "{\"path\":\"/x\"}"},
         403,
         "role"},
        {{false, NULL, "GET", "/v1/backup", NULL}, 405, "Allow: POST"},
        {{false, NULL, "POST", "/v1/backup", "{}"}, 400, "absolute"},
        {{false, NULL, "POST", "/v1/backup", "{\"path\":\"here\"}"},
         400,
         "absolute"},
        {{false, NULL, "POST", "/v1/events/a/x/resolve", "{}"}, 400, "applied"},
        {{false, NULL, "POST", "/v1/events/a/x/resolve",
          "{\"applied\":false,\"status\":200}"},
         400,
         "applied"},
        {{false, NULL, "POST", "/v1/events/a/x/resolve",
          "{\"applied\":true,\"status\":99}"},
         400,
         "status"},
        {{false, NULL, "POST", "/v1/events/a/x/discard", "{\"dry_run\":1}"},
         400,
         "dry_run"},
        {{false, NULL, "POST", "/v1/events/a/x/discard",
          "{\"why\":\"two\\nlines\"}"},
         400,
         "one line"},
        {{false, NULL, "POST", "/v1/events/a/x/replay", NULL}, 404, "known"},
    };
    struct office office;
    struct buf answer = BUF_INIT;

    office_init(&office);
    office_open(&office);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = office_ask(&office, &rows[i].call, &answer);

        cr_expect(status == rows[i].status, "%s %s: %d", rows[i].call.method,
                  rows[i].call.target, status);
        cr_expect(strstr(buf_cstr(&answer), rows[i].says) != NULL, "%s %s: %s",
                  rows[i].call.method, rows[i].call.target, buf_cstr(&answer));
    }
    buf_free(&answer);
    office_close(&office);
    office_fini(&office);
}

Test(admin, a_body_over_the_limit_is_refused)
{
    struct office office;
    struct buf answer = BUF_INIT, body = BUF_INIT;
    struct office_call call = {.method = "POST",
                               .target = "/v1/events/a/x/resolve"};

    office_init(&office);
    office_open(&office);
    buf_reserve(&body, ADMIN_BODY_MAX + 2);
    memset(body.data, ' ', ADMIN_BODY_MAX + 1);
    body.len = ADMIN_BODY_MAX + 1;
    call.body = buf_cstr(&body);
    cr_assert(office_ask(&office, &call, &answer) == 413);
    buf_free(&body);
    buf_free(&answer);
    office_close(&office);
    office_fini(&office);
}

Test(admin, is_not_ready_before_it_is_told_so_nor_while_intake_is_stopped)
{
    const struct office_call call = {.method = "GET", .target = "/readyz"};
    struct office office;
    struct buf answer = BUF_INIT;

    office_init(&office);
    office_open(&office);
    admin_set_ready(office.admin, false);
    cr_assert(office_ask(&office, &call, &answer) == 503);
    admin_set_ready(office.admin, true);
    cr_assert(office_ask(&office, &call, &answer) == 200);
    engine_stop_intake(office.world.engine);
    cr_assert(office_ask(&office, &call, &answer) == 503);
    buf_free(&answer);
    office_close(&office);
    office_fini(&office);
}

Test(admin, the_socket_is_its_owners_alone_and_cannot_be_taken_twice)
{
    struct office office;
    struct admin *second = NULL;
    struct admin_options options;
    struct err err;
    struct stat status;

    office_init(&office);
    office_open(&office);
    options = (struct admin_options){.config = &office.config,
                                     .engine = office.world.engine,
                                     .store = office.world.store};
    cr_assert(stat(office.socket, &status) == 0);
    cr_assert((status.st_mode & 0777) == 0600);
    cr_assert(!admin_start(&second, &options, &err));
    cr_assert(err.kind == ERR_AGAIN, "%s", err.text);
    office_close(&office);
    cr_assert(access(office.socket, F_OK) != 0);
    office_fini(&office);
}

Test(admin, a_socket_that_a_dead_worker_left_is_replaced)
{
    struct office office;
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    office_init(&office);
    memcpy(local.sun_path, office.socket, sizeof office.socket);
    cr_assert(bind(fd, (struct sockaddr *)&local, sizeof local) == 0);
    cr_assert(close(fd) == 0);
    office_open(&office);
    json_decref(ask(&office, "GET", "/v1/status", NULL, 200));
    office_close(&office);
    office_fini(&office);
}

Test(admin, events_are_listed_newest_first_in_pages)
{
    struct office office;
    json_t *page, *events;
    char target[64];

    office_init(&office);
    ended(&office, "one", END_STATUS, 200);
    ended(&office, "two", END_STATUS, 404);
    ended(&office, "three", END_STATUS, 200);
    office_open(&office);
    page = ask(&office, "GET", "/v1/events?limit=2", NULL, 200);
    events = json_object_get(page, "events");
    cr_assert(json_array_size(events) == 2);
    cr_assert_str_eq(text(json_array_get(events, 0), "id"), "three");
    cr_assert_str_eq(text(json_array_get(events, 1), "id"), "two");
    (void)snprintf(target, sizeof target, "/v1/events?cursor=%s",
                   text(page, "cursor"));
    json_decref(page);
    page = ask(&office, "GET", target, NULL, 200);
    events = json_object_get(page, "events");
    cr_assert(json_array_size(events) == 1);
    cr_assert_str_eq(text(json_array_get(events, 0), "id"), "one");
    cr_assert(json_is_null(json_object_get(page, "cursor")));
    json_decref(page);
    page =
        ask(&office, "GET", "/v1/events?state=dead&reason=refused", NULL, 200);
    events = json_object_get(page, "events");
    cr_assert(json_array_size(events) == 1);
    cr_assert_str_eq(text(json_array_get(events, 0), "id"), "two");
    json_decref(page);
    office_close(&office);
    office_fini(&office);
}

Test(admin, any_id_can_be_named_in_a_target)
{
    static const char *const ids[][2] = {
        {"a/b", "a%2Fb"},     {"..", ".."},
        {"a+b", "a+b"},       {"caf\xc3\xa9", "caf%C3%A9"},
        {"a%2Fb", "a%252Fb"}, {"a b?c", "a%20b%3fc"},
    };
    enum { IDS = sizeof ids / sizeof ids[0] };
    struct office office;
    char target[64];

    office_init(&office);
    for (size_t i = 0; i < IDS; i++) {
        ended(&office, ids[i][0], END_STATUS, 200);
    }
    office_open(&office);
    for (size_t i = 0; i < IDS; i++) {
        json_t *event;

        (void)snprintf(target, sizeof target, "/v1/events/a/%s", ids[i][1]);
        event = ask(&office, "GET", target, NULL, 200);
        cr_expect_str_eq(text(event, "id"), ids[i][0]);
        json_decref(event);
    }
    office_close(&office);
    office_fini(&office);
}

Test(admin, an_order_says_what_it_did_and_who_gave_it_is_kept)
{
    const struct office_call by_token = {
        .tcp = true,
        .token = operate,
        .method = "POST",
        .target = "/v1/events/a/dead/replay",
        .body = "{\"why\":\"the handler is mended\"}"};
    struct office office;
    struct buf answer = BUF_INIT;
    json_t *said, *row;

    office_init(&office);
    ended(&office, "dead", END_STATUS, 404);
    ended(&office, "fine", END_STATUS, 200);
    office_open(&office);
    said = ask(&office, "POST", "/v1/events/a/fine/replay", "{}", 200);
    cr_assert_str_eq(text(said, "result"), "nothing-to-do");
    cr_assert_str_eq(text(said, "state"), "SUCCEEDED");
    json_decref(said);
    said = ask(&office, "POST", "/v1/events/a/dead/replay",
               "{\"dry_run\":true}", 200);
    cr_assert_str_eq(text(said, "result"), "done");
    cr_assert(json_is_true(json_object_get(said, "dry_run")));
    json_decref(said);
    said = ask(&office, "GET", "/v1/events/a/dead", NULL, 200);
    cr_assert_str_eq(text(said, "state"), "DEAD");
    json_decref(said);
    cr_assert(office_ask(&office, &by_token, &answer) == 200);
    said = ask(&office, "GET", "/v1/events/a/dead", NULL, 200);
    cr_assert_str_eq(text(said, "state"), "RUNNING");
    row = json_array_get(json_object_get(said, "history"), 2);
    cr_assert_str_eq(text(row, "what"), "replayed");
    cr_assert_str_eq(text(row, "actor"), "ops");
    cr_assert(strstr(text(row, "why"), "the handler is mended") != NULL);
    json_decref(said);
    buf_free(&answer);
    office_close(&office);
    office_fini(&office);
}

Test(admin, a_doubtful_event_is_not_replayed_but_can_be_resolved)
{
    struct office office;
    json_t *said, *result;

    office_init(&office);
    world_close(&office.world);
    office.world.routes[0].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world_open(&office.world);
    ended(&office, "doubt", END_TIMEOUT, 0);
    office_open(&office);
    said = ask(&office, "POST", "/v1/events/a/doubt/replay", NULL, 409);
    cr_assert_str_eq(text(said, "result"), "in-doubt");
    json_decref(said);
    said = ask(&office, "POST", "/v1/replay", "{\"route\":\"a\"}", 200);
    cr_assert(json_integer_value(json_object_get(said, "matched")) == 1);
    cr_assert(json_integer_value(json_object_get(said, "replayed")) == 0);
    cr_assert(json_integer_value(json_object_get(said, "skipped_in_doubt")) ==
              1);
    json_decref(said);
    said =
        ask(&office, "POST", "/v1/events/a/doubt/resolve",
            "{\"applied\":true,\"status\":201,\"body_base64\":\"/wA=\"}", 200);
    cr_assert_str_eq(text(said, "state"), "SUCCEEDED");
    json_decref(said);
    said = ask(&office, "GET", "/v1/events/a/doubt", NULL, 200);
    result = json_object_get(said, "result");
    cr_assert(json_integer_value(json_object_get(result, "status")) == 201);
    cr_assert_str_eq(text(result, "body_base64"), "/wA=");
    json_decref(said);
    office_close(&office);
    office_fini(&office);
}

Test(admin, a_filtered_replay_takes_the_oldest_first_and_counts)
{
    struct office office;
    char id[16];
    json_t *said;

    office_init(&office);
    office.world.routes[0].concurrency = 1;
    world_close(&office.world);
    world_open(&office.world);
    for (int i = 0; i < 70; i++) {
        (void)snprintf(id, sizeof id, "evt-%d", i);
        ended(&office, id, END_STATUS, 404);
    }
    office_open(&office);
    said = ask(&office, "POST", "/v1/replay",
               "{\"reason\":\"refused\",\"dry_run\":true}", 200);
    cr_assert(json_integer_value(json_object_get(said, "matched")) == 70);
    cr_assert(json_integer_value(json_object_get(said, "replayed")) == 70);
    json_decref(said);
    said = ask(&office, "POST", "/v1/replay", "{\"limit\":66}", 200);
    cr_assert(json_integer_value(json_object_get(said, "matched")) == 70);
    cr_assert(json_integer_value(json_object_get(said, "replayed")) == 66);
    json_decref(said);
    office_close(&office);
    cr_assert(world_record(&office.world, 0, "evt-65").state != RECORD_DEAD);
    cr_assert(world_record(&office.world, 0, "evt-66").state == RECORD_DEAD);
    cr_assert(world_attempt(&office.world, "evt-0") != NULL);
    office_fini(&office);
}

Test(admin, a_paused_route_is_told_by_the_status)
{
    struct office office;
    json_t *said, *route;

    office_init(&office);
    office_open(&office);
    said = ask(&office, "POST", "/v1/routes/b/pause", NULL, 200);
    cr_assert_str_eq(text(said, "result"), "done");
    json_decref(said);
    said = ask(&office, "POST", "/v1/routes/b/pause", NULL, 200);
    cr_assert_str_eq(text(said, "result"), "nothing-to-do");
    json_decref(said);
    said = ask(&office, "GET", "/v1/status", NULL, 200);
    route = json_array_get(json_object_get(said, "routes"), 1);
    cr_assert_str_eq(text(route, "name"), "b");
    cr_assert(json_is_true(json_object_get(route, "paused")));
    json_decref(said);
    office_close(&office);
    office_fini(&office);
}

Test(admin, the_client_tells_nobody_there_from_an_answer)
{
    struct client_request request = {.target = "/v1/status"};
    struct office office;
    json_t *answer;
    long status = 0;
    struct err err;

    office_init(&office);
    request.socket = office.socket;
    cr_assert(!client_call(&request, &status, &answer, &err));
    cr_assert(err.kind == ERR_UNREACHABLE);
    cr_assert(strstr(err.text, office.socket) != NULL);
    office_open(&office);
    cr_assert(client_call(&request, &status, &answer, &err));
    cr_assert(status == 200);
    json_decref(answer);
    office_close(&office);
    office_fini(&office);
}
