/* SPDX-License-Identifier: MIT */
#include "support/world.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "engine/internal.h"
#include "engine/partition.h"

static int64_t world_ms(void *self)
{
    return ((struct world *)self)->ms;
}

static uint64_t world_random(void *self)
{
    struct world *world = self;

    world->random = world->random * 6364136223846793005ULL + 1;
    return world->random >> 33;
}

/* --- the handler ---------------------------------------------------------- */

static void world_start(void *self, struct attempt *attempt)
{
    struct world *world = self;

    CHECK(world->n_running < WORLD_ATTEMPTS_MAX);
    world->running[world->n_running++] = attempt;
    world->started++;
}

static bool world_is_alive(void *self, const uint8_t identity[16],
                           uint32_t number)
{
    (void)identity;
    (void)number;
    return ((struct world *)self)->alive;
}

static void world_kill(void *self, const uint8_t identity[16], uint32_t number)
{
    struct world *world = self;

    (void)identity;
    (void)number;
    world->kills++;
    world->alive = false;
}

static void world_stop(void *self)
{
    (void)self;
}

static const struct handler_ops world_handler = {
    .start = world_start,
    .is_alive = world_is_alive,
    .kill = world_kill,
    .stop = world_stop,
    .free = world_stop,
};

/* --- life -------------------------------------------------------------------
 */

void world_init(struct world *world)
{
    static const char *const names[WORLD_ROUTES] = {"a", "b"};
    const char *base = getenv("TMPDIR");

    memset(world, 0, sizeof *world);
    (void)snprintf(world->dir, sizeof world->dir, "%s/onced-world-XXXXXX",
                   base == NULL || strlen(base) > 32 ? "/tmp" : base);
    CHECK(mkdtemp(world->dir) != NULL);
    world->ms = WORLD_START_MS;
    world->max_bytes = 64 << 20;
    world->retention_ms = 86400000;
    world->random = 1;
    world->clock = (struct clock){world_ms, world_ms, world};
    for (size_t i = 0; i < WORLD_ROUTES; i++) {
        world->routes[i] = (struct engine_route){
            .name = names[i],
            .namespace = names[i],
            .policy = {.respond = RESPOND_ACCEPTED,
                       .on_uncertain = ON_UNCERTAIN_RETRY,
                       .timeout_ms = 10000,
                       .give_up_after_ms = 3600000,
                       .max_crashes = 20,
                       .backoff_ms = 1000,
                       .max_backoff_ms = 600000},
            .rules = {.respond = RESPOND_ACCEPTED},
            .handler = {&world_handler, world},
            .concurrency = 4,
            .retention = {86400000, 86400000, 86400000},
            .max_dead_bytes = 1 << 30,
        };
    }
}

bool world_try_open(struct world *world, struct err *err)
{
    char path[80];
    struct store_options store = {
        .path = path,
        .max_bytes = world->max_bytes,
        .retention_ms = world->retention_ms,
        .ids_per_generation = world->ids_per_generation,
        .create = true,
        .no_sync = !world->sync,
        .clock = &world->clock,
    };
    struct engine_options engine = {
        .routes = world->routes,
        .n_routes = WORLD_ROUTES,
        .streams = world->streams,
        .n_streams = world->n_streams,
        .clock = &world->clock,
        .random = world_random,
        .random_self = world,
        .inbox_items = 1024,
        .inbox_bytes = 64 << 20,
    };

    (void)snprintf(path, sizeof path, "%s/store", world->dir);
    if (!store_open(&world->store, &store, err)) {
        return false;
    }
    engine.store = world->store;
    if (!engine_new(&world->engine, &engine, err)) {
        store_close(&world->store);
        return false;
    }
    return true;
}

void world_open(struct world *world)
{
    struct err err = {ERR_NONE, ""};

    if (!world_try_open(world, &err)) {
        fprintf(stderr, "world: %s\n", err.text);
        CHECK(err.kind == ERR_NONE);
    }
}

void world_close(struct world *world)
{
    engine_stop_intake(world->engine);
    while (world->n_running > 0) {
        struct attempt *attempt = world->running[--world->n_running];

        attempt->end = END_BROKEN;
        attempt_finish(attempt);
        world_turn(world);
    }
    engine_free(&world->engine);
    store_close(&world->store);
}

/* What senders and operators handed in stays theirs; the engine frees what its
 * publishers gave back. */
static void drop_items(struct queue_item *item)
{
    while (item != NULL) {
        struct queue_item *next = item->next;

        if (item->kind == INBOX_RESULT) {
            attempt_free((struct attempt *)item);
        } else if (item->kind == INBOX_LETTER) {
            dead_letter_finish((struct dead_letter *)item);
        }
        item = next;
    }
}

