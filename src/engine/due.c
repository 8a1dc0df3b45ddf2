/* SPDX-License-Identifier: MIT */
#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "engine/internal.h"

enum { STARTS_PER_TURN = 512 };

static uint32_t in_flight(const struct route *route)
{
    return route->running + route->orphans + route->starting - route->ending;
}

/* Nothing but time, or a free slot, keeps the route from starting. */
static bool is_open(const struct engine *engine, const struct route *route)
{
    return !engine->stopping && !route->conf.retired &&
           !store_is_paused(engine->store, route->number);
}

bool due_may_start(const struct engine *engine, const struct route *route)
{
    if (!is_open(engine, route) ||
        in_flight(route) >= route->conf.concurrency) {
        return false;
    }
    if (route->heard) {
        return true;
    }
    if (route->unheard) {
        return false; /* it has just been tried */
    }
    if (route->unreachable) {
        return in_flight(route) == 0 &&
               engine->batch.now_ms >= route->probe_at_ms;
    }
    return true;
}

static bool start_due(struct engine *engine, struct route *route,
                      struct store_entry *entry, struct err *err)
{
    struct event_step step = {
        .route = route,
        .entry = entry,
        .input = event_input(engine, INPUT_DUE),
    };
    struct buf envelope = BUF_INIT;
    bool ok;

    if (!event_step(engine, &step, err)) {
        return false;
    }
    CHECK(!step.decision.probe);
    if (!step.decision.start) {
        return true;
    }
    switch (store_get_envelope(engine->store, entry, &envelope, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return err_set(err, ERR_DATA, "the envelope of %s/%.*s is missing",
                       route->conf.name, (int)entry->id_len, entry->id);
    case STORE_FOUND:
        break;
    }
    ok = attempt_prepare(engine, route, entry, buf_slice(&envelope), err);
    buf_free(&envelope);
    return ok;
}

static bool apply_route(struct engine *engine, struct route *route,
                        struct err *err)
{
    int64_t due_ms = INT64_MIN;
    uint64_t seq = 0;
    struct store_entry entry;

    for (int i = 0; i < STARTS_PER_TURN && due_may_start(engine, route); i++) {
        bool ok;

        switch (store_next_due(engine->store, route->number,
                               engine->batch.now_ms, &due_ms, &seq, &entry,
                               err)) {
        case STORE_FAILED:
            return false;
        case STORE_ABSENT:
            return true;
        case STORE_FOUND:
            break;
        }
        ok = entry.record.state == RECORD_RUNNING
                 ? recover_lapsed(engine, route, &entry, err)
                 : start_due(engine, route, &entry, err);
        if (!ok) {
            return false;
        }
    }
    return true;
}

bool due_apply(struct engine *engine, struct err *err)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct route *route = &engine->routes[i];

        if (store_first_due(engine->store, route->number) >
            engine->batch.now_ms) {
            continue;
        }
        if (store_is_paused(engine->store, route->number)) {
            MARK(paused_with_due);
        }
        if (!apply_route(engine, route, err)) {
            return false;
        }
    }
    return true;
}

int64_t due_next_ms(const struct engine *engine)
{
    int64_t next_ms = RECORD_NEVER;

    for (size_t i = 0; i < engine->n_routes; i++) {
        const struct route *route = &engine->routes[i];
        int64_t due_ms = store_first_due(engine->store, route->number);

        if (!is_open(engine, route) ||
            in_flight(route) >= route->conf.concurrency ||
            (route->unreachable && in_flight(route) > 0)) {
            continue; /* a command or a result will wake it */
        }
        if (route->unreachable && due_ms < route->probe_at_ms) {
            due_ms = route->probe_at_ms;
        }
        if (due_ms < next_ms) {
            next_ms = due_ms;
        }
    }
    return next_ms;
}

/* --- the breaker -----------------------------------------------------------
 */

static void tell_breaker(const struct route *route, const char *message)
{
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "engine", message)) {
        log_str(&line, "route", slice_of(route->conf.name));
        if (route->unheard) {
            log_int(&line, "next_try_ms", route->probe_delay_ms);
        }
        log_end(&line);
    }
}

void breaker_write(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        const struct route *route = &engine->routes[i];
        bool unreachable =
            !route->heard && (route->unheard || route->unreachable);

        if (unreachable != route->unreachable) {
            store_set_unreachable(engine->store, route->number, unreachable);
            engine->batch.dirty = true;
        }
    }
}

void breaker_fold(struct engine *engine, struct route *route)
{
    if (route->heard) {
        if (route->unreachable) {
            MARK(breaker_closed);
            tell_breaker(route, "handler is reachable again");
        }
        route->unreachable = false;
        route->probe_delay_ms = 0;
    } else if (route->unheard) {
        route->probe_delay_ms = route->probe_delay_ms == 0
                                    ? PROBE_FIRST_MS
                                    : route->probe_delay_ms * 2;
        if (route->probe_delay_ms > PROBE_MAX_MS) {
            route->probe_delay_ms = PROBE_MAX_MS;
        }
        route->probe_at_ms = engine->batch.now_ms + route->probe_delay_ms;
        if (!route->unreachable) {
            MARK(breaker_opened);
            tell_breaker(route, "handler is unreachable");
        } else {
            MARK(breaker_probe_failed);
        }
        route->unreachable = true;
    }
    route->heard = false;
    route->unheard = false;
}
