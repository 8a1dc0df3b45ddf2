/* SPDX-License-Identifier: MIT */
/*
 * What the process takes at most, added up from the configuration. What the
 * kernel caches of the store's file is not counted: it is given back under
 * pressure.
 */
#include "app/config_internal.h"
#include "base/text.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

/* The program, its libraries, stacks, the log's ring, the results and orders
 * that wait in the reserved part of the inbox, one batch. */
#define PROGRAM_BYTES (64 * MIB)

/* A connection: the head of the request, buffers of HTTP and TLS. */
#define CONNECTION_BYTES (32 * KIB)
#define TLS_BYTES (48 * KIB)

/* Beside its body, an event in work has its head and what keeps track of it;
 * the body stands there twice while the handler's library sends it. */
#define ATTEMPT_BYTES (64 * KIB)

/* Ids: the table of the newest, twice while the one before is put away, and a
 * filter over all others. */
#define TABLE_IDS (UINT64_C(4) << 20)
#define TABLE_BYTES_PER_ID UINT64_C(64)
#define FILTER_BYTES_PER_ID UINT64_C(2)
#define STORED_BYTES_PER_ID UINT64_C(150)

static uint64_t attempts_bytes(const struct config *config)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < config->n_routes; i++) {
        const struct config_route *route = &config->routes[i];

        sum += route->concurrency * (2 * route->max_body_bytes +
                                     route->max_result_bytes + ATTEMPT_BYTES);
    }
    return sum;
}

static uint64_t ids_bytes(const struct config *config)
{
    uint64_t ids = config->store.max_bytes / STORED_BYTES_PER_ID;
    uint64_t newest = ids < TABLE_IDS ? ids : TABLE_IDS;

    return 2 * newest * TABLE_BYTES_PER_ID + ids * FILTER_BYTES_PER_ID;
}

static uint64_t connections_bytes(const struct config *config)
{
    uint64_t each = CONNECTION_BYTES + (config->listen.has_tls ? TLS_BYTES : 0);

    return config->listen.max_connections * each;
}

static json_t *size_json(uint64_t bytes)
{
    struct buf text = BUF_INIT;
    json_t *json;

    /* In whole MiB, rounded up: more digits would promise too much. */
    text_put_size(&text, (bytes + MIB - 1) / MIB * MIB);
    json = json_stringn(text.data, text.len);
    buf_free(&text);
    return json;
}

json_t *config_memory_bound(const struct config *config)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {
        {"program", PROGRAM_BYTES},
        {"connections", connections_bytes(config)},
        {"bodies", config->listen.max_in_flight_bytes},
        {"inbox", config->inbox.max_bytes},
        {"attempts", attempts_bytes(config)},
        {"ids", ids_bytes(config)},
    };
    json_t *list = json_object();
    json_t *bound = json_object();
    uint64_t total = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        json_object_set_new(list, parts[i].name, size_json(parts[i].bytes));
        total += parts[i].bytes;
    }
    json_object_set_new(bound, "total", size_json(total));
    json_object_set_new(bound, "parts", list);
    return bound;
}
