/* SPDX-License-Identifier: MIT */
#include "base/mark.h"

#ifdef ONCED_MARKS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

static const struct entry {
    const char *name;
    enum mark_kind kind;
    const char *what;
} table[MARKS] = {
#define MARK_DEF(id, name, kind, what) {name, kind, what},
#include "base/mark.def"
#undef MARK_DEF
};

static _Atomic uint64_t hits[MARKS];

/* Written before other threads start. */
static enum mark kill_mark = MARKS;
static uint64_t kill_hit;

static enum mark find(struct slice name)
{
    enum mark mark = 0;

    while (mark < MARKS && !slice_eq(name, slice_of(table[mark].name))) {
        mark++;
    }
    return mark;
}

bool mark_start(struct err *err)
{
    const char *text = getenv("ONCED_KILL_AT");
    const char *colon;

    if (text == NULL) {
        return true;
    }
    colon = strrchr(text, ':');
    if (colon == NULL || !text_u64(slice_of(colon + 1), &kill_hit) ||
        kill_hit == 0) {
        return err_set(err, ERR_USAGE,
                       "ONCED_KILL_AT=%s: not a mark, ':' and a number from 1",
                       text);
    }
    kill_mark = find((struct slice){text, (size_t)(colon - text)});
    if (kill_mark == MARKS) {
        return err_set(err, ERR_USAGE, "ONCED_KILL_AT=%s: no such mark", text);
    }
    return true;
}

void mark_hit(enum mark mark)
{
    uint64_t n;

    CHECK(mark < MARKS);
    n = atomic_fetch_add_explicit(&hits[mark], 1, memory_order_relaxed) + 1;
    if (mark == kill_mark && n == kill_hit) {
        (void)raise(SIGKILL); /* cannot fail for the process itself */
    }
}

uint64_t mark_count(enum mark mark)
{
    CHECK(mark < MARKS);
    return atomic_load_explicit(&hits[mark], memory_order_relaxed);
}

const char *mark_name(enum mark mark)
{
    CHECK(mark < MARKS);
    return table[mark].name;
}

enum mark_kind mark_kind(enum mark mark)
{
    CHECK(mark < MARKS);
    return table[mark].kind;
}

const char *mark_what(enum mark mark)
{
    CHECK(mark < MARKS);
    return table[mark].what;
}

#endif
