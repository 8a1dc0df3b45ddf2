/* SPDX-License-Identifier: MIT */
/*
 * ThreadSanitizer knows the threads and locks of POSIX and not those of C11,
 * with which librdkafka is built: its threads would be strangers, and what
 * its locks order would look like races. Under the sanitizer the program
 * brings C11's functions along, each made of the POSIX one.
 *
 * What librdkafka orders by atomic operations of its own stays unknown:
 * reports with the library in a stack are left out, and with them what its
 * callbacks do.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "one holds the other");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "one holds the other");

const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
    return "race:librdkafka.so\n";
}

struct start {
    thrd_start_t run;
    void *arg;
};

static int result_of(int rc)
{
    switch (rc) {
    case 0:
        return thrd_success;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

static void *run(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    return (void *)(intptr_t)start.run(start.arg);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *arg)
{
    struct start *start = malloc(sizeof *start);

    if (start == NULL) {
        return thrd_nomem;
    }
    *start = (struct start){function, arg};
    return result_of(pthread_create(thread, NULL, run, start));
}

int thrd_join(thrd_t thread, int *result)
{
    void *value = NULL;
    int rc = pthread_join(thread, &value);

    if (result != NULL) {
        *result = (int)(intptr_t)value;
    }
    return result_of(rc);
}

int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    int rc;

    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(&attributes, (type & mtx_recursive) != 0
                                                     ? PTHREAD_MUTEX_RECURSIVE
                                                     : PTHREAD_MUTEX_NORMAL);
    rc = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return result_of(rc);
}

int mtx_lock(mtx_t *mutex)
{
    return result_of(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex)
{
    return result_of(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

void mtx_destroy(mtx_t *mutex)
{
    (void)pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_init(cnd_t *condition)
{
    return result_of(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int cnd_signal(cnd_t *condition)
{
    return result_of(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
    return result_of(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return result_of(pthread_cond_wait((pthread_cond_t *)condition,
                                       (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict until)
{
    return result_of(pthread_cond_timedwait((pthread_cond_t *)condition,
                                            (pthread_mutex_t *)mutex, until));
}

void cnd_destroy(cnd_t *condition)
{
    (void)pthread_cond_destroy((pthread_cond_t *)condition);
}
