/* SPDX-License-Identifier: MIT */
/* Logs that grow, lose their beginning, their end or all; a group whose
 * offsets people set; and another worker, with a store of its own, who has
 * partitions meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

struct ledger_place broker_place(const struct partition *partition)
{
    return (struct ledger_place){slice_of(partition->name), partition->number};
}

static const struct message *message_at(const struct partition *partition,
                                        size_t i)
{
    return partition->messages.at[i];
}

/* --- messages ----------------------------------------------------------------
 */

static void write_message(const struct partition *partition,
                          const struct message *message, size_t route)
{
    struct sim *sim = partition->sim;
    const struct event *event = message->event;
    struct buf body = BUF_INIT, hash = BUF_INIT, order = BUF_INIT;
    struct ledger_msg line = {
        .t_ms = sim->now_ms,
        .place = broker_place(partition),
        .offset = message->offset,
        .event = event_name(sim, event, route),
    };

    sender_body(event, message->version, &body);
    sender_hash(buf_slice(&body), &hash);
    if (sim->routes[route].ordered && event->order_key != 0) {
        buf_printf(&order, "k%u", (unsigned)event->order_key);
    }
    line.hash = buf_slice(&hash);
    line.order = buf_slice(&order);
    ledger_msg(&sim->ledger, &line);
    buf_free(&body);
    buf_free(&hash);
    buf_free(&order);
}

static void write_messages(const struct partition *partition,
                           const struct message *message)
{
    const struct event *event = message->event;

    write_message(partition, message, event->route);
    if (event->also != SIZE_MAX) {
        write_message(partition, message, event->also);
    }
}

/* One key, one partition; without a key, any. */
static struct partition *draw_partition(struct sim *sim,
                                        const struct event *event)
{
    unsigned number = event->order_key != 0
                          ? (unsigned)event->order_key
                          : dice_below(&sim->dice, SIM_PARTITIONS_MAX);

    number %= event->topic->n_partitions;
    for (size_t i = 0; i < sim->n_partitions; i++) {
        struct partition *partition = &sim->partitions[i];

        if (partition->topic == event->topic &&
            partition->number == (int32_t)number) {
            return partition;
        }
    }
    UNREACHABLE("every topic has its partitions");
}

static void act_send(struct sim *sim, void *who)
{
    struct event *event = who;
    struct partition *partition = draw_partition(sim, event);
    struct message *message;
    int64_t left_ms;

    if (sim->healed ||
        (event->give_up_ms != 0 && sim->now_ms >= event->give_up_ms)) {
        return;
    }
    sender_begin(event);
    event->messages++;
    message = list_add(&partition->messages, sizeof *message);
    *message = (struct message){
        .event = event,
        .version = sender_draw_version(event),
        .offset = partition->end,
        .wall_ms = sim->clock.wall_ms(sim->clock.self),
    };
    /* Control records and compaction leave gaps. */
    partition->end +=
        1 +
        (dice_permille(&sim->dice, 200) ? dice_between(&sim->dice, 1, 4) : 0);
    write_messages(partition, message);
    sim_trace(sim, "%s is at %s/%d/%lld", event->id, partition->name,
              (int)partition->number, (long long)message->offset);
    if (partition->holding != NULL) {
        consumer_fetch(partition->holding, 0);
    }
    /* Of an event with one message, what is not remembered any more is older
     * than the memory, however late its message is read again. */
    left_ms = event->give_up_ms - sim->now_ms;
    if (left_ms > 0 && sim->has[FEATURE_REPEATS] &&
        !sim->has[FEATURE_FORGETTING] && dice_permille(&sim->dice, 350)) {
        agenda_plan(&sim->agenda,
                    sim->now_ms + dice_skewed(&sim->dice, 0, left_ms), act_send,
                    event);
    }
}

void broker_send(struct sim *sim, struct event *event, int64_t at_ms)
{
    agenda_plan(&sim->agenda, at_ms, act_send, event);
}

/* --- offsets -----------------------------------------------------------------
 */

void broker_commit(struct partition *partition, int64_t offset,
                   unsigned process)
{
    struct sim *sim = partition->sim;
    const struct ledger_commit line = {
        .t_ms = sim->now_ms,
        .place = broker_place(partition),
        .offset = offset,
        .process = process,
    };

    partition->committed = offset;
    ledger_commit(&sim->ledger, &line);
    sim_trace(sim, "%s/%d: committed %lld", partition->name,
              (int)partition->number, (long long)offset);
}

static void reset_to(struct partition *partition, int64_t offset)
{
    struct sim *sim = partition->sim;
    const struct ledger_commit line = {
        .t_ms = sim->now_ms,
        .place = broker_place(partition),
        .offset = offset < 0 ? 0 : offset,
    };

    partition->committed = offset;
    ledger_reset(&sim->ledger, &line);
    sim_trace(sim, "%s/%d: reset to %lld", partition->name,
              (int)partition->number, (long long)offset);
}

