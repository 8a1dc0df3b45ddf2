/* SPDX-License-Identifier: MIT */
/*
 * What will happen in a simulated world, and when. Acts of one time happen in
 * the order in which they were planned.
 */
#ifndef ONCED_TESTS_SIM_AGENDA_H
#define ONCED_TESTS_SIM_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

/* `who` is whoever acts, NULL where that is the world. */
typedef void (*agenda_act)(struct sim *sim, void *who);

struct agenda_entry {
    int64_t at_ms;
    uint64_t number;
    agenda_act act;
    void *who;
};

struct agenda {
    struct agenda_entry *heap; /* the earliest on top */
    size_t n, cap;
    uint64_t planned; /* ever */
};

void agenda_free(struct agenda *agenda);
void agenda_plan(struct agenda *agenda, int64_t at_ms, agenda_act act,
                 void *who);
/* Time of the next act; INT64_MAX where nothing is planned. */
int64_t agenda_next_ms(const struct agenda *agenda);
/* Takes the next act out; there must be one. */
struct agenda_entry agenda_take(struct agenda *agenda);

#endif
