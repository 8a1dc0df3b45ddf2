/* SPDX-License-Identifier: MIT */
#include "store/record_codec.h"

#include <assert.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"

enum { VERSION = 1, CRC_SIZE = 4, TIME_SIZE = 6 };

/* The layout byte: which of the optional parts the row has. */
enum {
    LAYOUT_WIDE = 1,
    LAYOUT_ORDER_KEY = 2,
    LAYOUT_ORIGIN = 4,
    LAYOUT_FAR = 8,
    LAYOUT_POSITION = 16,
    LAYOUT_ALL = LAYOUT_WIDE | LAYOUT_ORDER_KEY | LAYOUT_ORIGIN | LAYOUT_FAR |
                 LAYOUT_POSITION
};

enum { POSITION_SIZE = 2 + 4 + 8 };

enum { COUNTERS = 8, NARROW_MAX = 255 };
enum { TIMES = 5, NEAR_SIZE = 4 };

/* 48 bits of milliseconds; the two highest values are not times. */
#define TIME_NEVER UINT64_C(0xffffffffffff)
#define TIME_MAX INT64_C(0xfffffffffffe)

/* Times after the first are told by their distance from it. */
#define NEAR_NEVER UINT32_MAX
#define NEAR_ZERO (UINT32_MAX - 1)
#define NEAR_MAX ((int64_t)UINT32_MAX - 2)

static_assert(REASONS <= 16, "state and reason share a byte");
static_assert(RECORD_STATES <= 16, "state and reason share a byte");

struct writer {
    uint8_t *at;
};

static void put_byte(struct writer *writer, unsigned value)
{
    CHECK(value <= UINT8_MAX);
    *writer->at++ = (uint8_t)value;
}

static void put_be16(struct writer *writer, uint16_t value)
{
    bytes_put_be16(writer->at, value);
    writer->at += 2;
}

static void put_be32(struct writer *writer, uint32_t value)
{
    bytes_put_be32(writer->at, value);
    writer->at += 4;
}

static void put_be48(struct writer *writer, uint64_t value)
{
    put_be16(writer, (uint16_t)(value >> 32));
    put_be32(writer, (uint32_t)value);
}

static void put_bytes(struct writer *writer, const void *data, size_t len)
{
    if (len > 0) {
        memcpy(writer->at, data, len);
    }
    writer->at += len;
}

static void put_time(struct writer *writer, int64_t ms)
{
    if (ms == RECORD_NEVER) {
        put_be48(writer, TIME_NEVER);
        return;
    }
    CHECK(ms >= 0 && ms <= TIME_MAX);
    put_be48(writer, (uint64_t)ms);
}

static uint64_t get_be48(struct reader *reader)
{
    uint64_t high = reader_be16(reader);

    return high << 32 | reader_be32(reader);
}

static int64_t get_time(struct reader *reader)
{
    uint64_t value = get_be48(reader);

    return value == TIME_NEVER ? RECORD_NEVER : (int64_t)value;
}

static void counters_of(const struct record *record, uint32_t out[COUNTERS])
{
    out[0] = record->run;
    out[1] = record->attempt;
    out[2] = record->tries;
    out[3] = record->crashes;
    out[4] = record->probes;
    out[5] = record->backoffs;
    out[6] = record->deliveries;
    out[7] = record->drifts;
}

static void set_counters(struct record *record, const uint32_t in[COUNTERS])
{
    record->run = in[0];
    record->attempt = in[1];
    record->tries = in[2];
    record->crashes = in[3];
    record->probes = in[4];
    record->backoffs = in[5];
    record->deliveries = in[6];
    record->drifts = in[7];
}

static bool are_wide(const uint32_t counters[COUNTERS])
{
    uint32_t all = 0;

    for (size_t i = 0; i < COUNTERS; i++) {
        all |= counters[i];
    }
    return all > NARROW_MAX;
}

