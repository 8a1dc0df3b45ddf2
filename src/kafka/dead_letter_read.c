/* SPDX-License-Identifier: MIT */
#include "base/check.h"
#include "base/text.h"
#include "kafka/dead_letter.h"
#include "kafka/dead_letter_names.h"

/* Bounds of what can be a topic of Kafka, a route and an id of onced. */
enum { TOPIC_MAX = 249, NAME_MAX_BYTES = 255 };

/* Headers of interest, by position in a list of names. The last of a name
 * counts, as in Kafka's own clients. */
struct found {
    struct slice value;
    bool is_there;
};

static void find_all(const struct headers *headers, const char *const *names,
                     struct found *found, size_t n)
{
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        for (size_t i = 0; i < n; i++) {
            if (slice_eq(header.name, slice_of(names[i]))) {
                found[i] = (struct found){header.value, !header.is_null};
                break;
            }
        }
    }
}

/* --- values -------------------------------------------------------------- */

static bool read_i64(const struct found *found, int64_t *out)
{
    uint64_t number;

    if (!found->is_there || !text_u64(found->value, &number) ||
        number > INT64_MAX) {
        return false;
    }
    *out = (int64_t)number;
    return true;
}

static bool read_i32(const struct found *found, int32_t *out)
{
    int64_t number;

    if (!read_i64(found, &number) || number > INT32_MAX) {
        return false;
    }
    *out = (int32_t)number;
    return true;
}

/* For people: 0 where it is not there. */
static uint32_t count_of(const struct found *found)
{
    int64_t number = 0;

    (void)read_i64(found, &number);
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static int64_t time_of(const struct found *found)
{
    int64_t ms = 0;

    (void)text_parse_time(found->value, &ms);
    return ms;
}

static bool read_be32(const struct found *found, int32_t *out)
{
    if (!found->is_there || found->value.len != 4) {
        return false;
    }
    *out = (int32_t)bytes_get_be32(found->value.data);
    return *out >= 0;
}

static bool read_be64(const struct found *found, int64_t *out)
{
    if (!found->is_there || found->value.len != 8) {
        return false;
    }
    *out = (int64_t)bytes_get_be64(found->value.data);
    return *out >= 0;
}

static bool read_name(const struct found *found, size_t max, struct slice *out)
{
    *out = found->value;
    return found->is_there && out->len > 0 && out->len <= max;
}

/* --- the original's headers ----------------------------------------------- */

static void keep(struct kafka_dead_letter *letter, const struct header *header)
{
    if (header->is_null) {
        headers_add_null(&letter->headers, header->name);
    } else {
        headers_add(&letter->headers, header->name, header->value);
    }
    letter->original.headers.count++;
}

static bool starts_with_any(struct slice name, const char *const *prefixes,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_starts(name, slice_of(prefixes[i]))) {
            return true;
        }
    }
    return false;
}

/* All headers up to `from`, and behind it those that no prefix fits. */
static void strip(struct kafka_dead_letter *letter,
                  const struct headers *headers, size_t from,
                  const char *const *prefixes, size_t n)
{
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (at <= from || !starts_with_any(header.name, prefixes, n)) {
            keep(letter, &header);
        }
    }
    letter->original.headers.flat = buf_slice(&letter->headers);
}

/* --- onced's ------------------------------------------------------------- */

enum field {
    FIELD_SOURCE,
    FIELD_ROUTE,
    FIELD_ID,
    FIELD_TENANT,
    FIELD_REASON,
    FIELD_CODE,
    FIELD_WHY,
    FIELD_KEY,
    FIELD_RUN,
    FIELD_ATTEMPTS,
    FIELD_DELIVERIES,
    FIELD_REPLAYS,
    FIELD_FIRST_SEEN,
    FIELD_DIED,
    FIELD_TIMESTAMP,
    FIELD_TOPIC,
    FIELD_PARTITION,
    FIELD_OFFSET,
    FIELD_METHOD,
    FIELD_PATH,
    FIELD_QUERY,
};
enum { FIELDS = FIELD_QUERY + 1 };

