/* Dates and times in values, after `sinks.rows.plain_values` and `sinks.rows.values`. */
#ifndef TICDC_CALENDAR_H
#define TICDC_CALENDAR_H

#include "numbers.h"

enum { DATE_LEN = 10, MOMENT_LEN = 19, FINEST = 9 };

/* Between two changes of a zone's clocks: what they show then, in seconds since 1970, and how far they are ahead. */
typedef struct {
    int64_t begin, end, ahead;
} zone_part;

/* A part of a moment in two or four digits; the cursor stands before it. */
static inline bool take_part(cursor *c, size_t digits, int64_t *value) {
    if (left_of(c) < digits) return false;
    *value = 0;
    for (size_t i = 0; i < digits; i++, c->p++) {
        if (!is_digit(*c->p)) return false;
        *value = *value * 10 + (*c->p - '0');
    }
    return true;
}

typedef struct {
    int64_t year, month, day, hour, minute, second;
    bool has_time;
} moment;

/* Past `.123`, where it is there: of digits behind `most` only zeros are taken. */
static bool take_fraction(cursor *c, int64_t most) {
    if (!take(c, '.')) return true;
    span digits = take_digits(c, FINEST);
    for (size_t i = 0; i < digits.len; i++)
        if ((int64_t)i >= most && digits.p[i] != '0') return false;
    return digits.len > 0;
}

static bool read_moment(span value, int64_t digits, moment *m) {
    cursor c = {value.p, value.p + value.len};
    m->hour = m->minute = m->second = 0;
    if (!take_part(&c, 4, &m->year) || !take(&c, '-') || !take_part(&c, 2, &m->month) || !take(&c, '-')) return false;
    if (!take_part(&c, 2, &m->day)) return false;
    m->has_time = c.p < c.end;
    if (!m->has_time) return true;
    if (!take(&c, ' ') || !take_part(&c, 2, &m->hour) || !take(&c, ':') || !take_part(&c, 2, &m->minute)) return false;
    return take(&c, ':') && take_part(&c, 2, &m->second) && take_fraction(&c, digits) && c.p == c.end;
}

static bool is_real_moment(const moment *m) {
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (m->year < 1 || m->month < 1 || m->month > 12 || m->day < 1) return false;
    bool leap = m->year % 4 == 0 && (m->year % 100 != 0 || m->year % 400 == 0);
    if (m->day > days[m->month - 1] + (leap && m->month == 2)) return false;
    return m->hour < 24 && m->minute < 60 && m->second < 60;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar, and back: the year is thought to begin in March. */
static int64_t days_of(const moment *m) {
    int64_t year = m->year - (m->month <= 2), era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (m->month + (m->month > 2 ? -3 : 9)) + 2) / 5 + m->day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void set_date(moment *m, int64_t days) {
    days += 719468;
    int64_t era = days / 146097, of_era = days - era * 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100), month = (5 * of_year + 2) / 153;
    m->day = of_year - (153 * month + 2) / 5 + 1;
    m->month = month + (month < 10 ? 3 : -9);
    m->year = years + era * 400 + (m->month <= 2);
}

/* How far a zone's clocks are ahead when they show this; of an hour that they show twice, the first time. */
static bool ahead_at(const zone_part *parts, uint64_t count, int64_t shown, int64_t *ahead) {
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (parts[middle].end > shown)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == count || parts[low].begin > shown) return false;
    *ahead = parts[low].ahead;
    return true;
}

static void put_part(uint8_t *to, int64_t value, int digits) {
    while (digits-- > 0) to[digits] = (uint8_t)('0' + value % 10), value /= 10;
}

/* A moment in UTC, in `to`, without its fraction: 19 bytes. False where the zone's table does not tell. */
static bool put_utc(uint8_t *to, moment m, const zone_part *parts, uint64_t count) {
    int64_t shown = days_of(&m) * 86400 + m.hour * 3600 + m.minute * 60 + m.second, ahead;
    if (!ahead_at(parts, count, shown, &ahead) || shown < ahead) return false;
    int64_t utc = shown - ahead, left = utc % 86400;
    set_date(&m, utc / 86400);
    memcpy(to, "0000-00-00 00:00:00", MOMENT_LEN);
    put_part(to, m.year, 4);
    put_part(to + 5, m.month, 2);
    put_part(to + 8, m.day, 2);
    put_part(to + 11, left / 3600, 2);
    put_part(to + 14, left / 60 % 60, 2);
    put_part(to + 17, left % 60, 2);
    return true;
}

/* A TIME: up to three digits of hours, one or two of minutes and seconds. */
static bool is_time(span value, int64_t digits) {
    cursor c = {value.p, value.p + value.len};
    (void)take(&c, '-');
    if (take_digits(&c, 3).len == 0 || !take(&c, ':') || take_digits(&c, 2).len == 0 || !take(&c, ':')) return false;
    return take_digits(&c, 2).len > 0 && take_fraction(&c, digits) && c.p == c.end;
}

#endif
