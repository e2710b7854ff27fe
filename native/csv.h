/* Lines of a storage sink's CSV file as Canal-JSON: what `consumer.storage.csv_file` makes of them, byte by byte.
 *
 * It takes what TiCDC writes for tables without binary columns, with quotes and without a header among the lines. A line
 * that is anything else ends the call, and Python says what it is.
 */
#ifndef TICDC_CSV_H
#define TICDC_CSV_H

#include "guard.h"
#include "message.h"
#include "numbers.h"
#include "sink.h"

enum { META = 4, MOST_FIELDS = 1 << 13 };

/* How a column's fields are read; the same numbers and structures in `consumer.native.csv_lines`. */
enum { CSV_TEXT, CSV_WHOLE, CSV_REAL, CSV_ENUM, CSV_SET };

typedef struct {
    uint32_t kind, members;
    span name;             /* as JSON, with its colon */
    const uint8_t *texts;  /* of ENUM and SET: the members, one behind the other */
    const uint32_t *ends;  /* where each of them ends in `texts` */
} csv_column;

typedef struct {
    span table, database; /* what each line has to name */
    span head;            /* an event up to its type */
    span delimiter, null;
    span terminator; /* empty: CRLF or LF */
    const csv_column *columns;
    uint32_t count, meta; /* `meta`: fields before the columns; 0: 4 or 5, as a line shows */
    uint8_t quote;
} csv_table;

typedef struct {
    span raw;
    bool quoted, doubled; /* `doubled`: quotes within it stand twice */
} csv_field;

typedef struct {
    kind is;
    bool updated;
    uint64_t commit_ts;
    uint32_t meta, first; /* `first`: the number of its first line, from 0 where the call begins */
} csv_line;

/* What a call writes; the arrays have room for `most` numbers. */
typedef struct {
    uint32_t *lens, *numbers;
    uint32_t most, count;
    uint64_t at;    /* in the file: where to begin, and where the call ended */
    uint32_t lines; /* how many line ends were passed */
    const uint8_t *bytes;
    uint64_t size;
} csv_taken;

typedef struct {
    sink out;
    csv_field *fields;
    uint8_t *plain; /* a text without its doubled quotes */
    size_t room;
} csv_work;

static bool take_word(cursor *c, span word) {
    if (left_of(c) < word.len || memcmp(c->p, word.p, word.len) != 0) return false;
    c->p += word.len;
    return true;
}

static bool take_line_end(const csv_table *t, cursor *c) {
    if (t->terminator.len > 0) return take_word(c, t->terminator);
    const uint8_t *begin = c->p;
    (void)take(c, '\r');
    if (take(c, '\n')) return true;
    return c->p = begin, false;
}

static bool take_quoted(const csv_table *t, cursor *c, csv_field *f) {
    f->quoted = true;
    f->doubled = false;
    f->raw.p = ++c->p;
    for (;;) {
        const uint8_t *found = left_of(c) == 0 ? NULL : memchr(c->p, t->quote, left_of(c));
        if (found == NULL) return false;
        c->p = found + 1;
        if (!take(c, t->quote)) break;
        f->doubled = true;
    }
    f->raw.len = (size_t)(c->p - 1 - f->raw.p);
    return true;
}

static void take_bare(const csv_table *t, cursor *c, csv_field *f) {
    f->quoted = f->doubled = false;
    f->raw.p = c->p;
    for (; c->p < c->end && *c->p != t->quote; c->p++) {
        cursor ahead = *c;
        if (take_word(&ahead, t->delimiter) || take_line_end(t, &ahead)) break;
    }
    f->raw.len = (size_t)(c->p - f->raw.p);
}

/* The fields of a line; 0 where it is not usual. */
static uint32_t take_line(const csv_table *t, cursor *c, csv_field *some) {
    for (uint32_t count = 0; count < t->count + META + 1;) {
        csv_field *f = &some[count++];
        if (!is_next(c, t->quote)) take_bare(t, c, f);
        else if (!take_quoted(t, c, f)) return 0;
        if (take_line_end(t, c)) return count;
        if (!take_word(c, t->delimiter)) return 0;
    }
    return 0;
}

static inline bool is_name(const csv_field *f, span name) {
    return f->quoted && !f->doubled && f->raw.len == name.len && memcmp(f->raw.p, name.p, name.len) == 0;
}

static bool read_commit_ts(const csv_field *f, uint64_t *ts) {
    cursor c = {f->raw.p, f->raw.p + f->raw.len};
    return !f->quoted && take_number(&c, ts) && c.p == c.end && *ts > 0;
}

