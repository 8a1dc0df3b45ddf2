/* SPDX-License-Identifier: MIT */
#include "kafka/dead_letter.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "kafka/dead_letter_names.h"

enum {
    WHY_MAX = 1024, /* bytes of a text for people */
    /* More than the framing of a message, and of one header, takes. */
    MESSAGE_OVERHEAD = 128,
    HEADER_OVERHEAD = 10,
};

struct writer {
    struct buf *headers;
    uint32_t count;
    size_t room; /* of the message, for what can be done without */
};

/* --- headers ------------------------------------------------------------- */

static void spend(struct writer *writer, size_t bytes)
{
    writer->room -= bytes < writer->room ? bytes : writer->room;
}

static size_t size_of(struct slice name, struct slice value)
{
    return HEADER_OVERHEAD + name.len + value.len;
}

/* What a reader cannot do without. */
static void add(struct writer *writer, const char *name, struct slice value)
{
    headers_add(writer->headers, slice_of(name), value);
    writer->count++;
    spend(writer, size_of(slice_of(name), value));
}

/* What is for people and other tools: where there is room. */
static void offer(struct writer *writer, const char *name, struct slice value)
{
    if (size_of(slice_of(name), value) <= writer->room) {
        add(writer, name, value);
    }
}

static void offer_text(struct writer *writer, const char *name,
                       struct slice text)
{
    struct slice cut = {text.data, text.len < WHY_MAX ? text.len : WHY_MAX};

    if (cut.len < text.len) {
        cut.len = slice_utf8_prefix(cut);
    }
    if (cut.len > 0) {
        offer(writer, name, cut);
    }
}

static void add_int(struct writer *writer, const char *name, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, value);

    CHECK(len > 0);
    add(writer, name, (struct slice){text, (size_t)len});
}

static void offer_int(struct writer *writer, const char *name, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRId64, value);

    CHECK(len > 0);
    offer(writer, name, (struct slice){text, (size_t)len});
}

static void offer_time(struct writer *writer, const char *name, int64_t ms)
{
    char text[TEXT_TIME_SIZE];

    if (ms > 0) {
        text_time(ms, text);
        offer(writer, name, slice_of(text));
    }
}

/* --- the original -------------------------------------------------------- */

static bool is_old_exception(const struct kafka_dead_letter_form *form,
                             struct slice name)
{
    if (form->want_connect && slice_starts(name, SLICE(CONNECT_PREFIX))) {
        return !slice_eq(name, SLICE(CONNECT_TOPIC)) &&
               !slice_eq(name, SLICE(CONNECT_PARTITION)) &&
               !slice_eq(name, SLICE(CONNECT_OFFSET));
    }
    return form->want_spring && slice_starts(name, SLICE(SPRING_PREFIX)) &&
           !slice_starts(name, SLICE(SPRING_ORIGINAL));
}

static void copy(struct writer *writer, const struct header *header)
{
    if (header->is_null) {
        headers_add_null(writer->headers, header->name);
    } else {
        headers_add(writer->headers, header->name, header->value);
    }
    writer->count++;
    spend(writer, size_of(header->name, header->value));
}

/* Returns how often the event was replayed from a topic. */
static uint32_t copy_original(struct writer *writer,
                              const struct kafka_dead_letter_form *form,
                              const struct headers *headers)
{
    struct header header;
    uint64_t replays = 0;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (at == headers->flat.len &&
            slice_eq(header.name, SLICE(DEAD_LETTER_REPLAYS)) &&
            text_u64(header.value, &replays)) {
            return replays < UINT32_MAX ? (uint32_t)replays : UINT32_MAX;
        }
        if (!is_old_exception(form, header.name)) {
            copy(writer, &header);
        }
    }
    return 0;
}

/* Exactly that name: in Kafka, letters of either case differ. */
static bool has(const struct headers *headers, struct slice name)
{
    struct header header;

    for (size_t at = 0; headers_next(headers, &at, &header);) {
        if (slice_eq(header.name, name)) {
            return true;
        }
    }
    return false;
}

