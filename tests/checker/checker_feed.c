/* SPDX-License-Identifier: MIT */
/* Takes lines in, and finds what belongs together. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "checker/checker_internal.h"

/* --- look-ups --------------------------------------------------------------
 */

static struct route_track *find_route(struct checker *checker,
                                      struct slice name, struct err *err)
{
    struct route_track *route;

    HASH_FIND(hh, checker->routes, name.data, name.len, route);
    if (route == NULL) {
        (void)err_set(err, ERR_DATA, "no route \"%.*s\" was named before",
                      (int)name.len, name.data);
    }
    return route;
}

/* NOLINTNEXTLINE(readability-function-size): macros of uthash */
static struct process_track *get_process(struct checker *checker,
                                         uint64_t number)
{
    struct process_track *process;

    HASH_FIND(hh, checker->processes, &number, sizeof number, process);
    if (process == NULL) {
        process = arena_new(checker, sizeof *process);
        process->number = number;
        process->crashed_at = NOT_YET;
        HASH_ADD(hh, checker->processes, number, sizeof number, process);
    }
    return process;
}

/* (namespace, tenant, id), each but the last behind its length. */
static struct slice identity_of(struct checker *checker, struct slice namespace,
                                const struct ledger_name *name)
{
    struct buf *key = &checker->scratch;

    buf_clear(key);
    buf_add_be32(key, (uint32_t) namespace.len);
    buf_add_slice(key, namespace);
    buf_add_be32(key, (uint32_t)name->tenant.len);
    buf_add_slice(key, name->tenant);
    buf_add_slice(key, name->id);
    return buf_slice(key);
}

static struct event_track *new_event(struct checker *checker,
                                     struct slice identity,
                                     struct route_track *route,
                                     const struct ledger_name *name)
{
    struct event_track *event = arena_new(checker, sizeof *event);

    event->identity = arena_copy(checker, identity);
    event->route = route;
    event->tenant = arena_copy(checker, name->tenant);
    event->id = arena_copy(checker, name->id);
    if (checker->last == NULL) {
        checker->first = event;
    } else {
        checker->last->next = event;
    }
    checker->last = event;
    return event;
}

static struct event_track *find_event(struct checker *checker,
                                      struct slice identity)
{
    struct event_track *event;

    HASH_FIND(hh, checker->by_name, identity.data, identity.len, event);
    return event;
}

static void add_event(struct checker *checker, struct event_track *event)
{
    HASH_ADD_KEYPTR(hh, checker->by_name, event->identity.data,
                    event->identity.len, event);
}

/* The event of that name, which is new where none was named before. */
static struct event_track *get_event(struct checker *checker,
                                     const struct ledger_name *name,
                                     struct err *err)
{
    struct route_track *route = find_route(checker, name->route, err);
    struct event_track *event;
    struct slice identity;

    if (route == NULL) {
        return NULL;
    }
    identity = identity_of(checker, route->conf.namespace, name);
    event = find_event(checker, identity);
    if (event == NULL) {
        event = new_event(checker, identity, route, name);
        add_event(checker, event);
    }
    return event;
}

/* Most lines of an event name one content: it is kept once. */
struct slice event_keep_hash(struct checker *checker,
                             const struct event_track *event, struct slice hash)
{
    if (event->tries != NULL && slice_eq(event->tries->hash, hash)) {
        return event->tries->hash;
    }
    return arena_copy(checker, hash);
}

/* --- lines -----------------------------------------------------------------
 */

/* NOLINTNEXTLINE(readability-function-size): macros of uthash */
static bool take_route(struct checker *checker, const struct ledger_route *line,
                       struct err *err)
{
    struct route_track *route;

    HASH_FIND(hh, checker->routes, line->route.data, line->route.len, route);
    if (route != NULL) {
        return err_set(err, ERR_DATA, "the route was named before");
    }
    route = arena_new(checker, sizeof *route);
    route->conf = *line;
    route->conf.route = arena_copy(checker, line->route);
    route->conf.namespace = arena_copy(checker, line->namespace);
    HASH_ADD_KEYPTR(hh, checker->routes, route->conf.route.data,
                    route->conf.route.len, route);
    return true;
}

