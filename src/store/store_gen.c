/* SPDX-License-Identifier: MIT */
#include "store/store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mark.h"
#include "store/store_idx.h"

/* Closing rule: docs/format.md, "Generations". */
enum { GENS_PER_RETENTION = 16, GENS_MAX = STORE_SLOTS - 4 };
enum { IDS_MIN = 1 << 20, IDS_MAX = 4 << 20 };
enum { STEP_BASE = 64, STEP_IDLE = 256 };
enum { CHUNK_BLOCKS = 255, CHUNKS_PER_STEP = 4 };

uint32_t store_gen_of(const struct store *store, uint64_t seq)
{
    const struct store_state *state = &store->state;
    uint32_t number = state->last_gen;

    while (number > state->first_gen &&
           seq < state->gens[slot_of(number)].first_seq) {
        number--;
    }
    return number;
}

/* --- memory that goes with a generation --------------------------------- */

void store_gen_free_memory(struct gen_memory *memory)
{
    store_table_free(memory->table);
    store_bloom_free(memory->bloom);
    free(memory->counts);
    free(memory->noted);
    memset(memory, 0, sizeof *memory);
}

static bool is_live(const struct store *store, uint32_t number)
{
    return number >= store->state.first_gen && number <= store->state.last_gen;
}

static void follow(struct store *store, const struct generation *gen)
{
    struct gen_memory *memory = &store->memory[slot_of(gen->number)];

    CHECK(memory->number == 0 || memory->number == gen->number);
    memory->number = gen->number;
    if (memory->counts == NULL) {
        memory->counts = mem_new(STORE_ROUTES_MAX, sizeof *memory->counts);
        memory->noted = mem_new(STORE_ROUTES_MAX, sizeof *memory->noted);
    }
    if (gen->state == GEN_SEALED) {
        store_table_free(memory->table);
        memory->table = NULL;
    } else if (memory->table == NULL) {
        memory->table = store_table_new();
    }
    if (gen->state == GEN_OPEN) {
        store_bloom_free(memory->bloom);
        memory->bloom = NULL;
    } else if (memory->bloom == NULL) {
        memory->bloom = store_bloom_new(gen->bloom_blocks);
    }
}

void store_gen_follow(struct store *store)
{
    for (uint32_t slot = 0; slot < STORE_SLOTS; slot++) {
        struct gen_memory *memory = &store->memory[slot];

        if (memory->number != 0 && !is_live(store, memory->number)) {
            store_gen_free_memory(memory);
        }
    }
    for (uint32_t n = store->state.first_gen; n <= store->state.last_gen; n++) {
        follow(store, gen_at(store, n));
    }
}

/* --- counters ----------------------------------------------------------- */

void store_gen_count(struct store *store, uint64_t seq,
                     const struct record *record, int by)
{
    uint32_t slot = slot_of(store_gen_of(store, seq));
    uint32_t *count;

    CHECK(by == 1 || by == -1);
    CHECK(record->state != RECORD_NONE);
    store_journal_counts(store, slot, record->route);
    count = &store->memory[slot].counts[record->route][record->state];
    CHECK(by > 0 || *count > 0);
    *count = by > 0 ? *count + 1 : *count - 1;
}

uint64_t store_gen_remembered(const struct store *store)
{
    uint64_t sum = 0;

    for (uint32_t n = store->state.first_gen; n <= store->state.last_gen; n++) {
        const struct generation *gen = &store->state.gens[slot_of(n)];

        sum += gen->state == GEN_OPEN
                   ? store_table_count(store->memory[slot_of(n)].table)
                   : gen->ids;
    }
    return sum;
}

/* Every record of the open generation is counted once and has its id in the
 * table: what changes both must never part them. */
bool store_gen_is_consistent(const struct store *store)
{
    const struct gen_memory *memory =
        &store->memory[slot_of(store->state.last_gen)];
    uint64_t sum = 0;

    for (uint16_t i = 0; i < store->n_routes; i++) {
        for (int state = RECORD_NONE + 1; state < RECORD_STATES; state++) {
            sum += memory->counts[i][state];
        }
    }
    return sum == store_table_count(memory->table);
}

uint32_t store_gen_step_items(const struct store *store)
{
    uint32_t new_ids = store->journal.new_ids;

    return new_ids > 0 ? 2 * new_ids + STEP_BASE : STEP_IDLE;
}

/* --- closing ------------------------------------------------------------ */

static uint64_t ids_limit(const struct store *store)
{
    uint64_t limit = store->options.ids_per_generation;

    if (limit > 0) {
        return limit;
    }
    limit = store_gen_remembered(store) / GENS_PER_RETENTION;
    limit = limit < IDS_MIN ? IDS_MIN : limit;
    return limit > IDS_MAX ? IDS_MAX : limit;
}

static bool should_close(struct store *store)
{
    const struct generation *gen = gen_current(store);
    size_t ids = store_table_count(store->memory[slot_of(gen->number)].table);
    int64_t age_ms = store_clock_expiry_ms(store) - gen->opened_ms;

    if (ids == 0 ||
        store->state.last_gen - store->state.first_gen >= GENS_MAX) {
        return false;
    }
    return ids >= ids_limit(store) ||
           age_ms >= store->options.retention_ms / GENS_PER_RETENTION;
}

