/* SPDX-License-Identifier: MIT */
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "checker/checker.h"
#include "sim/sim.h"

/* --- words -------------------------------------------------------------------
 */

void sim_trace(struct sim *sim, const char *format, ...)
{
    char text[TRACE_LINE_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trace_line(&sim->trace, sim->now_ms, "%s", text);
}

void sim_fail(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->failed) {
        return;
    }
    sim->failed = true;
    va_start(args, format);
    (void)vsnprintf(sim->finding, sizeof sim->finding, format, args);
    va_end(args);
    sim_trace(sim, "FINDING: %s", sim->finding);
}

void *list_add(struct list *list, size_t size)
{
    if (list->n == list->cap) {
        list->cap = list->cap == 0 ? 64 : list->cap * 2;
        list->at = mem_grow(list->at, list->cap, sizeof *list->at);
    }
    return list->at[list->n++] = mem_new(1, size);
}

void list_free(struct list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->at[i]);
    }
    free(list->at);
    *list = (struct list){0};
}

/* --- time --------------------------------------------------------------------
 */

static int64_t wall_ms(void *self)
{
    const struct sim *sim = self;

    return SIM_WALL_MS + sim->now_ms + sim->wall_offset_ms;
}

static int64_t boot_ms(void *self)
{
    const struct sim *sim = self;

    return sim->now_ms + sim->boot_offset_ms;
}

static int64_t next_turn_ms(const struct sim *sim)
{
    const struct process *process = &sim->process;

    if (!process->up) {
        return RECORD_NEVER;
    }
    return process->wake_ms > process->busy_until_ms ? process->wake_ms
                                                     : process->busy_until_ms;
}

/* Acts before turns: a batch is whatever has come by then. */
void sim_pass_until(struct sim *sim, int64_t until_ms)
{
    while (!sim->failed) {
        int64_t act_ms = agenda_next_ms(&sim->agenda);
        int64_t turn_ms = next_turn_ms(sim);
        int64_t next_ms = act_ms <= turn_ms ? act_ms : turn_ms;

        if (next_ms > until_ms) {
            sim->now_ms = until_ms;
            return;
        }
        if (next_ms > sim->now_ms) {
            sim->now_ms = next_ms;
        }
        if (act_ms <= turn_ms) {
            struct agenda_entry entry = agenda_take(&sim->agenda);

            entry.act(sim, entry.who);
        } else {
            process_turn(sim);
        }
    }
}

/* --- a life ------------------------------------------------------------------
 */

