/* SPDX-License-Identifier: MIT */
/*
 * Where dead letters are told. The topic takes some at once, some late, and
 * refuses others. In the end every dead letter of the store must have been
 * told as it died last; what a process was told to be published it does not
 * publish again.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "engine/internal.h"
#include "sim/sim.h"

/* One try; `dead` NULL: it is over. */
struct publication {
    struct sim *sim;
    struct dead_letter *dead;
};

struct told {
    char route[24], tenant[24], id[24];
    uint32_t run, attempts;
    int64_t died_ms;
    unsigned process; /* knows that it was */
};

static void copy(char *out, size_t size, struct slice text)
{
    CHECK(text.len < size);
    (void)snprintf(out, size, "%.*s", (int)text.len,
                   text.len == 0 ? "" : text.data);
}

static void note(struct sim *sim, const struct dead_letter *dead)
{
    struct told *told = list_add(&sim->told, sizeof *told);

    copy(told->route, sizeof told->route, slice_of(dead->route));
    copy(told->tenant, sizeof told->tenant, dead->tenant);
    copy(told->id, sizeof told->id, dead->id);
    told->run = dead->run;
    told->attempts = dead->attempts;
    told->died_ms = dead->died_ms;
    told->process = sim->process.number;
}

static bool is_of(const struct told *told, const char *route,
                  struct slice tenant, struct slice id)
{
    return strcmp(told->route, route) == 0 &&
           slice_eq(slice_of(told->tenant), tenant) &&
           slice_eq(slice_of(told->id), id);
}

static void expect_untold(struct sim *sim, const struct dead_letter *dead)
{
    for (size_t i = 0; i < sim->told.n; i++) {
        const struct told *told = sim->told.at[i];

        if (told->process == sim->process.number && told->run == dead->run &&
            told->attempts == dead->attempts &&
            told->died_ms == dead->died_ms &&
            is_of(told, dead->route, dead->tenant, dead->id)) {
            sim_fail(sim, "the dead %s of %s is told again", told->id,
                     dead->route);
        }
    }
}

static void expect_content(struct sim *sim, size_t route,
                           const struct dead_letter *dead)
{
    const struct event *event = sender_find(sim, route, dead->tenant, dead->id);
    struct slice id = event == NULL ? SLICE("") : slice_of(event->id);

    if (event == NULL ||
        (dead->has_envelope && !slice_starts(dead->envelope.body, id))) {
        sim_fail(sim, "a dead letter of %s is not what was sent as %.*s",
                 dead->route, (int)dead->id.len, dead->id.data);
    }
}

static void act_end(struct sim *sim, void *who)
{
    struct publication *publication = who;
    struct dead_letter *dead = publication->dead;

    if (dead == NULL) {
        return; /* its process is gone */
    }
    publication->dead = NULL;
    dead->published = sim->healed || dice_permille(&sim->dice, 600);
    sim_trace(sim, "the dead %.*s of %s is %s", (int)dead->id.len,
              dead->id.data, dead->route,
              dead->published ? "told" : "not told");
    if (dead->published) {
        note(sim, dead);
    }
    dead_letter_finish(dead);
    process_poke(sim);
}

static void publish(void *self, struct dead_letter *dead)
{
    struct sim_route *route = self;
    struct sim *sim = route->sim;
    struct publication *publication =
        list_add(&sim->publications, sizeof *publication);

    publication->sim = sim;
    publication->dead = dead;
    if (process_lets_out(sim)) {
        expect_untold(sim, dead);
        expect_content(sim, (size_t)(route - sim->routes), dead);
        nemesis_tempt(sim, 5000);
        agenda_plan(&sim->agenda,
                    sim->now_ms + dice_skewed(&sim->dice, 0, 5000), act_end,
                    publication);
    }
}

static void do_nothing(void *self)
{
    (void)self;
}

const struct publisher_ops publisher_ops = {
    .publish = publish,
    .stop = do_nothing,
    .free = do_nothing,
};

void publisher_stop(struct sim *sim)
{
    for (size_t i = 0; i < sim->publications.n; i++) {
        struct publication *publication = sim->publications.at[i];

        if (publication->dead != NULL) {
            dead_letter_finish(publication->dead);
            publication->dead = NULL;
        }
    }
}

bool publisher_rests(const struct sim *sim)
{
    const struct engine *engine = sim->process.engine;

    for (size_t i = 0; engine != NULL && i < engine->n_routes; i++) {
        const struct outbox *outbox = &engine->routes[i].outbox;

        if (outbox->n_on_their_way > 0 || outbox->has_more ||
            outbox->has_failed) {
            return false;
        }
    }
    return true;
}

void publisher_check(struct sim *sim, const char *route,
                     const struct store_entry *entry)
{
    for (size_t i = 0; i < sim->told.n; i++) {
        const struct told *told = sim->told.at[i];

        if (told->run == entry->record.run &&
            told->attempts == entry->record.attempt &&
            is_of(told, route, store_entry_tenant(entry),
                  store_entry_id(entry))) {
            return;
        }
    }
    sim_fail(sim, "the dead %.*s of %s was never told", (int)entry->id_len,
             entry->id, route);
}
