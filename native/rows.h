/* The reduction of `ordering.rows.net_effect`: the last half of each row, in the order in which rows came first.
 *
 * Keys and images live in chunks of one arena; a row that changes is overwritten in place where it fits.
 */
#ifndef TICDC_ROWS_H
#define TICDC_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xxh3.h"

enum { FIRST_CHUNK = 64 << 10, LARGEST_CHUNK = 4 << 20, FIRST_SLOTS = 1 << 10, WASTE = 8 << 20 };
#define MOST_ROWS (1U << 30)

typedef struct chunk {
    struct chunk *before;
    size_t used, size;
    uint8_t bytes[];
} chunk;

typedef struct {
    uint64_t order, back, hash;
    uint8_t *key, *image;
    uint32_t key_len, image_len, room;
} row;

typedef struct {
    uint64_t seed;
    chunk *arena;
    size_t wasted, held; /* bytes that nothing uses; bytes of keys and images */
    row *rows;
    uint32_t count, capacity;
    uint32_t *slots; /* row number + 1, or 0 */
    uint32_t mask;
} rows;

static void free_arena(chunk *one) {
    while (one != NULL) {
        chunk *before = one->before;
        free(one);
        one = before;
    }
}

static void clear_rows(rows *all) {
    free_arena(all->arena);
    free(all->rows);
    free(all->slots);
    uint64_t seed = all->seed;
    memset(all, 0, sizeof *all);
    all->seed = seed;
}

/* Room for some bytes in an arena; NULL without memory. */
static uint8_t *room_in(chunk **arena, size_t len) {
    chunk *last = *arena;
    if (last == NULL || last->size - last->used < len) {
        size_t size = last == NULL ? FIRST_CHUNK : last->size < LARGEST_CHUNK ? last->size * 2 : LARGEST_CHUNK;
        if (size < len) size = len;
        chunk *next = malloc(sizeof *next + size);
        if (next == NULL) return NULL;
        next->before = last;
        next->used = 0;
        next->size = size;
        *arena = last = next;
    }
    uint8_t *at = last->bytes + last->used;
    last->used += len;
    return at;
}

static uint8_t *copy_in(chunk **arena, const uint8_t *from, size_t len, size_t room) {
    uint8_t *to = room_in(arena, room);
    if (to != NULL && len > 0) memcpy(to, from, len);
    return to;
}

/* Move what is held into an arena of its own, once much of the old one is not used any more. */
static bool compact(rows *all) {
    chunk *arena = NULL;
    for (uint32_t i = 0; i < all->count; i++) {
        row *one = &all->rows[i];
        uint8_t *key = copy_in(&arena, one->key, one->key_len, one->key_len);
        uint8_t *image = copy_in(&arena, one->image, one->image_len, one->room);
        if (key == NULL || image == NULL) {
            free_arena(arena);
            return false; /* rows before this one point into what is gone: the caller gives all up */
        }
        one->key = key;
        one->image = image;
    }
    free_arena(all->arena);
    all->arena = arena;
    all->wasted = 0;
    return true;
}

static bool grow_slots(rows *all) {
    uint32_t size = all->slots == NULL ? FIRST_SLOTS : (all->mask + 1) * 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (slots == NULL) return false;
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t at = (uint32_t)all->rows[i].hash & (size - 1);
        while (slots[at] != 0) at = (at + 1) & (size - 1);
        slots[at] = i + 1;
    }
    free(all->slots);
    all->slots = slots;
    all->mask = size - 1;
    return true;
}

static bool grow_rows(rows *all) {
    if (all->count >= MOST_ROWS) return false;
    if (all->count == all->capacity) {
        uint32_t capacity = all->capacity == 0 ? FIRST_SLOTS / 2 : all->capacity * 2;
        row *more = realloc(all->rows, (size_t)capacity * sizeof *more);
        if (more == NULL) return false;
        all->rows = more;
        all->capacity = capacity;
    }
    return all->slots != NULL && all->count < all->mask / 2 ? true : grow_slots(all);
}

static bool add_row(rows *all, row fresh) {
    if (!grow_rows(all)) return false;
    fresh.room = (fresh.image_len + 15U) & ~15U;
    if (fresh.room < fresh.image_len) return false;
    fresh.key = copy_in(&all->arena, fresh.key, fresh.key_len, fresh.key_len);
    fresh.image = copy_in(&all->arena, fresh.image, fresh.image_len, fresh.room);
    if (fresh.key == NULL || fresh.image == NULL) return false;
    uint32_t at = (uint32_t)fresh.hash & all->mask;
    while (all->slots[at] != 0) at = (at + 1) & all->mask;
    all->rows[all->count++] = fresh;
    all->slots[at] = all->count;
    all->held += (size_t)fresh.key_len + fresh.image_len;
    return true;
}

static bool set_image(rows *all, row *one, const uint8_t *image, uint32_t len) {
    all->held += len;
    all->held -= one->image_len;
    if (len > one->room) {
        uint64_t room = ((uint64_t)len + len / 4 + 15U) & ~(uint64_t)15U;
        if (room > UINT32_MAX) room = len;
        uint8_t *to = room_in(&all->arena, (size_t)room);
        if (to == NULL) return false;
        all->wasted += one->room;
        one->image = to;
        one->room = (uint32_t)room;
    }
    if (len > 0) memcpy(one->image, image, len);
    one->image_len = len;
    return all->wasted < WASTE || all->wasted < all->held ? true : compact(all);
}

/* Of two halves with one ordinal the larger one stays: by its image's bytes, then by its distance. */
static bool is_larger(const row *a, const row *b) {
    uint32_t shorter = a->image_len < b->image_len ? a->image_len : b->image_len;
    int by = shorter == 0 ? 0 : memcmp(a->image, b->image, shorter);
    if (by != 0) return by > 0;
    return a->image_len != b->image_len ? a->image_len > b->image_len : a->back > b->back;
}

static bool merge_row(rows *all, row *known, const row *half) {
    bool later = half->order != known->order ? half->order > known->order : is_larger(half, known);
    const row *last = later ? half : known, *other = later ? known : half;
    uint64_t before = last->order - other->order + other->back, back = before > last->back ? before : last->back;
    if (later && !set_image(all, known, half->image, half->image_len)) return false;
    known->order = later ? half->order : known->order;
    known->back = back;
    return true;
}

static inline row *find_row(rows *all, const row *half) {
    if (all->slots == NULL) return NULL;
    for (uint32_t at = (uint32_t)half->hash & all->mask; all->slots[at] != 0; at = (at + 1) & all->mask) {
        row *one = &all->rows[all->slots[at] - 1];
        if (one->hash == half->hash && one->key_len == half->key_len && memcmp(one->key, half->key, half->key_len) == 0)
            return one;
    }
    return NULL;
}

/* Take one half; its key and image are copied. False without memory: then nothing more may be taken. */
static bool reduce(rows *all, row half) {
    half.hash = xxh3(half.key, half.key_len, all->seed);
    row *known = find_row(all, &half);
    return known == NULL ? add_row(all, half) : merge_row(all, known, &half);
}

#endif
