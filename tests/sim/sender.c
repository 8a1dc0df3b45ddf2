/* SPDX-License-Identifier: MIT */
/* Senders as providers are: what is not answered with 2xx in time is sent
 * again, what was answered is sent again now and then, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/envelope.h"
#include "sim/sim.h"

static const char *const tenants[] = {"", "t1", "t2"};

struct ledger_name event_name(const struct sim *sim, const struct event *event,
                              size_t route)
{
    return (struct ledger_name){
        .route = slice_of(sim->routes[route].name),
        .tenant = slice_of(event->tenant),
        .id = slice_of(event->id),
    };
}

struct event *sender_find(struct sim *sim, size_t route, struct slice tenant,
                          struct slice id)
{
    uint64_t n;
    struct event *event;

    if (id.len < 2 || !text_u64(slice_from(id, 1), &n) || n >= sim->events.n) {
        return NULL;
    }
    event = sim->events.at[n];
    return (event->route == route || event->also == route) &&
                   slice_eq(tenant, slice_of(event->tenant)) &&
                   slice_eq(id, slice_of(event->id))
               ? event
               : NULL;
}

/* --- content -----------------------------------------------------------------
 */

void sender_body(const struct event *event, unsigned version, struct buf *body)
{
    buf_printf(body, "%s version %u ", event->id, version);
    while (body->len < event->size) {
        buf_add_byte(body, 'x');
    }
}

void sender_hash(struct slice body, struct buf *hex)
{
    uint8_t digest[SHA256_SIZE];

    hash_sha256(body, digest);
    text_hex((struct slice){(const char *)digest, 8}, hex);
}

static void fill_envelope(struct try *try, struct slice body)
{
    const struct envelope envelope = {
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = try->event->sim->now_ms,
        .method = SLICE("POST"),
        .path = SLICE("/hook"),
        .body = body,
        .has_body = true,
    };

    envelope_encode(&envelope, &try->text);
}

void sender_fill(struct arrival *arrival, const struct event *event,
                 size_t route, struct slice body)
{
    uint8_t digest[SHA256_SIZE];

    hash_sha256(body, digest);
    arrival->route = route;
    arrival->tenant = slice_of(event->tenant);
    arrival->id = slice_of(event->id);
    arrival->order_key =
        event->sim->routes[route].ordered ? event->order_key : 0;
    arrival->fingerprint.version = 1;
    arrival->fingerprint.mode = FINGERPRINT_RAW;
    memcpy(arrival->fingerprint.digest, digest, FINGERPRINT_SIZE);
}

static void aim(struct try *try, size_t route, struct slice body)
{
    struct arrival *arrival = &try->arrivals[try->delivery.n_arrivals++];

    sender_fill(arrival, try->event, route, body);
    arrival->envelope = buf_slice(&try->text);
}

static void write_sent(struct try *try, size_t i, struct slice body)
{
    const struct arrival *arrival = &try->arrivals[i];
    struct sim *sim = try->event->sim;
    struct buf hash = BUF_INIT, order = BUF_INIT;
    struct ledger_sent line = {
        .t_ms = sim->now_ms,
        .try = try->numbers[i] = ++sim->last_try,
        .event = event_name(sim, try->event, arrival->route),
        .valid = true,
    };

    sender_hash(body, &hash);
    if (arrival->order_key != 0) {
        buf_printf(&order, "k%u", (unsigned)arrival->order_key);
    }
    line.hash = buf_slice(&hash);
    line.order = buf_slice(&order);
    ledger_sent(&sim->ledger, &line);
    buf_free(&hash);
    buf_free(&order);
}

/* --- tries -------------------------------------------------------------------
 */

static void try_again(struct event *event, int64_t in_ms);

static void answered(struct delivery *delivery);

unsigned sender_draw_version(struct event *event)
{
    struct sim *sim = event->sim;

    if (!sim->healed && sim->has[FEATURE_DRIFT] &&
        dice_permille(&sim->dice, 150)) {
        return ++event->versions;
    }
    return 0;
}

static struct try *make_try(struct event *event)
{
    struct sim *sim = event->sim;
    struct try *try = list_add(&sim->tries, sizeof *try);
    struct buf body = BUF_INIT;

