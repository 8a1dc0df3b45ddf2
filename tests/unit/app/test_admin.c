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
        {{true, "read-secret", "POST", "/v1/replay/letter", "{}"}, 403, "role"},
        {{false, NULL, "GET", "/v1/replay/letter", NULL}, 405, "Allow: POST"},
        {{false, NULL, "POST", "/v1/replay/letter", "{}"}, 400, "route"},
        {{false, NULL, "POST", "/v1/replay/letter", "{\"x\":1}"}, 400, "unkn"},
        {{false, NULL, "POST", "/v1/replay/letter", "{\"route\":\"a\\u0000\"}"},
         400,
         "route"},
        {{false, NULL, "POST", "/v1/replay/letter", "{\"route\":\"c\"}"},
         404,
         "no route"},
        {{false, NULL, "POST", "/v1/replay/letter", "{\"route\":\"a\"}"},
         400,
         "\\\"id\\\" is missing"},
        {{false, NULL, "POST", "/v1/replay/letter",
          "{\"route\":\"a\",\"id\":\"x\\u0000\"}"},
         400,
         "control"},
        {{false, NULL, "POST", "/v1/replay/letter",
          "{\"route\":\"a\",\"id\":\"x\",\"replays\":-1}"},
         400,
         "replays"},
        {{false, NULL, "POST", "/v1/replay/letter",
          "{\"route\":\"a\",\"id\":\"x\",\"request\":{\"path\":\"/\"}}"},
         400,
         "method"},
        {{false, NULL, "POST", "/v1/replay/letter",
          "{\"route\":\"a\",\"id\":\"x\",\"request\":null}"},
         409,
         "not in the letter"},
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

/* --- dead letters from elsewhere ------------------------------------------ */

enum { LETTER_WALL_MS = 1000000 }; /* 00:16:40 of the first day */

static const char webhook[] =
    "{\"method\":\"POST\",\"path\":\"/a\",\"query\":null,"
    "\"received\":\"1970-01-01T00:16:40.000Z\","
    "\"headers\":[[\"n\",\"\\u0000\"],[\"b\",{\"base64\":\"/wA=\"}]],"
    "\"body_base64\":\"/wD+\"}";

/* Gives the result of the order. */
static json_t *letter(const struct office *office, const char *members,
                      const char *request, int want)
{
    struct buf body = BUF_INIT;
    json_t *said;

    buf_printf(&body, "{\"request\":%s,%s}", request, members);
    said = ask(office, "POST", "/v1/replay/letter", buf_cstr(&body), want);
    buf_free(&body);
    return said;
}

static void expect_letter(const struct office *office, const char *members,
                          const char *request, const char *result)
{
    bool is_refused =
        strcmp(result, "refused") == 0 || strcmp(result, "in-doubt") == 0;
    json_t *said = letter(office, members, request, is_refused ? 409 : 200);

    cr_expect_str_eq(text(said, "result"), result, "%s: %s, %s", members,
                     text(said, "result"), text(said, "why"));
    json_decref(said);
}

Test(admin, a_letter_of_a_known_event_is_ruled_by_its_state)
{
    struct office office;

    office_init(&office);
    world_close(&office.world);
    office.world.routes[0].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world_open(&office.world);
    ended(&office, "fine", END_STATUS, 200);
    ended(&office, "dead", END_STATUS, 404);
    ended(&office, "doubt", END_TIMEOUT, 0);
    office_open(&office);
    expect_letter(&office, "\"route\":\"a\",\"id\":\"fine\"", webhook,
                  "nothing-to-do");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"doubt\"", webhook,
                  "in-doubt");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"dead\",\"dry_run\":true",
                  webhook, "replayed");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"dead\"", "null",
                  "replayed");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"dead\"", webhook,
                  "nothing-to-do");
    office_close(&office);
    cr_expect_eq(world_history(&office.world, 0, "dead", MOVE_REPLAYED), 1);
    cr_expect_eq(world_record(&office.world, 0, "dead").run, 1);
    world_end(&office.world, "dead", END_STATUS, 404);
    office_open(&office);
    expect_letter(&office, "\"route\":\"a\",\"id\":\"dead\",\"max_replays\":1",
                  "null", "skipped");
    expect_letter(&office,
                  "\"route\":\"a\",\"id\":\"dead\",\"max_replays\":3,"
                  "\"replays\":2",
                  "null", "skipped");
    expect_letter(&office,
                  "\"route\":\"a\",\"id\":\"dead\",\"max_replays\":3,"
                  "\"replays\":1",
                  "null", "replayed");
    expect_letter(&office,
                  "\"route\":\"a\",\"id\":\"doubt\","
                  "\"assume_not_applied\":true",
                  "null", "replayed");
    office_close(&office);
    office_fini(&office);
}

