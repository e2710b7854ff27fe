/* Numbers in values, after the grammars of `sinks.rows.plain_values`: bounded in length, ASCII digits only. */
#ifndef TICDC_NUMBERS_H
#define TICDC_NUMBERS_H

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

enum { MOST_DIGITS = 65, MOST_REAL_DIGITS = 400, LONGEST_REAL = 832, SAFE_DIGITS = 15, DOUBLE_DIGITS = 17, SHORT_RANGE = 290 };

#define TOO_LARGE_A_FLOAT 0x1.ffffffp127 /* halfway from the largest 32-bit float to the next power of two */

static inline bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static span take_digits(cursor *c, size_t most) {
    span found = {c->p, 0};
    while (c->p < c->end && is_digit(*c->p) && found.len < most) c->p++, found.len++;
    return found;
}

static bool is_whole(span value) {
    cursor c = {value.p, value.p + value.len};
    (void)take(&c, '-');
    return take_digits(&c, MOST_DIGITS).len > 0 && c.p == c.end;
}

/* `0`, or without a zero in front: as upstream spells them. */
static bool is_plain_whole(span value) {
    if (SAME(value, "0")) return true;
    cursor c = {value.p, value.p + value.len};
    (void)take(&c, '-');
    return !is_next(&c, '0') && take_digits(&c, MOST_DIGITS).len > 0 && c.p == c.end;
}

/* At most 20 digits; false too for what is too large for 64 bits. */
static bool read_unsigned(span value, uint64_t *number) {
    cursor c = {value.p, value.p + value.len};
    span digits = take_digits(&c, 20);
    *number = 0;
    for (size_t i = 0; i < digits.len; i++)
        if (__builtin_mul_overflow(*number, 10U, number) || __builtin_add_overflow(*number, digits.p[i] - '0', number))
            return false;
    return digits.len > 0 && c.p == c.end;
}

typedef struct {
    span whole, fraction;
    bool negative, has_exponent;
    int32_t exponent;
} decimal;

static bool take_exponent(cursor *c, decimal *n) {
    if (!is_next(c, 'e') && !is_next(c, 'E')) return true;
    c->p++;
    bool negative = is_next(c, '-');
    if (!negative) (void)take(c, '+');
    else c->p++;
    span digits = take_digits(c, 4);
    for (size_t i = 0; i < digits.len; i++) n->exponent = n->exponent * 10 + (digits.p[i] - '0');
    n->exponent = negative ? -n->exponent : n->exponent;
    n->has_exponent = true;
    return digits.len > 0;
}

/* A number with or without a point; `most` digits on either side of it. An exponent only where `real`. */
static bool read_number(span value, size_t most, bool real, decimal *n) {
    cursor c = {value.p, value.p + value.len};
    n->negative = take(&c, '-');
    if (real && !n->negative) (void)take(&c, '+');
    n->whole = take_digits(&c, most);
    n->fraction = (span){c.p, 0};
    if (take(&c, '.')) n->fraction = take_digits(&c, most);
    if (n->whole.len + n->fraction.len == 0) return false;
    n->has_exponent = false;
    n->exponent = 0;
    return (!real || take_exponent(&c, n)) && c.p == c.end;
}

/* How many characters stand behind the first point, zeros at the end apart: digits only where the number has no exponent. */
static int64_t scale_of(span value) {
    const uint8_t *point = value.len == 0 ? NULL : memchr(value.p, '.', value.len), *end = value.p + value.len;
    if (point == NULL) return 0;
    while (end > point + 1 && end[-1] == '0') end--;
    return end - point - 1;
}

static bool is_zero_led(span value) { /* more digits than one before the point, the first of them a zero */
    while (value.len > 0 && *value.p == '-') value.p++, value.len--;
    return value.len > 1 && value.p[0] == '0' && value.p[1] != '.';
}

/* A number's digits without zeros around them; it is 0.DIGITS times ten to the power of `point`. */
typedef struct {
    uint8_t digits[DOUBLE_DIGITS + 1];
    size_t count;
    int32_t point;
} decimal_digits;

/* False where there are more digits than any double needs. */
static bool significant(const decimal *n, decimal_digits *to) {
    size_t total = n->whole.len + n->fraction.len, first = total, last = 0;
    for (size_t i = 0; i < total; i++) {
        uint8_t digit = i < n->whole.len ? n->whole.p[i] : n->fraction.p[i - n->whole.len];
        if (digit == '0') continue;
        first = i < first ? i : first;
        last = i;
    }
    to->count = first == total ? 0 : last - first + 1;
    to->point = first == total ? 0 : (int32_t)n->whole.len - (int32_t)first + n->exponent;
    if (to->count > DOUBLE_DIGITS) return false;
    for (size_t i = 0; i < to->count; i++) {
        size_t at = first + i;
        to->digits[i] = at < n->whole.len ? n->whole.p[at] : n->fraction.p[at - n->whole.len];
    }
    return true;
}

