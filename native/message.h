/* One Canal-JSON row event out of its bytes: what `consumer`'s batch scan takes of it, or that it is not usual.
 *
 * A table is known by the bytes with which its messages begin, as the Python path has read them once; what a message
 * says of its columns' types is compared with what the last one said and skipped.
 */
#ifndef TICDC_MESSAGE_H
#define TICDC_MESSAGE_H

#include "json.h"
#include "xxh3.h"

#include <stdlib.h>

enum { MOST_KEYS = 16, LARGEST_MEMO = 64 << 10, MOST_TABLES = 1 << 14 };
enum { WHOLE_KNOWN = 1, GONE_KNOWN = 2, LEFT_OUT = 4 };
enum { NOT_USUAL = 0, USUAL = 1, UNKNOWN_TABLE = 2, FILTERED = 3, NO_MEMORY = -1, CRASHED = -2 };
typedef enum { INSERT, UPDATE, DELETE } kind;

typedef struct {
    uint8_t *bytes;
    size_t len;
} memo;

typedef struct {
    span head[3]; /* the raw values of database, table and pkNames; all spans point into `owned` */
    span prefix;  /* of its row keys */
    span names[MOST_KEYS];
    size_t keys;
    uint64_t hash;
    uint32_t flags;
    memo types[2]; /* sqlType, mysqlType */
    uint8_t *owned;
} table;

typedef struct {
    uint64_t seed; /* of the heads' hashes: random, or whoever names tables could make all of them meet in one slot */
    table **all;
    size_t count;
    uint32_t *slots, mask; /* table number + 1, or 0 */
    table *last;
    uint64_t low, high; /* commitTs above low, and up to high */
    uint8_t *scratch;
    size_t room;
} reading;

typedef struct {
    kind is;
    uint64_t commit_ts;
    table *of;
    span head[3], image, key, left; /* `left` is empty where no key was left */
} event;

static inline uint64_t head_hash(const span head[3], uint64_t seed) {
    uint64_t hash = seed;
    for (int i = 0; i < 3; i++) hash = xxh3(head[i].p, head[i].len, hash);
    return hash;
}

static inline bool same_head(const table *one, const span head[3]) {
    for (int i = 0; i < 3; i++)
        if (!same(one->head[i], head[i].p, head[i].len)) return false;
    return true;
}

static table *find_table(reading *r, const span head[3]) {
    if (r->last != NULL && same_head(r->last, head)) return r->last;
    if (r->slots == NULL) return NULL;
    uint64_t hash = head_hash(head, r->seed);
    for (uint32_t at = (uint32_t)hash & r->mask; r->slots[at] != 0; at = (at + 1) & r->mask) {
        table *one = r->all[r->slots[at] - 1];
        if (one->hash == hash && same_head(one, head)) return r->last = one;
    }
    return NULL;
}

static bool skip_types(cursor *c, memo *known) {
    if (known->len > 0 && left_of(c) >= known->len && memcmp(c->p, known->bytes, known->len) == 0) {
        c->p += known->len; /* it was read to its closing brace, so it ends here as well */
        return true;
    }
    const uint8_t *begin = c->p;
    if (!skip_value(c, 1)) return false;
    size_t len = (size_t)(c->p - begin);
    if (*begin == '{' && len <= LARGEST_MEMO) {
        uint8_t *bytes = realloc(known->bytes, len);
        if (bytes != NULL) {
            known->bytes = bytes;
            known->len = len;
            memcpy(bytes, begin, len);
        }
    }
    return true;
}

typedef struct {
    text value[MOST_KEYS];
    uint32_t seen;
} key_values;

/* Past an image; the values of the key's columns are noted. */
static bool read_image(cursor *c, const table *of, key_values *found) {
    text name;
    found->seen = 0;
    if (!take(c, '{')) return false;
    if (take(c, '}')) return true;
    do {
        if (!take_text(c, &name) || name.escaped || !take(c, ':')) return false;
        size_t i = 0;
        while (i < of->keys && !same(of->names[i], name.raw.p, name.raw.len)) i++;
        if (i == of->keys) {
            if (!skip_value(c, 3)) return false;
        } else {
            if (found->seen & 1U << i || !take_text(c, &found->value[i]) || !is_utf8(found->value[i].raw)) return false;
            found->seen |= 1U << i;
        }
    } while (take(c, ','));
    return take(c, '}');
}

