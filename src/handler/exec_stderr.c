/* SPDX-License-Identifier: MIT */
#include "handler/exec_stderr.h"

#include "base/log.h"

void exec_stderr_init(struct exec_stderr *stream)
{
    stream->len = 0;
    stream->n_lines = 0;
    stream->n_bytes = 0;
    stream->was_cut = false;
}

static bool is_full(const struct exec_stderr *stream)
{
    return stream->n_lines >= EXEC_STDERR_LINES ||
           stream->n_bytes >= EXEC_STDERR_BYTES;
}

static void log_text(const struct attempt *attempt, const char *message,
                     struct slice text)
{
    struct log_line line;

    if (log_begin(&line, LOG_INFO, "exec", message)) {
        log_str(&line, "route", slice_of(attempt->route));
        log_str(&line, "id", attempt->id);
        log_int(&line, "attempt", attempt->number);
        log_str(&line, "text", text);
        log_end(&line);
    }
}

static void flush(struct exec_stderr *stream, const struct attempt *attempt)
{
    if (stream->len > 0) {
        log_text(attempt, "stderr", (struct slice){stream->line, stream->len});
        stream->len = 0;
        stream->n_lines++;
    }
}

void exec_stderr_add(struct exec_stderr *stream, const struct attempt *attempt,
                     struct slice data)
{
    for (size_t i = 0; i < data.len && !stream->was_cut; i++) {
        if (is_full(stream)) {
            flush(stream, attempt);
            log_text(attempt, "stderr goes on, the rest is dropped", SLICE(""));
            stream->was_cut = true;
            return;
        }
        stream->n_bytes++;
        if (data.data[i] != '\n') {
            stream->line[stream->len++] = data.data[i];
        }
        if (data.data[i] == '\n' || stream->len == sizeof stream->line) {
            flush(stream, attempt);
        }
    }
}

void exec_stderr_end(struct exec_stderr *stream, const struct attempt *attempt)
{
    flush(stream, attempt);
}
