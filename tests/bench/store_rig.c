/* SPDX-License-Identifier: MIT */
#include "store_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "core/envelope.h"

enum { PRELOAD_BATCH = 2000, BODY_SIZE = 200, CONCURRENCY = 8192 };

struct rig_shot {
    struct delivery delivery; /* first */
    struct rig *rig;
    struct arrival arrival;
    char id[RIG_ID_SIZE];
};

static double seconds(clockid_t clock)
{
    struct timespec now;

    CHECK(clock_gettime(clock, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct lap lap_now(void)
{
    return (struct lap){seconds(CLOCK_MONOTONIC),
                        seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

struct lap lap_since(struct lap begin)
{
    struct lap now = lap_now();

    return (struct lap){now.wall_s - begin.wall_s, now.cpu_s - begin.cpu_s};
}

void rig_must(bool ok, const struct err *err)
{
    if (!ok) {
        (void)fprintf(stderr, "bench_store: %s\n", err->text);
        exit(1);
    }
}

struct slice rig_id(uint64_t n, char text[RIG_ID_SIZE])
{
    int len = snprintf(text, RIG_ID_SIZE, "evt_%026" PRIu64, n * 2654435761U);

    CHECK(len == RIG_ID_SIZE - 1);
    return (struct slice){text, (size_t)len};
}

/* --- the handler ---------------------------------------------------------- */

static void end_attempt(const struct rig *rig, struct attempt *attempt)
{
    attempt->end = END_STATUS;
    attempt->status = 200;
    if (rig->retry_after_ms > 0) {
        attempt->status = 429;
        attempt->retry_after_ms = rig->retry_after_ms;
    }
    attempt_finish(attempt);
}

static void start(void *self, struct attempt *attempt)
{
    struct rig *rig = self;

    if (rig->hold_next) {
        CHECK(rig->held == NULL);
        rig->held = attempt;
        rig->hold_next = false;
        return;
    }
    end_attempt(rig, attempt);
}

static void do_nothing(void *self)
{
    (void)self;
}

static const struct handler_ops handler = {
    .start = start,
    .stop = do_nothing,
    .free = do_nothing,
};

/* --- life ----------------------------------------------------------------- */

static uint64_t next_random(void *self)
{
    struct rig *rig = self;

    rig->random = rig->random * 6364136223846793005U + 1442695040888963407U;
    return rig->random >> 33;
}

static struct store_options store_options_of(const char *path, bool no_sync)
{
    return (struct store_options){
        .path = path,
        .max_bytes = UINT64_C(64) << 30,
        .retention_ms = INT64_C(35) * 86400000,
        .create = true,
        .no_sync = no_sync,
        .clock = clock_system(),
    };
}

static struct engine_route route_of(struct rig *rig)
{
    const int64_t month_ms = INT64_C(35) * 86400000;

    return (struct engine_route){
        .name = "bench",
        .namespace = "bench",
        .policy = {.respond = RESPOND_ACCEPTED,
                   .on_uncertain = ON_UNCERTAIN_RETRY,
                   .timeout_ms = 600000,
                   .give_up_after_ms = month_ms,
                   .max_crashes = 20,
                   .backoff_ms = 1000,
                   .max_backoff_ms = 3600000},
        .rules = {.respond = RESPOND_ACCEPTED},
        .handler = {&handler, rig},
        .concurrency = CONCURRENCY,
        .retention = {month_ms, month_ms, month_ms},
        .max_dead_bytes = 1 << 30,
    };
}

static void open_engine(struct rig *rig)
{
    struct engine_route route = route_of(rig);
    struct engine_options options = {
        .routes = &route,
        .n_routes = 1,
        .store = rig->store,
        .clock = clock_system(),
        .random = next_random,
        .random_self = rig,
        .inbox_items = 4 * (size_t)RIG_BATCH_MAX,
        .inbox_bytes = 64 << 20,
    };
    struct err err = {ERR_NONE, ""};

    rig_must(engine_new(&rig->engine, &options, &err), &err);
}

static void fill_envelope(struct rig *rig)
{
    static const char body[BODY_SIZE] = {'{'};
    struct buf headers = BUF_INIT;
    struct envelope envelope = {
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = 1,
        .method = SLICE("POST"),
        .path = SLICE("/webhooks/bench"),
        .body = {body, sizeof body},
        .has_body = true,
    };

    headers_add(&headers, SLICE("Content-Type"), SLICE("application/json"));
    headers_add(&headers, SLICE("User-Agent"), SLICE("bench/1.0"));
    envelope.headers = (struct headers){buf_slice(&headers), 2};
    envelope_encode(&envelope, &rig->envelope);
    buf_free(&headers);
}

void rig_open(struct rig *rig, const char *path, bool no_sync)
{
    struct store_options options;
    struct err err = {ERR_NONE, ""};

    *rig = (struct rig){.no_sync = no_sync, .random = 1};
    CHECK((size_t)snprintf(rig->path, sizeof rig->path, "%s", path) <
          sizeof rig->path);
    options = store_options_of(rig->path, no_sync);
    rig_must(store_open(&rig->store, &options, &err), &err);
    open_engine(rig);
    rig->shots = mem_new(RIG_BATCH_MAX, sizeof *rig->shots);
    fill_envelope(rig);
    rig->next_id = rig_remembered(rig);
}

void rig_close(struct rig *rig)
{
    engine_stop_intake(rig->engine);
    if (rig->held != NULL) {
        rig_let_go(rig);
    }
    rig_settle(rig);
    engine_free(&rig->engine);
    store_close(&rig->store);
    free(rig->shots);
    buf_free(&rig->envelope);
}

uint64_t rig_remembered(struct rig *rig)
{
    struct store_stats *stats = mem_new(1, sizeof *stats);
    uint64_t remembered;

    store_stats(rig->store, stats);
    remembered = stats->remembered;
    free(stats);
    return remembered;
}

/* --- events --------------------------------------------------------------- */

static void answered(struct delivery *delivery)
{
    struct rig_shot *shot = (struct rig_shot *)delivery;

    CHECK(delivery->result == DELIVERY_ACCEPTED);
    shot->rig->answered++;
}

static void turn(struct rig *rig)
{
    struct err err = {ERR_NONE, ""};

    rig_must(engine_turn(rig->engine, 0, &err), &err);
    rig->turns++;
}

static void shoot(struct rig *rig, struct rig_shot *shot, uint64_t order_key)
{
    shot->rig = rig;
    shot->arrival = (struct arrival){
        .id = rig_id(rig->next_id++, shot->id),
        .order_key = order_key,
        .envelope = buf_slice(&rig->envelope),
    };
    shot->delivery = (struct delivery){
        .item = {.cost_bytes = rig->envelope.len},
        .arrivals = &shot->arrival,
        .n_arrivals = 1,
        .answer = answered,
    };
    CHECK(engine_deliver(rig->engine, &shot->delivery));
}

static void send_batch(struct rig *rig, const struct rig_load *load,
                       uint64_t at)
{
    rig->answered = 0;
    for (size_t i = 0; i < load->batch; i++) {
        uint64_t key = load->order_keys == 0
                           ? 0
                           : load->first_key + (at + i) % load->order_keys;

        shoot(rig, &rig->shots[i], key);
    }
    while (rig->answered < load->batch) {
        turn(rig);
    }
}

void rig_send(struct rig *rig, const struct rig_load *load)
{
    CHECK(load->batch > 0 && load->batch <= RIG_BATCH_MAX);
    for (uint64_t at = 0; at < load->n; at += load->batch) {
        send_batch(rig, load, at);
    }
}

void rig_settle(struct rig *rig)
{
    while (engine_running(rig->engine) > (rig->held != NULL ? 1 : 0)) {
        turn(rig);
    }
}

void rig_run(struct rig *rig, const struct rig_load *load)
{
    rig_send(rig, load);
    rig_settle(rig);
}

void rig_turns(struct rig *rig, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        turn(rig);
    }
}

void rig_let_go(struct rig *rig)
{
    struct attempt *attempt = rig->held;

    CHECK(attempt != NULL);
    rig->held = NULL;
    end_attempt(rig, attempt);
}

/* --- preload -------------------------------------------------------------- */

struct preload {
    struct store *store;
    uint16_t route, space;
    struct err err;
};

static void put_settled(struct preload *preload, uint64_t n, int64_t now_ms)
{
    struct store_entry entry;
    char text[RIG_ID_SIZE];

    rig_must(store_find(preload->store, preload->space, SLICE(""),
                        rig_id(n, text), &entry, &preload->err) == STORE_ABSENT,
             &preload->err);
    entry.record = (struct record){
        .state = RECORD_SUCCEEDED,
        .route = preload->route,
        .status = 200,
        .run = 1,
        .attempt = 1,
        .tries = 1,
        .deliveries = 1,
        .epoch = store_epoch(preload->store),
        .first_seen_ms = now_ms,
        .last_seen_ms = now_ms,
        .changed_ms = now_ms,
        .clock_ms = now_ms,
        .due_ms = RECORD_NEVER,
    };
    rig_must(store_put(preload->store, &entry, &preload->err), &preload->err);
}

static bool put_batch(struct preload *preload, uint64_t from, uint64_t n)
{
    int64_t now_ms = store_now_ms(preload->store);
    bool more;

    rig_must(store_begin(preload->store, &preload->err), &preload->err);
    for (uint64_t i = 0; i < n; i++) {
        put_settled(preload, from + i, now_ms);
    }
    rig_must(store_maintain(preload->store, &more, &preload->err),
             &preload->err);
    rig_must(store_commit(preload->store, &preload->err), &preload->err);
    return more;
}

static void open_preload(struct preload *preload, const char *path,
                         bool no_sync)
{
    struct store_options options = store_options_of(path, no_sync);

    rig_must(store_open(&preload->store, &options, &preload->err),
             &preload->err);
    rig_must(store_route_number(preload->store, "bench", &preload->route,
                                &preload->err),
             &preload->err);
    rig_must(store_namespace_number(preload->store, "bench", &preload->space,
                                    &preload->err),
             &preload->err);
}

void rig_preload(const char *path, uint64_t ids)
{
    struct preload preload = {.store = NULL};
    bool more = true;

    open_preload(&preload, path, true);
    for (uint64_t at = 0; at < ids; at += PRELOAD_BATCH) {
        more = put_batch(&preload, at,
                         ids - at < PRELOAD_BATCH ? ids - at : PRELOAD_BATCH);
    }
    while (more) {
        more = put_batch(&preload, 0, 0);
    }
    store_close(&preload.store);
    /* Every start syncs what it finds. */
    open_preload(&preload, path, false);
    store_close(&preload.store);
}
