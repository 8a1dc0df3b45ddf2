/* SPDX-License-Identifier: MIT */
/*
 * Orders on all events that match: a replay of dead letters, a rerun of
 * successes, oldest first. They go to the engine in batches that share
 * commits, not faster than asked for.
 */
#include <inttypes.h>
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
    uint32_t run;
    uint16_t route;
    uint8_t tenant_len, id_len;
};

struct bulk {
    struct admin_request *request;
    enum command_kind kind; /* COMMAND_REPLAY, COMMAND_RERUN */
    /* what was asked for */
    struct listing listing;
    bool dry_run;
    bool assume_not_applied; /* a replay */
    bool again;              /* a rerun: also what was run again before */
    uint64_t per_second;     /* 0: as fast as it goes */
    uint64_t limit;
    const char *why;
    /* what matches, newest first */
    struct match *matches;
    size_t n, cap;
    struct buf text;
    bool more; /* there are more than can be held */
    /* what came of it */
    uint64_t done, in_doubt, nothing, refused, busy, not_kept, retired;
    uint64_t run_before; /* at a later run than the first: left out */
    uint64_t left;       /* it did not come to them */
    bool cut_short;      /* the worker stops, or the caller is gone */
};

/* --- the matches --------------------------------------------------------- */

static bool add_match(void *ctx, const struct store_entry *entry)
{
    struct bulk *bulk = ctx;

    if (bulk->kind == COMMAND_RERUN && !bulk->again && entry->record.run > 1) {
        bulk->run_before++;
        return true;
    }
    if (bulk->n == MATCHES_MAX) {
        bulk->more = true;
        return false;
    }
    if (bulk->n == bulk->cap) {
        bulk->cap = bulk->cap == 0 ? 256 : bulk->cap * 2;
        bulk->matches =
            mem_grow(bulk->matches, bulk->cap, sizeof *bulk->matches);
    }
    bulk->matches[bulk->n++] = (struct match){
        .at = bulk->text.len,
        .origin = entry->origin,
        .run = entry->record.run,
        .route = entry->record.route,
        .tenant_len = entry->tenant_len,
        .id_len = entry->id_len,
    };
    buf_add_slice(&bulk->text, store_entry_tenant(entry));
    buf_add_slice(&bulk->text, store_entry_id(entry));
    return true;
}

static int compare_down(const void *a, const void *b)
{
    uint64_t x = ((const struct match *)a)->origin;
    uint64_t y = ((const struct match *)b)->origin;

    return x < y ? 1 : x > y ? -1 : 0;
}

static bool collect(struct bulk *bulk, struct err *err)
{
    struct store *store = bulk->request->admin->store;
    struct store_filter filter;

    if (!listing_filter(&bulk->listing, store, clock_wall_ms(clock_system()),
                        &filter, err)) {
        return false;
    }
    filter.has_state = true;
    filter.state = bulk->kind == COMMAND_RERUN ? RECORD_SUCCEEDED : RECORD_DEAD;
    if (!store_list(store, &filter, add_match, bulk, err)) {
        return false;
    }
    if (bulk->n > 0) {
        qsort(bulk->matches, bulk->n, sizeof *bulk->matches, compare_down);
    }
    return true;
}

/* --- the orders ---------------------------------------------------------- */

static void make_order(const struct bulk *bulk, const struct match *match,
                       struct admin_order *order)
{
    const struct admin *admin = bulk->request->admin;
    const char *route = store_route_name(admin->store, match->route);
    const char *text = bulk->text.data + match->at;

    *order = (struct admin_order){
        .command = {.kind = bulk->kind,
                    .actor = bulk->request->actor,
                    .note = bulk->why,
                    .route = engine_route_index(admin->engine, slice_of(route)),
                    .tenant = {text, match->tenant_len},
                    .id = {text + match->tenant_len, match->id_len},
                    .assume_not_applied = bulk->assume_not_applied,
                    .dry_run = bulk->dry_run},
    };
    if (bulk->kind == COMMAND_RERUN) {
        order->command.only_run = match->run; /* not twice by two orders */
    }
}

