/* SPDX-License-Identifier: MIT */
/*
 * The closed sets that the metrics' labels draw from, gathered from the parts
 * that count.
 */
#ifndef ONCED_APP_LABELS_H
#define ONCED_APP_LABELS_H

#include "app/config.h"

/* metrics_start with the configuration's routes; they must live as long as
 * the metrics. Once per process. */
void labels_start_metrics(const struct config *config);

/* For each of kafka_source_outcomes its place among the values of the label
 * "outcome"; after labels_start_metrics. */
const size_t *labels_kafka_outcomes(void);

#endif