static void skip(struct partition *partition, enum ledger_skip_kind kind,
                 int64_t from, int64_t to)
{
    struct sim *sim = partition->sim;
    const struct ledger_skip line = {
        .t_ms = sim->now_ms,
        .kind = kind,
        .place = broker_place(partition),
        .from = from,
        .to = to,
    };

    ledger_skip(&sim->ledger, &line);
    sim_trace(sim, "%s/%d: %lld to %lld are skipped, %d", partition->name,
              (int)partition->number, (long long)from, (long long)to,
              (int)kind);
}

/* --- what happens to a partition ---------------------------------------------
 */

static void set_back(struct partition *partition)
{
    struct sim *sim = partition->sim;

    if (partition->committed <= partition->start) {
        return;
    }
    sim->sights.rewound++;
    reset_to(partition, dice_permille(&sim->dice, 500)
                            ? partition->start
                            : dice_between(&sim->dice, partition->start,
                                           partition->committed - 1));
}

static void set_forward(struct partition *partition)
{
    struct sim *sim = partition->sim;
    int64_t from = partition->committed < 0 ? 0 : partition->committed;

    if (from >= partition->end) {
        return;
    }
    sim->sights.reset_forward++;
    skip(partition, LEDGER_SKIP_RESET, from, partition->end);
    reset_to(partition, dice_between(&sim->dice, from + 1, partition->end));
}

/* Another worker settles some, and commits. */
static void handle_elsewhere(struct partition *partition)
{
    struct sim *sim = partition->sim;
    int64_t from = partition->committed < partition->start
                       ? partition->start
                       : partition->committed;
    int64_t to;

    if (from >= partition->end) {
        return;
    }
    to = dice_between(&sim->dice, from, partition->end);
    sim->sights.elsewhere++;
    skip(partition, LEDGER_SKIP_MOVED, from, to);
    broker_commit(partition, to, 0);
}

static void lose_beginning(struct partition *partition)
{
    struct sim *sim = partition->sim;
    int64_t from = partition->start;

    partition->start = dice_between(&sim->dice, from, partition->end);
    if (partition->start == from) {
        return;
    }
    sim->sights.beginning_lost++;
    skip(partition, LEDGER_SKIP_TRUNCATED, from, partition->start);
    while (partition->first < partition->messages.n &&
           message_at(partition, partition->first)->offset < partition->start) {
        partition->first++;
    }
}

/* What is left is another log for the ledger: offsets come again. */
static void rename_log(struct partition *partition)
{
    (void)snprintf(partition->name, sizeof partition->name, "%s~%u",
                   partition->topic->name, ++partition->renames);
    if (partition->last != NULL) {
        partition->last->may_be_late = false; /* the broker would refuse it */
    }
    for (size_t i = partition->first; i < partition->messages.n; i++) {
        write_messages(partition, message_at(partition, i));
    }
}

/* An unclean election: the log ends earlier, and goes on with others. */
static void lose_end(struct partition *partition)
{
    struct sim *sim = partition->sim;
    struct list *messages = &partition->messages;
    int64_t end = dice_between(&sim->dice, partition->start, partition->end);

    if (end == partition->end) {
        return;
    }
    sim->sights.end_lost++;
    skip(partition, LEDGER_SKIP_TRUNCATED, 0, partition->end);
    while (messages->n > partition->first &&
           message_at(partition, messages->n - 1)->offset >= end) {
        free(messages->at[--messages->n]);
    }
    partition->end = end;
    rename_log(partition);
    if (partition->committed >= 0) {
        reset_to(partition,
                 partition->committed < end ? partition->committed : end);
        skip(partition, LEDGER_SKIP_TRUNCATED, 0, partition->committed);
    }
}

static void create_anew(struct partition *partition)
{
    struct sim *sim = partition->sim;

    sim->sights.created_anew++;
    skip(partition, LEDGER_SKIP_TRUNCATED, 0, partition->end);
    partition->creation++;
    partition->first = partition->messages.n;
    partition->start = partition->end = 0;
    partition->committed = -1;
    rename_log(partition);
}

static void act_give(struct sim *sim, void *who);

static void plan_to_give(struct partition *partition, int64_t most_ms)
{
    struct sim *sim = partition->sim;

    if (!partition->will_be_given) {
        partition->will_be_given = true;
        agenda_plan(&sim->agenda,
                    sim->now_ms + dice_skewed(&sim->dice, 0, most_ms), act_give,
                    partition);
    }
}

