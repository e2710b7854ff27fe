/* A bucket's rows on their way to the target: blocks in, and by table, cut into slices, lines out.
 *
 * What `consumer.tasks.encoding` does with netted rows; a slice that is not usual is handed back as its rows.
 */
#ifndef TICDC_ORDER_H
#define TICDC_ORDER_H

#include "fields.h"
#include "guard.h"
#include "message.h"
#include "names.h"
#include "rows.h"

enum { MOST_COLUMNS = 4096 };
enum { ALL_ROWS = 0, GONE_ROWS = 1, WRITTEN_ROWS = 2 };

typedef struct {
    uint32_t *by_table, *starts; /* rows grouped by table, in the order of their keys' bytes; where each group begins */
    uint32_t tables;
    sink lines;
    uint8_t *scratch;
    size_t room;
    span *names; /* the columns of the slice's first image, in quotes, with their colons */
} ordering;

static void clear_ordering(ordering *o) {
    free(o->by_table);
    free(o->starts);
    free(o->lines.bytes);
    free(o->scratch);
    free(o->names);
    memset(o, 0, sizeof *o);
}

static bool take_big(cursor *c, size_t bytes, uint64_t *value) {
    if (left_of(c) < bytes) return false;
    for (*value = 0; bytes-- > 0;) *value = *value << 8 | *c->p++;
    return true;
}

static bool take_uint(cursor *c, uint64_t *value) {
    if (c->p >= c->end) return false;
    uint8_t code = *c->p++;
    if (code < 0x80) return *value = code, true;
    return code >= 0xCC && code <= 0xCF && take_big(c, (size_t)1 << (code - 0xCC), value);
}

static bool take_span(cursor *c, uint64_t len, span *found) {
    if (left_of(c) < len || len > UINT32_MAX) return false;
    *found = (span){c->p, (size_t)len};
    c->p += len;
    return true;
}

static bool take_binary(cursor *c, span *found) {
    uint64_t len;
    if (c->p >= c->end || *c->p < 0xC4 || *c->p > 0xC6) return false;
    size_t bytes = (size_t)1 << (*c->p++ - 0xC4);
    return take_big(c, bytes, &len) && take_span(c, len, found);
}

static bool take_string(cursor *c, span *found) {
    uint64_t len;
    if (c->p >= c->end) return false;
    uint8_t code = *c->p++;
    if (code >= 0xA0 && code <= 0xBF) return take_span(c, code & 0x1F, found);
    return code >= 0xD9 && code <= 0xDB && take_big(c, (size_t)1 << (code - 0xD9), &len) && take_span(c, len, found);
}

static bool take_array(cursor *c, uint64_t *count) {
    if (c->p >= c->end) return false;
    uint8_t code = *c->p++;
    if (code >= 0x90 && code <= 0x9F) return *count = code & 0xF, true;
    return (code == 0xDC || code == 0xDD) && take_big(c, code == 0xDC ? 2 : 4, count);
}

/* Reduce the halves of a block. A reference to a row elsewhere, which begins with a zero byte, is not usual. */
static APART int take_block(rows *net, const uint8_t *bytes, uint64_t len) {
    cursor c = {bytes, bytes + len};
    uint64_t count;
    if (!take_array(&c, &count)) return NOT_USUAL;
    for (; count > 0; count--) {
        span key, image;
        row half = {.order = 0};
        if (!take(&c, 0x94) || !take_binary(&c, &key) || !take_uint(&c, &half.order)) return NOT_USUAL;
        if (!take_binary(&c, &image) || !take_uint(&c, &half.back)) return NOT_USUAL;
        if (image.len > 0 && *image.p == 0) return NOT_USUAL;
        half.key = (uint8_t *)(uintptr_t)key.p; /* only read: `reduce` copies both */
        half.image = (uint8_t *)(uintptr_t)image.p;
        half.key_len = (uint32_t)key.len;
        half.image_len = (uint32_t)image.len;
        if (!reduce(net, half)) return NO_MEMORY;
    }
    return c.p == c.end ? USUAL : NOT_USUAL;
}

/* Where the values begin in a row key; what lies before, but for the array's head, names the table. */
static bool table_in(const row *one, span *name, uint64_t *values) {
    span ignored;
    cursor c = {one->key, one->key + one->key_len};
    if (!take_array(&c, values) || *values < 2) return false;
    name->p = c.p;
    if (!take_string(&c, &ignored) || !take_string(&c, &ignored)) return false;
    name->len = (size_t)(c.p - name->p);
    *values -= 2;
    return true;
}