/* A process that is killed frees nothing; the one that plays it must. */
static void free_partitions(struct engine *engine)
{
    while (engine->partitions->list != NULL) {
        struct partition_state *partition = engine->partitions->list;

        engine->partitions->list = partition->next;
        partition->assignment->partition = NULL;
        tracker_free(partition->tracker);
        free(partition->awaited);
        free(partition);
    }
}

void world_crash(struct world *world)
{
    struct engine *engine = world->engine;

    drop_items(queue_drain(engine->inbox, SIZE_MAX, SIZE_MAX, 0));
    drop_items(engine->batch.results.head);
    while (world->n_running > 0) {
        attempt_free(world->running[--world->n_running]);
    }
    free_partitions(engine);
    engine->running = 0;
    engine_free(&world->engine);
    store_close(&world->store);
}

static int remove_one(const char *path, const struct stat *stat, int type,
                      struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

void world_fini(struct world *world)
{
    if (world->engine != NULL) {
        world_close(world);
    }
    (void)nftw(world->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- time
 * --------------------------------------------------------------------- */

void world_turn(struct world *world)
{
    struct err err = {ERR_NONE, ""};

    /* Each round may make the next one possible: claim, settle, advance. */
    for (int i = 0; i < 8; i++) {
        if (!engine_turn(world->engine, 0, &err)) {
            fprintf(stderr, "world: %s\n", err.text);
            CHECK(err.kind == ERR_NONE);
        }
    }
}

void world_pass(struct world *world, int64_t ms)
{
    world->ms += ms;
    world_turn(world);
}

/* --- senders
 * -------------------------------------------------------------------- */

static void sent_answered(struct delivery *delivery)
{
    struct sent *sent = (struct sent *)delivery;

    CHECK(!sent->answered);
    sent->answered = true;
}

static struct sent *make(struct world *world, const char *id, const char *body)
{
    struct sent *sent = mem_new(1, sizeof *sent);
    struct envelope envelope = {
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = world->ms,
        .method = SLICE("POST"),
        .path = SLICE("/a"),
        .body = slice_of(body),
        .has_body = true,
    };

    buf_add_str(&sent->text, id);
    envelope_encode(&envelope, &sent->text);
    sent->delivery.arrivals = sent->arrivals;
    sent->delivery.item.cost_bytes = sent->text.len;
    sent->delivery.answer = sent_answered;
    return sent;
}

static void aim(struct sent *sent, size_t route, const char *id,
                const char *body, uint64_t order_key)
{
    struct arrival *arrival = &sent->arrivals[sent->delivery.n_arrivals++];
    uint8_t digest[SHA256_SIZE];

    hash_sha256(slice_of(body), digest);
    arrival->route = route;
    arrival->id = (struct slice){sent->text.data, strlen(id)};
    arrival->envelope = slice_from(buf_slice(&sent->text), strlen(id));
    arrival->order_key = order_key;
    arrival->fingerprint.version = 1;
    arrival->fingerprint.mode = FINGERPRINT_RAW;
    memcpy(arrival->fingerprint.digest, digest, FINGERPRINT_SIZE);
}

struct sent *world_send(struct world *world, size_t route, const char *id,
                        const char *body)
{
    struct sent *sent = make(world, id, body);

    aim(sent, route, id, body, 0);
    CHECK(engine_deliver(world->engine, &sent->delivery));
    return sent;
}

struct sent *world_send_keyed(struct world *world, size_t route, const char *id,
                              uint64_t order_key)
{
    struct sent *sent = make(world, id, "x");

    aim(sent, route, id, "x", order_key);
    CHECK(engine_deliver(world->engine, &sent->delivery));
    return sent;
}

static void add_message(struct sent *sent, const struct world *world,
                        const struct message *message)
{
    const struct envelope envelope = {
        .kind = ENVELOPE_KAFKA,
        .received_wall_ms = world->ms,
        .topic = SLICE("t"),
        .partition = message->assignment->number,
        .offset = message->offset,
        .body = slice_of(message->body == NULL ? "x" : message->body),
        .has_body = true,
    };

    buf_add_str(&sent->text, message->id);
    envelope_encode(&envelope, &sent->text);
}

/* Its text is that from `start` to `end` of the delivery's. */
static void aim_message(struct sent *sent, const struct message *message,
                        size_t start, size_t end)
{
    const char *body = message->body == NULL ? "x" : message->body;
    size_t id_len = strlen(message->id);
    size_t n = message->n_routes == 0 ? 1 : message->n_routes;

    for (size_t i = 0; i < n; i++) {
        struct arrival *arrival = &sent->arrivals[sent->delivery.n_arrivals];

        CHECK(sent->delivery.n_arrivals < WORLD_ARRIVALS_MAX);
        aim(sent, message->route + i, message->id, body, message->order_key);
        arrival->id = (struct slice){sent->text.data + start, id_len};
        arrival->envelope =
            (struct slice){arrival->id.data + id_len, end - start - id_len};
        arrival->offset = message->offset;
        arrival->event_wall_ms = message->event_wall_ms;
    }
}

struct sent *world_bring(struct world *world, const struct message *messages,
                         size_t n_messages)
{
    struct sent *sent = mem_new(1, sizeof *sent);
    size_t ends[WORLD_ARRIVALS_MAX];

    CHECK(n_messages <= WORLD_ARRIVALS_MAX);
    sent->delivery.arrivals = sent->arrivals;
    sent->delivery.assignment = messages[0].assignment;
    sent->delivery.answer = sent_answered;
    for (size_t i = 0; i < n_messages; i++) {
        add_message(sent, world, &messages[i]);
        ends[i] = sent->text.len;
    }
    for (size_t i = 0; i < n_messages; i++) {
        aim_message(sent, &messages[i], i == 0 ? 0 : ends[i - 1], ends[i]);
    }
    sent->delivery.item.cost_bytes = sent->text.len;
    CHECK(engine_deliver(world->engine, &sent->delivery));
    return sent;
}

void sent_free(struct sent *sent)
{
    CHECK(sent->answered);
    buf_free(&sent->text);
    free(sent);
}

enum delivery_answer world_deliver(struct world *world, size_t route,
                                   const char *id, const char *body)
{
    struct sent *sent = world_send(world, route, id, body);
    enum delivery_answer result;

    world_turn(world);
    result = sent->delivery.result;
    sent_free(sent);
    return result;
}

const char *world_id(int n)
{
    static char name[16];

    (void)snprintf(name, sizeof name, "e%d", n);
    return name;
}

int world_number(const struct attempt *attempt)
{
    int n = 0;

    for (size_t i = 1; i < attempt->id.len; i++) {
        n = n * 10 + (attempt->id.data[i] - '0');
    }
    return n;
}

/* --- the handler's answers
 * --------------------------------------------------------- */

static size_t find_running(const struct world *world, const char *id)
{
    for (size_t i = 0; i < world->n_running; i++) {
        if (slice_eq(world->running[i]->id, slice_of(id))) {
            return i;
        }
    }
    return world->n_running;
}

struct attempt *world_attempt(struct world *world, const char *id)
{
    size_t i = find_running(world, id);

    return i == world->n_running ? NULL : world->running[i];
}

void world_end(struct world *world, const char *id, enum attempt_end end,
               int status)
{
    size_t i = find_running(world, id);
    struct attempt *attempt;

    CHECK(i < world->n_running);
    attempt = world->running[i];
    memmove(&world->running[i], &world->running[i + 1],
            (world->n_running - i - 1) * sizeof world->running[0]);
    world->n_running--;
    attempt->end = end;
    attempt->status = status;
    (void)snprintf(attempt->text, sizeof attempt->text, "status %d", status);
    attempt_finish(attempt);
    world_turn(world);
}

/* --- operators
 * ------------------------------------------------------------------------ */

static void order_done(struct command *command)
{
    command->ctx = NULL;
}

enum command_status world_order(struct world *world, enum command_kind kind,
                                size_t route, const char *id)
{
    struct command command = {
        .kind = kind,
        .actor = "tester",
        .route = route,
        .id = slice_of(id),
        .ctx = world,
        .done = order_done,
    };

    CHECK(engine_command(world->engine, &command));
    world_turn(world);
    CHECK(command.ctx == NULL);
    return command.status;
}

struct look {
    struct record record;
    enum move move;
    unsigned rows;
};

static bool count_row(void *ctx, const struct store_audit *audit)
{
    struct look *look = ctx;

    look->rows += audit->move == look->move ? 1 : 0;
    return true;
}

static void look_at(void *ctx, struct store *store, struct store_entry *entry)
{
    struct look *look = ctx;
    struct err err;

    look->record = entry->record;
    CHECK(store_each_audit(store, entry, count_row, look, &err));
}

static void look_done(struct command *command)
{
    (void)command;
}

static struct look look(struct world *world, size_t route, const char *id,
                        enum move move)
{
    struct look seen = {.move = move};
    struct command command = {
        .kind = COMMAND_READ,
        .actor = "",
        .route = route,
        .id = slice_of(id),
        .read = look_at,
        .ctx = &seen,
        .done = look_done,
    };

    CHECK(engine_command(world->engine, &command));
    world_turn(world);
    return seen;
}

struct record world_record(struct world *world, size_t route, const char *id)
{
    return look(world, route, id, MOVE_NONE).record;
}

unsigned world_history(struct world *world, size_t route, const char *id,
                       enum move move)
{
    return look(world, route, id, move).rows;
}
