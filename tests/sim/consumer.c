/* SPDX-License-Identifier: MIT */
/*
 * The source, as src/source/kafka.h has it: one delivery of a partition at a
 * time, as many messages as the engine has room for, and what it refuses is
 * offered again before what lies behind it. An assignment ends drained and
 * fenced, or fenced alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/envelope.h"
#include "sim/sim.h"

enum { PATIENCE_MS = 3000, BATCH_MAX = 8 };

bool holding_is_alive(const struct holding *holding)
{
    const struct process *process = &holding->sim->process;

    return process->up && !process->dead && process->number == holding->process;
}

static struct message *message_at(const struct holding *holding, size_t i)
{
    return holding->partition->messages.at[i];
}

static void say(const struct holding *holding, const char *what)
{
    sim_trace(holding->sim, "%s/%d: %s", holding->partition->name,
              (int)holding->partition->number, what);
}

/* --- deliveries --------------------------------------------------------------
 */

static void wake(struct assignment *assignment)
{
    struct holding *holding = (struct holding *)assignment;
    struct sim *sim = holding->sim;

    if (!process_lets_out(sim)) {
        return;
    }
    offsets_follow(holding);
    consumer_fetch(holding, 0);
}

static void put_envelope(const struct holding *holding,
                         const struct message *message, struct slice body,
                         struct buf *out)
{
    const struct envelope envelope = {
        .kind = ENVELOPE_KAFKA,
        .received_wall_ms = holding->sim->now_ms,
        .body = body,
        .has_body = true,
        .topic = slice_of(holding->partition->topic->name),
        .partition = holding->partition->number,
        .offset = message->offset,
        .timestamp_ms = message->wall_ms,
    };

    envelope_encode(&envelope, out);
}

static void add_arrival(struct package *package, const struct message *message,
                        size_t route, struct slice body)
{
    struct delivery *delivery = &package->delivery;
    struct arrival *arrival = &package->arrivals[delivery->n_arrivals++];

    *arrival = (struct arrival){.offset = message->offset,
                                .event_wall_ms = message->wall_ms};
    sender_fill(arrival, message->event, route, body);
}

/* The text may move while it grows: slices of it come last. */
static void add_message(struct package *package, const struct message *message,
                        size_t *ends)
{
    const struct event *event = message->event;
    size_t first = package->delivery.n_arrivals;
    struct buf body = BUF_INIT;

    sender_body(event, message->version, &body);
    put_envelope(package->holding, message, buf_slice(&body), &package->text);
    add_arrival(package, message, event->route, buf_slice(&body));
    if (event->also != SIZE_MAX) {
        add_arrival(package, message, event->also, buf_slice(&body));
    }
    while (first < package->delivery.n_arrivals) {
        ends[first++] = package->text.len;
    }
    buf_free(&body);
}

static void set_envelopes(struct package *package, const size_t *ends)
{
    size_t from = 0;

    for (size_t i = 0; i < package->delivery.n_arrivals; i++) {
        if (i > 0 && ends[i] != ends[i - 1]) {
            from = ends[i - 1];
        }
        package->arrivals[i].envelope =
            (struct slice){package->text.data + from, ends[i] - from};
    }
}

static void answered(struct delivery *delivery);

static struct package *make_package(struct holding *holding, size_t n)
{
    struct package *package =
        list_add(&holding->sim->packages, sizeof *package);
    size_t ends[2 * BATCH_MAX];

    CHECK(n <= BATCH_MAX);
    package->holding = holding;
    package->arrivals = mem_new(2 * n, sizeof *package->arrivals);
    package->delivery.arrivals = package->arrivals;
    package->delivery.assignment = &holding->assignment;
    package->delivery.answer = answered;
    for (size_t i = 0; i < n; i++) {
        struct message *message = message_at(holding, holding->next++);

        message->brought = holding;
        add_message(package, message, ends);
    }
    set_envelopes(package, ends);
    package->delivery.item.cost_bytes = package->text.len;
    return package;
}