static bool read_op(const csv_field *f, kind *is) {
    if (!f->quoted || f->raw.len != 1) return false;
    *is = *f->raw.p == 'I' ? INSERT : *f->raw.p == 'U' ? UPDATE : DELETE;
    return *is != DELETE || *f->raw.p == 'D';
}

/* What stands before a line's columns. */
static bool read_meta(const csv_table *t, const csv_field *some, uint32_t count, csv_line *line) {
    if (count < t->count + META || (t->meta > 0 && count != t->count + t->meta)) return false;
    line->meta = count - t->count;
    line->updated = false;
    if (!read_op(&some[0], &line->is) || !is_name(&some[1], t->table) || !is_name(&some[2], t->database)) return false;
    if (!read_commit_ts(&some[3], &line->commit_ts)) return false;
    if (line->meta == META) return true;
    line->updated = SAME(some[META].raw, "true");
    return !some[META].quoted && (line->updated || SAME(some[META].raw, "false"));
}

/* A field without its doubled quotes. */
static bool plain_of(const csv_table *t, csv_work *w, const csv_field *f, span *to) {
    *to = f->raw;
    if (!f->doubled) return true;
    if (f->raw.len > w->room) {
        free(w->plain);
        w->room = 0;
        if ((w->plain = malloc(f->raw.len * 2)) == NULL) return false;
        w->room = f->raw.len * 2;
    }
    size_t len = 0;
    for (size_t i = 0; i < f->raw.len; i++) {
        w->plain[len++] = f->raw.p[i];
        if (f->raw.p[i] == t->quote) i++; /* the second one: `take_quoted` has seen both */
    }
    *to = (span){w->plain, len};
    return true;
}

static bool is_number(span value, bool real) {
    cursor c = {value.p, value.p + value.len};
    (void)take(&c, '-');
    if (take_digits(&c, real ? MOST_REAL_DIGITS : 20).len == 0) return false;
    if (real && take(&c, '.') && take_digits(&c, MOST_REAL_DIGITS).len == 0) return false;
    return c.p == c.end;
}

/* The number of a member, from 1; 0: there is none. */
static uint32_t member_number(const csv_column *of, span name) {
    for (uint32_t i = 0, begin = 0; i < of->members; begin = of->ends[i++])
        if (of->ends[i] - begin == name.len && memcmp(of->texts + begin, name.p, name.len) == 0) return i + 1;
    return 0;
}

static bool set_bits(const csv_column *of, span value, uint64_t *bits) {
    cursor c = {value.p, value.p + value.len};
    *bits = 0;
    if (value.len == 0) return true;
    do {
        span name = {c.p, 0};
        while (c.p < c.end && *c.p != ',') c.p++, name.len++;
        uint32_t number = member_number(of, name);
        if (number == 0 || number > 64 || *bits >> (number - 1) & 1) return false;
        *bits |= 1ULL << (number - 1);
    } while (take(&c, ','));
    return true;
}

static bool put_csv_member(sink *to, const csv_column *of, span value) {
    uint64_t number = 0;
    if (of->kind == CSV_SET && !set_bits(of, value, &number)) return false;
    if (of->kind == CSV_ENUM && (number = member_number(of, value)) == 0 && value.len > 0) return false;
    if (!reserve(to, 24)) return false;
    put_byte(to, '"');
    put_decimal(to, number);
    put_byte(to, '"');
    return true;
}

static bool put_csv_value(const csv_table *t, csv_work *w, const csv_column *of, const csv_field *f) {
    span value;
    if (!f->quoted && same(f->raw, t->null.p, t->null.len)) return reserve(&w->out, 4) && (PUT(&w->out, "null"), true);
    if (of->kind == CSV_WHOLE || of->kind == CSV_REAL)
        return !f->quoted && is_number(f->raw, of->kind == CSV_REAL) && put_json_text(&w->out, f->raw);
    if (!f->quoted || !plain_of(t, w, f, &value)) return false;
    return of->kind == CSV_TEXT ? put_json_text(&w->out, value) : put_csv_member(&w->out, of, value);
}

static bool put_csv_image(const csv_table *t, csv_work *w, const csv_field *some) {
    for (uint32_t i = 0; i < t->count; i++) {
        if (!reserve(&w->out, t->columns[i].name.len + 1)) return false;
        put_byte(&w->out, i == 0 ? '{' : ',');
        put_span(&w->out, t->columns[i].name);
        if (!put_csv_value(t, w, &t->columns[i], &some[i])) return false;
    }
    return reserve(&w->out, 1) && (put_byte(&w->out, '}'), true);
}

