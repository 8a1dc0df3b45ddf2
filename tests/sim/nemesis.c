/* SPDX-License-Identifier: MIT */
/* When faults happen. Nothing that the promises exclude: disks do not forget
 * what they said was durable, and no two processes own the store. */
#include "base/check.h"
#include "sim/sim.h"

static void plan_in(struct sim *sim, int64_t most_ms, agenda_act act, void *who)
{
    agenda_plan(&sim->agenda, sim->now_ms + dice_skewed(&sim->dice, 1, most_ms),
                act, who);
}

static void jump(struct sim *sim, int64_t by_ms)
{
    sim->wall_offset_ms += by_ms;
    sim_trace(sim, "the wall clock jumps by %lld s", (long long)by_ms / 1000);
}

/* --- commits and deaths ------------------------------------------------------
 */

static enum commit_fault draw_fault(struct sim *sim)
{
    static const enum commit_fault all[] = {COMMIT_LOST, COMMIT_KEPT,
                                            COMMIT_FAILS, COMMIT_UNKNOWN,
                                            COMMIT_NO_SPACE};
    static const enum feature by[] = {FEATURE_CRASHES, FEATURE_CRASHES,
                                      FEATURE_IO_ERRORS, FEATURE_IO_ERRORS,
                                      FEATURE_NO_SPACE};
    unsigned i = dice_below(&sim->dice, 5);

    return sim->has[by[i]] ? all[i] : COMMIT_FINE;
}

static void arm(struct sim *sim, unsigned within)
{
    struct process *process = &sim->process;

    process->fault = draw_fault(sim);
    process->fault_in = dice_below(&sim->dice, within) + 1;
    process->fault_releases = dice_below(&sim->dice, 6);
}

static enum commit_fault strike(struct sim *sim)
{
    struct process *process = &sim->process;

    sim->sights.commits[process->fault]++;
    switch (process->fault) {
    case COMMIT_FINE:
        return COMMIT_FINE;
    case COMMIT_LOST:
        process->dead = true;
        break;
    case COMMIT_KEPT:
        process->counts_releases = true;
        break;
    case COMMIT_FAILS:
    case COMMIT_UNKNOWN:
        break;
    case COMMIT_NO_SPACE:
        /* A worker that runs goes on. */
        process->fault_hit = !process->up;
        sim_trace(sim, "the commit finds no space");
        return COMMIT_NO_SPACE;
    }
    process->fault_hit = true;
    sim_trace(sim, "the commit of process %u: fault %d", process->number,
              (int)process->fault);
    return process->fault;
}

enum commit_fault nemesis_judge(struct sim *sim)
{
    struct process *process = &sim->process;

    if (process->dead || process->counts_releases) {
        process->dead = true;
        return COMMIT_LOST;
    }
    process->committed = true;
    if (process->fault_in == 0 || --process->fault_in > 0) {
        return COMMIT_FINE;
    }
    return strike(sim);
}

static void act_kill(struct sim *sim, void *who)
{
    (void)who;
    if (!sim->healed) {
        process_kill(sim, "while something was under way");
    }
}

void nemesis_tempt(struct sim *sim, int64_t within_ms)
{
    if (!sim->healed && sim->has[FEATURE_JUMPS] &&
        dice_permille(&sim->dice, 10)) {
        jump(sim, dice_skewed(&sim->dice, 1000, HOUR_MS));
    }
    if (sim->healed || !dice_permille(&sim->dice, sim->tempt_permille)) {
        return;
    }
    if (sim->has[FEATURE_CRASHES] && dice_permille(&sim->dice, 300)) {
        plan_in(sim, within_ms, act_kill, NULL);
    } else if (sim->process.fault_in == 0) {
        arm(sim, 3);
    }
}

void nemesis_tempt_more(struct sim *sim, int64_t within_ms)
{
    if (!sim->healed && sim->has[FEATURE_CRASHES] &&
        dice_permille(&sim->dice, 200)) {
        plan_in(sim, within_ms, act_kill, NULL);
    }
}

void nemesis_tempt_upkeep(struct sim *sim)
{
    if (!sim->healed && sim->process.fault_in == 0 &&
        dice_permille(&sim->dice, sim->has[FEATURE_CROWDS] ? 300 : 40)) {
        arm(sim, 2);
    }
}

