/* SPDX-License-Identifier: MIT */
#include "power/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

enum { TIME_LIMIT_S = 60 };

/* Of one event, before the cut. */
struct told {
    bool known, moved;
    uint32_t attempt;        /* the highest */
    int64_t changed_ms;      /* the latest */
    const struct fact *seen; /* the last FACT_SEEN */
    const struct fact *last; /* of the whole run */
};

static struct {
    struct told told[SCENE_EVENTS_MAX];
    uint32_t n_events;
    const struct fact **earlier; /* by fact: one before of the same event */
    int64_t now_ms;
    char *why;
} court;

static void bad(const char *format, ...) __attribute__((format(printf, 1, 2)))
__attribute__((noreturn));

static void bad(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(court.why, JUDGE_WHY_MAX, format, args);
    va_end(args);
    _exit(1);
}

/* --- what was told ---------------------------------------------------------
 */

static void raise_bounds(struct told *told, uint32_t attempt, int64_t ms)
{
    told->known = true;
    told->attempt = attempt > told->attempt ? attempt : told->attempt;
    told->changed_ms = ms > told->changed_ms ? ms : told->changed_ms;
}

static void learn(const struct fact *fact)
{
    struct told *told = &court.told[fact->event];

    switch (fact->kind) {
    case FACT_TIME:
        court.now_ms = fact->ms;
        return;
    case FACT_MOVED:
        told->moved = true;
        raise_bounds(told, 0, fact->ms);
        return;
    case FACT_KNOWN:
    case FACT_BEGAN:
        raise_bounds(told, fact->attempt, fact->ms);
        return;
    case FACT_SEEN:
        told->seen = fact;
        raise_bounds(told, fact->record.attempt, fact->record.changed_ms);
        return;
    }
    UNREACHABLE("every kind of fact is handled");
}

static void learn_all(const struct facts *facts)
{
    court.earlier = mem_new(facts->n, sizeof *court.earlier);
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *fact = &facts->all[i];
        struct told *told = &court.told[fact->event];

        if (i < facts->n_told) {
            learn(fact);
        }
        court.earlier[i] = told->last;
        told->last = fact;
        if (fact->event >= court.n_events) {
            court.n_events = fact->event + 1;
        }
    }
}

/* An attempt that a handler was given before the cut is never given again. */
void judge_hear(const struct fact *fact)
{
    if (fact->kind == FACT_BEGAN &&
        fact->attempt <= court.told[fact->event].attempt) {
        bad("event %u: attempt %u began again", fact->event, fact->attempt);
    }
}

/* --- what is there ---------------------------------------------------------
 */

/* With what the run showed of the event at that point of its story. */
static void compare(const struct facts *facts, uint32_t event,
                    const struct record *record)
{
    const struct fact *fact = court.told[event].last;

    for (; fact != NULL; fact = court.earlier[fact - facts->all]) {
        const struct record *seen = &fact->record;

        if (fact->kind == FACT_SEEN && seen->changed_ms == record->changed_ms &&
            seen->attempt == record->attempt &&
            (seen->state != record->state || seen->reason != record->reason ||
             seen->run != record->run)) {
            bad("event %u: %s (%s), was %s (%s)", event,
                record_state_name(record->state), reason_name(record->reason),
                record_state_name(seen->state), reason_name(seen->reason));
        }
    }
}

static void check_envelope(struct store *store, const struct store_entry *entry,
                           uint32_t event)
{
    struct buf flat = BUF_INIT;
    struct envelope envelope;
    struct err err = {ERR_NONE, ""};

    if (store_get_envelope(store, entry, &flat, &err) != STORE_FOUND) {
        bad("event %u: no envelope: %s", event, err.text);
    }
    if (!envelope_open(buf_slice(&flat), &envelope) ||
        !slice_eq(envelope.body, slice_of(scene_body(event)))) {
        bad("event %u: another envelope", event);
    }
    buf_free(&flat);
}

/* The run's results have the id as their body; what an operator resolved may
 * have none. */
static void check_result(struct store *store, const struct store_entry *entry,
                         uint32_t event)
{
    struct buf flat = BUF_INIT;
    struct result result;
    struct err err = {ERR_NONE, ""};
    bool moved = court.told[event].moved;

    if (store_get_result(store, entry, &flat, &err) != STORE_FOUND) {
        if (!moved || err.kind != ERR_NONE) {
            bad("event %u: no result: %s", event, err.text);
        }
        return;
    }
    if (!result_open(buf_slice(&flat), &result) ||
        (!moved && !slice_eq(result.body, store_entry_id(entry)))) {
        bad("event %u: another result", event);
    }
    buf_free(&flat);
}

