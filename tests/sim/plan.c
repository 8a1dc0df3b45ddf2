/* SPDX-License-Identifier: MIT */
/* What a seed draws. Each world has some features and lacks others: what
 * never happens alone, or never together, is found that way. */
#include <stdio.h>

#include "sim/sim.h"

enum { TIGHT_INBOX = 6, WIDE_INBOX = 1024 };

static const unsigned chances[FEATURES] = {
    [FEATURE_CRASHES] = 700,      [FEATURE_BAD_STARTS] = 400,
    [FEATURE_IO_ERRORS] = 350,    [FEATURE_NO_SPACE] = 250,
    [FEATURE_FULL_DISK] = 200,    [FEATURE_SMALL_STORE] = 150,
    [FEATURE_SLOW_COMMITS] = 200, [FEATURE_JUMPS] = 300,
    [FEATURE_REBOOTS] = 300,      [FEATURE_RESTARTS] = 300,
    [FEATURE_OUTAGES] = 400,      [FEATURE_HANGS] = 400,
    [FEATURE_LIES] = 400,         [FEATURE_FAILS] = 500,
    [FEATURE_REFUSES] = 400,      [FEATURE_DEFERS] = 400,
    [FEATURE_REPEATS] = 600,      [FEATURE_DRIFT] = 300,
    [FEATURE_CROWDS] = 15,        [FEATURE_BURSTS] = 300,
    [FEATURE_FAN_OUT] = 200,      [FEATURE_TENANTS] = 250,
    [FEATURE_ORDERS] = 500,       [FEATURE_RERUNS] = 300,
    [FEATURE_PAUSES] = 350,       [FEATURE_FORGETTING] = 250,
    [FEATURE_CHANGES] = 250,      [FEATURE_KAFKA] = 600,
    [FEATURE_REBALANCES] = 600,   [FEATURE_ELSEWHERE] = 350,
    [FEATURE_BAD_COMMITS] = 400,  [FEATURE_RESETS] = 350,
    [FEATURE_TRUNCATION] = 300,
};

static int64_t pick(struct dice *dice, const int64_t *values, size_t n)
{
    return values[dice_below(dice, (unsigned)n)];
}

#define PICK(dice, values)                                                     \
    pick((dice), (values), sizeof(values) / sizeof *(values))

static void draw_policy(struct sim *sim, struct policy *policy)
{
    static const int64_t attempts[] = {0, 0, 0, 1, 2, 4};
    static const int64_t give_up_ms[] = {MINUTE_MS, 10 * MINUTE_MS, HOUR_MS,
                                         DAY_MS, DAY_MS};
    static const int64_t crashes[] = {0, 1, 3, 20, 20};
    struct dice *dice = &sim->dice;

    *policy = (struct policy){
        .respond = RESPOND_ACCEPTED,
        .on_uncertain =
            dice_permille(dice, 650) ? ON_UNCERTAIN_RETRY : ON_UNCERTAIN_HOLD,
        .after_dead =
            dice_permille(dice, 500) ? AFTER_DEAD_CONTINUE : AFTER_DEAD_HOLD,
        .on_drift = dice_permille(dice, 700) ? ON_DRIFT_ACK : ON_DRIFT_REJECT,
        .timeout_ms = dice_skewed(dice, 500, 30000),
        .give_up_after_ms = PICK(dice, give_up_ms),
        .max_attempts = (uint32_t)PICK(dice, attempts),
        .max_crashes = (uint32_t)PICK(dice, crashes),
        .backoff_ms = dice_skewed(dice, 50, 3000),
        .jitter_permille = dice_permille(dice, 500) ? 200 : 0,
    };
    policy->max_backoff_ms = policy->backoff_ms * dice_between(dice, 1, 32);
}

static void draw_route(struct sim *sim, struct sim_route *route)
{
    struct dice *dice = &sim->dice;
    struct engine_route *conf = &route->conf;

    route->sim = sim;
    route->is_exec = dice_permille(dice, 400);
    route->ordered = dice_permille(dice, 500);
    route->unreachable_until_ms = 0;
    draw_policy(sim, &conf->policy);
    conf->name = route->name;
    conf->namespace = route->name;
    conf->rules.respond = RESPOND_ACCEPTED;
    conf->handler = (struct handler){&receiver_ops, route};
    if (dice_permille(dice, 500)) {
        conf->tells_dead = true;
        conf->publisher = (struct publisher){&publisher_ops, route};
    }
    conf->concurrency = (uint32_t)dice_skewed(dice, 1, 16);
    conf->retention = (struct store_retention){
        .ids_ms = sim->retention_ms,
        .envelope_ms = sim->retention_ms / dice_between(dice, 1, 3),
        .result_ms = sim->retention_ms,
    };
    conf->max_dead_bytes = 1U << 30;
    conf->on_dead_full =
        dice_permille(dice, 500) ? DEAD_FULL_DROP_OLDEST : DEAD_FULL_STOP_ROUTE;
    if (dice_permille(dice, 350)) {
        conf->max_dead_bytes = (uint64_t)dice_between(dice, 600, 6000);
    }
}