static const char *const field_names[FIELDS] = {
    [FIELD_SOURCE] = DEAD_LETTER_SOURCE,
    [FIELD_ROUTE] = DEAD_LETTER_ROUTE,
    [FIELD_ID] = DEAD_LETTER_ID,
    [FIELD_TENANT] = DEAD_LETTER_TENANT,
    [FIELD_REASON] = DEAD_LETTER_REASON,
    [FIELD_CODE] = DEAD_LETTER_CODE,
    [FIELD_WHY] = DEAD_LETTER_WHY,
    [FIELD_KEY] = DEAD_LETTER_KEY,
    [FIELD_RUN] = DEAD_LETTER_RUN,
    [FIELD_ATTEMPTS] = DEAD_LETTER_ATTEMPTS,
    [FIELD_DELIVERIES] = DEAD_LETTER_DELIVERIES,
    [FIELD_REPLAYS] = DEAD_LETTER_REPLAYS,
    [FIELD_FIRST_SEEN] = DEAD_LETTER_FIRST_SEEN,
    [FIELD_DIED] = DEAD_LETTER_DIED,
    [FIELD_TIMESTAMP] = DEAD_LETTER_TIMESTAMP,
    [FIELD_TOPIC] = DEAD_LETTER_TOPIC,
    [FIELD_PARTITION] = DEAD_LETTER_PARTITION,
    [FIELD_OFFSET] = DEAD_LETTER_OFFSET,
    [FIELD_METHOD] = DEAD_LETTER_METHOD,
    [FIELD_PATH] = DEAD_LETTER_PATH,
    [FIELD_QUERY] = DEAD_LETTER_QUERY,
};

static bool read_event(const struct found *found, struct kafka_dead_letter *out)
{
    out->tenant = found[FIELD_TENANT].value;
    out->code = found[FIELD_CODE].value;
    out->why = found[FIELD_WHY].value;
    out->idempotency_key = found[FIELD_KEY].value;
    out->run = count_of(&found[FIELD_RUN]);
    out->attempts = count_of(&found[FIELD_ATTEMPTS]);
    out->deliveries = count_of(&found[FIELD_DELIVERIES]);
    out->replays = count_of(&found[FIELD_REPLAYS]);
    out->first_seen_ms = time_of(&found[FIELD_FIRST_SEEN]);
    out->died_ms = time_of(&found[FIELD_DIED]);
    return read_name(&found[FIELD_ROUTE], NAME_MAX_BYTES, &out->route) &&
           read_name(&found[FIELD_ID], NAME_MAX_BYTES, &out->id) &&
           read_name(&found[FIELD_REASON], NAME_MAX_BYTES, &out->reason) &&
           out->tenant.len <= NAME_MAX_BYTES;
}

static bool read_http(const struct found *found, struct envelope *original)
{
    original->kind = ENVELOPE_HTTP;
    original->method = found[FIELD_METHOD].value;
    original->path = found[FIELD_PATH].value;
    original->query = found[FIELD_QUERY].value;
    original->has_query = found[FIELD_QUERY].is_there;
    return original->method.len > 0 && original->path.len > 0 &&
           read_i64(&found[FIELD_TIMESTAMP], &original->received_wall_ms);
}

static bool read_kafka(const struct found *found,
                       const struct envelope *message,
                       struct envelope *original)
{
    original->kind = ENVELOPE_KAFKA;
    original->key = message->key;
    original->has_key = message->has_key;
    original->received_wall_ms = message->received_wall_ms;
    original->timestamp_ms = -1;
    (void)read_i64(&found[FIELD_TIMESTAMP], &original->timestamp_ms);
    return read_name(&found[FIELD_TOPIC], TOPIC_MAX, &original->topic) &&
           read_i32(&found[FIELD_PARTITION], &original->partition) &&
           read_i64(&found[FIELD_OFFSET], &original->offset);
}

static bool read_source(const struct found *found,
                        const struct envelope *message,
                        struct kafka_dead_letter *out)
{
    struct slice source = found[FIELD_SOURCE].value;

    if (slice_eq(source, SLICE(SOURCE_NONE))) {
        return true;
    }
    out->has_original = true;
    out->original.body = message->body;
    out->original.has_body = message->has_body;
    if (slice_eq(source, SLICE(SOURCE_HTTP))) {
        return read_http(found, &out->original);
    }
    return slice_eq(source, SLICE(SOURCE_KAFKA)) &&
           read_kafka(found, message, &out->original);
}

/* Where the last block begins in the flat list; false where there is none. */
static bool find_block(const struct headers *headers, size_t *from)
{
    struct header header;
    size_t before = 0;
    bool is_there = false;

    for (size_t at = 0; headers_next(headers, &at, &header); before = at) {
        if (slice_eq(header.name, SLICE(DEAD_LETTER_MARKER)) &&
            slice_eq(header.value, SLICE(DEAD_LETTER_VERSION))) {
            *from = before;
            is_there = true;
        }
    }
    return is_there;
}

static bool read_onced(const struct envelope *message, size_t from,
                       struct kafka_dead_letter *out)
{
    static const char *const ours[] = {DEAD_LETTER_PREFIX, CONNECT_PREFIX,
                                       SPRING_PREFIX};
    struct headers block = {slice_from(message->headers.flat, from), 0};
    struct found found[FIELDS] = {{{NULL, 0}, false}};

