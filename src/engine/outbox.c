/* SPDX-License-Identifier: MIT */
/*
 * Dead letters that are told elsewhere. The store has a list for each route,
 * by origin; a cursor goes along it and hands out some at a time. What could
 * not be told stays in the list, which is begun again after a while.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/metrics.h"
#include "engine/internal.h"

enum {
    LOOKS_PER_TURN = 256,
    AGAIN_FIRST_MS = 1000,
    AGAIN_MAX_MS = 60 * 1000,
};

struct letter {
    struct dead_letter dead; /* first: its context is this */
    struct route *route;
    uint64_t origin;
    struct identity identity;
    struct buf strings;  /* tenant and id, code, why */
    struct buf envelope; /* flat form */
    struct letter *next; /* on their way */
    bool is_new;         /* of the open batch: not handed out yet */
    bool is_back;
};

static bool has_publisher(const struct route *route)
{
    return route->conf.publisher.ops != NULL;
}

static void look_at(struct outbox *outbox, uint64_t origin)
{
    outbox->new_has_more = true;
    if (outbox->new_cursor >= origin) {
        outbox->new_cursor = origin - 1;
    }
}

bool outbox_add(struct engine *engine, struct route *route,
                const struct store_entry *entry, struct err *err)
{
    if (!route->conf.tells_dead) {
        return true;
    }
    if (has_publisher(route)) {
        look_at(&route->outbox, entry->origin);
    }
    return store_outbox_add(engine->store, entry, err);
}

void outbox_begin(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct outbox *outbox = &engine->routes[i].outbox;

        outbox->has_more = has_publisher(&engine->routes[i]);
        outbox->new_has_more = outbox->has_more;
        outbox->cursor = outbox->new_cursor = 0;
    }
}

void dead_letter_finish(struct dead_letter *letter)
{
    bool pushed;

    letter->item.kind = INBOX_LETTER;
    letter->item.cost_bytes = sizeof *letter;
    pushed = queue_push(letter->engine->inbox, &letter->item, QUEUE_RESERVED);
    CHECK(pushed);
}

/* --- what came back ------------------------------------------------------- */

static bool is_of(const struct letter *letter, const struct record *record)
{
    const struct dead_letter *dead = &letter->dead;

    return record->run == dead->run && record->attempt == dead->attempts &&
           record->changed_ms == dead->died_ms;
}

/* An event that was replayed meanwhile, and died again, is told again. */
static bool forget_published(struct engine *engine, const struct letter *letter,
                             struct err *err)
{
    struct store_entry entry;

