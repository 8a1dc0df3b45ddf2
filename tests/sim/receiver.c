/* SPDX-License-Identifier: MIT */
/*
 * Handlers. A receiver honours idempotency keys: it applies the effect of a
 * key once, and says 409 while the key's first invocation is under way. That
 * of an HTTP route works on when nobody waits for it any more; a command is
 * killed at its time-out, and outlives a dead worker as an orphan.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

/* --- what is known of keys ---------------------------------------------------
 */

static struct keyed *find_key(struct sim *sim, const char *key)
{
    struct keyed *keyed = sim->keyed;

    while (keyed != NULL && strcmp(keyed->key, key) != 0) {
        keyed = keyed->next;
    }
    return keyed;
}

static struct keyed *want_key(struct sim *sim, const char *key)
{
    struct keyed *keyed = find_key(sim, key);

    if (keyed == NULL) {
        keyed = mem_new(1, sizeof *keyed);
        (void)snprintf(keyed->key, sizeof keyed->key, "%s", key);
        keyed->next = sim->keyed;
        sim->keyed = keyed;
    }
    return keyed;
}

void receiver_free(struct sim *sim)
{
    while (sim->keyed != NULL) {
        struct keyed *keyed = sim->keyed;

        sim->keyed = keyed->next;
        free(keyed);
    }
}

bool receiver_applied(struct sim *sim, const struct event *event, size_t route,
                      uint32_t run)
{
    const struct downstream_key of = {
        .namespace = sim->routes[route].conf.namespace,
        .route = sim->routes[route].name,
        .tenant = slice_of(event->tenant),
        .id = slice_of(event->id),
        .run = run,
    };
    char key[ATTEMPT_KEY_SIZE];
    const struct keyed *keyed;

    engine_downstream_key(&of, key);
    keyed = find_key(sim, key);
    return keyed != NULL && keyed->applied;
}

bool receiver_is_busy(struct sim *sim, const struct event *event, size_t route)
{
    for (size_t i = 0; i < sim->invocations.n; i++) {
        const struct invocation *invocation = sim->invocations.at[i];

        if (!invocation->over && invocation->event == event &&
            invocation->route == &sim->routes[route]) {
            return true;
        }
    }
    return false;
}

/* --- the end of an invocation ------------------------------------------------
 */

/* Of one that works on when the engine gave it up nobody knows the effect. */
static enum ledger_effect effect_of(const struct invocation *invocation)
{
    if (invocation->has_effect) {
        return LEDGER_EFFECT_APPLIED;
    }
    return invocation->over || !invocation->applies ? LEDGER_EFFECT_NONE
                                                    : LEDGER_EFFECT_UNSEEN;
}

static void write_done(struct invocation *invocation)
{
    struct sim *sim = invocation->route->sim;
    const struct ledger_done line = {
        .t_ms = sim->now_ms,
        .n = invocation->n,
        .end = invocation->told_end,
        .status = invocation->told_status,
        .effect = effect_of(invocation),
    };

    if (invocation->n != 0 && !invocation->written) {
        ledger_done(&sim->ledger, &line);
    }
    invocation->written = true;
}

static void finish(struct invocation *invocation)
{
    if (invocation->over) {
        return;
    }
    invocation->over = true;
    if (invocation->n != 0) {
        CHECK(invocation->keyed->busy > 0);
        invocation->keyed->busy--;
    }
    write_done(invocation);
}

static void add_result(struct sim *sim, struct invocation *invocation,
                       struct attempt *attempt)
{
    char body[600];
    const struct result result = {
        .status = (uint16_t)attempt->status,
        .body = {body, (size_t)dice_skewed(&sim->dice, 0, sizeof body)},
    };

    invocation->result_len = result.body.len;
    memset(body, 'r', sizeof body);
    result_encode(&result, &attempt->result);
}

/* What the engine hears of it. */
static void give_back(struct invocation *invocation, enum attempt_end end,
                      int status)
{
    struct attempt *attempt = invocation->attempt;
    struct sim *sim = invocation->route->sim;

    invocation->attempt = NULL;
    attempt->end = end;
    attempt->status = status;
    attempt->retry_after_ms =
        end == invocation->end ? invocation->retry_after_ms : -1;
    if (end == END_STATUS && status == 200) {
        add_result(sim, invocation, attempt);
    }
    (void)snprintf(attempt->text, sizeof attempt->text, "%s %d",
                   attempt_end_name(end), status);
    attempt_finish(attempt);
    process_poke(sim);
    nemesis_tempt(sim, 10000);
}

