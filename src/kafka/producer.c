/* SPDX-License-Identifier: MIT */
#include "kafka/producer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "kafka/message.h"

enum {
    WAIT_MS = 1000,  /* at most, should a wake-up of the library be missed */
    PAUSE_MS = 1000, /* between two clients, should each end at once */
    PURGE_MS = 100,  /* how long one look at the reports of a purge takes */
    REASON_SIZE = 512,
    TOPIC_MAX = 249, /* characters */
};

struct kafka_topic {
    struct kafka_topic *next;
    char *name;
    int64_t timeout_ms;
    rd_kafka_topic_t *handle; /* the thread's; of this client, NULL: not yet */
};

struct kafka_producer {
    char *cluster;
    rd_kafka_conf_t *conf; /* each client takes a copy */
    size_t max_bytes;
    struct kafka_topic *topics;
    pthread_t thread;
    bool has_thread;
    int wake_fd; /* by kafka_producer_send, _stop, and the library */
    /* what waits for the thread, in order */
    pthread_mutex_t lock;
    struct kafka_send *first, *last;
    bool is_stopped;
    /* the thread's */
    rd_kafka_t *client; /* NULL: the last one ended for good */
    rd_kafka_queue_t *events;
    bool is_fatal;
    int64_t opened_boot_ms;
    size_t n_flying; /* given to the client, without a report */
};

/* --- what a report proves ------------------------------------------------- */

/* The broker, or the library in its place, said no to this very message. */
static bool is_refusal(rd_kafka_resp_err_t error)
{
    static const rd_kafka_resp_err_t refusals[] = {
        RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE,
        RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
        RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
        RD_KAFKA_RESP_ERR_INVALID_RECORD,
        RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
        RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT,
        RD_KAFKA_RESP_ERR__INVALID_ARG,
    };

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (error == refusals[i]) {
            return true;
        }
    }
    return false;
}

enum kafka_sent kafka_sent_of(rd_kafka_resp_err_t error,
                              rd_kafka_msg_status_t status)
{
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return KAFKA_SENT;
    }
    /* Ahead of the status, which is "possibly" for most of these. */
    if (is_refusal(error)) {
        return KAFKA_REFUSED;
    }
    return status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED ? KAFKA_NOT_SENT
                                                       : KAFKA_MAYBE_SENT;
}

static void finish(struct kafka_send *send, enum kafka_sent sent,
                   rd_kafka_resp_err_t error)
{
    send->sent = sent;
    send->error = error;
    send->done(send);
}

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message,
                      void *opaque)
{
    struct kafka_producer *producer = opaque;
    struct kafka_send *send = message->_private;

    (void)client;
    CHECK(producer->n_flying > 0);
    producer->n_flying--;
    send->partition = message->partition;
    send->offset = message->offset;
    finish(send, kafka_sent_of(message->err, rd_kafka_message_status(message)),
           message->err);
}

/* --- clients of the library ----------------------------------------------- */

static void on_error(rd_kafka_t *client, int error, const char *reason,
                     void *opaque)
{
    struct kafka_producer *producer = opaque;
    struct log_line line;

    (void)client;
    if (error == RD_KAFKA_RESP_ERR__FATAL) {
        producer->is_fatal = true;
    }
    /* Of others the library logs a line of its own. */
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN &&
        log_begin(&line, LOG_WARN, "kafka", "producer: no broker")) {
        log_str(&line, "cluster", slice_of(producer->cluster));
        log_str(&line, "err", slice_of(reason));
        log_end(&line);
    }
}

static bool open_client(struct kafka_producer *producer, struct err *err)
{
    static const uint64_t one = 1;
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(producer->conf);
    char why[REASON_SIZE];

    producer->opened_boot_ms = clock_boot_ms(clock_system());
    producer->is_fatal = false;
    producer->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (producer->client == NULL) {
        rd_kafka_conf_destroy(conf);
        return err_set(err, ERR_CONFIG, "kafka cluster \"%s\": producer: %s",
                       producer->cluster, why);
    }
    producer->events = rd_kafka_queue_get_main(producer->client);
    rd_kafka_queue_io_event_enable(producer->events, producer->wake_fd, &one,
                                   sizeof one);
    return true;
}