/* What the promises exclude does not happen: a sender that tries for longer
 * than the retention, however the clock moves. */
static void draw_times(struct sim *sim)
{
    struct dice *dice = &sim->dice;

    sim->horizon_ms = dice_between(dice, 5 * MINUTE_MS, 30 * MINUTE_MS);
    sim->phase_ms = dice_skewed(dice, 10 * MINUTE_MS, 2 * HOUR_MS);
    sim->retention_ms = 30 * DAY_MS;
    if (sim->has[FEATURE_FORGETTING]) {
        sim->has[FEATURE_JUMPS] = false;
        sim->retention_ms = sim->horizon_ms * 2 + HOUR_MS;
        sim->phase_ms = sim->retention_ms * dice_between(dice, 2, 3);
    }
    if (sim->has[FEATURE_JUMPS]) {
        sim->phase_ms += 3 * HOUR_MS; /* clocks must agree for one, */
        if (dice_permille(dice, 500)) {
            sim->has[FEATURE_CRASHES] = false; /* in one process */
            sim->has[FEATURE_IO_ERRORS] = false;
            sim->has[FEATURE_RESTARTS] = false;
        }
    }
    sim->crash_gap_ms = sim->phase_ms / dice_between(dice, 1, 4);
    sim->tempt_permille = (unsigned)dice_skewed(dice, 5, 60);
}

static void draw_store(struct sim *sim)
{
    struct dice *dice = &sim->dice;

    sim->max_bytes = 32U << 20;
    sim->ids_per_generation = 0;
    if (sim->has[FEATURE_SMALL_STORE]) {
        sim->max_bytes = (uint64_t)dice_between(dice, 1200, 1800) << 10;
    }
    if (sim->has[FEATURE_FORGETTING] || dice_permille(dice, 600)) {
        sim->ids_per_generation = (uint32_t)dice_skewed(dice, 3, 40);
    }
    if (sim->has[FEATURE_CROWDS]) {
        sim->ids_per_generation = (uint32_t)dice_between(dice, 260, 400);
    }
    sim->inbox_items = sim->has[FEATURE_BURSTS] && !sim->has[FEATURE_CROWDS]
                           ? TIGHT_INBOX
                           : WIDE_INBOX;
}

static void draw_topics(struct sim *sim)
{
    struct dice *dice = &sim->dice;

    sim->n_topics = sim->has[FEATURE_KAFKA]
                        ? (size_t)dice_between(dice, 1, SIM_TOPICS_MAX)
                        : 0;
    for (size_t i = 0; i < sim->n_topics; i++) {
        struct topic *topic = &sim->topics[i];

        (void)snprintf(topic->name, sizeof topic->name, "t%zu", i);
        (void)snprintf(topic->stream, sizeof topic->stream, "main/t%zu/group",
                       i);
        topic->index = i;
        topic->route = dice_below(dice, (unsigned)sim->n_routes);
        topic->also = SIZE_MAX;
        if (sim->has[FEATURE_FAN_OUT] && dice_permille(dice, 500)) {
            topic->also = (topic->route + 1) % sim->n_routes;
        }
        topic->n_partitions = (unsigned)dice_between(
            dice, 1, SIM_PARTITIONS_MAX / SIM_TOPICS_MAX);
        topic->tells_id = dice_permille(dice, 500);
    }
}

void plan_change(struct sim *sim)
{
    struct dice *dice = &sim->dice;
    struct sim_route *route =
        &sim->routes[dice_below(dice, (unsigned)sim->n_routes)];
    struct engine_route *conf = &route->conf;

    conf->policy.after_dead = conf->policy.after_dead == AFTER_DEAD_HOLD
                                  ? AFTER_DEAD_CONTINUE
                                  : AFTER_DEAD_HOLD;
    if (dice_permille(dice, 300)) {
        conf->policy.on_uncertain =
            conf->policy.on_uncertain == ON_UNCERTAIN_HOLD ? ON_UNCERTAIN_RETRY
                                                           : ON_UNCERTAIN_HOLD;
    }
    conf->concurrency = (uint32_t)dice_skewed(dice, 1, 16);
    sim_trace(sim, "%s is configured anew", route->name);
}

void plan_draw(struct sim *sim)
{
    struct dice *dice = &sim->dice;

    for (size_t i = 0; i < FEATURES; i++) {
        sim->has[i] = dice_permille(dice, chances[i]);
    }
    draw_times(sim);
    draw_store(sim);
    sim->n_routes = (size_t)dice_between(dice, 2, SIM_ROUTES_MAX);
    sim->n_events = (unsigned)dice_skewed(dice, 20, 160);
    if (sim->has[FEATURE_CROWDS]) {
        sim->n_events = (unsigned)dice_between(dice, 500, 900);
    }
    sim->n_keys = dice_below(dice, SIM_KEYS_MAX) + 1;
    for (size_t i = 0; i < sim->n_routes; i++) {
        (void)snprintf(sim->routes[i].name, sizeof sim->routes[i].name, "r%zu",
                       i);
        draw_route(sim, &sim->routes[i]);
    }
    draw_topics(sim);
}
