/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mark.h"

/* How far the store may follow the wall clock forward per hour, how far both
 * may lie apart, and how long they must agree before anything expires. */
#define HOUR_MS INT64_C(3600000)

static void tell(const char *message, int64_t store_ms, int64_t wall_ms)
{
    struct log_line line;

    if (log_begin(&line, LOG_WARN, "store", message)) {
        log_int(&line, "store_ms", store_ms);
        log_int(&line, "wall_ms", wall_ms);
        log_end(&line);
    }
}

/* Starts at the later of both clocks. When the wall clock is more than an hour
 * ahead of what has expired (the machine was off, or its clock is wrong, or
 * the process before was still in doubt of it) nothing more expires until both
 * have agreed for an hour. */
void store_clock_start(struct store *store)
{
    struct store_clock *clock = &store->clock;
    int64_t wall_ms = clock_wall_ms(store->options.clock);
    int64_t mark_ms = store->state.clock_mark_ms;
    int64_t expiry_ms = store->state.expiry_mark_ms;

    clock->base_ms = wall_ms > mark_ms ? wall_ms : mark_ms;
    clock->base_boot_ms = clock_boot_ms(store->options.clock);
    clock->allowance_ms = HOUR_MS;
    clock->agreed_boot_ms = clock->base_boot_ms;
    clock->agreed = true;
    clock->frozen = wall_ms - expiry_ms > HOUR_MS;
    atomic_init(&clock->expiry_ms,
                clock->frozen || wall_ms < expiry_ms ? expiry_ms : wall_ms);
}

/* Moves the base to now: by the boot clock, then towards the wall clock as
 * far as is allowed. */
static void advance(struct store_clock *clock, int64_t wall_ms, int64_t boot_ms)
{
    int64_t passed_ms = boot_ms - clock->base_boot_ms;
    int64_t ahead_ms;

    passed_ms = passed_ms < 0 ? 0 : passed_ms;
    clock->base_ms += passed_ms;
    clock->base_boot_ms += passed_ms;
    clock->allowance_ms = passed_ms > HOUR_MS - clock->allowance_ms
                              ? HOUR_MS
                              : clock->allowance_ms + passed_ms;
    CHECK(clock->allowance_ms >= 0);
    CHECK(clock->allowance_ms <= HOUR_MS);
    ahead_ms = wall_ms - clock->base_ms;
    if (ahead_ms < 0) {
        MARK(wall_clock_behind);
    }
    if (ahead_ms > 0) {
        ahead_ms =
            ahead_ms < clock->allowance_ms ? ahead_ms : clock->allowance_ms;
        clock->base_ms += ahead_ms;
        clock->allowance_ms -= ahead_ms;
    }
}

/* A wall clock that was far ahead and was put right leaves the store ahead of
 * it for good: that must not keep things for ever, so things expire by the
 * wall clock where that is the earlier one. */
static void follow_expiry(struct store_clock *clock, int64_t wall_ms)
{
    int64_t now_ms = wall_ms < clock->base_ms ? wall_ms : clock->base_ms;

    if (!clock->frozen && now_ms > atomic_load_explicit(&clock->expiry_ms,
                                                        memory_order_relaxed)) {
        atomic_store_explicit(&clock->expiry_ms, now_ms, memory_order_relaxed);
    }
}

static void judge(struct store_clock *clock, int64_t wall_ms)
{
    bool agree = wall_ms - clock->base_ms <= HOUR_MS;

    if (agree != clock->agreed) {
        clock->agreed = agree;
        clock->agreed_boot_ms = clock->base_boot_ms;
        if (!agree) {
            clock->frozen = true;
            MARK(clocks_apart);
            tell("the wall clock is far ahead, nothing expires", clock->base_ms,
                 wall_ms);
        }
    }
    if (clock->frozen && clock->agreed &&
        clock->base_boot_ms - clock->agreed_boot_ms >= HOUR_MS) {
        clock->frozen = false;
        MARK(clocks_agree_again);
        tell("clocks agree again, expiry goes on", clock->base_ms, wall_ms);
    }
}

int64_t store_now_ms(struct store *store)
{
    struct store_clock *clock = &store->clock;
    int64_t wall_ms = clock_wall_ms(store->options.clock);

    advance(clock, wall_ms, clock_boot_ms(store->options.clock));
    judge(clock, wall_ms);
    follow_expiry(clock, wall_ms);
    CHECK(clock->base_ms >= store->state.clock_mark_ms ||
          store->options.read_only);
    return clock->base_ms;
}

int64_t store_clock_expiry_ms(const struct store *store)
{
    return atomic_load_explicit(&store->clock.expiry_ms, memory_order_relaxed);
}
