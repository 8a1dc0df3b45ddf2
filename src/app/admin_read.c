/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "app/admin_internal.h"
#include "app/kafka_view.h"
#include "app/listing.h"
#include "app/story.h"
#include "base/check.h"
#include "base/metrics.h"

/* --- for machines -------------------------------------------------------- */

static void answer_text(struct admin_request *request, unsigned status,
                        const char *text)
{
    buf_add_str(&request->answer, text);
    request->status = status;
    request->content_type = "text/plain; charset=utf-8";
}

void admin_health(struct admin_request *request)
{
    if (engine_is_turning(request->admin->engine)) {
        answer_text(request, MHD_HTTP_OK, "ok\n");
    } else {
        answer_text(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    "the engine does not turn\n");
    }
}

void admin_ready(struct admin_request *request)
{
    struct admin *admin = request->admin;

    if (admin->ready && engine_is_accepting(admin->engine)) {
        answer_text(request, MHD_HTTP_OK, "ready\n");
    } else {
        answer_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready\n");
    }
}

/* Runs `read` on the engine's thread, without an event. */
static bool run_read(struct admin_request *request,
                     void (*read)(void *, struct store *, struct store_entry *),
                     void *ctx)
{
    struct admin_order order = {.command = {.kind = COMMAND_READ,
                                            .actor = "",
                                            .route = SIZE_MAX,
                                            .read = read,
                                            .ctx = ctx}};

    admin_run(request->admin, &order, 1);
    if (order.command.status == COMMAND_DONE) {
        return true;
    }
    admin_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                  order.command.why);
    return false;
}

struct metrics_look {
    struct engine *engine;
    int64_t now_ms; /* store time */
};

static void read_gauges(void *ctx, struct store *store,
                        struct store_entry *entry)
{
    struct metrics_look *look = ctx;

    (void)entry;
    engine_set_gauges(look->engine);
    look->now_ms = store_now_ms(store);
}

void admin_metrics(struct admin_request *request)
{
    struct metrics_look look = {.engine = request->admin->engine};

    if (run_read(request, read_gauges, &look)) {
        kafka_view_set_metrics(request->admin->kafka, look.now_ms);
        metrics_write(&request->answer);
        request->status = MHD_HTTP_OK;
        request->content_type = "text/plain; version=0.0.4; charset=utf-8";
    }
}

/* --- status -------------------------------------------------------------- */

struct status_look {
    struct admin *admin;
    json_t *store, *routes;
    int64_t now_ms; /* store time */
};

static json_t *route_status(const struct status_look *look, size_t i,
                            const struct store *store,
                            const struct store_stats *stats)
{
    const struct config_route *route = &look->admin->config->routes[i];
    uint16_t number = engine_route_number(look->admin->engine, i);
    const uint64_t *n = stats->counts[number];

    return json_pack("{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
                     route->name, "paused", store_is_paused(store, number),
                     "retired", route->retired,                    /* */
                     "pending", (json_int_t)n[RECORD_PENDING],     /* */
                     "running", (json_int_t)n[RECORD_RUNNING],     /* */
                     "uncertain", (json_int_t)n[RECORD_UNCERTAIN], /* */
                     "succeeded", (json_int_t)n[RECORD_SUCCEEDED], /* */
                     "failed", (json_int_t)n[RECORD_FAILED],       /* */
                     "dead", (json_int_t)n[RECORD_DEAD]);
}

static void read_status(void *ctx, struct store *store,
                        struct store_entry *entry)
{
    struct status_look *look = ctx;
    struct store_stats *stats = mem_new(1, sizeof *stats);

    (void)entry;
    store_stats(store, stats);
    look->now_ms = store_now_ms(store);
    look->store = json_pack(
        "{s:o, s:I, s:I, s:I, s:b, s:I}", "path",
        story_text(slice_of(store_path(store))), "bytes",
        (json_int_t)stats->bytes, "max_bytes", (json_int_t)stats->max_bytes,
        "remembered", (json_int_t)stats->remembered, "full", stats->full,
        "effective_retention_ms", (json_int_t)stats->effective_retention_ms);
    look->routes = json_array();
    for (size_t i = 0; i < look->admin->config->n_routes; i++) {
        json_t *route = route_status(look, i, store, stats);

        CHECK(json_array_append_new(look->routes, route) == 0);
    }
    free(stats);
}

static const char *state_of(struct admin *admin)
{
    if (admin_is_ending(admin) || !engine_is_accepting(admin->engine)) {
        return "stopping";
    }
    return admin->ready ? "ready" : "starting";
}

void admin_status(struct admin_request *request)
{
    struct status_look look = {.admin = request->admin};

    if (run_read(request, read_status, &look)) {
        admin_answer(
            request, MHD_HTTP_OK,
            json_pack("{s:s, s:s, s:o, s:o, s:o}", "version", ONCED_VERSION,
                      "state", state_of(request->admin), "store", look.store,
                      "routes", look.routes, "kafka",
                      kafka_view_json(request->admin->kafka, look.now_ms)));
    } else {
        json_decref(look.store);
        json_decref(look.routes);
    }
}

/* --- events -------------------------------------------------------------- */

void admin_events(struct admin_request *request)
{
    const struct listing listing = {
        .route = admin_parameter(request, "route"),
        .state = admin_parameter(request, "state"),
        .reason = admin_parameter(request, "reason"),
        .since = admin_parameter(request, "since"),
        .limit = admin_parameter(request, "limit"),
        .cursor = admin_parameter(request, "cursor"),
    };
    /* The listing reads what is durable: repeats of the last second, too. */
    struct admin_order flush = {
        .command = {.kind = COMMAND_FLUSH, .actor = "", .route = SIZE_MAX}};
    struct err err;
    json_t *page;

    admin_run(request->admin, &flush, 1);
    if (listing_json(&listing, request->admin->store,
                     clock_wall_ms(clock_system()), &page, &err)) {
        admin_answer(request, MHD_HTTP_OK, page);
    } else {
        admin_failed(request, &err);
    }
}

struct event_look {
    json_t *event; /* NULL: see err */
    struct err err;
};

static void read_event(void *ctx, struct store *store,
                       struct store_entry *entry)
{
    struct event_look *look = ctx;

    if (!story_event_full(&look->event, store, entry, &look->err)) {
        look->event = NULL;
    }
}

void admin_event(struct admin_request *request)
{
    struct event_look look = {.event = NULL};
    struct admin_order order = {
        .command = {.kind = COMMAND_READ,
                    .actor = "",
                    .route = admin_route(request, request->segments[2]),
                    .tenant = slice_of(admin_parameter(request, "tenant")),
                    .id = slice_of(request->segments[3]),
                    .read = read_event,
                    .ctx = &look},
    };

    if (request->status != 0 || !admin_event_ok(request)) {
        return;
    }
    admin_run(request->admin, &order, 1);
    if (order.command.status == COMMAND_NOT_FOUND) {
        admin_problem(request, MHD_HTTP_NOT_FOUND, "no event \"%s\" on \"%s\"",
                      request->segments[3], request->segments[2]);
    } else if (order.command.status != COMMAND_DONE) {
        json_decref(look.event); /* read in a batch that was put off */
        admin_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                      order.command.why);
    } else if (look.event == NULL) {
        admin_failed(request, &look.err);
    } else {
        admin_answer(request, MHD_HTTP_OK, look.event);
    }
}