static void tell(struct invocation *invocation, enum attempt_end end,
                 int status)
{
    sim_trace(invocation->route->sim, "%s of %s, attempt %u: %s %d%s",
              invocation->event->id, invocation->route->name,
              invocation->number, attempt_end_name(end), status,
              invocation->has_effect ? ", applied" : "");
    invocation->told_end = (enum ledger_end)end;
    invocation->told_status = status;
    write_done(invocation);
    give_back(invocation, end, status);
}

static void act_answer(struct sim *sim, void *who)
{
    struct invocation *invocation = who;

    if (invocation->over) {
        return;
    }
    if (invocation->attempt == NULL) {
        sim->sights.late_answers++;
        sim_trace(sim, "%s of %s, attempt %u: answered, nobody listens%s",
                  invocation->event->id, invocation->route->name,
                  invocation->number,
                  invocation->has_effect ? ", applied" : "");
        finish(invocation);
        return;
    }
    /* Over first: what it did is known. */
    invocation->told_end = (enum ledger_end)invocation->end;
    invocation->told_status = invocation->status;
    finish(invocation);
    tell(invocation, invocation->end, invocation->status);
}

static void act_effect(struct sim *sim, void *who)
{
    struct invocation *invocation = who;

    (void)sim;
    if (!invocation->over && !invocation->keyed->applied) {
        invocation->keyed->applied = true;
        invocation->has_effect = true;
    }
}

/* The engine gives it up: a command is killed, another receiver works on. */
static void end_early(struct invocation *invocation, enum attempt_end end,
                      int status)
{
    invocation->told_end = (enum ledger_end)end;
    invocation->told_status = status;
    if (invocation->route->is_exec) {
        finish(invocation);
    }
    tell(invocation, end, status);
}

static void act_timeout(struct sim *sim, void *who)
{
    struct invocation *invocation = who;

    (void)sim;
    if (invocation->attempt == NULL) {
        return;
    }
    end_early(invocation, END_TIMEOUT, 0);
}

/* --- what will come of it ----------------------------------------------------
 */

static void end_as(struct invocation *invocation, int status, int exit_status)
{
    bool is_exec = invocation->route->is_exec;

    invocation->end = is_exec ? END_EXIT : END_STATUS;
    invocation->status = is_exec ? exit_status : status;
}

/* 5xx, a broken connection, a status that means nothing, a signal. */
static void fail(struct invocation *invocation)
{
    static const int statuses[] = {500, 502, 503, 504, 302};
    struct dice *dice = &invocation->route->sim->dice;

    end_as(invocation, statuses[dice_below(dice, 5)], 1);
    if (dice_permille(dice, 300)) {
        invocation->end = invocation->route->is_exec ? END_SIGNAL : END_BROKEN;
        invocation->status = invocation->route->is_exec ? 9 : 0;
    } else if (dice_permille(dice, 200)) {
        invocation->retry_after_ms = dice_between(dice, 1, 20) * 1000;
    }
}

static void refuse(struct invocation *invocation)
{
    static const int statuses[] = {400, 422, 410, 404, 403};
    static const int exits[] = {64, 65, 66, 77, 78};
    unsigned i = dice_below(&invocation->route->sim->dice, 5);

    /* What was applied under this key has its answer. */
    if (invocation->keyed->applied) {
        return;
    }
    invocation->applies = false;
    end_as(invocation, statuses[i], exits[i]);
}

static void defer(struct invocation *invocation)
{
    static const int statuses[] = {429, 408, 425, 421};
    struct dice *dice = &invocation->route->sim->dice;

    invocation->applies = false;
    end_as(invocation, statuses[dice_below(dice, 4)], 75);
    if (dice_permille(dice, 500)) {
        invocation->retry_after_ms = dice_between(dice, 0, 30) * 1000;
    }
}

static void hang(struct invocation *invocation)
{
    struct sim *sim = invocation->route->sim;
    int64_t limit_ms = invocation->route->conf.policy.timeout_ms;

    nemesis_tempt_more(sim, limit_ms);
    invocation->applies = dice_permille(&sim->dice, 500);
    invocation->effect_ms =
        sim->now_ms + dice_between(&sim->dice, 0, 2 * limit_ms);
    invocation->answer_ms = invocation->effect_ms +
                            dice_between(&sim->dice, limit_ms, 2 * limit_ms);
}

