/* SPDX-License-Identifier: MIT */
/* Operators look at an event first, and order what fits it, a moment later;
 * now and then they order what does not. What they say was applied, was. */
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

static struct record *seen_at(struct event *event, size_t route)
{
    return &event->seen[event->route == route ? 0 : 1];
}

/* --- orders ------------------------------------------------------------------
 */

static bool is_in_ledger(enum command_kind kind)
{
    return kind != COMMAND_READ && kind != COMMAND_FLUSH;
}

static void write_order(const struct order *order, enum ledger_verdict verdict)
{
    struct sim *sim = order->sim;
    struct ledger_order line = {
        .t_ms = sim->now_ms,
        .kind = (enum ledger_order_kind)order->command.kind,
        .event = {.route = slice_of(sim->routes[order->command.route].name)},
        .verdict = verdict,
    };

    if (!is_in_ledger(order->command.kind)) {
        return;
    }
    if (order->event != NULL) {
        line.event = event_name(sim, order->event, order->command.route);
    }
    ledger_order(&sim->ledger, &line);
}

static void lead_on(struct order *order);

static void look(void *ctx, struct store *store, struct store_entry *entry)
{
    struct order *order = ctx;

    (void)store;
    *seen_at(order->event, order->command.route) = entry->record;
    if (entry->record.attempt == 0) {
        sender_see_renewed(order->event, order->command.route);
    }
}

/* An event that was acknowledged, and is not there, must have been settled,
 * and for long. */
static void missed(const struct order *order)
{
    struct sim *sim = order->sim;
    struct event *event = order->event;

    if (event->acked &&
        !operator_is_forgotten(sim, event, order->command.route,
                               store_now_ms(sim->process.store))) {
        sim_fail(sim, "%s was acknowledged, and is not known to %s", event->id,
                 sim->routes[order->command.route].name);
    }
}

bool operator_is_forgotten(const struct sim *sim, const struct event *event,
                           size_t route, int64_t store_now_ms)
{
    const struct record *seen = &event->seen[event->route == route ? 0 : 1];

    return (seen->state == RECORD_SUCCEEDED || seen->state == RECORD_FAILED) &&
           store_now_ms - seen->changed_ms >=
               sim->routes[route].conf.retention.ids_ms;
}

static void done(struct command *command)
{
    struct order *order = (struct order *)command;
    struct sim *sim = order->sim;
    struct sim_route *route = &sim->routes[command->route];
    bool is_so = command->status == COMMAND_DONE ||
                 command->status == COMMAND_NOTHING_TO_DO;

    CHECK(order->in_engine);
    if (!process_lets_out(sim)) {
        return;
    }
    order->in_engine = false;
    write_order(order, (enum ledger_verdict)command->status);
    if (command->kind != COMMAND_READ) {
        sim_trace(sim, "order %d on %s of %s: %s", (int)command->kind,
                  order->event == NULL ? "all" : order->event->id, route->name,
                  command->why);
    } else if (command->status == COMMAND_NOT_FOUND) {
        missed(order);
    } else if (command->status == COMMAND_DONE && order->leads_on) {
        lead_on(order);
    }
    if (command->kind == COMMAND_PAUSE && is_so) {
        route->paused = true;
    } else if (command->kind == COMMAND_RESUME) {
        route->paused = false;
    }
}

static struct order *give(struct sim *sim, enum command_kind kind, size_t route,
                          struct event *event)
{
    struct process *process = &sim->process;
    struct order *order;

    if (!process->up || process->stopping) {
        return NULL;
    }
    order = list_add(&sim->orders, sizeof *order);
    order->sim = sim;
    order->event = event;
    order->command = (struct command){
        .kind = kind,
        .actor = "operator",
        .route = route,
        .done = done,
        .read = look,
        .ctx = order,
    };
    if (event != NULL) {
        order->command.tenant = slice_of(event->tenant);
        order->command.id = slice_of(event->id);
        event->reruns += kind == COMMAND_RERUN ? 1 : 0;
        event->replays += is_in_ledger(kind) ? 1 : 0;
    }
    if (kind == COMMAND_RESUME) {
        sim->routes[route].paused = false; /* perhaps, from here on */
    }
    return order;
}

static bool hand_in(struct order *order)
{
    struct sim *sim = order->sim;

    order->in_engine = engine_command(sim->process.engine, &order->command);
    if (order->in_engine) {
        process_poke(sim);
    }
    return order->in_engine;
}

bool operator_order(struct sim *sim, enum command_kind kind, size_t route,
                    struct event *event)
{
    struct order *order = give(sim, kind, route, event);

    return order != NULL && hand_in(order);
}

void operator_process_died(struct sim *sim)
{
    for (size_t i = 0; i < sim->orders.n; i++) {
        struct order *order = sim->orders.at[i];

        if (order->in_engine) {
            order->in_engine = false;
            write_order(order, LEDGER_UNKNOWN);
        }
    }
}

/* --- what is ordered ---------------------------------------------------------
 */

void operator_settle(struct sim *sim, struct event *event, size_t route,
                     uint32_t run)
{
    enum command_kind kind = COMMAND_REPLAY;

    if (receiver_is_busy(sim, event, route)) {
        return; /* nobody can tell yet */
    }
    if (receiver_applied(sim, event, route, run)) {
        kind = COMMAND_RESOLVE_APPLIED;
    } else if (dice_permille(&sim->dice, 300)) {
        kind = COMMAND_RESOLVE_NOT_APPLIED;
    }
    (void)operator_order(sim, kind, route, event);
}