static void act_strike(struct sim *sim, void *who)
{
    (void)who;
    if (sim->healed) {
        return;
    }
    plan_in(sim, 2 * sim->crash_gap_ms, act_strike, NULL);
    if (!sim->process.up) {
        return;
    }
    if (sim->has[FEATURE_CRASHES] && dice_permille(&sim->dice, 200)) {
        process_kill(sim, "between two turns");
    } else {
        arm(sim, 6);
    }
}

static void act_start(struct sim *sim, void *who)
{
    (void)who;
    if (sim->process.store != NULL || sim->closing) {
        return;
    }
    if (!sim->healed && sim->has[FEATURE_BAD_STARTS] &&
        dice_permille(&sim->dice, 400)) {
        arm(sim, 4);
    }
    (void)process_start(sim);
}

static void reboot(struct sim *sim)
{
    sim_trace(sim, "the machine starts again");
    sim->boot_offset_ms = SIM_START_MS - sim->now_ms;
    receiver_reboot(sim);
}

void nemesis_process_ended(struct sim *sim)
{
    int64_t most_ms = sim->healed                     ? 1000
                      : dice_permille(&sim->dice, 50) ? 20 * MINUTE_MS
                                                      : 20000;

    if (sim->closing) {
        return;
    }
    if (!sim->healed && sim->has[FEATURE_REBOOTS] &&
        dice_permille(&sim->dice, 300)) {
        reboot(sim);
    }
    if (!sim->healed && sim->has[FEATURE_CHANGES] &&
        dice_permille(&sim->dice, 300)) {
        plan_change(sim);
    }
    plan_in(sim, most_ms, act_start, NULL);
}

static void act_restart(struct sim *sim, void *who)
{
    (void)who;
    if (!sim->healed) {
        process_stop(sim);
        plan_in(sim, sim->phase_ms, act_restart, NULL);
    }
}

/* --- the world around it -----------------------------------------------------
 */

static void act_jump_back(struct sim *sim, void *who)
{
    (void)who;
    if (!sim->healed && sim->wall_offset_ms != 0) {
        jump(sim, -sim->wall_offset_ms);
    }
}

/* Away by up to a day, and often back again. */
static void act_jump(struct sim *sim, void *who)
{
    int64_t by_ms = dice_skewed(&sim->dice, 1000, DAY_MS);

    (void)who;
    if (sim->healed) {
        return;
    }
    jump(sim, dice_permille(&sim->dice, 350) ? -by_ms : by_ms);
    if (dice_permille(&sim->dice, 600)) {
        plan_in(sim, 30 * MINUTE_MS, act_jump_back, NULL);
    }
    plan_in(sim, sim->phase_ms / 2, act_jump, NULL);
}

static void act_outage(struct sim *sim, void *who)
{
    struct sim_route *route =
        &sim->routes[dice_below(&sim->dice, (unsigned)sim->n_routes)];

    (void)who;
    if (sim->healed) {
        return;
    }
    route->unreachable_until_ms =
        sim->now_ms + dice_skewed(&sim->dice, 1000, 20 * MINUTE_MS);
    sim_trace(sim, "nobody is there for %s till %lld", route->name,
              (long long)route->unreachable_until_ms);
    plan_in(sim, sim->phase_ms, act_outage, NULL);
}

static void act_disk(struct sim *sim, void *who)
{
    (void)who;
    if (sim->healed) {
        return;
    }
    sim->disk_full = !sim->disk_full;
    sim_trace(sim, "the disk is %s", sim->disk_full ? "full" : "no more full");
    plan_in(sim, sim->disk_full ? 5 * MINUTE_MS : sim->phase_ms, act_disk,
            NULL);
}

void nemesis_plan(struct sim *sim)
{
    plan_in(sim, 1000, act_start, NULL);
    if (sim->has[FEATURE_CRASHES] || sim->has[FEATURE_IO_ERRORS] ||
        sim->has[FEATURE_NO_SPACE]) {
        plan_in(sim, 2 * sim->crash_gap_ms, act_strike, NULL);
    }
    if (sim->has[FEATURE_RESTARTS]) {
        plan_in(sim, sim->phase_ms, act_restart, NULL);
    }
    if (sim->has[FEATURE_JUMPS]) {
        plan_in(sim, sim->phase_ms / 2, act_jump, NULL);
    }
    if (sim->has[FEATURE_OUTAGES]) {
        plan_in(sim, sim->phase_ms, act_outage, NULL);
    }
    if (sim->has[FEATURE_FULL_DISK]) {
        plan_in(sim, sim->phase_ms, act_disk, NULL);
    }
}
