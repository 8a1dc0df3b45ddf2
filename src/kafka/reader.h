/* SPDX-License-Identifier: MIT */
/*
 * Reads a topic once: every partition from its first message up to where it
 * ended when the reader was opened, in no group, and nothing is committed.
 * Messages of one partition come in order; partitions take turns as the
 * library likes. One thread.
 */
#ifndef ONCED_KAFKA_READER_H
#define ONCED_KAFKA_READER_H

#include "base/err.h"
#include "core/envelope.h"
#include "kafka/client.h"

struct kafka_reader;

/* Asks the broker what there is. ERR_USAGE: no topic has such a name;
 * ERR_NOT_FOUND: there is none; ERR_CONFIG: a property of the cluster;
 * ERR_UNREACHABLE: no broker answered in time. */
bool kafka_reader_open(struct kafka_reader **out,
                       const struct kafka_cluster *cluster, const char *topic,
                       struct err *err) MUST_CHECK;

enum kafka_read { KAFKA_READ, KAFKA_READ_END, KAFKA_READ_FAILED };

/* The next message, received now; a view that lives until the next call.
 * Waits for the broker, for a while: ERR_UNREACHABLE then. */
enum kafka_read kafka_reader_next(struct kafka_reader *reader,
                                  struct envelope *out,
                                  struct err *err) MUST_CHECK;

/* NULL is fine. */
void kafka_reader_free(struct kafka_reader *reader);

#endif
