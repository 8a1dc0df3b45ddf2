/* SPDX-License-Identifier: MIT */
/*
 * What becomes of partitions when the group changes. Poll thread.
 */
#ifndef ONCED_SOURCE_KAFKA_REBALANCE_H
#define ONCED_SOURCE_KAFKA_REBALANCE_H

#include "source/kafka_shared.h"

/* librdkafka's rebalance callback; its opaque is the source. */
void kafka_rebalance_on(rd_kafka_t *client, rd_kafka_resp_err_t why,
                        rd_kafka_topic_partition_list_t *list, void *opaque);

/* Every partition is fenced as if it was lost; nothing of it is stored. */
void kafka_rebalance_fence_all(struct kafka_source *source);

/* Fences all, and asks the group for an assignment anew: source->rejoin_why
 * says why. */
void kafka_rebalance_rejoin(struct kafka_source *source);

/* Subscribes to the topics of all feeds. */
rd_kafka_resp_err_t kafka_rebalance_subscribe(struct kafka_source *source);

#endif
