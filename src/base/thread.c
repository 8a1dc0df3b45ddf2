/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

#include "base/check.h"

bool thread_start(pthread_t *thread, void *(*run)(void *self), void *self,
                  struct err *err)
{
    sigset_t all;
    sigset_t before;
    int error;

    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    error = pthread_create(thread, NULL, run, self);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return error == 0 ||
           err_set(err, ERR_AGAIN, "start thread: %s", strerror(error));
}
