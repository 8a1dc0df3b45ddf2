/* SPDX-License-Identifier: MIT */
#include "sim/agenda.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"

void agenda_free(struct agenda *agenda)
{
    free(agenda->heap);
    *agenda = (struct agenda){0};
}

static bool is_before(const struct agenda_entry *a,
                      const struct agenda_entry *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void swap(struct agenda *agenda, size_t i, size_t j)
{
    struct agenda_entry entry = agenda->heap[i];

    agenda->heap[i] = agenda->heap[j];
    agenda->heap[j] = entry;
}

void agenda_plan(struct agenda *agenda, int64_t at_ms, agenda_act act,
                 void *who)
{
    size_t at = agenda->n++;

    if (agenda->n > agenda->cap) {
        agenda->cap = agenda->cap == 0 ? 256 : agenda->cap * 2;
        agenda->heap =
            mem_grow(agenda->heap, agenda->cap, sizeof *agenda->heap);
    }
    agenda->heap[at] =
        (struct agenda_entry){at_ms, agenda->planned++, act, who};
    while (at > 0 &&
           is_before(&agenda->heap[at], &agenda->heap[(at - 1) / 2])) {
        swap(agenda, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

int64_t agenda_next_ms(const struct agenda *agenda)
{
    return agenda->n == 0 ? INT64_MAX : agenda->heap[0].at_ms;
}

struct agenda_entry agenda_take(struct agenda *agenda)
{
    struct agenda_entry first;
    size_t at = 0, child;

    CHECK(agenda->n > 0);
    first = agenda->heap[0];
    agenda->heap[0] = agenda->heap[--agenda->n];
    while ((child = 2 * at + 1) < agenda->n) {
        if (child + 1 < agenda->n &&
            is_before(&agenda->heap[child + 1], &agenda->heap[child])) {
            child++;
        }
        if (!is_before(&agenda->heap[child], &agenda->heap[at])) {
            break;
        }
        swap(agenda, at, child);
        at = child;
    }
    return first;
}
