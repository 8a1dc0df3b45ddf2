/* SPDX-License-Identifier: MIT */
/* C6: what was committed. Also, of messages: C1 and C9. */
#include <inttypes.h>
#include <stdlib.h>

#include "checker/checker_internal.h"

/* --- what the lines tell -----------------------------------------------------
 */

/* NOLINTNEXTLINE(readability-function-size): macros of uthash */
static struct part_track *get_part(struct checker *checker,
                                   const struct ledger_place *place)
{
    struct buf *name = &checker->scratch;
    struct part_track *part;

    buf_clear(name);
    buf_add_slice(name, place->topic);
    buf_printf(name, "/%" PRId64, place->partition);
    HASH_FIND(hh, checker->parts, name->data, name->len, part);
    if (part != NULL) {
        return part;
    }
    part = arena_new(checker, sizeof *part);
    part->name = arena_copy(checker, buf_slice(name));
    part->topic = arena_copy(checker, place->topic);
    part->number = place->partition;
    part->committed = -1;
    HASH_ADD_KEYPTR(hh, checker->parts, part->name.data, part->name.len, part);
    if (checker->last_part == NULL) {
        checker->first_part = part;
    } else {
        checker->last_part->next = part;
    }
    checker->last_part = part;
    return part;
}

void offsets_free(struct checker *checker)
{
    for (struct part_track *part = checker->first_part; part != NULL;
         part = part->next) {
        free(part->messages);
    }
    HASH_CLEAR(hh, checker->parts);
}

bool offsets_take_msg(struct checker *checker, const struct ledger_msg *line,
                      struct event_track *event, struct err *err)
{
    struct part_track *part = get_part(checker, &line->place);
    struct try_track *try;

    if (part->n > 0 && part->messages[part->n - 1]->offset > line->offset) {
        return err_set(err, ERR_DATA, "the offsets of a partition go back");
    }
    if (part->n == part->cap) {
        part->cap = part->cap == 0 ? 64 : part->cap * 2;
        part->messages =
            mem_grow(part->messages, part->cap, sizeof(struct try_track *));
    }
    try = arena_new(checker, sizeof *try);
    try->hash = event_keep_hash(checker, event, line->hash);
    try->order = arena_copy(checker, line->order);
    try->sent_at = checker->lines;
    try->sent_ms = line->t_ms;
    try->resp_at = NOT_YET;
    try->valid = true;
    try->part = part;
    try->offset = line->offset;
    try->committed_at = NOT_YET;
    event_add_try(event, try);
    part->messages[part->n++] = try;
    return true;
}

static void add_owner(struct checker *checker, struct part_track *part,
                      const struct process_track *process)
{
    struct owner_track *owner = arena_new(checker, sizeof *owner);

    *owner = (struct owner_track){part->owners, process, checker->lines};
    part->owners = owner;
}

bool offsets_take_owner(struct checker *checker, enum ledger_kind kind,
                        const struct ledger_owner *line,
                        const struct process_track *process)
{
    struct part_track *part = get_part(checker, &line->place);

    part->is_read = true;
    if (kind == LINE_ASSIGN) {
        add_owner(checker, part, process);
        part->owner = process;
    } else if (part->owner == process) {
        part->owner = NULL;
    }
    return true;
}

static void check_commit(struct checker *checker, const struct part_track *part,
                         const struct ledger_commit *line)
{
    if (line->offset < part->committed) {
        report(checker, CHECKER_C6, NULL,
               "%s: offset %" PRId64 " was committed after %" PRId64,
               part->name.data, line->offset, part->committed);
    }
    if (line->process != 0 &&
        (part->owner == NULL || part->owner->number != line->process)) {
        report(checker, CHECKER_C6, NULL,
               "%s: offset %" PRId64 " was committed by process %" PRIu64
               ", which did not own it",
               part->name.data, line->offset, line->process);
    }
}

bool offsets_take_commit(struct checker *checker,
                         const struct ledger_commit *line, bool is_reset)
{
    struct part_track *part = get_part(checker, &line->place);

    part->is_read = true;
    if (!is_reset) {
        check_commit(checker, part, line);
        while (part->passed < part->n &&
               part->messages[part->passed]->offset < line->offset) {
            struct try_track *try = part->messages[part->passed++];

            try->committed_at = try->skipped ? NOT_YET : checker->lines;
        }
    }
    part->committed = line->offset;
    return true;
}