    out->writer = KAFKA_DEAD_LETTER_ONCED;
    find_all(&block, field_names, found, FIELDS);
    if (!read_event(found, out) || !read_source(found, message, out)) {
        return false;
    }
    if (out->has_original) {
        strip(out, &message->headers, from, ours, sizeof ours / sizeof ours[0]);
    }
    return true;
}

/* --- of others ------------------------------------------------------------ */

/* The message as it stood on the topic that it came from. */
static void take_original(const struct envelope *message,
                          struct kafka_dead_letter *out)
{
    out->has_original = true;
    out->original = *message;
    out->original.headers = (struct headers){{NULL, 0}, 0};
}

static bool read_connect(const struct envelope *message,
                         struct kafka_dead_letter *out)
{
    static const char *const names[] = {CONNECT_TOPIC, CONNECT_PARTITION,
                                        CONNECT_OFFSET, CONNECT_EXCEPTION,
                                        CONNECT_MESSAGE};
    static const char *const theirs[] = {CONNECT_PREFIX};
    struct found found[sizeof names / sizeof names[0]] = {{{NULL, 0}, false}};

    find_all(&message->headers, names, found, sizeof names / sizeof names[0]);
    take_original(message, out);
    out->writer = KAFKA_DEAD_LETTER_CONNECT;
    out->code = found[3].value;
    out->why = found[4].value;
    if (!read_name(&found[0], TOPIC_MAX, &out->original.topic) ||
        !read_i32(&found[1], &out->original.partition) ||
        !read_i64(&found[2], &out->original.offset)) {
        return false;
    }
    strip(out, &message->headers, 0, theirs, 1);
    return true;
}

/* Spring names the same things in two ways: dead letters of its retry topics
 * keep the names of those. */
static const char *const spring_names[][6] = {
    {SPRING_TOPIC, SPRING_PARTITION, SPRING_OFFSET, SPRING_TIMESTAMP,
     SPRING_EXCEPTION, SPRING_MESSAGE},
    {RETRY_TOPIC, RETRY_PARTITION, RETRY_OFFSET, RETRY_TIMESTAMP,
     RETRY_EXCEPTION_NAME, RETRY_MESSAGE},
};

static bool read_spring(const struct envelope *message,
                        const char *const names[6],
                        struct kafka_dead_letter *out)
{
    static const char *const theirs[] = {SPRING_PREFIX, RETRY_PREFIX,
                                         RETRY_ORIGINAL, RETRY_EXCEPTION,
                                         DELIVERY_ATTEMPT};
    struct found found[6] = {{{NULL, 0}, false}};

    find_all(&message->headers, names, found, 6);
    take_original(message, out);
    out->writer = KAFKA_DEAD_LETTER_SPRING;
    out->original.timestamp_ms = -1;
    (void)read_be64(&found[3], &out->original.timestamp_ms);
    out->code = found[4].value;
    out->why = found[5].value;
    if (!read_name(&found[0], TOPIC_MAX, &out->original.topic) ||
        !read_be32(&found[1], &out->original.partition) ||
        !read_be64(&found[2], &out->original.offset)) {
        return false;
    }
    strip(out, &message->headers, 0, theirs, sizeof theirs / sizeof theirs[0]);
    return true;
}

/* --- any ------------------------------------------------------------------ */

bool kafka_dead_letter_read(const struct envelope *message,
                            struct kafka_dead_letter *out)
{
    size_t from;

    CHECK(message->kind == ENVELOPE_KAFKA);
    *out = (struct kafka_dead_letter){.headers = BUF_INIT};
    if (find_block(&message->headers, &from)) {
        return read_onced(message, from, out);
    }
    return read_spring(message, spring_names[0], out) ||
           read_spring(message, spring_names[1], out) ||
           read_connect(message, out);
}

void kafka_dead_letter_free(struct kafka_dead_letter *letter)
{
    buf_free(&letter->headers);
}

void kafka_dead_letter_count_replay(struct kafka_dead_letter *letter)
{
    struct buf text = BUF_INIT;

    CHECK(letter->has_original);
    if (letter->replays < UINT32_MAX) {
        letter->replays++;
    }
    buf_printf(&text, "%u", (unsigned)letter->replays);
    headers_add(&letter->headers, SLICE(DEAD_LETTER_REPLAYS), buf_slice(&text));
    buf_free(&text);
    letter->original.headers.flat = buf_slice(&letter->headers);
    letter->original.headers.count++;
}
