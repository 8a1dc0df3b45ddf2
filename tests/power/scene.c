/* SPDX-License-Identifier: MIT */
#include "power/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { RECENT = 250, TOUCHED_MAX = 32, LARGE_EVERY = 16, LARGE_SIZE = 7000 };
enum { KEYED_EVERY = 8, KEYS = 5, STEP_MAX_MS = 400 };

static struct {
    struct world *world;
    struct handler_ops handler; /* the world's, and what began is told */
    void (*start)(void *self, struct attempt *attempt);
    void (*tell)(const struct fact *fact);
    struct scene_progress *progress;
    uint32_t touched[TOUCHED_MAX];
    size_t n_touched;
    bool paused;
} scene;

/* --- events -----------------------------------------------------------------
 */

void scene_id(uint32_t event, char out[SCENE_ID_SIZE])
{
    CHECK(event < SCENE_EVENTS_MAX);
    (void)snprintf(out, SCENE_ID_SIZE, "e%05u", event);
}

static uint32_t number_of(struct slice id)
{
    char text[SCENE_ID_SIZE] = "";

    CHECK(id.len < SCENE_ID_SIZE);
    memcpy(text, id.data, id.len);
    return (uint32_t)strtoul(text + 1, NULL, 10);
}

size_t scene_route(uint32_t event)
{
    return event % WORLD_ROUTES;
}

static bool is_keyed(uint32_t event)
{
    return event % KEYED_EVERY < WORLD_ROUTES;
}

/* World sends "x" under an ordering key. */
const char *scene_body(uint32_t event)
{
    static char body[SCENE_BODY_MAX];
    int len;

    if (is_keyed(event)) {
        return "x";
    }
    len = snprintf(body, sizeof body, "the body of %u ", event);
    if (event % LARGE_EVERY == LARGE_EVERY - 1) {
        memset(body + len, 'a' + (int)(event % 26), LARGE_SIZE);
        body[len + LARGE_SIZE] = '\0';
    }
    return body;
}

/* --- what is told -----------------------------------------------------------
 */

static void tell(enum fact_kind kind, uint32_t event, uint32_t attempt)
{
    struct fact fact = {.kind = kind,
                        .event = event,
                        .attempt = attempt,
                        .ms = scene.world->ms};

    scene.tell(&fact);
}

static void answered(struct delivery *delivery)
{
    struct sent *sent = (struct sent *)delivery;

    sent->answered = true;
    if (delivery->result == DELIVERY_ACCEPTED) {
        tell(FACT_KNOWN, number_of(delivery->arrivals[0].id), 0);
    }
}

static void began(void *self, struct attempt *attempt)
{
    tell(FACT_BEGAN, number_of(attempt->id), attempt->number);
    scene.start(self, attempt);
}

static void look(void *ctx, struct store *store, struct store_entry *entry)
{
    struct fact *fact = ctx;

    (void)store;
    if (entry != NULL) {
        fact->record = entry->record;
    }
}

static void ordered(struct command *command)
{
    struct fact *fact = command->ctx;

    fact->ms = scene.world->ms;
    if (command->status == COMMAND_DONE && fact->event < SCENE_EVENTS_MAX &&
        (fact->kind == FACT_MOVED || fact->record.state != RECORD_NONE)) {
        scene.tell(fact);
    }
}

static void order(enum command_kind kind, size_t route, uint32_t event)
{
    struct fact fact = {.kind = kind == COMMAND_READ ? FACT_SEEN : FACT_MOVED,
                        .event = event};
    char id[SCENE_ID_SIZE] = "";
    struct command command = {
        .kind = kind,
        .actor = "tester",
        .route = route,
        .assume_not_applied = event % 3 == 0,
        .read = kind == COMMAND_READ ? look : NULL,
        .ctx = &fact,
        .done = ordered,
    };

    if (event < SCENE_EVENTS_MAX) {
        scene_id(event, id);
        command.id = slice_of(id);
    }
    CHECK(engine_command(scene.world->engine, &command));
    world_turn(scene.world);
}

/* Before everything that changes an event, so that the time of its last change
 * tells the points of its story apart. */
static void pass(int64_t ms)
{
    scene.world->ms += ms;
    scene.progress->ms = scene.world->ms;
    tell(FACT_TIME, 0, 0);
}

/* --- the run ---------------------------------------------------------------
 */

static uint64_t random_below(uint64_t n)
{
    uint64_t *x = &scene.progress->random;

    *x = *x * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*x >> 33) % n;
}

static uint32_t recent(void)
{
    uint32_t n = scene.progress->events;

    return n - 1 - (uint32_t)random_below(n < RECENT ? n : RECENT);
}

static void touch(uint32_t event)
{
    if (scene.n_touched < TOUCHED_MAX) {
        scene.touched[scene.n_touched++] = event;
    }
}

struct sent *scene_send(struct world *world, uint32_t event)
{
    char id[SCENE_ID_SIZE];
    struct sent *sent;

    scene_id(event, id);
    sent = is_keyed(event)
               ? world_send_keyed(world, scene_route(event), id,
                                  1 + event / KEYED_EVERY % KEYS)
               : world_send(world, scene_route(event), id, scene_body(event));
    sent->delivery.answer = answered;
    return sent;
}

