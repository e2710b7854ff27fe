/* Row events of TiCDC's Simple protocol in JSON as Canal-JSON: what `consumer.formats.simple` makes of them, bytewise.
 *
 * A row is read with the columns of the schema that it names, which Python has learned. A message that is anything else
 * ends the call, and Python says what it is.
 */
#ifndef TICDC_SIMPLE_H
#define TICDC_SIMPLE_H

#include "batch.h"
#include "calendar.h"
#include "guard.h"
#include "message.h"
#include "names.h"
#include "sink.h"

enum { MOST_SCHEMA_COLUMNS = 1 << 13, LONGEST_IDENTITY = 4096 };

/* What becomes of a column's values; the same numbers in `consumer.native.simple_rows`. */
enum { AS_SENT, FROM_BASE64, FROM_MOMENT };

typedef struct {
    span heads[3]; /* of INSERT, UPDATE, DELETE: an event up to its images; all spans point into `owned` */
    span zone;     /* of moments, as JSON has it */
    span *names; /* in the order of their bytes */
    uint8_t *kinds;
    uint32_t *seen, turn; /* `seen`: in which turn a column was met last */
    uint32_t columns;
    bool converts;
    uint8_t *owned;
} schema;

typedef struct {
    uint64_t seed;
    name_table names; /* of schemas: see `identity_of` */
    schema **all;
    sink out, scratch;
    uint8_t identity[LONGEST_IDENTITY];
} schemas;

/* What a call writes; the arrays have room for as many numbers as there are messages. */
typedef struct {
    uint32_t *lens;
    int64_t *offsets; /* only where messages lie as librdkafka has them */
    uint64_t count;
    const uint8_t *bytes;
    uint64_t size;
} translated;

typedef struct {
    span database, table, data, old; /* images are empty where there are none */
    uint64_t commit_ts, schema_version, version;
    kind is;
    uint32_t seen;
} simple_event;

enum { S_VERSION, S_DATABASE, S_TABLE, S_TYPE, S_COMMIT, S_SCHEMA, S_DATA, S_OLD, S_SKIPPED, S_OTHER };
#define S_NEEDED (1U << S_VERSION | 1U << S_DATABASE | 1U << S_TABLE | 1U << S_TYPE | 1U << S_COMMIT | 1U << S_SCHEMA)

static int simple_field(span name) {
    switch (name.len) {
        case 3: return SAME(name, "old") ? S_OLD : S_OTHER;
        case 4: return SAME(name, "type") ? S_TYPE : SAME(name, "data") ? S_DATA : S_OTHER;
        case 5: return SAME(name, "table") ? S_TABLE : S_OTHER;
        case 7: return SAME(name, "version") ? S_VERSION : SAME(name, "tableID") || SAME(name, "buildTs") ? S_SKIPPED : S_OTHER;
        case 8: return SAME(name, "database") ? S_DATABASE : SAME(name, "commitTs") ? S_COMMIT : S_OTHER;
        case 13: return SAME(name, "schemaVersion") ? S_SCHEMA : S_OTHER;
        default: return S_OTHER;
    }
}

static bool take_plain_text(cursor *c, span *raw) {
    text found;
    if (!take_text(c, &found) || found.escaped || !is_utf8(found.raw)) return false;
    return *raw = found.raw, true;
}

static bool take_simple_field(cursor *c, int field, simple_event *e) {
    switch (field) {
        case S_VERSION: return take_number(c, &e->version);
        case S_DATABASE: return take_plain_text(c, &e->database);
        case S_TABLE: return take_plain_text(c, &e->table);
        case S_TYPE: return take_kind(c, &e->is);
        case S_COMMIT: return take_number(c, &e->commit_ts);
        case S_SCHEMA: return take_number(c, &e->schema_version);
        case S_DATA: return is_next(c, '{') && take_raw(c, &e->data);
        case S_OLD: return is_next(c, '{') && take_raw(c, &e->old);
        case S_SKIPPED: return skip_value(c, 1);
        default: return false;
    }
}