void event_add_try(struct event_track *event, struct try_track *try)
{
    try->event = event;
    if (event->last_try == NULL) {
        event->tries = try;
    } else {
        event->last_try->next = try;
    }
    event->last_try = try;
}

/* NOLINTNEXTLINE(readability-function-size): macros of uthash */
static bool take_sent(struct checker *checker, const struct ledger_sent *line,
                      struct err *err)
{
    struct event_track *event = get_event(checker, &line->event, err);
    uint64_t number = line->try;
    struct try_track *try;

    if (event == NULL) {
        return false;
    }
    HASH_FIND(hh, checker->tries, &number, sizeof number, try);
    if (try != NULL) {
        return err_set(err, ERR_DATA, "try %" PRIu64 " stands there twice",
                       number);
    }
    try = arena_new(checker, sizeof *try);
    try->number = number;
    try->hash = event_keep_hash(checker, event, line->hash);
    try->order = arena_copy(checker, line->order);
    try->sent_at = checker->lines;
    try->sent_ms = line->t_ms;
    try->resp_at = NOT_YET;
    try->valid = line->valid;
    event_add_try(event, try);
    HASH_ADD(hh, checker->tries, number, sizeof number, try);
    return true;
}

static bool take_resp(struct checker *checker, const struct ledger_resp *line,
                      struct err *err)
{
    uint64_t number = line->try;
    struct try_track *try;

    HASH_FIND(hh, checker->tries, &number, sizeof number, try);
    if (try == NULL || try->resp_at != NOT_YET) {
        return err_set(err, ERR_DATA, "try %" PRIu64 " is not open", number);
    }
    try->resp_at = checker->lines;
    try->resp_ms = line->t_ms;
    try->status = line->status;
    if (line->body.data != NULL) {
        try->body = arena_copy(checker, line->body);
    }
    return true;
}

static void add_inv(struct event_track *event, struct inv_track *inv)
{
    inv->event = event;
    if (event->last_inv == NULL) {
        event->invs = inv;
    } else {
        event->last_inv->next = inv;
    }
    event->last_inv = inv;
}

static struct slice keep_key(struct checker *checker,
                             const struct event_track *event, struct slice key)
{
    if (event->last_inv != NULL && slice_eq(event->last_inv->key, key)) {
        return event->last_inv->key;
    }
    return arena_copy(checker, key);
}

/* NOLINTNEXTLINE(readability-function-size): macros of uthash */
static bool take_inv(struct checker *checker, const struct ledger_inv *line,
                     struct err *err)
{
    struct event_track *event = get_event(checker, &line->event, err);
    uint64_t n = line->n;
    struct inv_track *inv;

    if (event == NULL) {
        return false;
    }
    HASH_FIND(hh, checker->invs, &n, sizeof n, inv);
    if (inv != NULL) {
        return err_set(err, ERR_DATA,
                       "invocation %" PRIu64 " stands there twice", n);
    }
    inv = arena_new(checker, sizeof *inv);
    inv->n = n;
    inv->process = get_process(checker, line->process);
    inv->route = find_route(checker, line->event.route, err);
    inv->hash = event_keep_hash(checker, event, line->hash);
    inv->key = keep_key(checker, event, line->key);
    inv->attempt = line->attempt;
    inv->at = checker->lines;
    inv->begin_ms = line->t_ms;
    inv->done_at = NOT_YET;
    add_inv(event, inv);
    HASH_ADD(hh, checker->invs, n, sizeof n, inv);
    return true;
}

static bool take_done(struct checker *checker, const struct ledger_done *line,
                      struct err *err)
{
    uint64_t n = line->n;
    struct inv_track *inv;

    HASH_FIND(hh, checker->invs, &n, sizeof n, inv);
    if (inv == NULL || inv->done_at != NOT_YET) {
        return err_set(err, ERR_DATA, "invocation %" PRIu64 " is not open", n);
    }
    inv->done_at = checker->lines;
    inv->done_ms = line->t_ms;
    inv->end = line->end;
    inv->status = line->status;
    inv->effect = line->effect;
    return true;
}

static bool take_order(struct checker *checker, const struct ledger_order *line,
                       struct err *err)
{
    struct event_track *event;
    struct order_track *order;

