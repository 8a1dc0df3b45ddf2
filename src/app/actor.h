/* SPDX-License-Identifier: MIT */
/*
 * Who gives an order, as the audit names a user of this machine.
 */
#ifndef ONCED_APP_ACTOR_H
#define ONCED_APP_ACTOR_H

#include <sys/types.h>

#include "store/store.h"

/* The user's name, or "uid:1000" where there is none. Any thread. */
void actor_of_user(uid_t uid, char out[STORE_ACTOR_MAX + 1]);

#endif
