"""Canal-JSON with TiDB's extension: the form that tasks read, so its messages are passed on as they are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consumer.codec import canal_json
from consumer.codec.watermarks import watermark_in
from consumer.formats.sent_schema import SentSchema
from consumer.kafka.reader import Messages
from ordering.events import Position
from ordering.timestamps import ResolvedTs


@dataclass(frozen=True, slots=True)
class CanalJson:
    """`protocol=canal-json` with `enable-tidb-extension=true`. See `MessageFormat`."""

    name: str = "canal-json"
    keeps_schemas: bool = False
    sends_batches: bool = False

    def knowing(self, schemas: Iterable[SentSchema]) -> "CanalJson":  # noqa: ARG002 each row tells its own
        """See `MessageFormat.knowing`."""
        return self

    def learned(self, reader: Messages) -> list[SentSchema]:  # noqa: ARG002
        """See `MessageFormat.learned`."""
        return []

    def reading(self, reader: Messages, limit: int) -> Messages:  # noqa: ARG002 the scan looks at it
        """See `MessageFormat.reading`: the reader itself."""
        return reader

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """See `MessageFormat.canal`."""
        return canal_json.plain(value, position, limit)

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:  # noqa: ARG002 TiCDC sends none
        """See `MessageFormat.content`."""
        return value

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """See `MessageFormat.shown`."""
        return [self.canal(value, position, limit)]

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """See `MessageFormat.watermark_in`."""
        return watermark_in(value, limit)


CANAL_JSON = CanalJson()
