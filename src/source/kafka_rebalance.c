/* SPDX-License-Identifier: MIT */
#include "source/kafka_rebalance.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "source/kafka_loop.h"
#include "source/kafka_partition.h"

enum { ASK_MS = 2000, FENCE_MS = 1000 };

static bool is_cooperative(const struct kafka_source *source)
{
    const char *protocol = rd_kafka_rebalance_protocol(source->client);

    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

static void tell_refused(const struct kafka_source *source, const char *what,
                         const char *why)
{
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "kafka", what)) {
        log_str(&line, "group", slice_of(source->options.group));
        log_str(&line, "err", slice_of(why));
        log_end(&line);
    }
}

/* Taken: an error of the library, or NULL. */
static void end_error(const struct kafka_source *source, const char *what,
                      rd_kafka_error_t *error)
{
    if (error != NULL) {
        tell_refused(source, what, rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    }
}

static void end_code(const struct kafka_source *source, const char *what,
                     rd_kafka_resp_err_t code)
{
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        tell_refused(source, what, rd_kafka_err2str(code));
    }
}

/* Every wait inside a rebalance is well within what the group waits for us. */
static int64_t bounded(const struct kafka_source *source, int64_t wanted_ms)
{
    int64_t most_ms = source->silence_ms / 4;

    return wanted_ms < most_ms ? wanted_ms : most_ms;
}

/* --- what the broker knows ------------------------------------------------ */

static void ask_committed(struct kafka_source *source,
                          rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_resp_err_t code =
        rd_kafka_committed(source->client, list, (int)bounded(source, ASK_MS));

    end_code(source, "cannot read the committed offsets now", code);
    for (int i = 0; i < list->cnt; i++) {
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            list->elems[i].offset = RD_KAFKA_OFFSET_INVALID;
        }
    }
}

/* RD_KAFKA_OFFSET_BEGINNING or _END of all of them: in the protocol these
 * stand where a time would. */
static void ask_ends(struct kafka_source *source,
                     const rd_kafka_topic_partition_list_t *known,
                     int64_t which, int64_t until_ms)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_copy(known);
    int64_t rest_ms = until_ms - clock_boot_ms(source->options.clock);

    for (int i = 0; i < list->cnt; i++) {
        list->elems[i].offset = which;
    }
    (void)rd_kafka_offsets_for_times(source->client, list,
                                     rest_ms > 0 ? (int)rest_ms : 0);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        struct kafka_partition *partition =
            kafka_partition_find(source, one->topic, one->partition);

        if (one->err != RD_KAFKA_RESP_ERR_NO_ERROR || one->offset < 0) {
            continue;
        }
        if (which == RD_KAFKA_OFFSET_END) {
            partition->log_end = one->offset;
        } else {
            partition->log_start = one->offset;
        }
    }
    rd_kafka_topic_partition_list_destroy(list);
}

/* Before anything is fetched: a broker answers one request after another, and
 * a fetch that finds nothing takes half a second. */
static void ask_watermarks(struct kafka_source *source,
                           const rd_kafka_topic_partition_list_t *known)
{
    int64_t until_ms =
        clock_boot_ms(source->options.clock) + bounded(source, ASK_MS);

    ask_ends(source, known, RD_KAFKA_OFFSET_BEGINNING, until_ms);
    ask_ends(source, known, RD_KAFKA_OFFSET_END, until_ms);
}

/* --- topic ids: from 2.3.0 on --------------------------------------------- */

#if RD_KAFKA_VERSION >= 0x020300ff

