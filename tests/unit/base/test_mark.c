/* SPDX-License-Identifier: MIT */
#include "base/mark.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static bool start_with(const char *text, struct err *err)
{
    cr_assert(setenv("ONCED_KILL_AT", text, 1) == 0);
    return mark_start(err);
}

Test(mark, every_mark_has_a_name_of_its_own)
{
    for (enum mark mark = 0; mark < MARKS; mark++) {
        const char *name = mark_name(mark);

        cr_expect(name[0] != '\0' &&
                      strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
                          strlen(name),
                  "\"%s\"", name);
        cr_expect(mark_what(mark)[0] != '\0', "%s", name);
        for (enum mark other = 0; other < mark; other++) {
            cr_expect(strcmp(mark_name(other), name) != 0, "%s", name);
        }
    }
    cr_expect_str_eq(mark_name(MARK_claim_after_commit), "claim-after-commit");
    cr_expect(mark_kind(MARK_claim_after_commit) == MARK_POINT);
}

Test(mark, there_are_points_enough)
{
    int points = 0;

    for (enum mark mark = 0; mark < MARKS; mark++) {
        points += mark_kind(mark) == MARK_POINT;
    }
    cr_expect(points >= 24, "%d", points);
}

Test(mark, without_an_order_hits_are_only_counted)
{
    struct err err;

    cr_assert(unsetenv("ONCED_KILL_AT") == 0);
    cr_assert(mark_start(&err));
    cr_expect(mark_count(MARK_seal_step) == 0);
    for (int i = 0; i < 3; i++) {
        MARK(seal_step);
    }
    cr_expect(mark_count(MARK_seal_step) == 3);
    cr_expect(mark_count(MARK_seal_done) == 0);
}

Test(mark, hits_before_the_one_told_and_of_other_marks_do_not_kill)
{
    struct err err;

    cr_assert(start_with("seal-step:3", &err));
    MARK(seal_step);
    MARK(seal_step);
    for (int i = 0; i < 5; i++) {
        MARK(seal_done);
    }
    cr_expect(mark_count(MARK_seal_step) == 2);
}

Test(mark, the_hit_told_kills, .signal = SIGKILL)
{
    struct err err;

    cr_assert(start_with("seal-step:3", &err));
    for (int i = 0; i < 3; i++) {
        MARK(seal_step);
    }
}

Test(mark, an_order_that_cannot_be_meant_is_refused)
{
    static const char *const rows[] = {
        "",
        "seal-step",
        ":",
        ":1",
        "seal-step:",
        "seal-step:0",
        "seal-step:-1",
        "seal-step:x",
        "seal-step:1x",
        "seal-step:01",
        "seal-stepp:1",
        "seal-ste:1",
        "seal_step:1",
        "seal-step:1:2",
        "seal-step:18446744073709551616",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = {ERR_NONE, ""};

        cr_expect(!start_with(rows[i], &err), "\"%s\"", rows[i]);
        cr_expect(err.kind == ERR_USAGE, "\"%s\"", rows[i]);
        cr_expect(strstr(err.text, "ONCED_KILL_AT") != NULL, "%s", err.text);
    }
}

enum { THREADS = 4, HITS = 20000 };

static void *hit_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < HITS; i++) {
        MARK(record_carried);
    }
    return NULL;
}

Test(mark, no_hit_of_several_threads_is_lost)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        cr_assert(pthread_create(&threads[i], NULL, hit_often, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        cr_assert(pthread_join(threads[i], NULL) == 0);
    }
    cr_expect(mark_count(MARK_record_carried) == (uint64_t)THREADS * HITS);
}