bool offsets_take_skip(struct checker *checker, const struct ledger_skip *line)
{
    struct part_track *part = get_part(checker, &line->place);

    for (size_t i = part->passed; i < part->n; i++) {
        struct try_track *try = part->messages[i];

        if (try->offset >= line->from && try->offset < line->to) {
            try->skipped = true;
            try->skip = line->kind;
        }
    }
    return true;
}

/* --- what they must keep -----------------------------------------------------
 */

/* From then on the store may have settled it; NOT_YET: it never did. */
static uint64_t settled_in(const struct event_track *event,
                           const struct ledger_event *export)
{
    enum {
        ENDS = ROW_SUCCEEDED | ROW_FAILED | ROW_DISCARDED | ROW_APPLIED |
               ROW_RELEASED | ROW_RERUN | ROW_SETTLED_OTHERWISE | ROW_DEAD |
               ROW_REPLAYED,
    };
    uint64_t life = first_life(export, ENDS, event_is_settled(export));
    uint64_t at = 0;

    if (life == UINT64_MAX) {
        return NOT_YET;
    }
    for (const struct inv_track *inv = event->invs; inv != NULL;
         inv = inv->next) {
        if (inv_is_of(inv, export) && inv->attempt <= life &&
            inv_end(inv) > at) {
            at = inv_end(inv);
        }
    }
    return at;
}

/* Of several stores, the first. */
static uint64_t settled_at(const struct event_track *event)
{
    uint64_t at = settled_in(event, event->export);

    for (const struct export_track *other = event->others; other != NULL;
         other = other->next) {
        uint64_t there = settled_in(event, other->export);

        at = there < at ? there : at;
    }
    return at;
}

static void check_passed(struct checker *checker, const struct try_track *try)
{
    const struct event_track *event = try->event;

    if (event->export == NULL) {
        report(checker, CHECKER_C1, event,
               "lost: offset %" PRId64 " of %s was passed, and the event is "
               "not in the export",
               try->offset, try->part->name.data);
    } else if (settled_at(event) > try->committed_at) {
        report(checker, CHECKER_C6, event,
               "offset %" PRId64 " of %s was passed before the event was "
               "settled",
               try->offset, try->part->name.data);
    }
}

static void check_left(struct checker *checker, const struct try_track *try)
{
    const struct event_track *event = try->event;

    /* What is stuck itself is told elsewhere. */
    if (event->export == NULL || event_is_settled(event->export)) {
        report(checker, CHECKER_C9, event,
               "offset %" PRId64 " of %s was never passed: committed is "
               "%" PRId64,
               try->offset, try->part->name.data, try->part->committed);
    }
}

static void check_part(struct checker *checker, const struct part_track *part)
{
    bool is_over = checker->heal_ms >= 0 || checker->quiet_ms >= 0;

    for (size_t i = 0; i < part->n; i++) {
        const struct try_track *try = part->messages[i];

        if (try->skipped || try->event->forgotten) {
            continue;
        }
        if (try->committed_at != NOT_YET) {
            check_passed(checker, try);
        } else if (is_over && part->is_read) {
            check_left(checker, try);
        }
    }
}

/* What settled as moved was another worker's. */
static void check_moved(struct checker *checker,
                        const struct event_track *event)
{
    bool was_skipped = false;

    for (const struct try_track *try = event->tries; try != NULL;
         try = try->next) {
        was_skipped |= try->skipped;
    }
    if (event->export != NULL && !was_skipped &&
        slice_eq(event->export->reason, SLICE("moved"))) {
        report(checker, CHECKER_C1, event,
               "lost: it settled as moved, and nobody else had it");
    }
}

void check_offsets(struct checker *checker)
{
    if (!checker->has_export) {
        return;
    }
    for (const struct part_track *part = checker->first_part; part != NULL;
         part = part->next) {
        check_part(checker, part);
    }
    for (const struct event_track *event = checker->first; event != NULL;
         event = event->next) {
        check_moved(checker, event);
    }
}
