/* SPDX-License-Identifier: MIT */
#include "store/store_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"

enum { FIRST_HOMES = 1024, TAIL = 512 };

struct place {
    uint64_t high, low; /* the identity, big-endian */
    uint64_t seq;       /* 0: free */
};

struct id_table {
    struct place *places;
    size_t homes;
    size_t size; /* with the tail */
    size_t count;
};

/* Every look goes to another page of the table: in huge ones, where the
 * system has them, it needs no walk through page tables. */
static struct place *new_places(size_t size)
{
    struct place *places =
        mmap(NULL, size * sizeof *places, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(places != MAP_FAILED);
    (void)madvise(places, size * sizeof *places, MADV_HUGEPAGE);
    return places;
}

static void free_places(struct place *places, size_t size)
{
    CHECK(munmap(places, size * sizeof *places) == 0);
}

static void make_places(struct id_table *table, size_t homes)
{
    CHECK(homes <= UINT32_MAX);
    table->homes = homes;
    table->size = homes + TAIL;
    table->places = new_places(table->size);
}

static struct place place_of(const struct identity *identity, uint64_t seq)
{
    return (struct place){bytes_get_be64(identity->hash),
                          bytes_get_be64(identity->hash + 8), seq};
}

static size_t home_of(const struct id_table *table, const struct place *place)
{
    return (size_t)((place->high >> 32) * table->homes >> 32);
}

static bool is_before(const struct place *a, const struct place *b)
{
    return a->high < b->high || (a->high == b->high && a->low < b->low);
}

static bool is_same(const struct place *a, const struct place *b)
{
    return a->high == b->high && a->low == b->low;
}

struct id_table *store_table_new(void)
{
    struct id_table *table = mem_new(1, sizeof *table);

    make_places(table, FIRST_HOMES);
    return table;
}

void store_table_free(struct id_table *table)
{
    if (table == NULL) {
        return;
    }
    free_places(table->places, table->size);
    free(table);
}

size_t store_table_count(const struct id_table *table)
{
    return table->count;
}

/* Where the identity stands, or would stand. */
static size_t find(const struct id_table *table, const struct place *wanted)
{
    size_t at = home_of(table, wanted);

    while (at < table->size && table->places[at].seq != 0 &&
           is_before(&table->places[at], wanted)) {
        at++;
    }
    return at;
}

/* The old order is the new order: one pass, no search. */
static void grow(struct id_table *table, size_t homes)
{
    struct place *old = table->places;
    size_t old_size = table->size, next = 0;

    CHECK(homes > table->homes);
    make_places(table, homes);
    for (size_t i = 0; i < old_size; i++) {
        size_t at;

        if (old[i].seq == 0) {
            continue;
        }
        at = home_of(table, &old[i]);
        at = at < next ? next : at;
        CHECK(at < table->size);
        table->places[at] = old[i];
        next = at + 1;
    }
    free_places(old, old_size);
}

/* Three of four homes are taken at most. */
void store_table_reserve(struct id_table *table, size_t more)
{
    size_t wanted = (table->count + more) / 3 * 4 + 4;
    size_t step = table->homes + table->homes / 2;

    if (wanted > table->homes) {
        grow(table, wanted > step ? wanted : step);
    }
}

void store_table_prefetch(const struct id_table *table,
                          const struct identity *identity)
{
    struct place wanted = place_of(identity, 0);

    __builtin_prefetch(&table->places[home_of(table, &wanted)], 1);
}

uint64_t store_table_get(const struct id_table *table,
                         const struct identity *identity)
{
    struct place wanted = place_of(identity, 0);
    size_t at = find(table, &wanted);

    if (at == table->size || !is_same(&table->places[at], &wanted)) {
        return 0;
    }
    return table->places[at].seq;
}

/* False when the run reaches the end of the table. */
static bool insert(struct id_table *table, size_t at, const struct place *new)
{
    size_t end = at;

    while (end < table->size && table->places[end].seq != 0) {
        end++;
    }
    if (end == table->size) {
        return false;
    }
    CHECK(at == 0 || table->places[at - 1].seq == 0 ||
          is_before(&table->places[at - 1], new));
    memmove(&table->places[at + 1], &table->places[at],
            (end - at) * sizeof *table->places);
    table->places[at] = *new;
    table->count++;
    return true;
}

static void drop(struct id_table *table, size_t at)
{
    size_t end = at + 1;

    while (end < table->size && table->places[end].seq != 0 &&
           home_of(table, &table->places[end]) < end) {
        end++;
    }
    memmove(&table->places[at], &table->places[at + 1],
            (end - at - 1) * sizeof *table->places);
    table->places[end - 1] = (struct place){0, 0, 0};
    CHECK(table->count > 0);
    table->count--;
}

uint64_t store_table_set(struct id_table *table,
                         const struct identity *identity, uint64_t seq)
{
    struct place new = place_of(identity, seq);
    size_t at = find(table, &new);
    uint64_t before;

    if (at < table->size && table->places[at].seq != 0 &&
        is_same(&table->places[at], &new)) {
        before = table->places[at].seq;
        table->places[at].seq = seq;
        if (seq == 0) {
            drop(table, at);
        }
        return before;
    }
    CHECK(seq != 0);
    store_table_reserve(table, 1);
    while (!insert(table, find(table, &new), &new)) {
        grow(table, table->homes * 2);
    }
    return 0;
}

bool store_table_next(const struct id_table *table, size_t *at,
                      struct identity *identity, uint64_t *seq)
{
    while (*at < table->size && table->places[*at].seq == 0) {
        (*at)++;
    }
    if (*at >= table->size) {
        return false;
    }
    bytes_put_be64(identity->hash, table->places[*at].high);
    bytes_put_be64(identity->hash + 8, table->places[*at].low);
    *seq = table->places[*at].seq;
    (*at)++;
    return true;
}
