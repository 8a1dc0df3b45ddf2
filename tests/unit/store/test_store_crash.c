/* SPDX-License-Identifier: MIT */
/* A writer is killed at any point; what it had told its parent as durable
 * must be there, and the store must be whole. */
#include <signal.h>
#include <sys/wait.h>

#include "fixture.h"

enum { ROUNDS = 20, BATCH = 7 };

static uint32_t random_state = 7;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525U + 1013904223U;
    return random_state >> 8;
}

static uint16_t name_stream(struct fixture *f)
{
    uint16_t stream = 0;

    OK(f,
       store_stream_number(f->store, "default/orders/onced", &stream, &f->err));
    return stream;
}

/* One batch: new events; the events before it settle, one of them dead, to be
 * published. The low-water counts the batches. */
static void write_batch(struct fixture *f, uint16_t stream, int batch)
{
    const struct store_low_water low_water = {.offset = batch};
    struct store_entry entry;
    char id[32];
    bool more;

    OK(f, store_begin(f->store, &f->err));
    for (int i = 0; i < BATCH; i++) {
        (void)snprintf(id, sizeof id, "%d.%d", batch, i);
        fixture_accept(f, id, &entry);
        OK(f, store_put_envelope(f->store, &entry, slice_of(id), &f->err));
        (void)snprintf(id, sizeof id, "%d.%d", batch - 9, i);
        if (i > 0 && fixture_find(f, id, &entry) == STORE_FOUND) {
            fixture_settle(f, &entry, i == 1 ? RECORD_DEAD : RECORD_SUCCEEDED);
            if (i == 1) {
                OK(f, store_outbox_add(f->store, &entry, &f->err));
            }
        }
    }
    OK(f, store_put_low_water(f->store, stream, 0, &low_water, &f->err));
    OK(f, store_maintain(f->store, &more, &f->err));
    OK(f, store_commit(f->store, &f->err));
}

static _Noreturn void run_writer(struct fixture *f, int from, int out)
{
    uint16_t stream;

    fixture_open(f);
    stream = name_stream(f);
    for (int batch = from;; batch++) {
        write_batch(f, stream, batch);
        fixture_run_for(f, HOUR_MS);
        if (write(out, &batch, sizeof batch) != sizeof batch) {
            _exit(1);
        }
    }
}

/* The last batch that the writer called durable before it was killed. */
static int run_and_kill(struct fixture *f, int from)
{
    int pipes[2], last = from - 1;
    uint32_t acks = next_random() % 60;
    pid_t child;

    cr_assert_eq(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        close(pipes[0]);
        run_writer(f, from, pipes[1]);
    }
    close(pipes[1]);
    for (uint32_t i = 0; i < acks; i++) {
        cr_assert_eq(read(pipes[0], &last, sizeof last), sizeof last);
    }
    cr_assert_eq(kill(child, SIGKILL), 0);
    while (read(pipes[0], &last, sizeof last) == sizeof last) {
    }
    close(pipes[0]);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    return last;
}

/* What is settled is gone after 100 hours; what is open or dead stays. */
static void expect_batches(struct fixture *f, int last)
{
    struct store_entry entry;
    char id[32];

    OK(f, store_begin(f->store, &f->err));
    for (int batch = 0; batch <= last; batch++) {
        for (int i = 0; i < BATCH; i++) {
            if (i > 1 && batch < last - 80) {
                continue;
            }
            (void)snprintf(id, sizeof id, "%d.%d", batch, i);
            FOUND(f, fixture_find(f, id, &entry));
        }
    }
    store_abort(f->store);
}

/* They are as the newest batch left them: not behind it, not ahead of it. */
static void expect_partition(struct fixture *f, int last)
{
    struct store_low_water low_water = {.offset = -1};
    struct identity identity;
    struct store_entry entry;
    uint16_t stream = name_stream(f);
    uint64_t origin = 0;
    int letters = 0;

    OK(f, store_begin(f->store, &f->err));
    cr_assert_neq(store_get_low_water(f->store, stream, 0, &low_water, &f->err),
                  STORE_FAILED, "%s", f->err.text);
    cr_assert_eq(low_water.offset, last);
    while (store_outbox_next(f->store, f->route, &origin, &identity, &f->err) ==
           STORE_FOUND) {
        FOUND(f, store_find_identity(f->store, &identity, &entry, &f->err));
        cr_assert_eq(entry.record.state, RECORD_DEAD);
        cr_assert_eq(entry.origin, origin);
        letters++;
    }
    cr_assert_eq(letters, last < 9 ? 0 : last - 8);
    store_abort(f->store);
}

Test(store_crash, what_was_told_durable_is_there_after_a_kill, .timeout = 240)
{
    struct fixture f;
    struct store_report report;
    int last = -1;

    fixture_prepare(&f);
    f.options.ids_per_generation = 50;
    f.options.retention_ms = 100 * HOUR_MS;
    for (int round = 0; round < ROUNDS; round++) {
        struct store_entry entry;
        char id[32];
        int next;

        last = run_and_kill(&f, last + 1);
        OK(&f, store_verify(f.dir, &report, &f.err));
        cr_assert_eq(report.bad, 0, "%s", report.first_bad);
        f.wall_ms = START_MS + (last + 2) * HOUR_MS;
        fixture_open(&f);
        expect_batches(&f, last);
        /* The commit that was under way may have been done as well. */
        next = last + 1;
        (void)snprintf(id, sizeof id, "%d.0", next);
        if (fixture_look(&f, id, &entry) == STORE_FOUND) {
            last = next;
        }
        expect_partition(&f, last);
        store_close(&f.store);
    }
    tmpdir_remove(f.dir);
}
