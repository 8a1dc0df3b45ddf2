/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/check.h"
#include "engine/internal.h"
#include "engine/partition.h"
#include "sim/sim.h"

enum { IDLE_TURNS_MAX = 200, EMPTY_COMMITS_MAX = 20000 };

/* --- its end -----------------------------------------------------------------
 */

/* What senders and operators handed in stays theirs; what publishers gave back
 * is put into `letters`. */
static void free_items(struct queue_item *item, struct queue_item **letters)
{
    while (item != NULL) {
        struct queue_item *next = item->next;

        if (item->kind == INBOX_RESULT) {
            attempt_free((struct attempt *)item);
        } else if (item->kind == INBOX_LETTER) {
            item->next = *letters;
            *letters = item;
        }
        item = next;
    }
}

static void free_partitions(struct engine *engine)
{
    while (engine->partitions->list != NULL) {
        struct partition_state *partition = engine->partitions->list;

        engine->partitions->list = partition->next;
        partition->assignment->partition = NULL;
        tracker_free(partition->tracker);
        free(partition->awaited);
        free(partition);
    }
}

/* A process that dies frees nothing; the one that plays it must. */
static void take_apart(struct engine **at)
{
    struct engine *engine = *at;
    struct queue_item *items;
    struct queue_item *letters = NULL;

    while ((items = queue_drain(engine->inbox, BATCH_MAX_ITEMS, BATCH_MAX_BYTES,
                                0)) != NULL) {
        free_items(items, &letters);
    }
    free_items(engine->batch.results.head, &letters);
    while (letters != NULL) {
        struct dead_letter *letter = (struct dead_letter *)letters;

        letters = letters->next;
        dead_letter_finish(letter); /* the engine frees it */
    }
    engine->batch.deliveries.head = NULL;
    engine->batch.assignments.head = NULL;
    free_partitions(engine);
    while (engine->batch.starts != NULL) {
        struct job *job = engine->batch.starts;

        engine->batch.starts = job->next;
        attempt_free(&job->attempt);
    }
    outbox_aborted(engine);
    engine->running = 0;
    engine_free(at);
}

static void free_attempts(struct sim *sim)
{
    struct process *process = &sim->process;

    for (size_t i = 0; i < sim->invocations.n; i++) {
        struct invocation *invocation = sim->invocations.at[i];

        if (invocation->attempt != NULL) {
            attempt_free(invocation->attempt);
            invocation->attempt = NULL;
        }
    }
    while (process->n_unsent > 0) {
        attempt_free(process->unsent[--process->n_unsent]);
    }
}

static void reset(struct process *process)
{
    *process = (struct process){
        .number = process->number,
        .wake_ms = RECORD_NEVER,
    };
}

static void die(struct sim *sim, const char *why)
{
    struct process *process = &sim->process;
    struct ledger_fault line = {
        .t_ms = sim->now_ms,
        .kind = SLICE("crash"),
        .process = process->number,
    };

    sim_trace(sim, "process %u is dead: %s", process->number, why);
    sim->sights.deaths++;
    process->dead = true;
    ledger_fault(&sim->ledger, &line);
    free_attempts(sim);
    if (process->engine != NULL) {
        publisher_stop(sim);
        take_apart(&process->engine);
    }
    store_close(&process->store);
    sender_process_died(sim);
    consumer_process_died(sim);
    operator_process_died(sim);
    reset(process);
    nemesis_process_ended(sim);
}

void process_kill(struct sim *sim, const char *why)
{
    if (sim->process.up) {
        die(sim, why);
    }
}

bool process_lets_out(struct sim *sim)
{
    struct process *process = &sim->process;

    if (process->dead) {
        return false;
    }
    if (process->counts_releases && process->fault_releases-- == 0) {
        sim_trace(sim, "process %u dies after its commit", process->number);
        process->dead = true;
        return false;
    }
    return true;
}

void process_poke(struct sim *sim)
{
    sim->process.wake_ms = sim->now_ms;
}

/* --- its start ---------------------------------------------------------------
 */

bool process_open_store(struct sim *sim, bool read_only, struct store **out,
                        struct err *err)
{
    const struct store_options options = {
        .path = sim->path,
        .max_bytes = sim->max_bytes,
        .retention_ms = sim->retention_ms,
        .create = !read_only,
        .read_only = read_only,
        .no_sync = !read_only,
        .ids_per_generation = sim->ids_per_generation,
        .clock = &sim->clock,
    };

    return store_open(out, &options, err);
}

static uint64_t engine_random(void *self)
{
    return dice_next(&((struct sim *)self)->backoff);
}

static bool start_engine(struct sim *sim, struct err *err)
{
    struct engine_route routes[SIM_ROUTES_MAX];
    const char *streams[SIM_TOPICS_MAX];
    const struct engine_options options = {
        .routes = routes,
        .n_routes = sim->n_routes,
        .streams = streams,
        .n_streams = sim->n_topics,
        .store = sim->process.store,
        .clock = &sim->clock,
        .random = engine_random,
        .random_self = sim,
        .inbox_items = sim->inbox_items,
        .inbox_bytes = 8 << 20,
    };

    for (size_t i = 0; i < sim->n_routes; i++) {
        routes[i] = sim->routes[i].conf;
    }
    for (size_t i = 0; i < sim->n_topics; i++) {
        streams[i] = sim->topics[i].stream;
    }
    return engine_new(&sim->process.engine, &options, err);
}

