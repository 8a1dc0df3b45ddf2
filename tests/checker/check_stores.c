/* SPDX-License-Identifier: MIT */
/* Events that several stores know, since a partition moved between workers:
 * each store counts its own attempts. */
#include <inttypes.h>

#include "checker/checker_internal.h"

/* The store of its invocations; *is_one false: there are several. */
static struct slice store_of_invs(const struct event_track *event, bool *is_one)
{
    struct slice store = {NULL, 0};

    *is_one = true;
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv == event->invs) {
            store = inv->process->store;
        }
        *is_one &= slice_eq(store, inv->process->store);
    }
    return store;
}

bool event_is_shared(const struct event_track *event)
{
    bool is_one;
    struct slice store = store_of_invs(event, &is_one);

    return event->others != NULL || !is_one ||
           (store.len > 0 && event->export != NULL &&
            !slice_eq(store, event->export->store));
}

/* What came of the event in the end: a settled store is believed before one
 * that gave it away, and that before one that waits for it. */
static int rank(const struct ledger_event *export)
{
    if (!event_is_settled(export)) {
        return 0;
    }
    return slice_eq(export->reason, SLICE("moved")) ? 1 : 2;
}

static bool has_export_of(const struct event_track *event, struct slice store)
{
    if (slice_eq(event->export->store, store)) {
        return true;
    }
    for (const struct export_track *other = event->others; other != NULL;
         other = other->next) {
        if (slice_eq(other->export->store, store)) {
            return true;
        }
    }
    return false;
}

bool stores_add_export(struct checker *checker, struct event_track *event,
                       struct ledger_event *export)
{
    struct export_track *other;

    if (has_export_of(event, export->store)) {
        return false;
    }
    other = arena_new(checker, sizeof *other);
    other->next = event->others;
    other->export = export;
    event->others = other;
    if (rank(export) > rank(event->export)) {
        other->export = event->export;
        event->export = export;
    }
    return true;
}

/* The event as one store saw it. */
static void check_view(struct checker *checker, const struct event_track *event,
                       struct ledger_event *export)
{
    struct event_track *view = arena_new(checker, sizeof *view);

    *view = *event;
    view->export = export;
    view->others = NULL;
    view->invs = view->last_inv = NULL;
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        struct inv_track *copy;

        if (!inv_is_of(inv, export)) {
            continue;
        }
        copy = arena_new(checker, sizeof *copy);
        *copy = *inv;
        copy->event = view;
        copy->next = NULL;
        *(view->last_inv == NULL ? &view->invs : &view->last_inv->next) = copy;
        view->last_inv = copy;
    }
    check_attempts(checker, view);
    check_export(checker, view);
}

/* Whether the process's store had one of the event's partitions by then; also
 * where nobody tells of assignments. */
static bool was_given(const struct event_track *event,
                      const struct inv_track *inv)
{
    bool is_told = false;

    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        const struct owner_track *owner =
            try->part == NULL ? NULL : try->part->owners;

        is_told |= owner != NULL;
        for (; owner != NULL; owner = owner->next) {
            if (owner->at < inv->at &&
                slice_eq(owner->process->store, inv->process->store)) {
                return true;
            }
        }
    }
    return !is_told;
}

/* Two stores may both run it, as neither knows of the other's attempt, but
 * only where its partition was both's. */
static void check_moves(struct checker *checker,
                        const struct event_track *event)
{
    const struct inv_track *before = NULL;

    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        bool moved = before != NULL &&
                     !slice_eq(before->process->store, inv->process->store);

        checker->moved += moved;
        if (moved && !was_given(event, inv)) {
            report(checker, CHECKER_C3, event,
                   "invocation %" PRIu64
                   " is unexplained: another store had the event, and its "
                   "partition had not moved",
                   inv->n);
        }
        before = inv;
    }
}

void check_stores(struct checker *checker, struct event_track *event)
{
    check_moves(checker, event);
    check_effects(checker, event);
    if (event->export != NULL) {
        check_view(checker, event, event->export);
    }
    for (const struct export_track *other = event->others; other != NULL;
         other = other->next) {
        check_view(checker, event, other->export);
    }
}
