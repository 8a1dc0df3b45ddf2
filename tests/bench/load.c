/* SPDX-License-Identifier: MIT */
/*
 * Posts signed webhooks over connections that are kept, and prints one line
 * of JSON. Without a rate, each connection sends the next one as soon as the
 * last is answered. With a rate (-R), requests have their times, whatever
 * becomes of those before; each goes out over the connection that has been
 * free for longest, and waits where none is.
 *
 * The latency of a request runs from the moment it was meant to be sent:
 * without a rate when the answer before it was read, so that the sum over a
 * connection is the whole time; with one when its time came, so that a stall
 * is counted by all that should have been sent meanwhile. What is not answered
 * at the end counts for the maximum with its age.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "webhook.h"

enum {
    EVENTS = 512,
    ANSWER_BYTES = 4096,
    STATUSES = 600,
    WAIT_MS = 50,
    LAST_ANSWERS_MS = 5000, /* after the last was sent */
    EX_USAGE = 64,
};

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

struct peer {
    int fd;
    bool is_waiting; /* for an answer */
    int64_t intended_ns;
    struct webhook webhook;
    char answer[ANSWER_BYTES];
    size_t answer_len;
};

struct load {
    uint16_t port;
    size_t n_peers, n_requests;
    int64_t run_ms, warm_up_ms;
    uint64_t rate; /* a second; 0: as fast as they are answered */
    const char *path, *secret;

    struct webhooks webhooks;
    struct peer *peers;
    int epoll_fd;
    size_t sent, n_waiting;
    int64_t start_ns, end_ns, count_from_ns, last_ns;
    /* free connections, a ring; used with a rate only */
    struct peer **idle;
    size_t first_idle, n_idle;

    uint32_t *latency_us; /* of the answers that count */
    size_t n_answers;
    uint64_t statuses[STATUSES];
    uint64_t broken; /* connections that ended before the answer */
};

static int64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static uint32_t us_between(int64_t from_ns, int64_t to_ns)
{
    int64_t us = (to_ns - from_ns) / 1000;
    return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* --- one connection ------------------------------------------------------ */

static void connect_peer(struct load *load, struct peer *peer)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(load->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    int on = 1;
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->fd < 0 ||
        connect(peer->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        fail("connect");
    }
    if (setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, peer->fd, &event) != 0) {
        fail("watch a connection");
    }
}

/* One answered connection takes a request whole: no write is left over. */
static void send_one(struct load *load, struct peer *peer, int64_t at_ns)
{
    if (load->sent == load->n_requests) {
        return;
    }
    webhook_set(&peer->webhook, &load->webhooks, load->sent++);
    peer->intended_ns = at_ns;
    peer->is_waiting = true;
    peer->answer_len = 0;
    load->n_waiting++;
    ssize_t n =
        send(peer->fd, peer->webhook.text, peer->webhook.len, MSG_NOSIGNAL);
    if (n >= 0 && (size_t)n != peer->webhook.len) {
        fail("a request was sent in part");
    }
    /* A broken connection is found by the read that follows. */
}

static void become_idle(struct load *load, struct peer *peer)
{
    CHECK(load->n_idle < load->n_peers);
    load->idle[(load->first_idle + load->n_idle++) % load->n_peers] = peer;
}

/* The connection is free. */
static void send_next(struct load *load, struct peer *peer, int64_t at_ns)
{
    if (load->rate > 0) {
        become_idle(load, peer);
    } else {
        send_one(load, peer, at_ns);
    }
}

static int64_t next_time_ns(const struct load *load)
{
    return load->start_ns +
           (int64_t)((double)load->sent * 1e9 / (double)load->rate);
}

static void send_due(struct load *load)
{
    int64_t at_ns = next_time_ns(load);
    while (load->n_idle > 0 && at_ns < load->end_ns && at_ns <= now_ns()) {
        struct peer *peer = load->idle[load->first_idle];
        load->first_idle = (load->first_idle + 1) % load->n_peers;
        load->n_idle--;
        send_one(load, peer, at_ns);
        at_ns = next_time_ns(load);
    }
}

static void count_answer(struct load *load, struct peer *peer, unsigned status)
{
    int64_t at_ns = now_ns();
    peer->is_waiting = false;
    load->n_waiting--;
    int64_t counts_ns = load->rate > 0 ? peer->intended_ns : at_ns;
    if (counts_ns >= load->count_from_ns) {
        load->latency_us[load->n_answers++] =
            us_between(peer->intended_ns, at_ns);
        load->statuses[status < STATUSES ? status : 0]++;
        load->last_ns = at_ns;
    }
    send_next(load, peer, at_ns);
}