/* The table of each row, in `of`. */
static int find_tables(const rows *net, name_table *all, uint32_t *of) {
    span last = {NULL, 0};
    for (uint32_t i = 0; i < net->count; i++) {
        span name;
        uint64_t values;
        if (!table_in(&net->rows[i], &name, &values)) return NOT_USUAL;
        if (i > 0 && same(last, name.p, name.len)) {
            of[i] = of[i - 1];
            continue;
        }
        int64_t number = number_of(all, name, net->seed);
        if (number < 0) return NO_MEMORY;
        of[i] = (uint32_t)number;
        last = name;
    }
    return USUAL;
}

typedef struct {
    uint64_t head; /* the first bytes of the key behind what all keys of the table begin with */
    uint32_t number;
} keyed;

static uint64_t head_of(const row *one, uint32_t from) {
    uint64_t head = 0;
    for (uint32_t i = from; i < from + 8; i++) head = head << 8 | (i < one->key_len ? one->key[i] : 0);
    return head;
}

static bool goes_before(const rows *net, const keyed *a, const keyed *b) {
    if (a->head != b->head) return a->head < b->head;
    const row *left = &net->rows[a->number], *right = &net->rows[b->number];
    uint32_t len = left->key_len < right->key_len ? left->key_len : right->key_len;
    int found = memcmp(left->key, right->key, len);
    return found != 0 ? found < 0 : left->key_len < right->key_len;
}

/* What the keys of some rows begin with, in bytes. */
static uint32_t common_in(const rows *net, const uint32_t *some, uint32_t count) {
    const row *first = &net->rows[some[0]];
    uint32_t common = first->key_len;
    for (uint32_t i = 1; i < count && common > 0; i++) {
        const row *one = &net->rows[some[i]];
        if (one->key_len < common) common = one->key_len;
        if (memcmp(one->key, first->key, common) == 0) continue;
        uint32_t same = 0;
        while (one->key[same] == first->key[same]) same++;
        common = same;
    }
    return common;
}

/* Merge two halves, each of which is in order, from one array into another. */
static void merge_halves(const rows *net, const keyed *from, keyed *to, uint32_t low, uint32_t middle, uint32_t high) {
    uint32_t left = low, right = middle;
    bool ordered = middle == high || !goes_before(net, &from[middle], &from[middle - 1]);
    for (uint32_t at = low; at < high; at++) {
        bool of_right = !ordered && right < high && (left == middle || goes_before(net, &from[right], &from[left]));
        to[at] = from[of_right ? right++ : left++];
    }
}

/* Order some rows by the bytes of their keys; `work` has room for twice as many. No more than MOST_ROWS. */
static void sort_rows(const rows *net, uint32_t *some, uint32_t count, keyed *work) {
    keyed *from = work, *to = work + count;
    uint32_t begin = common_in(net, some, count);
    for (uint32_t i = 0; i < count; i++) from[i] = (keyed){head_of(&net->rows[some[i]], begin), some[i]};
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t low = 0; low < count; low += 2 * width) {
            uint32_t middle = low + width < count ? low + width : count;
            uint32_t high = low + 2 * width < count ? low + 2 * width : count;
            merge_halves(net, from, to, low, middle, high);
        }
        keyed *merged = from;
        from = to;
        to = merged;
    }
    for (uint32_t i = 0; i < count; i++) some[i] = from[i].number;
}

/* Order the rows of each table: a database writes neighbours faster. */
static bool sort_tables(ordering *o, const rows *net) {
    uint32_t most = 0;
    for (uint32_t t = 0; t < o->tables; t++)
        if (o->starts[t + 1] - o->starts[t] > most) most = o->starts[t + 1] - o->starts[t];
    keyed *work = malloc(((size_t)most * 2 + 1) * sizeof *work);
    if (work == NULL) return false;
    for (uint32_t t = 0; t < o->tables; t++)
        if (o->starts[t + 1] > o->starts[t])
            sort_rows(net, &o->by_table[o->starts[t]], o->starts[t + 1] - o->starts[t], work);
    free(work);
    return true;
}

static APART int group_rows(ordering *o, const rows *net) {
    name_table all = {.room = 0};
    uint32_t *of = malloc(((size_t)net->count + 1) * sizeof *of);
    int found = of == NULL ? NO_MEMORY : find_tables(net, &all, of);
    if (found == USUAL) {
        o->tables = all.count;
        o->starts = calloc((size_t)all.count + 2, sizeof *o->starts);
        o->by_table = malloc(((size_t)net->count + 1) * sizeof *o->by_table);
        found = o->starts == NULL || o->by_table == NULL ? NO_MEMORY : USUAL;
    }
    if (found == USUAL) { /* starts[t + 1] goes from where t begins to where it ends, which is where t + 1 begins */
        for (uint32_t i = 0; i < net->count; i++) o->starts[of[i] + 2]++;
        for (uint32_t t = 2; t < all.count + 2; t++) o->starts[t] += o->starts[t - 1];
        for (uint32_t i = 0; i < net->count; i++) o->by_table[o->starts[of[i] + 1]++] = i;
        if (!sort_tables(o, net)) found = NO_MEMORY;
    }
    free(of);
    free_names(&all);
    return found;
}

