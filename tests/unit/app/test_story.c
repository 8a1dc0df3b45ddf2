/* SPDX-License-Identifier: MIT */
#include "app/story.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/check.h"
#include "core/envelope.h"
#include "support/world.h"

/* Reads one event in full, on the engine's thread. */
struct told {
    json_t *event;
    bool ok;
};

static void read_full(void *ctx, struct store *store, struct store_entry *entry)
{
    struct told *told = ctx;
    struct err err;

    told->ok = story_event_full(&told->event, store, entry, &err);
}

static void done(struct command *command)
{
    (void)command;
}

static json_t *tell(struct world *world, const char *id)
{
    struct told told = {.event = NULL};
    struct command command = {
        .kind = COMMAND_READ,
        .actor = "",
        .route = 0,
        .id = slice_of(id),
        .read = read_full,
        .ctx = &told,
        .done = done,
    };

    CHECK(engine_command(world->engine, &command));
    world_turn(world);
    cr_assert(command.status == COMMAND_DONE);
    cr_assert(told.ok);
    return told.event;
}

static void assert_json(json_t *got, const char *want)
{
    json_error_t error;
    json_t *expected = json_loads(want, 0, &error);
    char *text = json_dumps(got, JSON_INDENT(1));

    cr_assert(expected != NULL, "the test's JSON: %s", error.text);
    cr_assert(json_equal(got, expected), "got %s", text);
    free(text);
    json_decref(expected);
    json_decref(got);
}

Test(story, a_first_success_is_told_from_its_record_alone)
{
    struct world world;

    world_init(&world);
    world_open(&world);
    (void)world_deliver(&world, 0, "evt_1", "{}");
    world.ms += 250;
    world_end(&world, "evt_1", END_STATUS, 200);
    assert_json(
        tell(&world, "evt_1"),
        "{\"route\": \"a\", \"tenant\": \"\", \"id\": \"evt_1\","
        " \"state\": \"SUCCEEDED\", \"run\": 1, \"attempts\": 1,"
        " \"deliveries\": 1, \"first_seen\": \"1970-01-01T00:16:40.000Z\","
        " \"last_seen\": \"1970-01-01T00:16:40.000Z\","
        " \"changed\": \"1970-01-01T00:16:40.250Z\", \"due\": null,"
        " \"reason\": null, \"code\": null, \"why\": null, \"drift\": 0,"
        " \"idempotency_key\": \"RGMJJJFL4OJKGYL6OMPNGBIIJARJYANG\","
        " \"request\": {\"method\": \"POST\", \"path\": \"/a\", \"query\": "
        "\"\","
        "  \"received\": \"1970-01-01T00:16:40.000Z\", \"headers\": [],"
        "  \"body\": \"{}\"},"
        " \"result\": {\"status\": 200, \"headers\": [], \"body\": \"\"},"
        " \"history\": ["
        "  {\"at\": \"1970-01-01T00:16:40.000Z\", \"what\": \"received\","
        "   \"attempt\": null, \"run\": null, \"actor\": null, \"why\": null},"
        "  {\"at\": \"1970-01-01T00:16:40.250Z\", \"what\": \"succeeded\","
        "   \"attempt\": 1, \"run\": 1, \"actor\": null, \"why\": null}]}");
    world_fini(&world);
}

/* Delivers a message in place of the request of world_send. */
static json_t *request_of_message(const struct envelope *envelope)
{
    struct world world;
    struct buf flat = BUF_INIT;
    struct sent *sent;
    json_t *event, *request;

    world_init(&world);
    world_open(&world);
    envelope_encode(envelope, &flat);
    sent = world_send(&world, 0, "evt_1", "");
    sent->arrivals[0].envelope = buf_slice(&flat);
    world_turn(&world);
    cr_assert(sent->answered);
    event = tell(&world, "evt_1");
    request = json_incref(json_object_get(event, "request"));
    json_decref(event);
    world_end(&world, "evt_1", END_STATUS, 200);
    sent_free(sent);
    buf_free(&flat);
    world_fini(&world);
    return request;
}

