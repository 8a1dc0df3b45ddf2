/* SPDX-License-Identifier: MIT */
/* C7: the order of the events of a key. C9: what is unsettled at the end,
 * and whether it rightly waits for another event of its key. */
#include <inttypes.h>
#include <stdlib.h>

#include "checker/checker_internal.h"

/* One event in the order of its key. */
struct place {
    struct event_track *event;
    const struct route_track *route;
    struct slice key;
    uint64_t origin;
};

struct places {
    struct place *all;
    size_t n;
};

/* --- who stands where --------------------------------------------------------
 */

/* The key that the event was taken with: that of the try that was first. */
static struct slice order_key(const struct event_track *event)
{
    struct slice key = {NULL, 0};

    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        if (!try->valid) {
            continue;
        }
        if (try->resp_at != NOT_YET && try->status == 202) {
            return try->order;
        }
        if (key.data == NULL) {
            key = try->order;
        }
    }
    return key;
}

static bool has_place(const struct event_track *event)
{
    return event->route->conf.ordered && event->export != NULL &&
           !event->forgotten && order_key(event).len > 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = slice_cmp(x->route->conf.route, y->route->conf.route);

    if (order == 0) {
        order = slice_cmp(x->event->tenant, y->event->tenant);
    }
    if (order == 0) {
        order = slice_cmp(x->key, y->key);
    }
    if (order == 0) {
        order = x->origin < y->origin ? -1 : x->origin > y->origin;
    }
    return order;
}

static struct places find_places(struct checker *checker)
{
    struct places places = {NULL, 0};
    size_t cap = 0;

    for (struct event_track *event = checker->first; event != NULL;
         event = event->next) {
        if (!has_place(event)) {
            continue;
        }
        if (places.n == cap) {
            cap = cap == 0 ? 64 : cap * 2;
            places.all = mem_grow(places.all, cap, sizeof *places.all);
        }
        places.all[places.n++] = (struct place){
            .event = event,
            .route = event->route,
            .key = order_key(event),
            .origin = event->export->origin,
        };
    }
    if (places.n > 1) {
        qsort(places.all, places.n, sizeof *places.all, compare_places);
    }
    return places;
}

static bool is_same_key(const struct place *a, const struct place *b)
{
    return a->route == b->route && slice_eq(a->key, b->key) &&
           slice_eq(a->event->tenant, b->event->tenant);
}

/* --- C7 ----------------------------------------------------------------------
 */

/* When onced no longer waited for it, as far as the ledger can tell. */
static uint64_t end_of(const struct inv_track *inv)
{
    uint64_t end = inv->done_at < inv->process->crashed_at
                       ? inv->done_at
                       : inv->process->crashed_at;

    return inv->done_at != NOT_YET && inv->end == LEDGER_END_LOST ? inv->at
                                                                  : end;
}

static bool holds_when_dead(const struct event_track *event)
{
    return event->route->conf.after_dead == LEDGER_HOLD_KEY;
}

/* The last attempt of the event's first life: until it was settled for the
 * first time (where the dead hold their key: otherwise than dead). */
static uint64_t first_life(const struct event_track *event)
{
    const struct ledger_event *export = event->export;
    unsigned ends = ROW_SUCCEEDED | ROW_FAILED | ROW_DISCARDED | ROW_APPLIED |
                    ROW_RELEASED | ROW_RERUN | ROW_SETTLED_OTHERWISE;

    if (!holds_when_dead(event)) {
        ends |= ROW_DEAD;
    }
    for (size_t i = 0; i < export->n_rows; i++) {
        if ((row_bit(&export->rows[i]) & ends) != 0) {
            return export->rows[i].attempt;
        }
    }
    return event_is_settled(export) &&
                   (export->state != LEDGER_DEAD || !holds_when_dead(event))
               ? export->attempts
               : UINT64_MAX;
}

/* Before that, no later event of the key may begin. */
static uint64_t released_at(const struct event_track *event)
{
    uint64_t life = first_life(event);
    uint64_t at = 0;

    if (life == UINT64_MAX) {
        return NOT_YET;
    }
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv->attempt <= life && end_of(inv) > at) {
            at = end_of(inv);
        }
    }
    return at;
}

