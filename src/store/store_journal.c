/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void store_journal_id(struct store *store, uint32_t slot,
                      const struct identity *identity, uint64_t before)
{
    struct journal *journal = &store->journal;

    CHECK(store->txn != NULL);
    CHECK(store->memory[slot].table != NULL);
    if (journal->n_ids == journal->cap_ids) {
        journal->cap_ids = journal->cap_ids > 0 ? journal->cap_ids * 2 : 256;
        journal->ids =
            mem_grow(journal->ids, journal->cap_ids, sizeof *journal->ids);
    }
    journal->ids[journal->n_ids++] =
        (struct id_change){*identity, slot, before};
}

void store_journal_counts(struct store *store, uint32_t slot, uint16_t route)
{
    struct journal *journal = &store->journal;
    struct count_change *change;

    CHECK(store->txn != NULL);
    CHECK(route < store->n_routes);
    if (store->memory[slot].noted[route]) {
        return;
    }
    store->memory[slot].noted[route] = true;
    if (journal->n_counts == journal->cap_counts) {
        journal->cap_counts =
            journal->cap_counts > 0 ? journal->cap_counts * 2 : 16;
        journal->counts = mem_grow(journal->counts, journal->cap_counts,
                                   sizeof *journal->counts);
    }
    change = &journal->counts[journal->n_counts++];
    change->slot = slot;
    change->route = route;
    memcpy(change->before, store->memory[slot].counts[route],
           sizeof change->before);
}

struct route_values *store_journal_route(struct store *store, uint16_t number)
{
    struct journal *journal = &store->journal;
    struct store_route *route = &store->routes[number];

    CHECK(number < store->n_routes);
    if (!route->touched) {
        CHECK(journal->n_touched < STORE_ROUTES_MAX);
        journal->touched_routes[journal->n_touched++] = number;
        route->saved = route->now;
        route->touched = true;
    }
    return &route->now;
}

static bool flush_route(struct store *store, uint16_t number, struct err *err)
{
    struct store_route *route = &store->routes[number];

    if (!store_index_refresh_due(store, number, false, err)) {
        return false;
    }
    return (route->now.paused == route->saved.paused &&
            route->now.unreachable == route->saved.unreachable &&
            route->now.dead_bytes == route->saved.dead_bytes &&
            route->now.dead_holders == route->saved.dead_holders) ||
           store_meta_save_route(store, number, err);
}

static bool flush_counts(struct store *store, const struct count_change *change,
                         struct err *err)
{
    const struct generation *gen = &store->state.gens[change->slot];

    /* The generation may have been dropped in this very transaction. */
    return gen->number < store->state.first_gen ||
           store_meta_save_counts(store, change->slot, change->route, err);
}

bool store_journal_flush(struct store *store, struct err *err)
{
    struct journal *journal = &store->journal;

    for (size_t i = 0; i < journal->n_counts; i++) {
        if (!flush_counts(store, &journal->counts[i], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < journal->n_touched; i++) {
        if (!flush_route(store, journal->touched_routes[i], err)) {
            return false;
        }
    }
    return true;
}

static void clear(struct store *store)
{
    struct journal *journal = &store->journal;

    for (size_t i = 0; i < journal->n_touched; i++) {
        store->routes[journal->touched_routes[i]].touched = false;
    }
    for (size_t i = 0; i < journal->n_counts; i++) {
        const struct count_change *change = &journal->counts[i];

        store->memory[change->slot].noted[change->route] = false;
    }
    if (journal->gens_changed) {
        store_gen_follow(store);
    }
    journal->n_ids = 0;
    journal->n_counts = 0;
    journal->n_touched = 0;
    journal->new_ids = 0;
    journal->wrote = false;
    journal->gens_changed = false;
    journal->no_room = false;
}

void store_journal_keep(struct store *store)
{
    CHECK(store->txn == NULL);
    CHECK(!store->journal.no_room);
    clear(store);
}

void store_journal_undo(struct store *store)
{
    struct journal *journal = &store->journal;

    CHECK(store->txn == NULL);
    for (size_t i = journal->n_ids; i-- > 0;) {
        const struct id_change *change = &journal->ids[i];

        (void)store_table_set(store->memory[change->slot].table,
                              &change->identity, change->before);
    }
    for (size_t i = 0; i < journal->n_counts; i++) {
        const struct count_change *change = &journal->counts[i];

        memcpy(store->memory[change->slot].counts[change->route],
               change->before, sizeof change->before);
    }
    for (size_t i = 0; i < journal->n_touched; i++) {
        struct store_route *route = &store->routes[journal->touched_routes[i]];

        route->now = route->saved;
    }
    store->state = store->saved;
    clear(store);
}

void store_journal_free(struct store *store)
{
    free(store->journal.ids);
    free(store->journal.counts);
    memset(&store->journal, 0, sizeof store->journal);
}
