/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/text.h"
#include "engine/internal.h"

enum { TIGHT_RESULT_MAX = 1024 };

/* By the value of enum outcome. */
const char *const engine_attempt_results[] = {
    "success", "refused", "transient", "rejected", "unreached", "unknown", NULL,
};

void engine_downstream_key(const struct downstream_key *of,
                           char out[ATTEMPT_KEY_SIZE])
{
    static const char version[] = "1";
    uint8_t digest[SHA256_SIZE];
    struct buf text = BUF_INIT;
    char run[16];
    const struct slice parts[] = {
        SLICE(version),
        slice_of(of->namespace),
        of->tenant,
        of->id,
        slice_of(of->route),
        {run, (size_t)snprintf(run, sizeof run, "%u", of->run)},
    };

    hash_sha256_parts(parts, sizeof parts / sizeof parts[0], digest);
    text_base32((struct slice){(const char *)digest, sizeof digest}, &text);
    CHECK(text.len >= ATTEMPT_KEY_SIZE - 1);
    memcpy(out, text.data, ATTEMPT_KEY_SIZE - 1);
    out[ATTEMPT_KEY_SIZE - 1] = '\0';
    buf_free(&text);
}

/* The namespace is that of the record: the route's may be another by now. */
static void make_key(struct attempt *attempt, const struct store_entry *entry)
{
    const struct engine *engine = attempt->engine;
    const struct downstream_key of = {
        .namespace = store_namespace_name(engine->store, entry->namespace),
        .route = attempt->route,
        .tenant = attempt->tenant,
        .id = attempt->id,
        .run = entry->record.run,
    };

    engine_downstream_key(&of, attempt->idempotency_key);
}

static void keep_strings(struct job *job, const struct store_entry *entry)
{
    buf_add_slice(&job->strings, store_entry_tenant(entry));
    buf_add_slice(&job->strings, store_entry_id(entry));
    job->attempt.tenant = (struct slice){job->strings.data, entry->tenant_len};
    job->attempt.id = slice_from(buf_slice(&job->strings), entry->tenant_len);
}

bool attempt_prepare(struct engine *engine, struct route *route,
                     struct store_entry *entry, struct slice envelope,
                     struct err *err)
{
    struct job *job = mem_new(1, sizeof *job);
    struct attempt *attempt = &job->attempt;

    CHECK(entry->record.state == RECORD_RUNNING);
    job->route = route;
    buf_add_slice(&job->envelope, envelope);
    keep_strings(job, entry);
    attempt->engine = engine;
    attempt->context = job;
    attempt->route = route->conf.name;
    attempt->number = entry->record.attempt;
    attempt->timeout_ms = route->conf.policy.timeout_ms;
    attempt->retry_after_ms = -1;
    memcpy(attempt->identity, entry->identity.hash, sizeof attempt->identity);
    make_key(attempt, entry);
    if (!envelope_open(buf_slice(&job->envelope), &attempt->envelope)) {
        attempt_free(attempt);
        return err_set(err, ERR_DATA, "the envelope of %s/%.*s is damaged",
                       route->conf.name, (int)entry->id_len, entry->id);
    }
    *engine->batch.starts_tail = job;
    engine->batch.starts_tail = &job->next;
    route->starting++;
    return true;
}

void attempt_free(struct attempt *attempt)
{
    struct job *job = attempt->context;

    buf_free(&attempt->result);
    buf_free(&job->strings);
    buf_free(&job->envelope);
    free(job);
}

void attempt_start(struct job *job)
{
    const struct handler *handler = &job->route->conf.handler;
    struct log_line line;

    job->next = NULL;
    if (log_begin(&line, LOG_DEBUG, "engine", "attempt started")) {
        log_str(&line, "route", slice_of(job->route->conf.name));
        log_str(&line, "id", job->attempt.id);
        log_int(&line, "attempt", job->attempt.number);
        log_end(&line);
    }
    handler->ops->start(handler->self, &job->attempt);
}

