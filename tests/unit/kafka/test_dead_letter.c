/* SPDX-License-Identifier: MIT */
#include "kafka/dead_letter.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Lists of headers are written here by hand, one "name=value" for each; a
 * value may hold any bytes, "name" alone has none (null). */
struct text {
    const char *data;
    size_t len;
};
#define T(literal)                                                             \
    {                                                                          \
        literal, sizeof(literal) - 1                                           \
    }

static struct headers list_of(const struct text *texts, size_t n,
                              struct buf *flat)
{
    for (size_t i = 0; i < n; i++) {
        struct slice all = {texts[i].data, texts[i].len};
        size_t end = slice_find(all, '=');
        struct slice name = {all.data, end};
        if (end == all.len)
            headers_add_null(flat, name);
        else
            headers_add(flat, name, slice_from(all, end + 1));
    }
    return (struct headers){buf_slice(flat), (uint32_t)n};
}

#define ASSERT_HEADERS(got, ...)                                               \
    do {                                                                       \
        static const struct text want[] = {__VA_ARGS__};                       \
        assert_headers(got, want, sizeof want / sizeof want[0], __LINE__);     \
    } while (0)

static void assert_headers(const struct headers *got, const struct text *want,
                           size_t n, int line)
{
    struct buf flat = BUF_INIT;
    struct header header;
    (void)list_of(want, n, &flat);
    if (!slice_eq(got->flat, buf_slice(&flat)))
        for (size_t at = 0; headers_next(got, &at, &header);)
            fprintf(stderr, "got %.*s=%.*s\n", (int)header.name.len,
                    header.name.data, (int)header.value.len, header.value.data);
    cr_assert(slice_eq(got->flat, buf_slice(&flat)), "line %d", line);
    cr_assert_eq(got->count, n, "line %d", line);
    buf_free(&flat);
}

static const struct text user[] = {T("trace=\x00\xff"), T("none"), T("empty="),
                                   T("trace=2")};

