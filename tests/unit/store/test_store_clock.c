/* SPDX-License-Identifier: MIT */
#include "fixture.h"

Test(store_clock, follows_the_boot_clock_and_small_steps_of_the_wall)
{
    struct fixture f;

    fixture_begin(&f);
    cr_assert_eq(store_now_ms(f.store), START_MS);
    fixture_pass(&f, 5000);
    cr_assert_eq(store_now_ms(f.store), START_MS + 5000);
    f.wall_ms += 1000;
    cr_assert_eq(store_now_ms(f.store), START_MS + 6000);
    /* The wall goes back: the store goes on. */
    f.wall_ms -= 3000;
    cr_assert_eq(store_now_ms(f.store), START_MS + 6000);
    f.boot_ms += 100;
    cr_assert_eq(store_now_ms(f.store), START_MS + 6100);
    fixture_end(&f);
}

Test(store_clock, follows_a_jump_by_an_hour_at_once_and_no_more)
{
    struct fixture f;

    fixture_begin(&f);
    f.wall_ms += 5 * HOUR_MS;
    cr_assert_eq(store_now_ms(f.store), START_MS + HOUR_MS);
    cr_assert_eq(store_now_ms(f.store), START_MS + HOUR_MS);
    fixture_pass(&f, HOUR_MS);
    cr_assert_eq(store_now_ms(f.store), START_MS + 3 * HOUR_MS);
    fixture_pass(&f, HOUR_MS);
    cr_assert_eq(store_now_ms(f.store), START_MS + 5 * HOUR_MS);
    fixture_end(&f);
}

Test(store_clock, is_never_behind_what_it_has_stamped)
{
    struct fixture f;

    fixture_begin(&f);
    fixture_pass(&f, 5000);
    fixture_add_done(&f, "a");
    f.wall_ms -= DAY_MS;
    fixture_reopen(&f);
    cr_assert_eq(store_now_ms(f.store), START_MS + 5000);
    fixture_end(&f);
}

Test(store_clock, nothing_expires_while_the_clocks_disagree)
{
    struct fixture f;
    struct store_entry entry;
    struct store_retention day = {DAY_MS, DAY_MS, DAY_MS};

    fixture_begin(&f);
    store_set_retention(f.store, f.route, &day);
    fixture_add_done(&f, "a");
    f.wall_ms += 1000 * DAY_MS;
    for (int i = 0; i < 20; i++) {
        fixture_run_for(&f, HOUR_MS);
    }
    FOUND(&f, fixture_look(&f, "a", &entry));
    /* Somebody puts the clock right; an hour later time counts again. */
    f.wall_ms -= 1000 * DAY_MS;
    f.wall_ms += 21 * HOUR_MS;
    (void)store_now_ms(f.store);
    FOUND(&f, fixture_look(&f, "a", &entry));
    fixture_run_for(&f, HOUR_MS);
    ABSENT(&f, fixture_look(&f, "a", &entry));
    fixture_end(&f);
}

Test(store_clock, things_expire_again_when_the_wall_was_put_right)
{
    struct fixture f;
    struct store_entry entry;
    struct store_retention day = {DAY_MS, DAY_MS, DAY_MS};

    fixture_begin(&f);
    store_set_retention(f.store, f.route, &day);
    fixture_add_done(&f, "a");
    f.wall_ms += 10 * HOUR_MS;
    fixture_run_for(&f, 2 * HOUR_MS);
    f.wall_ms -= 10 * HOUR_MS;
    fixture_run_for(&f, 21 * HOUR_MS);
    FOUND(&f, fixture_look(&f, "a", &entry));
    fixture_run_for(&f, HOUR_MS);
    ABSENT(&f, fixture_look(&f, "a", &entry));
    /* Neither does a start keep it for longer. */
    fixture_add_done(&f, "b");
    fixture_reopen(&f);
    store_set_retention(f.store, f.route, &day);
    fixture_run_for(&f, 27 * HOUR_MS);
    ABSENT(&f, fixture_look(&f, "b", &entry));
    fixture_end(&f);
}

Test(store_clock, a_start_far_ahead_waits_an_hour_before_it_forgets)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    f.wall_ms += 400 * DAY_MS;
    fixture_reopen(&f);
    cr_assert_eq(store_now_ms(f.store), START_MS + 400 * DAY_MS);
    FOUND(&f, fixture_look(&f, "a", &entry));
    fixture_run_for(&f, HOUR_MS);
    ABSENT(&f, fixture_look(&f, "a", &entry));
    fixture_end(&f);
}

/* Each start would take the clock's word for the time that the one before it
 * did not believe. */
Test(store_clock, doubt_of_the_clock_outlives_a_restart)
{
    struct fixture f;
    struct store_entry entry;

    fixture_begin(&f);
    fixture_add_done(&f, "a");
    f.wall_ms += 400 * DAY_MS;
    for (int start = 0; start < 3; start++) {
        fixture_reopen(&f);
        fixture_run_for(&f, HOUR_MS / 2);
        fixture_add_done(&f, start == 0 ? "b" : start == 1 ? "c" : "d");
        FOUND(&f, fixture_look(&f, "a", &entry));
    }
    fixture_run_for(&f, HOUR_MS / 2);
    ABSENT(&f, fixture_look(&f, "a", &entry));
    fixture_end(&f);
}