/* --- results ---------------------------------------------------------------
 */

void attempt_tell(struct engine *engine, const struct attempt *attempt)
{
    const struct job *job = attempt->context;
    enum outcome outcome =
        outcome_of(&job->route->conf.rules, attempt->end, attempt->status);
    size_t index = (size_t)(job->route - engine->routes);
    struct log_line line;

    metric_add(METRIC_ATTEMPTS, index, (size_t)outcome, 1);
    metric_observe(METRIC_HANDLER_SECONDS, index,
                   (double)attempt->took_ms / 1000.0);
    if (log_begin(&line, outcome == OUTCOME_SUCCESS ? LOG_DEBUG : LOG_WARN,
                  "engine", "attempt ended")) {
        log_str(&line, "route", slice_of(attempt->route));
        log_str(&line, "id", attempt->id);
        log_int(&line, "attempt", attempt->number);
        log_str(&line, "outcome", slice_of(outcome_name(outcome)));
        log_str(&line, "why", slice_of(attempt->text));
        log_int(&line, "took_ms", attempt->took_ms);
        log_end(&line);
    }
}

/* Where the store found no room for it before, a long answer is let go of:
 * the event is done, its callers are told that the answer is not kept. */
static bool put_result(struct engine *engine, const struct attempt *attempt,
                       const struct store_entry *entry, struct err *err)
{
    const struct result omitted = {.status = entry->record.status,
                                   .body_omitted = true};
    struct buf flat = BUF_INIT;
    bool ok;

    if (!engine->is_tight || attempt->result.len <= TIGHT_RESULT_MAX) {
        return store_put_result(engine->store, entry,
                                buf_slice(&attempt->result), err);
    }
    result_encode(&omitted, &flat);
    ok = store_put_result(engine->store, entry, buf_slice(&flat), err);
    buf_free(&flat);
    return ok;
}

static bool apply_to(struct engine *engine, struct attempt *attempt,
                     enum outcome outcome, struct store_entry *entry,
                     struct err *err)
{
    struct job *job = attempt->context;
    struct event_step step = {
        .route = job->route,
        .entry = entry,
        .input = event_input(engine, INPUT_OUTCOME),
        .detail = attempt->text,
    };

    step.input.attempt = attempt->number;
    step.input.outcome = outcome;
    step.input.status =
        attempt->end == END_STATUS ? (uint16_t)attempt->status : (uint16_t)0;
    step.input.retry_after_ms = attempt->retry_after_ms;
    (void)snprintf(entry->code, sizeof entry->code, "%s", attempt->code);
    if (!event_step(engine, &step, err)) {
        return false;
    }
    if (step.decision.keep_envelope &&
        !store_put_envelope(engine->store, entry, buf_slice(&job->envelope),
                            err)) {
        return false;
    }
    return !step.decision.keep_result || attempt->result.len == 0 ||
           put_result(engine, attempt, entry, err);
}

bool attempt_apply_result(struct engine *engine, struct attempt *attempt,
                          struct err *err)
{
    struct job *job = attempt->context;
    struct route *route = job->route;
    enum outcome outcome =
        outcome_of(&route->conf.rules, attempt->end, attempt->status);
    struct identity identity;
    struct store_entry entry;

    CHECK(attempt->engine == engine);
    memcpy(identity.hash, attempt->identity, sizeof identity.hash);
    route->ending++;
    if (outcome == OUTCOME_UNREACHED) {
        route->unheard = true;
    } else {
        route->heard = true;
    }
    switch (store_find_identity(engine->store, &identity, &entry, err)) {
    case STORE_FOUND:
        return apply_to(engine, attempt, outcome, &entry, err);
    case STORE_ABSENT:
        return err_set(err, ERR_DATA, "the record of %s/%.*s is gone",
                       attempt->route, (int)attempt->id.len, attempt->id.data);
    case STORE_FAILED:
        return false;
    }
    UNREACHABLE("every result of a look-up is handled");
}
