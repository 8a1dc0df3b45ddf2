/* SPDX-License-Identifier: MIT */
/* Listings of other threads while the owner of the store writes, closes,
 * seals and forgets generations. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "store/store.h"
#include "support/tmpdir.h"

enum { BATCHES = 400, BATCH = 20, LISTERS = 2 };

#define HOUR_MS INT64_C(3600000)

struct stress {
    _Atomic int64_t now_ms;
    struct store *store;
    uint16_t route, space;
    _Atomic bool stop;
    _Atomic uint64_t listed;
};

static int64_t now(void *self)
{
    return atomic_load(&((struct stress *)self)->now_ms);
}

static void must(bool ok, const struct err *err)
{
    if (!ok) {
        (void)fprintf(stderr, "stress_store_list: %s\n", err->text);
        exit(1);
    }
}

static void add(struct stress *s, int n, struct err *err)
{
    struct store_entry entry;
    int64_t now_ms = store_now_ms(s->store);
    char id[32];

    (void)snprintf(id, sizeof id, "evt_%d", n);
    must(store_find(s->store, s->space, SLICE(""), slice_of(id), &entry, err) ==
             STORE_ABSENT,
         err);
    entry.record = (struct record){
        .state = n % 3 == 0 ? RECORD_DEAD : RECORD_PENDING,
        .reason = n % 3 == 0 ? REASON_REFUSED : REASON_NONE,
        .route = s->route,
        .run = 1,
        .first_seen_ms = now_ms,
        .last_seen_ms = now_ms,
        .changed_ms = now_ms,
        .due_ms = n % 3 == 0 ? RECORD_NEVER : now_ms,
    };
    must(store_put(s->store, &entry, err), err);
    if (n % 3 == 1) {
        entry.record.state = RECORD_SUCCEEDED;
        entry.record.due_ms = RECORD_NEVER;
        must(store_put(s->store, &entry, err), err);
    }
}

static bool see(void *ctx, const struct store_entry *entry)
{
    uint64_t *last = ctx;

    CHECK(entry->seq < *last);
    CHECK(entry->id_len > 4);
    *last = entry->seq;
    return true;
}

static void *run_lister(void *arg)
{
    static const enum record_state states[] = {
        RECORD_NONE, RECORD_DEAD, RECORD_PENDING, RECORD_SUCCEEDED};
    struct stress *s = arg;
    struct err err;

    for (size_t i = 0; !atomic_load(&s->stop); i++) {
        struct store_filter filter = {
            .route = -1, .has_state = i % 4 != 0, .state = states[i % 4]};
        uint64_t last = UINT64_MAX;

        must(store_list(s->store, &filter, see, &last, &err), &err);
        atomic_fetch_add(&s->listed, 1);
    }
    return NULL;
}

static void run_writer(struct stress *s)
{
    struct err err;
    bool more;

    for (int batch = 0; batch < BATCHES || atomic_load(&s->listed) < 20;
         batch++) {
        must(store_begin(s->store, &err), &err);
        for (int i = 0; i < BATCH; i++) {
            add(s, batch * BATCH + i, &err);
        }
        must(store_maintain(s->store, &more, &err), &err);
        must(store_commit(s->store, &err), &err);
        atomic_fetch_add(&s->now_ms, HOUR_MS);
    }
}

int main(void)
{
    struct stress s = {.now_ms = INT64_C(1800000000000)};
    struct clock clock = {now, now, &s};
    char dir[PATH_MAX];
    struct store_options options = {
        .path = dir,
        .max_bytes = UINT64_C(1) << 28,
        .retention_ms = 100 * HOUR_MS,
        .create = true,
        .no_sync = true,
        .ids_per_generation = 200,
        .clock = &clock,
    };
    pthread_t listers[LISTERS];
    struct err err;

    tmpdir_make(dir);
    must(store_open(&s.store, &options, &err), &err);
    must(store_route_number(s.store, "r", &s.route, &err), &err);
    must(store_namespace_number(s.store, "r", &s.space, &err), &err);
    for (int i = 0; i < LISTERS; i++) {
        CHECK(pthread_create(&listers[i], NULL, run_lister, &s) == 0);
    }
    run_writer(&s);
    atomic_store(&s.stop, true);
    for (int i = 0; i < LISTERS; i++) {
        CHECK(pthread_join(listers[i], NULL) == 0);
    }
    store_close(&s.store);
    tmpdir_remove(dir);
    return 0;
}