    switch (
        store_find_identity(engine->store, &letter->identity, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        break;
    case STORE_FOUND:
        if (entry.record.state == RECORD_DEAD &&
            !is_of(letter, &entry.record)) {
            look_at(&letter->route->outbox, letter->origin);
            return true;
        }
        break;
    }
    engine->batch.dirty = true;
    MARK(letter_before_commit);
    return store_outbox_remove(engine->store, letter->route->number,
                               letter->origin, err);
}

static bool apply_back(struct engine *engine, struct err *err)
{
    for (struct queue_item *item = engine->batch.letters.head; item != NULL;
         item = item->next) {
        struct letter *letter = (struct letter *)item;

        letter->is_back = true;
        if (letter->dead.published && !forget_published(engine, letter, err)) {
            return false;
        }
    }
    return true;
}

/* --- what goes ------------------------------------------------------------ */

static bool is_on_its_way(const struct outbox *outbox, uint64_t origin)
{
    const struct letter *letter = outbox->on_their_way;

    while (letter != NULL && (letter->origin != origin || letter->is_back)) {
        letter = letter->next;
    }
    return letter != NULL;
}

/* The bytes move while they grow: where it starts. */
static size_t add_text(struct buf *strings, const char *text)
{
    size_t start = strings->len;

    buf_add_slice(strings, slice_of(text));
    buf_add_slice(strings, (struct slice){"", 1});
    return start;
}

static void fill_strings(struct letter *letter, const struct store_entry *entry)
{
    struct dead_letter *dead = &letter->dead;
    struct buf *strings = &letter->strings;
    size_t code, why;

    buf_add_slice(strings, store_entry_tenant(entry));
    buf_add_slice(strings, store_entry_id(entry));
    code = add_text(strings, entry->code);
    why = add_text(strings, entry->text);
    dead->tenant = (struct slice){strings->data, entry->tenant_len};
    dead->id = (struct slice){strings->data + entry->tenant_len, entry->id_len};
    dead->code = strings->data + code;
    dead->why = strings->data + why;
}

static void fill_key(struct engine *engine, struct letter *letter,
                     const struct store_entry *entry)
{
    const struct downstream_key of = {
        .namespace = store_namespace_name(engine->store, entry->namespace),
        .route = letter->dead.route,
        .tenant = letter->dead.tenant,
        .id = letter->dead.id,
        .run = entry->record.run,
    };

    static_assert(sizeof letter->dead.idempotency_key == ATTEMPT_KEY_SIZE,
                  "it is one");
    engine_downstream_key(&of, letter->dead.idempotency_key);
}

static bool fill_envelope(struct engine *engine, struct letter *letter,
                          const struct store_entry *entry, struct err *err)
{
    switch (store_get_envelope(engine->store, entry, &letter->envelope, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true;
    case STORE_FOUND:
        break;
    }
    letter->dead.has_envelope = true;
    if (!envelope_open(buf_slice(&letter->envelope), &letter->dead.envelope)) {
        return err_set(err, ERR_DATA, "the envelope of %s/%.*s is damaged",
                       letter->route->conf.name, (int)entry->id_len, entry->id);
    }
    return true;
}

static bool write_letter(struct engine *engine, struct route *route,
                         const struct store_entry *entry, struct err *err)
{
    struct letter *letter = mem_new(1, sizeof *letter);
    struct letter **at = &route->outbox.on_their_way;
    struct dead_letter *dead = &letter->dead;

    letter->route = route;
    letter->origin = entry->origin;
    letter->identity = entry->identity;
    letter->is_new = true;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = letter;
    route->outbox.n_on_their_way++;
    dead->engine = engine;
    dead->context = letter;
    dead->route = route->conf.name;
    dead->reason = entry->record.reason;
    dead->run = entry->record.run;
    dead->attempts = entry->record.attempt;
    dead->deliveries = entry->record.deliveries;
    dead->first_seen_ms = entry->record.first_seen_ms;
    dead->died_ms = entry->record.changed_ms;
    fill_strings(letter, entry);
    fill_key(engine, letter, entry);
    return fill_envelope(engine, letter, entry, err);
}

/* One of the list: what is dead no more is taken off it. */
static bool hand_out(struct engine *engine, struct route *route,
                     uint64_t origin, const struct identity *identity,
                     struct err *err)
{
    struct store_entry entry;
    enum store_found found;

    if (is_on_its_way(&route->outbox, origin)) {
        return true;
    }
    found = store_find_identity(engine->store, identity, &entry, err);
    if (found == STORE_FAILED) {
        return false;
    }
    if (found == STORE_FOUND && entry.record.state == RECORD_DEAD &&
        entry.record.route == route->number && entry.origin == origin) {
        return write_letter(engine, route, &entry, err);
    }
    engine->batch.dirty = true;
    return store_outbox_remove(engine->store, route->number, origin, err);
}

static bool fill(struct engine *engine, struct route *route, struct err *err)
{
    struct outbox *outbox = &route->outbox;
    struct identity identity;

    for (int i = 0; i < LOOKS_PER_TURN && outbox->n_on_their_way < LETTERS_MAX;
         i++) {
        switch (store_outbox_next(engine->store, route->number,
                                  &outbox->new_cursor, &identity, err)) {
        case STORE_FAILED:
            return false;
        case STORE_ABSENT:
            outbox->new_has_more = false;
            return true;
        case STORE_FOUND:
            break;
        }
        if (!hand_out(engine, route, outbox->new_cursor, &identity, err)) {
            return false;
        }
    }
    return true;
}

/* Begins the list again, when nothing of it is on its way and it is time. */
static void begin_again(struct outbox *outbox, int64_t now_ms)
{
    if (outbox->has_failed && outbox->n_on_their_way == 0 &&
        now_ms >= outbox->begin_ms) {
        outbox->has_failed = false;
        outbox->has_more = outbox->new_has_more = true;
        outbox->cursor = outbox->new_cursor = 0;
    }
}

bool outbox_apply(struct engine *engine, struct err *err)
{
    if (!apply_back(engine, err)) {
        return false;
    }
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct route *route = &engine->routes[i];
        struct outbox *outbox = &route->outbox;

        if (!has_publisher(route) || engine->stopping) {
            continue;
        }
        begin_again(outbox, engine->batch.now_ms);
        if (outbox->new_has_more && !outbox->has_failed &&
            !fill(engine, route, err)) {
            return false;
        }
    }
    return true;
}

/* --- after the batch ------------------------------------------------------ */

static void free_letter(struct letter *letter)
{
    struct outbox *outbox = &letter->route->outbox;
    struct letter **at = &outbox->on_their_way;

    while (*at != letter) {
        at = &(*at)->next;
    }
    *at = letter->next;
    outbox->n_on_their_way--;
    buf_free(&letter->strings);
    buf_free(&letter->envelope);
    free(letter);
}

static void tell(const struct letter *letter)
{
    const struct dead_letter *dead = &letter->dead;
    struct log_line line;

    if (log_begin(&line, dead->published ? LOG_INFO : LOG_WARN, "engine",
                  dead->published ? "dead letter published"
                                  : "dead letter not published")) {
        log_str(&line, "route", slice_of(dead->route));
        log_str(&line, "id", dead->id);
        if (!dead->published) {
            log_str(&line, "why", slice_of(dead->text));
        }
        log_end(&line);
    }
}

static void come_back(struct engine *engine, struct letter *letter)
{
    struct outbox *outbox = &letter->route->outbox;
    size_t index = (size_t)(letter->route - engine->routes);

    metric_add(METRIC_DEAD_LETTERS_PUBLISHED, index,
               letter->dead.published ? 1 : 0, 1);
    tell(letter);
    if (letter->dead.published) {
        MARK(letter_published);
        outbox->delay_ms = outbox->has_failed ? outbox->delay_ms : 0;
    } else if (!outbox->has_failed) {
        MARK(letter_not_published);
        outbox->has_failed = true;
        outbox->delay_ms =
            outbox->delay_ms == 0 ? AGAIN_FIRST_MS : outbox->delay_ms * 2;
        if (outbox->delay_ms > AGAIN_MAX_MS) {
            outbox->delay_ms = AGAIN_MAX_MS;
        }
        outbox->begin_ms = engine->batch.now_ms + outbox->delay_ms;
    }
    free_letter(letter);
}

static void free_back(struct engine *engine,
                      void (*visit)(struct engine *engine,
                                    struct letter *letter))
{
    struct item_list *list = &engine->batch.letters;
    struct queue_item *item = list->head;