static size_t room_for(const struct holding *holding)
{
    const struct engine *engine = holding->sim->process.engine;
    const struct topic *topic = holding->partition->topic;
    size_t room = engine_room(engine, topic->route);

    if (topic->also != SIZE_MAX && engine_room(engine, topic->also) < room) {
        room = engine_room(engine, topic->also);
    }
    return room;
}

static void take(struct holding *holding)
{
    const struct partition *partition = holding->partition;
    size_t n = (size_t)dice_between(&holding->sim->dice, 1, BATCH_MAX);
    size_t room = room_for(holding), left;

    if (holding->next < partition->first) {
        holding->next = partition->first;
    }
    if (holding->state > HOLDING_OPEN && holding->next > partition->first) {
        holding->next--; /* where there is no other, the last one again */
    }
    left = partition->messages.n - holding->next;
    n = n < room ? n : room;
    n = n < left ? n : left;
    if (n > 0) {
        holding->package = make_package(holding, n);
    }
}

static void act_revoke(struct sim *sim, void *who)
{
    struct holding *holding = who;

    if (!sim->healed) {
        consumer_take_away(holding, true);
    }
}

/* A rebalance is worth most while much is under way. */
static void tempt_rebalance(struct holding *holding)
{
    struct sim *sim = holding->sim;

    if (!sim->healed && sim->has[FEATURE_REBALANCES] &&
        dice_permille(&sim->dice, 200)) {
        agenda_plan(&sim->agenda, sim->now_ms + dice_skewed(&sim->dice, 0, 500),
                    act_revoke, holding);
    }
}

static void offer(struct holding *holding)
{
    struct sim *sim = holding->sim;
    struct package *package = holding->package;

    package->late = holding->state > HOLDING_OPEN;
    package->in_engine =
        engine_deliver(sim->process.engine, &package->delivery);
    if (!package->in_engine) {
        sim->sights.sheds++;
        consumer_fetch(holding, dice_skewed(&sim->dice, 100, 5000));
        return;
    }
    process_poke(sim);
    nemesis_tempt(sim, 10000);
    tempt_rebalance(holding);
}

/* One that was under way when the partition was taken away may come behind
 * the order that says so. */
static bool may_take(const struct holding *holding)
{
    if (holding->sim->process.stopping) {
        return false;
    }
    return holding->state == HOLDING_OPEN ||
           (holding->races && holding->state > HOLDING_OPEN &&
            holding->state < HOLDING_OVER);
}

static void act_fetch(struct sim *sim, void *who)
{
    struct holding *holding = who;

    (void)sim;
    holding->fetches = false;
    if (!holding_is_alive(holding) || !may_take(holding)) {
        return;
    }
    if (holding->package == NULL) {
        take(holding);
    }
    if (holding->package != NULL && !holding->package->in_engine) {
        offer(holding);
    }
}

void consumer_fetch(struct holding *holding, int64_t in_ms)
{
    if (!holding->fetches) {
        holding->fetches = true;
        agenda_plan(&holding->sim->agenda, holding->sim->now_ms + in_ms,
                    act_fetch, holding);
    }
}

static void all_answered(struct package *package)
{
    const struct delivery *delivery = &package->delivery;
    struct holding *holding = package->holding;

    for (size_t i = 0; i < delivery->n_arrivals; i++) {
        const struct arrival *arrival = &delivery->arrivals[i];
        struct event *event = sender_find(holding->sim, arrival->route,
                                          arrival->tenant, arrival->id);

        event->known = true;
        if (arrival->answer == ANSWER_DEAD) {
            sender_see_renewed(event, arrival->route);
        }
    }
    holding->package = NULL;
    consumer_fetch(holding, 0);
}

