/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/record.h"

Test(record_names, every_word_reads_back)
{
    for (enum move i = MOVE_RECEIVED; i <= MOVE_SEEN; i++) {
        enum move parsed = MOVE_NONE;

        cr_expect(move_parse(move_name(i), &parsed));
        cr_expect_eq(parsed, i);
    }
    for (unsigned i = 0; i < RECORD_FLAGS; i++) {
        enum record_flag flag = (enum record_flag)(1U << i), parsed;

        cr_assert(record_flag_parse(record_flag_name(flag), &parsed));
        cr_expect_eq(parsed, flag);
    }
    for (enum fingerprint_mode i = FINGERPRINT_NONE; i <= FINGERPRINT_MULTIPART;
         i++) {
        enum fingerprint_mode parsed = FINGERPRINT_NONE;

        cr_expect(fingerprint_mode_parse(fingerprint_mode_name(i), &parsed));
        cr_expect_eq(parsed, i);
    }
}

Test(record_names, the_words_of_a_dump_do_not_change)
{
    cr_expect_str_eq(move_name(MOVE_SEEN), "seen");
    cr_expect_str_eq(record_flag_name(RECORD_RELEASED), "released");
    cr_expect_str_eq(record_flag_name(RECORD_ERASED), "erased");
    cr_expect_str_eq(record_flag_name(RECORD_DISPUTED), "disputed");
    cr_expect_str_eq(record_flag_name(RECORD_RESTORED), "restored");
    cr_expect_str_eq(record_flag_name(RECORD_PARKED), "parked");
    cr_expect_str_eq(record_flag_name(RECORD_ORDER_WAIT), "order-wait");
    cr_expect_str_eq(record_flag_name(RECORD_PROBING), "probing");
    cr_expect_str_eq(record_flag_name(RECORD_ORDERED), "ordered");
    cr_expect_str_eq(record_flag_name(RECORD_PINS), "pins");
    cr_expect_str_eq(record_flag_name(RECORD_LEFT), "left");
    cr_expect_str_eq(fingerprint_mode_name(FINGERPRINT_NONE), "none");
    cr_expect_str_eq(fingerprint_mode_name(FINGERPRINT_RAW), "raw");
    cr_expect_str_eq(fingerprint_mode_name(FINGERPRINT_JSON), "json");
    cr_expect_str_eq(fingerprint_mode_name(FINGERPRINT_FORM), "form");
    cr_expect_str_eq(fingerprint_mode_name(FINGERPRINT_MULTIPART), "multipart");
}

Test(record_names, what_is_no_word_does_not_read)
{
    enum move move = MOVE_DEAD;
    enum record_flag flag = RECORD_ERASED;
    enum fingerprint_mode mode = FINGERPRINT_FORM;

    cr_expect_not(move_parse("none", &move));
    cr_expect_not(move_parse("", &move));
    cr_expect_not(move_parse("Dead", &move));
    cr_expect_not(record_flag_parse("", &flag));
    cr_expect_not(record_flag_parse("erased ", &flag));
    cr_expect_not(fingerprint_mode_parse("xml", &mode));
    cr_expect_eq(move, MOVE_DEAD);
    cr_expect_eq(flag, RECORD_ERASED);
    cr_expect_eq(mode, FINGERPRINT_FORM);
}

/* --- records from outside --------------------------------------------------
 */

static struct record settled(enum record_state state)
{
    return (struct record){
        .state = state,
        .reason = state == RECORD_DEAD ? REASON_REFUSED : REASON_NONE,
        .run = 1,
        .attempt = 2,
        .tries = 2,
        .first_seen_ms = 10,
        .last_seen_ms = 20,
        .due_ms = RECORD_NEVER,
    };
}

static struct record waiting(enum record_state state)
{
    struct record record = settled(state);

    record.due_ms = 30;
    record.doubt_since_ms = state == RECORD_UNCERTAIN ? 15 : 0;
    return record;
}

Test(record_names, a_record_that_is_well_has_no_problem)
{
    for (enum record_state i = RECORD_SUCCEEDED; i <= RECORD_DEAD; i++) {
        struct record record = settled(i);

        cr_expect_null(record_problem(&record), "%s", record_state_name(i));
        record_check(&record);
        record.flags = RECORD_LEFT;
        cr_expect_null(record_problem(&record), "%s", record_state_name(i));
    }
    for (enum record_state i = RECORD_PENDING; i <= RECORD_UNCERTAIN; i++) {
        struct record record = waiting(i);

        cr_expect_null(record_problem(&record), "%s", record_state_name(i));
        record_check(&record);
        record.flags = RECORD_PINS;
        cr_expect_null(record_problem(&record), "%s", record_state_name(i));
    }
}

Test(record_names, each_broken_rule_is_a_problem)
{
    struct record broken[] = {
        settled(RECORD_SUCCEEDED), settled(RECORD_SUCCEEDED),
        settled(RECORD_SUCCEEDED), settled(RECORD_SUCCEEDED),
        settled(RECORD_SUCCEEDED), settled(RECORD_SUCCEEDED),
        settled(RECORD_DEAD),      settled(RECORD_DEAD),
        settled(RECORD_FAILED),    settled(RECORD_FAILED),
        waiting(RECORD_PENDING),   waiting(RECORD_PENDING),
        waiting(RECORD_RUNNING),   waiting(RECORD_UNCERTAIN),
        waiting(RECORD_PENDING),   waiting(RECORD_PENDING),
        waiting(RECORD_RUNNING),   waiting(RECORD_UNCERTAIN),
        settled(RECORD_DEAD),      settled(RECORD_FAILED),
        waiting(RECORD_RUNNING),
    };

    broken[0].run = 0;
    broken[1].tries = 3;
    broken[2].last_seen_ms = 9;
    broken[3].due_ms = 30;
    broken[4].reason = REASON_REFUSED;
    broken[5].doubt_since_ms = 5;
    broken[6].reason = REASON_NONE;
    broken[7].flags = RECORD_ORDERED; /* of no key */
    broken[8].reason = REASON_EXHAUSTED;
    broken[9].flags = RECORD_RELEASED;
    broken[9].doubt_since_ms = 5;
    broken[10].due_ms = RECORD_NEVER;
    broken[11].flags = RECORD_PROBING;
    broken[12].attempt = broken[12].tries = 0;
    broken[13].doubt_since_ms = 0;
    broken[14].order_key = 7;
    broken[14].flags = RECORD_ORDER_WAIT; /* not in line */
    broken[15].flags = RECORD_PARKED;     /* and pins nothing */
    broken[15].due_ms = RECORD_NEVER;
    broken[16].flags = RECORD_LEFT;               /* with whom? */
    broken[17].flags = RECORD_PINS | RECORD_LEFT; /* not parked */
    broken[18].flags = RECORD_PINS;
    broken[19].flags = RECORD_PARKED;
    broken[20].flags = RECORD_PINS | RECORD_PARKED;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        cr_expect_not_null(record_problem(&broken[i]), "%zu", i);
    }
}
