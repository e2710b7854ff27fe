"""The port behind which a message format lies; `consumer.wiring` chooses one by `source.protocol`.

Tasks read one form: Canal-JSON with TiDB's extension. A format brings its messages into it, so that all that follows
(keys, filters, large messages, the compiled core) is written once. Positions stay those of the messages in Kafka.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn, Protocol, Self

from consumer.formats.sent_schema import SchemaIdentity, SentSchema
from consumer.kafka.reader import Messages
from ordering.errors import InputError
from ordering.events import Position
from ordering.timestamps import ResolvedTs

_LACKS_SCHEMA = (
    "TiCDC sends schemas again while the changefeed's sink has send-bootstrap-interval-in-sec and"
    " send-bootstrap-in-msg-count above 0; with send-bootstrap-to-all-partition = false, partition 0 has to be read"
)


class WaitingRow(NamedTuple):
    """A row event whose schema is not known yet."""

    commit_ts: int
    database: str
    table: str
    version: int

    @property
    def identity(self) -> SchemaIdentity:
        """The schema that it names."""
        return SchemaIdentity(self.database, self.table, self.version)

    def refused(self, where: str) -> InputError:
        """What is said where nothing can be waited for."""
        fact = f"no schema of version {self.version} of table {self.database}.{self.table} is known"
        return InputError(fact[:400], where=where, hint=_LACKS_SCHEMA)


class Untaken(Exception):  # noqa: N818 no error: nothing is wrong with the message
    """A message holds nothing to take now: a schema (None), or a row that waits for its own."""

    def __init__(self, row: WaitingRow | None) -> None:
        super().__init__(row)
        self.row = row

    def refused(self, where: str) -> InputError:
        """What is said where a row was wanted."""
        if self.row is not None:
            return self.row.refused(where)
        return InputError("message holds a table's schema, no row", where=where)


class Refused(NamedTuple):
    """A message that its format can't bring into the form that tasks read."""

    at: int
    why: InputError | Untaken

    def offset(self) -> int:
        """Where it lies in its partition."""
        return self.at

    def value(self) -> NoReturn:
        """Raises InputError or Untaken."""
        raise self.why


class MessageFormat(Protocol):
    """How messages of a topic are read; travels to the tasks."""

    @property
    def name(self) -> str:
        """As in `source.protocol`."""
        ...

    @property
    def keeps_schemas(self) -> bool:
        """Whether rows are read with schemas that earlier messages told, which are kept with the progress."""
        ...

    @property
    def sends_batches(self) -> bool:
        """Whether a message may hold several events: these share its offset."""
        ...

    def knowing(self, schemas: Iterable[SentSchema]) -> Self:
        """The same format, which knows these schemas too."""
        ...

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """What the methods below take of a message: its value, or key and value as one."""
        ...

    def learned(self, reader: Messages) -> list[SentSchema]:
        """The schemas that a reader of `reading` met and that were not known."""
        ...

    def reading(self, reader: Messages, limit: int) -> Messages:
        """A reader that gives what `reader` does in the form that tasks read. `limit`: bytes of a plain message.

        The `value()` of a message raises InputError with the position, or Untaken.
        """
        ...

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """A message of one event in the form that tasks read, decompressed. Raises InputError with the position."""
        ...

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """As `canal`, for people and from the message alone: each event; values may stand as they were sent."""
        ...

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """The watermark that a message is; None if it is something else, or can't be read."""
        ...
