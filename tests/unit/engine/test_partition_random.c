/* SPDX-License-Identifier: MIT */
/*
 * Worlds from seeds: two partitions that come and go, another worker that has
 * them meanwhile, senders that are answered, operators, crashes, and messages
 * that vanish. Beside it runs a model of what each assignment may commit. At
 * no time is an offset passed that was received and is not settled; nothing
 * runs again that succeeded; in the end everything is settled, and what is
 * said to have moved was settled by the other worker.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "unit/engine/partition_model.h"

enum { SEEDS = 60, STEPS = 250 };

static bool elsewhere[NUMBERS][WORLD_ROUTES]; /* the other worker settled it */
static bool done[NUMBERS][WORLD_ROUTES];      /* it succeeded here */
static bool is_keyed, vanishes;
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407;
    return (unsigned)((random_state >> 33) % below);
}

static uint64_t key_of(int number)
{
    return is_keyed ? 1 + (uint64_t)number % 5 : 0;
}

/* --- at any time ---------------------------------------------------------- */

/* An event that only its partition brings is not behind what was committed. */
static void check_event(int number, size_t route)
{
    const struct store_entry *entry = &seen[number][route];
    const struct log *log = &logs[entry->position.partition];

    cr_assert(entry->record.reason != REASON_MOVED || elsewhere[number][route],
              "seed %llu: e%d of route %zu was settled nowhere",
              (unsigned long long)seed, number, route);
    if (record_is_settled(&entry->record) || entry->position.stream == 0 ||
        (entry->record.flags & RECORD_PINS) == 0 || !log->is_assigned ||
        entry->position.offset < log->began) {
        return;
    }
    cr_assert_leq(log->part.assignment.low_water, entry->position.offset,
                  "seed %llu: e%d of route %zu is lost",
                  (unsigned long long)seed, number, route);
}

static void check_running(void)
{
    for (size_t i = 0; i < world.n_running; i++) {
        const struct attempt *attempt = world.running[i];
        int number = world_number(attempt);

        cr_assert_not(done[number][attempt->route[0] - 'a'],
                      "seed %llu: e%d succeeded and runs",
                      (unsigned long long)seed, number);
        for (size_t j = i + 1; j < world.n_running; j++) {
            cr_assert(strcmp(attempt->route, world.running[j]->route) != 0 ||
                          world_number(world.running[j]) != number,
                      "seed %llu: e%d twice at a time",
                      (unsigned long long)seed, number);
        }
    }
}

static void check(void)
{
    check_running();
    cr_assert_eq(look(), 0, "seed %llu", (unsigned long long)seed);
    for (size_t i = 0; i < PARTS; i++) {
        check_log(&logs[i]);
    }
    for (int number = 0; number < NUMBERS; number++) {
        for (size_t route = 0; route < WORLD_ROUTES; route++) {
            check_event(number, route);
        }
    }
}

/* --- the source ------------------------------------------------------------
 */

static void skip_committed(struct log *log)
{
    while (log->next < log->n && log->offset[log->next] < log->committed) {
        log->next++;
    }
}

static void assign(struct log *log)
{
    int32_t number = (int32_t)(log - logs);

    part_init(&log->part, number, log->committed);
    engine_assign(world.engine, &log->part.orders[ASSIGNMENT_OPEN]);
    log->is_assigned = true;
    log->is_draining = false;
    log->began = log->committed;
    log->next = 0;
    memset(log->progress, 0, sizeof log->progress);
    memset(log->attempt, 0, sizeof log->attempt);
    skip_committed(log);
    if (log->stored < log->committed) {
        log->stored = log->committed;
    }
    if (log->stored < 0) {
        log->stored = 0;
    }
}

static struct message message_at(struct log *log, const char *id)
{
    int number = log->number[log->next];
    bool is_for_both = is_for(number, 0) && is_for(number, 1);

    return (struct message){
        .assignment = &log->part.assignment,
        .offset = log->offset[log->next],
        .route = is_for(number, 0) ? 0 : 1,
        .n_routes = is_for_both ? 2 : 1,
        .id = id,
        .order_key = key_of(number),
    };
}

/* A few messages in one delivery, which is taken with the next turn. */
static struct sent *bring(struct log *log)
{
    struct message messages[WORLD_ARRIVALS_MAX];
    char ids[WORLD_ARRIVALS_MAX][16];
    size_t n = 0, most = 1 + draw(3);

    for (; n < most && log->next < log->n; log->next++) {
        int number = log->number[log->next];

        if (log->is_removed[log->next]) {
            continue;
        }
        (void)snprintf(ids[n], sizeof ids[n], "%s", world_id(number));
        messages[n] = message_at(log, ids[n]);
        for (size_t route = 0; route < WORLD_ROUTES; route++) {
            log->progress[log->next][route] =
                is_for(number, route) ? OPEN : NOT_RECEIVED;
        }
        n++;
    }
    return n == 0 ? NULL : world_bring(&world, messages, n);
}