static void times_of(const struct record *record, int64_t out[TIMES])
{
    out[0] = record->last_seen_ms;
    out[1] = record->changed_ms;
    out[2] = record->clock_ms;
    out[3] = record->due_ms;
    out[4] = record->doubt_since_ms;
}

static void set_times(struct record *record, const int64_t in[TIMES])
{
    record->last_seen_ms = in[0];
    record->changed_ms = in[1];
    record->clock_ms = in[2];
    record->due_ms = in[3];
    record->doubt_since_ms = in[4];
}

static bool is_near(int64_t first_ms, int64_t ms)
{
    return ms == RECORD_NEVER || ms == 0 ||
           (ms >= first_ms && ms - first_ms <= NEAR_MAX && ms <= TIME_MAX);
}

static bool are_near(const struct record *record)
{
    bool near = record->first_seen_ms != RECORD_NEVER;
    int64_t times[TIMES];

    times_of(record, times);
    for (size_t i = 0; i < TIMES; i++) {
        near = near && is_near(record->first_seen_ms, times[i]);
    }
    return near;
}

static void put_near(struct writer *writer, int64_t first_ms, int64_t ms)
{
    if (ms == RECORD_NEVER) {
        put_be32(writer, NEAR_NEVER);
    } else if (ms == 0) {
        put_be32(writer, NEAR_ZERO);
    } else {
        put_be32(writer, (uint32_t)(ms - first_ms));
    }
}

static int64_t get_near(struct reader *reader, int64_t first_ms)
{
    uint32_t value = reader_be32(reader);
    int64_t ms;

    if (value >= NEAR_ZERO) {
        return value == NEAR_ZERO ? 0 : RECORD_NEVER;
    }
    ms = first_ms + value;
    reader->bad = reader->bad || ms == 0; /* which has a value of its own */
    return ms;
}

static void put_times(struct writer *writer, const struct record *record,
                      unsigned layout)
{
    int64_t times[TIMES];

    put_time(writer, record->first_seen_ms);
    times_of(record, times);
    for (size_t i = 0; i < TIMES; i++) {
        if (layout & LAYOUT_FAR) {
            put_time(writer, times[i]);
        } else {
            put_near(writer, record->first_seen_ms, times[i]);
        }
    }
}

static void get_times(struct reader *reader, unsigned layout,
                      struct record *record)
{
    int64_t first_ms = get_time(reader), times[TIMES];

    record->first_seen_ms = first_ms;
    if (first_ms == RECORD_NEVER && (layout & LAYOUT_FAR) == 0) {
        reader->bad = true;
        return;
    }
    for (size_t i = 0; i < TIMES; i++) {
        times[i] =
            layout & LAYOUT_FAR ? get_time(reader) : get_near(reader, first_ms);
    }
    set_times(record, times);
}

static uint32_t row_crc(uint64_t seq, struct slice rest)
{
    uint8_t key[8];

    bytes_put_be64(key, seq);
    return hash_crc32c(hash_crc32c(0, key, sizeof key), rest.data, rest.len);
}

static void put_counters(struct writer *writer, const struct record *record)
{
    uint32_t counters[COUNTERS];
    bool wide;

    counters_of(record, counters);
    wide = are_wide(counters);
    for (size_t i = 0; i < COUNTERS; i++) {
        if (wide) {
            put_be32(writer, counters[i]);
        } else {
            put_byte(writer, counters[i]);
        }
    }
}

static unsigned layout_of(const struct record_row *row, uint64_t seq)
{
    uint32_t counters[COUNTERS];
    unsigned layout = 0;

    counters_of(&row->record, counters);
    layout |= are_wide(counters) ? LAYOUT_WIDE : 0;
    layout |= row->record.order_key != 0 ? LAYOUT_ORDER_KEY : 0;
    layout |= row->origin != seq ? LAYOUT_ORIGIN : 0;
    layout |= are_near(&row->record) ? 0 : LAYOUT_FAR;
    layout |= row->position.stream != 0 ? LAYOUT_POSITION : 0;
    return layout;
}

