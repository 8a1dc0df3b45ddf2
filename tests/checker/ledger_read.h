/* SPDX-License-Identifier: MIT */
/*
 * Reads the lines that ledger.h describes, and those of `onced dump`. Time
 * and memory are linear in the length of a line. One thread at a time.
 */
#ifndef CHECKER_LEDGER_READ_H
#define CHECKER_LEDGER_READ_H

#include "checker/ledger.h"

enum ledger_kind {
    LINE_ROUTE,
    LINE_SENT,
    LINE_RESP,
    LINE_INV,
    LINE_DONE,
    LINE_ORDER,
    LINE_FAULT,
    LINE_START,
    LINE_HEAL,
    LINE_QUIET,
    LINE_FORGOTTEN,
    LINE_MSG,
    LINE_ASSIGN,
    LINE_REVOKE,
    LINE_LOST,
    LINE_COMMIT,
    LINE_RESET,
    LINE_SKIP,
    LINE_EVENT,
    LINE_DUMP_HEAD,
    LINE_DUMP_END,
};

struct ledger_dump_head {
    struct slice store;
};

struct ledger_dump_end {
    uint64_t events;
};

struct ledger_line {
    enum ledger_kind kind;
    union {
        struct ledger_route route;
        struct ledger_sent sent;
        struct ledger_resp resp;
        struct ledger_inv inv;
        struct ledger_done done;
        struct ledger_order order;
        struct ledger_fault fault;
        struct ledger_start start;
        struct ledger_phase phase; /* HEAL, QUIET */
        struct ledger_forgotten forgotten;
        struct ledger_msg msg;
        struct ledger_owner owner;   /* ASSIGN, REVOKE, LOST */
        struct ledger_commit commit; /* COMMIT, RESET */
        struct ledger_skip skip;
        struct ledger_event event;
        struct ledger_dump_head dump_head;
        struct ledger_dump_end dump_end;
    };
};

/* What the decoded strings and rows of one line stand in. */
struct ledger_reader {
    struct buf text;
    struct ledger_row *rows;
    size_t rows_cap;
};

#define LEDGER_READER_INIT ((struct ledger_reader){BUF_INIT, NULL, 0})

void ledger_reader_fini(struct ledger_reader *reader);

/* Reads one line (without its newline). `out` borrows from the line and the
 * reader until the next call. ERR_DATA where it is none of a ledger. */
bool ledger_read(struct ledger_reader *reader, struct slice line,
                 struct ledger_line *out, struct err *err) MUST_CHECK;

/* The time of a line; false for those that have none. */
bool ledger_line_time(const struct ledger_line *line, int64_t *t_ms);

#endif