static void answered(struct delivery *delivery)
{
    struct package *package = (struct package *)delivery;
    struct holding *holding = package->holding;
    struct sim *sim = holding->sim;

    CHECK(package->in_engine);
    if (!process_lets_out(sim)) {
        return;
    }
    package->in_engine = false;
    if (package->late && (delivery->result == DELIVERY_ACCEPTED ||
                          delivery->result == DELIVERY_DUPLICATE)) {
        sim_fail(sim, "%s: a delivery of an assignment that ended is taken",
                 holding->partition->name);
    }
    switch (delivery->result) {
    case DELIVERY_ACCEPTED:
    case DELIVERY_DUPLICATE:
    case DELIVERY_MISMATCH:
        all_answered(package);
        return;
    case DELIVERY_NO_ROOM:
    case DELIVERY_STOPPED_ROUTE:
        sim->sights.offered_again++;
        consumer_fetch(holding, delivery->retry_after_s * 1000);
        return;
    case DELIVERY_FENCED:
        sim->sights.fenced++;
        if (holding->state == HOLDING_OPEN ||
            holding->state == HOLDING_OPENING) {
            sim_fail(sim,
                     "%s: a delivery is fenced, and its assignment is open",
                     holding->partition->name);
        }
        holding->package = NULL;
        return;
    }
    UNREACHABLE("every answer is listed");
}

/* --- assignments -------------------------------------------------------------
 */

static void write_owner(const struct holding *holding,
                        void (*write)(struct ledger *,
                                      const struct ledger_owner *),
                        int64_t committed)
{
    struct sim *sim = holding->sim;
    const struct ledger_owner line = {
        .t_ms = sim->now_ms,
        .process = holding->process,
        .place = broker_place(holding->partition),
        .committed = committed,
    };

    write(&sim->ledger, &line);
}

static void give_order(struct holding *holding, struct assignment_order *order,
                       enum assignment_order_kind kind)
{
    order->kind = kind;
    order->assignment = &holding->assignment;
    engine_assign(holding->sim->process.engine, order);
    process_poke(holding->sim);
}

/* Where the group has no offset, or one that is not in the log, the log is
 * read from its start. */
static void find_start(struct holding *holding)
{
    const struct partition *partition = holding->partition;
    int64_t from = partition->committed;

    if (from < partition->start || from > partition->end) {
        from = partition->start;
    }
    holding->next = partition->first;
    while (holding->next < partition->messages.n &&
           message_at(holding, holding->next)->offset < from) {
        holding->next++;
    }
    holding->checked = holding->next;
}

static void opened(struct assignment_order *order)
{
    struct holding *holding = (struct holding *)order->assignment;
    struct sim *sim = holding->sim;

    if (!process_lets_out(sim)) {
        return;
    }
    sim_trace(sim, "%s/%d: open, low-water %lld, %zu moved, %zu parked",
              holding->partition->name, (int)holding->partition->number,
              (long long)order->low_water, order->moved, order->parked);
    if (order->low_water > order->committed) {
        sim->sights.store_ahead++;
    }
    if (holding->state == HOLDING_OPENING) {
        holding->state = HOLDING_OPEN;
        consumer_fetch(holding, 0);
    }
}

static void fenced(struct assignment_order *order);

static void fence(struct holding *holding)
{
    if (holding->state < HOLDING_FENCING) {
        holding->state = HOLDING_FENCING;
        give_order(holding, &holding->fence, ASSIGNMENT_FENCE);
    }
}

static void drained(struct assignment_order *order)
{
    struct holding *holding = (struct holding *)order->assignment;

    if (process_lets_out(holding->sim)) {
        say(holding, "drained");
        fence(holding);
    }
}

static void act_end(struct sim *sim, void *who)
{
    struct holding *holding = who;
    struct partition *partition = holding->partition;

    if (!holding_is_alive(holding)) {
        return;
    }
    holding->state = HOLDING_OVER;
    if (holding->in_order) {
        if (holding->fence.low_water >= 0) {
            offsets_store(holding, holding->fence.low_water);
        }
        offsets_commit(holding);
        write_owner(holding, ledger_revoke, -1);
        partition->holding = NULL;
    }
    process_poke(sim);
    broker_freed(partition);
}