static void count(struct bulk *bulk, const struct command *command)
{
    switch (command->status) {
    case COMMAND_DONE:
        bulk->done++;
        return;
    case COMMAND_IN_DOUBT:
        bulk->in_doubt++;
        return;
    case COMMAND_NOTHING_TO_DO:
    case COMMAND_NOT_FOUND: /* gone in between */
        bulk->nothing++;
        return;
    case COMMAND_REFUSED:
        *(command->not_kept  ? &bulk->not_kept
          : command->retired ? &bulk->retired
                             : &bulk->refused) += 1;
        return;
    case COMMAND_BUSY:
        bulk->busy++;
        return;
    }
    UNREACHABLE("every status is counted");
}

/* Those that found no room are tried again for a while. */
static void run_again(struct bulk *bulk, struct admin_order *order)
{
    for (int i = 0; i < BUSY_TRIES && order->command.status == COMMAND_BUSY &&
                    admin_wait(bulk->request->admin, BUSY_WAIT_MS);
         i++) {
        admin_run(bulk->request->admin, order, 1);
    }
}

/* The oldest `n` of the first `end` matches, oldest first. */
static void run_batch(struct bulk *bulk, size_t end, size_t n)
{
    struct admin_order orders[ADMIN_BATCH];
    size_t n_orders = 0;

    CHECK(n <= ADMIN_BATCH);
    for (size_t i = 0; i < n; i++) {
        struct admin_order *order = &orders[n_orders];

        make_order(bulk, &bulk->matches[end - 1 - i], order);
        if (order->command.route == SIZE_MAX) {
            bulk->refused++; /* its route is not configured any more */
        } else {
            n_orders++;
        }
    }
    admin_run(bulk->request->admin, orders, n_orders);
    for (size_t i = 0; i < n_orders; i++) {
        run_again(bulk, &orders[i]);
        count(bulk, &orders[i].command);
    }
}

/* So many at one time that a batch takes a tenth of a second, or one. */
static size_t batch_size(const struct bulk *bulk)
{
    uint64_t size = bulk->per_second / 10;

    if (bulk->per_second == 0 || size > ADMIN_BATCH) {
        return ADMIN_BATCH;
    }
    return size == 0 ? 1 : (size_t)size;
}

/* After `n` of them, when it is time for the next. */
static bool may_go_on(const struct bulk *bulk, size_t n)
{
    int64_t wait_ms =
        bulk->per_second == 0 ? 0 : (int64_t)(n * 1000 / bulk->per_second);

    return admin_caller_is_there(bulk->request) &&
           admin_wait(bulk->request->admin, wait_ms);
}

static void run_all(struct bulk *bulk)
{
    const size_t size = batch_size(bulk);
    size_t todo = bulk->limit < bulk->n ? (size_t)bulk->limit : bulk->n;

    bulk->left = bulk->n;
    while (todo > 0 && !bulk->cut_short) {
        size_t n = todo < size ? todo : size;

        run_batch(bulk, (size_t)bulk->left, n);
        bulk->left -= n;
        todo -= n;
        bulk->cut_short = todo > 0 && !may_go_on(bulk, n);
    }
}

/* --- what was asked for -------------------------------------------------- */

static bool take_text(struct bulk *bulk, const json_t *body, const char *name,
                      const char **out)
{
    const json_t *member = json_object_get(body, name);

    *out = json_string_value(member);
    if (member != NULL && *out == NULL) {
        admin_problem(bulk->request, MHD_HTTP_BAD_REQUEST,
                      "\"%s\" must be a string", name);
        return false;
    }
    return true;
}

/* "50/s" */
static bool take_rate(struct bulk *bulk, const json_t *body)
{
    const char *rate;
    struct slice text;

    if (!take_text(bulk, body, "rate", &rate)) {
        return false;
    }
    if (rate == NULL) {
        return true;
    }
    text = slice_of(rate);
    text.len = slice_find(text, '/');
    if (strcmp(rate + text.len, "/s") != 0 ||
        !text_u64(text, &bulk->per_second) || bulk->per_second == 0 ||
        bulk->per_second > RATE_MAX) {
        admin_problem(bulk->request, MHD_HTTP_BAD_REQUEST,
                      "\"rate\" must be like \"50/s\"");
        return false;
    }
    return true;
}

