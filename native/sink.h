/* Bytes that are written one after the other, with room that grows. */
#ifndef TICDC_SINK_H
#define TICDC_SINK_H

#include <stdlib.h>

#include "json.h"

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

#endif
