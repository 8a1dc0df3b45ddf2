/* SPDX-License-Identifier: MIT */
#include "app/admin_internal.h"
#include "base/check.h"

/* Orders that one thread waits for. */
struct admin_batch {
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t waiting; /* with the engine */
};

/* Once the lock is free the batch may be gone. */
static void order_done(struct command *command)
{
    struct admin_batch *batch = ((struct admin_order *)command)->batch;

    CHECK(pthread_mutex_lock(&batch->lock) == 0);
    CHECK(batch->waiting > 0);
    batch->waiting--;
    CHECK(pthread_cond_signal(&batch->done) == 0);
    CHECK(pthread_mutex_unlock(&batch->lock) == 0);
}

static void post(struct admin *admin, struct admin_batch *batch,
                 struct admin_order *order)
{
    order->batch = batch;
    order->command.done = order_done;
    CHECK(pthread_mutex_lock(&batch->lock) == 0);
    batch->waiting++;
    CHECK(pthread_mutex_unlock(&batch->lock) == 0);
    if (engine_command(admin->engine, &order->command)) {
        return;
    }
    order->command.status = COMMAND_BUSY;
    order->command.why = "too many orders are waiting";
    order_done(&order->command);
}

void admin_run(struct admin *admin, struct admin_order *orders, size_t n)
{
    struct admin_batch batch = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .done = PTHREAD_COND_INITIALIZER,
    };

    for (size_t i = 0; i < n; i++) {
        post(admin, &batch, &orders[i]);
    }
    CHECK(pthread_mutex_lock(&batch.lock) == 0);
    while (batch.waiting > 0) {
        CHECK(pthread_cond_wait(&batch.done, &batch.lock) == 0);
    }
    CHECK(pthread_mutex_unlock(&batch.lock) == 0);
    (void)pthread_cond_destroy(&batch.done);
    (void)pthread_mutex_destroy(&batch.lock);
}

const char *admin_status_name(enum command_status status)
{
    switch (status) {
    case COMMAND_DONE:
        return "done";
    case COMMAND_NOTHING_TO_DO:
        return "nothing-to-do";
    case COMMAND_IN_DOUBT:
        return "in-doubt";
    case COMMAND_REFUSED:
        return "refused";
    case COMMAND_NOT_FOUND:
        return "not-found";
    case COMMAND_BUSY:
        return "busy";
    }
    UNREACHABLE("every status has a name");
}