/* --- the block ----------------------------------------------------------- */

static void add_kafka(struct writer *writer, const struct envelope *original)
{
    add(writer, DEAD_LETTER_TOPIC, original->topic);
    add_int(writer, DEAD_LETTER_PARTITION, original->partition);
    add_int(writer, DEAD_LETTER_OFFSET, original->offset);
    if (original->timestamp_ms >= 0) {
        add_int(writer, DEAD_LETTER_TIMESTAMP, original->timestamp_ms);
    }
}

static void add_http(struct writer *writer, const struct envelope *original)
{
    add(writer, DEAD_LETTER_METHOD, original->method);
    add(writer, DEAD_LETTER_PATH, original->path);
    if (original->has_query) {
        add(writer, DEAD_LETTER_QUERY, original->query);
    }
    add_int(writer, DEAD_LETTER_TIMESTAMP, original->received_wall_ms);
}

static void add_source(struct writer *writer,
                       const struct kafka_dead_letter *letter)
{
    if (!letter->has_original) {
        add(writer, DEAD_LETTER_SOURCE, SLICE(SOURCE_NONE));
        return;
    }
    switch (letter->original.kind) {
    case ENVELOPE_HTTP:
        add(writer, DEAD_LETTER_SOURCE, SLICE(SOURCE_HTTP));
        add_http(writer, &letter->original);
        break;
    case ENVELOPE_KAFKA:
        add(writer, DEAD_LETTER_SOURCE, SLICE(SOURCE_KAFKA));
        add_kafka(writer, &letter->original);
        break;
    }
}

static void add_event(struct writer *writer,
                      const struct kafka_dead_letter *letter, uint32_t replays)
{
    add(writer, DEAD_LETTER_ROUTE, letter->route);
    add(writer, DEAD_LETTER_ID, letter->id);
    if (letter->tenant.len > 0) {
        add(writer, DEAD_LETTER_TENANT, letter->tenant);
    }
    /* Not the last of a block: there it is a replay's (copy_original). */
    add_int(writer, DEAD_LETTER_REPLAYS, replays);
    add(writer, DEAD_LETTER_REASON, letter->reason);
    if (letter->code.len > 0) {
        offer(writer, DEAD_LETTER_CODE, letter->code);
    }
    offer_text(writer, DEAD_LETTER_WHY, letter->why);
    offer(writer, DEAD_LETTER_KEY, letter->idempotency_key);
    offer_int(writer, DEAD_LETTER_RUN, letter->run);
    offer_int(writer, DEAD_LETTER_ATTEMPTS, letter->attempts);
    offer_int(writer, DEAD_LETTER_DELIVERIES, letter->deliveries);
    offer_time(writer, DEAD_LETTER_FIRST_SEEN, letter->first_seen_ms);
    offer_time(writer, DEAD_LETTER_DIED, letter->died_ms);
}

/* --- Kafka Connect's (UTF-8 strings) ------------------------------------- */

/* Stands for the class of the exception: "onced.exhausted". */
static void offer_class(struct writer *writer, const char *name,
                        struct slice reason)
{
    struct buf text = BUF_INIT;

    buf_add_str(&text, "onced.");
    buf_add_slice(&text, reason);
    offer(writer, name, buf_slice(&text));
    buf_free(&text);
}

static void offer_connect(struct writer *writer,
                          const struct kafka_dead_letter *letter)
{
    const struct envelope *original = &letter->original;

    if (letter->has_original && original->kind == ENVELOPE_KAFKA &&
        !has(&original->headers, SLICE(CONNECT_TOPIC))) {
        offer(writer, CONNECT_TOPIC, original->topic);
        offer_int(writer, CONNECT_PARTITION, original->partition);
        offer_int(writer, CONNECT_OFFSET, original->offset);
    }
    offer(writer, CONNECT_CONNECTOR, letter->route);
    offer(writer, CONNECT_TASK, SLICE("0"));
    offer(writer, CONNECT_STAGE, SLICE("TASK_PUT"));
    offer(writer, CONNECT_CLASS, SLICE("onced"));
    offer_class(writer, CONNECT_EXCEPTION, letter->reason);
    offer_text(writer, CONNECT_MESSAGE, letter->why);
}

