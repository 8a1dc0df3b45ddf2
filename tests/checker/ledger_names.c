/* SPDX-License-Identifier: MIT */
#include "checker/ledger_names.h"

#include <stddef.h>

const char *const ledger_on_uncertain_names[] = {"retry", "hold", "probe",
                                                 NULL};
const char *const ledger_after_dead_names[] = {"continue", "hold", NULL};
const char *const ledger_respond_names[] = {"accepted", "result", "handled",
                                            NULL};
const char *const ledger_drift_names[] = {"ack", "dead", "reject", NULL};
const char *const ledger_end_names[] = {
    "status", "exit", "signal", "timeout", "broken", "unreached", "lost", NULL,
};
const char *const ledger_order_names[] = {
    "replay",  "rerun", "resolve-applied", "resolve-not-applied",
    "discard", "pause", "resume",          NULL,
};
const char *const ledger_verdict_names[] = {
    "done",      "nothing-to-do", "in-doubt", "refused",
    "not-found", "busy",          "unknown",  NULL,
};
const char *const ledger_state_names[] = {
    "PENDING", "RUNNING", "UNCERTAIN", "SUCCEEDED", "FAILED", "DEAD", NULL,
};
const char *const ledger_skip_names[] = {"moved", "reset", "truncated", NULL};
