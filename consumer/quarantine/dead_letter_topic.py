"""The Kafka topic that quarantined messages go to as well, for tools that look there (`quarantine.topic`).

They are sent before the transaction that moves the progress past them: none is missing there, and one may come twice,
or be there although it was taken after all in the end. The headers tell which message it is; the table is the truth.
"""

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from consumer.config.model import Config
from consumer.kafka.properties import producer_settings
from ordering.errors import SourceError, SourceUnreachableError
from ordering.quarantine import Quarantined

_PATIENCE_S = 30.0
_LARGEST = 1_000_000_000
"""The most bytes of a message that librdkafka takes for `message.max.bytes`: how large one may be, brokers decide."""


class DeadLetterTopic:
    """Sends to the topic, if there is one."""

    def __init__(self, config: Config) -> None:
        self._changefeed, self._topic, self._source = config.changefeed, config.quarantine.topic, config.source
        self._failed: list[KafkaError] = []

    def send(self, messages: Iterable[Quarantined]) -> None:
        """Send, and wait until they are there. Raises SourceUnreachableError, SourceError for one that is too large."""
        messages = list(messages)
        if not self._topic or not messages:
            return
        self._failed = []
        try:
            settings = producer_settings(self._source.bootstrap_servers, self._source.kafka)
            producer = Producer({**settings, "message.max.bytes": _LARGEST})
            for one in messages:
                headers = self._headers(one)
                producer.produce(self._topic, one.value, one.key, headers=headers, on_delivery=self._delivered)
            left = producer.flush(_PATIENCE_S)
        except (KafkaException, BufferError) as error:
            raise self._unreachable(str(error)) from error
        if self._failed:
            raise self._refused(self._failed[0])
        if left:
            raise self._unreachable("no answer")

    def _headers(self, one: Quarantined) -> list[tuple[str, bytes]]:
        told = {"changefeed": self._changefeed, **one.position._asdict(), "reason": one.reason}
        if one.commit_ts is not None:
            told["commit-ts"] = one.commit_ts
        return [(name, str(value).encode(errors="backslashreplace")) for name, value in told.items()]

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _refused(self, error: KafkaError) -> SourceError:
        if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return self._unreachable(error.str())
        return SourceError(
            f"a message that is quarantined is too large for topic {self._topic}",
            where=self._source.bootstrap_servers,
            hint="set max.message.bytes of that topic as high as that of source.topics, or leave quarantine.topic out",
        )

    def _unreachable(self, why: str) -> SourceUnreachableError:
        return SourceUnreachableError(
            f"messages that are quarantined can't be sent to topic {self._topic}: {why}",
            where=self._source.bootstrap_servers,
            hint="make the topic, or leave quarantine.topic out",
        )
