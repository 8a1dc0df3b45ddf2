/* SPDX-License-Identifier: MIT */
/*
 * The filtered replay: every dead letter that matches is ordered to be
 * attempted again, oldest first. The orders go to the engine in batches that
 * share commits, not faster than asked for.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "app/admin_internal.h"
#include "app/listing.h"
#include "app/story.h"
#include "base/check.h"
#include "base/text.h"

enum {
    MATCHES_MAX = 1000000,
    RATE_MAX = 1000000,
    BUSY_WAIT_MS = 200,
    BUSY_TRIES = 50,
};

/* Tenant and id stand one behind the other in `text`. */
struct match {
    size_t at;
    uint64_t origin; /* when it came; its place may be newer */
    uint16_t route;
    uint8_t tenant_len, id_len;
};

struct replay {
    struct admin_request *request;
    /* what was asked for */
    struct listing listing;
    bool dry_run, assume_not_applied;
    uint64_t per_second; /* 0: as fast as it goes */
    uint64_t limit;
    const char *why;
    /* what matches, newest first */
    struct match *matches;
    size_t n, cap;
    struct buf text;
    bool more; /* there are more than can be held */
    /* what came of it */
    uint64_t replayed, in_doubt, nothing, refused, busy;
};

/* --- the matches --------------------------------------------------------- */

static bool add_match(void *ctx, const struct store_entry *entry)
{
    struct replay *replay = ctx;

    if (replay->n == MATCHES_MAX) {
        replay->more = true;
        return false;
    }
    if (replay->n == replay->cap) {
        replay->cap = replay->cap == 0 ? 256 : replay->cap * 2;
        replay->matches =
            mem_grow(replay->matches, replay->cap, sizeof *replay->matches);
    }
    replay->matches[replay->n++] = (struct match){
        .at = replay->text.len,
        .origin = entry->origin,
        .route = entry->record.route,
        .tenant_len = entry->tenant_len,
        .id_len = entry->id_len,
    };
    buf_add_slice(&replay->text, store_entry_tenant(entry));
    buf_add_slice(&replay->text, store_entry_id(entry));
    return true;
}

static int compare_down(const void *a, const void *b)
{
    uint64_t x = ((const struct match *)a)->origin;
    uint64_t y = ((const struct match *)b)->origin;

    return x < y ? 1 : x > y ? -1 : 0;
}

static bool collect(struct replay *replay, struct err *err)
{
    struct store *store = replay->request->admin->store;
    struct store_filter filter;

    if (!listing_filter(&replay->listing, store, clock_wall_ms(clock_system()),
                        &filter, err)) {
        return false;
    }
    filter.has_state = true;
    filter.state = RECORD_DEAD;
    if (!store_list(store, &filter, add_match, replay, err)) {
        return false;
    }
    if (replay->n > 0) {
        qsort(replay->matches, replay->n, sizeof *replay->matches,
              compare_down);
    }
    return true;
}

/* --- the orders ---------------------------------------------------------- */

static void make_order(const struct replay *replay, const struct match *match,
                       struct admin_order *order)
{
    const struct admin *admin = replay->request->admin;
    const char *route = store_route_name(admin->store, match->route);
    const char *text = replay->text.data + match->at;

    *order = (struct admin_order){
        .command = {.kind = COMMAND_REPLAY,
                    .actor = replay->request->actor,
                    .note = replay->why,
                    .route = engine_route_index(admin->engine, slice_of(route)),
                    .tenant = {text, match->tenant_len},
                    .id = {text + match->tenant_len, match->id_len},
                    .assume_not_applied = replay->assume_not_applied,
                    .dry_run = replay->dry_run},
    };
}

static void count(struct replay *replay, enum command_status status)
{
    switch (status) {
    case COMMAND_DONE:
        replay->replayed++;
        return;
    case COMMAND_IN_DOUBT:
        replay->in_doubt++;
        return;
    case COMMAND_NOTHING_TO_DO:
    case COMMAND_NOT_FOUND: /* gone in between */
        replay->nothing++;
        return;
    case COMMAND_REFUSED:
        replay->refused++;
        return;
    case COMMAND_BUSY:
        replay->busy++;
        return;
    }
    UNREACHABLE("every status is counted");
}

/* Those that found no room are tried again for a while. */
static void run_again(struct replay *replay, struct admin_order *order)
{
    for (int i = 0; i < BUSY_TRIES && order->command.status == COMMAND_BUSY &&
                    admin_wait(replay->request->admin, BUSY_WAIT_MS);
         i++) {
        admin_run(replay->request->admin, order, 1);
    }
}

/* The oldest `n` of the first `end` matches, oldest first. */
static void run_batch(struct replay *replay, size_t end, size_t n)
{
    struct admin_order orders[ADMIN_BATCH];
    size_t n_orders = 0;

    CHECK(n <= ADMIN_BATCH);
    for (size_t i = 0; i < n; i++) {
        struct admin_order *order = &orders[n_orders];

        make_order(replay, &replay->matches[end - 1 - i], order);
        if (order->command.route == SIZE_MAX) {
            replay->refused++; /* its route is not configured any more */
        } else {
            n_orders++;
        }
    }
    admin_run(replay->request->admin, orders, n_orders);
    for (size_t i = 0; i < n_orders; i++) {
        run_again(replay, &orders[i]);
        count(replay, orders[i].command.status);
    }
}