static void check_found(const struct facts *facts, struct store *store,
                        const struct store_entry *entry, uint32_t event)
{
    const struct told *told = &court.told[event];
    const struct record *record = &entry->record;

    if (record->attempt < told->attempt ||
        record->changed_ms < told->changed_ms) {
        bad("event %u went back: attempt %u of %u, changed at %lld of %lld",
            event, record->attempt, told->attempt,
            (long long)record->changed_ms, (long long)told->changed_ms);
    }
    compare(facts, event, record);
    if (!record_is_settled(record) || record->state == RECORD_DEAD) {
        check_envelope(store, entry, event);
    } else if (record->state == RECORD_SUCCEEDED &&
               record->changed_ms == told->changed_ms) {
        check_result(store, entry, event);
    }
}

/* Only what is settled, and for long enough. */
static bool may_be_forgotten(const struct told *told)
{
    return told->seen != NULL && record_is_settled(&told->seen->record) &&
           told->seen->record.state != RECORD_DEAD &&
           court.now_ms - told->seen->record.changed_ms >= SCENE_RETENTION_MS;
}

static void check_event(const struct facts *facts, struct store *store,
                        const uint16_t namespaces[WORLD_ROUTES], uint32_t event)
{
    static struct store_entry entry;
    struct err err = {ERR_NONE, ""};
    struct slice none = {NULL, 0};
    char id[SCENE_ID_SIZE];

    scene_id(event, id);
    switch (store_find(store, namespaces[scene_route(event)], none,
                       slice_of(id), &entry, &err)) {
    case STORE_FOUND:
        check_found(facts, store, &entry, event);
        return;
    case STORE_ABSENT:
        if (court.told[event].known && !may_be_forgotten(&court.told[event])) {
            bad("event %u is lost", event);
        }
        return;
    case STORE_FAILED:
        bad("event %u: %s", event, err.text);
    }
    UNREACHABLE("every result of a look-up is handled");
}

static void check_events(struct world *world, const struct facts *facts)
{
    uint16_t namespaces[WORLD_ROUTES];
    char path[80];
    struct store_options options = {.path = path,
                                    .max_bytes = world->max_bytes,
                                    .retention_ms = world->retention_ms,
                                    .create = true,
                                    .no_sync = true,
                                    .ids_per_generation =
                                        world->ids_per_generation,
                                    .clock = &world->clock};
    struct store *store;
    struct err err = {ERR_NONE, ""};

    (void)snprintf(path, sizeof path, "%s/store", world->dir);
    if (!store_open(&store, &options, &err)) {
        bad("does not start: %s", err.text);
    }
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        if (!store_namespace_number(store, world->routes[i].namespace,
                                    &namespaces[i], &err)) {
            bad("namespace: %s", err.text);
        }
    }
    if (!store_begin(store, &err)) {
        bad("begin: %s", err.text);
    }
    for (uint32_t event = 0; event < court.n_events; event++) {
        check_event(facts, store, namespaces, event);
    }
    store_abort(store);
    store_close(&store);
}

/* --- going on --------------------------------------------------------------
 */

static void verify(const struct world *world, const char *when)
{
    struct store_report report;
    struct err err = {ERR_NONE, ""};
    char path[80];

    (void)snprintf(path, sizeof path, "%s/store/data.mdb", world->dir);
    if (access(path, F_OK) != 0) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/store", world->dir);
    if (!store_verify(path, &report, &err)) {
        bad("verify %s: %s", when, err.text);
    }
    if (report.bad > 0) {
        bad("verify %s: %s", when, report.first_bad);
    }
}

static void go_on(struct world *world)
{
    struct err err = {ERR_NONE, ""};
    struct sent *sent;

    if (!world_try_open(world, &err)) {
        bad("the engine does not start: %s", err.text);
    }
    world_turn(world);
    sent = scene_send(world, SCENE_EVENTS_MAX - 1);
    world_turn(world);
    if (!sent->answered || sent->delivery.result != DELIVERY_ACCEPTED) {
        bad("takes no new event");
    }
    sent_free(sent);
    world_close(world);
}

static void hold_court(struct world *world, const struct facts *facts)
{
    struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)alarm(TIME_LIMIT_S);
    learn_all(facts);
    world->ms = court.now_ms > 0 ? court.now_ms : world->ms;
    verify(world, "before the start");
    check_events(world, facts);
    go_on(world);
    verify(world, "after the start");
}

bool judge(struct world *world, const struct facts *facts,
           char why[JUDGE_WHY_MAX])
{
    pid_t pid;
    int status;

    court.why = why;
    why[0] = '\0';
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        hold_court(world, facts);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status)) {
        (void)snprintf(why, JUDGE_WHY_MAX, "signal %d", WTERMSIG(status));
    }
    return status == 0;
}
