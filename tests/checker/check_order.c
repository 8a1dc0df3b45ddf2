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
    const struct part_track *part; /* that alone brought it; NULL: none did */
    int64_t offset;                /* there, of the first message */
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

/* Where the event came from, if that was one partition, all of it. */
static void find_offset(struct place *place)
{
    const struct try_track *first = place->event->tries;

    for (const struct try_track *try = first; try != NULL; try = try->next) {
        if (try->part != first->part || try->skipped || try->shared) {
            return;
        }
    }
    place->part = first->part;
    place->offset = first->offset;
}

static bool has_place(const struct event_track *event)
{
    return event->route->conf.ordered && event->export != NULL &&
           !event->forgotten && !event_is_shared(event) &&
           order_key(event).len > 0;
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
        find_offset(&places.all[places.n - 1]);
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

static bool holds_when_dead(const struct event_track *event)
{
    return event->route->conf.after_dead == LEDGER_HOLD_KEY;
}

/* Where the dead hold their key, a death does not end the first life. */
static uint64_t life_of(const struct event_track *event)
{
    enum {
        ENDS = ROW_SUCCEEDED | ROW_FAILED | ROW_DISCARDED | ROW_APPLIED |
               ROW_RELEASED | ROW_RERUN | ROW_SETTLED_OTHERWISE,
    };
    const struct ledger_event *export = event->export;
    bool holds = holds_when_dead(event);

    return first_life(export, holds ? ENDS : (unsigned)ENDS | ROW_DEAD,
                      event_is_settled(export) &&
                          (export->state != LEDGER_DEAD || !holds));
}

/* Before that, no later event of the key may begin. */
static uint64_t released_at(const struct event_track *event)
{
    uint64_t life = life_of(event);
    uint64_t at = 0;

    if (life == UINT64_MAX) {
        return NOT_YET;
    }
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv->attempt <= life && inv_end(inv) > at) {
            at = inv_end(inv);
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

/* What the memory of ids does not reach is a dead letter as it arrives, in no
 * order: it came, and may have run, before. */
static bool is_too_old(const struct event_track *event)
{
    return event->export != NULL &&
           slice_eq(event->export->reason, SLICE("too-old"));
}

/* What a partition brings has the order of its offsets. */
static void check_arrival(struct checker *checker, const struct place *key,
                          size_t n)
{
    const struct place *last = NULL;

    for (size_t i = 0; i < n; i++) {
        if (key[i].part == NULL || is_too_old(key[i].event)) {
            continue;
        }
        if (last != NULL && last->part == key[i].part &&
            last->offset > key[i].offset) {
            report(checker, CHECKER_C7, key[i].event,
                   "it was accepted after %.*s of its key, which lies behind "
                   "it in %s",
                   (int)last->event->id.len, last->event->id.data,
                   last->part->name.data);
        }
        last = &key[i];
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
            inv_end(open) > invs[i]->at) {
            report(checker, CHECKER_C7, invs[i]->event,
                   "invocation %" PRIu64 " began while %" PRIu64
                   " of its key was under way: %.*s",
                   invs[i]->n, open->n, (int)open->event->id.len,
                   open->event->id.data);
        }
        if (open == NULL || inv_end(invs[i]) > inv_end(open)) {
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
    check_arrival(checker, key, n);
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
