/* A strict reader of JSON over untrusted bytes: one bounded cursor, nothing is read before its `p` or at its `end`.
 *
 * It takes less than JSON allows and never more than the Python path's decoder: no whitespace, no surrogates written as
 * escapes but in pairs, few levels. "No" means "not usual", never "wrong": the Python path then says what it is.
 */
#ifndef TICDC_JSON_H
#define TICDC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { DEEPEST = 16 };

typedef struct {
    const uint8_t *p, *end;
} cursor;

typedef struct {
    const uint8_t *p;
    size_t len;
} span;

typedef struct {
    span raw; /* between the quotes */
    bool escaped;
} text;

static inline size_t left_of(const cursor *c) { return (size_t)(c->end - c->p); }

static inline bool is_next(const cursor *c, uint8_t byte) { return c->p < c->end && *c->p == byte; }

static inline bool take(cursor *c, uint8_t byte) {
    if (!is_next(c, byte)) return false;
    c->p++;
    return true;
}

static inline bool take_all(cursor *c, const char *word, size_t len) {
    if (left_of(c) < len || memcmp(c->p, word, len) != 0) return false;
    c->p += len;
    return true;
}

static inline bool same(span a, const void *bytes, size_t len) { return a.len == len && memcmp(a.p, bytes, len) == 0; }

#define TAKE(c, word) take_all(c, word, sizeof(word) - 1)
#define SAME(a, word) same(a, word, sizeof(word) - 1)

/* To the next quote, backslash or control character, or to the end. */
static inline void to_special(cursor *c) {
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), last = _mm_set1_epi8(0x1f);
    while (left_of(c) >= 16) {
        __m128i some = _mm_loadu_si128((const __m128i *)(const void *)c->p);
        __m128i found = _mm_or_si128(_mm_cmpeq_epi8(some, quote), _mm_cmpeq_epi8(some, slash));
        found = _mm_or_si128(found, _mm_cmpeq_epi8(_mm_min_epu8(some, last), some));
        int at = _mm_movemask_epi8(found);
        if (at != 0) {
            c->p += __builtin_ctz((unsigned)at);
            return;
        }
        c->p += 16;
    }
#endif
    while (c->p < c->end && *c->p != '"' && *c->p != '\\' && *c->p >= 0x20) c->p++;
}

static inline int hex_value(uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The code unit of a \uXXXX; the cursor stands behind the backslash. -1: it is none. */
static int32_t take_unit(cursor *c) {
    if (left_of(c) < 5 || c->p[0] != 'u') return -1;
    int32_t unit = 0;
    for (int i = 1; i < 5; i++) {
        int digit = hex_value(c->p[i]);
        if (digit < 0) return -1;
        unit = unit << 4 | digit;
    }
    c->p += 5;
    return unit;
}

/* The code point of an escape; the cursor stands behind the backslash. -1: not one, or half a pair of surrogates. */
static int32_t take_escape(cursor *c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c->p >= c->end) return -1;
    if (*c->p != 'u') {
        const char *at = *c->p == 0 ? NULL : strchr(from, *c->p);
        if (at == NULL) return -1;
        c->p++;
        return to[at - from];
    }
    int32_t high = take_unit(c);
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || !take(c, '\\')) return -1;
    int32_t low = take_unit(c);
    if (low < 0xDC00 || low > 0xDFFF) return -1;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static inline bool take_text(cursor *c, text *found) {
    if (!take(c, '"')) return false;
    found->raw.p = c->p;
    found->escaped = false;
    for (;;) {
        to_special(c);
        if (c->p >= c->end || *c->p < 0x20) return false;
        if (*c->p == '"') break;
        c->p++;
        found->escaped = true;
        if (take_escape(c) < 0) return false;
    }
    found->raw.len = (size_t)(c->p - found->raw.p);
    c->p++;
    return true;
}

static inline bool skip_digits(cursor *c) {
    const uint8_t *begin = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') c->p++;
    return c->p > begin;
}

static bool skip_number(cursor *c) {
    (void)take(c, '-');
    if (!take(c, '0') && !skip_digits(c)) return false;
    if (take(c, '.') && !skip_digits(c)) return false;
    if (is_next(c, 'e') || is_next(c, 'E')) {
        c->p++;
        if (!take(c, '+')) (void)take(c, '-');
        return skip_digits(c);
    }
    return true;
}

static bool skip_value(cursor *c, int deep);

static bool skip_members(cursor *c, int deep, uint8_t close, bool named) {
    text name;
    c->p++;
    if (take(c, close)) return true;
    do {
        if (named && !(take_text(c, &name) && take(c, ':'))) return false;
        if (!skip_value(c, deep + 1)) return false;
    } while (take(c, ','));
    return take(c, close);
}

