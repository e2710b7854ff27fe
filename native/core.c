/* The compiled core: scans batches of messages, reduces their rows, writes the blocks of a shuffle, and makes of blocks
 * the lines that a target loads.
 *
 * A plain C ABI for ctypes. One `core` is a task's reduction, one `reading` what is known of a range's tables; neither
 * is for several threads. What Python hands over stays Python's: everything that is kept is copied.
 */
#include "guard.h"
#include "batch.h"
#include "message.h"
#include "order.h"
#include "blocks.h"
#include "csv.h"
#include "simple.h"

#define API __attribute__((visibility("default")))

enum { ABI = 6 };

#ifndef CORE_SOURCE
#define CORE_SOURCE "" /* the build says from which source this is made: consumer/native/source.py */
#endif

typedef struct {
    rows net;
    ordering order;
    uint8_t *block;
    size_t block_room;
} core;

/* Where a call of `core_take` leaves what it found; the arrays have room for as many numbers as there are messages. */
typedef struct {
    uint64_t *prints, *contents, *commits, *left;
    uint64_t taken, lefts, deletes, size, counted;
    const uint8_t *head[3];
    uint64_t head_len[3];
    uint64_t at; /* the message that is looked at, also where the call ends early */
} taking;

API int core_abi(void) { return ABI; }
API const char *core_source(void) { return CORE_SOURCE; }

API core *core_new(uint64_t seed) {
    core *made = calloc(1, sizeof *made);
    if (made != NULL) made->net.seed = seed;
    return made;
}

API void core_free(core *c) {
    if (c == NULL) return;
    clear_rows(&c->net);
    clear_ordering(&c->order);
    free(c->block);
    free(c);
}

API uint64_t core_rows(const core *c) { return c->net.count; }
API uint64_t core_bytes(const core *c) { return c->net.held; }

API reading *core_reading(uint64_t low, uint64_t high, uint64_t seed) {
    reading *r = calloc(1, sizeof *r);
    if (r != NULL) r->low = low, r->high = high, r->seed = seed;
    return r;
}

static void free_table(table *one) {
    if (one == NULL) return;
    free(one->types[0].bytes);
    free(one->types[1].bytes);
    free(one->owned);
    free(one);
}

API void core_reading_free(reading *r) {
    if (r == NULL) return;
    for (size_t i = 0; i < r->count; i++) free_table(r->all[i]);
    free(r->all);
    free(r->slots);
    free(r->scratch);
    free(r);
}

static void put_slot(uint32_t *slots, uint32_t mask, uint64_t hash, size_t number) {
    uint32_t at = (uint32_t)hash & mask;
    while (slots[at] != 0) at = (at + 1) & mask;
    slots[at] = (uint32_t)number + 1;
}

/* Let the last table be found; half of the slots at least stay free. */
static bool hash_last(reading *r) {
    if (r->slots != NULL && r->mask >= 2 * r->count) {
        put_slot(r->slots, r->mask, r->all[r->count - 1]->hash, r->count - 1);
        return true;
    }
    uint32_t size = r->slots == NULL ? 16 : 2 * (r->mask + 1);
    uint32_t *slots = calloc(size, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < r->count; i++) put_slot(slots, size - 1, r->all[i]->hash, i);
    free(r->slots);
    r->slots = slots;
    r->mask = size - 1;
    return true;
}

/* The table of some texts, which follow one another in `bytes`: a head's three, the keys' prefix, the keys' columns. */
static table *made_table(const uint8_t *bytes, const uint32_t *lens, uint32_t texts, uint64_t seed) {
    size_t total = 0;
    for (uint32_t i = 0; i < texts; i++) total += lens[i];
    table *one = calloc(1, sizeof *one);
    if (one == NULL || (one->owned = malloc(total + 1)) == NULL) return free_table(one), NULL;
    memcpy(one->owned, bytes, total);
    const uint8_t *at = one->owned;
    for (uint32_t i = 0; i < texts; at += lens[i++]) {
        span found = {at, lens[i]};
        if (i < 3) one->head[i] = found;
        if (i == 3) one->prefix = found;
        if (i > 3) one->names[one->keys++] = found;
    }
    one->hash = head_hash(one->head, seed);
    return one;
}

/* Make a table known, or change its flags. A LEFT_OUT one has no keys. 1: done, 0: there is no room for it, -1: no memory. */
API int core_learn(reading *r, const uint8_t *bytes, const uint32_t *lens, uint32_t texts, uint32_t flags) {
    if (texts < 4 || texts > 4 + MOST_KEYS || (texts == 4 && !(flags & LEFT_OUT))) return 0;
    table *one = made_table(bytes, lens, texts, r->seed);
    if (one == NULL) return NO_MEMORY;
    table *known = find_table(r, one->head);
    if (known != NULL) {
        known->flags = flags;
        return free_table(one), 1;
    }
    if (r->count >= MOST_TABLES) return free_table(one), 0;
    table **all = realloc(r->all, (r->count + 1) * sizeof(table *));
    if (all == NULL) return free_table(one), NO_MEMORY;
    one->flags = flags;
    r->all = all;
    r->all[r->count++] = one;
    return hash_last(r) ? 1 : NO_MEMORY;
}

