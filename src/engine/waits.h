/* SPDX-License-Identifier: MIT */
/*
 * Which offsets wait for which event: an offset is settled when the last
 * event that it is, is. An event may have several, of several partitions: a
 * message and its repeats.
 *
 * What happens between two calls of waits_commit or waits_abort belongs to
 * one batch: waits_abort undoes it. Engine's thread.
 */
#ifndef ONCED_ENGINE_WAITS_H
#define ONCED_ENGINE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct partition_state;

struct wait {
    const struct identity *identity; /* of the event */
    struct partition_state *partition;
    int64_t offset;    /* < 0: none; the store had the event */
    bool is_released;  /* in this batch: it counts no more */
    struct wait *next; /* of the event; also released ones */
    struct wait *partition_next;
    /* only for waits.c */
    struct event_waits *event;
    struct wait **prev, **partition_prev;
    struct wait *changed_next; /* in this batch */
    bool is_added;             /* in this batch */
};

/* The waits of one partition. */
struct wait_list {
    struct wait *first;
};

struct waits;

struct waits *waits_new(void);
/* With what is in it; NULL is fine. */
void waits_free(struct waits *waits);

/* Puts it into `list`, that of `partition`, too. */
void waits_add(struct waits *waits, const struct identity *identity,
               struct partition_state *partition, struct wait_list *list,
               int64_t offset);

/* The first one of an event, others behind `next`; NULL: none. */
struct wait *waits_of(const struct waits *waits,
                      const struct identity *identity);

/* Once only. */
void waits_release(struct waits *waits, struct wait *wait);

/* Released ones are freed; those that the batch added are. */
void waits_commit(struct waits *waits);
void waits_abort(struct waits *waits);

#endif