static void befall(struct partition *partition)
{
    struct sim *sim = partition->sim;
    struct dice *dice = &sim->dice;

    if (sim->has[FEATURE_ELSEWHERE] && dice_permille(dice, 400)) {
        handle_elsewhere(partition);
    }
    if (sim->has[FEATURE_TRUNCATION] && dice_permille(dice, 250)) {
        if (dice_permille(dice, 500)) {
            lose_beginning(partition);
        } else if (dice_permille(dice, 500)) {
            lose_end(partition);
        } else {
            create_anew(partition);
        }
    }
    if (sim->has[FEATURE_RESETS] && dice_permille(dice, 300)) {
        if (dice_permille(dice, 700)) {
            set_back(partition);
        } else {
            set_forward(partition);
        }
    }
}

static void act_befall(struct sim *sim, void *who)
{
    struct partition *partition = who;

    if (sim->healed) {
        return;
    }
    if (partition->holding == NULL) {
        befall(partition);
    } else if (sim->has[FEATURE_TRUNCATION] && dice_permille(&sim->dice, 200)) {
        lose_beginning(partition);
    }
}

void broker_freed(struct partition *partition)
{
    struct sim *sim = partition->sim;

    if (sim->closing) {
        return;
    }
    agenda_plan(&sim->agenda, sim->now_ms + dice_skewed(&sim->dice, 0, 20000),
                act_befall, partition);
    plan_to_give(partition, sim->healed ? 1000 : MINUTE_MS);
}

static void act_give(struct sim *sim, void *who)
{
    struct partition *partition = who;
    const struct process *process = &sim->process;

    partition->will_be_given = false;
    if (partition->holding != NULL || !process->up || process->stopping) {
        return; /* the next process comes for it */
    }
    if (partition->last != NULL && partition->last->state != HOLDING_OVER) {
        plan_to_give(partition, 1000);
        return;
    }
    if (!sim->healed && sim->has[FEATURE_REBALANCES] &&
        dice_permille(&sim->dice, 200)) {
        plan_to_give(partition, 10 * MINUTE_MS);
        return;
    }
    consumer_open(partition);
}

void broker_give_out(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_partitions; i++) {
        struct partition *partition = &sim->partitions[i];

        partition->will_be_given &= !sim->healed; /* it may be long till then */
        plan_to_give(partition, 5000);
    }
}

static bool has_message(const struct partition *partition,
                        const struct event *event)
{
    for (size_t i = partition->first; i < partition->messages.n; i++) {
        if (message_at(partition, i)->event == event) {
            return true;
        }
    }
    return false;
}

static enum whereabouts place_of(const struct holding *holding)
{
    if (holding == NULL || holding->state > HOLDING_DRAINING) {
        return ELSEWHERE;
    }
    return holding->state == HOLDING_DRAINING ? LEAVING : HERE;
}

enum whereabouts broker_find(const struct sim *sim, const struct event *event)
{
    for (size_t i = 0; event->messages == 1 && i < sim->n_partitions; i++) {
        const struct partition *partition = &sim->partitions[i];

        if (partition->topic == event->topic && has_message(partition, event)) {
            return place_of(partition->holding);
        }
    }
    return SOMEWHERE;
}

bool broker_rests(const struct sim *sim)
{
    for (size_t i = 0; i < sim->n_partitions; i++) {
        const struct partition *partition = &sim->partitions[i];
        size_t n = partition->messages.n;

        if (partition->holding == NULL ||
            partition->holding->state != HOLDING_OPEN) {
            return false;
        }
        if (n > partition->first &&
            message_at(partition, n - 1)->offset >= partition->committed) {
            return false;
        }
    }
    return true;
}

/* --- rebalances --------------------------------------------------------------
 */

static void act_rebalance(struct sim *sim, void *who)
{
    (void)who;
    if (sim->healed) {
        return;
    }
    agenda_plan(&sim->agenda,
                sim->now_ms + dice_skewed(&sim->dice, 0, sim->phase_ms / 10),
                act_rebalance, NULL);
    for (size_t i = 0; i < sim->n_partitions; i++) {
        struct holding *holding = sim->partitions[i].holding;

        if (holding != NULL && dice_permille(&sim->dice, 500)) {
            consumer_take_away(holding, dice_permille(&sim->dice, 700));
        }
    }
}

void broker_plan(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_topics; i++) {
        struct topic *topic = &sim->topics[i];

        for (unsigned j = 0; j < topic->n_partitions; j++) {
            struct partition *partition = &sim->partitions[sim->n_partitions++];

            *partition = (struct partition){
                .sim = sim,
                .topic = topic,
                .number = (int32_t)j,
                .committed = -1,
            };
            (void)snprintf(partition->name, sizeof partition->name, "%s",
                           topic->name);
        }
    }
    if (sim->has[FEATURE_KAFKA] && sim->has[FEATURE_REBALANCES]) {
        agenda_plan(&sim->agenda,
                    sim->now_ms +
                        dice_between(&sim->dice, 0, sim->phase_ms / 4),
                    act_rebalance, NULL);
    }
}

void broker_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->n_partitions; i++) {
        list_free(&sim->partitions[i].messages);
    }
}
