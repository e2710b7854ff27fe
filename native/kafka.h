/* Messages where Kafka's client library, librdkafka, has put them: no copy, and no Python object for each.
 *
 * The structure is `rd_kafka_message_t` of its public header rdkafka.h, which has been the same since version 1.0; who
 * loads the library compares its version first.
 */
#ifndef TICDC_KAFKA_H
#define TICDC_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int err; /* 0: a message; else an event of a partition, or an error */
    void *topic;
    int32_t partition;
    const uint8_t *payload; /* NULL: a tombstone */
    size_t len;
    const uint8_t *key;
    size_t key_len;
    int64_t offset;
    void *private;
} kafka_message;

/* Messages one behind the other of one partition, at rising offsets; or one event or error. */
typedef struct {
    uint32_t begin, count;
} kafka_run;

static inline bool follows(const kafka_message *one, const kafka_message *before) {
    return one->err == 0 && before->err == 0 && one->topic == before->topic && one->partition == before->partition &&
           one->offset > before->offset;
}

static uint32_t find_runs(const kafka_message *const *messages, uint32_t count, kafka_run *to) {
    uint32_t runs = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || !follows(messages[i], messages[i - 1])) to[runs++] = (kafka_run){i, 0};
        to[runs - 1].count++;
    }
    return runs;
}

#endif