    try->event = event;
    try->delivery.arrivals = try->arrivals;
    try->delivery.answer = answered;
    sender_body(event, sender_draw_version(event), &body);
    fill_envelope(try, buf_slice(&body));
    aim(try, event->route, buf_slice(&body));
    if (event->also != SIZE_MAX) {
        aim(try, event->also, buf_slice(&body));
    }
    for (size_t i = 0; i < try->delivery.n_arrivals; i++) {
        write_sent(try, i, buf_slice(&body));
    }
    try->delivery.item.cost_bytes = try->text.len;
    buf_free(&body);
    return try;
}

static void hang_up(struct sim *sim, void *who)
{
    struct try *try = who;

    if (!try->over) {
        sim_trace(sim, "the sender of %s hangs up", try->event->id);
        try->over = true;
        try->event->trying = false;
        try_again(try->event, dice_skewed(&sim->dice, 1000, 2 * MINUTE_MS));
    }
}

static void respond(struct try *try, int status)
{
    struct event *event = try->event;
    struct sim *sim = event->sim;

    try->over = true;
    event->trying = false;
    sim_trace(sim, "%s is answered %d", event->id, status);
    for (size_t i = 0; i < try->delivery.n_arrivals; i++) {
        bool known = try->arrivals[i].answer == ANSWER_DUPLICATE;
        const struct ledger_resp line = {
            .t_ms = sim->now_ms,
            .try = try->numbers[i],
            /* One answer for two events: each has its part in it. */
            .status = status == 202 && known ? 200 : status,
            .retry_after_s = status == 503 ? try->delivery.retry_after_s : -1,
        };

        ledger_resp(&sim->ledger, &line);
    }
}

static void act_try(struct sim *sim, void *who)
{
    struct event *event = who;
    struct process *process = &sim->process;
    struct try *try;

    if (!event->waits || event->trying) {
        return;
    }
    if (sim->now_ms >= event->give_up_ms) {
        event->waits = false;
        return;
    }
    if (!process->up || process->stopping) {
        try_again(event, dice_skewed(&sim->dice, 500, MINUTE_MS));
        return;
    }
    try = make_try(event);
    event->trying = true;
    sim_trace(sim, "%s is sent to %s", event->id,
              sim->routes[event->route].name);
    try->in_engine = engine_deliver(process->engine, &try->delivery);
    if (!try->in_engine) {
        sim->sights.sheds++;
        try->delivery.retry_after_s = 1;
        respond(try, 503);
        try_again(event, dice_skewed(&sim->dice, 500, 5000));
        return;
    }
    process_poke(sim);
    nemesis_tempt(sim, 10000);
    agenda_plan(&sim->agenda, sim->now_ms + dice_skewed(&sim->dice, 500, 15000),
                hang_up, try);
}

static void try_again(struct event *event, int64_t in_ms)
{
    struct sim *sim = event->sim;

    if (sim->healed && in_ms > 5000) {
        in_ms = 5000;
    }
    agenda_plan(&sim->agenda, sim->now_ms + in_ms, act_try, event);
}

static void act_repeat(struct sim *sim, void *who)
{
    struct event *event = who;

    if (!sim->healed && !event->waits) {
        event->waits = true;
        act_try(sim, event);
    }
}

static void taken(struct event *event)
{
    struct sim *sim = event->sim;
    int64_t left_ms = event->give_up_ms - sim->now_ms;

    event->acked = true;
    event->known = true;
    event->waits = false;
    if (sim->has[FEATURE_REPEATS] && left_ms > 0 &&
        dice_permille(&sim->dice, 350)) {
        agenda_plan(&sim->agenda,
                    sim->now_ms + dice_skewed(&sim->dice, 0, left_ms),
                    act_repeat, event);
    }
}

static void answered(struct delivery *delivery)
{
    struct try *try = (struct try *)delivery;
    struct event *event = try->event;
    struct sim *sim = event->sim;

    CHECK(try->in_engine);
    if (!process_lets_out(sim)) {
        return;
    }
    try->in_engine = false;
    if (try->over) {
        return;
    }
    switch (delivery->result) {
    case DELIVERY_ACCEPTED:
    case DELIVERY_DUPLICATE:
        respond(try, delivery->result == DELIVERY_ACCEPTED ? 202 : 200);
        taken(event);
        return;
    case DELIVERY_MISMATCH:
        respond(try, 422);
        event->waits = false;
        return;
    case DELIVERY_NO_ROOM:
    case DELIVERY_STOPPED_ROUTE:
        respond(try, 503);
        if (sim->healed && delivery->result == DELIVERY_STOPPED_ROUTE) {
            event->waits = false; /* until a person makes room */
            return;
        }
        try_again(event, delivery->retry_after_s * 1000 +
                             dice_between(&sim->dice, 0, 1000));
        return;
    case DELIVERY_FENCED:
        sim_fail(sim, "%s is fenced, and came by no partition", event->id);
        return;
    }
    UNREACHABLE("every answer is listed");
}

