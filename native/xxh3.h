/* XXH3 of 64 bits, after the published specification (xxhash_spec.md): the fingerprints of `ordering.identity` are these.
 *
 * Reads the `len` bytes at `in` and nothing else. Plain C, one version: compilers make vectors of the loops.
 */
#ifndef TICDC_XXH3_H
#define TICDC_XXH3_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define P32_1 0x9E3779B1U
#define P32_2 0x85EBCA77U
#define P32_3 0xC2B2AE3DU
#define P64_1 0x9E3779B185EBCA87ULL
#define P64_2 0xC2B2AE3D27D4EB4FULL
#define P64_3 0x165667B19E3779F9ULL
#define P64_4 0x85EBCA77C2B2AE63ULL
#define P64_5 0x27D4EB2F165667C5ULL
#define MX1 0x165667919E3779F9ULL
#define MX2 0x9FB21C651E98DF25ULL

enum { SECRET = 192, STRIPE = 64, STRIPES = (SECRET - STRIPE) / 8, BLOCK = STRIPE * STRIPES };

static const uint8_t xxh3_secret[SECRET] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d, 0xe9,
    0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78,
    0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
    0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f,
    0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
    0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff,
    0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

static inline uint32_t read32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t read64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t rotl64(uint64_t v, int by) { return v << by | v >> (64 - by); }

static inline uint64_t fold64(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t avalanche3(uint64_t h) {
    h ^= h >> 37;
    h *= MX1;
    return h ^ h >> 32;
}

static inline uint64_t avalanche64(uint64_t h) {
    h ^= h >> 33;
    h *= P64_2;
    h ^= h >> 29;
    h *= P64_3;
    return h ^ h >> 32;
}

static inline uint64_t mix16(const uint8_t *in, const uint8_t *secret, uint64_t seed) {
    return fold64(read64(in) ^ (read64(secret) + seed), read64(in + 8) ^ (read64(secret + 8) - seed));
}

static uint64_t xxh3_upto16(const uint8_t *in, size_t len, uint64_t seed) {
    const uint8_t *s = xxh3_secret;
    if (len > 8) {
        uint64_t low = read64(in) ^ ((read64(s + 24) ^ read64(s + 32)) + seed);
        uint64_t high = read64(in + len - 8) ^ ((read64(s + 40) ^ read64(s + 48)) - seed);
        return avalanche3(len + __builtin_bswap64(low) + high + fold64(low, high));
    }
    if (len >= 4) {
        seed ^= (uint64_t)__builtin_bswap32((uint32_t)seed) << 32;
        uint64_t h = read32(in + len - 4) + ((uint64_t)read32(in) << 32);
        h ^= (read64(s + 8) ^ read64(s + 16)) - seed;
        h ^= rotl64(h, 49) ^ rotl64(h, 24);
        h *= MX2;
        h ^= (h >> 35) + len;
        h *= MX2;
        return h ^ h >> 28;
    }
    if (len > 0) {
        uint32_t mixed = (uint32_t)in[0] << 16 | (uint32_t)in[len >> 1] << 24 | in[len - 1] | (uint32_t)len << 8;
        return avalanche64(mixed ^ ((uint64_t)(read32(s) ^ read32(s + 4)) + seed));
    }
    return avalanche64(seed ^ read64(s + 56) ^ read64(s + 64));
}

static uint64_t xxh3_upto128(const uint8_t *in, size_t len, uint64_t seed) {
    uint64_t acc = len * P64_1;
    for (size_t i = (len - 1) / 32 + 1; i-- > 0;) {
        acc += mix16(in + 16 * i, xxh3_secret + 32 * i, seed);
        acc += mix16(in + len - 16 * (i + 1), xxh3_secret + 32 * i + 16, seed);
    }
    return avalanche3(acc);
}

static uint64_t xxh3_upto240(const uint8_t *in, size_t len, uint64_t seed) {
    uint64_t acc = len * P64_1;
    for (size_t i = 0; i < 8; i++) acc += mix16(in + 16 * i, xxh3_secret + 16 * i, seed);
    acc = avalanche3(acc);
    for (size_t i = 8; i < len / 16; i++) acc += mix16(in + 16 * i, xxh3_secret + 16 * (i - 8) + 3, seed);
    return avalanche3(acc + mix16(in + len - 16, xxh3_secret + 136 - 17, seed));
}

static inline void xxh3_stripe(uint64_t acc[8], const uint8_t *in, const uint8_t *secret) {
    for (int i = 0; i < 8; i++) {
        uint64_t value = read64(in + 8 * i), keyed = value ^ read64(secret + 8 * i);
        acc[i ^ 1] += value;
        acc[i] += (uint64_t)(uint32_t)keyed * (keyed >> 32);
    }
}

static inline void xxh3_scramble(uint64_t acc[8], const uint8_t *secret) {
    for (int i = 0; i < 8; i++) acc[i] = (acc[i] ^ acc[i] >> 47 ^ read64(secret + 8 * i)) * P32_1;
}

static uint64_t xxh3_long(const uint8_t *in, size_t len, uint64_t seed) {
    uint8_t secret[SECRET];
    uint64_t acc[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
    for (int i = 0; i < SECRET; i += 16) {
        uint64_t low = read64(xxh3_secret + i) + seed, high = read64(xxh3_secret + i + 8) - seed;
        memcpy(secret + i, &low, 8);
        memcpy(secret + i + 8, &high, 8);
    }
    size_t blocks = (len - 1) / BLOCK;
    for (size_t n = 0; n < blocks; n++) {
        for (int i = 0; i < STRIPES; i++) xxh3_stripe(acc, in + n * BLOCK + (size_t)i * STRIPE, secret + 8 * i);
        xxh3_scramble(acc, secret + SECRET - STRIPE);
    }
    for (size_t i = 0; i < (len - 1 - blocks * BLOCK) / STRIPE; i++)
        xxh3_stripe(acc, in + blocks * BLOCK + i * STRIPE, secret + 8 * i);
    xxh3_stripe(acc, in + len - STRIPE, secret + SECRET - STRIPE - 7);
    uint64_t h = len * P64_1;
    for (int i = 0; i < 4; i++) {
        const uint8_t *s = secret + 11 + 16 * i;
        h += fold64(acc[2 * i] ^ read64(s), acc[2 * i + 1] ^ read64(s + 8));
    }
    return avalanche3(h);
}

static inline uint64_t xxh3(const uint8_t *in, size_t len, uint64_t seed) {
    if (len <= 16) return xxh3_upto16(in, len, seed);
    if (len <= 128) return xxh3_upto128(in, len, seed);
    if (len <= 240) return xxh3_upto240(in, len, seed);
    return xxh3_long(in, len, seed);
}

#endif
