/* SPDX-License-Identifier: MIT */
#include "handler/exec_lease.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/attempts.h"
#include "support/exec_rig.h"

/* Whether the note in the n-th lease names a running process: in its second
 * line. */
static bool lease_has_pid(const struct rig *rig, unsigned n)
{
    char path[128];
    char text[256] = "";
    const char *end = NULL;
    int fd;

    snprintf(path, sizeof path, "%s/r.%u", rig->leases, n);
    fd = open(path, O_RDONLY);
    if (fd != -1 && read(fd, text, sizeof text - 1) > 0) {
        end = strchr(text, '\n');
    }
    if (fd != -1) {
        close(fd);
    }
    return end != NULL && end[1] >= '1' && end[1] <= '9';
}

/* A worker of its own that starts `n` attempts and is killed. */
static void leave_orphans(struct rig *rig, uint32_t n)
{
    pid_t worker = fork();

    if (worker == 0) {
        rig_start(rig);
        for (uint32_t i = 0; i < n; i++) {
            struct test_attempt *t = attempt_new("");

            t->attempt.number = i + 1;
            rig->handler.ops->start(rig->handler.self, &t->attempt);
        }
        for (;;) {
            pause();
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        while (!lease_has_pid(rig, i)) {
            sched_yield();
        }
    }
    cr_assert_eq(kill(worker, SIGKILL), 0);
    cr_assert_eq(waitpid(worker, NULL, 0), worker);
}

static bool is_alive(const struct rig *rig, uint32_t number)
{
    return rig->handler.ops->is_alive(
        rig->handler.self, (const uint8_t *)"0123456789abcdef", number);
}

static void kill_and_wait(const struct rig *rig, uint32_t number)
{
    rig->handler.ops->kill(rig->handler.self,
                           (const uint8_t *)"0123456789abcdef", number);
    for (int n = 0; n < 10000 && is_alive(rig, number); n++) {
        poll(NULL, 0, 1);
    }
    cr_assert_not(is_alive(rig, number));
}

Test(exec_lease, an_orphan_is_alive_until_it_is_killed)
{
    static const char *const scripts[] = {
        "touch up; exec sleep 600",
        "touch up; sleep 600",
        "setsid sh -c 'touch up; exec sleep 600' & wait",
    };

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct rig rig;
        struct rig other;

        rig_init(&rig, scripts[i]);
        leave_orphans(&rig, 1);
        wait_for_file(&rig, "up");
        rig_start(&rig);
        cr_assert(is_alive(&rig, 1));
        cr_assert(is_alive(&rig, 1));
        cr_assert_not(is_alive(&rig, 2));
        cr_assert_not(rig.handler.ops->is_alive(
            rig.handler.self, (const uint8_t *)"0123456789abcdeX", 1));
        /* another route of the same store knows nothing of it */
        rig_init(&other, "exit 0");
        other.options.lease_dir = rig.leases;
        other.options.route = "r.0";
        rig_start(&other);
        cr_assert_not(is_alive(&other, 1));
        rig_fini(&other);
        /* another attempt's kill does nothing to it */
        rig.handler.ops->kill(rig.handler.self,
                              (const uint8_t *)"0123456789abcdef", 2);
        cr_assert(is_alive(&rig, 1));
        kill_and_wait(&rig, 1);
        rig_fini(&rig);
    }
}

static void touch(const struct rig *rig, const char *name)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fclose(file);
}

Test(exec_lease, the_group_of_an_orphan_is_killed_with_it)
{
    struct rig rig;
    int child;

    rig_init(&rig, "sh -c 'exec 3<&-; echo $$ > child; touch up;"
                   " exec sleep 600' & wait");
    leave_orphans(&rig, 1);
    wait_for_file(&rig, "up");
    child = read_number(&rig, "child");
    rig_start(&rig);
    kill_and_wait(&rig, 1);
    cr_assert(is_gone_soon(child));
    rig_fini(&rig);
}

Test(exec_lease, an_orphan_that_ends_by_itself_is_not_alive)
{
    struct rig rig;

    rig_init(&rig, "while [ ! -e go ]; do sleep 0.01; done");
    leave_orphans(&rig, 1);
    rig_start(&rig);
    cr_assert(is_alive(&rig, 1));
    touch(&rig, "go");
    for (int n = 0; n < 10000 && is_alive(&rig, 1); n++) {
        poll(NULL, 0, 1);
    }
    cr_assert_not(is_alive(&rig, 1));
    rig_fini(&rig);
}

Test(exec_lease, an_orphan_is_not_taken_for_who_has_its_lease_now)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");

    rig_init(&rig, "echo $$ > group; touch up;"
                   " while [ ! -e go ]; do sleep 0.01; done");
    leave_orphans(&rig, 1);
    wait_for_file(&rig, "up");
    rig.argv[2] = "touch second; exec sleep 600";
    rig_start(&rig);
    cr_assert(is_alive(&rig, 1));
    touch(&rig, "go");
    cr_assert(is_gone_soon(-read_number(&rig, "group")));
    t->attempt.number = 9;
    rig.handler.ops->start(rig.handler.self, &t->attempt);
    wait_for_file(&rig, "second");
    rig.handler.ops->kill(rig.handler.self, t->attempt.identity, 1);
    cr_assert_not(is_alive(&rig, 1));
    cr_assert_not(t->is_finished);
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_lease, leases_of_orphans_are_not_given_to_new_attempts)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");

    rig_init(&rig, "exec sleep 600");
    rig.options.concurrency = 4; /* eight leases, four of them taken */
    leave_orphans(&rig, 4);
    rig.argv[2] = "exit 0";
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert_eq(t->attempt.end, END_EXIT);
    rig_stop(&rig);
    attempt_free(t);
    t = attempt_new("");
    rig.options.concurrency = 2; /* four leases, all taken */
    rig_start(&rig);
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert_eq(t->attempt.end, END_UNREACHED);
    cr_assert_str_eq(t->attempt.text,
                     "all leases are held by processes of earlier attempts");
    attempt_free(t);
    kill_and_wait(&rig, 2);
    t = attempt_new("");
    t->attempt.number = 9;
    cr_assert(attempt_run(&rig.handler, t));
    cr_assert_eq(t->attempt.end, END_EXIT, "%s", t->attempt.text);
    cr_assert(is_alive(&rig, 1));
    cr_assert_not(is_alive(&rig, 2));
    cr_assert_not(is_alive(&rig, 9));
    for (uint32_t n = 1; n <= 4; n++) {
        kill_and_wait(&rig, n);
    }
    rig_fini(&rig);
    attempt_free(t);
}

Test(exec_lease, leases_are_private_and_say_what_they_are_for)
{
    struct rig rig;
    struct test_attempt *t = attempt_new("");
    struct stat info;
    char path[128];

    rig_init(&rig, "head -1 lease/caf%C3%A9%2Fx.0 | cut -d ' ' -f 1,2");
    rig.options.route = "caf\xc3\xa9/x";
    rig_start(&rig);
    t->attempt.number = 7;
    cr_assert(attempt_run(&rig.handler, t));
    assert_body(&t->attempt, 200, "30313233343536373839616263646566 7\n");
    cr_assert_eq(stat(rig.leases, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0700);
    snprintf(path, sizeof path, "%s/caf%%C3%%A9%%2Fx.0", rig.leases);
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
    rig_fini(&rig);
    attempt_free(t);
}
