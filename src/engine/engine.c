/* SPDX-License-Identifier: MIT */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/metrics.h"
#include "engine/internal.h"
#include "engine/partition.h"

enum { HEALTHY_TURN_MS = 30 * 1000 };

static void item_list_init(struct item_list *list)
{
    list->head = NULL;
    list->tail = &list->head;
}

static void item_list_add(struct item_list *list, struct queue_item *item)
{
    item->next = NULL;
    *list->tail = item;
    list->tail = &item->next;
}

/* --- life ----------------------------------------------------------------- */

static bool is_configured(const struct engine *engine, uint16_t number)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        if (engine->routes[i].number == number) {
            return true;
        }
    }
    return false;
}

static bool refuse_open_events(const char *name, const uint64_t *counts,
                               struct err *err)
{
    return err_set(
        err, ERR_CONFIG,
        "the store has unsettled events of route \"%s\", which is not "
        "configured: %llu pending, %llu running, %llu uncertain; keep it as "
        "{ \"name\": \"%s\", \"retired\": true }",
        name, (unsigned long long)counts[RECORD_PENDING],
        (unsigned long long)counts[RECORD_RUNNING],
        (unsigned long long)counts[RECORD_UNCERTAIN], name);
}

/* A renamed route starts with an empty memory: that should not go unseen. */
static void tell_left_behind(const char *name, const uint64_t *counts)
{
    uint64_t settled = counts[RECORD_SUCCEEDED] + counts[RECORD_FAILED];
    struct log_line line;

    if (settled + counts[RECORD_DEAD] > 0 &&
        log_begin(
            &line, LOG_WARN, "engine",
            "events of a route that is not configured: a renamed route "
            "knows them only if it keeps the old name as its namespace")) {
        log_str(&line, "route", slice_of(name));
        log_int(&line, "settled", (int64_t)settled);
        log_int(&line, "dead", (int64_t)counts[RECORD_DEAD]);
        log_end(&line);
    }
}

/* Events of a route that nobody configures would wait for ever, unseen. */
static bool check_abandoned(struct engine *engine, struct err *err)
{
    struct store_stats *stats = mem_new(1, sizeof *stats);
    bool ok = true;
    const char *name;

    store_stats(engine->store, stats);
    for (uint16_t number = 0;
         ok && (name = store_route_name(engine->store, number)) != NULL;
         number++) {
        const uint64_t *counts = stats->counts[number];

        if (is_configured(engine, number)) {
            continue;
        }
        if (counts[RECORD_PENDING] + counts[RECORD_RUNNING] +
                counts[RECORD_UNCERTAIN] >
            0) {
            ok = refuse_open_events(name, counts, err);
        } else {
            tell_left_behind(name, counts);
        }
    }
    free(stats);
    return ok;
}

static bool open_routes(struct engine *engine,
                        const struct engine_options *options, struct err *err)
{
    engine->n_routes = options->n_routes;
    engine->routes = mem_new(options->n_routes, sizeof *engine->routes);
    for (size_t i = 0; i < options->n_routes; i++) {
        struct route *route = &engine->routes[i];

        route->conf = options->routes[i];
        CHECK(route->conf.retired || route->conf.concurrency > 0);
        CHECK(route->conf.tells_dead || route->conf.publisher.ops == NULL);
        if (!store_route_number(engine->store, route->conf.name, &route->number,
                                err) ||
            !store_namespace_number(engine->store, route->conf.namespace,
                                    &route->namespace, err)) {
            return false;
        }
        store_set_retention(engine->store, route->number,
                            &route->conf.retention);
        route->unreachable = store_is_unreachable(engine->store, route->number);
    }
    return true;
}

static size_t reserved_room(const struct engine_options *options)
{
    size_t room =
        COMMANDS_RESERVED + (options->n_streams > 0 ? ASSIGNMENTS_RESERVED : 0);

    for (size_t i = 0; i < options->n_routes; i++) {
        room += options->routes[i].concurrency;
        room += options->routes[i].publisher.ops != NULL ? LETTERS_MAX : 0;
    }
    return room;
}

bool engine_build(struct engine **out, const struct engine_options *options,
                  struct err *err)
{
    struct engine *engine = mem_new(1, sizeof *engine);
    struct queue_options inbox = {
        .max_items = options->inbox_items,
        .max_bytes = options->inbox_bytes,
        .reserved_items = reserved_room(options),
    };