static void draw_fault(struct invocation *invocation)
{
    struct sim *sim = invocation->route->sim;
    unsigned what = dice_below(&sim->dice, 1000);

    if (sim->has[FEATURE_HANGS] && what < 120) {
        hang(invocation);
    } else if (sim->has[FEATURE_LIES] && what >= 120 && what < 250) {
        fail(invocation);
    } else if (sim->has[FEATURE_FAILS] && what >= 250 && what < 400) {
        invocation->applies = false;
        fail(invocation);
    } else if (sim->has[FEATURE_REFUSES] && what >= 400 && what < 500) {
        refuse(invocation);
    } else if (sim->has[FEATURE_DEFERS] && what >= 500 && what < 650) {
        defer(invocation);
    }
}

static void draw_fate(struct invocation *invocation)
{
    struct sim *sim = invocation->route->sim;
    int64_t limit_ms = invocation->route->conf.policy.timeout_ms;
    int64_t most_ms = sim->healed || limit_ms < 600 ? 200 : limit_ms / 3;

    invocation->applies = true;
    invocation->effect_ms = sim->now_ms + dice_skewed(&sim->dice, 0, most_ms);
    invocation->answer_ms =
        invocation->effect_ms + dice_skewed(&sim->dice, 0, most_ms);
    invocation->retry_after_ms = -1;
    end_as(invocation, 200, 0);
    if (invocation->keyed->busy > 1) {
        sim->sights.key_busy++;
        invocation->applies = false;
        end_as(invocation, 409, 75);
    } else if (!sim->healed) {
        draw_fault(invocation);
    }
}

/* --- the beginning of an invocation ------------------------------------------
 */

static bool same_key(const struct event *a, const struct event *b)
{
    return a->order_key != 0 && a->order_key == b->order_key &&
           strcmp(a->tenant, b->tenant) == 0;
}

/* What is promised of attempts at one time. A receiver that works on for a
 * dead process, or after a time-out, is no attempt any more; a command is. */
static void expect_alone(const struct invocation *this)
{
    struct sim *sim = this->route->sim;

    for (size_t i = 0; i < sim->invocations.n; i++) {
        const struct invocation *other = sim->invocations.at[i];
        bool runs = other->attempt != NULL ||
                    (other->route->is_exec && other->n != 0 && !other->over);

        if (other == this || !runs || other->route != this->route) {
            continue;
        }
        if (other->event == this->event) {
            sim_fail(sim, "two attempts of %s at one time: %u and %u",
                     this->event->id, other->number, this->number);
        } else if (this->route->ordered &&
                   same_key(other->event, this->event)) {
            sim_fail(sim, "two events of one key at one time: %s and %s",
                     other->event->id, this->event->id);
        }
    }
    if (this->route->paused) {
        sim_fail(sim, "%s starts on a paused route", this->event->id);
    }
    if (sim->process.stopping) {
        sim_fail(sim, "%s starts while the process stops", this->event->id);
    }
}

/* What only a partition brought runs where the partition is; while that
 * drains, what has not begun yet may. */
static void expect_its_partition(const struct invocation *this)
{
    const struct event *event = this->event;
    struct sim *sim = this->route->sim;
    enum whereabouts where = broker_find(sim, event);

    if (event->by_http || event->replays > 0) {
        return;
    }
    if (where == LEAVING && this->number == 1) {
        sim->sights.begun_in_drain++;
    } else if (where == LEAVING || where == ELSEWHERE) {
        sim_fail(sim, "%s starts, and its partition is not here", event->id);
    }
}

static void write_inv(struct invocation *invocation,
                      const struct attempt *attempt)
{
    struct sim *sim = invocation->route->sim;
    size_t route = (size_t)(invocation->route - sim->routes);
    struct buf hash = BUF_INIT;
    struct ledger_inv line = {
        .t_ms = sim->now_ms,
        .n = invocation->n = ++sim->last_invocation,
        .event = event_name(sim, invocation->event, route),
        .key = slice_of(attempt->idempotency_key),
        .attempt = attempt->number,
        .process = sim->process.number,
    };

    sender_hash(attempt->envelope.body, &hash);
    line.hash = buf_slice(&hash);
    if (attempt->number == 1) {
        sender_see_renewed(invocation->event, route);
    }
    invocation->event->invoked[invocation->event->route == route ? 0 : 1]++;
    ledger_inv(&sim->ledger, &line);
    buf_free(&hash);
}