static void put_record(struct writer *writer, const struct record *record,
                       unsigned layout)
{
    CHECK(record->flags <= UINT16_MAX);
    CHECK((unsigned)record->state < RECORD_STATES);
    CHECK((unsigned)record->reason < REASONS);
    put_byte(writer, (unsigned)record->state << 4 | (unsigned)record->reason);
    put_be16(writer, (uint16_t)record->flags);
    put_be16(writer, record->route);
    put_be16(writer, record->status);
    put_be32(writer, record->epoch);
    put_times(writer, record, layout);
    put_byte(writer, record->fingerprint.version);
    put_byte(writer, record->fingerprint.mode);
    put_bytes(writer, record->fingerprint.digest, FINGERPRINT_SIZE);
    put_counters(writer, record);
}

static void put_position(struct writer *writer,
                         const struct store_position *position)
{
    CHECK(position->partition >= 0 && position->offset >= 0);
    put_be16(writer, position->stream);
    put_be32(writer, (uint32_t)position->partition);
    bytes_put_be64(writer->at, (uint64_t)position->offset);
    writer->at += 8;
}

size_t record_codec_encode(const struct record_row *row, uint64_t seq,
                           uint8_t out[RECORD_CODEC_MAX])
{
    struct writer writer = {out + CRC_SIZE};
    unsigned layout = layout_of(row, seq);
    size_t len;

    CHECK(row->tenant.len <= STORE_TENANT_MAX);
    CHECK(row->id.len <= STORE_ID_MAX);
    put_byte(&writer, VERSION);
    put_byte(&writer, layout);
    put_record(&writer, &row->record, layout);
    if (layout & LAYOUT_ORDER_KEY) {
        bytes_put_be64(writer.at, row->record.order_key);
        writer.at += 8;
    }
    if (layout & LAYOUT_ORIGIN) {
        put_be48(&writer, row->origin);
    }
    if (layout & LAYOUT_POSITION) {
        put_position(&writer, &row->position);
    }
    put_be16(&writer, row->namespace);
    put_bytes(&writer, row->identity.hash, sizeof row->identity.hash);
    put_byte(&writer, (unsigned)row->tenant.len);
    put_byte(&writer, (unsigned)row->id.len);
    put_bytes(&writer, row->tenant.data, row->tenant.len);
    put_bytes(&writer, row->id.data, row->id.len);
    len = (size_t)(writer.at - out);
    CHECK(len <= RECORD_CODEC_MAX);
    bytes_put_be32(out,
                   row_crc(seq, (struct slice){(const char *)out + CRC_SIZE,
                                               len - CRC_SIZE}));
    return len;
}

static bool get_record(struct reader *reader, unsigned layout,
                       struct record *record)
{
    uint8_t both = reader_byte(reader);
    struct slice digest;

    if (both >> 4 == RECORD_NONE || both >> 4 >= RECORD_STATES ||
        (both & 15) >= REASONS) {
        return false;
    }
    record->state = (enum record_state)(both >> 4);
    record->reason = (enum reason)(both & 15);
    record->flags = reader_be16(reader);
    record->route = reader_be16(reader);
    record->status = reader_be16(reader);
    record->epoch = reader_be32(reader);
    get_times(reader, layout, record);
    record->fingerprint.version = reader_byte(reader);
    record->fingerprint.mode = reader_byte(reader);
    digest = reader_take(reader, FINGERPRINT_SIZE);
    if (reader->bad || record->route >= STORE_ROUTES_MAX) {
        return false;
    }
    memcpy(record->fingerprint.digest, digest.data, FINGERPRINT_SIZE);
    return true;
}

static bool get_counters(struct reader *reader, bool wide,
                         struct record *record)
{
    uint32_t counters[COUNTERS];

