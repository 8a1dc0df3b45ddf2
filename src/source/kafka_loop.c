/* SPDX-License-Identifier: MIT */
#include "source/kafka_loop.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "source/kafka_partition.h"
#include "source/kafka_rebalance.h"

enum {
    TICK_MS = 1000,
    CLOSE_MS = 10000,
    CLOSE_STEP_MS = 50,
    OVER_MS = 1000,
    POLLS_MAX = 64,
    WHY_SIZE = 512,
};

/* --- wake-ups ------------------------------------------------------------- */

void kafka_loop_wake(struct kafka_source *source)
{
    uint64_t one = 1;

    if (!atomic_exchange(&source->is_woken, true)) {
        ssize_t n = write(source->wake_fd, &one, sizeof one);

        CHECK(n == (ssize_t)sizeof one);
    }
}

void kafka_loop_watch(struct kafka_source *source, rd_kafka_queue_t *queue)
{
    const uint64_t one = 1;

    rd_kafka_queue_io_event_enable(queue, source->wake_fd, &one, sizeof one);
}

/* Under the lock also the wake-up: once the thread can see what came back, it
 * may end and be freed. */
void kafka_loop_answered(struct delivery *delivery)
{
    struct kafka_delivery *ours = (struct kafka_delivery *)delivery;
    struct kafka_source *source = ours->partition->source;

    CHECK(pthread_mutex_lock(&source->back_lock) == 0);
    ours->next_back = source->answered;
    source->answered = ours;
    kafka_loop_wake(source);
    CHECK(pthread_mutex_unlock(&source->back_lock) == 0);
}

void kafka_loop_done(struct assignment_order *order)
{
    struct kafka_partition *partition = order->assignment->context;
    struct kafka_source *source = partition->source;

    CHECK(pthread_mutex_lock(&source->back_lock) == 0);
    order->item.next = source->done_orders;
    source->done_orders = &order->item;
    kafka_loop_wake(source);
    CHECK(pthread_mutex_unlock(&source->back_lock) == 0);
}

void kafka_loop_at(struct kafka_source *source, int64_t boot_ms)
{
    if (boot_ms < source->next_ms) {
        source->next_ms = boot_ms;
    }
}

static void wait_for_cause(struct kafka_source *source, int64_t for_ms)
{
    struct pollfd wake = {.fd = source->wake_fd, .events = POLLIN};
    uint64_t ignored;
    int n = poll(&wake, 1, (int)for_ms);

    CHECK(n >= 0 || errno == EINTR);
    if (n > 0) {
        (void)read(source->wake_fd, &ignored, sizeof ignored);
    }
    /* Before anything is looked at: what comes from here on wakes again. */
    atomic_store(&source->is_woken, false);
}

/* --- what comes back ------------------------------------------------------ */

/* The list is newest first; orders are to be seen as they were done. */
static struct queue_item *reverse(struct queue_item *list)
{
    struct queue_item *reversed = NULL;