static bool take_limit(struct bulk *bulk, const json_t *body)
{
    const json_t *limit = json_object_get(body, "limit");

    bulk->limit = MATCHES_MAX;
    if (limit == NULL) {
        return true;
    }
    if (json_integer_value(limit) < 1 ||
        json_integer_value(limit) > MATCHES_MAX) {
        admin_problem(bulk->request, MHD_HTTP_BAD_REQUEST,
                      "\"limit\" must be 1 to %d", MATCHES_MAX);
        return false;
    }
    bulk->limit = (uint64_t)json_integer_value(limit);
    return true;
}

/* Nobody runs a whole store again because a word was left out. */
static bool take_since(struct bulk *bulk, const json_t *body)
{
    if (!take_text(bulk, body, "since", &bulk->listing.since)) {
        return false;
    }
    if (bulk->kind == COMMAND_RERUN && bulk->listing.since == NULL) {
        admin_problem(bulk->request, MHD_HTTP_BAD_REQUEST,
                      "\"since\" is missing: a time, or a duration");
        return false;
    }
    return true;
}

/* A member that the endpoint does not know was refused before. */
static bool take_order(struct bulk *bulk, const json_t *body)
{
    struct admin_request *request = bulk->request;

    return admin_get_bool(request, body, "dry_run", &bulk->dry_run) &&
           admin_get_bool(request, body, "assume_not_applied",
                          &bulk->assume_not_applied) &&
           admin_get_bool(request, body, "again", &bulk->again) &&
           admin_get_why(request, body, &bulk->why) &&
           take_text(bulk, body, "route", &bulk->listing.route) &&
           take_text(bulk, body, "reason", &bulk->listing.reason) &&
           take_since(bulk, body) && take_rate(bulk, body) &&
           take_limit(bulk, body);
}

/* --- the endpoint -------------------------------------------------------- */

static void set_count(json_t *counts, const char *name, uint64_t n)
{
    CHECK(json_object_set_new(counts, name, json_integer((json_int_t)n)) == 0);
}

static void set_flag(json_t *counts, const char *name, bool value)
{
    CHECK(json_object_set_new(counts, name, json_boolean(value)) == 0);
}

static json_t *counts_json(const struct bulk *bulk)
{
    json_t *counts = json_object();

    set_count(counts, "matched", bulk->n + bulk->run_before);
    if (bulk->kind == COMMAND_RERUN) {
        set_count(counts, "rerun", bulk->done);
        set_count(counts, "skipped_run_before", bulk->run_before);
        set_count(counts, "skipped_not_kept", bulk->not_kept);
    } else {
        set_count(counts, "replayed", bulk->done);
        set_count(counts, "skipped_in_doubt", bulk->in_doubt);
    }
    set_count(counts, "skipped_retired", bulk->retired);
    set_count(counts, "nothing_to_do", bulk->nothing);
    set_count(counts, "refused", bulk->refused);
    set_count(counts, "no_room", bulk->busy);
    set_count(counts, "left", bulk->left);
    set_flag(counts, "cut_short", bulk->cut_short);
    set_flag(counts, "dry_run", bulk->dry_run);
    set_flag(counts, "more", bulk->more);
    return counts;
}

static void serve(struct bulk *bulk, const json_t *body)
{
    struct err err;

    if (!take_order(bulk, body)) {
        return;
    }
    if (!collect(bulk, &err)) {
        admin_failed(bulk->request, &err);
        return;
    }
    /* It may take long, and the library would give the connection up. */
    (void)MHD_set_connection_option(bulk->request->connection,
                                    MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    bulk->request->is_last = true;
    run_all(bulk);
    admin_answer(bulk->request, MHD_HTTP_OK, counts_json(bulk));
}

static void run(struct admin_request *request, enum command_kind kind,
                const char *const *members)
{
    struct bulk bulk = {.request = request, .kind = kind};
    json_t *body = admin_body(request, members);

    if (body == NULL) {
        return;
    }
    serve(&bulk, body);
    free(bulk.matches);
    buf_free(&bulk.text);
    json_decref(body);
}

void admin_replay_all(struct admin_request *request)
{
    static const char *const members[] = {
        "route", "reason",  "since", "rate", "limit", "assume_not_applied",
        "why",   "dry_run", NULL};

    run(request, COMMAND_REPLAY, members);
}

void admin_rerun_all(struct admin_request *request)
{
    static const char *const members[] = {"route", "since", "rate",    "limit",
                                          "again", "why",   "dry_run", NULL};

    run(request, COMMAND_RERUN, members);
}
