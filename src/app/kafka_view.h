/* SPDX-License-Identifier: MIT */
/*
 * What there is to see of the Kafka sources: the partitions that are assigned
 * now, for the metrics and for `onced status`. Any thread, until the sources
 * end.
 */
#ifndef ONCED_APP_KAFKA_VIEW_H
#define ONCED_APP_KAFKA_VIEW_H

#include <stdint.h>

#include <jansson.h>

#include "app/kafka_setup.h"

/* Sets the series of all SERIES_ metrics; `now_ms` is store time. */
void kafka_view_set_metrics(struct kafka_setup *setup, int64_t now_ms);

/* A list with one object for each partition; the caller's reference. */
json_t *kafka_view_json(struct kafka_setup *setup, int64_t now_ms);

#endif
