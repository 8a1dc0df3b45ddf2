/* SPDX-License-Identifier: MIT */
#include "kafka/message.h"

#include "base/check.h"

static void add_header(struct buf *flat, const char *name, const void *value,
                       size_t len)
{
    if (value == NULL) {
        headers_add_null(flat, slice_of(name));
    } else {
        headers_add(flat, slice_of(name), (struct slice){value, len});
    }
}

/* Headers that cannot be read are none: what the broker took is not refused
 * for them. */
static void open_headers(const rd_kafka_message_t *message, struct buf *flat,
                         struct headers *out)
{
    rd_kafka_headers_t *list;
    const char *name;
    const void *value;
    size_t len;

    out->count = 0;
    if (rd_kafka_message_headers(message, &list) ==
        RD_KAFKA_RESP_ERR_NO_ERROR) {
        while (rd_kafka_header_get_all(list, out->count, &name, &value, &len) ==
               RD_KAFKA_RESP_ERR_NO_ERROR) {
            add_header(flat, name, value, len);
            out->count++;
        }
    }
    out->flat = buf_slice(flat);
}

static int64_t timestamp_of(const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    int64_t timestamp_ms = rd_kafka_message_timestamp(message, &type);

    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp_ms;
}

static struct slice bytes_at(const void *data, size_t len)
{
    return (struct slice){data, data == NULL ? 0 : len};
}

void kafka_message_open(const rd_kafka_message_t *message,
                        int64_t received_wall_ms, struct buf *headers,
                        struct envelope *out)
{
    CHECK(message->rkt != NULL);
    buf_clear(headers);
    *out = (struct envelope){
        .kind = ENVELOPE_KAFKA,
        .received_wall_ms = received_wall_ms,
        .body = bytes_at(message->payload, message->len),
        .has_body = message->payload != NULL,
        .topic = slice_of(rd_kafka_topic_name(message->rkt)),
        .key = bytes_at(message->key, message->key_len),
        .has_key = message->key != NULL,
        .partition = message->partition,
        .offset = message->offset,
        .timestamp_ms = timestamp_of(message),
    };
    open_headers(message, headers, &out->headers);
}

rd_kafka_headers_t *kafka_message_headers(const struct headers *headers)
{
    rd_kafka_headers_t *list;
    struct header header;

    if (headers->flat.len == 0) {
        return NULL;
    }
    list = rd_kafka_headers_new(headers->count);
    for (size_t at = 0; headers_next(headers, &at, &header);) {
        const void *value = header.value.len == 0 ? "" : header.value.data;
        rd_kafka_resp_err_t error = rd_kafka_header_add(
            list, header.name.data, (ssize_t)header.name.len,
            header.is_null ? NULL : value, (ssize_t)header.value.len);

        CHECK(error == RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    return list;
}