static void keep_topic_id(struct kafka_source *source,
                          const rd_kafka_TopicDescription_t *description)
{
    const char *topic = rd_kafka_TopicDescription_name(description);
    const rd_kafka_Uuid_t *id = rd_kafka_TopicDescription_topic_id(description);

    if (id == NULL || rd_kafka_error_code(rd_kafka_TopicDescription_error(
                          description)) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    for (size_t i = 0; i < source->n_partitions; i++) {
        struct kafka_partition *partition = source->partitions[i];

        if (partition->phase == KAFKA_OPENING &&
            strcmp(partition->feed->topic, topic) == 0) {
            bytes_put_be64(partition->topic_id,
                           (uint64_t)rd_kafka_Uuid_most_significant_bits(id));
            bytes_put_be64(partition->topic_id + 8,
                           (uint64_t)rd_kafka_Uuid_least_significant_bits(id));
        }
    }
}

static void keep_topic_ids(struct kafka_source *source, rd_kafka_event_t *event)
{
    const rd_kafka_DescribeTopics_result_t *result =
        rd_kafka_event_DescribeTopics_result(event);
    const rd_kafka_TopicDescription_t **topics;
    size_t n = 0;

    if (result == NULL || rd_kafka_event_error(event) != 0) {
        return;
    }
    topics = rd_kafka_DescribeTopics_result_topics(result, &n);
    for (size_t i = 0; i < n; i++) {
        keep_topic_id(source, topics[i]);
    }
}

static void ask_topic_ids(struct kafka_source *source)
{
    const char **names = mem_new(source->n_feeds, sizeof *names);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(source->client);
    rd_kafka_TopicCollection_t *topics;
    rd_kafka_event_t *event;

    for (size_t i = 0; i < source->n_feeds; i++) {
        names[i] = source->feeds[i].topic;
    }
    topics = rd_kafka_TopicCollection_of_topic_names(names, source->n_feeds);
    rd_kafka_DescribeTopics(source->client, topics, NULL, queue);
    event = rd_kafka_queue_poll(queue, (int)bounded(source, ASK_MS));
    if (event != NULL) {
        keep_topic_ids(source, event);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_TopicCollection_destroy(topics);
    rd_kafka_queue_destroy(queue);
    free(names);
}

#else

static void ask_topic_ids(struct kafka_source *source)
{
    (void)source; /* this library does not tell them */
}

#endif

/* --- ASSIGN --------------------------------------------------------------- */

static const struct kafka_feed *find_feed(const struct kafka_source *source,
                                          const char *topic)
{
    for (size_t i = 0; i < source->n_feeds; i++) {
        if (strcmp(source->feeds[i].topic, topic) == 0) {
            return &source->feeds[i];
        }
    }
    return NULL;
}

/* A static member that comes back may be given what it had, of topics that it
 * no longer reads. */
static rd_kafka_topic_partition_list_t *
begin_known(struct kafka_source *source,
            const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *known =
        rd_kafka_topic_partition_list_new(list->cnt);

    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        const struct kafka_feed *feed = find_feed(source, one->topic);

        if (feed == NULL) {
            tell_refused(source, "a partition of a topic that is not read",
                         one->topic);
            continue;
        }
        (void)kafka_partition_add(source, feed, one->partition);
        (void)rd_kafka_topic_partition_list_add(known, one->topic,
                                                one->partition);
    }
    return known;
}

static void ask_all(struct kafka_source *source,
                    rd_kafka_topic_partition_list_t *known)
{
    ask_committed(source, known);
    for (int i = 0; i < known->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &known->elems[i];
        struct kafka_partition *partition =
            kafka_partition_find(source, one->topic, one->partition);

        CHECK(partition != NULL);
        partition->committed = one->offset >= 0 ? one->offset : -1;
    }
    ask_watermarks(source, known);
    ask_topic_ids(source);
}

static void open_all(struct kafka_source *source,
                     const rd_kafka_topic_partition_list_t *known)
{
    for (int i = 0; i < known->cnt; i++) {
        kafka_partition_open(kafka_partition_find(source, known->elems[i].topic,
                                                  known->elems[i].partition));
    }
}

static void assign(struct kafka_source *source,
                   const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *known = begin_known(source, list);

    atomic_fetch_add(&source->tally.assigned, 1);
    if (known->cnt > 0) {
        ask_all(source, known);
    }
    /* Fetching begins while the engine opens; delivering when it has. */
    if (is_cooperative(source)) {
        end_error(source, "cannot take partitions",
                  rd_kafka_incremental_assign(source->client, known));
    } else {
        end_code(source, "cannot take partitions",
                 rd_kafka_assign(source->client, known));
    }
    open_all(source, known);
    rd_kafka_topic_partition_list_destroy(known);
}

/* --- REVOKE --------------------------------------------------------------- */

static bool has_drained(const struct kafka_source *source)
{
    for (size_t i = 0; i < source->n_partitions; i++) {
        const struct kafka_partition *partition = source->partitions[i];

        if (partition->phase == KAFKA_DRAINING && !partition->drained) {
            return false;
        }
    }
    return true;
}

static bool has_fenced(const struct kafka_source *source)
{
    for (size_t i = 0; i < source->n_partitions; i++) {
        if (source->partitions[i]->phase == KAFKA_FENCING) {
            return false;
        }
    }
    return true;
}

static void lose(struct kafka_partition *partition)
{
    partition->is_lost = true;
    kafka_partition_fence(partition);
}

void kafka_rebalance_fence_all(struct kafka_source *source)
{
    for (size_t i = 0; i < source->n_partitions; i++) {
        if (source->partitions[i]->phase < KAFKA_FENCING) {
            lose(source->partitions[i]);
        }
    }
}

static void each(struct kafka_source *source,
                 const rd_kafka_topic_partition_list_t *list,
                 void (*visit)(struct kafka_partition *partition))
{
    for (int i = 0; i < list->cnt; i++) {
        struct kafka_partition *partition = kafka_partition_find(
            source, list->elems[i].topic, list->elems[i].partition);

        if (partition != NULL) {
            visit(partition);
        }
    }
}

static void end_storing(struct kafka_source *source)
{
    for (size_t i = 0; i < source->n_partitions; i++) {
        if (source->partitions[i]->phase >= KAFKA_FENCING) {
            source->partitions[i]->is_lost = true;
        }
    }
}

/* Work that is under way is recorded and its offset stored, so that the next
 * owner does not get it again; what does not end in time, it gets again. */
static void give_up(struct kafka_source *source,
                    const rd_kafka_topic_partition_list_t *list)
{
    int64_t drain_ms = source->options.drain_ms;
    int64_t most_ms = source->silence_ms / 2;

    each(source, list, kafka_partition_drain);
    (void)kafka_loop_await(source, has_drained,
                           drain_ms < most_ms ? drain_ms : most_ms);
    each(source, list, kafka_partition_fence);
    (void)kafka_loop_await(source, has_fenced, bounded(source, FENCE_MS));
    kafka_loop_store(source);
    end_storing(source);
}

static void unassign(struct kafka_source *source,
                     const rd_kafka_topic_partition_list_t *list)
{
    if (is_cooperative(source)) {
        end_error(source, "cannot give partitions up",
                  rd_kafka_incremental_unassign(source->client, list));
    } else {
        end_code(source, "cannot give partitions up",
                 rd_kafka_assign(source->client, NULL));
    }
}

static void revoke(struct kafka_source *source,
                   const rd_kafka_topic_partition_list_t *list)
{
    bool lost = rd_kafka_assignment_lost(source->client) != 0;

    atomic_fetch_add(lost ? &source->tally.lost : &source->tally.revoked, 1);
    if (lost) {
        tell_refused(source, "partitions were lost",
                     "the group went on without this member");
        each(source, list, lose);
    } else {
        give_up(source, list);
    }
    unassign(source, list);
}

void kafka_rebalance_on(rd_kafka_t *client, rd_kafka_resp_err_t why,
                        rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct kafka_source *source = opaque;

    CHECK(client == source->client);
    (void)kafka_loop_alive(source);
    if (why == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        assign(source, list);
    } else if (why == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
        revoke(source, list);
    } else {
        tell_refused(source, "rebalance", rd_kafka_err2str(why));
        kafka_rebalance_fence_all(source);
        end_code(source, "cannot give partitions up",
                 rd_kafka_assign(client, NULL));
    }
    (void)kafka_loop_alive(source);
}

/* --- beginning anew ------------------------------------------------------- */

rd_kafka_resp_err_t kafka_rebalance_subscribe(struct kafka_source *source)
{
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new((int)source->n_feeds);
    rd_kafka_resp_err_t code;

    for (size_t i = 0; i < source->n_feeds; i++) {
        (void)rd_kafka_topic_partition_list_add(topics, source->feeds[i].topic,
                                                RD_KAFKA_PARTITION_UA);
    }
    code = rd_kafka_subscribe(source->client, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return code;
}

void kafka_rebalance_rejoin(struct kafka_source *source)
{
    tell_refused(source, "the group is joined anew", source->rejoin_why);
    source->rejoin_why = NULL;
    kafka_rebalance_fence_all(source);
    end_code(source, "cannot leave", rd_kafka_unsubscribe(source->client));
    end_code(source, "cannot join", kafka_rebalance_subscribe(source));
}