static void check_sequence(struct checker *checker, const struct place *key,
                           size_t n)
{
    const struct event_track *holder = NULL;
    uint64_t free_at = 0;

    for (size_t i = 0; i < n; i++) {
        const struct event_track *event = key[i].event;
        uint64_t released = released_at(event);

        if (event->invs != NULL && event->invs->at < free_at) {
            report(checker, CHECKER_C7, event,
                   "invocation %" PRIu64
                   " began before an earlier event of its key was settled: "
                   "%.*s",
                   event->invs->n, (int)holder->id.len, holder->id.data);
        }
        if (released > free_at) {
            free_at = released;
            holder = event;
        }
    }
}

static int compare_invs(const void *a, const void *b)
{
    const struct inv_track *x = *(const struct inv_track *const *)a;
    const struct inv_track *y = *(const struct inv_track *const *)b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static void check_one_at_a_time(struct checker *checker,
                                const struct inv_track *const *invs, size_t n)
{
    const struct inv_track *open = NULL;

    for (size_t i = 0; i < n; i++) {
        if (open != NULL && open->event != invs[i]->event &&
            end_of(open) > invs[i]->at) {
            report(checker, CHECKER_C7, invs[i]->event,
                   "invocation %" PRIu64 " began while %" PRIu64
                   " of its key was under way: %.*s",
                   invs[i]->n, open->n, (int)open->event->id.len,
                   open->event->id.data);
        }
        if (open == NULL || end_of(invs[i]) > end_of(open)) {
            open = invs[i];
        }
    }
}

static void check_key(struct checker *checker, const struct place *key,
                      size_t n)
{
    const struct inv_track **invs = NULL;
    size_t n_invs = 0, cap = 0;

    check_sequence(checker, key, n);
    for (size_t i = 0; i < n; i++) {
        for (const struct inv_track *inv = key[i].event->invs; inv != NULL;
             inv = inv->next) {
            if (n_invs == cap) {
                cap = cap == 0 ? 16 : cap * 2;
                invs = mem_grow(invs, cap, sizeof *invs);
            }
            invs[n_invs++] = inv;
        }
    }
    if (n_invs > 1) {
        qsort(invs, n_invs, sizeof *invs, compare_invs);
        check_one_at_a_time(checker, invs, n_invs);
    }
    free(invs);
}

/* --- C9 ----------------------------------------------------------------------
 */

/* Those that wait behind a dead letter that holds their key are where they
 * should be; one that was run again may wait for one that came later. */
static void excuse_waiting(const struct place *key, size_t n)
{
    bool is_held = false;

    for (size_t i = 0; i < n; i++) {
        is_held |= key[i].event->export->state == LEDGER_DEAD &&
                   holds_when_dead(key[i].event);
    }
    for (size_t i = 0; i < n; i++) {
        key[i].event->may_wait =
            is_held && key[i].event->export->state == LEDGER_PENDING;
    }
}

static void check_settled(struct checker *checker)
{
    for (const struct event_track *event = checker->first; event != NULL;
         event = event->next) {
        if (event->export != NULL && !event_is_settled(event->export) &&
            !event->may_wait) {
            report(checker, CHECKER_C9, event, "stuck: it never settled");
        }
    }
}

static void check_rest(struct checker *checker)
{
    if (checker->heal_ms >= 0 && checker->quiet_ms < 0) {
        report(checker, CHECKER_C9, NULL, "it did not come to rest");
    } else if (checker->heal_ms >= 0 &&
               checker->quiet_ms - checker->heal_ms > checker->within_ms) {
        report(checker, CHECKER_C9, NULL,
               "it came to rest %" PRId64 " ms after all was healed, %" PRId64
               " ms were allowed",
               checker->quiet_ms - checker->heal_ms, checker->within_ms);
    }
    if (checker->heal_ms >= 0 || checker->quiet_ms >= 0) {
        check_settled(checker);
    }
}

void check_order_and_rest(struct checker *checker)
{
    struct places places = find_places(checker);

    for (size_t from = 0, to; from < places.n; from = to) {
        to = from + 1;
        while (to < places.n &&
               is_same_key(&places.all[from], &places.all[to])) {
            to++;
        }
        check_key(checker, &places.all[from], to - from);
        excuse_waiting(&places.all[from], to - from);
    }
    check_rest(checker);
    free(places.all);
}