/* Every message has its report when this returns. */
static void close_client(struct kafka_producer *producer)
{
    if (producer->client == NULL) {
        return;
    }
    while (producer->n_flying > 0) {
        (void)rd_kafka_purge(producer->client, RD_KAFKA_PURGE_F_QUEUE |
                                                   RD_KAFKA_PURGE_F_INFLIGHT);
        (void)rd_kafka_poll(producer->client, PURGE_MS);
    }
    for (struct kafka_topic *topic = producer->topics; topic != NULL;
         topic = topic->next) {
        if (topic->handle != NULL) {
            rd_kafka_topic_destroy(topic->handle);
            topic->handle = NULL;
        }
    }
    rd_kafka_queue_io_event_enable(producer->events, -1, NULL, 0);
    rd_kafka_queue_destroy(producer->events);
    rd_kafka_destroy(producer->client);
    producer->client = NULL;
}

static void end_fatal(struct kafka_producer *producer)
{
    char why[REASON_SIZE] = "";
    struct log_line line;

    (void)rd_kafka_fatal_error(producer->client, why, sizeof why);
    if (log_begin(&line, LOG_ERROR, "kafka", "producer: ended, made anew")) {
        log_str(&line, "cluster", slice_of(producer->cluster));
        log_str(&line, "err", slice_of(why));
        log_end(&line);
    }
    close_client(producer);
}

static void open_again(struct kafka_producer *producer)
{
    struct err err;

    if (clock_boot_ms(clock_system()) - producer->opened_boot_ms >= PAUSE_MS &&
        !open_client(producer, &err)) {
        log_error("kafka", "producer: not made anew", &err);
    }
}

/* --- messages ------------------------------------------------------------ */

static void open_topic(struct kafka_producer *producer,
                       struct kafka_topic *topic)
{
    rd_kafka_topic_conf_t *conf =
        rd_kafka_default_topic_conf_dup(producer->client);
    char ms[24];
    char why[REASON_SIZE];
    int len = snprintf(ms, sizeof ms, "%" PRId64, topic->timeout_ms);
    rd_kafka_conf_res_t result;

    CHECK(len > 0);
    result = rd_kafka_topic_conf_set(conf, "message.timeout.ms", ms, why,
                                     sizeof why);
    CHECK(result == RD_KAFKA_CONF_OK);
    topic->handle = rd_kafka_topic_new(producer->client, topic->name, conf);
    CHECK(topic->handle != NULL);
}

/* NULL is a null key or value; an empty one points somewhere. */
static void *bytes_of(bool is_there, struct slice bytes)
{
    static char empty[1];

    if (!is_there) {
        return NULL;
    }
    return bytes.len == 0 ? empty : (void *)(uintptr_t)bytes.data;
}

static rd_kafka_resp_err_t give(struct kafka_producer *producer,
                                struct kafka_send *send,
                                rd_kafka_headers_t *headers)
{
    const struct envelope *message = &send->message;
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = send->topic->handle},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = send},
        /* Not copied: the library is done with it when it reports. */
        {.vtype = RD_KAFKA_VTYPE_VALUE,
         .u.mem = {bytes_of(message->has_body, message->body),
                   message->body.len}},
        {.vtype = RD_KAFKA_VTYPE_KEY,
         .u.mem = {bytes_of(message->has_key, message->key), message->key.len}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP,
         .u.i64 = message->timestamp_ms > 0 ? message->timestamp_ms : 0},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
    };
    size_t n = sizeof parts / sizeof parts[0];
    rd_kafka_error_t *problem = rd_kafka_produceva(producer->client, parts,
                                                   headers == NULL ? n - 1 : n);
    rd_kafka_resp_err_t error = rd_kafka_error_code(problem);

    rd_kafka_error_destroy(problem);
    return error;
}

