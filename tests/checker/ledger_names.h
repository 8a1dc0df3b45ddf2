/* SPDX-License-Identifier: MIT */
/*
 * The words of a ledger, for its writer and its reader: one array for each
 * enum of ledger.h, in its order, ended by NULL.
 */
#ifndef CHECKER_LEDGER_NAMES_H
#define CHECKER_LEDGER_NAMES_H

extern const char *const ledger_on_uncertain_names[];
extern const char *const ledger_after_dead_names[];
extern const char *const ledger_respond_names[];
extern const char *const ledger_drift_names[];
extern const char *const ledger_end_names[];
extern const char *const ledger_order_names[];
extern const char *const ledger_verdict_names[];
extern const char *const ledger_state_names[];
extern const char *const ledger_skip_names[];

#endif