/* A text that `read_number` took. False where the locale would have another point. */
static bool to_double(span value, double *found) {
    char spelled[LONGEST_REAL];
    if (value.len >= sizeof spelled || localeconv()->decimal_point[0] != '.') return false;
    memcpy(spelled, value.p, value.len);
    spelled[value.len] = 0;
    *found = strtod(spelled, NULL);
    return isfinite(*found);
}

/* The fewest digits that give a double back; of those with as many, the nearest. */
static bool shortest(double value, decimal_digits *to) {
    char spelled[64];
    for (int count = SAFE_DIGITS; count <= DOUBLE_DIGITS; count++) {
        if (snprintf(spelled, sizeof spelled, "%.*e", count - 1, fabs(value)) <= 0) return false;
        if (count < DOUBLE_DIGITS && strtod(spelled, NULL) != fabs(value)) continue;
        to->count = (size_t)count;
        to->digits[0] = (uint8_t)spelled[0];
        for (int i = 1; i < count; i++) to->digits[i] = (uint8_t)spelled[i + 1];
        to->point = atoi(strchr(spelled, 'e') + 1) + 1;
        while (to->count > 0 && to->digits[to->count - 1] == '0') to->count--;
        return true;
    }
    return false;
}

/* Whether a double holds a number without rounding it; Python asks so only of texts longer than `SAFE_DIGITS`. */
static bool is_exact_double(span value) {
    decimal n;
    double found;
    decimal_digits sent, kept;
    if (!read_number(value, MOST_REAL_DIGITS, true, &n)) return false;
    if (value.len <= SAFE_DIGITS) return !n.has_exponent || to_double(value, &found);
    if (!significant(&n, &sent)) return false;
    if (sent.count <= SAFE_DIGITS && sent.point > -SHORT_RANGE && sent.point < SHORT_RANGE) return true;
    if (!to_double(value, &found) || !shortest(found, &kept)) return false;
    return kept.count == sent.count && kept.point == sent.point && memcmp(kept.digits, sent.digits, sent.count) == 0;
}

/* Whether a number is finite as a double; one without exponent, of fewer than 300 digits, is. */
static bool is_finite_real(span value) {
    decimal n;
    double found;
    if (!read_number(value, MOST_REAL_DIGITS, true, &n)) return false;
    return (!n.has_exponent && n.whole.len < 300) || to_double(value, &found);
}

/* How many characters a number has, without signs in front, points, zeros around, and its exponent. */
static size_t float_digits(span value) {
    size_t first = 0, count = 0, last = 0;
    while (first < value.len && value.p[first] == '-') first++;
    for (size_t i = first; i < value.len && value.p[i] != 'e' && value.p[i] != 'E'; i++) {
        if (value.p[i] == '.' || (value.p[i] == '0' && count == 0)) continue;
        count++;
        if (value.p[i] != '0') last = count;
    }
    return last;
}

/* As Python's repr spells digits: with an exponent where the point is far from them. */
static size_t put_digits(uint8_t *to, const decimal_digits *kept) {
    uint8_t *at = to;
    int32_t count = (int32_t)kept->count, point = kept->point;
    if (point <= -4 || point > 16) {
        *at++ = kept->digits[0];
        if (count > 1) *at++ = '.';
        for (int32_t i = 1; i < count; i++) *at++ = kept->digits[i];
        return (size_t)(at - to) + (size_t)sprintf((char *)at, "e%c%02d", point < 1 ? '-' : '+', abs(point - 1));
    }
    if (point <= 0) *at++ = '0', *at++ = '.';
    for (int32_t i = point; i < 0; i++) *at++ = '0';
    for (int32_t i = 0; i < count || i < point; i++) {
        if (i > 0 && i == point) *at++ = '.';
        *at++ = i < count ? kept->digits[i] : '0';
    }
    if (count <= point) *at++ = '.', *at++ = '0';
    return (size_t)(at - to);
}

/* A 32-bit float written as the 64-bit one that it is; `to` has room for 40 bytes. Gives the length, 0: not usual. */
static size_t put_float(uint8_t *to, span value) {
    decimal n;
    double found;
    decimal_digits kept;
    if (!read_number(value, MOST_REAL_DIGITS, true, &n) || !to_double(value, &found)) return 0;
    if (fabs(found) >= TOO_LARGE_A_FLOAT) return 0;
    found = (double)(float)found;
    if (!shortest(found, &kept)) return 0;
    size_t sign = signbit(found) ? 1 : 0;
    *to = '-';
    if (kept.count == 0) return memcpy(to + sign, "0.0", 3), sign + 3;
    return sign + put_digits(to + sign, &kept);
}

#endif
