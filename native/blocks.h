/* In which bucket of the shuffle a row belongs, and a half in MessagePack, as `consumer`'s blocks hold them. */
#ifndef TICDC_BLOCKS_H
#define TICDC_BLOCKS_H

#include "rows.h"

static uint32_t crc_table[256];

__attribute__((constructor)) static void make_crc_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xEDB88320U : 0);
        crc_table[i] = value;
    }
}

static uint32_t crc32_of(const uint8_t *bytes, size_t len) {
    uint32_t crc = ~0U;
    while (len-- > 0) crc = crc >> 8 ^ crc_table[(crc ^ *bytes++) & 0xFF];
    return ~crc;
}

/* How much of a key says in which bucket its row is: see `consumer.tasks.reduction.bucket_hash`. */
static size_t told_by(const row *one, uint32_t run_digits) {
    if (one->key_len < run_digits) return one->key_len;
    const uint8_t *end = one->key + one->key_len;
    for (const uint8_t *at = end - run_digits; at < end; at++)
        if (*at < '0' || *at > '9') return one->key_len;
    return one->key_len - run_digits;
}

static uint8_t *put_big(uint8_t *to, uint8_t code, uint64_t value, int bytes) {
    *to++ = code;
    while (bytes-- > 0) *to++ = (uint8_t)(value >> 8 * bytes);
    return to;
}

static uint8_t *put_number(uint8_t *to, uint64_t value) {
    if (value < 128) return *to = (uint8_t)value, to + 1;
    if (value <= UINT8_MAX) return put_big(to, 0xCC, value, 1);
    if (value <= UINT16_MAX) return put_big(to, 0xCD, value, 2);
    if (value <= UINT32_MAX) return put_big(to, 0xCE, value, 4);
    return put_big(to, 0xCF, value, 8);
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *bytes, uint32_t len) {
    to = len <= UINT8_MAX    ? put_big(to, 0xC4, len, 1)
         : len <= UINT16_MAX ? put_big(to, 0xC5, len, 2)
                             : put_big(to, 0xC6, len, 4);
    if (len > 0) memcpy(to, bytes, len);
    return to + len;
}

static uint8_t *put_count(uint8_t *to, uint32_t count) { /* of an array */
    if (count < 16) return *to = (uint8_t)(0x90 | count), to + 1;
    return count <= UINT16_MAX ? put_big(to, 0xDC, count, 2) : put_big(to, 0xDD, count, 4);
}

enum { AROUND = 1 + 5 + 9 + 5 + 9 }; /* what a half takes besides its bytes, at most */

static size_t room_of(const row *one) { return (size_t)AROUND + one->key_len + one->image_len; }

static uint8_t *put_half(uint8_t *to, const row *one) {
    *to++ = 0x94;
    to = put_bytes(to, one->key, one->key_len);
    to = put_number(to, one->order);
    to = put_bytes(to, one->image, one->image_len);
    return put_number(to, one->back);
}

#endif
