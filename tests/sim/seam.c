/* SPDX-License-Identifier: MIT */
/*
 * The linker puts these in front of what the program calls (--wrap): no line
 * of the program knows that it is simulated. Without a world they do what the
 * real ones do.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>

#include "base/check.h"
#include "base/queue.h"
#include "sim/sim.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int __real_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn);
int __real_fallocate(int fd, int mode, off_t offset, off_t len);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len);
void __real_hash_random(void *out, size_t len);
void __wrap_hash_random(void *out, size_t len);
struct queue_item *__real_queue_drain(struct queue *queue, size_t max_items,
                                      size_t max_bytes, int64_t timeout_ms);
struct queue_item *__wrap_queue_drain(struct queue *queue, size_t max_items,
                                      size_t max_bytes, int64_t timeout_ms);

struct sim *sim_current;

static int refuse(MDB_txn *txn, int error)
{
    mdb_txn_abort(txn);
    return error;
}

static int apply_then_fail(MDB_txn *txn)
{
    int rc = __real_mdb_txn_commit(txn);

    return rc == 0 ? EIO : rc;
}

int __wrap_mdb_txn_commit(MDB_txn *txn)
{
    if (sim_current == NULL) {
        return __real_mdb_txn_commit(txn);
    }
    switch (nemesis_judge(sim_current)) {
    case COMMIT_FINE:
    case COMMIT_KEPT:
        return __real_mdb_txn_commit(txn);
    case COMMIT_LOST:
    case COMMIT_FAILS:
        return refuse(txn, EIO);
    case COMMIT_UNKNOWN:
        return apply_then_fail(txn);
    case COMMIT_NO_SPACE:
        return refuse(txn, ENOSPC);
    }
    UNREACHABLE("every fault is listed");
}

/* Memory need not be allocated ahead. */
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (sim_current == NULL) {
        return __real_fallocate(fd, mode, offset, len);
    }
    errno = sim_current->disk_full ? ENOSPC : 0;
    return sim_current->disk_full ? -1 : 0;
}

void __wrap_hash_random(void *out, size_t len)
{
    uint8_t *bytes = out;

    if (sim_current == NULL) {
        __real_hash_random(out, len);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)dice_next(&sim_current->random);
    }
}

/* The engine does not sleep: how long it would have is noted, and the world
 * turns it when that time has come, or an item has. */
struct queue_item *__wrap_queue_drain(struct queue *queue, size_t max_items,
                                      size_t max_bytes, int64_t timeout_ms)
{
    struct queue_item *items;

    if (sim_current == NULL) {
        return __real_queue_drain(queue, max_items, max_bytes, timeout_ms);
    }
    items = __real_queue_drain(queue, max_items, max_bytes, 0);
    sim_current->process.wait_ms = timeout_ms;
    sim_current->process.drained = items != NULL;
    return items;
}
/* NOLINTEND(bugprone-reserved-identifier) */