static void produce(struct kafka_producer *producer, struct kafka_send *send)
{
    rd_kafka_headers_t *headers;
    rd_kafka_resp_err_t error;

    if (producer->client == NULL) {
        finish(send, KAFKA_NOT_SENT, RD_KAFKA_RESP_ERR__FATAL);
        return;
    }
    if (send->topic->handle == NULL) {
        open_topic(producer, send->topic);
    }
    send->build(send);
    headers = kafka_message_headers(&send->message.headers);
    producer->n_flying++;
    error = give(producer, send, headers);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        producer->n_flying--;
        if (headers != NULL) {
            rd_kafka_headers_destroy(headers);
        }
        finish(send, kafka_sent_of(error, RD_KAFKA_MSG_STATUS_NOT_PERSISTED),
               error);
    }
}

/* --- the thread ---------------------------------------------------------- */

/* What waits, as a list; false once it is stopped. */
static bool take(struct kafka_producer *producer, struct kafka_send **first)
{
    bool is_stopped;

    CHECK(pthread_mutex_lock(&producer->lock) == 0);
    *first = producer->first;
    producer->first = NULL;
    producer->last = NULL;
    is_stopped = producer->is_stopped;
    CHECK(pthread_mutex_unlock(&producer->lock) == 0);
    return !is_stopped;
}

static void produce_all(struct kafka_producer *producer,
                        struct kafka_send *send)
{
    while (send != NULL) {
        struct kafka_send *next = send->next;

        produce(producer, send);
        send = next;
    }
}

static void refuse_all(struct kafka_send *send)
{
    while (send != NULL) {
        struct kafka_send *next = send->next;

        finish(send, KAFKA_NOT_SENT, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
        send = next;
    }
}

static void serve(struct kafka_producer *producer)
{
    if (producer->client == NULL) {
        open_again(producer);
        return;
    }
    (void)rd_kafka_poll(producer->client, 0);
    if (producer->is_fatal) {
        end_fatal(producer);
    }
}

static void wait_for_work(struct kafka_producer *producer)
{
    struct pollfd wanted = {.fd = producer->wake_fd, .events = POLLIN};
    uint64_t count;

    if (poll(&wanted, 1, WAIT_MS) > 0) {
        CHECK(read(producer->wake_fd, &count, sizeof count) == sizeof count);
    }
}

static void *run(void *self)
{
    struct kafka_producer *producer = self;
    struct kafka_send *sends;

    while (take(producer, &sends)) {
        produce_all(producer, sends);
        serve(producer);
        wait_for_work(producer);
    }
    refuse_all(sends);
    close_client(producer);
    return NULL;
}

/* --- for all threads ------------------------------------------------------ */

static void wake(struct kafka_producer *producer)
{
    uint64_t one = 1;

    CHECK(write(producer->wake_fd, &one, sizeof one) == sizeof one);
}

static void append(struct kafka_producer *producer, struct kafka_send *send)
{
    if (producer->first == NULL) {
        producer->first = send;
    } else {
        producer->last->next = send;
    }
    producer->last = send;
}

void kafka_producer_send(struct kafka_producer *producer,
                         struct kafka_send *send)
{
    bool is_stopped;
    bool was_empty;

    send->next = NULL;
    CHECK(pthread_mutex_lock(&producer->lock) == 0);
    is_stopped = producer->is_stopped;
    was_empty = producer->first == NULL;
    if (!is_stopped) {
        append(producer, send);
    }
    CHECK(pthread_mutex_unlock(&producer->lock) == 0);
    if (is_stopped) {
        refuse_all(send);
    } else if (was_empty) {
        wake(producer);
    }
}

/* --- from new to free ----------------------------------------------------- */

static size_t read_max_bytes(const rd_kafka_conf_t *conf)
{
    char text[24];
    size_t len = sizeof text;
    uint64_t max = 0;

    CHECK(rd_kafka_conf_get(conf, "message.max.bytes", text, &len) ==
          RD_KAFKA_CONF_OK);
    CHECK(text_u64(slice_of(text), &max));
    return (size_t)max;
}

static bool start(struct kafka_producer *producer, struct err *err)
{
    producer->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (producer->wake_fd < 0) {
        return err_set(err, ERR_AGAIN, "eventfd: %s", strerror(errno));
    }
    if (!open_client(producer, err)) {
        return false;
    }
    producer->has_thread = thread_start(&producer->thread, run, producer, err);
    return producer->has_thread;
}

bool kafka_producer_new(struct kafka_producer **out,
                        const struct kafka_cluster *cluster, struct err *err)
{
    struct kafka_producer *producer;
    rd_kafka_conf_t *conf;

    if (!kafka_conf_new(&conf, KAFKA_USE_PRODUCER, cluster, err)) {
        return false;
    }
    producer = mem_new(1, sizeof *producer);
    producer->cluster = mem_strdup(cluster->name);
    producer->conf = conf;
    producer->max_bytes = read_max_bytes(conf);
    producer->wake_fd = -1;
    CHECK(pthread_mutex_init(&producer->lock, NULL) == 0);
    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, on_error);
    if (!start(producer, err)) {
        kafka_producer_free(producer);
        return false;
    }
    *out = producer;
    return true;
}