static void mark_closed(struct store *store, struct generation *gen)
{
    size_t ids = store_table_count(store->memory[slot_of(gen->number)].table);

    gen->state = GEN_SEALING;
    gen->ids = ids;
    gen->bloom_blocks = store_bloom_blocks_for(ids);
    store->state.work.seal_slot = 0;
    store->state.work.bloom_chunk = 0;
}

static bool close_current(struct store *store, struct err *err)
{
    struct generation *old = gen_current(store);
    uint32_t number = old->number + 1;
    int64_t now_ms = store_now_ms(store);

    CHECK(old->state == GEN_OPEN);
    CHECK(number - store->state.first_gen < STORE_SLOTS);
    mark_closed(store, old);
    old->closed_ms = now_ms;
    *gen_at(store, number) = (struct generation){
        .number = number,
        .state = GEN_OPEN,
        .first_seq = store->state.next_seq,
        .opened_ms = now_ms,
    };
    store->state.last_gen = number;
    store->journal.gens_changed = true;
    store_gen_follow(store);
    /* As many may come again: no pause for growing on the way there. */
    store_table_reserve(store->memory[slot_of(number)].table,
                        (size_t)gen_at(store, number - 1)->ids);
    MARK(generation_closed);
    return store_meta_save_gen(store, number - 1, err) &&
           store_meta_save_gen(store, number, err);
}

/* --- sealing ------------------------------------------------------------ */

/* False in *more when the whole table is in `idx`. */
static bool seal_ids(struct store *store, uint32_t slot, bool *more,
                     struct err *err)
{
    size_t *at = &store->state.work.seal_slot;
    uint32_t items = store_gen_step_items(store), n;

    for (uint32_t done = 0; done < items; done += n) {
        if (!store_idx_seal_block(store, slot, at, &n, err)) {
            return false;
        }
        if (n == 0) {
            *more = false;
            return true;
        }
    }
    *more = true;
    return true;
}

static bool write_chunk(struct store *store, uint32_t number, uint32_t chunk,
                        struct err *err)
{
    const struct bloom *bloom = store->memory[slot_of(number)].bloom;
    uint32_t first = chunk * CHUNK_BLOCKS;
    uint32_t n = bloom->n_blocks - first;
    struct store_key key = key_u32_u32(number, chunk);

    CHECK(first < bloom->n_blocks);
    n = n > CHUNK_BLOCKS ? CHUNK_BLOCKS : n;
    return store_db_put_sealed(
        store, store->db.bloom, key_slice(&key),
        (struct slice){(const char *)bloom->blocks +
                           (size_t)first * BLOOM_BLOCK_SIZE,
                       (size_t)n * BLOOM_BLOCK_SIZE},
        err);
}

/* False in *more when the whole filter is stored. */
static bool seal_bloom(struct store *store, uint32_t number, bool *more,
                       struct err *err)
{
    const struct bloom *bloom = store->memory[slot_of(number)].bloom;
    uint32_t *chunk = &store->state.work.bloom_chunk;

    for (int i = 0; i < CHUNKS_PER_STEP; i++) {
        if (*chunk * CHUNK_BLOCKS >= bloom->n_blocks) {
            *more = false;
            return true;
        }
        if (!write_chunk(store, number, *chunk, err)) {
            return false;
        }
        (*chunk)++;
    }
    *more = true;
    return true;
}

static bool seal(struct store *store, uint32_t number, struct err *err)
{
    bool more;

    CHECK(gen_at(store, number)->state == GEN_SEALING);
    if (!seal_ids(store, slot_of(number), &more, err)) {
        return err_wrap(err, "seal generation %u", number);
    }
    MARK(seal_step);
    if (more) {
        return true;
    }
    if (!seal_bloom(store, number, &more, err)) {
        return err_wrap(err, "store the filter of generation %u", number);
    }
    if (more) {
        return true;
    }
    MARK(seal_done);
    gen_at(store, number)->state = GEN_SEALED;
    store->journal.gens_changed = true;
    return store_meta_save_gen(store, number, err);
}

static struct generation *sealing(struct store *store)
{
    struct generation *gen;

    if (store->state.last_gen == store->state.first_gen) {
        return NULL;
    }
    gen = gen_at(store, store->state.last_gen - 1);
    return gen->state == GEN_SEALING ? gen : NULL;
}

bool store_gen_seal_step(struct store *store, bool *more, struct err *err)
{
    struct generation *gen = sealing(store);

    if (gen != NULL) {
        *more = true;
        return seal(store, gen->number, err);
    }
    if (should_close(store)) {
        *more = true;
        return close_current(store, err);
    }
    return true;
}

/* What a crash left of the index and the filter is not trusted. The filter
 * is made anew: the table may have fewer ids now. */
bool store_gen_restart_sealing(struct store *store, struct err *err)
{
    struct generation *gen = sealing(store);
    struct gen_memory *memory;

    if (gen == NULL) {
        return true;
    }
    MARK(sealing_restarted);
    memory = &store->memory[slot_of(gen->number)];
    mark_closed(store, gen);
    store_bloom_free(memory->bloom);
    memory->bloom = store_bloom_new(gen->bloom_blocks);
    return store_db_empty(store, store->db.idx[slot_of(gen->number)], err) &&
           store_meta_save_gen(store, gen->number, err);
}
