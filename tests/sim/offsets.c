/* SPDX-License-Identifier: MIT */
/*
 * The offsets that the source stores as the engine's low-water tells them, and
 * commits now and then.
 *
 * Whatever is stored is held against the store at once: the events below it
 * are settled there, and its own low-water is not behind.
 */
#include <stdatomic.h>

#include "sim/sim.h"

enum { COMMIT_EVERY_MS = 5000 };

static const struct message *message_at(const struct holding *holding, size_t i)
{
    return holding->partition->messages.at[i];
}

/* --- what was promised of an offset ------------------------------------------
 */

/* The store's numbers, which cannot be asked for in a transaction. */
struct numbers {
    uint16_t stream;
    uint16_t namespaces[SIM_ROUTES_MAX]; /* of the routes */
};

static bool find_numbers(const struct holding *holding, struct numbers *out,
                         struct err *err)
{
    const struct sim *sim = holding->sim;
    struct store *store = sim->process.store;
    bool ok = store_stream_number(store, holding->partition->topic->stream,
                                  &out->stream, err);

    for (size_t i = 0; ok && i < sim->n_routes; i++) {
        ok = store_namespace_number(store, sim->routes[i].conf.namespace,
                                    &out->namespaces[i], err);
    }
    return ok;
}

static bool check_settled(struct sim *sim, const struct event *event,
                          uint16_t namespace, struct err *err)
{
    struct store_entry entry;

    if (store_find(sim->process.store, namespace, slice_of(event->tenant),
                   slice_of(event->id), &entry, err) == STORE_FAILED) {
        return false;
    }
    if (entry.record.state == RECORD_NONE && sender_may_be_renewed(event)) {
        return true;
    }
    if (entry.record.state == RECORD_NONE) {
        sim_fail(sim, "%s is not known, and its offset is passed", event->id);
    } else if (!record_is_settled(&entry.record) &&
               (event->replays == 0 ||
                (entry.record.flags & RECORD_PINS) != 0)) {
        sim_fail(sim, "%s is %s, and its offset is passed", event->id,
                 record_state_name(entry.record.state));
    }
    return true;
}

static bool check_messages(struct holding *holding, int64_t low_water,
                           const struct numbers *numbers, struct err *err)
{
    struct sim *sim = holding->sim;
    bool ok = true;

    while (ok && holding->checked < holding->next &&
           message_at(holding, holding->checked)->offset < low_water) {
        const struct message *message = message_at(holding, holding->checked++);
        struct event *event = message->event;

        if (message->brought != holding) {
            continue; /* deleted before it came */
        }
        ok = check_settled(sim, event, numbers->namespaces[event->route], err);
        if (ok && event->also != SIZE_MAX) {
            ok = check_settled(sim, event, numbers->namespaces[event->also],
                               err);
        }
        event->acked = true;
    }
    return ok;
}

static bool check_store(const struct holding *holding, int64_t low_water,
                        const struct numbers *numbers, struct err *err)
{
    struct sim *sim = holding->sim;
    const struct partition *partition = holding->partition;
    struct store_low_water stored = {.offset = -1};

    if (store_get_low_water(sim->process.store, numbers->stream,
                            partition->number, &stored, err) == STORE_FAILED) {
        return false;
    }
    if (stored.offset < low_water) {
        sim_fail(sim, "%s/%d: the store's low-water is %lld, told was %lld",
                 partition->name, (int)partition->number,
                 (long long)stored.offset, (long long)low_water);
    }
    return true;
}

/* Between two turns, so no transaction is open. */
static void check_low_water(struct holding *holding, int64_t low_water)
{
    struct sim *sim = holding->sim;
    struct err err = {ERR_NONE, ""};
    struct numbers numbers;
    bool ok = find_numbers(holding, &numbers, &err) &&
              store_begin(sim->process.store, &err);

    if (ok) {
        ok = check_store(holding, low_water, &numbers, &err) &&
             check_messages(holding, low_water, &numbers, &err);
        store_abort(sim->process.store);
    }
    if (!ok) {
        sim_fail(sim, "the store cannot be read: %s", err.text);
    }
}

/* --- commits -----------------------------------------------------------------
 */

static void plan_commit(struct holding *holding, int64_t in_ms);

/* Of a process that died it may be under way still. */
static bool may_commit(struct holding *holding)
{
    struct sim *sim = holding->sim;

    if (holding->stored <= holding->partition->committed) {
        return false;
    }
    if (holding->partition->holding == holding) {
        return true;
    }
    if (!holding->may_be_late || holding->partition->last != holding ||
        !sim->has[FEATURE_BAD_COMMITS] || !dice_permille(&sim->dice, 500)) {
        return false;
    }
    sim->sights.commits_late++;
    return true;
}

void offsets_commit(struct holding *holding)
{
    struct sim *sim = holding->sim;

    if (!may_commit(holding)) {
        return;
    }
    if (!sim->healed && sim->has[FEATURE_BAD_COMMITS] &&
        dice_permille(&sim->dice, 250)) {
        sim->sights.commits_lost++;
        sim_trace(sim, "%s/%d: a commit is lost", holding->partition->name,
                  (int)holding->partition->number);
        plan_commit(holding, COMMIT_EVERY_MS);
        return;
    }
    broker_commit(holding->partition, holding->stored, holding->process);
}

static void act_commit(struct sim *sim, void *who)
{
    struct holding *holding = who;

    (void)sim;
    holding->commits = false;
    offsets_commit(holding);
}

static void plan_commit(struct holding *holding, int64_t in_ms)
{
    if (!holding->commits) {
        holding->commits = true;
        agenda_plan(&holding->sim->agenda, holding->sim->now_ms + in_ms,
                    act_commit, holding);
    }
}

void offsets_store(struct holding *holding, int64_t low_water)
{
    if (low_water < holding->stored) {
        sim_fail(holding->sim, "%s: the low-water goes back, from %lld to %lld",
                 holding->partition->name, (long long)holding->stored,
                 (long long)low_water);
    } else if (low_water > holding->stored) {
        check_low_water(holding, low_water);
        holding->stored = low_water;
    }
}

static void act_store(struct sim *sim, void *who)
{
    struct holding *holding = who;

    holding->stores = false;
    if (!holding_is_alive(holding) || (holding->state != HOLDING_OPEN &&
                                       holding->state != HOLDING_DRAINING)) {
        return;
    }
    offsets_store(holding, atomic_load(&holding->assignment.low_water));
    plan_commit(holding, dice_between(&sim->dice, 0, COMMIT_EVERY_MS));
}

void offsets_follow(struct holding *holding)
{
    if (!holding->stores) {
        holding->stores = true;
        agenda_plan(&holding->sim->agenda, holding->sim->now_ms, act_store,
                    holding);
    }
}