static struct kafka_dead_letter letter_of(struct headers headers)
{
    return (struct kafka_dead_letter){
        .route = SLICE("orders"),
        .id = SLICE("evt_1"),
        .idempotency_key = SLICE("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
        .reason = SLICE("exhausted"),
        .code = SLICE("503"),
        .why = SLICE("status 503"),
        .run = 1,
        .attempts = 7,
        .deliveries = 2,
        .first_seen_ms = 1700000000123,
        .died_ms = 1700000060000,
        .has_original = true,
        .original = {.kind = ENVELOPE_KAFKA,
                     .received_wall_ms = 1700000000200,
                     .headers = headers,
                     .topic = SLICE("orders"),
                     .partition = 3,
                     .offset = 4294967298,
                     .timestamp_ms = 1700000000000,
                     .key = SLICE("k\x00y"),
                     .has_key = true,
                     .body = SLICE("{}"),
                     .has_body = true},
    };
}

static const struct kafka_dead_letter_form plain = {.max_bytes = 1000000};

Test(dead_letter, the_original_is_unchanged_and_the_block_behind_it)
{
    struct buf flat = BUF_INIT, out = BUF_INIT;
    struct kafka_dead_letter letter = letter_of(list_of(user, 4, &flat));
    struct envelope message;
    kafka_dead_letter_write(&letter, &plain, &out, &message);
    cr_assert(message.has_key && slice_eq(message.key, SLICE("k\x00y")));
    cr_assert(message.has_body && slice_eq(message.body, SLICE("{}")));
    cr_assert_eq(message.timestamp_ms, 1700000000000);
    ASSERT_HEADERS(
        &message.headers, T("trace=\x00\xff"), T("none"), T("empty="),
        T("trace=2"), T("onced-dead-letter=1"), T("onced-source=kafka"),
        T("onced-topic=orders"), T("onced-partition=3"),
        T("onced-offset=4294967298"), T("onced-timestamp=1700000000000"),
        T("onced-route=orders"), T("onced-event-id=evt_1"),
        T("onced-replays=0"), T("onced-reason=exhausted"), T("onced-code=503"),
        T("onced-why=status 503"),
        T("onced-idempotency-key=ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
        T("onced-run=1"), T("onced-attempts=7"), T("onced-deliveries=2"),
        T("onced-first-seen=2023-11-14T22:13:20.123Z"),
        T("onced-died=2023-11-14T22:14:20.000Z"));
    buf_free(&flat);
    buf_free(&out);
}

/* Numbers by hand: 3 = 00000003; 4294967298 = 2^32 + 2; 1700000000000 =
 * 0x18bcfe56800. */
Test(dead_letter, connect_and_spring_get_theirs_in_their_encodings)
{
    struct buf out = BUF_INIT;
    struct kafka_dead_letter letter = letter_of((struct headers){{NULL, 0}, 0});
    struct kafka_dead_letter_form form = {true, true, SLICE("g"), 1000000};
    struct headers tail;
    struct envelope message;
    struct header header;
    size_t at = 0;
    kafka_dead_letter_write(&letter, &form, &out, &message);
    for (int i = 0; i < 18; i++)
        cr_assert(headers_next(&message.headers, &at, &header));
    tail.flat = slice_from(message.headers.flat, at);
    tail.count = message.headers.count - 18;
    ASSERT_HEADERS(
        &tail, T("__connect.errors.topic=orders"),
        T("__connect.errors.partition=3"),
        T("__connect.errors.offset=4294967298"),
        T("__connect.errors.connector.name=orders"),
        T("__connect.errors.task.id=0"), T("__connect.errors.stage=TASK_PUT"),
        T("__connect.errors.class.name=onced"),
        T("__connect.errors.exception.class.name=onced.exhausted"),
        T("__connect.errors.exception.message=status 503"),
        T("kafka_dlt-original-topic=orders"),
        T("kafka_dlt-original-partition=\x00\x00\x00\x03"),
        T("kafka_dlt-original-offset=\x00\x00\x00\x01\x00\x00\x00\x02"),
        T("kafka_dlt-original-timestamp=\x00\x00\x01\x8b\xcf\xe5\x68\x00"),
        T("kafka_dlt-original-timestamp-type=CreateTime"),
        T("kafka_dlt-original-consumer-group=g"),
        T("kafka_dlt-exception-fqcn=onced.exhausted"),
        T("kafka_dlt-exception-message=status 503"));
    buf_free(&out);
}

Test(dead_letter, old_positions_stay_and_old_exceptions_go)
{
    static const struct text old[] = {
        T("a=1"),
        T("__connect.errors.topic=first"),
        T("__connect.errors.offset=9"),
        T("__connect.errors.exception.stacktrace=long"),
        T("kafka_dlt-original-topic=first"),
        T("kafka_dlt-exception-stacktrace=long"),
        T("kafka_dlt-key-exception-fqcn=x"),
        T("b=2"),
    };
    struct kafka_dead_letter_form form = {true, true, {NULL, 0}, 1000000};
    struct buf flat = BUF_INIT, out = BUF_INIT;
    struct kafka_dead_letter letter = letter_of(list_of(old, 8, &flat));
    struct headers head;
    struct envelope message;
    struct header header;
    size_t at = 0, n = 0;
    kafka_dead_letter_write(&letter, &form, &out, &message);
    for (int i = 0; i < 5; i++)
        cr_assert(headers_next(&message.headers, &at, &header));
    head.flat = (struct slice){message.headers.flat.data, at};
    head.count = 5;
    ASSERT_HEADERS(&head, T("a=1"), T("__connect.errors.topic=first"),
                   T("__connect.errors.offset=9"),
                   T("kafka_dlt-original-topic=first"), T("b=2"));
    for (at = 0; headers_next(&message.headers, &at, &header);)
        n += slice_eq(header.name, SLICE("kafka_dlt-original-topic")) ||
             slice_eq(header.name, SLICE("kafka_dlt-original-offset")) ||
             slice_eq(header.name, SLICE("__connect.errors.topic"));
    cr_assert_eq(n, 2);
    buf_free(&flat);
    buf_free(&out);
}

Test(dead_letter, what_is_read_is_what_arrived)
{
    struct buf flat = BUF_INIT, out = BUF_INIT;
    struct kafka_dead_letter letter = letter_of(list_of(user, 4, &flat));
    struct kafka_dead_letter_form form = {true, true, SLICE("g"), 1000000};
    struct kafka_dead_letter back;
    struct envelope message;
    kafka_dead_letter_write(&letter, &form, &out, &message);
    message.topic = SLICE("orders.dlq");
    message.partition = 0;
    message.offset = 5;
    message.received_wall_ms = 99;
    cr_assert(kafka_dead_letter_read(&message, &back));
    cr_assert_eq(back.writer, KAFKA_DEAD_LETTER_ONCED);
    cr_assert(slice_eq(back.route, SLICE("orders")));
    cr_assert(slice_eq(back.id, SLICE("evt_1")));
    cr_assert_eq(back.tenant.len, 0);
    cr_assert(slice_eq(back.reason, SLICE("exhausted")));
    cr_assert(slice_eq(back.code, SLICE("503")));
    cr_assert(slice_eq(back.why, SLICE("status 503")));
    cr_assert_eq(back.attempts, 7);
    cr_assert_eq(back.replays, 0);
    cr_assert_eq(back.first_seen_ms, 1700000000123);
    cr_assert_eq(back.died_ms, 1700000060000);
    cr_assert(back.has_original);
    cr_assert_eq(back.original.kind, ENVELOPE_KAFKA);
    cr_assert(slice_eq(back.original.topic, SLICE("orders")));
    cr_assert_eq(back.original.partition, 3);
    cr_assert_eq(back.original.offset, 4294967298);
    cr_assert_eq(back.original.timestamp_ms, 1700000000000);
    cr_assert(back.original.has_key &&
              slice_eq(back.original.key, SLICE("k\x00y")));
    cr_assert(back.original.has_body &&
              slice_eq(back.original.body, SLICE("{}")));
    ASSERT_HEADERS(&back.original.headers, T("trace=\x00\xff"), T("none"),
                   T("empty="), T("trace=2"));
    kafka_dead_letter_free(&back);
    buf_free(&flat);
    buf_free(&out);
}

Test(dead_letter, a_webhook_comes_back_as_one)
{
    static const struct text headers[] = {T("Content-Type=text/plain")};
    struct buf flat = BUF_INIT, out = BUF_INIT;
    struct kafka_dead_letter letter = letter_of((struct headers){{NULL, 0}, 0});
    struct kafka_dead_letter back;
    struct envelope message;
    letter.tenant = SLICE("acme");
    letter.original = (struct envelope){
        .kind = ENVELOPE_HTTP,
        .received_wall_ms = 1700000000200,
        .headers = list_of(headers, 1, &flat),
        .method = SLICE("POST"),
        .path = SLICE("/hooks/a"),
        .query = SLICE(""),
        .has_query = true,
        .body = SLICE("hi"),
        .has_body = true,
    };
    kafka_dead_letter_write(&letter, &plain, &out, &message);
    cr_assert(message.has_key && slice_eq(message.key, SLICE("evt_1")));
    cr_assert(slice_eq(message.body, SLICE("hi")));
    cr_assert_eq(message.timestamp_ms, 1700000000200);
    cr_assert(kafka_dead_letter_read(&message, &back));
    cr_assert(slice_eq(back.tenant, SLICE("acme")));
    cr_assert_eq(back.original.kind, ENVELOPE_HTTP);
    cr_assert(slice_eq(back.original.method, SLICE("POST")));
    cr_assert(slice_eq(back.original.path, SLICE("/hooks/a")));
    cr_assert(back.original.has_query && back.original.query.len == 0);
    cr_assert_not(back.original.has_key);
    cr_assert_eq(back.original.received_wall_ms, 1700000000200);
    ASSERT_HEADERS(&back.original.headers, T("Content-Type=text/plain"));
    kafka_dead_letter_free(&back);

    letter.has_original = false;
    kafka_dead_letter_write(&letter, &plain, &out, &message);
    cr_assert(slice_eq(message.key, SLICE("evt_1")));
    cr_assert_not(message.has_body);
    cr_assert(kafka_dead_letter_read(&message, &back));
    cr_assert_not(back.has_original);
    kafka_dead_letter_free(&back);
    buf_free(&flat);
    buf_free(&out);
}

Test(dead_letter, a_dead_letter_of_a_dead_letter_is_taken_off_layer_by_layer)
{
    struct buf flat = BUF_INIT, out = BUF_INIT, outer = BUF_INIT;
    struct kafka_dead_letter letter = letter_of(list_of(user, 4, &flat));
    struct kafka_dead_letter second = letter, back;
    struct envelope inner_message, message;
    kafka_dead_letter_write(&letter, &plain, &out, &inner_message);
    inner_message.topic = SLICE("orders.dlq");
    inner_message.partition = 0;
    inner_message.offset = 5;
    second.route = SLICE("repair");
    second.original = inner_message;
    kafka_dead_letter_write(&second, &plain, &outer, &message);
    cr_assert(kafka_dead_letter_read(&message, &back));
    cr_assert(slice_eq(back.route, SLICE("repair")));
    cr_assert(slice_eq(back.original.topic, SLICE("orders.dlq")));
    cr_assert(slice_eq(back.original.headers.flat, inner_message.headers.flat));
    cr_assert_eq(back.original.headers.count, inner_message.headers.count);
    kafka_dead_letter_free(&back);
    buf_free(&flat);
    buf_free(&out);
    buf_free(&outer);
}

Test(dead_letter, replays_are_counted_from_death_to_death)
{
    struct buf flat = BUF_INIT, out = BUF_INIT, again = BUF_INIT;
    struct kafka_dead_letter letter = letter_of(list_of(user, 4, &flat));
    struct kafka_dead_letter back, twice;
    struct envelope message;
    kafka_dead_letter_write(&letter, &plain, &out, &message);
    cr_assert(kafka_dead_letter_read(&message, &back));
    kafka_dead_letter_count_replay(&back);
    ASSERT_HEADERS(&back.original.headers, T("trace=\x00\xff"), T("none"),
                   T("empty="), T("trace=2"), T("onced-replays=1"));
    kafka_dead_letter_write(&back, &plain, &again, &message);
    cr_assert(kafka_dead_letter_read(&message, &twice));
    cr_assert_eq(twice.replays, 1);
    ASSERT_HEADERS(&twice.original.headers, T("trace=\x00\xff"), T("none"),
                   T("empty="), T("trace=2"));
    kafka_dead_letter_count_replay(&twice);
    cr_assert_eq(twice.replays, 2);
    kafka_dead_letter_free(&back);
    kafka_dead_letter_free(&twice);
    buf_free(&flat);
    buf_free(&out);
    buf_free(&again);
}

Test(dead_letter, what_a_message_has_no_room_for_is_left_out)
{
    struct buf flat = BUF_INIT, out = BUF_INIT;
    struct kafka_dead_letter letter = letter_of(list_of(user, 4, &flat));
    struct kafka_dead_letter_form form = {true, true, {NULL, 0}, 500};
    struct kafka_dead_letter back;
    struct envelope message;
    struct header header;
    static char body[1000], why[3000];
    size_t size = 0;
    letter.original.body = (struct slice){body, sizeof body};
    kafka_dead_letter_write(&letter, &form, &out, &message);
    cr_assert(kafka_dead_letter_read(&message, &back));
    cr_assert_eq(back.why.len, 0);
    cr_assert_eq(back.original.body.len, 1000);
    ASSERT_HEADERS(&back.original.headers, T("trace=\x00\xff"), T("none"),
                   T("empty="), T("trace=2"));
    kafka_dead_letter_free(&back);

    form.max_bytes = 2000;
    kafka_dead_letter_write(&letter, &form, &out, &message);
    for (size_t at = 0; headers_next(&message.headers, &at, &header);)
        size += header.name.len + header.value.len + 4;
    cr_assert_leq(size + 1000 + 100, 2000);
    cr_assert_gt(size, 600);

    memset(why, 'w', sizeof why);
    why[1023] = '\xc3'; /* two bytes that the cut would part */
    why[1024] = '\xa4';
    letter.why = (struct slice){why, sizeof why};
    form.max_bytes = 100000;
    kafka_dead_letter_write(&letter, &form, &out, &message);
    cr_assert(kafka_dead_letter_read(&message, &back));
    cr_assert_eq(back.why.len, 1023);
    kafka_dead_letter_free(&back);
    buf_free(&flat);
    buf_free(&out);
}

static bool read(const struct text *texts, size_t n,
                 struct kafka_dead_letter *out, struct buf *flat)
{
    struct envelope message = {
        .kind = ENVELOPE_KAFKA,
        .topic = SLICE("dlq"),
        .offset = 7,
        .timestamp_ms = 5,
        .received_wall_ms = 99,
        .body = SLICE("v"),
        .has_body = true,
    };
    message.headers = list_of(texts, n, flat);
    return kafka_dead_letter_read(&message, out);
}

Test(dead_letter, those_of_connect_are_read)
{
    static const struct text texts[] = {
        T("mine=1"),
        T("__connect.errors.topic=orders"),
        T("__connect.errors.partition=3"),
        T("__connect.errors.offset=4294967298"),
        T("__connect.errors.connector.name=sink"),
        T("__connect.errors.exception.class.name=java.lang.X"),
        T("__connect.errors.exception.message=bad"),
        T("__connect.errors.exception.stacktrace"),
    };
    struct buf flat = BUF_INIT;
    struct kafka_dead_letter back;
    cr_assert(read(texts, 8, &back, &flat));
    cr_assert_eq(back.writer, KAFKA_DEAD_LETTER_CONNECT);
    cr_assert_eq(back.route.len + back.id.len + back.reason.len, 0);
    cr_assert(slice_eq(back.code, SLICE("java.lang.X")));
    cr_assert(slice_eq(back.why, SLICE("bad")));
    cr_assert(slice_eq(back.original.topic, SLICE("orders")));
    cr_assert_eq(back.original.partition, 3);
    cr_assert_eq(back.original.offset, 4294967298);
    cr_assert_eq(back.original.timestamp_ms, 5);
    cr_assert(slice_eq(back.original.body, SLICE("v")));
    cr_assert_not(back.original.has_key);
    ASSERT_HEADERS(&back.original.headers, T("mine=1"));
    kafka_dead_letter_free(&back);
    buf_free(&flat);
}

Test(dead_letter, those_of_spring_are_read)
{
    static const struct text texts[] = {
        T("kafka_dlt-original-topic=orders"),
        T("kafka_dlt-original-partition=\x00\x00\x00\x03"),
        T("kafka_dlt-original-offset=\x00\x00\x00\x01\x00\x00\x00\x02"),
        T("kafka_dlt-original-timestamp=\x00\x00\x01\x8b\xcf\xe5\x68\x00"),
        T("mine=1"),
        T("kafka_dlt-exception-fqcn=old"),
        T("kafka_dlt-exception-fqcn=java.lang.X"),
        T("kafka_dlt-exception-message=bad"),
    };
    static const struct text retried[] = {
        T("retry_topic-attempts=\x03"),
        T("kafka_original-topic=orders"),
        T("kafka_original-partition=\x00\x00\x00\x03"),
        T("kafka_original-offset=\x00\x00\x00\x00\x00\x00\x00\x02"),
        T("kafka_exception-message=bad"),
        T("kafka_deliveryAttempt=\x00\x00\x00\x01"),
        T("mine=1"),
    };
    struct buf flat = BUF_INIT, other = BUF_INIT;
    struct kafka_dead_letter back;
    cr_assert(read(texts, 8, &back, &flat));
    cr_assert_eq(back.writer, KAFKA_DEAD_LETTER_SPRING);
    cr_assert(slice_eq(back.code, SLICE("java.lang.X")));
    cr_assert(slice_eq(back.why, SLICE("bad")));
    cr_assert(slice_eq(back.original.topic, SLICE("orders")));
    cr_assert_eq(back.original.partition, 3);
    cr_assert_eq(back.original.offset, 4294967298);
    cr_assert_eq(back.original.timestamp_ms, 1700000000000);
    ASSERT_HEADERS(&back.original.headers, T("mine=1"));
    kafka_dead_letter_free(&back);
    cr_assert(read(retried, 7, &back, &other));
    cr_assert_eq(back.writer, KAFKA_DEAD_LETTER_SPRING);
    cr_assert_eq(back.original.partition, 3);
    cr_assert_eq(back.original.offset, 2);
    cr_assert_eq(back.original.timestamp_ms, -1);
    ASSERT_HEADERS(&back.original.headers, T("mine=1"));
    kafka_dead_letter_free(&back);
    buf_free(&flat);
    buf_free(&other);
}

Test(dead_letter, what_is_none_or_lies_is_not_read)
{
#define ONCED                                                                  \
    T("onced-dead-letter=1"), T("onced-route=r"), T("onced-event-id=i"),       \
        T("onced-reason=poison"), T("onced-source=kafka"), T("onced-topic=t")
    static const struct {
        struct text texts[9];
        bool is_read;
    } rows[] = {
        {{ONCED, T("onced-partition=1"), T("onced-offset=2")}, true},
        {{T("a=1")}, false},
        {{T("onced-route=r"), T("onced-event-id=i")}, false},
        {{ONCED, T("onced-partition=1")}, false},
        {{ONCED, T("onced-partition=-1"), T("onced-offset=2")}, false},
        {{ONCED, T("onced-partition=2147483648"), T("onced-offset=2")}, false},
        {{ONCED, T("onced-partition"), T("onced-offset=2")}, false},
        {{ONCED, T("onced-partition=1"), T("onced-offset=9223372036854775808")},
         false},
        {{ONCED, T("onced-partition=1"), T("onced-offset=2"),
          T("onced-source=ftp")},
         false},
        {{ONCED, T("onced-partition=1"), T("onced-offset=2"),
          T("onced-event-id=")},
         false},
        {{ONCED, T("onced-partition=1"), T("onced-offset=2"),
          T("onced-dead-letter=1")},
         false},
        {{T("kafka_dlt-original-topic=t"),
          T("kafka_dlt-original-partition=\x00\x00\x03"),
          T("kafka_dlt-original-offset=\x00\x00\x00\x00\x00\x00\x00\x02")},
         false},
        {{T("kafka_dlt-original-topic=t"),
          T("kafka_dlt-original-partition=\xff\x00\x00\x03"),
          T("kafka_dlt-original-offset=\x00\x00\x00\x00\x00\x00\x00\x02")},
         false},
        {{T("__connect.errors.topic=t"), T("__connect.errors.partition=0"),
          T("__connect.errors.offset= 1")},
         false},
        {{T("__connect.errors.topic="), T("__connect.errors.partition=0"),
          T("__connect.errors.offset=1")},
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf flat = BUF_INIT;
        struct kafka_dead_letter back;
        size_t n = 0;
        while (n < 9 && rows[i].texts[n].data != NULL)
            n++;
        cr_expect_eq(read(rows[i].texts, n, &back, &flat), rows[i].is_read,
                     "row %zu", i);
        kafka_dead_letter_free(&back);
        buf_free(&flat);
    }
}