/* --- spring-kafka's (numbers big-endian) ---------------------------------- */

static void offer_be32(struct writer *writer, const char *name, int32_t value)
{
    char bytes[4];

    bytes_put_be32(bytes, (uint32_t)value);
    offer(writer, name, (struct slice){bytes, sizeof bytes});
}

static void offer_be64(struct writer *writer, const char *name, int64_t value)
{
    char bytes[8];

    bytes_put_be64(bytes, (uint64_t)value);
    offer(writer, name, (struct slice){bytes, sizeof bytes});
}

static void offer_spring_position(struct writer *writer,
                                  const struct kafka_dead_letter_form *form,
                                  const struct envelope *original)
{
    offer(writer, SPRING_TOPIC, original->topic);
    offer_be32(writer, SPRING_PARTITION, original->partition);
    offer_be64(writer, SPRING_OFFSET, original->offset);
    if (original->timestamp_ms >= 0) {
        offer_be64(writer, SPRING_TIMESTAMP, original->timestamp_ms);
        offer(writer, SPRING_TIMESTAMP_TYPE, SLICE("CreateTime"));
    }
    if (form->group.len > 0) {
        offer(writer, SPRING_GROUP, form->group);
    }
}

static void offer_spring(struct writer *writer,
                         const struct kafka_dead_letter_form *form,
                         const struct kafka_dead_letter *letter)
{
    const struct envelope *original = &letter->original;

    if (letter->has_original && original->kind == ENVELOPE_KAFKA &&
        !has(&original->headers, SLICE(SPRING_TOPIC))) {
        offer_spring_position(writer, form, original);
    }
    offer_class(writer, SPRING_EXCEPTION, letter->reason);
    offer_text(writer, SPRING_MESSAGE, letter->why);
}

/* --- the message --------------------------------------------------------- */

static void set_content(const struct kafka_dead_letter *letter,
                        struct envelope *out)
{
    const struct envelope *original = &letter->original;

    *out = (struct envelope){.kind = ENVELOPE_KAFKA, .partition = -1};
    if (letter->has_original) {
        out->body = original->body;
        out->has_body = original->has_body;
    }
    if (letter->has_original && original->kind == ENVELOPE_KAFKA) {
        out->key = original->key;
        out->has_key = original->has_key;
        out->timestamp_ms = original->timestamp_ms;
    } else {
        out->key = letter->id;
        out->has_key = true;
        out->timestamp_ms =
            letter->has_original ? original->received_wall_ms : 0;
    }
}

void kafka_dead_letter_write(const struct kafka_dead_letter *letter,
                             const struct kafka_dead_letter_form *form,
                             struct buf *headers, struct envelope *out)
{
    struct writer writer = {headers, 0, form->max_bytes};
    uint32_t replays = 0;

    buf_clear(headers);
    set_content(letter, out);
    spend(&writer, MESSAGE_OVERHEAD + out->key.len + out->body.len);
    if (letter->has_original) {
        replays = copy_original(&writer, form, &letter->original.headers);
    }
    add(&writer, DEAD_LETTER_MARKER, SLICE(DEAD_LETTER_VERSION));
    add_source(&writer, letter);
    add_event(&writer, letter, replays);
    if (form->want_connect) {
        offer_connect(&writer, letter);
    }
    if (form->want_spring) {
        offer_spring(&writer, form, letter);
    }
    out->headers = (struct headers){buf_slice(headers), writer.count};
}