    engine->store = options->store;
    engine->clock = options->clock;
    engine->random = options->random;
    engine->random_self = options->random_self;
    engine->epoch = store_epoch(options->store);
    engine->inbox = queue_new(&inbox);
    engine->repeats = repeats_new();
    engine->orphans_look_ms = RECORD_NEVER;
    engine->batch.starts_tail = &engine->batch.starts;
    item_list_init(&engine->batch.results);
    item_list_init(&engine->batch.commands);
    item_list_init(&engine->batch.assignments);
    item_list_init(&engine->batch.letters);
    item_list_init(&engine->batch.deliveries);
    if (!open_routes(engine, options, err) ||
        !partitions_build(engine, options, err) ||
        !check_abandoned(engine, err)) {
        engine_free(&engine);
        return false;
    }
    *out = engine;
    return true;
}

bool engine_new(struct engine **out, const struct engine_options *options,
                struct err *err)
{
    struct engine *engine;

    if (!engine_build(&engine, options, err)) {
        return false;
    }
    if (!recover_attempts(engine, err) || !partitions_recover(engine, err)) {
        engine_free(&engine);
        return false;
    }
    outbox_begin(engine);
    (void)room_fold(engine);
    engine->last_turn_boot_ms = clock_boot_ms(engine->clock);
    *out = engine;
    return true;
}

static void sort_items(struct batch *batch, struct queue_item *items);

/* Publishers are stopped: what they gave back last may not have been looked
 * at, and is told again by the next process. */
static void drain_letters(struct engine *engine)
{
    sort_items(&engine->batch,
               queue_drain(engine->inbox, SIZE_MAX, SIZE_MAX, 0));
    CHECK(engine->batch.deliveries.head == NULL);
    CHECK(engine->batch.assignments.head == NULL);
}

void engine_free(struct engine **engine)
{
    struct engine *old = *engine;

    *engine = NULL;
    if (old == NULL) {
        return;
    }
    CHECK(old->running == 0);
    while (old->orphans != NULL) {
        struct orphan *orphan = old->orphans;

        old->orphans = orphan->next;
        free(orphan);
    }
    drain_letters(old);
    outbox_free(old);
    queue_free(old->inbox);
    partitions_free(old);
    repeats_free(old->repeats);
    free(old->batch.notes);
    free(old->routes);
    free(old);
}

/* --- the inbox -------------------------------------------------------------
 */

bool engine_deliver(struct engine *engine, struct delivery *delivery)
{
    CHECK(delivery->n_arrivals > 0);
    CHECK(delivery->answer != NULL);
    delivery->item.kind = INBOX_DELIVERY;
    if (!queue_push(engine->inbox, &delivery->item, QUEUE_ORDINARY)) {
        MARK(inbox_full);
        return false;
    }
    return true;
}

bool engine_command(struct engine *engine, struct command *command)
{
    bool pushed;

    CHECK(command->done != NULL);
    command->item.kind = INBOX_COMMAND;
    command->item.cost_bytes = sizeof *command;
    /* The rest of the reserved room is for results, which must find some. */
    pushed = atomic_fetch_add(&engine->commands, 1) < COMMANDS_RESERVED &&
             queue_push(engine->inbox, &command->item, QUEUE_RESERVED);
    if (!pushed) {
        atomic_fetch_sub(&engine->commands, 1);
    }
    return pushed;
}

void attempt_finish(struct attempt *attempt)
{
    bool pushed;

    attempt->item.kind = INBOX_RESULT;
    attempt->item.cost_bytes = sizeof *attempt + attempt->result.len;
    pushed = queue_push(attempt->engine->inbox, &attempt->item, QUEUE_RESERVED);
    CHECK(pushed);
    MARK(result_in_inbox);
}

static void sort_items(struct batch *batch, struct queue_item *items)
{
    while (items != NULL) {
        struct queue_item *item = items;

        items = items->next;
        switch ((enum inbox_kind)item->kind) {
        case INBOX_DELIVERY:
            item_list_add(&batch->deliveries, item);
            break;
        case INBOX_RESULT:
            item_list_add(&batch->results, item);
            break;
        case INBOX_COMMAND:
            item_list_add(&batch->commands, item);
            break;
        case INBOX_ASSIGNMENT:
            item_list_add(&batch->assignments, item);
            break;
        case INBOX_LETTER:
            item_list_add(&batch->letters, item);
            break;
        }
    }
}

/* --- the turn ----------------------------------------------------------------
 */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Store time at which there is something to do without a new item. */