/* A caller who went away wants no more. */
static bool caller_is_there(const struct replay *replay)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        replay->request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd fd = {.fd = info->connect_fd, .events = POLLRDHUP};

    return poll(&fd, 1, 0) == 0;
}

/* So many at one time that a batch takes a tenth of a second, or one. */
static size_t batch_size(const struct replay *replay)
{
    uint64_t size = replay->per_second / 10;

    if (replay->per_second == 0 || size > ADMIN_BATCH) {
        return ADMIN_BATCH;
    }
    return size == 0 ? 1 : (size_t)size;
}

static void run_all(struct replay *replay)
{
    const size_t size = batch_size(replay);
    size_t left = replay->n;
    size_t todo = replay->limit < replay->n ? (size_t)replay->limit : replay->n;

    while (todo > 0) {
        size_t n = todo < size ? todo : size;

        run_batch(replay, left, n);
        left -= n;
        todo -= n;
        if (todo > 0 &&
            (!caller_is_there(replay) ||
             !admin_wait(replay->request->admin,
                         replay->per_second == 0
                             ? 0
                             : (int64_t)(n * 1000 / replay->per_second)))) {
            return;
        }
    }
}

/* --- what was asked for -------------------------------------------------- */

static bool take_text(struct replay *replay, const json_t *body,
                      const char *name, const char **out)
{
    const json_t *member = json_object_get(body, name);

    *out = json_string_value(member);
    if (member != NULL && *out == NULL) {
        admin_problem(replay->request, MHD_HTTP_BAD_REQUEST,
                      "\"%s\" must be a string", name);
        return false;
    }
    return true;
}

/* "50/s" */
static bool take_rate(struct replay *replay, const json_t *body)
{
    const char *rate;
    struct slice text;

    if (!take_text(replay, body, "rate", &rate)) {
        return false;
    }
    if (rate == NULL) {
        return true;
    }
    text = slice_of(rate);
    text.len = slice_find(text, '/');
    if (strcmp(rate + text.len, "/s") != 0 ||
        !text_u64(text, &replay->per_second) || replay->per_second == 0 ||
        replay->per_second > RATE_MAX) {
        admin_problem(replay->request, MHD_HTTP_BAD_REQUEST,
                      "\"rate\" must be like \"50/s\"");
        return false;
    }
    return true;
}

static bool take_limit(struct replay *replay, const json_t *body)
{
    const json_t *limit = json_object_get(body, "limit");

    replay->limit = MATCHES_MAX;
    if (limit == NULL) {
        return true;
    }
    if (json_integer_value(limit) < 1 ||
        json_integer_value(limit) > MATCHES_MAX) {
        admin_problem(replay->request, MHD_HTTP_BAD_REQUEST,
                      "\"limit\" must be 1 to %d", MATCHES_MAX);
        return false;
    }
    replay->limit = (uint64_t)json_integer_value(limit);
    return true;
}

static bool take_order(struct replay *replay, const json_t *body)
{
    struct admin_request *request = replay->request;

    return admin_get_bool(request, body, "dry_run", &replay->dry_run) &&
           admin_get_bool(request, body, "assume_not_applied",
                          &replay->assume_not_applied) &&
           admin_get_why(request, body, &replay->why) &&
           take_text(replay, body, "route", &replay->listing.route) &&
           take_text(replay, body, "reason", &replay->listing.reason) &&
           take_text(replay, body, "since", &replay->listing.since) &&
           take_rate(replay, body) && take_limit(replay, body);
}

/* --- the endpoint -------------------------------------------------------- */

static json_t *counts_json(const struct replay *replay)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}",       /* */
                     "matched", (json_int_t)replay->n,                 /* */
                     "replayed", (json_int_t)replay->replayed,         /* */
                     "skipped_in_doubt", (json_int_t)replay->in_doubt, /* */
                     "nothing_to_do", (json_int_t)replay->nothing,     /* */
                     "refused", (json_int_t)replay->refused,           /* */
                     "no_room", (json_int_t)replay->busy,              /* */
                     "dry_run", replay->dry_run, "more", replay->more);
}

static void serve(struct replay *replay, const json_t *body)
{
    struct err err;

    if (!take_order(replay, body)) {
        return;
    }
    if (!collect(replay, &err)) {
        admin_failed(replay->request, &err);
        return;
    }
    /* It may take long, and the library would give the connection up. */
    (void)MHD_set_connection_option(replay->request->connection,
                                    MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    replay->request->is_last = true;
    run_all(replay);
    admin_answer(replay->request, MHD_HTTP_OK, counts_json(replay));
}

void admin_replay_all(struct admin_request *request)
{
    static const char *const members[] = {
        "route", "reason",  "since", "rate", "limit", "assume_not_applied",
        "why",   "dry_run", NULL};
    struct replay replay = {.request = request};
    json_t *body = admin_body(request, members);

    if (body == NULL) {
        return;
    }
    serve(&replay, body);
    free(replay.matches);
    buf_free(&replay.text);
    json_decref(body);
}