/* Past `[image]`. */
static bool read_row(cursor *c, const table *of, key_values *found, span *image) {
    if (!take(c, '[')) return false;
    image->p = c->p;
    if (!read_image(c, of, found)) return false;
    image->len = (size_t)(c->p - image->p);
    return take(c, ']');
}

static size_t put_length(uint8_t *to, size_t len) { /* of a string, in MessagePack */
    if (len < 32) return to[0] = (uint8_t)(0xA0 | len), 1;
    if (len < 1 << 8) return to[0] = 0xD9, to[1] = (uint8_t)len, 2;
    if (len < 1 << 16) return to[0] = 0xDA, to[1] = (uint8_t)(len >> 8), to[2] = (uint8_t)len, 3;
    to[0] = 0xDB;
    for (int i = 0; i < 4; i++) to[1 + i] = (uint8_t)(len >> (24 - 8 * i));
    return 5;
}

/* The row key of values, in `to`; there is room for each value's raw length and 5. */
static span put_key(uint8_t *to, const table *of, const key_values *found) {
    memcpy(to, of->prefix.p, of->prefix.len);
    uint8_t *at = to + of->prefix.len;
    for (size_t i = 0; i < of->keys; i++) {
        const text *one = &found->value[i];
        if (one->escaped) {
            size_t len = unescaped(one, at + 5); /* the length before it is known only now */
            size_t head = put_length(at, len);
            memmove(at + head, at + 5, len);
            at += head + len;
        } else {
            at += put_length(at, one->raw.len);
            memcpy(at, one->raw.p, one->raw.len);
            at += one->raw.len;
        }
    }
    return (span){to, (size_t)(at - to)};
}

static size_t room_for(const table *of, const key_values *found) {
    size_t room = of->prefix.len;
    for (size_t i = 0; i < of->keys; i++) room += found->value[i].raw.len + 5;
    return room;
}

static int make_keys(reading *r, event *e, const key_values *now, key_values *old) {
    bool differs = false;
    for (size_t i = 0; i < e->of->keys; i++) {
        if (!(old->seen & 1U << i))
            old->value[i] = now->value[i];
        else if (!same(old->value[i].raw, now->value[i].raw.p, now->value[i].raw.len))
            differs = true;
    }
    size_t first = room_for(e->of, now), room = first + (differs ? room_for(e->of, old) : 0);
    if (room > r->room) {
        uint8_t *more = realloc(r->scratch, room * 2);
        if (more == NULL) return NO_MEMORY;
        r->scratch = more;
        r->room = room * 2;
    }
    e->key = put_key(r->scratch, e->of, now);
    e->left = differs ? put_key(r->scratch + first, e->of, old) : (span){r->scratch, 0};
    if (same(e->left, e->key.p, e->key.len)) e->left.len = 0; /* only spelled differently */
    return USUAL;
}

static bool read_extension(cursor *c, uint64_t *commit_ts) {
    if (!TAKE(c, "{\"commitTs\":") || !take_number(c, commit_ts)) return false;
    (void)TAKE(c, ",\"onlyNew\":true"); /* of formats that lack old rows: the same to a reduction */
    return take(c, '}');
}

enum { ID, DATABASE, TABLE, KEYS, DDL, TYPE, SQL, SQL_TYPE, MYSQL_TYPE, OLD, DATA, TIDB, OTHER };
#define NEEDED (1U << DATABASE | 1U << TABLE | 1U << KEYS | 1U << TYPE | 1U << DATA | 1U << TIDB)

static int field_of(span name) {
    switch (name.len) {
        case 3: return SAME(name, "sql") ? SQL : SAME(name, "old") ? OLD : OTHER;
        case 4: return SAME(name, "type") ? TYPE : SAME(name, "data") ? DATA : OTHER;
        case 5: return SAME(name, "table") ? TABLE : SAME(name, "isDdl") ? DDL : SAME(name, "_tidb") ? TIDB : OTHER;
        case 7: return SAME(name, "pkNames") ? KEYS : SAME(name, "sqlType") ? SQL_TYPE : OTHER;
        case 8: return SAME(name, "database") ? DATABASE : OTHER;
        case 9: return SAME(name, "mysqlType") ? MYSQL_TYPE : OTHER;
        default: return OTHER;
    }
}