static void receive(struct invocation *invocation)
{
    struct sim *sim = invocation->route->sim;
    const struct attempt *attempt = invocation->attempt;

    if (sim->now_ms < invocation->route->unreachable_until_ms) {
        sim_trace(sim, "%s of %s, attempt %u: nobody is there",
                  invocation->event->id, invocation->route->name,
                  invocation->number);
        invocation->end = END_UNREACHED;
        invocation->retry_after_ms = -1;
        invocation->answer_ms = sim->now_ms + dice_skewed(&sim->dice, 0, 300);
    } else {
        sim_trace(sim, "%s of %s, attempt %u begins", invocation->event->id,
                  invocation->route->name, invocation->number);
        invocation->keyed = want_key(sim, attempt->idempotency_key);
        invocation->keyed->busy++;
        write_inv(invocation, attempt);
        nemesis_tempt(sim, 10000);
        draw_fate(invocation);
        if (invocation->applies) {
            agenda_plan(&sim->agenda, invocation->effect_ms, act_effect,
                        invocation);
        }
    }
    agenda_plan(&sim->agenda, invocation->answer_ms, act_answer, invocation);
    agenda_plan(&sim->agenda, sim->now_ms + attempt->timeout_ms, act_timeout,
                invocation);
}

static void receiver_start(void *self, struct attempt *attempt)
{
    struct sim_route *route = self;
    struct sim *sim = route->sim;
    struct process *process = &sim->process;
    struct invocation *invocation;

    if (!process_lets_out(sim)) {
        CHECK(process->n_unsent < SIM_UNSENT_MAX);
        process->unsent[process->n_unsent++] = attempt;
        return;
    }
    invocation = list_add(&sim->invocations, sizeof *invocation);
    invocation->route = route;
    invocation->attempt = attempt;
    invocation->told_end = LEDGER_END_LOST;
    invocation->number = attempt->number;
    memcpy(invocation->identity, attempt->identity,
           sizeof invocation->identity);
    invocation->event = sender_find(sim, (size_t)(route - sim->routes),
                                    attempt->tenant, attempt->id);
    if (invocation->event == NULL) {
        sim_fail(sim, "an event that nobody sent is started: %.*s",
                 (int)attempt->id.len, attempt->id.data);
        invocation->over = true;
        return;
    }
    invocation->event->known = true;
    expect_alone(invocation);
    expect_its_partition(invocation);
    process_watch_breaker(sim, (size_t)(route - sim->routes));
    receive(invocation);
}

/* --- orphans, and the end of processes ---------------------------------------
 */

static struct invocation *find_orphan(const struct sim_route *route,
                                      const uint8_t identity[16],
                                      uint32_t number)
{
    const struct list *all = &route->sim->invocations;

    for (size_t i = 0; route->is_exec && i < all->n; i++) {
        struct invocation *invocation = all->at[i];

        if (invocation->route == route && invocation->n != 0 &&
            !invocation->over && invocation->attempt == NULL &&
            invocation->number == number &&
            memcmp(invocation->identity, identity, 16) == 0) {
            return invocation;
        }
    }
    return NULL;
}

static bool receiver_is_alive(void *self, const uint8_t identity[16],
                              uint32_t number)
{
    return find_orphan(self, identity, number) != NULL;
}

static void receiver_kill(void *self, const uint8_t identity[16],
                          uint32_t number)
{
    struct invocation *orphan = find_orphan(self, identity, number);

    if (orphan != NULL) {
        sim_trace(orphan->route->sim, "the orphan of %s is killed",
                  orphan->event->id);
        finish(orphan);
    }
}

static void ignore(void *self)
{
    (void)self;
}

const struct handler_ops receiver_ops = {
    .start = receiver_start,
    .is_alive = receiver_is_alive,
    .kill = receiver_kill,
    .stop = ignore,
    .free = ignore,
};

void receiver_stop(struct sim *sim)
{
    for (size_t i = 0; i < sim->invocations.n; i++) {
        struct invocation *invocation = sim->invocations.at[i];

        if (invocation->attempt == NULL) {
            continue;
        }
        end_early(invocation,
                  invocation->route->is_exec ? END_SIGNAL : END_BROKEN,
                  invocation->route->is_exec ? 15 : 0);
    }
}

void receiver_reboot(struct sim *sim)
{
    for (size_t i = 0; i < sim->invocations.n; i++) {
        struct invocation *invocation = sim->invocations.at[i];

        if (invocation->route->is_exec) {
            finish(invocation);
        }
    }
}