Test(story, a_message_is_told_with_its_place_key_and_headers)
{
    struct buf headers = BUF_INIT;
    struct envelope envelope = {
        .kind = ENVELOPE_KAFKA,
        .received_wall_ms = 1000000,
        .topic = SLICE("orders"),
        .partition = 3,
        .offset = 4200000000,
        .timestamp_ms = 999500,
        .key = SLICE("c7"),
        .has_key = true,
        .body = SLICE("{}"),
        .has_body = true,
    };

    headers_add(&headers, SLICE("trace"), SLICE("x"));
    headers_add_null(&headers, SLICE("gone"));
    headers_add(&headers, SLICE("auth-token"), SLICE("hidden"));
    envelope.headers.flat = buf_slice(&headers);
    assert_json(request_of_message(&envelope),
                "{\"topic\": \"orders\", \"partition\": 3,"
                " \"offset\": 4200000000, \"key\": \"c7\","
                " \"timestamp\": \"1970-01-01T00:16:39.500Z\","
                " \"received\": \"1970-01-01T00:16:40.000Z\","
                " \"headers\": [[\"trace\", \"x\"], [\"gone\", null],"
                " [\"auth-token\", \"***\"]], \"body\": \"{}\"}");
    buf_free(&headers);
}

Test(story, what_a_message_does_not_have_is_null)
{
    const struct envelope envelope = {
        .kind = ENVELOPE_KAFKA,
        .received_wall_ms = 1000000,
        .topic = SLICE("t"),
        .timestamp_ms = -1,
    };

    assert_json(request_of_message(&envelope),
                "{\"topic\": \"t\", \"partition\": 0, \"offset\": 0,"
                " \"key\": null, \"timestamp\": null, \"headers\": [],"
                " \"received\": \"1970-01-01T00:16:40.000Z\","
                " \"body\": null}");
}

static const char *history_of(json_t *event)
{
    static char text[512];
    const json_t *row;
    size_t i, len = 0;

    json_array_foreach(json_object_get(event, "history"), i, row)
    {
        const char *what = json_string_value(json_object_get(row, "what"));
        const char *actor = json_string_value(json_object_get(row, "actor"));

        len += (size_t)snprintf(
            text + len, sizeof text - len, "%s %lld%s%s; ", what,
            (long long)json_integer_value(json_object_get(row, "attempt")),
            actor == NULL ? "" : " ", actor == NULL ? "" : actor);
    }
    json_decref(event);
    return text;
}

Test(story, a_later_success_and_its_orders_are_told_from_the_history)
{
    struct world world;

    world_init(&world);
    world_open(&world);
    (void)world_deliver(&world, 0, "evt_1", "{}");
    cr_assert_str_eq(history_of(tell(&world, "evt_1")),
                     "received 0; started 1; ");
    world_end(&world, "evt_1", END_STATUS, 404);
    cr_assert(world_order(&world, COMMAND_REPLAY, 0, "evt_1") == COMMAND_DONE);
    world_end(&world, "evt_1", END_STATUS, 200);
    cr_assert_str_eq(history_of(tell(&world, "evt_1")),
                     "received 0; dead 1; replayed 1 tester; started 2; "
                     "succeeded 2; ");
    world_fini(&world);
}

Test(story, bytes_that_are_no_text_stand_in_base64)
{
    json_t *object = json_object();

    story_set_bytes(object, "body", SLICE("\xff\x00\x01"));
    story_set_bytes(object, "text", SLICE("caf\xc3\xa9"));
    assert_json(object, "{\"body_base64\": \"/wAB\", \"text\": \"café\"}");
}

Test(story, a_header_of_old_bytes_is_read_as_latin_1)
{
    json_t *text = story_text(SLICE("caf\xe9"));

    cr_assert_str_eq(json_string_value(text), "café");
    json_decref(text);
}

Test(story, credentials_are_known_by_their_names)
{
    static const char *const secret[] = {
        "Authorization",           "cookie",         "Set-Cookie",
        "Proxy-Authorization",     "X-API-Key",      "Stripe-Signature",
        "X-Hub-Signature-256",     "X-Gitlab-Token", "X-Shopify-Hmac-Sha256",
        "Paypal-Transmission-Sig",
    };
    static const char *const open[] = {"Content-Type", "webhook-id",
                                       "X-GitHub-Event", "Date", "Host"};

    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++) {
        cr_expect(story_is_credential(slice_of(secret[i])), "%s", secret[i]);
    }
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        cr_expect(!story_is_credential(slice_of(open[i])), "%s", open[i]);
    }
}