static bool put_head(const csv_table *t, csv_work *w, kind is) {
    if (!reserve(&w->out, t->head.len + 40)) return false;
    put_span(&w->out, t->head);
    PUT(&w->out, ",\"type\":\"");
    if (is == INSERT) PUT(&w->out, "INSERT");
    else if (is == UPDATE) PUT(&w->out, "UPDATE");
    else PUT(&w->out, "DELETE");
    PUT(&w->out, "\",\"old\":");
    return true;
}

static bool put_tail(csv_work *w, uint64_t commit_ts, bool only_new) {
    if (!reserve(&w->out, 80)) return false;
    PUT(&w->out, "],\"_tidb\":{\"commitTs\":");
    put_decimal(&w->out, commit_ts);
    if (only_new) PUT(&w->out, ",\"onlyNew\":true");
    PUT(&w->out, "}}");
    return true;
}

/* An UPDATE that came as a line of the row before it, whose fields are read, and one of the row after it. */
static bool put_update(const csv_table *t, csv_work *w, cursor *c, csv_line *line) {
    csv_line second;
    if (line->is != DELETE || !put_head(t, w, UPDATE) || !reserve(&w->out, 1)) return false;
    put_byte(&w->out, '[');
    if (!put_csv_image(t, w, &w->fields[line->meta])) return false;
    uint32_t count = take_line(t, c, w->fields);
    if (!read_meta(t, w->fields, count, &second)) return false;
    if (!second.updated || second.is != INSERT || second.commit_ts != line->commit_ts) return false;
    if (!reserve(&w->out, 11)) return false;
    PUT(&w->out, "],\"data\":[");
    return put_csv_image(t, w, &w->fields[second.meta]) && put_tail(w, line->commit_ts, false);
}

static bool put_single(const csv_table *t, csv_work *w, const csv_line *line) {
    if (!put_head(t, w, line->is)) return false;
    if (line->is == UPDATE) PUT(&w->out, "[{}]");
    else PUT(&w->out, "null");
    PUT(&w->out, ",\"data\":[");
    return put_csv_image(t, w, &w->fields[line->meta]) && put_tail(w, line->commit_ts, line->is == UPDATE);
}

static uint32_t line_ends(const uint8_t *from, const uint8_t *to) {
    uint32_t count = 0;
    for (const uint8_t *at = from; (at = memchr(at, '\n', (size_t)(to - at))) != NULL; at++) count++;
    return count;
}

/* Take lines up to the first that is not usual. What was begun of that one is not counted. */
static APART int take_csv(const csv_table *t, csv_work *w, const uint8_t *file, uint64_t len, csv_taken *taken) {
    cursor c = {file + taken->at, file + len};
    taken->count = taken->lines = 0;
    w->out.len = 0;
    while (c.p < c.end && taken->count < taken->most && w->out.len < LARGEST_OUT) {
        const uint8_t *begin = c.p, *last = c.p;
        size_t before = w->out.len;
        csv_line line;
        uint32_t count = take_line(t, &c, w->fields);
#ifdef CORE_FAULT /* of the tests: a line of this length ends like a wrong address would */
        if (c.p - begin == CORE_FAULT) *(volatile uint8_t *)(uintptr_t)CORE_FAULT = 0;
#endif
        bool taken_whole = count > 0 && read_meta(t, w->fields, count, &line);
        if (taken_whole && line.updated) last = c.p;
        if (taken_whole) taken_whole = line.updated ? put_update(t, w, &c, &line) : put_single(t, w, &line);
        if (!taken_whole || w->out.len - before > UINT32_MAX) {
            w->out.len = before;
            return NOT_USUAL;
        }
        taken->numbers[taken->count] = taken->lines + line_ends(begin, last);
        taken->lens[taken->count++] = (uint32_t)(w->out.len - before);
        taken->lines += line_ends(begin, c.p);
        taken->at = (uint64_t)(c.p - file);
    }
    return USUAL;
}

static void free_work(csv_work *w) {
    if (w == NULL) return;
    free(w->out.bytes);
    free(w->fields);
    free(w->plain);
    free(w);
}

static csv_work *new_work(uint32_t columns) {
    csv_work *made = calloc(1, sizeof *made);
    if (made != NULL && columns <= MOST_FIELDS) made->fields = calloc((size_t)columns + META + 1, sizeof *made->fields);
    if (made != NULL && made->fields != NULL) return made;
    return free_work(made), NULL;
}

#endif