static bool read_simple(cursor c, simple_event *e) {
    text name;
    memset(e, 0, sizeof *e);
    if (!take(&c, '{')) return false;
    do {
        if (!take_text(&c, &name) || name.escaped || !take(&c, ':')) return false;
        int field = simple_field(name.raw);
        if (field < S_SKIPPED && e->seen & 1U << field) return false;
        if (!take_simple_field(&c, field, e)) return false;
        e->seen |= 1U << field;
    } while (take(&c, ','));
    if (!take(&c, '}') || c.p != c.end || (e->seen & S_NEEDED) != S_NEEDED || e->version != 1) return false;
    bool wants_new = e->is != DELETE, wants_old = e->is != INSERT;
    return e->commit_ts > 0 && (!wants_new || e->data.len > 0) && (!wants_old || e->old.len > 0);
}

/* How a row names its schema: two texts and a number. Without room for it: nothing. */
static span identity_of(schemas *s, span database, span table_name, uint64_t version) {
    if (database.len + table_name.len + sizeof version + 1 > sizeof s->identity) return (span){s->identity, 0};
    uint8_t *at = s->identity;
    if (database.len > 0) memcpy(at, database.p, database.len);
    at += database.len;
    *at++ = 0xFF; /* in no UTF-8 */
    if (table_name.len > 0) memcpy(at, table_name.p, table_name.len);
    at += table_name.len;
    memcpy(at, &version, sizeof version);
    return (span){s->identity, (size_t)(at - s->identity) + sizeof version};
}

static int order_of(span a, span b) {
    size_t shorter = a.len < b.len ? a.len : b.len;
    int by = shorter == 0 ? 0 : memcmp(a.p, b.p, shorter);
    return by != 0 ? by : (a.len > b.len) - (a.len < b.len);
}

/* The column of a name, mostly the `likely` one: TiCDC sends them in the order of their names, in which they lie here.
 * `columns`: there is none. */
static uint32_t column_of(const schema *of, span name, uint32_t likely) {
    if (likely < of->columns && same(of->names[likely], name.p, name.len)) return likely;
    uint32_t low = 0, high = of->columns;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (order_of(of->names[middle], name) < 0) low = middle + 1;
        else high = middle;
    }
    return low < of->columns && same(of->names[low], name.p, name.len) ? low : of->columns;
}

