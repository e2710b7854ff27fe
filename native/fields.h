/* A value as the field of a line that LOAD DATA or COPY reads: what the encoders of `sinks` make of it.
 *
 * A rule takes less than its Python function and never more: "no" means that Python says what becomes of the value.
 */
#ifndef TICDC_FIELDS_H
#define TICDC_FIELDS_H

#include "calendar.h"
#include "sink.h"

/* The same numbers as in `sinks.rows.field_rules`. */
enum {
    SKIPPED, TEXT, JSON, WHOLE, UNSIGNED, DECIMAL, YEAR, FLOAT, FLOAT_TEXT, DOUBLE, DAY, MOMENT, SPAN, HEX, BITS, MEMBER,
    MASK, NAME, NAMES, UUID, BOOLEAN
};
enum { NOT_NULL = 1, NO_NUL = 2, NO_BLANK_END = 4, KEEPS_BLANKS = 8, ONE_SPELLING = 16, CALENDAR = 32, MARKED = 64 };
#define UNLIMITED (-1)

/* How a column's values become fields; the same structure in `consumer.native`. */
typedef struct {
    uint32_t kind, flags;
    int64_t size;           /* of TEXT characters, HEX bytes, BITS bits, MEMBER and what follows it members */
    int64_t digits;         /* behind the point */
    const uint8_t *members; /* of NAME and NAMES: their fields, one behind the other */
    const uint32_t *ends;   /* where each of them ends in `members` */
    const zone_part *zone;  /* NULL: times stay as they are */
    uint64_t zone_parts;
} rule;

static size_t characters(span value) {
    size_t count = 0;
    for (size_t i = 0; i < value.len; i++) count += (value.p[i] & 0xC0) != 0x80;
    return count;
}

static bool fits_text(const rule *of, span value) {
    bool blank = value.len > 0 && value.p[value.len - 1] == ' ';
    if (blank && of->flags & NO_BLANK_END) return false;
    if (of->flags & NO_NUL && value.len > 0 && memchr(value.p, 0, value.len) != NULL) return false;
    if (of->size == UNLIMITED || (of->flags & KEEPS_BLANKS && !blank)) return true;
    return value.len <= (uint64_t)of->size || characters(value) <= (uint64_t)of->size;
}

static void put_escaped(sink *to, span value) {
    for (size_t i = 0; i < value.len; i++) {
        uint8_t byte = value.p[i], letter = 0;
        if (byte == '\\') letter = '\\';
        if (byte == '\t') letter = 't';
        if (byte == '\n') letter = 'n';
        if (byte == '\r') letter = 'r';
        if (byte == 0) letter = '0';
        if (letter != 0) put_byte(to, '\\');
        put_byte(to, letter != 0 ? letter : byte);
    }
}

static bool put_text(sink *to, const rule *of, span value, bool plain) {
    if (!is_utf8(value) || !fits_text(of, value)) return false;
    if (plain)
        put_span(to, value);
    else
        put_escaped(to, value);
    return true;
}

/* JSON within a text: blanks count there. */
static bool put_json(sink *to, const rule *of, span value, bool plain) {
    cursor c = {value.p, value.p + value.len};
    return is_json(&c) && put_text(to, of, value, plain);
}

/* Bytes travel as one code point U+0000 to U+00FF each. */
static bool put_hex(sink *to, const rule *of, span value) {
    static const uint8_t digits[] = "0123456789abcdef";
    int64_t count = 0;
    if (of->flags & MARKED) put_span(to, (span){(const uint8_t *)"\\\\x", 3});
    for (size_t i = 0; i < value.len; i++, count++) {
        unsigned byte = value.p[i];
        if (byte >= 0x80) {
            if ((byte != 0xC2 && byte != 0xC3) || i + 1 == value.len || (value.p[i + 1] & 0xC0) != 0x80) return false;
            byte = (byte & 3) << 6 | (value.p[++i] & 0x3FU);
        }
        put_byte(to, digits[byte >> 4]);
        put_byte(to, digits[byte & 0xF]);
    }
    return of->size == UNLIMITED || count == of->size;
}

static inline bool holds(uint64_t number, int64_t bits) { return bits >= 64 || number >> bits == 0; }

static bool put_bits(sink *to, const rule *of, span value) {
    uint64_t bits;
    if (!read_unsigned(value, &bits) || of->size < 1 || of->size > 64 || !holds(bits, of->size)) return false;
    for (int64_t bit = of->size; bit-- > 0;) put_byte(to, bits >> bit & 1 ? '1' : '0');
    return true;
}

static span member_of(const rule *of, uint64_t at) {
    uint32_t begin = at == 0 ? 0 : of->ends[at - 1];
    return (span){of->members + begin, of->ends[at] - begin};
}