static void begin_again(struct load *load, struct peer *peer)
{
    (void)close(peer->fd);
    connect_peer(load, peer);
    if (peer->is_waiting) {
        load->broken++;
        load->n_waiting--;
        peer->is_waiting = false;
        send_next(load, peer, now_ns());
    }
}

/* The length of the whole answer, or 0 while its head is not there. */
static size_t answer_length(const struct peer *peer)
{
    static const char field[] = "\r\nContent-Length: ";
    const char *end = memmem(peer->answer, peer->answer_len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    size_t head = (size_t)(end - peer->answer) + 4;
    const char *at = memmem(peer->answer, head, field, sizeof(field) - 1);
    if (at == NULL) {
        return head;
    }
    return head + strtoul(at + sizeof(field) - 1, NULL, 10);
}

static void read_answer(struct load *load, struct peer *peer)
{
    ssize_t n = recv(peer->fd, peer->answer + peer->answer_len,
                     ANSWER_BYTES - peer->answer_len, 0);
    if (n <= 0) {
        begin_again(load, peer);
        return;
    }
    peer->answer_len += (size_t)n;
    size_t whole = answer_length(peer);
    if (whole == 0 || peer->answer_len < whole) {
        return;
    }
    CHECK(peer->is_waiting);
    count_answer(load, peer, (unsigned)strtoul(peer->answer + 9, NULL, 10));
}

/* --- the run ------------------------------------------------------------- */

static void start(struct load *load)
{
    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll_fd < 0) {
        fail("epoll");
    }
    webhooks_prepare(&load->webhooks, load->path, load->secret);
    load->latency_us = mem_new(load->n_requests, sizeof(*load->latency_us));
    load->peers = mem_new(load->n_peers, sizeof(*load->peers));
    load->idle = mem_new(load->n_peers, sizeof(struct peer *));
    for (size_t i = 0; i < load->n_peers; i++) {
        load->peers[i].webhook = load->webhooks.first;
        connect_peer(load, &load->peers[i]);
    }
}

static bool is_over(const struct load *load)
{
    int64_t at_ns = now_ns();
    if (load->rate == 0) {
        return load->n_waiting == 0 || at_ns >= load->end_ns;
    }
    bool all_sent = next_time_ns(load) >= load->end_ns;
    return (all_sent && load->n_waiting == 0) ||
           at_ns >= load->end_ns + LAST_ANSWERS_MS * NS_PER_MS;
}

static struct timespec until_next(const struct load *load)
{
    int64_t left_ns = WAIT_MS * NS_PER_MS;
    if (load->rate > 0 && load->n_idle > 0) {
        int64_t next_ns = next_time_ns(load) - now_ns();
        left_ns = next_ns < left_ns ? next_ns : left_ns;
    }
    if (left_ns < 0) {
        left_ns = 0;
    }
    return (struct timespec){.tv_sec = left_ns / NS_PER_S,
                             .tv_nsec = left_ns % NS_PER_S};
}

static void turn(struct load *load)
{
    struct epoll_event events[EVENTS];
    if (load->rate > 0) {
        send_due(load);
    }
    struct timespec left = until_next(load);
    int n = epoll_pwait2(load->epoll_fd, events, EVENTS, &left, NULL);
    if (n < 0 && errno != EINTR) {
        fail("epoll");
    }
    for (int i = 0; i < n; i++) {
        read_answer(load, events[i].data.ptr);
    }
}

static void run(struct load *load)
{
    /* To the microsecond, not to the usual 50. */
    CHECK(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) == 0);
    load->start_ns = now_ns();
    load->end_ns = load->start_ns + load->run_ms * NS_PER_MS;
    load->count_from_ns = load->start_ns + load->warm_up_ms * NS_PER_MS;
    load->last_ns = load->count_from_ns;
    for (size_t i = 0; i < load->n_peers; i++) {
        send_next(load, &load->peers[i], load->start_ns);
    }
    while (!is_over(load)) {
        turn(load);
    }
}