typedef struct {
    key_values now, old;
    uint32_t seen;
    bool has_old, unread; /* `unread`: a row came before its table's name */
} fields;

static bool take_kind(cursor *c, kind *is) {
    if (TAKE(c, "\"UPDATE\"")) return *is = UPDATE, true;
    if (TAKE(c, "\"INSERT\"")) return *is = INSERT, true;
    if (TAKE(c, "\"DELETE\"")) return *is = DELETE, true;
    return false;
}

static bool take_raw(cursor *c, span *raw) {
    raw->p = c->p;
    if (!skip_value(c, 1)) return false;
    raw->len = (size_t)(c->p - raw->p);
    return true;
}

#define HEAD (1U << DATABASE | 1U << TABLE | 1U << KEYS)

/* The table, once the message has named all of it. */
static bool is_known(reading *r, event *e, const fields *f) {
    if (e->of == NULL && (f->seen & HEAD) == HEAD) e->of = find_table(r, e->head);
    return e->of != NULL;
}

static bool take_field(reading *r, cursor *c, int field, event *e, fields *f) {
    span ignored;
    switch (field) {
        case DATABASE: return take_raw(c, &e->head[0]);
        case TABLE: return take_raw(c, &e->head[1]);
        case KEYS: return take_raw(c, &e->head[2]);
        case DDL: return TAKE(c, "false");
        case TYPE: return take_kind(c, &e->is);
        case SQL: return TAKE(c, "\"\"");
        case SQL_TYPE:
        case MYSQL_TYPE: return is_known(r, e, f) ? skip_types(c, &e->of->types[field - SQL_TYPE]) : skip_value(c, 1);
        case OLD:
            if (TAKE(c, "null")) return true;
            f->has_old = true;
            return is_known(r, e, f) ? read_row(c, e->of, &f->old, &ignored) : (f->unread = true, skip_value(c, 1));
        case DATA:
            return is_known(r, e, f) ? read_row(c, e->of, &f->now, &e->image) : (f->unread = true, skip_value(c, 1));
        case TIDB: return read_extension(c, &e->commit_ts);
        default: return skip_value(c, 1);
    }
}

static bool take_fields(reading *r, cursor *c, event *e, fields *f) {
    text name;
    if (!take(c, '{')) return false;
    do {
        if (!take_text(c, &name) || name.escaped || !take(c, ':')) return false;
        int field = field_of(name.raw);
        if (field < OTHER && f->seen & 1U << field) return false;
        if (!take_field(r, c, field, e, f)) return false;
        f->seen |= 1U << field;
    } while (take(c, ','));
    return take(c, '}') && c->p == c->end;
}

/* Read a message; the event's key lies in `scratch` until the next one is read. Gives USUAL, NOT_USUAL,
 * FILTERED (a table that does not count), UNKNOWN_TABLE (then its head is set) or NO_MEMORY. */
static int read_message(reading *r, cursor c, event *e) {
    fields f;
    f.seen = f.old.seen = f.now.seen = 0;
    f.has_old = f.unread = false;
    e->of = NULL;
    if (!take_fields(r, &c, e, &f) || (f.seen & NEEDED) != NEEDED) return NOT_USUAL;
    if (!is_known(r, e, &f)) return UNKNOWN_TABLE;
    if (f.unread || f.has_old != (e->is == UPDATE) || e->commit_ts <= r->low || e->commit_ts > r->high) return NOT_USUAL;
    if (e->of->flags & LEFT_OUT) return FILTERED;
    if (!(e->of->flags & (e->is == DELETE ? GONE_KNOWN : WHOLE_KNOWN))) return UNKNOWN_TABLE;
    if (f.now.seen != (1U << e->of->keys) - 1) return NOT_USUAL;
    return make_keys(r, e, &f.now, &f.old);
}

#endif