/* Take one half from elsewhere. 0, or -1 without memory. */
API int core_add(core *c, const uint8_t *key, uint32_t key_len, uint64_t order, const uint8_t *image, uint32_t image_len,
                 uint64_t back) {
    row half = {.order = order, .back = back, .key_len = key_len, .image_len = image_len};
    half.key = (uint8_t *)(uintptr_t)key; /* only read: `add_row` puts a copy in its place */
    half.image = (uint8_t *)(uintptr_t)image;
    return reduce(&c->net, half) ? 0 : NO_MEMORY;
}

static bool apply(core *c, taking *out, const event *e) {
    bool gone = e->is == DELETE, moved = e->left.len > 0;
    uint64_t order = e->commit_ts << 1 | !gone, back = e->is == UPDATE && !moved;
    span image = gone ? (span){e->image.p, 0} : e->image;
    out->prints[out->taken] = xxh3(e->key.p, e->key.len, order);
    out->contents[out->taken] = xxh3(image.p, image.len, 0);
    out->commits[out->taken++] = e->commit_ts;
    out->deletes += gone || moved;
    if (core_add(c, e->key.p, (uint32_t)e->key.len, order, image.p, (uint32_t)image.len, back) != 0) return false;
    if (!moved) return true;
    out->left[out->lefts++] = xxh3(e->left.p, e->left.len, order - 1);
    return core_add(c, e->left.p, (uint32_t)e->left.len, order - 1, e->left.p, 0, 0) == 0;
}

static bool is_new(const batch *in, uint64_t number) {
    if (in->messages == NULL && in->offsets == NULL) return true;
    int64_t offset = in->messages != NULL ? in->messages[number]->offset : in->offsets[number];
    return offset >= in->count_from && offset < in->count_to;
}

static APART int take_batch(core *c, reading *r, const batch *in, taking *out) {
    const uint8_t *at = in->bytes;
    for (out->at = 0; out->at < in->count; out->at++) {
        span message = message_at(in, out->at, at);
        event e;
#ifdef CORE_FAULT /* of the tests: a message of this length ends like a wrong address would */
        if (message.len == CORE_FAULT) *(volatile uint8_t *)(uintptr_t)message.len = 0;
#endif
        bool unread = message.p == NULL || message.len > in->largest;
        int found = unread ? NOT_USUAL : read_message(r, (cursor){message.p, message.p + message.len}, &e);
        if (found == USUAL && !apply(c, out, &e)) found = NO_MEMORY;
        if (found == UNKNOWN_TABLE)
            for (int i = 0; i < 3; i++) out->head[i] = e.head[i].p, out->head_len[i] = e.head[i].len;
        if (found != USUAL && found != FILTERED) return found;
        out->counted += is_new(in, out->at);
        out->size += message.len;
        if (in->messages == NULL) at += message.len;
    }
    return USUAL;
}

/* Take messages up to the first that is not usual. Gives USUAL where all were taken, else why not; `out->at` tells how
 * many were. After NO_MEMORY and CRASHED nothing of `c` and `r` may be used any more. */
API int core_take(core *c, reading *r, const batch *in, taking *out) {
    out->taken = out->lefts = out->deletes = out->size = out->counted = 0;
    int result;
    GUARDED(result = take_batch(c, r, in, out), result = CRASHED);
    return result;
}

/* The runs of messages that librdkafka gave; `to` has room for as many as there are messages. */
API uint32_t core_runs(const kafka_message *const *messages, uint32_t count, kafka_run *to) {
    return find_runs(messages, count, to);
}

/* Give messages back; `destroy` is `rd_kafka_message_destroy`. */
API void core_give_back(kafka_message **messages, uint32_t count, void (*destroy)(kafka_message *)) {
    for (uint32_t i = 0; i < count; i++) destroy(messages[i]);
}

/* The bucket of each row, from 0, in the order of rows; `to` has room for `core_rows`. */
API void core_buckets(const core *c, uint32_t buckets, uint32_t run_digits, uint32_t *to) {
    for (uint32_t i = 0; i < c->net.count; i++)
        to[i] = crc32_of(c->net.rows[i].key, told_by(&c->net.rows[i], run_digits)) % buckets;
}

static bool make_room(core *c, size_t need) {
    if (need <= c->block_room) return true;
    free(c->block);
    c->block_room = 0;
    if ((c->block = malloc(need)) == NULL) return false;
    c->block_room = need;
    return true;
}

