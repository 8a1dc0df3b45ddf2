/* SPDX-License-Identifier: MIT */
/*
 * The second phase: nothing fails any more, operators let go on what a pause
 * or a dead letter holds, and everything must come to rest in time.
 */
#include <stdlib.h>

#include "base/check.h"
#include "sim/sim.h"

enum { CALM_MS = 60 * 1000, LOOK_MS = 5000, START_MS = 30 * 1000 };

/* --- how long it may take ----------------------------------------------------
 */

/* What began before the healing may end badly after it, once, and wait. */
static int64_t longest_wait_ms(const struct sim *sim)
{
    int64_t longest_ms = 0;

    for (size_t i = 0; i < sim->n_routes; i++) {
        const struct policy *policy = &sim->routes[i].conf.policy;
        int64_t wait_ms = policy->timeout_ms * 4 + policy->max_backoff_ms * 2;

        longest_ms = wait_ms > longest_ms ? wait_ms : longest_ms;
    }
    return longest_ms + 2 * 30 * 1000; /* Retry-After */
}

/* --- what operators do -------------------------------------------------------
 */

struct dead {
    struct sim *sim;
    struct event *events[1024];
    bool not_kept[1024]; /* what arrived */
    size_t routes[1024];
    uint32_t runs[1024];
    size_t n;
};

static bool note_dead(void *ctx, const struct store_entry *entry)
{
    struct dead *dead = ctx;
    struct sim *sim = dead->sim;
    const char *name =
        store_route_name(sim->process.store, entry->record.route);
    size_t route = engine_route_index(sim->process.engine, slice_of(name));

    /* One that holds a key would hold it for ever. */
    if ((entry->record.flags & RECORD_ORDERED) == 0 || dead->n == 1024) {
        return true;
    }
    dead->events[dead->n] = sender_find(sim, route, store_entry_tenant(entry),
                                        store_entry_id(entry));
    dead->routes[dead->n] = route;
    dead->not_kept[dead->n] =
        (entry->record.flags & (RECORD_LEFT | RECORD_ERASED)) != 0;
    dead->runs[dead->n++] = entry->record.run;
    return true;
}

static void settle_holders(struct sim *sim)
{
    const struct store_filter filter = {
        .route = -1,
        .has_state = true,
        .state = RECORD_DEAD,
    };
    struct dead *dead = mem_new(1, sizeof *dead);
    struct err err = {ERR_NONE, ""};

    dead->sim = sim;
    if (!store_list(sim->process.store, &filter, note_dead, dead, &err)) {
        sim_fail(sim, "dead letters cannot be listed: %s", err.text);
    }
    for (size_t i = 0; i < dead->n; i++) {
        if (dead->events[i] == NULL) {
            sim_fail(sim, "a dead letter of an event that nobody sent");
            break;
        }
        if (dead->not_kept[i]) {
            (void)operator_order(sim, COMMAND_DISCARD, dead->routes[i],
                                 dead->events[i]);
            continue;
        }
        operator_settle(sim, dead->events[i], dead->routes[i], dead->runs[i]);
    }
    free(dead);
}

static void resume_all(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_routes; i++) {
        if (!operator_order(sim, COMMAND_RESUME, i, NULL)) {
            sim_fail(sim, "route %s cannot be resumed", sim->routes[i].name);
        }
    }
}

/* --- rest --------------------------------------------------------------------
 */

static uint64_t count_unsettled(struct sim *sim)
{
    struct store_stats *stats = mem_new(1, sizeof *stats);
    uint64_t sum = 0;

    store_stats(sim->process.store, stats);
    for (size_t i = 0; i < STORE_ROUTES_MAX; i++) {
        sum += stats->counts[i][RECORD_PENDING] +
               stats->counts[i][RECORD_RUNNING] +
               stats->counts[i][RECORD_UNCERTAIN];
    }
    free(stats);
    return sum;
}

static bool senders_rest(const struct sim *sim)
{
    for (size_t i = 0; i < sim->events.n; i++) {
        if (((const struct event *)sim->events.at[i])->waits) {
            return false;
        }
    }
    return true;
}