    list->head = NULL;
    list->tail = &list->head;
    while (item != NULL) {
        struct queue_item *next = item->next;

        visit(engine, (struct letter *)item);
        item = next;
    }
}

static void send_new(struct route *route)
{
    struct letter *letter = route->outbox.on_their_way;

    while (letter != NULL) {
        struct letter *next = letter->next;

        if (letter->is_new) {
            letter->is_new = false;
            route->conf.publisher.ops->publish(route->conf.publisher.self,
                                               &letter->dead);
        }
        letter = next;
    }
}

void outbox_committed(struct engine *engine)
{
    free_back(engine, come_back);
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct outbox *outbox = &engine->routes[i].outbox;

        outbox->cursor = outbox->new_cursor;
        outbox->has_more = outbox->new_has_more;
        send_new(&engine->routes[i]);
    }
}

void outbox_aborted(struct engine *engine)
{
    for (size_t i = 0; i < engine->n_routes; i++) {
        struct outbox *outbox = &engine->routes[i].outbox;
        struct letter *letter = outbox->on_their_way;

        /* What an earlier batch added may not have been looked at yet. */
        if (outbox->new_cursor > outbox->cursor) {
            outbox->new_cursor = outbox->cursor;
        }
        outbox->new_has_more = outbox->new_has_more || outbox->has_more;
        while (letter != NULL) {
            struct letter *next = letter->next;

            if (letter->is_new) {
                free_letter(letter);
            }
            letter = next;
        }
    }
}

int64_t outbox_next_ms(const struct engine *engine)
{
    int64_t next_ms = RECORD_NEVER;

    for (size_t i = 0; i < engine->n_routes && !engine->stopping; i++) {
        const struct outbox *outbox = &engine->routes[i].outbox;
        int64_t at_ms = RECORD_NEVER;

        if (outbox->has_failed) {
            at_ms =
                outbox->n_on_their_way == 0 ? outbox->begin_ms : RECORD_NEVER;
        } else if (outbox->has_more && outbox->n_on_their_way < LETTERS_MAX) {
            at_ms = INT64_MIN;
        }
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    return next_ms;
}

static void only_free(struct engine *engine, struct letter *letter)
{
    (void)engine;
    free_letter(letter);
}

void outbox_free(struct engine *engine)
{
    free_back(engine, only_free);
    for (size_t i = 0; i < engine->n_routes; i++) {
        CHECK(engine->routes[i].outbox.n_on_their_way == 0);
    }
}