Test(admin, a_letter_of_an_unknown_event_is_a_new_one_once)
{
    struct office office;
    const struct attempt *attempt;
    struct slice value;

    office_init(&office);
    office_open(&office);
    expect_letter(&office, "\"route\":\"a\",\"id\":\"new\",\"dry_run\":true",
                  webhook, "delivered");
    expect_letter(&office,
                  "\"route\":\"a\",\"id\":\"new\",\"max_replays\":1,"
                  "\"replays\":1",
                  webhook, "skipped");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"new\"", "null", "refused");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"new\"", webhook,
                  "delivered");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"new\"", webhook,
                  "nothing-to-do");
    office.routes[1].retired = true;
    expect_letter(&office, "\"route\":\"b\",\"id\":\"new\"", webhook,
                  "refused");
    office_close(&office);
    cr_expect_eq(office.world.started, 1);
    attempt = world_attempt(&office.world, "new");
    cr_assert(attempt != NULL);
    cr_expect(attempt->envelope.kind == ENVELOPE_HTTP);
    cr_expect(slice_eq(attempt->envelope.body, SLICE("\xff\x00\xfe")));
    cr_expect(slice_eq(attempt->envelope.path, SLICE("/a")));
    cr_expect_not(attempt->envelope.has_query);
    cr_expect_eq(attempt->envelope.received_wall_ms, LETTER_WALL_MS);
    cr_expect(headers_find(&attempt->envelope.headers, SLICE("n"), &value));
    cr_expect(slice_eq(value, SLICE("\0")));
    cr_expect(headers_find(&attempt->envelope.headers, SLICE("b"), &value));
    cr_expect(slice_eq(value, SLICE("\xff\0")));
    office_fini(&office);
}

Test(admin, a_letter_from_before_what_is_remembered_needs_a_persons_word)
{
    struct office office;
    struct err err;

    office_init(&office);
    cr_assert(store_begin(office.world.store, &err));
    store_forget_until(office.world.store, LETTER_WALL_MS + 1);
    cr_assert(store_commit(office.world.store, &err));
    office_open(&office);
    expect_letter(&office, "\"route\":\"a\",\"id\":\"old\"", webhook,
                  "in-doubt");
    expect_letter(&office, "\"route\":\"a\",\"id\":\"old\",\"dry_run\":true",
                  webhook, "in-doubt");
    expect_letter(&office,
                  "\"route\":\"a\",\"id\":\"old\",\"assume_not_applied\":true",
                  webhook, "delivered");
    office_close(&office);
    cr_expect(world_attempt(&office.world, "old") != NULL);
    office_fini(&office);
}

static void add_value(struct value *value, const char *expression)
{
    const struct slice term = slice_of(expression);
    struct err err;

    cr_assert(value_add_choice(value, &term, 1, &err), "%s", err.text);
}

Test(admin, a_letter_without_an_id_gets_it_by_the_rule_of_the_route)
{
    static const char message[] =
        "{\"topic\":\"t\",\"partition\":3,\"offset\":4294967298,"
        "\"timestamp_ms\":-1,\"received\":\"1970-01-01T00:16:40.000Z\","
        "\"key\":null,\"headers\":[[\"who\",\"acme\"]],\"body\":\"{\\\"n\\\":7}"
        "\"}";
    static const char other[] =
        "{\"topic\":\"t2\",\"partition\":3,\"offset\":1,\"timestamp_ms\":-1,"
        "\"received\":\"1970-01-01T00:16:40.000Z\",\"key\":null,"
        "\"headers\":[],\"body\":\"x\"}";
    static char topic[] = "t";
    static char *topics[] = {topic, NULL};
    struct office office;
    json_t *said;

    office_init(&office);
    office.routes[0].has_kafka_source = true;
    office.routes[0].kafka.topics.items = topics;
    office.routes[0].kafka.topics.n = 1;
    add_value(&office.routes[0].id, "kafka:position");
    add_value(&office.routes[0].tenant, "kafka:header:who");
    add_value(&office.routes[0].order_by, "json:/n");
    office_open(&office);
    said = letter(&office, "\"route\":\"a\"", message, 200);
    cr_expect_str_eq(text(said, "result"), "delivered");
    cr_expect_str_eq(text(said, "id"), "t/3/4294967298");
    cr_expect_str_eq(text(said, "tenant"), "acme");
    cr_expect_str_eq(text(said, "state"), "RUNNING");
    json_decref(said);
    expect_letter(&office, "\"route\":\"a\"", message, "nothing-to-do");
    expect_letter(&office, "\"route\":\"a\"", other, "other-topic");
    json_decref(letter(&office, "\"route\":\"a\"", webhook, 400));
    json_decref(letter(&office, "\"route\":\"b\"", message, 400));
    said = letter(&office, "\"route\":\"a\",\"id\":\"x\",\"tenant\":\"t\"",
                  other, 400);
    cr_expect(strstr(text(said, "detail"), "the ordering key: ") != NULL);
    json_decref(said);
    office_close(&office);
    cr_expect_neq(world_attempt(&office.world, "t/3/4294967298"), NULL);
    value_free(&office.routes[0].id);
    value_free(&office.routes[0].tenant);
    value_free(&office.routes[0].order_by);
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
    cr_assert(json_is_array(json_object_get(said, "kafka")));
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