static void fenced(struct assignment_order *order)
{
    struct holding *holding = (struct holding *)order->assignment;
    struct sim *sim = holding->sim;

    if (process_lets_out(sim)) {
        say(holding, "fenced");
        agenda_plan(&sim->agenda, sim->now_ms, act_end, holding);
    }
}

void consumer_open(struct partition *partition)
{
    struct sim *sim = partition->sim;
    struct holding *holding = list_add(&sim->holdings, sizeof *holding);

    holding->sim = sim;
    holding->partition = partition;
    holding->process = sim->process.number;
    holding->stored = -1;
    holding->assignment.stream = partition->topic->index;
    holding->assignment.number = partition->number;
    holding->assignment.epoch = ++sim->epochs;
    holding->assignment.wake = wake;
    holding->assignment.low_water = -1;
    holding->topic_id[0] = (uint8_t)(partition->creation + 1);
    holding->topic_id[1] = (uint8_t)partition->topic->index;
    holding->open.committed = partition->committed;
    holding->open.log_start = partition->start;
    holding->open.log_end = partition->end;
    holding->open.topic_id =
        partition->topic->tells_id ? holding->topic_id : NULL;
    holding->open.done = opened;
    holding->drain.done = drained;
    holding->fence.done = fenced;
    partition->holding = partition->last = holding;
    find_start(holding);
    write_owner(holding, ledger_assign, partition->committed);
    say(holding, "assigned");
    give_order(holding, &holding->open, ASSIGNMENT_OPEN);
    nemesis_tempt(sim, 2000);
}

static bool is_busy(const struct holding *holding)
{
    return atomic_load(&holding->assignment.unsettled) > 0;
}

static void act_patience(struct sim *sim, void *who)
{
    struct holding *holding = who;

    if (holding_is_alive(holding) && holding->state == HOLDING_DRAINING) {
        sim->sights.revoked_impatiently++;
        say(holding, "no more patience");
        fence(holding);
    }
}

void consumer_take_away(struct holding *holding, bool in_order)
{
    struct sim *sim = holding->sim;
    int64_t patience_ms;

    if (holding->state >= HOLDING_DRAINING || !holding_is_alive(holding)) {
        return;
    }
    say(holding, in_order ? "revoked" : "lost");
    holding->in_order = in_order;
    holding->races = dice_permille(&sim->dice, 300);
    if (holding->races) {
        consumer_fetch(holding, 0);
    }
    nemesis_tempt(sim, PATIENCE_MS);
    if (!in_order) {
        sim->sights.lost_busy += is_busy(holding) ? 1 : 0;
        write_owner(holding, ledger_lost, -1);
        holding->partition->holding = NULL;
        fence(holding);
        broker_freed(holding->partition);
        return;
    }
    sim->sights.revoked_busy += is_busy(holding) ? 1 : 0;
    holding->state = HOLDING_DRAINING;
    give_order(holding, &holding->drain, ASSIGNMENT_DRAIN);
    patience_ms = dice_permille(&sim->dice, 500)
                      ? PATIENCE_MS
                      : dice_skewed(&sim->dice, 0, PATIENCE_MS);
    agenda_plan(&sim->agenda, sim->now_ms + patience_ms, act_patience, holding);
}

void consumer_stop(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_partitions; i++) {
        if (sim->partitions[i].holding != NULL) {
            consumer_take_away(sim->partitions[i].holding, true);
        }
    }
}

bool consumer_is_over(const struct sim *sim)
{
    for (size_t i = 0; i < sim->n_partitions; i++) {
        const struct holding *last = sim->partitions[i].last;

        if (last != NULL && last->state != HOLDING_OVER) {
            return false;
        }
    }
    return true;
}

void consumer_process_died(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_partitions; i++) {
        struct partition *partition = &sim->partitions[i];

        if (partition->last != NULL && partition->last->state != HOLDING_OVER) {
            partition->last->state = HOLDING_OVER;
            partition->last->assignment.partition = NULL;
            partition->last->may_be_late =
                partition->holding == partition->last;
            partition->holding = NULL;
            broker_freed(partition);
        }
    }
}
