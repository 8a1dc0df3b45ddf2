/* SPDX-License-Identifier: MIT */
/*
 * A loop: one thread, one libmicrohttpd daemon, one listening socket. The
 * library's own epoll thread is not used, because it waits without an end
 * when exactly 128 connections are ready at once; this loop waits on the
 * daemon's epoll descriptor and on an eventfd, and the daemon never waits.
 *
 * The engine hands deliveries back through a list, and wakes the loop when
 * the list was empty: one wake-up per batch. Everything else is the loop's
 * thread alone: it resumes its own connections, and only it shuts down their
 * descriptors, so that none can be another connection's by then.
 */
#ifndef ONCED_SOURCE_HTTP_LOOP_H
#define ONCED_SOURCE_HTTP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "source/http_connection.h"
#include "source/http_request.h"
#include "source/http_shared.h"

struct http_loop;

/* Takes the listening socket, also on failure. */
bool http_loop_start(struct http_loop **out, struct http_shared *shared,
                     int listen_fd, struct err *err) MUST_CHECK;

/* Ends the thread once the answers that are due were written, closes every
 * connection. The engine must hold no delivery of it. */
void http_loop_stop(struct http_loop **taken);

/* Any thread; the request may be gone when it returns. */
void http_loop_hand_back(struct http_request *request);

/* The rest is for requests, on the loop's thread. */

struct http_shared *http_loop_shared(struct http_loop *loop);
uint32_t http_loop_random(struct http_loop *loop);

/* The engine has the request now: its connection rests until it is back. */
void http_loop_hold(struct http_request *request);

/* An answer is queued: the peer's turn. */
void http_loop_answered(struct http_connection *connection);

#endif