static void commit(struct log *log)
{
    int64_t low_water = log->part.assignment.low_water;

    if (low_water >= 0) {
        cr_assert_geq(low_water, log->committed);
        log->committed = low_water;
    }
}

/* What it parks may turn out to have moved, and is settled so. */
static void fence(struct log *log)
{
    size_t unsettled;
    int64_t low_water;

    cr_assert(part_order(&world, &log->part, ASSIGNMENT_FENCE));
    log->is_assigned = false;
    log->is_draining = true;
    (void)look();
    low_water = low_water_of(log, &unsettled);
    cr_assert_eq(log->part.orders[ASSIGNMENT_FENCE].low_water, low_water);
    if (log->stored < low_water) {
        log->stored = low_water;
    }
}

/* By the rules, or without a word. */
static void revoke(struct log *log)
{
    bool is_done;

    if (!log->is_draining) {
        log->is_draining = true;
        is_done = part_order(&world, &log->part, ASSIGNMENT_DRAIN);
    } else {
        is_done = log->part.done[ASSIGNMENT_DRAIN] == 1;
    }
    check();
    if (is_done || draw(4) == 0) {
        commit(log);
        fence(log);
    }
}

/* The other worker has the partition, and settles some of it. */
static void work_elsewhere(struct log *log)
{
    for (unsigned n = draw(4); n > 0; n--) {
        size_t i = 0;

        while (i < log->n && log->offset[i] < log->committed) {
            i++;
        }
        if (i == log->n) {
            return;
        }
        for (size_t route = 0; route < WORLD_ROUTES; route++) {
            elsewhere[log->number[i]][route] = true;
        }
        log->committed = log->offset[i] + 1;
    }
}

/* --- handler, process, and others ------------------------------------------
 */

static void end_one(size_t at, enum attempt_end end, int status)
{
    struct attempt *attempt = world.running[at];
    int number = world_number(attempt);
    size_t route = (size_t)(attempt->route[0] - 'a');

    memmove(&world.running[at], &world.running[at + 1],
            (world.n_running - at - 1) * sizeof world.running[0]);
    world.n_running--;
    attempt->end = end;
    attempt->status = status;
    attempt_finish(attempt);
    world_turn(&world);
    done[number][route] = done[number][route] || status == 200;
}

static void answer_one(void)
{
    static const int statuses[] = {200, 200, 200, 503, 404, 429, 429};
    size_t at;

    if (world.n_running == 0) {
        return;
    }
    at = draw((unsigned)world.n_running);
    if (draw(12) == 0) {
        end_one(at, END_UNREACHED, 0);
    } else {
        end_one(at, END_STATUS, statuses[draw(7)]);
    }
}

static void lose_all(void)
{
    for (size_t i = 0; i < PARTS; i++) {
        logs[i].is_assigned = false;
    }
}

static void crash(void)
{
    world.alive = draw(3) == 0;
    world_crash(&world);
    lose_all();
    world_open(&world);
}

static void restart(void)
{
    for (size_t i = 0; i < PARTS; i++) {
        if (logs[i].is_assigned) {
            commit(&logs[i]);
            fence(&logs[i]);
        }
    }
    world_close(&world);
    world_open(&world);
}

static void order_one(void)
{
    static const enum command_kind kinds[] = {
        COMMAND_REPLAY,  COMMAND_RESOLVE_APPLIED, COMMAND_RESOLVE_NOT_APPLIED,
        COMMAND_DISCARD, COMMAND_PAUSE,           COMMAND_RESUME,
        COMMAND_RESUME,
    };
    size_t route = draw(WORLD_ROUTES);
    int number = (int)draw(IDS);
    enum command_kind kind = kinds[draw(7)];
    enum command_status status =
        world_order(&world, kind, route, world_id(number));

    if (kind == COMMAND_RESOLVE_APPLIED && status == COMMAND_DONE) {
        done[number][route] = true;
    }
}

static void send_one(void)
{
    int number = (int)draw(IDS);
    size_t route = draw(WORLD_ROUTES);
    struct sent *sent =
        world_send_keyed(&world, route, world_id(number), key_of(number));

    world_turn(&world);
    sent_free(sent);
}

static void step_source(struct log *log)
{
    struct sent *sent = NULL;

    if (!log->is_assigned) {
        if (draw(3) == 0) {
            work_elsewhere(log);
        } else {
            assign(log);
            world_turn(&world);
        }
        return;
    }
    if (log->is_draining || draw(14) == 0) {
        revoke(log);
        return;
    }
    if (draw(20) == 0) {
        fence(log);
        return;
    }
    sent = bring(log);
    if (draw(3) == 0) {
        answer_one(); /* in one batch with it */
    }
    world_turn(&world);
    if (sent != NULL) {
        sent_free(sent);
    }
}