/* --- what came out ------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static uint32_t percentile_us(const struct load *load, double share)
{
    if (load->n_answers == 0) {
        return 0;
    }
    return load->latency_us[(size_t)(share * (double)(load->n_answers - 1))];
}

static uint32_t longest_us(const struct load *load, int64_t end_ns)
{
    uint32_t max_us = percentile_us(load, 1);
    for (size_t i = 0; i < load->n_peers; i++) {
        const struct peer *peer = &load->peers[i];
        uint32_t age_us = us_between(peer->intended_ns, end_ns);
        if (peer->is_waiting && age_us > max_us) {
            max_us = age_us;
        }
    }
    return max_us;
}

static void print_statuses(const struct load *load)
{
    const char *comma = "";
    for (size_t i = 0; i < STATUSES; i++) {
        if (load->statuses[i] == 0) {
            continue;
        }
        (void)printf("%s\"%zu\":%lu", comma, i, load->statuses[i]);
        comma = ",";
    }
}

/* With a rate, the requests whose time came and that have no answer. */
static uint64_t count_unanswered(const struct load *load)
{
    uint64_t due = (uint64_t)load->run_ms * load->rate / 1000;
    if (due > load->n_requests) {
        due = load->n_requests;
    }
    return load->n_waiting + (due > load->sent ? due - load->sent : 0);
}

static void report(const struct load *load, int64_t end_ns)
{
    double seconds = (double)(load->last_ns - load->count_from_ns) / 1e9;
    double rate = seconds > 0 ? (double)load->n_answers / seconds : 0;
    qsort(load->latency_us, load->n_answers, sizeof(*load->latency_us),
          by_value);
    (void)printf("{\"connections\":%zu,\"ids\":%zu,\"answers\":%zu,"
                 "\"seconds\":%.3f,\"rate\":%.0f,\"p50_us\":%u,\"p99_us\":%u,"
                 "\"p999_us\":%u,\"max_us\":%u,\"broken\":%lu,",
                 load->n_peers, load->webhooks.n_ids, load->n_answers, seconds,
                 rate, percentile_us(load, 0.5), percentile_us(load, 0.99),
                 percentile_us(load, 0.999), longest_us(load, end_ns),
                 load->broken);
    if (load->rate > 0) {
        (void)printf("\"offered\":%lu,\"unanswered\":%lu,", load->rate,
                     count_unanswered(load));
    }
    (void)printf("\"status\":{");
    print_statuses(load);
    (void)printf("}}\n");
}

static void end(struct load *load)
{
    for (size_t i = 0; i < load->n_peers; i++) {
        (void)close(load->peers[i].fd);
    }
    (void)close(load->epoll_fd);
    webhooks_free(&load->webhooks);
    free(load->latency_us);
    free(load->peers);
    free(load->idle);
}

/* --- arguments ----------------------------------------------------------- */

static _Noreturn void usage(void)
{
    (void)fputs(
        "load -p PORT [-u PATH] [-k SECRET] [-c CONNECTIONS]\n"
        "     [-n REQUESTS] [-i IDS] [-r SERIES] [-t MS] [-w MS] [-R RATE]\n"
        "Ends after REQUESTS or -t; the first -w are not counted.\n"
        "IDS fewer than REQUESTS come again and again.\n",
        stderr);
    exit(EX_USAGE);
}

static uint64_t number(const char *text, uint64_t max)
{
    uint64_t value;
    if (!text_u64(slice_of(text), &value) || value > max) {
        usage();
    }
    return value;
}

static void parse(struct load *load, int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "p:u:k:c:n:i:r:t:w:R:")) != -1) {
        if (option == 'p') {
            load->port = (uint16_t)number(optarg, UINT16_MAX);
        } else if (option == 'u') {
            load->path = optarg;
        } else if (option == 'k') {
            load->secret = optarg;
        } else if (option == 'c') {
            load->n_peers = number(optarg, 100000);
        } else if (option == 'n') {
            load->n_requests = number(optarg, 100000000);
        } else if (option == 'i') {
            load->webhooks.n_ids = number(optarg, 100000000);
        } else if (option == 'r') {
            load->webhooks.series = (uint32_t)number(optarg, UINT32_MAX);
        } else if (option == 't') {
            load->run_ms = (int64_t)number(optarg, 86400000);
        } else if (option == 'w') {
            load->warm_up_ms = (int64_t)number(optarg, 86400000);
        } else if (option == 'R') {
            load->rate = number(optarg, 10000000);
        } else {
            usage();
        }
    }
    if (load->port == 0 || load->n_requests == 0) {
        usage();
    }
    if (load->webhooks.n_ids == 0 || load->webhooks.n_ids > load->n_requests) {
        load->webhooks.n_ids = load->n_requests;
    }
}

int main(int argc, char **argv)
{
    struct load load = {.path = "/",
                        .secret = "bench",
                        .n_peers = 64,
                        .n_requests = 1000000,
                        .run_ms = 4000,
                        .warm_up_ms = 500};
    parse(&load, argc, argv);
    start(&load);
    run(&load);
    report(&load, now_ns());
    end(&load);
    return EXIT_SUCCESS;
}