bool process_start(struct sim *sim)
{
    struct process *process = &sim->process;
    struct err err = {ERR_NONE, ""};
    struct ledger_start line = {.t_ms = sim->now_ms};

    CHECK(process->store == NULL);
    line.process = ++process->number;
    ledger_start(&sim->ledger, &line);
    sim_trace(sim, "process %u starts", process->number);
    if (!process_open_store(sim, false, &process->store, &err) ||
        !start_engine(sim, &err) || process->dead) {
        if (!process->fault_hit) {
            sim_fail(sim, "process %u does not start: %s", process->number,
                     err.text);
        }
        sim->sights.deaths_in_start++;
        sim->sights.deaths_in_start_again += sim->died_in_start ? 1 : 0;
        sim->died_in_start = true;
        die(sim, "while it started");
        return false;
    }
    sim->died_in_start = false;
    process->up = true;
    process->wake_ms = sim->now_ms;
    broker_give_out(sim);
    return true;
}

/* --- its turns ---------------------------------------------------------------
 */

static void close_down(struct sim *sim)
{
    struct process *process = &sim->process;

    sim_trace(sim, "process %u ends in order", process->number);
    CHECK(process->n_unsent == 0);
    publisher_stop(sim);
    engine_free(&process->engine);
    store_close(&process->store);
    reset(process);
    nemesis_process_ended(sim);
}

static void stop_receivers(struct sim *sim, void *who)
{
    (void)who;
    if (sim->process.up && sim->process.stopping) {
        receiver_stop(sim);
    }
}

void process_stop(struct sim *sim)
{
    struct process *process = &sim->process;

    if (!process->up || process->stopping) {
        return;
    }
    sim_trace(sim, "process %u is told to stop", process->number);
    process->stopping = true;
    consumer_stop(sim);
    engine_stop_intake(process->engine);
    process_poke(sim);
    agenda_plan(&sim->agenda, sim->now_ms + dice_skewed(&sim->dice, 0, 10000),
                stop_receivers, NULL);
}

static int64_t commit_ms(struct sim *sim)
{
    if (sim->has[FEATURE_SLOW_COMMITS] && dice_permille(&sim->dice, 30)) {
        return dice_between(&sim->dice, 500, 5000);
    }
    return dice_skewed(&sim->dice, 0, 20);
}

/* Neither an item nor a time made it turn. */
static void watch_idle(struct sim *sim)
{
    struct process *process = &sim->process;

    if (process->drained || process->wait_ms != 0) {
        process->idle_turns = 0;
        return;
    }
    process->idle_turns++;
    if (process->idle_turns >
        (process->committed ? EMPTY_COMMITS_MAX : IDLE_TURNS_MAX)) {
        sim_fail(sim, "the engine turns and turns, and does nothing");
    }
}

void process_watch_breaker(struct sim *sim, size_t route)
{
    const struct route *of = &sim->process.engine->routes[route];

    if (of->unreachable && of->running + of->orphans > 1) {
        sim_fail(sim, "%u at one time ask whether %s is there again",
                 of->running + of->orphans, of->conf.name);
    }
}

/* What is due, and kept by nothing, must wake the engine. */
static void watch_sleep(struct sim *sim)
{
    struct process *process = &sim->process;
    const struct engine *engine = process->engine;
    int64_t now_ms = store_now_ms(process->store);

    for (size_t i = 0; i < engine->n_routes; i++) {
        const struct route *route = &engine->routes[i];
        int64_t due_ms = store_first_due(process->store, route->number);

        if (!store_is_paused(process->store, route->number) &&
            !route->unreachable &&
            route->running + route->orphans < route->conf.concurrency &&
            due_ms - now_ms < process->wait_ms) {
            sim_fail(sim,
                     "the engine would sleep for %lld ms, over what is "
                     "due for %s",
                     (long long)process->wait_ms, route->conf.name);
        }
    }
}

static void after_turn(struct sim *sim)
{
    struct process *process = &sim->process;

    if (process->committed) {
        process->busy_until_ms = sim->now_ms + commit_ms(sim);
        if (process->engine->maintenance_waits) {
            nemesis_tempt_upkeep(sim);
        }
    }
    watch_idle(sim);
    if (process->drained || process->wait_ms == 0) {
        process->wake_ms = sim->now_ms;
        return;
    }
    CHECK(process->wait_ms > 0);
    if (!process->stopping &&
        process->engine->no_room_until_ms <= store_now_ms(process->store)) {
        watch_sleep(sim);
    }
    process->wake_ms = process->wait_ms < RECORD_NEVER - sim->now_ms
                           ? sim->now_ms + process->wait_ms
                           : RECORD_NEVER;
    if (process->stopping && engine_running(process->engine) == 0 &&
        consumer_is_over(sim)) {
        close_down(sim);
    }
}

void process_turn(struct sim *sim)
{
    struct process *process = &sim->process;
    struct err err = {ERR_NONE, ""};
    bool ok;

    CHECK(process->up);
    process->committed = false;
    ok = engine_turn(process->engine, -1, &err);
    if (ok && !process->dead && !process->counts_releases) {
        after_turn(sim);
        return;
    }
    if (!ok && !process->fault_hit) {
        sim_fail(sim, "the engine gave up without a cause: %s", err.text);
    }
    die(sim, ok ? "between two turns" : "its store failed");
}