    while (list != NULL) {
        struct queue_item *next = list->next;

        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

static void take_back(struct kafka_source *source)
{
    struct kafka_delivery *answered;
    struct queue_item *done;

    CHECK(pthread_mutex_lock(&source->back_lock) == 0);
    answered = source->answered;
    done = source->done_orders;
    source->answered = NULL;
    source->done_orders = NULL;
    CHECK(pthread_mutex_unlock(&source->back_lock) == 0);
    while (answered != NULL) {
        struct kafka_delivery *next = answered->next_back;

        kafka_partition_answered(answered->partition);
        answered = next;
    }
    done = reverse(done);
    while (done != NULL) {
        struct assignment_order *order = (struct assignment_order *)done;

        done = done->next;
        kafka_partition_done(order->assignment->context, order);
    }
}

bool kafka_loop_await(struct kafka_source *source,
                      bool (*is_met)(const struct kafka_source *source),
                      int64_t for_ms)
{
    const struct clock *clock = source->options.clock;
    int64_t until_ms = clock_boot_ms(clock) + for_ms;

    for (;;) {
        int64_t rest_ms;

        take_back(source);
        if (is_met(source)) {
            return true;
        }
        rest_ms = until_ms - clock_boot_ms(clock);
        if (rest_ms <= 0) {
            return false;
        }
        wait_for_cause(source, rest_ms < TICK_MS ? rest_ms : TICK_MS);
    }
}

/* --- signs of life -------------------------------------------------------- */

bool kafka_loop_alive(struct kafka_source *source)
{
    int64_t now_ms = clock_boot_ms(source->options.clock);
    int64_t silent_ms = now_ms - source->alive_ms;
    struct log_line line;

    source->now_ms = source->alive_ms = now_ms;
    if (silent_ms < source->silence_ms) {
        return true;
    }
    if (source->n_partitions == 0) {
        return true;
    }
    if (log_begin(&line, LOG_WARN, "kafka",
                  "this process did not run for longer than its group waits: "
                  "its partitions are given up")) {
        log_str(&line, "group", slice_of(source->options.group));
        log_int(&line, "silent_ms", silent_ms);
        log_end(&line);
    }
    kafka_rebalance_fence_all(source);
    source->rejoin_why = "it did not run";
    return false;
}

/* --- offsets -------------------------------------------------------------- */

static void count_refused(struct kafka_source *source,
                          const rd_kafka_topic_partition_list_t *offsets)
{
    for (int i = 0; i < offsets->cnt; i++) {
        if (offsets->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            atomic_fetch_add(&source->tally.refused, 1);
        }
    }
}

/* A partition that has gone meanwhile is refused by the library, which is
 * right: its next owner finds the ids. */
void kafka_loop_store(struct kafka_source *source)
{
    rd_kafka_topic_partition_list_t *offsets = NULL;

    for (size_t i = 0; i < source->n_partitions; i++) {
        struct kafka_partition *partition = source->partitions[i];
        int64_t offset = kafka_partition_unstored(partition);

        if (offset < 0 || partition->phase == KAFKA_OPENING ||
            partition->is_lost) {
            continue;
        }
        if (offsets == NULL) {
            offsets =
                rd_kafka_topic_partition_list_new((int)source->n_partitions);
        }
        rd_kafka_topic_partition_list_add(offsets, partition->feed->topic,
                                          partition->assignment.number)
            ->offset = offset;
        partition->stored = offset;
    }
    if (offsets == NULL) {
        return;
    }
    (void)rd_kafka_offsets_store(source->client, offsets);
    count_refused(source, offsets);
    rd_kafka_topic_partition_list_destroy(offsets);
}

/* --- errors --------------------------------------------------------------- */

void kafka_loop_fail(struct kafka_source *source)
{
    char why[WHY_SIZE] = "";
    struct buf text = BUF_INIT;
    rd_kafka_resp_err_t code =
        rd_kafka_fatal_error(source->client, why, sizeof why);

    if (source->has_failed) {
        return;
    }
    source->has_failed = true;
    buf_printf(&text, "kafka group \"%s\": %s", source->options.group, why);
    if (code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) {
        buf_add_str(&text, ": another member has its group.instance.id");
    }
    source->options.fatal(source->options.fatal_ctx, buf_cstr(&text));
    buf_free(&text);
}

static void tell_error(const struct kafka_source *source,
                       const rd_kafka_message_t *message)
{
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "kafka", "consumer")) {
        log_str(&line, "group", slice_of(source->options.group));
        if (message->rkt != NULL) {
            log_str(&line, "topic",
                    slice_of(rd_kafka_topic_name(message->rkt)));
        }
        log_str(&line, "err", slice_of(rd_kafka_message_errstr(message)));
        log_end(&line);
    }
}

/* --- turns ---------------------------------------------------------------- */

static void poll_consumer(struct kafka_source *source)
{
    for (int i = 0; i < POLLS_MAX; i++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(source->client, 0);

        if (message == NULL) {
            return;
        }
        /* Each partition has a queue of its own: a message here would be
         * lost. */
        CHECK(message->err != RD_KAFKA_RESP_ERR_NO_ERROR);
        if (rd_kafka_fatal_error(source->client, NULL, 0) != 0) {
            kafka_loop_fail(source);
        } else {
            tell_error(source, message);
        }
        rd_kafka_message_destroy(message);
    }
    source->has_more = true;
}