static void replay(struct sim *sim, struct event *event, size_t route,
                   uint32_t run)
{
    struct order *order = give(sim, COMMAND_REPLAY, route, event);

    if (order != NULL) {
        order->command.assume_not_applied =
            dice_permille(&sim->dice, 500) &&
            !receiver_is_busy(sim, event, route) &&
            !receiver_applied(sim, event, route, run);
        (void)hand_in(order);
    }
}

static void order_what_fits(struct sim *sim, struct event *event, size_t route)
{
    const struct record *seen = seen_at(event, route);
    unsigned what = dice_below(&sim->dice, 10);

    switch (seen->state) {
    case RECORD_SUCCEEDED:
        (void)operator_order(sim,
                             sim->has[FEATURE_RERUNS] && what < 6
                                 ? COMMAND_RERUN
                                 : COMMAND_REPLAY,
                             route, event);
        return;
    case RECORD_DEAD:
    case RECORD_UNCERTAIN:
        if (what < 4) {
            operator_settle(sim, event, route, seen->run);
        } else if (what < 8) {
            replay(sim, event, route, seen->run);
        } else {
            (void)operator_order(sim, COMMAND_DISCARD, route, event);
        }
        return;
    case RECORD_NONE:
    case RECORD_PENDING:
    case RECORD_RUNNING:
    case RECORD_FAILED:
        (void)operator_order(sim, what < 8 ? COMMAND_REPLAY : COMMAND_DISCARD,
                             route, event);
        return;
    }
    UNREACHABLE("every state is listed");
}

static void act_order(struct sim *sim, void *who)
{
    const struct order *look_at = who;
    struct event *event = look_at->event;

    /* Where the event runs again, nothing is known of that run. */
    if (!sim->healed && event->reruns == look_at->reruns) {
        order_what_fits(sim, event, look_at->command.route);
    }
}

static void lead_on(struct order *order)
{
    struct sim *sim = order->sim;

    order->reruns = order->event->reruns;
    agenda_plan(&sim->agenda, sim->now_ms + dice_skewed(&sim->dice, 0, 5000),
                act_order, order);
}

/* --- when --------------------------------------------------------------------
 */

/* All dead letters at once, as `replay --dead` does. */
static void replay_dead(struct sim *sim)
{
    for (size_t i = 0; i < sim->events.n; i++) {
        struct event *event = sim->events.at[i];

        if (event->seen[0].state == RECORD_DEAD) {
            replay(sim, event, event->route, event->seen[0].run);
        }
    }
}

static void act_look(struct sim *sim, void *who)
{
    struct event *event =
        sim->events.at[dice_below(&sim->dice, (unsigned)sim->events.n)];
    struct order *order;
    size_t route = event->route;

    (void)who;
    if (sim->healed) {
        return;
    }
    agenda_plan(&sim->agenda,
                sim->now_ms + dice_skewed(&sim->dice, 0, sim->phase_ms / 15),
                act_look, NULL);
    if (dice_permille(&sim->dice, 100)) {
        replay_dead(sim);
    }
    if (event->also != SIZE_MAX && dice_permille(&sim->dice, 500)) {
        route = event->also;
    }
    order = give(sim, COMMAND_READ, route, event);
    if (order != NULL) {
        order->leads_on = true;
        (void)hand_in(order);
    }
}

static void act_resume(struct sim *sim, void *who)
{
    struct sim_route *route = who;

    (void)operator_order(sim, COMMAND_RESUME, (size_t)(route - sim->routes),
                         NULL);
}

static void act_pause(struct sim *sim, void *who)
{
    size_t route = dice_below(&sim->dice, (unsigned)sim->n_routes);

    (void)who;
    if (sim->healed) {
        return;
    }
    (void)operator_order(sim, COMMAND_PAUSE, route, NULL);
    agenda_plan(&sim->agenda,
                sim->now_ms + dice_skewed(&sim->dice, 1000, sim->phase_ms / 3),
                act_resume, &sim->routes[route]);
    agenda_plan(&sim->agenda,
                sim->now_ms + dice_skewed(&sim->dice, 1000, sim->phase_ms / 2),
                act_pause, NULL);
}

void operator_audit(struct sim *sim)
{
    for (size_t i = 0; i < sim->events.n; i++) {
        struct event *event = sim->events.at[i];

        if (event->first_try_ms == 0) {
            continue;
        }
        (void)operator_order(sim, COMMAND_READ, event->route, event);
        if (event->also != SIZE_MAX) {
            (void)operator_order(sim, COMMAND_READ, event->also, event);
        }
    }
}

static void act_audit(struct sim *sim, void *who)
{
    (void)who;
    if (!sim->healed) {
        operator_audit(sim);
        agenda_plan(&sim->agenda,
                    sim->now_ms + (sim->has[FEATURE_FORGETTING]
                                       ? sim->retention_ms / 4
                                       : sim->phase_ms / 3),
                    act_audit, NULL);
    }
}

void operator_plan(struct sim *sim)
{
    agenda_plan(&sim->agenda, sim->now_ms + sim->phase_ms / 8, act_audit, NULL);
    if (sim->has[FEATURE_ORDERS] || sim->has[FEATURE_RERUNS]) {
        agenda_plan(&sim->agenda, sim->now_ms + MINUTE_MS, act_look, NULL);
    }
    if (sim->has[FEATURE_PAUSES]) {
        agenda_plan(&sim->agenda,
                    sim->now_ms +
                        dice_between(&sim->dice, 0, sim->phase_ms / 2),
                    act_pause, NULL);
    }
}
