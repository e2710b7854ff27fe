/* Messages for one call. */
#ifndef TICDC_BATCH_H
#define TICDC_BATCH_H

#include "json.h"
#include "kafka.h"

/* Messages as Python holds them, one behind the other; or, where `messages` is not NULL, as librdkafka does. */
typedef struct {
    const uint8_t *bytes;
    const uint32_t *lens;
    const int64_t *offsets; /* NULL: all count as new */
    const kafka_message *const *messages;
    int64_t count_from, count_to;
    uint64_t count;
    uint32_t largest; /* more bytes than these are not usual */
} batch;

/* The message at which a call is; `at`: where it lies, if messages lie one behind the other. */
static span message_at(const batch *in, uint64_t number, const uint8_t *at) {
    if (in->messages == NULL) return (span){at, in->lens[number]};
    return (span){in->messages[number]->payload, in->messages[number]->len};
}

#endif
