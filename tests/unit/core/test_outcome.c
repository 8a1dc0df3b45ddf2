/* SPDX-License-Identifier: MIT */
#include "core/outcome.h"

#include <criterion/criterion.h>

enum { S = OUTCOME_SUCCESS, R = OUTCOME_REFUSED, T = OUTCOME_TRANSIENT };
enum { J = OUTCOME_REJECTED, U = OUTCOME_UNKNOWN };

/* What a status means by default: to a webhook or Kafka, and to a client. */
static const struct {
    int first, last;
    int accepted, result;
} statuses[] = {
    {0, 199, U, U},   {200, 299, S, S}, {300, 399, U, S}, {400, 400, J, J},
    {401, 401, R, R}, {402, 402, J, J}, {403, 405, R, R}, {406, 407, J, J},
    {408, 409, T, T}, {410, 412, J, J}, {413, 413, R, R}, {414, 414, J, J},
    {415, 415, R, R}, {416, 420, J, J}, {421, 421, T, T}, {422, 424, J, J},
    {425, 425, T, T}, {426, 428, J, J}, {429, 429, T, T}, {430, 499, J, J},
    {500, 999, U, U},
};

static const struct {
    int first, last;
    int outcome;
} exits[] = {
    {0, 0, S}, {1, 63, U}, {64, 74, J}, {75, 75, T}, {76, 78, J}, {79, 255, U},
};

Test(outcome, every_status_means_what_the_table_says)
{
    struct outcome_rules rules = {0};
    int next = 0;

    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        cr_assert_eq(statuses[i].first, next);
        for (int status = next; status <= statuses[i].last; status++) {
            rules.respond = RESPOND_ACCEPTED;
            cr_expect_eq((int)outcome_of(&rules, END_STATUS, status),
                         statuses[i].accepted, "%d", status);
            rules.respond = RESPOND_HANDLED;
            cr_expect_eq((int)outcome_of(&rules, END_STATUS, status),
                         statuses[i].accepted, "%d", status);
            rules.respond = RESPOND_RESULT;
            cr_expect_eq((int)outcome_of(&rules, END_STATUS, status),
                         statuses[i].result, "%d", status);
        }
        next = statuses[i].last + 1;
    }
}

Test(outcome, every_exit_status_means_what_the_table_says)
{
    struct outcome_rules rules = {.has_final = true, .has_not_applied = true};
    int next = 0;

    for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++) {
        cr_assert_eq(exits[i].first, next);
        for (int status = next; status <= exits[i].last; status++) {
            cr_expect_eq((int)outcome_of(&rules, END_EXIT, status),
                         exits[i].outcome, "%d", status);
        }
        next = exits[i].last + 1;
    }
    cr_assert_eq(next, 256);
}

Test(outcome, an_end_without_a_status_proves_something_only_when_unreached)
{
    static const enum respond_mode modes[] = {RESPOND_ACCEPTED, RESPOND_RESULT,
                                              RESPOND_HANDLED};

    for (size_t i = 0; i < 3; i++) {
        struct outcome_rules rules = {.respond = modes[i]};

        cr_expect_eq(outcome_of(&rules, END_SIGNAL, 9), OUTCOME_UNKNOWN);
        cr_expect_eq(outcome_of(&rules, END_TIMEOUT, 0), OUTCOME_UNKNOWN);
        cr_expect_eq(outcome_of(&rules, END_BROKEN, 200), OUTCOME_UNKNOWN);
        cr_expect_eq(outcome_of(&rules, END_UNREACHED, 0), OUTCOME_UNREACHED);
    }
}

Test(outcome, a_list_of_not_applied_replaces_the_default)
{
    struct outcome_rules rules = {.not_applied = {503, 404, 200},
                                  .n_not_applied = 3,
                                  .has_not_applied = true};

    cr_expect_eq(outcome_of(&rules, END_STATUS, 503), OUTCOME_TRANSIENT);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 404), OUTCOME_TRANSIENT);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 200), OUTCOME_TRANSIENT);
    /* no proof any more */
    cr_expect_eq(outcome_of(&rules, END_STATUS, 409), OUTCOME_UNKNOWN);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 429), OUTCOME_UNKNOWN);
    /* not a matter of this list */
    cr_expect_eq(outcome_of(&rules, END_STATUS, 401), OUTCOME_REFUSED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 422), OUTCOME_REJECTED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 201), OUTCOME_SUCCESS);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 500), OUTCOME_UNKNOWN);
}

Test(outcome, a_list_of_final_replaces_the_default)
{
    struct outcome_rules rules = {
        .final = {422, 401, 409, 500}, .n_final = 4, .has_final = true};

    cr_expect_eq(outcome_of(&rules, END_STATUS, 422), OUTCOME_REJECTED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 401), OUTCOME_REJECTED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 409), OUTCOME_REJECTED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 500), OUTCOME_REJECTED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 400), OUTCOME_UNKNOWN);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 403), OUTCOME_REFUSED);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 429), OUTCOME_TRANSIENT);
}

Test(outcome, not_applied_is_looked_at_before_final)
{
    struct outcome_rules rules = {.not_applied = {422},
                                  .n_not_applied = 1,
                                  .has_not_applied = true,
                                  .final = {422},
                                  .n_final = 1,
                                  .has_final = true};

    cr_expect_eq(outcome_of(&rules, END_STATUS, 422), OUTCOME_TRANSIENT);
}

Test(outcome, an_empty_list_leaves_nothing_proved)
{
    struct outcome_rules rules = {.has_not_applied = true, .has_final = true};

    cr_expect_eq(outcome_of(&rules, END_STATUS, 429), OUTCOME_UNKNOWN);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 422), OUTCOME_UNKNOWN);
    cr_expect_eq(outcome_of(&rules, END_STATUS, 404), OUTCOME_REFUSED);
}

Test(outcome, a_list_is_read_to_its_end_and_not_further)
{
    struct outcome_rules rules = {.n_final = OUTCOME_STATUSES_MAX,
                                  .has_final = true};

    rules.final[OUTCOME_STATUSES_MAX - 1] = 503;
    cr_expect_eq(outcome_of(&rules, END_STATUS, 503), OUTCOME_REJECTED);
    rules.n_final--;
    cr_expect_eq(outcome_of(&rules, END_STATUS, 503), OUTCOME_UNKNOWN);
}

Test(outcome, names_are_lower_case_words)
{
    static const char *const outcomes[] = {"success",  "refused",   "transient",
                                           "rejected", "unreached", "unknown"};
    static const char *const ends[] = {"status",  "exit",   "signal",
                                       "timeout", "broken", "unreached"};

    for (int i = 0; i < 6; i++) {
        cr_expect_str_eq(outcome_name((enum outcome)i), outcomes[i]);
        cr_expect_str_eq(attempt_end_name((enum attempt_end)i), ends[i]);
    }
}