void sender_process_died(struct sim *sim)
{
    for (size_t i = 0; i < sim->tries.n; i++) {
        struct try *try = sim->tries.at[i];

        if (try->in_engine) {
            try->in_engine = false;
            hang_up(sim, try);
        }
    }
}

bool sender_may_be_renewed(const struct event *event)
{
    const struct sim *sim = event->sim;

    return event->known && event->topic != NULL &&
           sim->has[FEATURE_FORGETTING] &&
           sim->now_ms - event->first_try_ms >= sim->retention_ms;
}

void sender_see_renewed(struct event *event, size_t route)
{
    struct sim *sim = event->sim;
    unsigned *invoked = &event->invoked[event->route == route ? 0 : 1];
    const struct ledger_forgotten line = {
        .t_ms = sim->now_ms,
        .event = event_name(sim, event, route),
    };

    if (*invoked > 0 && sender_may_be_renewed(event)) {
        *invoked = 0;
        sim->sights.forgotten++;
        ledger_forgotten(&sim->ledger, &line);
    }
}

void sender_hurry(struct sim *sim)
{
    for (size_t i = 0; i < sim->events.n; i++) {
        struct event *event = sim->events.at[i];

        if (event->waits && !event->trying) {
            try_again(event, dice_between(&sim->dice, 0, 1000));
        }
    }
}

/* --- events ------------------------------------------------------------------
 */

void sender_begin(struct event *event)
{
    if (event->first_try_ms == 0) {
        event->first_try_ms = event->sim->now_ms;
        event->give_up_ms = event->sim->now_ms + event->sim->horizon_ms;
    }
}

static void begin(struct sim *sim, void *who)
{
    struct event *event = who;

    sender_begin(event);
    event->waits = true;
    act_try(sim, event);
}

static int64_t draw_time(struct sim *sim)
{
    int64_t at_ms = dice_between(&sim->dice, 0, sim->phase_ms * 9 / 10);

    /* Bursts: many at one of a few times. */
    if ((sim->has[FEATURE_BURSTS] || sim->has[FEATURE_CROWDS]) &&
        dice_permille(&sim->dice, 700)) {
        at_ms -= at_ms % (sim->phase_ms / 4);
    }
    return sim->now_ms + at_ms;
}

void sender_plan(struct sim *sim)
{
    struct dice *dice = &sim->dice;

    for (unsigned i = 0; i < sim->n_events; i++) {
        struct event *event = list_add(&sim->events, sizeof *event);

        event->sim = sim;
        (void)snprintf(event->id, sizeof event->id, "e%u", i);
        event->route = dice_below(dice, (unsigned)sim->n_routes);
        event->also = SIZE_MAX;
        if (sim->has[FEATURE_FAN_OUT] && dice_permille(dice, 300)) {
            event->also = (event->route + 1) % sim->n_routes;
        }
        event->tenant =
            tenants[sim->has[FEATURE_TENANTS] ? dice_below(dice, 3) : 0];
        event->order_key =
            dice_permille(dice, 700) ? dice_below(dice, sim->n_keys) + 1 : 0;
        event->size = (unsigned)dice_skewed(
            dice, 20, sim->has[FEATURE_SMALL_STORE] ? 20000 : 1000);
        if (sim->has[FEATURE_KAFKA] && dice_permille(dice, 650)) {
            event->topic =
                &sim->topics[dice_below(dice, (unsigned)sim->n_topics)];
            event->route = event->topic->route;
            event->also = event->topic->also;
            event->by_http =
                !sim->has[FEATURE_FORGETTING] && dice_permille(dice, 150);
            broker_send(sim, event, draw_time(sim));
        }
        if (event->topic == NULL || event->by_http) {
            agenda_plan(&sim->agenda, draw_time(sim), begin, event);
        }
    }
}