static bool put_names(sink *to, const rule *of, uint64_t set) {
    bool first = true;
    for (uint64_t bit = 0; bit < 64 && set >> bit != 0; bit++) {
        if (!(set >> bit & 1)) continue;
        span name = member_of(of, bit);
        if (!reserve(to, name.len + 1)) return false;
        if (!first) put_byte(to, ',');
        put_span(to, name);
        first = false;
    }
    return true;
}

/* ENUM and SET, which come as numbers; where names come, Python takes them. */
static bool put_member(sink *to, const rule *of, span value) {
    uint64_t number;
    bool set = of->kind == MASK || of->kind == NAMES;
    if (!read_unsigned(value, &number)) return false;
    if (set ? !holds(number, of->size) : number > (uint64_t)of->size) return false;
    if (of->kind == NAMES) return put_names(to, of, number);
    if (of->kind != NAME) return put_decimal(to, number), true;
    if (number == 0) return true;
    span name = member_of(of, number - 1);
    return reserve(to, name.len) && (put_span(to, name), true);
}

static bool put_year(sink *to, span value) {
    if (SAME(value, "0")) value = (span){(const uint8_t *)"0000", 4};
    uint64_t year;
    if (value.len != 4 || !read_unsigned(value, &year)) return false;
    return put_span(to, value), true;
}

static bool put_whole(sink *to, const rule *of, span value) {
    if (of->flags & ONE_SPELLING && SAME(value, "0000")) value.len = 1; /* how a dump spells the year 0 */
    if (!(of->flags & ONE_SPELLING ? is_plain_whole(value) : is_whole(value))) return false;
    return put_span(to, value), true;
}

static bool is_decimal(const rule *of, span value) {
    decimal n;
    if (!read_number(value, MOST_DIGITS, false, &n) || (of->flags & ONE_SPELLING && is_zero_led(value))) return false;
    return true;
}

static bool put_moment(sink *to, const rule *of, span value) {
    moment m;
    if (!read_moment(value, of->digits, &m)) return false;
    if (of->flags & CALENDAR && !is_real_moment(&m)) return false;
    if (of->zone == NULL) {
        put_span(to, value);
    } else {
        if (!m.has_time || !is_real_moment(&m) || !put_utc(to->bytes + to->len, m, of->zone, of->zone_parts)) return false;
        to->len += MOMENT_LEN;
        put_span(to, (span){value.p + MOMENT_LEN, value.len - MOMENT_LEN});
    }
    if (of->flags & MARKED) put_span(to, (span){(const uint8_t *)"+00", 3});
    return true;
}

/* A date; a time of the day has to be midnight, and stays as it is. */
static bool put_day(sink *to, const rule *of, span value) {
    moment m;
    if (!read_moment(value, 0, &m) || m.hour + m.minute + m.second != 0) return false;
    if (of->flags & CALENDAR && (m.has_time || !is_real_moment(&m))) return false;
    return put_span(to, value), true;
}

static bool is_uuid(span value) {
    if (value.len != 36) return false;
    for (size_t i = 0; i < 36; i++) {
        uint8_t byte = value.p[i];
        if (i == 8 || i == 13 || i == 18 || i == 23 ? byte != '-' : !is_digit(byte) && (byte < 'a' || byte > 'f')) return false;
    }
    return true;
}

static bool is_field(const rule *of, span value) {
    uint64_t ignored;
    if (of->digits != UNLIMITED && of->kind <= DOUBLE && scale_of(value) > of->digits) return false;
    switch (of->kind) {
        case UNSIGNED: return read_unsigned(value, &ignored);
        case DECIMAL: return is_decimal(of, value);
        case FLOAT_TEXT: return is_finite_real(value) && float_digits(value) <= 9;
        case DOUBLE: return is_exact_double(value);
        case SPAN: return is_time(value, of->digits);
        case UUID: return is_uuid(value);
        case BOOLEAN: return SAME(value, "0") || SAME(value, "1");
        default: return false;
    }
}

static bool put_other(sink *to, const rule *of, span value) {
    if (of->kind == FLOAT) {
        if (of->digits != UNLIMITED && scale_of(value) > of->digits) return false;
        size_t len = put_float(to->bytes + to->len, value);
        to->len += len;
        return len > 0;
    }
    return is_field(of, value) && (put_span(to, value), true);
}

/* The field of a value. `plain`: it holds nothing to escape. False: Python has to say, or there is no memory. */
static bool put_field(sink *to, const rule *of, span value, bool plain) {
    if (!reserve(to, 2 * value.len + 80)) return false;
    switch (of->kind) {
        case TEXT: return put_text(to, of, value, plain);
        case JSON: return put_json(to, of, value, plain);
        case WHOLE: return put_whole(to, of, value);
        case YEAR: return put_year(to, value);
        case DAY: return put_day(to, of, value);
        case MOMENT: return put_moment(to, of, value);
        case HEX: return put_hex(to, of, value);
        case BITS: return put_bits(to, of, value);
        case MEMBER:
        case MASK:
        case NAME:
        case NAMES: return put_member(to, of, value);
        default: return put_other(to, of, value);
    }
}

#endif