static void send_some(void)
{
    struct sent *sent[8];
    size_t n = 1 + (size_t)random_below(8);

    for (size_t i = 0; i < n; i++) {
        bool repeat = scene.progress->events > 0 && random_below(5) == 0;
        uint32_t event = repeat ? recent() : scene.progress->events++;

        touch(event);
        sent[i] = scene_send(scene.world, event);
    }
    world_turn(scene.world);
    for (size_t i = 0; i < n; i++) {
        sent_free(sent[i]);
    }
}

static void end_one(void)
{
    static const struct {
        enum attempt_end end;
        int status;
    } ends[] = {
        {END_STATUS, 200}, {END_STATUS, 200}, {END_STATUS, 200},
        {END_STATUS, 200}, {END_STATUS, 200}, {END_STATUS, 200},
        {END_STATUS, 500}, {END_STATUS, 429}, {END_STATUS, 404},
        {END_STATUS, 422}, {END_TIMEOUT, 0},  {END_BROKEN, 0},
    };
    size_t i = (size_t)random_below(sizeof ends / sizeof *ends);
    struct attempt *attempt =
        scene.world->running[random_below(scene.world->n_running)];
    struct result result = {.status = (uint16_t)ends[i].status,
                            .body = attempt->id};
    char id[SCENE_ID_SIZE];

    pass(1);
    touch(number_of(attempt->id));
    scene_id(number_of(attempt->id), id);
    if (ends[i].end == END_STATUS) {
        result_encode(&result, &attempt->result);
    }
    world_end(scene.world, id, ends[i].end, ends[i].status);
}

static void order_one(void)
{
    static const enum command_kind kinds[] = {
        COMMAND_REPLAY,  COMMAND_REPLAY,          COMMAND_REPLAY,
        COMMAND_RERUN,   COMMAND_RESOLVE_APPLIED, COMMAND_RESOLVE_NOT_APPLIED,
        COMMAND_DISCARD,
    };
    uint32_t event = recent();

    pass(1);
    touch(event);
    order(kinds[random_below(sizeof kinds / sizeof *kinds)], scene_route(event),
          event);
}

static void pause_or_resume(void)
{
    order(scene.paused ? COMMAND_RESUME : COMMAND_PAUSE, 0, SCENE_EVENTS_MAX);
    scene.paused = !scene.paused;
}

static void act(void)
{
    uint64_t dice = random_below(32);

    if (scene.progress->events == 0 || dice < 8) {
        send_some();
    } else if (dice < 10 || (scene.paused && dice < 20)) {
        pause_or_resume();
    } else if (dice < 16) {
        order_one();
    }
    for (uint64_t n = random_below(7); n > 0 && scene.world->n_running > 0;
         n--) {
        end_one();
    }
}

static void step(void)
{
    pass(1 + (int64_t)random_below(STEP_MAX_MS));
    scene.n_touched = 0;
    act();
    world_turn(scene.world);
    for (size_t i = 0; i < scene.n_touched; i++) {
        order(COMMAND_READ, scene_route(scene.touched[i]), scene.touched[i]);
    }
}

void scene_init(struct world *world, bool sync,
                void (*tell_fact)(const struct fact *fact))
{
    world_init(world);
    world->sync = sync;
    world->max_bytes = 8 << 20;
    world->ids_per_generation = 24;
    world->retention_ms = SCENE_RETENTION_MS;
    scene.world = world;
    scene.tell = tell_fact;
    scene.handler = *world->routes[0].handler.ops;
    scene.start = scene.handler.start;
    scene.handler.start = began;
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        struct engine_route *route = &world->routes[i];

        route->handler.ops = &scene.handler;
        route->policy.max_attempts = 3;
        route->retention = (struct store_retention){
            SCENE_RETENTION_MS, SCENE_RETENTION_MS, SCENE_RETENTION_MS};
    }
    world->routes[1].policy.on_uncertain = ON_UNCERTAIN_HOLD;
    world->routes[1].policy.after_dead = AFTER_DEAD_HOLD;
}

static void look_at_store(struct world *world, struct scene_progress *progress)
{
    static struct store_stats stats;

    store_stats(world->store, &stats);
    progress->dead = 0;
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        progress->dead += stats.counts[i][RECORD_DEAD];
    }
    progress->remembered = stats.remembered;
    progress->forgot = store_forgotten_until_ms(world->store) != INT64_MIN;
}

void scene_run(struct world *world, struct scene_progress *progress,
               unsigned steps)
{
    CHECK(scene.world == world);
    scene.progress = progress;
    world->ms = progress->ms;
    tell(FACT_TIME, 0, 0);
    world_open(world);
    world_turn(world);
    scene.paused =
        store_is_paused(world->store, engine_route_number(world->engine, 0));
    for (uint32_t i = 0; i < progress->events; i++) {
        order(COMMAND_READ, scene_route(i), i);
    }
    for (unsigned i = 0; i < steps; i++) {
        step();
    }
    look_at_store(world, progress);
    world_close(world);
}