static int64_t next_wake_ms(const struct engine *engine, int64_t now_ms)
{
    int64_t wake = engine->housekeeping_ms;

    if (now_ms < engine->no_room_until_ms) {
        return engine->no_room_until_ms;
    }
    if (engine->maintenance_waits || engine->batch.results.head != NULL ||
        engine->batch.assignments.head != NULL ||
        engine->batch.letters.head != NULL) {
        return now_ms;
    }
    wake = earlier(wake, engine->orphans_look_ms);
    wake = earlier(wake, repeats_due_ms(engine->repeats));
    wake = earlier(wake, outbox_next_ms(engine));
    return earlier(wake, due_next_ms(engine));
}

bool engine_turn(struct engine *engine, int64_t wait_ms, struct err *err)
{
    int64_t now_ms = store_now_ms(engine->store);
    int64_t wake_ms = next_wake_ms(engine, now_ms);
    int64_t until_wake_ms = wake_ms > now_ms ? wake_ms - now_ms : 0;
    struct queue_item *items;
    bool ok = true;

    if (wait_ms < 0 || until_wake_ms < wait_ms) {
        wait_ms = until_wake_ms;
    }
    engine->waiting = true;
    items =
        queue_drain(engine->inbox, BATCH_MAX_ITEMS, BATCH_MAX_BYTES, wait_ms);
    engine->waiting = false;
    sort_items(&engine->batch, items);
    now_ms = store_now_ms(engine->store);
    engine->batch.now_ms = now_ms;
    if (engine->stopping) {
        repeats_hurry(engine->repeats);
    }
    if (engine->batch.commands.head != NULL ||
        engine->batch.deliveries.head != NULL ||
        next_wake_ms(engine, now_ms) <= now_ms) {
        ok = batch_run(engine, err);
    }
    engine->last_turn_boot_ms = clock_boot_ms(engine->clock);
    return ok;
}

void engine_stop_intake(struct engine *engine)
{
    engine->stopping = true;
    queue_close(engine->inbox);
    queue_wake(engine->inbox);
}

/* --- looking at it
 * ------------------------------------------------------------ */

size_t engine_running(const struct engine *engine)
{
    return engine->running;
}

bool engine_is_turning(const struct engine *engine)
{
    return engine->waiting ||
           clock_boot_ms(engine->clock) - engine->last_turn_boot_ms <
               HEALTHY_TURN_MS;
}

bool engine_is_accepting(const struct engine *engine)
{
    return !engine->stopping;
}

size_t engine_route_index(const struct engine *engine, struct slice name)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        if (slice_eq(slice_of(engine->routes[i].conf.name), name)) {
            return i;
        }
    }
    return SIZE_MAX;
}

uint16_t engine_route_number(const struct engine *engine, size_t route)
{
    CHECK(route < engine->n_routes);
    return engine->routes[route].number;
}

void engine_set_gauges(struct engine *engine)
{
    struct store_stats *stats = mem_new(1, sizeof *stats);
    int64_t now_ms = store_now_ms(engine->store);

    store_stats(engine->store, stats);
    metric_set(METRIC_STORE_BYTES, 0, 0, (double)stats->bytes);
    metric_set(METRIC_EFFECTIVE_RETENTION, 0, 0,
               (double)stats->effective_retention_ms / 1000.0);
    metric_set(METRIC_INBOX_ITEMS, 0, 0, (double)queue_length(engine->inbox));
    metric_set(METRIC_LAST_BACKUP, 0, 0,
               (double)store_last_backup_wall_ms(engine->store) / 1000.0);
    for (size_t i = 0; i < engine->n_routes; i++) {
        const struct route *route = &engine->routes[i];
        int64_t due_ms = store_first_due(engine->store, route->number);

        for (size_t state = RECORD_PENDING; state < RECORD_STATES; state++) {
            metric_set(METRIC_EVENTS, i, state - RECORD_PENDING,
                       (double)stats->counts[route->number][state]);
        }
        metric_set(METRIC_OLDEST_PENDING, i, 0,
                   due_ms < now_ms ? (double)(now_ms - due_ms) / 1000.0 : 0);
        metric_set(METRIC_BREAKER_OPEN, i, 0, route->unreachable ? 1 : 0);
        metric_set(METRIC_ROUTE_PAUSED, i, 0,
                   store_is_paused(engine->store, route->number) ? 1 : 0);
    }
    free(stats);
}
