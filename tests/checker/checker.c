/* SPDX-License-Identifier: MIT */
#include "checker/checker.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "checker/checker_internal.h"

enum { ARENA_BLOCK = 1 << 20, ARENA_ALIGN = 16 };

struct checker *checker_new(void)
{
    struct checker *checker = mem_new(1, sizeof *checker);

    checker->reader = LEDGER_READER_INIT;
    checker->heal_ms = -1;
    checker->quiet_ms = -1;
    return checker;
}

void checker_free(struct checker **taken)
{
    struct checker *checker = *taken;
    struct arena_block *next;

    *taken = NULL;
    if (checker == NULL) {
        return;
    }
    HASH_CLEAR(hh, checker->routes);
    HASH_CLEAR(hh, checker->processes);
    HASH_CLEAR(hh, checker->tries);
    HASH_CLEAR(hh, checker->invs);
    HASH_CLEAR(hh, checker->by_name);
    HASH_CLEAR(hh, checker->keys);
    offsets_free(checker);
    for (struct arena_block *at = checker->arena; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    free(checker->findings);
    free(checker->facts);
    ledger_reader_fini(&checker->reader);
    buf_free(&checker->scratch);
    free(checker);
}

void *arena_new(struct checker *checker, size_t size)
{
    struct arena_block *block = checker->arena;
    size_t head = (sizeof *block + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    size_t need = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    void *out;

    if (block == NULL || block->used + need > ARENA_BLOCK) {
        size_t room = head + need > ARENA_BLOCK ? head + need : ARENA_BLOCK;

        block = mem_new(1, room);
        block->used = head;
        block->next = checker->arena;
        checker->arena = block;
    }
    out = (char *)block + block->used;
    block->used += need;
    return out;
}

struct slice arena_copy(struct checker *checker, struct slice text)
{
    char *copy = arena_new(checker, text.len + 1);

    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    return (struct slice){copy, text.len};
}

/* --- findings --------------------------------------------------------------
 */

void report(struct checker *checker, enum checker_check check,
            const struct event_track *event, const char *format, ...)
{
    struct checker_finding *finding;
    char text[512];
    va_list args;

    checker->totals[check]++;
    if (checker->n_findings == CHECKER_FINDINGS_MAX) {
        return;
    }
    if (checker->findings == NULL) {
        checker->findings =
            mem_new(CHECKER_FINDINGS_MAX, sizeof *checker->findings);
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    finding = &checker->findings[checker->n_findings++];
    finding->check = check;
    finding->event = event;
    finding->why = arena_copy(checker, slice_of(text)).data;
}

const struct checker_finding *checker_findings(const struct checker *checker,
                                               size_t *n)
{
    *n = checker->n_findings;
    return checker->findings;
}

uint64_t checker_total(const struct checker *checker, enum checker_check check)
{
    return checker->totals[check];
}

const char *checker_check_name(enum checker_check check)
{
    static const char *const names[CHECKER_CHECKS] = {
        [CHECKER_C1] = "C1", [CHECKER_C2] = "C2", [CHECKER_C3] = "C3",
        [CHECKER_C4] = "C4", [CHECKER_C5] = "C5", [CHECKER_C6] = "C6",
        [CHECKER_C7] = "C7", [CHECKER_C8] = "C8", [CHECKER_C9] = "C9",
    };

    return names[check];
}

/* --- judging ---------------------------------------------------------------
 */

static void check_event(struct checker *checker, struct event_track *event)
{
    check_answers(checker, event);
    check_content(checker, event);
    if (event_is_shared(event)) {
        check_stores(checker, event);
        return;
    }
    check_attempts(checker, event);
    check_effects(checker, event);
    check_export(checker, event);
}

static enum checker_verdict verdict_of(const struct checker *checker)
{
    for (enum checker_check i = CHECKER_C1; i < CHECKER_C9; i++) {
        if (checker->totals[i] > 0) {
            return CHECKER_UNSAFE;
        }
    }
    return checker->totals[CHECKER_C9] > 0 ? CHECKER_STUCK : CHECKER_OK;
}

bool checker_finish(struct checker *checker, enum checker_verdict *verdict,
                    struct err *err)
{
    if (checker->in_dump) {
        return err_set(err, ERR_DATA, "a dump has no end");
    }
    checker->has_export |= checker->quiet_ms >= 0;
    for (struct event_track *event = checker->first; event != NULL;
         event = event->next) {
        check_event(checker, event);
    }
    check_order_and_rest(checker);
    check_offsets(checker);
    *verdict = verdict_of(checker);
    return true;
}

static bool has_valid_try(const struct event_track *event, bool *acknowledged)
{
    bool found = false;

    *acknowledged = false;
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        found |= try->valid;
        *acknowledged |= try->valid && is_acknowledged(try);
    }
    return found;
}

static bool was_moved(const struct event_track *event)
{
    return event->export != NULL &&
           slice_eq(event->export->reason, SLICE("moved"));
}

static void count_messages(const struct event_track *event,
                           struct checker_summary *summary)
{
    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        summary->messages += try->part != NULL;
        summary->committed += try->part != NULL && try->committed_at != NOT_YET;
    }
}

struct checker_summary checker_summary(const struct checker *checker)
{
    struct checker_summary summary = {
        .invocations = HASH_COUNT(checker->invs),
        .crashes = checker->crashes,
        .orders = checker->orders,
        .again = checker->moved,
    };
    bool acknowledged;

    for (const struct event_track *event = checker->first; event != NULL;
         event = event->next) {
        summary.events += has_valid_try(event, &acknowledged);
        summary.acknowledged += acknowledged;
        summary.exported += event->export != NULL;
        summary.moved += was_moved(event);
        count_messages(event, &summary);
        for (const struct inv_track *inv = event->invs; inv != NULL;
             inv = inv->next) {
            summary.further += inv != event->invs;
        }
    }
    return summary;
}
