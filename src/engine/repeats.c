/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/check.h"
#include "engine/internal.h"

enum {
    REPEATS_WAIT_MS = 1000,
    REPEATS_HURRY = 4096,    /* so many do not wait */
    REPEATS_MAX = 64 * 1024, /* while no commit succeeds: more are lost */
};

struct repeat {
    uint8_t identity[16];
    uint32_t deliveries, drifts;
    int64_t last_seen_ms;
    bool taken; /* by the open batch */
    UT_hash_handle hh;
};

struct repeats {
    struct repeat *table;
    int64_t due_ms;
};

struct repeats *repeats_new(void)
{
    struct repeats *repeats = mem_new(1, sizeof *repeats);

    repeats->due_ms = RECORD_NEVER;
    return repeats;
}

static void empty(struct repeats *repeats)
{
    struct repeat *repeat = repeats->table;

    HASH_CLEAR(hh, repeats->table); /* the table, not what is in it */
    while (repeat != NULL) {
        struct repeat *next = repeat->hh.next;

        free(repeat);
        repeat = next;
    }
    repeats->due_ms = RECORD_NEVER;
}

void repeats_free(struct repeats *repeats)
{
    if (repeats != NULL) {
        empty(repeats);
        free(repeats);
    }
}

static struct repeat *find(const struct repeats *repeats,
                           const uint8_t identity[16])
{
    struct repeat *repeat;

    HASH_FIND(hh, repeats->table, identity, sizeof repeat->identity, repeat);
    return repeat;
}

/* NOLINTNEXTLINE(readability-function-size): a macro of uthash */
static struct repeat *add(struct repeats *repeats, const uint8_t identity[16])
{
    struct repeat *repeat = mem_new(1, sizeof *repeat);

    memcpy(repeat->identity, identity, sizeof repeat->identity);
    HASH_ADD(hh, repeats->table, identity, sizeof repeat->identity, repeat);
    return repeat;
}

void repeats_add(struct repeats *repeats, const uint8_t identity[16],
                 bool drifted, int64_t now_ms)
{
    struct repeat *repeat = find(repeats, identity);

    if (repeat == NULL && HASH_COUNT(repeats->table) >= REPEATS_MAX) {
        return;
    }
    if (repeat == NULL) {
        repeat = add(repeats, identity);
    }
    repeat->deliveries++;
    repeat->drifts += drifted ? 1 : 0;
    repeat->last_seen_ms = now_ms;
    if (repeats->due_ms == RECORD_NEVER) {
        repeats->due_ms = now_ms + REPEATS_WAIT_MS;
    }
    if (HASH_COUNT(repeats->table) >= REPEATS_HURRY) {
        repeats->due_ms = now_ms;
    }
}

static void add_to(const struct repeat *repeat, struct record *record)
{
    record->deliveries += repeat->deliveries;
    record->drifts += repeat->drifts;
    if (record->last_seen_ms < repeat->last_seen_ms) {
        record->last_seen_ms = repeat->last_seen_ms;
    }
}

void repeats_overlay(const struct repeats *repeats, struct store_entry *entry)
{
    const struct repeat *repeat = find(repeats, entry->identity.hash);

    if (repeat != NULL) {
        add_to(repeat, &entry->record);
    }
}

int64_t repeats_due_ms(const struct repeats *repeats)
{
    return repeats->due_ms;
}

void repeats_hurry(struct repeats *repeats)
{
    if (repeats->table != NULL) {
        repeats->due_ms = INT64_MIN;
    }
}

static bool is_power_of_two_between(uint32_t above, uint32_t upto)
{
    for (uint32_t power = 2; power != 0 && power <= upto; power *= 2) {
        if (power > above) {
            return true;
        }
    }
    return false;
}

static bool flush_one(struct engine *engine, const struct repeat *repeat,
                      struct err *err)
{
    struct identity identity;
    struct store_entry entry;
    struct store_audit audit = {.move = MOVE_REPEATED};
    uint32_t before;

    memcpy(identity.hash, repeat->identity, sizeof identity.hash);
    switch (store_find_identity(engine->store, &identity, &entry, err)) {
    case STORE_FAILED:
        return false;
    case STORE_ABSENT:
        return true; /* forgotten meanwhile */
    case STORE_FOUND:
        break;
    }
    before = entry.record.deliveries;
    add_to(repeat, &entry.record);
    engine->batch.dirty = true;
    if (!store_put(engine->store, &entry, err)) {
        return false;
    }
    /* The history of a repeat storm stays short: 2nd, 4th, 8th … delivery. */
    if (!is_power_of_two_between(before, entry.record.deliveries)) {
        return true;
    }
    audit.at_ms = repeat->last_seen_ms;
    audit.attempt = entry.record.attempt;
    audit.run = entry.record.run;
    (void)snprintf(audit.why, sizeof audit.why, "delivery %u%s",
                   entry.record.deliveries,
                   repeat->drifts > 0 ? ", with other content" : "");
    return store_add_audit(engine->store, &entry, &audit, err);
}

bool repeats_flush(struct engine *engine, struct err *err)
{
    struct repeat *repeat = engine->repeats->table;

    for (int n = 0; repeat != NULL && n < REPEATS_HURRY; n++) {
        if (!flush_one(engine, repeat, err)) {
            return false;
        }
        repeat->taken = true;
        repeat = repeat->hh.next;
    }
    return true;
}

/* The analyzer does not see that the macro lets go of what it takes out. */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc,readability-function-size) */
static void forget(struct repeats *repeats, struct repeat *repeat)
{
    HASH_DEL(repeats->table, repeat);
    free(repeat);
}

void repeats_flushed(struct repeats *repeats, bool committed)
{
    struct repeat *repeat = repeats->table;

    while (repeat != NULL && repeat->taken) {
        struct repeat *next = repeat->hh.next;

        repeat->taken = false;
        if (committed) {
            forget(repeats, repeat);
        }
        repeat = next;
    }
    if (repeats->table == NULL) {
        repeats->due_ms = RECORD_NEVER;
    }
}
/* NOLINTEND(clang-analyzer-unix.Malloc,readability-function-size) */