static int remove_one(const char *path, const struct stat *stat, int type,
                      struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

void sim_remove_store(const struct sim *sim)
{
    (void)nftw(sim->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void begin(struct sim *sim, uint64_t seed, const char *dir, bool print)
{
    *sim = (struct sim){
        .seed = seed,
        .dice = {seed},
        .backoff = {seed ^ 0x5bd1e995},
        .random = {seed ^ 0x1b873593},
        .now_ms = SIM_START_MS,
        .process = {.wake_ms = RECORD_NEVER},
    };
    trace_begin(&sim->trace, print);
    sim->clock = (struct clock){wall_ms, boot_ms, sim};
    (void)snprintf(sim->dir, sizeof sim->dir, "%s", dir);
    (void)snprintf(sim->path, sizeof sim->path, "%s/store", dir);
    plan_draw(sim);
    sim_current = sim;
}

static void write_routes(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_routes; i++) {
        const struct sim_route *route = &sim->routes[i];
        const struct policy *policy = &route->conf.policy;
        /* Where the rules change, those are promised that are weaker. */
        bool changes = sim->has[FEATURE_CHANGES];
        const struct ledger_route line = {
            .route = slice_of(route->name),
            .namespace = slice_of(route->conf.namespace),
            .on_uncertain =
                policy->on_uncertain == ON_UNCERTAIN_RETRY || changes
                    ? LEDGER_RETRY
                    : LEDGER_HOLD,
            .after_dead = policy->after_dead == AFTER_DEAD_HOLD && !changes
                              ? LEDGER_HOLD_KEY
                              : LEDGER_CONTINUE,
            .respond = LEDGER_ACCEPTED,
            .drift = policy->on_drift == ON_DRIFT_REJECT ? LEDGER_DRIFT_REJECT
                                                         : LEDGER_DRIFT_ACK,
            .ordered = route->ordered,
        };

        ledger_route(&sim->ledger, &line);
    }
}

static void end(struct sim *sim)
{
    sim_current = NULL;
    sim_remove_store(sim);
    agenda_free(&sim->agenda);
    ledger_fini(&sim->ledger);
    for (size_t i = 0; i < sim->tries.n; i++) {
        buf_free(&((struct try *)sim->tries.at[i])->text);
    }
    for (size_t i = 0; i < sim->packages.n; i++) {
        struct package *package = sim->packages.at[i];

        buf_free(&package->text);
        free(package->arrivals);
    }
    broker_free(sim);
    list_free(&sim->packages);
    list_free(&sim->holdings);
    list_free(&sim->events);
    list_free(&sim->tries);
    list_free(&sim->invocations);
    list_free(&sim->orders);
    list_free(&sim->publications);
    list_free(&sim->told);
    receiver_free(sim);
}

/* --- judgement ---------------------------------------------------------------
 */

static void verify_store(struct sim *sim)
{
    struct store_report report;
    struct err err = {ERR_NONE, ""};

    if (!store_verify(sim->path, &report, &err)) {
        sim_fail(sim, "the store cannot be verified: %s", err.text);
    } else if (report.bad > 0) {
        sim_fail(sim, "%" PRIu64 " bad in the store: %s", report.bad,
                 report.first_bad);
    }
}

static void tell_first(struct sim *sim, const struct checker *checker)
{
    size_t n;
    const struct checker_finding *findings = checker_findings(checker, &n);
    struct buf text = BUF_INIT;

    CHECK(n > 0);
    checker_put_name(findings->event, &text);
    sim_fail(sim, "%zu findings, first %s, %s: %s", n,
             checker_check_name(findings->check), buf_cstr(&text),
             findings->why);
    if (findings->event != NULL) {
        buf_clear(&text);
        checker_put_story(findings->event, &text);
        (void)fprintf(stderr, "%s\n", buf_cstr(&text));
    }
    buf_free(&text);
}

static void check_ledger(struct sim *sim)
{
    struct checker *checker = checker_new();
    enum checker_verdict verdict = CHECKER_OK;
    struct err err = {ERR_NONE, ""};

    if (!checker_feed(checker, ledger_text(&sim->ledger), &err) ||
        !checker_finish(checker, &verdict, &err)) {
        sim_fail(sim, "the ledger cannot be read: %s", err.text);
    } else if (verdict != CHECKER_OK) {
        tell_first(sim, checker);
    }
    checker_free(&checker);
}

static void write_ledger(struct sim *sim)
{
    const char *path = getenv("ONCED_SIM_LEDGER");
    FILE *file = path == NULL ? NULL : fopen(path, "w");
    struct err err = {ERR_NONE, ""};

    if (file != NULL) {
        CHECK(ledger_drain(&sim->ledger, file, &err));
        (void)fclose(file);
    }
}

static void judge(struct sim *sim)
{
    export_events(sim);
    if (!sim->failed) {
        check_ledger(sim);
    }
    sim_current = NULL;
    if (!sim->failed) {
        verify_store(sim);
    }
}

bool sim_run(struct sim *sim, uint64_t seed, const char *dir, bool print)
{
    begin(sim, seed, dir, print);
    write_routes(sim);
    nemesis_plan(sim);
    broker_plan(sim);
    sender_plan(sim);
    operator_plan(sim);
    sim_pass_until(sim, SIM_START_MS + sim->phase_ms);
    if (!sim->failed) {
        healing_run(sim);
    }
    if (sim->failed) {
        process_kill(sim, "the run ends");
    } else {
        judge(sim);
    }
    write_ledger(sim);
    end(sim);
    return !sim->failed;
}