static int base64_digit(uint8_t byte) {
    if (byte >= 'A' && byte <= 'Z') return byte - 'A';
    if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return byte - '0' + 52;
    return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

/* Bytes that came in base64, each as the code point of its number. */
static bool put_latin1(schemas *s, span value) {
    s->scratch.len = 0;
    if (value.len % 4 != 0 || !reserve(&s->scratch, 2 * value.len)) return false;
    for (size_t i = 0; i < value.len; i += 4) {
        uint32_t bits = 0;
        size_t digits = 4;
        if (i + 4 == value.len && value.p[i + 3] == '=') digits = value.p[i + 2] == '=' ? 2 : 3;
        for (size_t j = 0; j < digits; j++) {
            int digit = base64_digit(value.p[i + j]);
            if (digit < 0) return false;
            bits |= (uint32_t)digit << (18 - 6 * j);
        }
        for (size_t j = 0; j + 1 < digits; j++) {
            uint8_t byte = (uint8_t)(bits >> (16 - 8 * j));
            if (byte >= 0x80) put_byte(&s->scratch, (uint8_t)(0xC0 | byte >> 6)), byte = (uint8_t)(0x80 | (byte & 0x3F));
            put_byte(&s->scratch, byte);
        }
    }
    return put_json_text(&s->out, (span){s->scratch.bytes, s->scratch.len});
}

/* A TIMESTAMP of the zone in which it is wanted. */
static bool put_zoned(schemas *s, cursor *c, const schema *of) {
    moment m;
    span value;
    if (!TAKE(c, "{\"location\":\"") || !take_all(c, (const char *)of->zone.p, of->zone.len)) return false;
    if (!TAKE(c, "\",\"value\":") || !take_plain_text(c, &value) || !take(c, '}')) return false;
    if (!read_moment(value, FINEST, &m) || !m.has_time || !is_real_moment(&m)) return false;
    return put_json_text(&s->out, value);
}

static bool put_sent_text(schemas *s, const text *found) {
    if (!is_utf8(found->raw)) return false;
    if (!found->escaped) return put_json_text(&s->out, found->raw);
    s->scratch.len = 0;
    if (!reserve(&s->scratch, found->raw.len)) return false;
    return put_json_text(&s->out, (span){s->scratch.bytes, unescaped(found, s->scratch.bytes)});
}

/* A column's value as it is wanted. */
static bool put_converted(schemas *s, cursor *c, const schema *of, uint32_t column) {
    text found;
    if (TAKE(c, "null")) return reserve(&s->out, 4) && (PUT(&s->out, "null"), true);
    if (of->kinds[column] == FROM_MOMENT) return put_zoned(s, c, of);
    if (!take_text(c, &found)) return false;
    if (of->kinds[column] == AS_SENT) return put_sent_text(s, &found);
    return !found.escaped && put_latin1(s, found.raw);
}

static bool put_members(schemas *s, cursor *c, schema *of) {
    text name;
    uint32_t column = 0;
    of->turn++;
    for (bool first = true; first || take(c, ','); first = false) {
        if (!take_text(c, &name) || name.escaped || !take(c, ':')) return false;
        column = column_of(of, name.raw, column);
        if (column == of->columns || of->seen[column] == of->turn || !reserve(&s->out, name.raw.len + 4)) return false;
        of->seen[column] = of->turn;
        if (!first) put_byte(&s->out, ',');
        put_byte(&s->out, '"');
        put_span(&s->out, name.raw);
        PUT(&s->out, "\":");
        if (!put_converted(s, c, of, column)) return false;
        column++;
    }
    return true;
}

/* Whether an image holds texts of known columns only. */
static bool is_as_known(cursor *c, const schema *of) {
    text found;
    uint32_t column = 0;
    do {
        if (!take_text(c, &found) || found.escaped || !take(c, ':')) return false;
        column = column_of(of, found.raw, column);
        if (column == of->columns) return false;
        if (!TAKE(c, "null") && (!take_text(c, &found) || !is_utf8(found.raw))) return false;
        column++;
    } while (take(c, ','));
    return true;
}

static bool put_simple_image(schemas *s, schema *of, span image) {
    cursor c = {image.p, image.p + image.len};
    if (!take(&c, '{') || !reserve(&s->out, image.len + 2)) return false;
    if (is_next(&c, '}')) return PUT(&s->out, "{}"), true;
    if (!of->converts) {
        put_span(&s->out, image);
        return is_as_known(&c, of) && take(&c, '}') && c.p == c.end;
    }
    put_byte(&s->out, '{');
    if (!put_members(s, &c, of) || !take(&c, '}') || c.p != c.end || !reserve(&s->out, 1)) return false;
    return put_byte(&s->out, '}'), true;
}

static bool put_event(schemas *s, schema *of, const simple_event *e) {
    if (!reserve(&s->out, of->heads[e->is].len + 32)) return false;
    put_span(&s->out, of->heads[e->is]);
    PUT(&s->out, ",\"old\":");
    if (e->is == UPDATE) {
        put_byte(&s->out, '[');
        if (!put_simple_image(s, of, e->old) || !reserve(&s->out, 16)) return false;
        put_byte(&s->out, ']');
    } else {
        PUT(&s->out, "null");
    }
    PUT(&s->out, ",\"data\":[");
    if (!put_simple_image(s, of, e->is == DELETE ? e->old : e->data) || !reserve(&s->out, 80)) return false;
    PUT(&s->out, "],\"_tidb\":{\"commitTs\":");
    put_decimal(&s->out, e->commit_ts);
    PUT(&s->out, "}}");
    return true;
}

static bool translate(schemas *s, cursor c) {
    simple_event e;
    if (!read_simple(c, &e)) return false;
    int64_t number = known_number(&s->names, identity_of(s, e.database, e.table, e.schema_version), s->seed);
    return number >= 0 && put_event(s, s->all[number], &e);
}

/* Translate messages up to the first that is not usual, or until much is written. */
static APART int take_simple(schemas *s, const batch *in, translated *to) {
    const uint8_t *at = in->bytes;
    s->out.len = 0;
    for (to->count = 0; to->count < in->count && s->out.len < LARGEST_OUT; to->count++) {
        span message = message_at(in, to->count, at);
        size_t before = s->out.len;
#ifdef CORE_FAULT /* of the tests: a message of this length ends like a wrong address would */
        if (message.len == CORE_FAULT) *(volatile uint8_t *)(uintptr_t)message.len = 0;
#endif
        bool unread = message.p == NULL || message.len > in->largest;
        if (unread || !translate(s, (cursor){message.p, message.p + message.len}) || s->out.len - before > UINT32_MAX) {
            s->out.len = before;
            return NOT_USUAL;
        }
        to->lens[to->count] = (uint32_t)(s->out.len - before);
        if (in->messages != NULL) to->offsets[to->count] = in->messages[to->count]->offset;
        else at += message.len;
    }
    return USUAL;
}

static void free_schema(schema *one) {
    if (one == NULL) return;
    free(one->names);
    free(one->kinds);
    free(one->seen);
    free(one->owned);
    free(one);
}

static void free_schemas(schemas *s) {
    if (s == NULL) return;
    for (uint32_t i = 0; i < s->names.count; i++) free_schema(s->all[i]);
    free_names(&s->names);
    free(s->all);
    free(s->out.bytes);
    free(s->scratch.bytes);
    free(s);
}

enum { S_TEXTS = 6 }; /* of a schema, before its columns: database, table, three heads, zone */

/* The schema of some texts, which follow one another in `bytes`. */
static schema *made_schema(const uint8_t *bytes, const uint32_t *lens, const uint8_t *kinds, uint32_t columns) {
    size_t total = 0;
    for (uint32_t i = 0; i < columns + S_TEXTS; i++) total += lens[i];
    schema *one = calloc(1, sizeof *one);
    if (one == NULL) return NULL;
    one->columns = columns;
    one->names = calloc((size_t)columns + 1, sizeof *one->names);
    one->seen = calloc((size_t)columns + 1, sizeof *one->seen);
    one->kinds = malloc((size_t)columns + 1);
    one->owned = malloc(total + LONGEST_IDENTITY);
    if (!one->names || !one->seen || !one->kinds || !one->owned) return free_schema(one), NULL;
    memcpy(one->owned, bytes, total);
    const uint8_t *at = one->owned;
    for (uint32_t i = 0; i < columns + S_TEXTS; at += lens[i++]) {
        span found = {at, lens[i]};
        if (i >= 2 && i < 5) one->heads[i - 2] = found;
        if (i == 5) one->zone = found;
        if (i >= S_TEXTS) one->names[i - S_TEXTS] = found;
    }
    for (uint32_t i = 0; i < columns; i++) {
        one->kinds[i] = kinds[i];
        one->converts = one->converts || kinds[i] != AS_SENT;
    }
    return one;
}

/* Make a schema known. 1: done, 0: there is no room for it, -1: no memory. */
static int learn_schema(schemas *s, const uint8_t *bytes, const uint32_t *lens, const uint8_t *kinds, uint32_t columns,
                        uint64_t version) {
    span database = {bytes, lens[0]}, named = {bytes + lens[0], lens[1]};
    span identity = identity_of(s, database, named, version);
    if (identity.len == 0 || columns > MOST_SCHEMA_COLUMNS || s->names.count >= MOST_TABLES) return 0;
    if (known_number(&s->names, identity, s->seed) >= 0) return 1;
    schema **all = realloc(s->all, ((size_t)s->names.count + 1) * sizeof(schema *));
    if (all == NULL) return NO_MEMORY;
    s->all = all;
    schema *one = made_schema(bytes, lens, kinds, columns);
    if (one == NULL) return NO_MEMORY;
    size_t total = 0;
    for (uint32_t i = 0; i < columns + S_TEXTS; i++) total += lens[i];
    memcpy(one->owned + total, identity.p, identity.len);
    int64_t number = number_of(&s->names, (span){one->owned + total, identity.len}, s->seed);
    if (number < 0) return free_schema(one), NO_MEMORY;
    s->all[number] = one;
    return 1;
}

#endif
