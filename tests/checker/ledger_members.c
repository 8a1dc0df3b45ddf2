/* SPDX-License-Identifier: MIT */
#include "checker/ledger_members.h"

#include <string.h>

#include "base/check.h"
#include "base/json_string.h"

static void skip_blank(struct ledger_members *members)
{
    while (members->at < members->end &&
           (*members->at == ' ' || *members->at == ',' || *members->at == ':' ||
            *members->at == '\t' || *members->at == '\r')) {
        members->at++;
    }
}

static void skip_string(struct ledger_members *members)
{
    struct slice text;
    bool ok = json_string_take(&members->at, members->end, &text);

    CHECK(ok);
}

static void skip_container(struct ledger_members *members)
{
    int depth = 0;

    do {
        switch (*members->at) {
        case '"':
            skip_string(members);
            continue;
        case '[':
        case '{':
            depth++;
            break;
        case ']':
        case '}':
            depth--;
            break;
        default:
            break;
        }
        members->at++;
    } while (depth > 0);
}

static void skip_word(struct ledger_members *members)
{
    while (strchr(",}] \t\r", *members->at) == NULL) {
        members->at++;
    }
}

static enum json_type skip_value(struct ledger_members *members)
{
    switch (*members->at) {
    case '"':
        skip_string(members);
        return JSON_STRING;
    case '{':
        skip_container(members);
        return JSON_OBJECT;
    case '[':
        skip_container(members);
        return JSON_ARRAY;
    case 't':
        skip_word(members);
        return JSON_TRUE;
    case 'f':
        skip_word(members);
        return JSON_FALSE;
    case 'n':
        skip_word(members);
        return JSON_NULL;
    default:
        skip_word(members);
        return JSON_NUMBER;
    }
}

struct ledger_members ledger_members_of(struct slice object)
{
    return (struct ledger_members){.at = object.data + 1,
                                   .end = object.data + object.len};
}

bool ledger_next_member(struct ledger_members *members)
{
    const char *start;

    skip_blank(members);
    if (*members->at == '}') {
        return false;
    }
    start = members->at;
    skip_string(members);
    members->name =
        (struct slice){start + 1, (size_t)(members->at - start) - 2};
    skip_blank(members);
    start = members->at;
    members->value.type = skip_value(members);
    members->value.raw = (struct slice){start, (size_t)(members->at - start)};
    return true;
}