    checker->orders++;
    if (line->event.id.len == 0) {
        return find_route(checker, line->event.route, err) != NULL;
    }
    event = get_event(checker, &line->event, err);
    if (event == NULL) {
        return false;
    }
    order = arena_new(checker, sizeof *order);
    order->t_ms = line->t_ms;
    order->at = checker->lines;
    order->kind = line->kind;
    order->verdict = line->verdict;
    if (event->last_order == NULL) {
        event->orders = order;
    } else {
        event->last_order->next = order;
    }
    event->last_order = order;
    return true;
}

static bool take_start(struct checker *checker, const struct ledger_start *line)
{
    struct process_track *process = get_process(checker, line->process);

    process->store = arena_copy(checker, line->store);
    return true;
}

static bool take_fault(struct checker *checker, const struct ledger_fault *line,
                       struct err *err)
{
    struct process_track *process;

    checker->restores += slice_eq(line->kind, SLICE("restore"));
    if (!slice_eq(line->kind, SLICE("crash"))) {
        return true;
    }
    process = get_process(checker, line->process);
    if (process->crashed_at != NOT_YET) {
        return err_set(err, ERR_DATA, "process %" PRIu64 " crashed before",
                       line->process);
    }
    process->crashed_at = checker->lines;
    checker->crashes++;
    return true;
}

/* A try that is open may have reached the store before it let go, or after. */
static void share_open_tries(struct checker *checker,
                             const struct event_track *from,
                             struct event_track *to)
{
    for (struct try_track *try = from->tries; try != NULL; try = try->next) {
        if (try->resp_at == NOT_YET) {
            struct try_track *copy = arena_new(checker, sizeof *copy);

            try->shared = true;
            *copy = *try;
            copy->next = NULL;
            event_add_try(to, copy);
        }
    }
}

static bool take_forgotten(struct checker *checker,
                           const struct ledger_forgotten *line, struct err *err)
{
    struct event_track *old = get_event(checker, &line->event, err);
    struct event_track *event;

    if (old == NULL) {
        return false;
    }
    old->forgotten = true;
    event = new_event(checker, old->identity, old->route, &line->event);
    event->before = old;
    share_open_tries(checker, old, event);
    HASH_DEL(checker->by_name, old);
    add_event(checker, event);
    return true;
}

/* --- the export ------------------------------------------------------------
 */

static struct ledger_event *keep_export(struct checker *checker,
                                        const struct ledger_event *line)
{
    struct ledger_event *export = arena_new(checker, sizeof *export);
    struct ledger_row *rows;

    *export = *line;
    export->reason = arena_copy(checker, line->reason);
    export->due = arena_copy(checker, line->due);
    export->store = line->store.len > 0 ? arena_copy(checker, line->store)
                                        : checker->dump_store;
    if (line->rows == NULL) {
        return export;
    }
    rows = arena_new(checker, (line->n_rows + 1) * sizeof *rows);
    for (size_t i = 0; i < line->n_rows; i++) {
        rows[i] = line->rows[i];
        rows[i].at = arena_copy(checker, rows[i].at);
        rows[i].what = arena_copy(checker, rows[i].what);
        rows[i].actor = arena_copy(checker, rows[i].actor);
        rows[i].why = arena_copy(checker, rows[i].why);
    }
    export->rows = rows;
    return export;
}

/* A store may still hold what its route remembers no more, so that a name
 * stands there once for each time that it was forgotten; the oldest first. */
static void attach_export(struct checker *checker, struct event_track *event,
                          struct ledger_event *export)
{
    bool is_of_old = event->tries == NULL && event->before != NULL;
    struct event_track *old = event->before;

    if (event->export != NULL && export->store.len > 0) {
        event->exported_twice |= !stores_add_export(checker, event, export);
        return;
    }
    if (is_of_old || (event->export != NULL && old != NULL)) {
        if (old->export != NULL) {
            event->exported_twice = true;
            return;
        }
        old->export = is_of_old ? export : event->export;
        event->export = is_of_old ? NULL : export;
        return;
    }
    event->exported_twice |= event->export != NULL;
    event->export = export;
}

static bool take_event(struct checker *checker, const struct ledger_event *line,
                       struct err *err)
{
    struct event_track *event = get_event(checker, &line->event, err);

