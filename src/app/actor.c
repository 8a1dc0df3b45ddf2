/* SPDX-License-Identifier: MIT */
#include "app/actor.h"

#include <pwd.h>
#include <stdio.h>

void actor_of_user(uid_t uid, char out[STORE_ACTOR_MAX + 1])
{
    struct passwd entry, *found = NULL;
    char text[1024];

    if (getpwuid_r(uid, &entry, text, sizeof text, &found) == 0 &&
        found != NULL) {
        (void)snprintf(out, STORE_ACTOR_MAX + 1, "%s", entry.pw_name);
    } else {
        (void)snprintf(out, STORE_ACTOR_MAX + 1, "uid:%u", (unsigned)uid);
    }
}
