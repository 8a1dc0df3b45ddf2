/* SPDX-License-Identifier: MIT */
#include "core/outcome.h"

#include "base/check.h"

/* sysexits(3): 75 is "try again later", 64 to 78 are all of them. */
enum { EXIT_FIRST = 64, EXIT_TRY_AGAIN = 75, EXIT_LAST = 78 };

static bool contains(const uint16_t *statuses, size_t n, int status)
{
    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == status) {
            return true;
        }
    }
    return false;
}

/* A status that the server gives before it looks at the event. */
static bool is_set_up(int status)
{
    static const uint16_t statuses[] = {401, 403, 404, 405, 413, 415};

    return contains(statuses, sizeof statuses / sizeof statuses[0], status);
}

static bool is_not_applied(int status)
{
    static const uint16_t statuses[] = {408, 409, 421, 425, 429};

    return contains(statuses, sizeof statuses / sizeof statuses[0], status);
}

static enum outcome of_client_error(const struct outcome_rules *rules,
                                    int status)
{
    if (is_set_up(status)) {
        return OUTCOME_REFUSED;
    }
    if (is_not_applied(status)) {
        return rules->has_not_applied ? OUTCOME_UNKNOWN : OUTCOME_TRANSIENT;
    }
    return rules->has_final ? OUTCOME_UNKNOWN : OUTCOME_REJECTED;
}

static enum outcome of_status(const struct outcome_rules *rules, int status)
{
    CHECK(rules->n_not_applied <= OUTCOME_STATUSES_MAX);
    CHECK(rules->n_final <= OUTCOME_STATUSES_MAX);
    if (rules->has_not_applied &&
        contains(rules->not_applied, rules->n_not_applied, status)) {
        return OUTCOME_TRANSIENT;
    }
    if (rules->has_final && contains(rules->final, rules->n_final, status)) {
        return OUTCOME_REJECTED;
    }
    if (status >= 200 && status <= 299) {
        return OUTCOME_SUCCESS;
    }
    if (status >= 300 && status <= 399) {
        return rules->respond == RESPOND_RESULT ? OUTCOME_SUCCESS
                                                : OUTCOME_UNKNOWN;
    }
    if (status >= 400 && status <= 499) {
        return of_client_error(rules, status);
    }
    return OUTCOME_UNKNOWN;
}

static enum outcome of_exit(int status)
{
    if (status == 0) {
        return OUTCOME_SUCCESS;
    }
    if (status == EXIT_TRY_AGAIN) {
        return OUTCOME_TRANSIENT;
    }
    return status >= EXIT_FIRST && status <= EXIT_LAST ? OUTCOME_REJECTED
                                                       : OUTCOME_UNKNOWN;
}

enum outcome outcome_of(const struct outcome_rules *rules, enum attempt_end end,
                        int status)
{
    switch (end) {
    case END_STATUS:
        return of_status(rules, status);
    case END_EXIT:
        return of_exit(status);
    case END_SIGNAL:
    case END_TIMEOUT:
    case END_BROKEN:
        return OUTCOME_UNKNOWN;
    case END_UNREACHED:
        return OUTCOME_UNREACHED;
    }
    UNREACHABLE("every end returns");
}

const char *outcome_name(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_SUCCESS:
        return "success";
    case OUTCOME_REFUSED:
        return "refused";
    case OUTCOME_TRANSIENT:
        return "transient";
    case OUTCOME_REJECTED:
        return "rejected";
    case OUTCOME_UNREACHED:
        return "unreached";
    case OUTCOME_UNKNOWN:
        return "unknown";
    }
    UNREACHABLE("every outcome returns");
}

const char *attempt_end_name(enum attempt_end end)
{
    switch (end) {
    case END_STATUS:
        return "status";
    case END_EXIT:
        return "exit";
    case END_SIGNAL:
        return "signal";
    case END_TIMEOUT:
        return "timeout";
    case END_BROKEN:
        return "broken";
    case END_UNREACHED:
        return "unreached";
    }
    UNREACHABLE("every end returns");
}