static bool is_topic_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.data[i];

        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && byte != '.' && byte != '_' &&
            byte != '-') {
            return false;
        }
    }
    return name.len > 0 && name.len <= TOPIC_MAX &&
           !slice_eq(name, SLICE(".")) && !slice_eq(name, SLICE(".."));
}

bool kafka_producer_topic(struct kafka_producer *producer, const char *name,
                          int64_t timeout_ms, struct kafka_topic **out,
                          struct err *err)
{
    struct kafka_topic *topic = producer->topics;

    CHECK(timeout_ms > 0);
    if (!is_topic_name(slice_of(name))) {
        return err_set(err, ERR_CONFIG,
                       "topic \"%s\": 1 to %d of a-z A-Z 0-9 . _ - are allowed",
                       name, TOPIC_MAX);
    }
    timeout_ms = timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX;
    while (topic != NULL && strcmp(topic->name, name) != 0) {
        topic = topic->next;
    }
    if (topic == NULL) {
        topic = mem_new(1, sizeof *topic);
        topic->name = mem_strdup(name);
        topic->next = producer->topics;
        producer->topics = topic;
    }
    if (topic->timeout_ms < timeout_ms) {
        topic->timeout_ms = timeout_ms;
    }
    *out = topic;
    return true;
}

size_t kafka_producer_max_bytes(const struct kafka_producer *producer)
{
    return producer->max_bytes;
}

void kafka_producer_stop(struct kafka_producer *producer)
{
    CHECK(pthread_mutex_lock(&producer->lock) == 0);
    producer->is_stopped = true;
    CHECK(pthread_mutex_unlock(&producer->lock) == 0);
    if (producer->has_thread) {
        wake(producer);
        CHECK(pthread_join(producer->thread, NULL) == 0);
        producer->has_thread = false;
    }
}

void kafka_producer_free(struct kafka_producer *producer)
{
    if (producer == NULL) {
        return;
    }
    kafka_producer_stop(producer);
    close_client(producer); /* of one whose thread did not start */
    while (producer->topics != NULL) {
        struct kafka_topic *topic = producer->topics;

        producer->topics = topic->next;
        free(topic->name);
        free(topic);
    }
    if (producer->wake_fd >= 0) {
        (void)close(producer->wake_fd);
    }
    CHECK(pthread_mutex_destroy(&producer->lock) == 0);
    rd_kafka_conf_destroy(producer->conf);
    free(producer->cluster);
    free(producer);
}
