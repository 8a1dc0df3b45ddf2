/* SPDX-License-Identifier: MIT */
/*
 * A walk over the members of a JSON object: each is met once, so that a line
 * with many members is read in one pass (json_find makes one for each). The
 * text must have passed json_check. Pure.
 */
#ifndef CHECKER_LEDGER_MEMBERS_H
#define CHECKER_LEDGER_MEMBERS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/json.h"

struct ledger_members {
    const char *at, *end;
    struct slice name; /* as it stands between its quotes, escapes and all */
    struct json_value value;
};

/* `object` begins with '{', and nothing but blanks stands behind it. */
struct ledger_members ledger_members_of(struct slice object);

/* The next name and value, which borrow from the object; false at its end. */
bool ledger_next_member(struct ledger_members *members);

#endif
