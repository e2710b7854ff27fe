/* Names, which are numbered as they come. */
#ifndef TICDC_NAMES_H
#define TICDC_NAMES_H

#include <stdlib.h>

#include "json.h"
#include "xxh3.h"

typedef struct {
    span *names; /* somebody else's bytes */
    uint32_t *slots, mask, count, room; /* slots: number + 1, or 0 */
} name_table;

static void free_names(name_table *all) {
    free(all->names);
    free(all->slots);
    memset(all, 0, sizeof *all);
}

/* The slot of a name, or the free one in which it belongs. */
static uint32_t slot_of(const name_table *all, span name, uint64_t seed) {
    uint32_t at = (uint32_t)xxh3(name.p, name.len, seed) & all->mask;
    while (all->slots[at] != 0 && !same(all->names[all->slots[at] - 1], name.p, name.len)) at = (at + 1) & all->mask;
    return at;
}

/* The number of a name; -1: it is not known. */
static int64_t known_number(const name_table *all, span name, uint64_t seed) {
    return all->slots == NULL ? -1 : (int64_t)all->slots[slot_of(all, name, seed)] - 1;
}

static bool grow_names(name_table *all, uint64_t seed) {
    uint32_t room = all->room == 0 ? 64 : all->room * 2, *slots = calloc(room, sizeof *slots);
    span *names = realloc(all->names, room * sizeof *names);
    if (names != NULL) all->names = names;
    if (names == NULL || slots == NULL) return free(slots), false;
    free(all->slots);
    all->slots = slots;
    all->room = room;
    all->mask = room - 1;
    for (uint32_t i = 0; i < all->count; i++) all->slots[slot_of(all, names[i], seed)] = i + 1;
    return true;
}

/* The number of a name, which is made known. -1: no memory. */
static int64_t number_of(name_table *all, span name, uint64_t seed) {
    if (all->count >= all->room / 2 && !grow_names(all, seed)) return -1;
    uint32_t at = slot_of(all, name, seed);
    if (all->slots[at] != 0) return (int64_t)all->slots[at] - 1;
    all->names[all->count++] = name;
    all->slots[at] = all->count;
    return (int64_t)all->count - 1;
}

#endif
