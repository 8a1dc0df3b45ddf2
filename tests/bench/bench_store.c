/* SPDX-License-Identifier: MIT */
/*
 * The store alone: N events, each accepted in one durable commit and settled
 * in the next one, in batches of a fixed size.
 *
 *     bench_store DIR EVENTS BATCH [no-sync]
 *
 * Prints events per second, the longest transaction, bytes per remembered id
 * (no envelope, no audit, result told by its status), and how long the next
 * start takes. A folder that has a store is used further, so that a rate can
 * be taken with many ids remembered.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "store/store.h"

struct bench {
    struct store *store;
    struct store_options options;
    struct err err;
    uint16_t route, space;
    uint64_t from;
    double longest_ms;
};

static double seconds(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(struct bench *bench, bool ok)
{
    if (!ok) {
        (void)fprintf(stderr, "bench_store: %s\n", bench->err.text);
        exit(1);
    }
}

static void open_store(struct bench *bench)
{
    must(bench, store_open(&bench->store, &bench->options, &bench->err));
    must(bench,
         store_route_number(bench->store, "bench", &bench->route, &bench->err));
    must(bench, store_namespace_number(bench->store, "bench", &bench->space,
                                       &bench->err));
}

/* 30 bytes, as a provider's ids are. */
static struct slice id_of(uint64_t n, char text[32])
{
    int len = snprintf(text, 32, "evt_%026" PRIu64, n * 2654435761U);

    return (struct slice){text, (size_t)len};
}

static void accept_one(struct bench *bench, uint64_t n, int64_t now_ms)
{
    struct store_entry entry;
    char text[32];

    must(bench,
         store_find(bench->store, bench->space, SLICE(""), id_of(n, text),
                    &entry, &bench->err) == STORE_ABSENT);
    entry.record = (struct record){
        .state = RECORD_RUNNING,
        .route = bench->route,
        .run = 1,
        .attempt = 1,
        .tries = 1,
        .deliveries = 1,
        .epoch = store_epoch(bench->store),
        .first_seen_ms = now_ms,
        .last_seen_ms = now_ms,
        .changed_ms = now_ms,
        .clock_ms = now_ms,
        .due_ms = now_ms + 30000,
    };
    must(bench, store_put(bench->store, &entry, &bench->err));
}

static void settle_one(struct bench *bench, uint64_t n, int64_t now_ms)
{
    struct store_entry entry;
    struct identity identity;
    char text[32];

    identity =
        store_identity(bench->store, bench->space, SLICE(""), id_of(n, text));
    must(bench, store_find_identity(bench->store, &identity, &entry,
                                    &bench->err) == STORE_FOUND);
    entry.record.state = RECORD_SUCCEEDED;
    entry.record.status = 200;
    entry.record.due_ms = RECORD_NEVER;
    entry.record.changed_ms = now_ms;
    must(bench, store_put(bench->store, &entry, &bench->err));
}

/* One batch: `batch` events come, those of the batch before are settled. */
static void turn(struct bench *bench, uint64_t at, uint64_t batch, bool last)
{
    int64_t now_ms = store_now_ms(bench->store);
    double begin = seconds(), took_ms;
    bool more;

    must(bench, store_begin(bench->store, &bench->err));
    for (uint64_t i = 0; i < batch && !last; i++) {
        accept_one(bench, at + i, now_ms);
    }
    for (uint64_t i = 0; i < batch && at > bench->from; i++) {
        settle_one(bench, at - batch + i, now_ms);
    }
    must(bench, store_maintain(bench->store, &more, &bench->err));
    must(bench, store_commit(bench->store, &bench->err));
    took_ms = (seconds() - begin) * 1e3;
    bench->longest_ms =
        took_ms > bench->longest_ms ? took_ms : bench->longest_ms;
}

static uint64_t count(struct bench *bench, uint64_t *bytes)
{
    struct store_stats *stats = mem_new(1, sizeof *stats);
    uint64_t remembered;

    store_stats(bench->store, stats);
    remembered = stats->remembered;
    *bytes = stats->bytes;
    free(stats);
    return remembered;
}

static void report(struct bench *bench, uint64_t n, double took)
{
    double begin, start;
    uint64_t bytes, remembered;

    store_close(&bench->store);
    begin = seconds();
    open_store(bench);
    start = seconds() - begin;
    remembered = count(bench, &bytes);
    (void)printf("events %" PRIu64 " per_second %.0f longest_turn_ms %.1f "
                 "remembered %" PRIu64 " bytes_per_id %.1f start_s %.3f\n",
                 n, (double)n / took, bench->longest_ms, remembered,
                 (double)bytes / (double)remembered, start);
    store_close(&bench->store);
}

int main(int argc, char **argv)
{
    struct bench bench = {.longest_ms = 0};
    uint64_t n, batch, at, bytes;
    double begin;

    if (argc < 4) {
        (void)fprintf(stderr, "bench_store DIR EVENTS BATCH [no-sync]\n");
        return 64;
    }
    n = strtoull(argv[2], NULL, 10);
    batch = strtoull(argv[3], NULL, 10);
    bench.options = (struct store_options){
        .path = argv[1],
        .max_bytes = UINT64_C(64) << 30,
        .retention_ms = INT64_C(35) * 86400000,
        .create = true,
        .no_sync = argc > 4 && strcmp(argv[4], "no-sync") == 0,
        .clock = clock_system(),
    };
    open_store(&bench);
    bench.from = count(&bench, &bytes);
    begin = seconds();
    for (at = bench.from; at < bench.from + n; at += batch) {
        turn(&bench, at, batch, false);
    }
    turn(&bench, at, batch, true);
    report(&bench, at - bench.from, seconds() - begin);
    return 0;
}