static void serve_partitions(struct kafka_source *source)
{
    size_t n = source->n_partitions;

    for (size_t i = 0; i < n && source->rejoin_why == NULL; i++) {
        struct kafka_partition *partition =
            source->partitions[(source->first + i) % n];

        source->has_more |= kafka_partition_serve(partition);
    }
    source->first = n > 0 ? (source->first + 1) % n : 0;
}

static void turn(struct kafka_source *source)
{
    source->has_more = false;
    source->next_ms = INT64_MAX;
    (void)kafka_loop_alive(source);
    take_back(source);
    if (source->rejoin_why != NULL) {
        kafka_rebalance_rejoin(source);
    }
    poll_consumer(source);
    kafka_loop_store(source);
    serve_partitions(source);
    kafka_partition_sweep(source);
    if (source->rejoin_why != NULL) {
        source->has_more = true;
    }
}

static int64_t wait_ms(const struct kafka_source *source)
{
    int64_t tick_ms =
        source->silence_ms / 4 < TICK_MS ? source->silence_ms / 4 : TICK_MS;
    int64_t rest_ms;

    if (source->has_more) {
        return 0;
    }
    if (source->next_ms == INT64_MAX) {
        return tick_ms;
    }
    rest_ms = source->next_ms - clock_boot_ms(source->options.clock);
    if (rest_ms < 0) {
        return 0;
    }
    return rest_ms < tick_ms ? rest_ms : tick_ms;
}

/* --- the end -------------------------------------------------------------- */

static bool has_no_partition(const struct kafka_source *source)
{
    for (size_t i = 0; i < source->n_partitions; i++) {
        const struct kafka_partition *partition = source->partitions[i];

        if (partition->phase != KAFKA_OVER || partition->is_with_engine) {
            return false;
        }
    }
    return true;
}

/* The library's own close waits without a limit. */
static void close_consumer(struct kafka_source *source)
{
    const struct clock *clock = source->options.clock;
    int64_t until_ms = clock_boot_ms(clock) + CLOSE_MS;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(source->client);
    rd_kafka_error_t *error =
        rd_kafka_consumer_close_queue(source->client, queue);

    while (error == NULL && rd_kafka_consumer_closed(source->client) == 0 &&
           clock_boot_ms(clock) < until_ms) {
        (void)rd_kafka_queue_poll_callback(queue, CLOSE_STEP_MS);
        source->alive_ms = clock_boot_ms(clock);
    }
    /* After a fatal error there is no group to leave, and nothing closes. */
    source->is_closed =
        error != NULL || rd_kafka_consumer_closed(source->client) != 0;
    rd_kafka_error_destroy(error);
    rd_kafka_queue_destroy(queue);
}

static void *run(void *arg)
{
    struct kafka_source *source = arg;

    source->alive_ms = clock_boot_ms(source->options.clock);
    while (!atomic_load(&source->is_ending)) {
        turn(source);
        wait_for_cause(source, wait_ms(source));
    }
    take_back(source);
    kafka_loop_store(source);
    close_consumer(source);
    kafka_rebalance_fence_all(source);
    (void)kafka_loop_await(source, has_no_partition, OVER_MS);
    kafka_partition_clear(source);
    return NULL;
}

bool kafka_loop_start(struct kafka_source *source, struct err *err)
{
    if (!thread_start(&source->thread, run, source, err)) {
        return false;
    }
    source->has_thread = true;
    (void)pthread_setname_np(source->thread, "kafka"); /* for people */
    return true;
}

void kafka_loop_stop(struct kafka_source *source)
{
    if (!source->has_thread) {
        return;
    }
    atomic_store(&source->is_ending, true);
    kafka_loop_wake(source);
    CHECK(pthread_join(source->thread, NULL) == 0);
    source->has_thread = false;
}