/* Past one value of any kind. */
static bool skip_value(cursor *c, int deep) {
    text ignored;
    if (c->p >= c->end || deep > DEEPEST) return false;
    switch (*c->p) {
        case '"': return take_text(c, &ignored);
        case '{': return skip_members(c, deep, '}', true);
        case '[': return skip_members(c, deep, ']', false);
        case 't': return TAKE(c, "true");
        case 'f': return TAKE(c, "false");
        case 'n': return TAKE(c, "null");
        default: return skip_number(c);
    }
}

static inline void skip_blanks(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r')) c->p++;
}

static bool skip_spaced(cursor *c, int deep);

static bool skip_spaced_members(cursor *c, int deep, uint8_t close, bool named) {
    text name;
    c->p++;
    skip_blanks(c);
    if (take(c, close)) return true;
    do {
        skip_blanks(c);
        if (named && !take_text(c, &name)) return false;
        if (named) skip_blanks(c);
        if (named && !take(c, ':')) return false;
        if (!skip_spaced(c, deep + 1)) return false;
    } while (take(c, ','));
    return take(c, close);
}

/* Past one value, and blanks around it. */
static bool skip_spaced(cursor *c, int deep) {
    skip_blanks(c);
    bool skipped = c->p < c->end && deep <= DEEPEST;
    if (skipped && (*c->p == '{' || *c->p == '['))
        skipped = skip_spaced_members(c, deep, *c->p == '{' ? '}' : ']', *c->p == '{');
    else
        skipped = skipped && skip_value(c, deep);
    skip_blanks(c);
    return skipped;
}

/* Whether there is one value and nothing else; blanks are what JSON takes for such. */
static bool is_json(cursor *c) { return skip_spaced(c, 0) && c->p == c->end; }

/* A whole number without sign of at most 18 digits: below 2^63, as a TSO is for another thousand years. */
static inline bool take_number(cursor *c, uint64_t *number) {
    const uint8_t *begin = c->p;
    uint64_t value = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9' && c->p - begin < 19) value = value * 10 + (*c->p++ - '0');
    size_t digits = (size_t)(c->p - begin);
    *number = value;
    return digits > 0 && digits < 19 && (*begin != '0' || digits == 1);
}

/* Whether bytes are UTF-8: as Python takes them, so without surrogates and without longer forms than needed. */
static bool is_utf8(span raw) {
    cursor c = {raw.p, raw.p + raw.len};
    while (c.p < c.end) {
        uint64_t eight;
        while (left_of(&c) >= sizeof eight) {
            memcpy(&eight, c.p, sizeof eight);
            if (eight & 0x8080808080808080ULL) break;
            c.p += sizeof eight;
        }
        if (c.p == c.end) break;
        uint8_t first = *c.p;
        if (first < 0x80) {
            c.p++;
            continue;
        }
        size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4 || left_of(&c) <= more) return false;
        uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (c.p[1] < least || c.p[1] > most) return false;
        for (size_t i = 2; i <= more; i++)
            if ((c.p[i] & 0xC0) != 0x80) return false;
        c.p += more + 1;
    }
    return true;
}

static size_t put_utf8(uint8_t *to, int32_t point) {
    if (point < 0x80) return to[0] = (uint8_t)point, 1;
    if (point < 0x800) return to[0] = (uint8_t)(0xC0 | point >> 6), to[1] = (uint8_t)(0x80 | (point & 0x3F)), 2;
    if (point < 0x10000) {
        to[0] = (uint8_t)(0xE0 | point >> 12);
        to[1] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        to[2] = (uint8_t)(0x80 | (point & 0x3F));
        return 3;
    }
    to[0] = (uint8_t)(0xF0 | point >> 18);
    to[1] = (uint8_t)(0x80 | (point >> 12 & 0x3F));
    to[2] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
    to[3] = (uint8_t)(0x80 | (point & 0x3F));
    return 4;
}

/* A text without its escapes, which never makes it longer; `to` has room for `raw.len` bytes. Gives the length. */
static size_t unescaped(const text *from, uint8_t *to) {
    cursor c = {from->raw.p, from->raw.p + from->raw.len};
    size_t len = 0;
    while (c.p < c.end) {
        if (*c.p != '\\') {
            to[len++] = *c.p++;
            continue;
        }
        c.p++;
        int32_t point = take_escape(&c);
        if (point < 0) __builtin_trap(); /* `take_text` has taken it */
        len += put_utf8(to + len, point);
    }
    return len;
}

#endif