static inline bool is_wanted(const row *one, uint32_t which) {
    return which == ALL_ROWS || (which == WRITTEN_ROWS) == ((one->order & 1) == 1);
}

/* A slice of a table's rows from `from` on, which moves behind it; it ends with the row that fills it. */
static uint32_t select_rows(const ordering *o, const rows *net, uint32_t of, uint32_t which, uint32_t *from,
                            uint32_t most_rows, uint64_t most_bytes, uint32_t *to) {
    uint32_t count = 0, end = o->starts[of + 1];
    uint64_t held = 0;
    while (*from < end && count < most_rows && held < most_bytes) {
        uint32_t i = o->by_table[(*from)++];
        if (!is_wanted(&net->rows[i], which)) continue;
        to[count++] = i;
        held += net->rows[i].image_len;
    }
    return count;
}

/* A value as JSON spells it, or null. */
static bool put_value(ordering *o, cursor *c, const rule *of) {
    text found;
    if (is_next(c, 'n')) {
        if (!TAKE(c, "null") || of->flags & NOT_NULL || !reserve(&o->lines, 2)) return false;
        if (of->kind != SKIPPED) put_span(&o->lines, (span){(const uint8_t *)"\\N", 2});
        return true;
    }
    if (!take_text(c, &found)) return false;
    if (of->kind == SKIPPED) return is_utf8(found.raw);
    if (!found.escaped) return put_field(&o->lines, of, found.raw, true);
    if (found.raw.len > o->room) {
        free(o->scratch);
        o->room = 0;
        if ((o->scratch = malloc(found.raw.len * 2)) == NULL) return false;
        o->room = found.raw.len * 2;
    }
    size_t len = unescaped(&found, o->scratch);
    return put_field(&o->lines, of, (span){o->scratch, len}, false);
}

/* Past a column's name; the first image tells which there have to be. */
static bool take_name(ordering *o, cursor *c, uint32_t column, bool first) {
    text name;
    if (!first) {
        span known = o->names[column];
        if (left_of(c) < known.len || memcmp(c->p, known.p, known.len) != 0) return false;
        c->p += known.len;
        return true;
    }
    o->names[column].p = c->p;
    if (!take_text(c, &name) || !take(c, ':')) return false;
    o->names[column].len = (size_t)(c->p - o->names[column].p);
    return true;
}

/* The line of an image; false where it is not usual. */
static bool put_image(ordering *o, const row *one, const rule *rules, uint32_t columns, bool first) {
    cursor c = {one->image, one->image + one->image_len};
    bool began = false;
    if (!take(&c, '{')) return false;
    for (uint32_t i = 0; i < columns; i++) {
        if ((i > 0 && !take(&c, ',')) || !take_name(o, &c, i, first) || !reserve(&o->lines, 2)) return false;
        if (began && rules[i].kind != SKIPPED) put_byte(&o->lines, '\t');
        began = began || rules[i].kind != SKIPPED;
        if (!put_value(o, &c, &rules[i])) return false;
    }
    if (!take(&c, '}') || c.p != c.end || !reserve(&o->lines, 1)) return false;
    put_byte(&o->lines, '\n');
    return true;
}

static bool put_key_line(ordering *o, const row *one, const rule *rules, uint32_t columns) {
    span name, value;
    uint64_t values;
    if (!table_in(one, &name, &values) || values != columns) return false;
    cursor c = {name.p + name.len, one->key + one->key_len};
    for (uint32_t i = 0; i < columns; i++) {
        if (!take_string(&c, &value) || !reserve(&o->lines, 2)) return false;
        if (i > 0) put_byte(&o->lines, '\t');
        if (!put_field(&o->lines, &rules[i], value, false)) return false;
    }
    if (c.p != c.end || !reserve(&o->lines, 1)) return false;
    put_byte(&o->lines, '\n');
    return true;
}

/* The lines of a slice: of its images, or of its keys. */
static APART int put_lines(ordering *o, const rows *net, const uint32_t *slice, uint64_t count, const rule *rules,
                     uint32_t columns, int images) {
    o->lines.len = 0;
    if (columns == 0 || columns > MOST_COLUMNS) return NOT_USUAL;
    if (o->names == NULL && (o->names = malloc(MOST_COLUMNS * sizeof *o->names)) == NULL) return NO_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        const row *one = &net->rows[slice[i]];
#ifdef CORE_FAULT /* of the tests: an image of this length ends like a wrong address would */
        if (one->image_len == CORE_FAULT) *(volatile uint8_t *)(uintptr_t)one->image_len = 0;
#endif
        if (!(images ? put_image(o, one, rules, columns, i == 0) : put_key_line(o, one, rules, columns))) return NOT_USUAL;
    }
    return USUAL;
}

#endif
