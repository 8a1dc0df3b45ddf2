/* SPDX-License-Identifier: MIT */
#include "app/config.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/options.h"

#define ROOT TEST_DATA "/../.."

static const char route_text[] =
    "\"name\": \"r\", \"source\": { \"http\": { \"path\": \"/r\" } }, "
    "\"verify\": \"none\", \"id\": \"header:X-Id\", "
    "\"handler\": { \"noop\": {} }";
static const char http_text[] = "\"source\": { \"http\": { \"path\": \"/r\" } "
                                "}, \"handler\": { \"noop\": {} }";

static const char kafka_text[] =
    "\"kafka\": { \"bootstrap.servers\": \"k:9092\" }";
static const char from_text[] =
    "\"source\": { \"kafka\": { \"topics\": [\"t\"], \"group\": \"g\" } }, "
    "\"handler\": { \"noop\": {} }";

/* --- a folder with a configuration and what it may refer to --------------- */

static char folder[4096];

static void write_file(const char *path, struct slice content, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    cr_assert(fd >= 0, "%s", path);
    cr_assert(write(fd, content.data, content.len) == (ssize_t)content.len);
    cr_assert(fchmod(fd, mode) == 0);
    cr_assert(close(fd) == 0);
}

static const char *in_folder(const char *name)
{
    static char path[sizeof(folder) + 256];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void setup(void)
{
    static char large[64 * 1024 + 1];
    char link[sizeof(folder) + 16];
    char template[4096];
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(template, sizeof(template), "%s/config-XXXXXX",
                   tmp ? tmp : "/tmp");
    cr_assert(mkdtemp(template) != NULL);
    cr_assert(realpath(template, folder) != NULL);
    memset(large, 'x', sizeof(large));
    write_file(in_folder("secret600"), SLICE("of the file, s3cret\n"), 0600);
    write_file(in_folder("secret640"), SLICE("s3cret of the group\r\n"), 0640);
    write_file(in_folder("secret644"), SLICE("s3cret of all\n"), 0644);
    write_file(in_folder("line"), SLICE("first line\n"), 0644);
    write_file(in_folder("empty"), SLICE("\n"), 0600);
    write_file(in_folder("nul"), SLICE("a\0b"), 0600);
    write_file(in_folder("large"), (struct slice){large, sizeof(large)}, 0600);
    (void)snprintf(link, sizeof(link), "%s/link", folder);
    cr_assert(symlink("secret600", link) == 0);
    cr_assert(unsetenv("ONCED_TEST_UNSET") == 0);
    cr_assert(setenv("ONCED_TEST_EMPTY", "", 1) == 0);
    cr_assert(setenv("ONCED_TEST_SET", "12d", 1) == 0);
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void teardown(void)
{
    cr_assert(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

TestSuite(config, .init = setup, .fini = teardown);

static struct buf read_all(const char *path)
{
    struct buf out = BUF_INIT;
    FILE *file = fopen(path, "re");
    char chunk[4096];
    size_t n;

    cr_assert(file != NULL, "%s", path);
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        buf_add(&out, chunk, n);
    }
    cr_assert(fclose(file) == 0);
    return out;
}

static struct buf replace(struct slice text, const char *from, const char *to)
{
    struct buf out = BUF_INIT;
    struct slice name = slice_of(from);

    for (size_t i = 0; i < text.len;) {
        if (slice_starts(slice_from(text, i), name)) {
            buf_add_str(&out, to);
            i += name.len;
        } else {
            buf_add_byte(&out, text.data[i++]);
        }
    }
    return out;
}

static struct buf expand(struct slice text)
{
    static const char *const names[] = {"$ROUTE", "$HTTP", "$DIR",    "$UP",
                                        "$KAFKA", "$FROM", "$RDKAFKA"};
    char above[sizeof(folder)];
    const char *values[] = {route_text,
                            http_text,
                            folder,
                            above,
                            kafka_text,
                            from_text,
                            rd_kafka_version_str()};
    struct buf out = BUF_INIT;

    (void)snprintf(above, sizeof(above), "%s", folder);
    *strrchr(above, '/') = '\0';
    buf_add_slice(&out, text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buf next = replace(buf_slice(&out), names[i], values[i]);

        buf_free(&out);
        out = next;
    }
    return out;
}

/* --- files of cases --------------------------------------------------------*/

struct test_case {
    char *name;
    struct buf text, expected;
};

static bool next_line(struct slice *rest, struct slice *line)
{
    size_t end = slice_find(*rest, '\n');

    if (rest->len == 0) {
        return false;
    }
    *line = (struct slice){rest->data, end};
    *rest = slice_from(*rest, end < rest->len ? end + 1 : end);
    return true;
}

/* Calls `check` with every case of the file. Returns how many there were. */
static size_t each_case(const char *name, void (*check)(struct test_case *))
{
    char path[4096];
    struct buf file;
    struct slice rest, line;
    size_t n = 0;
    bool more;

    (void)snprintf(path, sizeof(path), "%s/config/%s", TEST_DATA, name);
    file = read_all(path);
    rest = buf_slice(&file);
    do {
        more = next_line(&rest, &line);
    } while (more && !slice_starts(line, SLICE("== ")));
    while (more) {
        struct test_case one = {.name = mem_dup(slice_from(line, 3))};
        struct buf parts[2] = {BUF_INIT, BUF_INIT};
        size_t part = 0;

        while ((more = next_line(&rest, &line)) &&
               !slice_starts(line, SLICE("== "))) {
            if (slice_eq(line, SLICE("--"))) {
                part = 1;
            } else if (part == 0 || line.len > 0) {
                buf_add_slice(&parts[part], line);
                buf_add_byte(&parts[part], '\n');
            }
        }
        one.text = expand(buf_slice(&parts[0]));
        one.expected = expand(buf_slice(&parts[1]));
        check(&one);
        n++;
        free(one.name);
        buf_free(&one.text);
        buf_free(&one.expected);
        buf_free(&parts[0]);
        buf_free(&parts[1]);
    }
    buf_free(&file);
    return n;
}

/* --- loading ---------------------------------------------------------------*/

static struct config *load(struct slice text, struct buf *problems,
                           struct err *err)
{
    struct config *config;
    const char *path = in_folder("onced.json");

    write_file(path, text, 0600);
    if (!config_load(&config, path, problems, err)) {
        cr_assert(config == NULL);
        return NULL;
    }
    return config;
}

static struct config *load_good(struct slice text)
{
    struct buf problems = BUF_INIT;
    struct err err = {0};
    struct config *config = load(text, &problems, &err);

    cr_assert(config != NULL, "%s: %s", err.text, buf_cstr(&problems));
    buf_free(&problems);
    return config;
}

static bool has(struct slice text, const char *what)
{
    return text.len > 0 &&
           memmem(text.data, text.len, what, strlen(what)) != NULL;
}

/* Words that stand in secrets of the cases, and nowhere else. */
static void expect_no_secret(const char *name, struct slice text)
{
    cr_expect(!has(text, "canary"), "%s: %.*s", name, (int)text.len, text.data);
    cr_expect(!has(text, "s3cret"), "%s: %.*s", name, (int)text.len, text.data);
}

static void expect_lines(struct test_case *one, struct buf *lines)
{
    cr_expect(slice_eq(buf_slice(lines), buf_slice(&one->expected)),
              "%s: expected\n%sbut got\n%s", one->name,
              buf_cstr(&one->expected), buf_cstr(lines));
}

static void check_problems(struct test_case *one)
{
    struct buf problems = BUF_INIT;
    struct err err = {0};
    struct config *config = load(buf_slice(&one->text), &problems, &err);

    expect_lines(one, &problems);
    cr_expect((config != NULL) == (one->expected.len == 0), "%s", one->name);
    if (!config) {
        cr_expect(err.kind == ERR_CONFIG, "%s", one->name);
    }
    expect_no_secret(one->name, buf_slice(&problems));
    expect_no_secret(one->name, slice_of(err.text));
    config_free(config);
    buf_free(&problems);
}

Test(config, every_problem_is_told_with_its_place_and_without_a_secret)
{
    cr_expect(each_case("problems.txt", check_problems) >= 60);
}

static void check_warnings(struct test_case *one)
{
    struct config *config = load_good(buf_slice(&one->text));

    expect_lines(one, &config->warnings);
    config_free(config);
}

Test(config, what_is_doubtful_is_warned_about)
{
    cr_expect(each_case("warnings.txt", check_warnings) >= 6);
}

/* --- what is in force ------------------------------------------------------*/

/* Pointers of the cases have no escapes. */
static json_t *at_pointer(json_t *json, struct slice pointer)
{
    while (json && pointer.len > 0) {
        struct slice rest = slice_from(pointer, 1);
        size_t len = slice_find(rest, '/');
        char key[64];

        (void)snprintf(key, sizeof(key), "%.*s", (int)len, rest.data);
        json = json_is_array(json)
                   ? json_array_get(json, strtoul(key, NULL, 10))
                   : json_object_get(json, key);
        pointer = slice_from(rest, len);
    }
    return json;
}

static void expect_at(const char *name, json_t *effective, struct slice line)
{
    size_t end = slice_find(line, ' ');
    json_t *found = at_pointer(effective, (struct slice){line.data, end});
    json_t *expected = NULL;
    char *text = found ? json_dumps(found, JSON_ENCODE_ANY) : NULL;

    if (end < line.len) {
        struct slice json = slice_from(line, end + 1);

        expected = json_loadb(json.data, json.len, JSON_DECODE_ANY, NULL);
        cr_assert(expected != NULL, "%.*s", (int)line.len, line.data);
    }
    cr_expect(expected ? json_equal(found, expected) : found == NULL,
              "%s: %.*s, but is %s", name, (int)line.len, line.data,
              text ? text : "absent");
    free(text);
    json_decref(expected);
}

static void check_effective(struct test_case *one)
{
    struct config *config = load_good(buf_slice(&one->text));
    struct buf text = BUF_INIT;
    struct slice rest = buf_slice(&one->expected);
    struct slice line;
    json_t *effective;

    config_write_effective(config, &text);
    expect_no_secret(one->name, buf_slice(&text));
    effective = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    cr_assert(effective != NULL);
    while (next_line(&rest, &line)) {
        expect_at(one->name, effective, line);
    }
    json_decref(effective);
    buf_free(&text);
    config_free(config);
}

Test(config, what_is_in_force_can_be_seen)
{
    cr_expect(each_case("effective.txt", check_effective) >= 10);
}

Test(config, all_parts_of_the_memory_bound_make_its_total)
{
    static const char text[] =
        "{ \"store\": { \"max_size\": \"150MiB\" }, \"routes\": [ { "
        "\"name\": \"r\", \"retired\": true } ] }";
    struct config *config = load_good(slice_of(text));
    struct buf out = BUF_INIT;
    json_t *bound, *effective;

    config_write_effective(config, &out);
    effective = json_loadb(out.data, out.len, 0, NULL);
    bound = json_object_get(effective, "memory_bound");
    /* 64 + 128 + 128 + 64 + 0, and 1 Mi ids x (2 x 64 + 2) bytes */
    cr_expect_str_eq(json_string_value(json_object_get(bound, "total")),
                     "514MiB");
    json_decref(effective);
    buf_free(&out);
    config_free(config);
}

/* --- the structure ---------------------------------------------------------*/

Test(config, the_example_is_good_and_fills_every_part)
{
    struct buf problems = BUF_INIT;
    struct err err = {0};
    struct config *config;
    const struct config_route *route;

    cr_assert(
        config_load(&config, ROOT "/config/example.json", &problems, &err),
        "%s", buf_cstr(&problems));
    cr_expect(config->warnings.len == 0, "%s", buf_cstr(&config->warnings));
    cr_expect(config->n_routes == 4);
    cr_expect(config->listen.addresses.n == 2);
    cr_expect(config->admin.n_tokens == 1);
    cr_expect(config->admin.tokens[0].may_operate);
    cr_expect_str_eq(config->admin.tokens[0].secret, "change-me-before-use");
    route = &config->routes[0];
    cr_expect(route->verifier != NULL);
    cr_expect(route->handler == CONFIG_HANDLER_HTTP);
    cr_expect(route->concurrency == 32 && route->http.concurrency == 32);
    cr_expect(route->policy.timeout_ms == 10000);
    cr_expect(route->policy.jitter_permille == 200);
    cr_expect(route->policy.give_up_after_ms == 3 * 86400 * 1000);
    cr_expect(route->http.connect_timeout_ms == 5000);
    cr_expect(route->http.max_result_bytes == 1 << 20);
    cr_expect(route->http.path_prefix_len == 0);
    cr_expect_str_eq(route->http.url, "http://127.0.0.1:3000/stripe");
    cr_expect(route->http.n_headers == 1);
    cr_expect_str_eq(route->http.headers[0][0], "Authorization");
    cr_expect_str_eq(route->http.headers[0][1], "Bearer example");
    cr_expect(route->order_by.n_choices == 1);
    route = &config->routes[1];
    cr_expect(route->handler == CONFIG_HANDLER_EXEC);
    cr_expect(route->exec.command[0][0] == '/');
    cr_expect(route->exec.command[1] == NULL);
    cr_expect_str_eq(route->exec.environment[0], "MODE=example");
    cr_expect(route->exec.environment[1] == NULL);
    cr_expect_str_eq(route->exec.cwd, config->folder);
    cr_expect(route->policy.on_uncertain == ON_UNCERTAIN_HOLD);
    cr_expect(route->max_body_bytes == 26 << 20);
    cr_expect(route->id.choices[0].n_terms == 2);
    route = &config->routes[2];
    cr_expect(route->handler == CONFIG_HANDLER_NOOP);
    cr_expect(route->answer_status == 200);
    cr_expect(route->answer_headers.n == 1);
    cr_expect_str_eq(route->methods.items[0], "POST");
    route = &config->routes[3];
    cr_expect(route->retired && route->handler == CONFIG_HANDLER_NONE);
    cr_expect(!route->has_http_source);
    config_free(config);
    buf_free(&problems);
}

Test(config, the_example_of_kafka_is_good_and_fills_every_part)
{
    struct buf problems = BUF_INIT;
    struct err err = {0};
    struct config *config;
    const struct config_route *route;

    cr_assert(config_load(&config, ROOT "/config/kafka.json", &problems, &err),
              "%s", buf_cstr(&problems));
    cr_expect(config->warnings.len == 0, "%s", buf_cstr(&config->warnings));
    cr_assert(config->n_all_clusters == 2);
    cr_expect_str_eq(config->all_clusters[0].name, "default");
    cr_expect_str_eq(
        kafka_cluster_setting(&config->all_clusters[0], "bootstrap.servers"),
        "127.0.0.1:9092");
    cr_expect_str_eq(config->all_clusters[1].name, "archive");
    cr_expect(config_cluster_index(config, "archive") == 1);
    route = &config->routes[0];
    cr_expect(route->has_kafka_source && !route->has_http_source);
    cr_expect_str_eq(route->kafka.group, "onced");
    cr_expect_str_eq(route->dead_kafka.topic, "orders.dlq");
    cr_expect(route->dead_kafka.headers.n == 1);
    cr_expect(route->policy.give_up_after_ms == 3600 * 1000);
    cr_expect(value_uses(&route->order_by, VALUE_KAFKA_KEY));
    route = &config->routes[1];
    cr_expect(route->handler == CONFIG_HANDLER_KAFKA);
    cr_expect_str_eq(route->produce.cluster, "archive");
    cr_expect(route->produce.key == KAFKA_KEY_ID);
    cr_expect(route->policy.timeout_ms == 30000 && route->concurrency == 256);
    config_free(config);
    buf_free(&problems);
}

Test(config, a_stream_is_a_topic_as_one_group_of_one_cluster_reads_it)
{
    static const char text[] =
        "{ $KAFKA, \"clusters\": { \"o\": { \"bootstrap.servers\": \"o:9092\" "
        "} "
        "}, \"routes\": ["
        "  { \"name\": \"a\", $FROM, \"id\": \"json:/a\" },"
        "  { \"name\": \"b\", \"source\": { \"kafka\": { \"topics\": [ \"u\", "
        "\"t\" ], \"group\": \"g\" } }, \"id\": \"json:/a\","
        "    \"handler\": { \"noop\": {} } },"
        "  { \"name\": \"c\", \"source\": { \"kafka\": { \"topics\": \"t\", "
        "\"group\": \"g\", \"cluster\": \"o\" } }, \"id\": \"json:/a\","
        "    \"handler\": { \"kafka\": { \"topic\": \"t\", \"key\": \"none\" } "
        "} "
        "} ] }";
    struct buf expanded = expand(slice_of(text));
    struct config *config = load_good(buf_slice(&expanded));

    cr_assert(config->streams.n == 3);
    cr_expect_str_eq(config->streams.items[0], "default/t/g");
    cr_expect_str_eq(config->streams.items[1], "default/u/g");
    cr_expect_str_eq(config->streams.items[2], "o/t/g");
    cr_expect(config_stream_index(config, &config->routes[0], 0) == 0);
    cr_expect(config_stream_index(config, &config->routes[1], 0) == 1);
    cr_expect(config_stream_index(config, &config->routes[1], 1) == 0);
    cr_expect(config_stream_index(config, &config->routes[2], 0) == 2);
    cr_expect(config->routes[2].produce.key == KAFKA_KEY_NONE);
    config_free(config);
    buf_free(&expanded);
}

Test(config, words_become_the_values_that_they_name)
{
    static const char text[] =
        "{ \"log\": { \"level\": \"error\", \"format\": \"json\" },"
        "  \"routes\": [ { $ROUTE, \"drift\": \"reject\", \"after_dead\": "
        "\"hold\", \"on_uncertain\": \"hold\","
        "    \"dead_letter\": { \"on_full\": \"oldest\" } },"
        "  { \"name\": \"w\", \"source\": { \"http\": { \"path\": \"/w/*\" } "
        "}, \"verify\": \"none\", \"id\": \"header:a\","
        "    \"handler\": { \"http\": { \"url\": \"http://x/\", "
        "\"not_applied\": [ 500 ], \"final\": [] } } },"
        "  { \"name\": \"n\", \"source\": { \"http\": { \"path\": \"/n\" } }, "
        "\"verify\": \"none\", \"id\": \"header:a\","
        "    \"handler\": { \"noop\": { \"delay\": \"1ms..5ms\", \"fail\": 0.5 "
        "} } } ] }";
    struct buf expanded = expand(slice_of(text));
    struct config *config = load_good(buf_slice(&expanded));
    const struct config_route *route = &config->routes[0];

    cr_expect(config->log.level == LOG_ERROR);
    cr_expect(config->log.format == LOG_JSON);
    cr_expect(route->policy.on_drift == ON_DRIFT_REJECT);
    cr_expect(route->policy.after_dead == AFTER_DEAD_HOLD);
    cr_expect(route->policy.on_uncertain == ON_UNCERTAIN_HOLD);
    cr_expect(route->on_dead_full == DEAD_FULL_DROP_OLDEST);
    cr_expect(route->verifier == NULL);
    cr_expect(!route->rules.has_not_applied && !route->rules.has_final);
    route = &config->routes[1];
    cr_expect(route->http.path_prefix_len == strlen("/w/"));
    cr_expect(route->rules.has_not_applied && route->rules.n_not_applied == 1);
    cr_expect(route->rules.not_applied[0] == 500);
    cr_expect(route->rules.has_final && route->rules.n_final == 0);
    route = &config->routes[2];
    cr_expect(route->noop.min_delay_ms == 1 && route->noop.max_delay_ms == 5);
    cr_expect(route->noop.fail > 0.49 && route->noop.fail < 0.51);
    config_free(config);
    buf_free(&expanded);
}

Test(config, one_newline_of_a_secret_file_is_dropped)
{
    static const char text[] =
        "{ \"admin\": { \"tokens\": [ { \"name\": \"a\", \"file\": "
        "\"secret600\" }, { \"name\": \"b\", \"file\": \"secret640\" } ] },"
        "  \"routes\": [ { \"name\": \"r\", \"retired\": true } ] }";
    struct config *config = load_good(slice_of(text));

    cr_expect_str_eq(config->admin.tokens[0].secret, "of the file, s3cret");
    cr_expect_str_eq(config->admin.tokens[1].secret, "s3cret of the group");
    cr_expect(!config->admin.tokens[0].may_operate);
    config_free(config);
}

Test(config, the_quick_start_is_good)
{
    struct buf problems = BUF_INIT;
    struct err err = {0};
    struct config *config;

    cr_assert(
        config_load(&config, ROOT "/config/quickstart.json", &problems, &err),
        "%s", buf_cstr(&problems));
    cr_expect(config->warnings.len == 0, "%s", buf_cstr(&config->warnings));
    cr_expect(access(config->routes[0].exec.command[0], X_OK) == 0);
    config_free(config);
    buf_free(&problems);
}

Test(config, a_file_that_is_not_there_is_not_found)
{
    struct buf problems = BUF_INIT;
    struct err err = {0};
    struct config *config;

    cr_expect(!config_load(&config, in_folder("no.json"), &problems, &err));
    cr_expect(config == NULL && err.kind == ERR_NOT_FOUND);
    cr_expect(!config_load(&config, in_folder("no/no.json"), &problems, &err));
    cr_expect(err.kind == ERR_NOT_FOUND);
    cr_expect(!config_load(&config, folder, &problems, &err));
    cr_expect(err.kind == ERR_CONFIG);
    cr_expect(problems.len == 0);
    buf_free(&problems);
}

/* --- mutants ---------------------------------------------------------------*/

/* The end of the token that starts at `at`: a string, a word or a mark. */
static size_t token_end(struct slice text, size_t at)
{
    static const char marks[] = "{}[],:\" \n";
    size_t end = at + 1;

    if (text.data[at] == '"') {
        while (end < text.len && text.data[end] != '"') {
            end++;
        }
        return end < text.len ? end + 1 : end;
    }
    if (strchr(marks, text.data[at])) {
        return end;
    }
    while (end < text.len && !strchr(marks, text.data[end])) {
        end++;
    }
    return end;
}

static struct buf mutate(struct slice text, size_t at, size_t kind)
{
    static const char *const instead[] = {
        "",     "null",  "{}",    "[]",  "\"\"",       "-1", "\"canary\"",
        "true", "\"~\"", "1e400", "[{}", "/*",         "0",  "\"json:\"",
        "\xff", "\\",    "\"\n",  "}",   "\"\\u0000\""};
    size_t end = token_end(text, at);
    struct buf out = BUF_INIT;

    buf_add(&out, text.data, at);
    buf_add_str(&out, instead[kind % (sizeof(instead) / sizeof(instead[0]))]);
    buf_add_slice(&out, slice_from(text, end));
    return out;
}

/* Every line says where: a pointer, or a position in the file. */
static void expect_places(struct slice problems, struct slice mutant)
{
    struct slice line;

    cr_expect(problems.len > 0, "%.*s", (int)mutant.len, mutant.data);
    while (next_line(&problems, &line)) {
        cr_expect(line.len > 1 && line.data[0] == '/' && has(line, ": "),
                  "%.*s", (int)line.len, line.data);
    }
}

static void check_mutant(struct slice mutant)
{
    struct buf problems = BUF_INIT;
    struct buf effective = BUF_INIT;
    struct err err = {0};
    struct config *config = load(mutant, &problems, &err);

    if (config) {
        config_write_effective(config, &effective);
        expect_no_secret("warnings", buf_slice(&config->warnings));
    } else {
        cr_expect(err.kind == ERR_CONFIG);
        expect_places(buf_slice(&problems), mutant);
    }
    cr_expect(!has(buf_slice(&problems), "s3cret"), "%s", buf_cstr(&problems));
    cr_expect(!has(buf_slice(&effective), "s3cret"));
    config_free(config);
    buf_free(&problems);
    buf_free(&effective);
}

static size_t check_mutants(const char *path)
{
    struct buf example = read_all(path);
    struct slice text = buf_slice(&example);
    size_t n = 0;

    for (size_t at = 0; at < text.len; at = token_end(text, at)) {
        if (strchr(" \n", text.data[at])) {
            continue;
        }
        for (size_t kind = 0; kind < 3; kind++, n++) {
            struct buf mutant = mutate(text, at, 3 * n + 7 * kind);

            check_mutant(buf_slice(&mutant));
            buf_free(&mutant);
        }
    }
    buf_free(&example);
    return n;
}

Test(config, no_mutant_crashes_or_shows_a_secret)
{
    static const char *const secrets[] = {"STRIPE_SECRET", "APP_TOKEN",
                                          "GITHUB_SECRET", "SLACK_SECRET",
                                          "ONCED_TOKEN_OPS"};
    size_t n;

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        cr_assert(setenv(secrets[i], "s3cret of a mutant", 1) == 0);
    }
    n = check_mutants(ROOT "/config/example.json");
    cr_expect(n >= 400, "only %zu", n);
    n = check_mutants(ROOT "/config/kafka.json");
    cr_expect(n >= 200, "only %zu", n);
}

Test(config, no_part_of_the_example_crashes)
{
    struct buf example = read_all(ROOT "/config/example.json");

    for (size_t len = 0; len < example.len; len += 7) {
        struct buf problems = BUF_INIT;
        struct config *config =
            load((struct slice){example.data, len}, &problems, NULL);

        cr_expect(config == NULL);
        expect_places(buf_slice(&problems), slice_of("a part"));
        buf_free(&problems);
    }
    buf_free(&example);
}

/* --- generated pages -------------------------------------------------------*/

/* ONCED_REGENERATE=1 writes the page in place of comparing it. */
static void expect_page(const char *path, void (*write)(struct buf *out))
{
    struct buf page = BUF_INIT;
    struct buf stored;

    write(&page);
    if (getenv("ONCED_REGENERATE")) {
        write_file(path, buf_slice(&page), 0644);
    }
    stored = read_all(path);
    cr_expect(slice_eq(buf_slice(&stored), buf_slice(&page)),
              "%s is not what the table gives; run the test with "
              "ONCED_REGENERATE=1",
              path);
    buf_free(&stored);
    buf_free(&page);
}

Test(config, the_pages_are_what_the_table_gives)
{
    expect_page(ROOT "/docs/config.md", config_write_docs);
    expect_page(ROOT "/config/onced.schema.json", config_write_schema);
}

/* A row that cannot be explained, and an example that is not JSON, are found
 * by walking the table. */
static void check_rows(const struct option_section *section)
{
    char text[4096];
    json_t *json;

    if (section->example) {
        (void)snprintf(text, sizeof(text),
                       section->example[0] == '{' ? "%s" : "{ %s }",
                       section->example);
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        cr_expect(json != NULL, "%s", text);
        json_decref(json);
    }
    for (size_t i = 0; i < section->n; i++) {
        const struct option *option = &section->options[i];

        if (option->flags & OPTION_UNSUPPORTED) {
            continue;
        }
        cr_expect(option->help != NULL, "%s", option->key);
        cr_expect(option->preset || option->otherwise || option->section ||
                      option->flags & OPTION_REQUIRED,
                  "%s.%s has no default", section->path, option->key);
        if (option->section) {
            check_rows(option->section);
        }
    }
}

Test(config, every_row_says_its_default_and_what_it_is)
{
    check_rows(&options_root);
}