static void step(void)
{
    static const int64_t spans_ms[] = {1000, 3000, 20000, 60000};
    struct log *log = &logs[draw(PARTS)];
    unsigned what = draw(40);

    if (what < 16) {
        step_source(log);
    } else if (what < 26) {
        answer_one();
    } else if (what < 30) {
        world_pass(&world, spans_ms[draw(4)]);
    } else if (what < 33) {
        order_one();
    } else if (what < 34) {
        send_one();
    } else if (what < 36) {
        if (log->is_assigned) {
            commit(log);
        }
    } else if (what < 37) {
        world.alive = false;
    } else if (what < 38 && vanishes) {
        log->is_removed[draw((unsigned)log->n)] = true;
    } else if (what == 38) {
        crash();
    } else if (what == 39 && draw(2) == 0) {
        restart();
    }
    check();
}

/* --- the end ---------------------------------------------------------------
 */

static void discard_dead(void)
{
    for (size_t route = 0; route < WORLD_ROUTES; route++) {
        for (int number = 0; number < NUMBERS; number++) {
            if (record_of(number, route)->state == RECORD_DEAD) {
                (void)world_order(&world, COMMAND_DISCARD, route,
                                  world_id(number));
            }
        }
    }
}

/* Both partitions are here, all is brought, and every answer is 200. */
static void heal(void)
{
    world.alive = false;
    for (size_t i = 0; i < PARTS; i++) {
        struct log *log = &logs[i];

        (void)world_order(&world, COMMAND_RESUME, i, "");
        check();
        log->offset[LAST] = log->offset[LAST - 1] + 3;
        log->number[LAST] = IDS + (int)i;
        log->n = MESSAGES;
        if (log->is_assigned) {
            fence(log);
        }
        assign(log);
    }
    world_turn(&world);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < PARTS; i++) {
            struct sent *sent = bring(&logs[i]);

            world_turn(&world);
            if (sent != NULL) {
                sent_free(sent);
            }
        }
        while (world.n_running > 0) {
            end_one(0, END_STATUS, 200);
        }
        check();
        discard_dead();
        world_pass(&world, 30000);
    }
}

static void expect_settled(const struct log *log)
{
    for (size_t i = 0; i < log->n; i++) {
        for (size_t route = 0; route < WORLD_ROUTES; route++) {
            const struct record *record = record_of(log->number[i], route);
            bool is_known = record->state != RECORD_NONE;

            cr_assert(!is_known || record_is_settled(record),
                      "seed %llu: e%d of route %zu is stuck in %s, flags %x",
                      (unsigned long long)seed, log->number[i], route,
                      record_state_name(record->state), record->flags);
            cr_assert(is_known || !is_for(log->number[i], route) ||
                          log->is_removed[i] ||
                          elsewhere[log->number[i]][route],
                      "seed %llu: e%d was never seen", (unsigned long long)seed,
                      log->number[i]);
        }
    }
    cr_assert_eq(log->part.assignment.low_water, log->offset[LAST] + 1);
    cr_assert_eq(log->part.assignment.unsettled, 0);
}

static void begin(void)
{
    random_state = seed * 7919 + 1;
    memset(logs, 0, sizeof logs);
    memset(elsewhere, 0, sizeof elsewhere);
    memset(done, 0, sizeof done);
    is_keyed = draw(2) == 0;
    vanishes = draw(2) == 0;
    world_init(&world);
    world.streams = rig_streams;
    world.n_streams = 1;
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        struct policy *policy = &world.routes[i].policy;

        world.routes[i].concurrency = 1 + draw(4);
        policy->after_dead =
            draw(2) == 0 ? AFTER_DEAD_CONTINUE : AFTER_DEAD_HOLD;
        policy->on_uncertain =
            draw(3) == 0 ? ON_UNCERTAIN_HOLD : ON_UNCERTAIN_RETRY;
    }
    for (size_t p = 0; p < PARTS; p++) {
        int64_t offset = draw(100);

        for (size_t i = 0; i < LOG; i++) {
            logs[p].offset[i] = offset;
            logs[p].number[i] = (int)draw(IDS);
            offset += draw(3) == 0 ? 1 + draw(5) : 1;
        }
        logs[p].n = LOG;
        logs[p].committed = -1;
        logs[p].stored = -1;
    }
    world_open(&world);
}

static void verify(void)
{
    char path[80];
    struct store_report report;
    struct err err;

    for (size_t i = 0; i < PARTS; i++) {
        fence(&logs[i]);
    }
    world_close(&world);
    (void)snprintf(path, sizeof path, "%s/store", world.dir);
    cr_assert(store_verify(path, &report, &err), "%s", err.text);
    cr_assert_eq(report.bad, 0, "seed %llu: %s", (unsigned long long)seed,
                 report.first_bad);
}

Test(partition_random, nothing_is_lost_or_passed)
{
    for (seed = 1; seed <= SEEDS; seed++) {
        begin();
        for (int i = 0; i < STEPS; i++) {
            step();
        }
        heal();
        for (size_t i = 0; i < PARTS; i++) {
            expect_settled(&logs[i]);
        }
        verify();
        world_fini(&world);
    }
}
