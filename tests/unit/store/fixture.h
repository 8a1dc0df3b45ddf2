/* SPDX-License-Identifier: MIT */
/* A store in a temporary folder, with a clock that the test moves. */
#ifndef ONCED_TESTS_UNIT_STORE_FIXTURE_H
#define ONCED_TESTS_UNIT_STORE_FIXTURE_H

#include <criterion/criterion.h>
#include <string.h>

#include "core/envelope.h"
#include "store/store.h"
#include "support/tmpdir.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define START_MS INT64_C(1800000000000)

struct fixture {
    char dir[PATH_MAX];
    int64_t wall_ms, boot_ms;
    struct clock clock;
    struct store_options options;
    struct store *store;
    struct err err;
    uint16_t route, other, space;
};

static inline int64_t fixture_wall(void *self)
{
    return ((struct fixture *)self)->wall_ms;
}

static inline int64_t fixture_boot(void *self)
{
    return ((struct fixture *)self)->boot_ms;
}

#define OK(f, call) cr_assert(call, "%s", (f)->err.text)
#define FOUND(f, call) cr_assert_eq(call, STORE_FOUND, "%s", (f)->err.text)
#define ABSENT(f, call) cr_assert_eq(call, STORE_ABSENT, "%s", (f)->err.text)

static inline void fixture_open(struct fixture *f)
{
    f->err.text[0] = '\0';
    OK(f, store_open(&f->store, &f->options, &f->err));
    OK(f, store_route_number(f->store, "stripe", &f->route, &f->err));
    OK(f, store_route_number(f->store, "orders", &f->other, &f->err));
    OK(f, store_namespace_number(f->store, "stripe", &f->space, &f->err));
}

static inline void fixture_prepare(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    tmpdir_make(f->dir);
    f->wall_ms = START_MS;
    f->boot_ms = 1000;
    f->clock = (struct clock){fixture_wall, fixture_boot, f};
    f->options = (struct store_options){
        .path = f->dir,
        .max_bytes = UINT64_C(1) << 28,
        .retention_ms = 35 * DAY_MS,
        .create = true,
        .no_sync = true,
        .clock = &f->clock,
    };
}

static inline void fixture_begin(struct fixture *f)
{
    fixture_prepare(f);
    fixture_open(f);
}

static inline void fixture_end(struct fixture *f)
{
    store_close(&f->store);
    tmpdir_remove(f->dir);
}

static inline void fixture_reopen(struct fixture *f)
{
    store_close(&f->store);
    fixture_open(f);
}

static inline void fixture_pass(struct fixture *f, int64_t ms)
{
    f->wall_ms += ms;
    f->boot_ms += ms;
}

/* The store follows no jump of more than an hour while it runs: time passes
 * in steps, with a look at the clock in each. */
static inline void fixture_run_for(struct fixture *f, int64_t ms)
{
    for (; ms > 0; ms -= HOUR_MS) {
        fixture_pass(f, ms < HOUR_MS ? ms : HOUR_MS);
        (void)store_now_ms(f->store);
    }
}

static inline enum store_found fixture_find(struct fixture *f, const char *id,
                                            struct store_entry *entry)
{
    return store_find(f->store, f->space, SLICE(""), slice_of(id), entry,
                      &f->err);
}

/* A new event, due at once. */
static inline void fixture_fill_pending(struct fixture *f,
                                        struct store_entry *entry)
{
    int64_t now_ms = store_now_ms(f->store);

    entry->record = (struct record){
        .state = RECORD_PENDING,
        .route = f->route,
        .run = 1,
        .deliveries = 1,
        .first_seen_ms = now_ms,
        .last_seen_ms = now_ms,
        .changed_ms = now_ms,
        .clock_ms = now_ms,
        .due_ms = now_ms,
    };
}

static inline void fixture_accept(struct fixture *f, const char *id,
                                  struct store_entry *entry)
{
    ABSENT(f, fixture_find(f, id, entry));
    fixture_fill_pending(f, entry);
    OK(f, store_put(f->store, entry, &f->err));
}

static inline void fixture_settle(struct fixture *f, struct store_entry *entry,
                                  enum record_state state)
{
    entry->record.state = state;
    entry->record.due_ms = RECORD_NEVER;
    entry->record.changed_ms = store_now_ms(f->store);
    entry->record.reason = state == RECORD_DEAD ? REASON_REFUSED : REASON_NONE;
    entry->record.flags &= (uint32_t)RECORD_ERASED;
    OK(f, store_put(f->store, entry, &f->err));
}

/* An event that came and succeeded, in one transaction. */
static inline void fixture_add_done(struct fixture *f, const char *id)
{
    struct store_entry entry;

    OK(f, store_begin(f->store, &f->err));
    fixture_accept(f, id, &entry);
    fixture_settle(f, &entry, RECORD_SUCCEEDED);
    OK(f, store_commit(f->store, &f->err));
}

static inline enum store_found fixture_look(struct fixture *f, const char *id,
                                            struct store_entry *entry)
{
    enum store_found found;

    OK(f, store_begin(f->store, &f->err));
    found = fixture_find(f, id, entry);
    store_abort(f->store);
    return found;
}

/* Until nothing is left to do. */
static inline void fixture_maintain(struct fixture *f)
{
    bool more = true;

    while (more) {
        OK(f, store_begin(f->store, &f->err));
        OK(f, store_maintain(f->store, &more, &f->err));
        OK(f, store_commit(f->store, &f->err));
    }
}

#endif
