/* Bytes that are written one after the other, with room that grows. */
#ifndef TICDC_SINK_H
#define TICDC_SINK_H

#include <stdlib.h>

#include "json.h"

enum { LARGEST_OUT = 8 << 20 }; /* a call ends once it has written so much */

typedef struct {
    uint8_t *bytes;
    size_t len, room;
} sink;

/* Room for some more bytes; false without memory. */
static bool reserve(sink *to, size_t more) {
    if (to->room - to->len >= more) return true;
    size_t room = to->room * 2 > to->len + more ? to->room * 2 : to->len + more + 4096;
    uint8_t *bytes = realloc(to->bytes, room);
    if (bytes == NULL) return false;
    to->bytes = bytes;
    to->room = room;
    return true;
}

static inline void put_byte(sink *to, uint8_t byte) { to->bytes[to->len++] = byte; }

static inline void put_span(sink *to, span some) {
    if (some.len > 0) memcpy(to->bytes + to->len, some.p, some.len);
    to->len += some.len;
}

static void put_decimal(sink *to, uint64_t value) {
    uint8_t digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (uint8_t)('0' + value % 10);
    while ((value /= 10) > 0);
    put_span(to, (span){digits + at, sizeof digits - at});
}

#define PUT(to, word) put_span(to, (span){(const uint8_t *)(word), sizeof(word) - 1})

/* A text as `msgspec` spells it. */
static bool put_json_text(sink *to, span value) {
    static const uint8_t digits[] = "0123456789abcdef", short_of[] = "btn\0fr"; /* of 8 to 13 */
    if (!reserve(to, value.len + 2)) return false;
    put_byte(to, '"');
    cursor c = {value.p, value.p + value.len};
    while (c.p < c.end) {
        const uint8_t *begin = c.p;
        to_special(&c);
        if (!reserve(to, left_of(&c) + (size_t)(c.p - begin) + 8)) return false;
        put_span(to, (span){begin, (size_t)(c.p - begin)});
        if (c.p == c.end) break;
        uint8_t byte = *c.p++;
        put_byte(to, '\\');
        if (byte >= 0x20) put_byte(to, byte);
        else if (byte >= 8 && byte <= 13 && byte != 11) put_byte(to, short_of[byte - 8]);
        else PUT(to, "u00"), put_byte(to, digits[byte >> 4]), put_byte(to, digits[byte & 0xF]);
    }
    put_byte(to, '"');
    return true;
}

#endif