    if (event == NULL) {
        return false;
    }
    checker->has_export = true;
    checker->dumped++;
    attach_export(checker, event, keep_export(checker, line));
    return true;
}

static bool take_msg(struct checker *checker, const struct ledger_msg *line,
                     struct err *err)
{
    struct event_track *event = get_event(checker, &line->event, err);

    return event != NULL && offsets_take_msg(checker, line, event, err);
}

static bool take_dump_head(struct checker *checker,
                           const struct ledger_dump_head *line, struct err *err)
{
    if (checker->in_dump) {
        return err_set(err, ERR_DATA, "the dump before it has no end");
    }
    checker->in_dump = true;
    checker->dump_store = arena_copy(checker, line->store);
    checker->has_export = true;
    checker->dumped = 0;
    return true;
}

static bool take_dump_end(struct checker *checker,
                          const struct ledger_dump_end *line, struct err *err)
{
    if (!checker->in_dump || line->events != checker->dumped) {
        return err_set(err, ERR_DATA, "the dump is not whole");
    }
    checker->in_dump = false;
    checker->dump_store = (struct slice){NULL, 0};
    return true;
}

/* --- feeding ---------------------------------------------------------------
 */

static bool take_line(struct checker *checker, const struct ledger_line *line,
                      struct err *err)
{
    switch (line->kind) {
    case LINE_ROUTE:
        return take_route(checker, &line->route, err);
    case LINE_SENT:
        return take_sent(checker, &line->sent, err);
    case LINE_RESP:
        return take_resp(checker, &line->resp, err);
    case LINE_INV:
        return take_inv(checker, &line->inv, err);
    case LINE_DONE:
        return take_done(checker, &line->done, err);
    case LINE_ORDER:
        return take_order(checker, &line->order, err);
    case LINE_FAULT:
        return take_fault(checker, &line->fault, err);
    case LINE_START:
        return take_start(checker, &line->start);
    case LINE_HEAL:
        checker->heal_ms = line->phase.t_ms;
        checker->within_ms = line->phase.within_ms;
        checker->quiet_ms = -1;
        return true;
    case LINE_QUIET:
        checker->quiet_ms = line->phase.t_ms;
        return true;
    case LINE_FORGOTTEN:
        return take_forgotten(checker, &line->forgotten, err);
    case LINE_MSG:
        return take_msg(checker, &line->msg, err);
    case LINE_ASSIGN:
    case LINE_REVOKE:
    case LINE_LOST:
        return offsets_take_owner(checker, line->kind, &line->owner,
                                  get_process(checker, line->owner.process));
    case LINE_COMMIT:
    case LINE_RESET:
        return offsets_take_commit(checker, &line->commit,
                                   line->kind == LINE_RESET);
    case LINE_SKIP:
        return offsets_take_skip(checker, &line->skip);
    case LINE_EVENT:
        return take_event(checker, &line->event, err);
    case LINE_DUMP_HEAD:
        return take_dump_head(checker, &line->dump_head, err);
    case LINE_DUMP_END:
        return take_dump_end(checker, &line->dump_end, err);
    }
    UNREACHABLE("every kind of line returns");
}

static bool feed_line(struct checker *checker, struct slice text,
                      struct err *err)
{
    struct ledger_line line;
    int64_t t_ms;

    checker->lines++;
    if (slice_trim(text).len == 0) {
        return true;
    }
    if (!ledger_read(&checker->reader, text, &line, err)) {
        return false;
    }
    if (ledger_line_time(&line, &t_ms)) {
        if (t_ms < checker->now_ms) {
            return err_set(err, ERR_DATA, "time goes back");
        }
        checker->now_ms = t_ms;
    }
    return take_line(checker, &line, err);
}

bool checker_feed(struct checker *checker, struct slice lines, struct err *err)
{
    while (lines.len > 0) {
        size_t len = slice_find(lines, '\n');

        if (!feed_line(checker, (struct slice){lines.data, len}, err)) {
            return err_wrap(err, "line %" PRIu64, checker->lines);
        }
        lines = slice_from(lines, len < lines.len ? len + 1 : len);
    }
    return true;
}