/* The halves of one bucket in MessagePack, as `consumer`'s blocks hold them; `size` gets the length. NULL: no memory. */
API const uint8_t *core_block(core *c, const uint32_t *bucket_of, uint32_t bucket, uint64_t *size) {
    size_t need = 5;
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->net.count; i++) {
        if (bucket_of[i] != bucket) continue;
        count++;
        need += room_of(&c->net.rows[i]);
    }
    if (!make_room(c, need)) return NULL;
    uint8_t *to = put_count(c->block, count);
    for (uint32_t i = 0; i < c->net.count; i++)
        if (bucket_of[i] == bucket) to = put_half(to, &c->net.rows[i]);
    *size = (uint64_t)(to - c->block);
    return c->block;
}

/* The same of the rows with these numbers. */
API const uint8_t *core_halves(core *c, const uint32_t *slice, uint32_t count, uint64_t *size) {
    size_t need = 5;
    for (uint32_t i = 0; i < count; i++) need += room_of(&c->net.rows[slice[i]]);
    if (!make_room(c, need)) return NULL;
    uint8_t *to = put_count(c->block, count);
    for (uint32_t i = 0; i < count; i++) to = put_half(to, &c->net.rows[slice[i]]);
    *size = (uint64_t)(to - c->block);
    return c->block;
}

/* Reduce the halves of a block, which are MessagePack. What is not usual leaves rows that may not be used. */
API int core_add_block(core *c, const uint8_t *bytes, uint64_t len) {
    int result;
    GUARDED(result = take_block(&c->net, bytes, len), result = CRASHED);
    return result;
}

/* Group the rows by table, once all are there; `tables` gets how many tables there are. */
API int core_group(core *c, uint32_t *tables) {
    int result;
    GUARDED(result = group_rows(&c->order, &c->net), result = CRASHED);
    *tables = c->order.tables;
    return result;
}

/* The numbers of some rows of a table: see `select_rows`. `at` begins with 0; `to` has room for `most_rows`. */
API uint32_t core_select(const core *c, uint32_t of, uint32_t which, uint32_t *at, uint32_t most_rows,
                         uint64_t most_bytes, uint32_t *to) {
    uint32_t begin = c->order.starts[of], from = begin + *at;
    uint32_t count = select_rows(&c->order, &c->net, of, which, &from, most_rows, most_bytes, to);
    *at = from - begin;
    return count;
}

/* How many of these rows were not there before the first event that they stand for. */
API uint64_t core_missed(const core *c, const uint32_t *slice, uint32_t count) {
    uint64_t missed = 0;
    for (uint32_t i = 0; i < count; i++) missed += (c->net.rows[slice[i]].order - c->net.rows[slice[i]].back) & 1;
    return missed;
}

/* Lines of these rows' images, or of their keys; they lie at `lines` until the next call. */
API int core_lines(core *c, const uint32_t *slice, uint32_t count, const rule *rules, uint32_t columns, int images,
                   const uint8_t **lines, uint64_t *size) {
    int result;
    GUARDED(result = put_lines(&c->order, &c->net, slice, count, rules, columns, images), result = CRASHED);
    *lines = c->order.lines.bytes;
    *size = c->order.lines.len;
    return result;
}

/* Forget all rows. */
API void core_clear(core *c) {
    clear_rows(&c->net);
    clear_ordering(&c->order);
    free(c->block);
    c->block = NULL;
    c->block_room = 0;
}

API csv_work *core_csv_new(uint32_t columns) { return new_work(columns); }
API void core_csv_free(csv_work *w) { free_work(w); }

/* Bring lines of a file into Canal-JSON, up to the first that is not usual; they lie at `bytes` until the next call. */
API int core_csv(csv_work *w, const csv_table *t, const uint8_t *file, uint64_t len, csv_taken *taken) {
    int result;
    GUARDED(result = take_csv(t, w, file, len, taken), result = CRASHED);
    taken->bytes = w->out.bytes;
    taken->size = w->out.len;
    return result;
}

API schemas *core_schemas(uint64_t seed) {
    schemas *made = calloc(1, sizeof *made);
    if (made != NULL) made->seed = seed;
    return made;
}

API void core_schemas_free(schemas *s) { free_schemas(s); }

/* `lens`: of database, table, the heads of INSERT, UPDATE, DELETE, the zone, and each column's name. See `learn_schema`. */
API int core_schemas_learn(schemas *s, const uint8_t *bytes, const uint32_t *lens, const uint8_t *kinds, uint32_t columns,
                           uint64_t version) {
    return learn_schema(s, bytes, lens, kinds, columns, version);
}

/* Bring messages into Canal-JSON, up to the first that is not usual; they lie at `bytes` until the next call. */
API int core_simple(schemas *s, const batch *in, translated *to) {
    int result;
    GUARDED(result = take_simple(s, in, to), result = CRASHED);
    to->bytes = s->out.bytes;
    to->size = s->out.len;
    return result;
}