    for (size_t i = 0; i < COUNTERS; i++) {
        counters[i] = wide ? reader_be32(reader) : reader_byte(reader);
    }
    set_counters(record, counters);
    return !reader->bad && are_wide(counters) == wide;
}

/* False where it says what no position can be. */
static bool get_position(struct reader *reader, unsigned layout,
                         struct store_position *out)
{
    uint32_t partition;
    uint64_t offset;

    *out = (struct store_position){0, 0, 0};
    if ((layout & LAYOUT_POSITION) == 0) {
        return true;
    }
    out->stream = reader_be16(reader);
    partition = reader_be32(reader);
    offset = reader_be64(reader);
    if (partition > INT32_MAX || offset > INT64_MAX) {
        return false;
    }
    out->partition = (int32_t)partition;
    out->offset = (int64_t)offset;
    return true;
}

static bool get_names(struct reader *reader, struct record_row *out)
{
    struct slice hash;
    uint8_t tenant_len, id_len;

    out->namespace = reader_be16(reader);
    hash = reader_take(reader, sizeof out->identity.hash);
    tenant_len = reader_byte(reader);
    id_len = reader_byte(reader);
    out->tenant = reader_take(reader, tenant_len);
    out->id = reader_take(reader, id_len);
    if (reader->bad || reader->rest.len != 0) {
        return false;
    }
    memcpy(out->identity.hash, hash.data, sizeof out->identity.hash);
    return true;
}

bool record_codec_decode(struct slice bytes, uint64_t seq,
                         struct record_row *out)
{
    struct reader reader = {bytes, false};
    uint32_t crc = reader_be32(&reader);
    uint8_t layout;

    if (reader.bad || crc != row_crc(seq, reader.rest) ||
        reader_byte(&reader) != VERSION) {
        return false;
    }
    layout = reader_byte(&reader);
    if ((layout & ~LAYOUT_ALL) != 0 ||
        !get_record(&reader, layout, &out->record) ||
        !get_counters(&reader, layout & LAYOUT_WIDE, &out->record)) {
        return false;
    }
    out->record.order_key =
        layout & LAYOUT_ORDER_KEY ? reader_be64(&reader) : 0;
    out->origin = layout & LAYOUT_ORIGIN ? get_be48(&reader) : seq;
    return get_position(&reader, layout, &out->position) &&
           get_names(&reader, out) && layout == layout_of(out, seq);
}

/* Where the identity stands in a row of that layout. */
static size_t identity_offset(unsigned layout)
{
    size_t at = RECORD_CODEC_FIXED - sizeof(struct identity) - 2;

    at += layout & LAYOUT_WIDE ? COUNTERS * 4 : COUNTERS;
    at += layout & LAYOUT_ORDER_KEY ? 8 : 0;
    at += layout & LAYOUT_ORIGIN ? 6 : 0;
    at += layout & LAYOUT_POSITION ? POSITION_SIZE : 0;
    at += layout & LAYOUT_FAR ? TIMES * (TIME_SIZE - NEAR_SIZE) : 0;
    return at;
}

bool record_codec_identity(struct slice bytes, uint64_t seq,
                           struct identity *out)
{
    const uint8_t *row = (const uint8_t *)bytes.data;
    size_t at, lengths;

    if (bytes.len < RECORD_CODEC_FIXED ||
        bytes_get_be32(row) != row_crc(seq, slice_from(bytes, CRC_SIZE)) ||
        row[CRC_SIZE] != VERSION || (row[CRC_SIZE + 1] & ~LAYOUT_ALL) != 0) {
        return false;
    }
    at = identity_offset(row[CRC_SIZE + 1]);
    lengths = at + sizeof out->hash;
    if (bytes.len < lengths + 2 ||
        bytes.len != lengths + 2 + row[lengths] + row[lengths + 1]) {
        return false;
    }
    memcpy(out->hash, row + at, sizeof out->hash);
    return true;
}
