/* SPDX-License-Identifier: MIT */
/*
 * The admin API: health, metrics and the operators' orders, on a unix socket
 * and, where configured, on TCP with bearer tokens. A listener of its own:
 * the ingress serves none of it.
 *
 * Its threads never touch a record. Reads of one event and orders go through
 * the engine's inbox; listings use read transactions.
 */
#ifndef ONCED_APP_ADMIN_H
#define ONCED_APP_ADMIN_H

#include <stdbool.h>

#include "app/config.h"
#include "app/kafka_setup.h"
#include "base/err.h"
#include "engine/engine.h"
#include "store/store.h"

struct admin_options {
    const struct config *config;
    struct engine *engine;
    struct store *store;
    struct kafka_setup *kafka; /* its sources end after the admin API */
};

struct admin;

/* Serves from here on; /readyz says no until admin_set_ready. ERR_AGAIN: the
 * address or socket is in use. */
bool admin_start(struct admin **out, const struct admin_options *options,
                 struct err *err) MUST_CHECK;
void admin_set_ready(struct admin *admin, bool ready);

/* Ends all requests and threads. The engine must still turn, or have answered
 * every command. NULL is fine. */
void admin_stop(struct admin **admin);

#endif
