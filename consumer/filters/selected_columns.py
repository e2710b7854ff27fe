"""A message format whose rows are without the columns that are not taken, and with masks in place.

It stands between a topic's own format and all that reads rows, so that everything behind it (reduction, duplicates,
large messages, proofs, the quarantine's view) knows the selected rows alone, as if TiCDC had selected them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from consumer.codec.canal_json import KINDS, UNREADABLE, Plain
from consumer.filters.columns import ColumnRules, TableColumns
from consumer.formats.canal_json import CANAL_JSON
from consumer.formats.message_format import MessageFormat
from consumer.formats.sent_schema import SentSchema
from consumer.formats.translated import TranslatedMessages
from consumer.kafka.reader import Messages
from ordering.errors import InputError
from ordering.events import Partition, Position, TableName
from ordering.timestamps import ResolvedTs

_IMAGES, _TYPES = ("data", "old"), ("mysqlType", "sqlType")
_VARCHAR = 12
"""Java's number of the type, as Canal-JSON has it."""


class _Head(msgspec.Struct, gc=False):
    """What tells whose row a message holds."""

    type: str
    database: str = ""
    table: str = ""
    is_ddl: bool = msgspec.field(default=False, name="isDdl")


_head = msgspec.json.Decoder(_Head).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def selected(value: bytes | None, columns: ColumnRules, where: str) -> bytes | None:
    """A message of the form that tasks read, selected; what is no row, or can't be read, is left as it is.

    Raises InputError where the table's key is not taken as it is.
    """
    if not value:
        return value
    try:
        head = _head(value)
    except UNREADABLE:
        return value  # what is wrong with it is said by the one who decodes it
    try:
        rules = None if head.is_ddl or head.type not in KINDS else columns.of(TableName(head.database, head.table))
    except InputError as error:
        raise InputError(error.fact, where=where, hint=error.hint) from error
    if rules is None:
        return value
    try:
        return _encode(_selected(_decode(value), rules, where))
    except (*UNREADABLE, AttributeError, TypeError) as error:  # never on as it is: nothing in it is masked
        hint = "not written by TiCDC as documented"
        raise InputError(f"the columns of a row of {rules.name} can't be read", where=where, hint=hint) from error


def _selected(message: dict[str, Any], rules: TableColumns, where: str) -> dict[str, Any]:
    rules.check(message.get("pkNames") or (), message.get("mysqlType") or {}, where)
    if rules.origin:
        _check_merged(message, rules, where)
    if blurred := _blurred(message, rules):
        message["_tidb"] = {**message["_tidb"], "blurred": blurred}
    for name in _IMAGES:
        if message.get(name):
            message[name] = [rules.image(image) for image in message[name]]
    for name in _TYPES:
        if message.get(name):
            message[name] = {column: kind for column, kind in message[name].items() if rules.takes(column)}
    if rules.origin:
        key, message["mysqlType"] = rules.with_origin(message.get("pkNames") or (), message.get("mysqlType") or {})
        message["pkNames"] = key or message.get("pkNames")
        message["sqlType"] = {**(message.get("sqlType") or {}), **dict.fromkeys(dict(rules.origin), _VARCHAR)}
    return message


def _blurred(message: dict[str, Any], rules: TableColumns) -> str:
    """A column without which rows that upstream tells apart may be equal; "" where a key or TiKV tells them apart."""
    if message.get("pkNames") or not message.get("_tidb") or message["_tidb"].get("rowkey"):
        return ""
    columns = (column for name in _IMAGES for image in message.get(name) or () for column in image)
    return next(filter(rules.blurs, columns), "")


def _check_merged(message: dict[str, Any], rules: TableColumns, where: str) -> None:
    for name in _IMAGES:
        for image in message.get(name) or ():
            rules.check_names(image, where)
    if (message.get("_tidb") or {}).get("onlyHandleKey"):
        raise InputError(
            f"message holds the handle key only, and {rules.name} is merged with other tables: its rows are not asked"
            " for upstream",
            where=where,
            hint="set large-message-handle-option to claim-check or none in the changefeed",
        )


@dataclass(frozen=True, slots=True)
class SelectedColumns:
    """See `MessageFormat`. `inner`: the topic's own format."""

    inner: MessageFormat
    columns: ColumnRules

    @property
    def name(self) -> str:
        """See `MessageFormat.name`."""
        return self.inner.name

    @property
    def keeps_schemas(self) -> bool:
        """See `MessageFormat.keeps_schemas`."""
        return self.inner.keeps_schemas

    @property
    def sends_batches(self) -> bool:
        """See `MessageFormat.sends_batches`."""
        return self.inner.sends_batches

    def knowing(self, schemas: Iterable[SentSchema]) -> "SelectedColumns":
        """See `MessageFormat.knowing`."""
        return replace(self, inner=self.inner.knowing(schemas))

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """See `MessageFormat.content`."""
        return self.inner.content(key, value)

    def reading(self, reader: Messages, limit: int) -> "SelectedReading":
        """See `MessageFormat.reading`."""
        return SelectedReading(self.inner.reading(reader, limit), self.columns, limit)

    def learned(self, reader: Messages) -> list[SentSchema]:
        """See `MessageFormat.learned`."""
        return self.inner.learned(reader.inner) if isinstance(reader, SelectedReading) else []

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """See `MessageFormat.canal`."""
        return selected(self.inner.canal(value, position, limit), self.columns, str(position))

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """See `MessageFormat.shown`."""
        events = self.inner.shown(value, position, limit)
        return [selected(event, self.columns, str(position)) for event in events]

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """See `MessageFormat.watermark_in`."""
        return self.inner.watermark_in(value, limit)


class SelectedReading(TranslatedMessages):
    """Gives the messages of a format's reader (`inner`) selected, one for one."""

    def __init__(self, inner: Messages, columns: ColumnRules, limit: int) -> None:
        self.inner = inner

        def events_of(message: Any, partition: Partition) -> list[Plain]:
            offset = message.offset()
            position = Position(partition.topic, partition.partition, offset)
            plain = CANAL_JSON.canal(message.value(), position, limit)
            return [Plain(offset, selected(plain, columns, str(position)))]

        super().__init__(inner, events_of)
