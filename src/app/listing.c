/* SPDX-License-Identifier: MIT */
#include "app/listing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/story.h"
#include "base/check.h"
#include "base/text.h"

static bool find_route(const struct store *store, const char *name,
                       int32_t *number, struct err *err)
{
    const char *known;

    for (uint16_t i = 0; (known = store_route_name(store, i)) != NULL; i++) {
        if (strcmp(known, name) == 0) {
            *number = i;
            return true;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "no route \"%s\"", name);
}

bool listing_when(const char *name, const char *text, int64_t now_ms,
                  int64_t *out, struct err *err)
{
    int64_t ago_ms;

    if (text_duration_ms(slice_of(text), &ago_ms)) {
        *out = ago_ms < now_ms ? now_ms - ago_ms : 1;
        return true;
    }
    if (text_parse_time(slice_of(text), out)) {
        return true;
    }
    return err_set(err, ERR_USAGE,
                   "%s: \"%s\" is neither a duration (2h) nor a time "
                   "(2026-01-31T10:00:00Z)",
                   name, text);
}

static bool parse_state(const char *text, struct store_filter *out,
                        struct err *err)
{
    out->has_state = true;
    return record_state_parse(text, &out->state) ||
           err_set(err, ERR_USAGE,
                   "state: \"%s\" is none of PENDING, RUNNING, UNCERTAIN, "
                   "SUCCEEDED, FAILED, DEAD",
                   text);
}

static bool parse_reason(const char *text, struct store_filter *out,
                         struct err *err)
{
    struct buf names = BUF_INIT;

    if (reason_parse(text, &out->reason)) {
        return true;
    }
    for (enum reason i = REASON_EXHAUSTED; i <= REASON_DISCARDED; i++) {
        buf_printf(&names, "%s%s", names.len == 0 ? "" : ", ", reason_name(i));
    }
    (void)err_set(err, ERR_USAGE, "reason: \"%s\" is none of %s", text,
                  buf_cstr(&names));
    buf_free(&names);
    return false;
}

bool listing_filter(const struct listing *listing, const struct store *store,
                    int64_t now_ms, struct store_filter *out, struct err *err)
{
    *out = (struct store_filter){.route = -1, .reason = REASON_NONE};
    if (listing->route != NULL &&
        !find_route(store, listing->route, &out->route, err)) {
        return false;
    }
    if (listing->state != NULL && !parse_state(listing->state, out, err)) {
        return false;
    }
    if (listing->reason != NULL && !parse_reason(listing->reason, out, err)) {
        return false;
    }
    if (listing->since != NULL &&
        !listing_when("since", listing->since, now_ms, &out->since_ms, err)) {
        return false;
    }
    if (listing->cursor != NULL &&
        (!text_u64(slice_of(listing->cursor), &out->before) ||
         out->before == 0)) {
        return err_set(err, ERR_USAGE, "cursor: not one that was given out");
    }
    return true;
}

/* --- a page -------------------------------------------------------------- */

struct page {
    const struct store *store;
    json_t *events;
    uint64_t limit;
    uint64_t last; /* where the page ends */
    bool more;
};

static bool add_event(void *ctx, const struct store_entry *entry)
{
    struct page *page = ctx;
    int failed;

    if (json_array_size(page->events) == page->limit) {
        page->more = true;
        return false;
    }
    page->last = entry->seq;
    failed =
        json_array_append_new(page->events, story_event(page->store, entry));
    CHECK(failed == 0);
    return true;
}

static bool parse_limit(const char *text, uint64_t *limit, struct err *err)
{
    *limit = LISTING_DEFAULT;
    if (text == NULL) {
        return true;
    }
    if (text_u64(slice_of(text), limit) && *limit >= 1 &&
        *limit <= LISTING_MAX) {
        return true;
    }
    return err_set(err, ERR_USAGE, "limit: must be 1 to %d", LISTING_MAX);
}

bool listing_json(const struct listing *listing, struct store *store,
                  int64_t now_ms, json_t **out, struct err *err)
{
    struct page page = {.store = store};
    struct store_filter filter;
    char cursor[24];

    if (!listing_filter(listing, store, now_ms, &filter, err) ||
        !parse_limit(listing->limit, &page.limit, err)) {
        return false;
    }
    page.events = json_array();
    if (!store_list(store, &filter, add_event, &page, err)) {
        json_decref(page.events);
        return err_wrap(err, "list events");
    }
    (void)snprintf(cursor, sizeof cursor, "%" PRIu64, page.last);
    *out = json_pack("{s:o, s:o}", "events", page.events, "cursor",
                     page.more ? json_string(cursor) : json_null());
    CHECK(*out != NULL);
    return true;
}
