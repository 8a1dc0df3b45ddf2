/* SPDX-License-Identifier: MIT */
#include "engine/waits.h"

#include <stdlib.h>

#include <uthash.h>

#include "base/bytes.h"
#include "base/check.h"

struct event_waits {
    struct identity identity;
    struct wait *first;
    UT_hash_handle hh;
};

struct waits {
    struct event_waits *table;
    struct wait *changed;
};

struct waits *waits_new(void)
{
    return mem_new(1, sizeof(struct waits));
}

void waits_free(struct waits *waits)
{
    struct event_waits *event;

    if (waits == NULL) {
        return;
    }
    event = waits->table;
    HASH_CLEAR(hh, waits->table); /* the table, not what is in it */
    while (event != NULL) {
        struct event_waits *next_event = event->hh.next;
        struct wait *wait = event->first;

        while (wait != NULL) {
            struct wait *next = wait->next;

            free(wait);
            wait = next;
        }
        free(event);
        event = next_event;
    }
    free(waits);
}

static struct event_waits *find(const struct waits *waits,
                                const struct identity *identity)
{
    struct event_waits *event;

    HASH_FIND(hh, waits->table, identity, sizeof *identity, event);
    return event;
}

/* NOLINTNEXTLINE(readability-function-size): a macro of uthash */
static struct event_waits *find_or_add(struct waits *waits,
                                       const struct identity *identity)
{
    struct event_waits *event = find(waits, identity);

    if (event == NULL) {
        event = mem_new(1, sizeof *event);
        event->identity = *identity;
        HASH_ADD(hh, waits->table, identity, sizeof event->identity, event);
    }
    return event;
}

static void note_change(struct waits *waits, struct wait *wait)
{
    if (!wait->is_added && !wait->is_released) {
        wait->changed_next = waits->changed;
        waits->changed = wait;
    }
}

static void link_to_event(struct event_waits *event, struct wait *wait)
{
    wait->event = event;
    wait->identity = &event->identity;
    wait->next = event->first;
    wait->prev = &event->first;
    if (event->first != NULL) {
        event->first->prev = &wait->next;
    }
    event->first = wait;
}

static void link_to_partition(struct wait_list *list, struct wait *wait)
{
    wait->partition_next = list->first;
    wait->partition_prev = &list->first;
    if (list->first != NULL) {
        list->first->partition_prev = &wait->partition_next;
    }
    list->first = wait;
}

void waits_add(struct waits *waits, const struct identity *identity,
               struct partition_state *partition, struct wait_list *list,
               int64_t offset)
{
    struct wait *wait = mem_new(1, sizeof *wait);

    wait->partition = partition;
    wait->offset = offset;
    link_to_event(find_or_add(waits, identity), wait);
    link_to_partition(list, wait);
    note_change(waits, wait);
    wait->is_added = true;
}

struct wait *waits_of(const struct waits *waits,
                      const struct identity *identity)
{
    const struct event_waits *event = find(waits, identity);

    return event == NULL ? NULL : event->first;
}

void waits_release(struct waits *waits, struct wait *wait)
{
    CHECK(!wait->is_released);
    note_change(waits, wait);
    wait->is_released = true;
}

/* The analyzer does not see that the table has what the macro takes out of it,
 * and lets go of it. */
/* NOLINTBEGIN(clang-analyzer-*,readability-function-size) */
static void remove_wait(struct waits *waits, struct wait *wait)
{
    struct event_waits *event = wait->event;

    *wait->prev = wait->next;
    if (wait->next != NULL) {
        wait->next->prev = wait->prev;
    }
    *wait->partition_prev = wait->partition_next;
    if (wait->partition_next != NULL) {
        wait->partition_next->partition_prev = wait->partition_prev;
    }
    free(wait);
    if (event->first == NULL) {
        HASH_DEL(waits->table, event);
        free(event);
    }
}
/* NOLINTEND(clang-analyzer-*,readability-function-size) */

static void end_batch(struct waits *waits, bool committed)
{
    while (waits->changed != NULL) {
        struct wait *wait = waits->changed;
        bool goes = committed ? wait->is_released : wait->is_added;

        waits->changed = wait->changed_next;
        wait->is_added = false;
        wait->is_released = false;
        if (goes) {
            remove_wait(waits, wait);
        }
    }
}

void waits_commit(struct waits *waits)
{
    end_batch(waits, true);
}

void waits_abort(struct waits *waits)
{
    end_batch(waits, false);
}