static bool receivers_rest(const struct sim *sim)
{
    for (size_t i = 0; i < sim->invocations.n; i++) {
        if (!((const struct invocation *)sim->invocations.at[i])->over) {
            return false;
        }
    }
    return true;
}

static bool is_at_work(const struct sim *sim)
{
    return sim->process.up && !sim->process.stopping;
}

static void wait_for_start(struct sim *sim)
{
    int64_t until_ms = sim->now_ms + 2 * START_MS;

    while (!sim->failed && !is_at_work(sim) && sim->now_ms < until_ms) {
        sim_pass_until(sim, sim->now_ms + 1000);
    }
    if (!is_at_work(sim)) {
        sim_fail(sim, "the process is not up again");
    }
}

/* Nothing behind a dead letter of a partition comes in while they are too
 * many. */
static bool needs_room(const struct sim *sim)
{
    return sim->has[FEATURE_SMALL_STORE] || sim->has[FEATURE_KAFKA];
}

/* Somebody gives the store more room. */
static void enlarge(struct sim *sim)
{
    unsigned number = sim->process.number;
    int64_t until_ms = sim->now_ms + 2 * START_MS;

    sim->max_bytes = 64U << 20;
    for (size_t i = 0; i < sim->n_routes; i++) {
        sim->routes[i].conf.max_dead_bytes = 1U << 30;
    }
    process_stop(sim);
    while (!sim->failed && sim->process.number == number &&
           sim->now_ms < until_ms) {
        sim_pass_until(sim, sim->now_ms + 1000);
    }
    if (sim->process.number == number) {
        sim_fail(sim, "the process does not end");
    }
    wait_for_start(sim);
}

static void heal(struct sim *sim)
{
    sim_trace(sim, "everything heals");
    sim->healed = true;
    sim->disk_full = false;
    sim->process.fault_in = 0;
    for (size_t i = 0; i < sim->n_routes; i++) {
        sim->routes[i].unreachable_until_ms = 0;
    }
    if (!sim->process.up) {
        nemesis_process_ended(sim); /* starts it soon */
    }
    wait_for_start(sim);
    if (!sim->failed && needs_room(sim)) {
        enlarge(sim);
    }
}

static void come_to_rest(struct sim *sim, int64_t until_ms)
{
    uint64_t unsettled = 1;

    while (!sim->failed && sim->now_ms < until_ms) {
        settle_holders(sim);
        sim_pass_until(sim, sim->now_ms + LOOK_MS);
        if (sim->failed) {
            return;
        }
        unsettled = count_unsettled(sim);
        if (unsettled == 0 && senders_rest(sim) && receivers_rest(sim) &&
            broker_rests(sim) && publisher_rests(sim)) {
            return;
        }
    }
    sim_fail(sim,
             "no rest: %llu unsettled, partitions %s, letters %s, senders %s, "
             "receivers %s",
             (unsigned long long)unsettled,
             broker_rests(sim) ? "rest" : "do not rest",
             publisher_rests(sim) ? "rest" : "do not rest",
             senders_rest(sim) ? "rest" : "do not rest",
             receivers_rest(sim) ? "rest" : "do not rest");
}

static void close_down(struct sim *sim)
{
    int64_t until_ms = sim->now_ms + CALM_MS;

    operator_audit(sim);
    sim_pass_until(sim, sim->now_ms + 2000);
    sim->closing = true;
    process_stop(sim);
    while (!sim->failed && sim->process.up && sim->now_ms < until_ms) {
        sim_pass_until(sim, sim->now_ms + 1000);
    }
    if (sim->process.up) {
        sim_fail(sim, "the process does not end");
    }
}

void healing_run(struct sim *sim)
{
    int64_t wait_ms = CALM_MS + longest_wait_ms(sim);
    struct ledger_phase line = {.within_ms = wait_ms};

    heal(sim);
    if (sim->failed) {
        return;
    }
    line.t_ms = sim->now_ms;
    ledger_heal(&sim->ledger, &line);
    resume_all(sim);
    sender_hurry(sim);
    come_to_rest(sim, sim->now_ms + wait_ms);
    if (!sim->failed) {
        close_down(sim);
    }
    line.t_ms = sim->now_ms;
    ledger_quiet(&sim->ledger, &line);
}
