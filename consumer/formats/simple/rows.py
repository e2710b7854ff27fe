"""Rows of the Simple protocol, read with the schema that they name, as Canal-JSON has them.

Most values are spelled alike. Binary ones come in base64 and are Latin-1 texts in Canal-JSON; a TIMESTAMP comes with
its zone and is brought into the changefeed's (`source.time-zone`).
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from consumer.codec.canal_json import UNREADABLE
from consumer.formats.sent_schema import SentSchema
from consumer.formats.simple.checksum import row_checksum
from consumer.native.simple_rows import Conversion, RowLayout
from ordering.errors import InputError
from sinks.rows.plain_values import moment
from sinks.rows.values import in_another_zone, utc_of, zone_of

_SECONDS = len("2026-01-02 03:04:05")
_ODD = "not written by TiCDC as documented"
_SHOWN = 80
_KINDS = ("INSERT", "UPDATE", "DELETE")
_NEED_ESCAPES = {*'"\\', *map(chr, range(0x20))}
_encode = msgspec.json.Encoder().encode


class _Moment(msgspec.Struct, gc=False):
    """A TIMESTAMP."""

    location: str
    value: str


_Value = str | _Moment | None
_decode_any = msgspec.json.Decoder(dict[str, _Value]).decode
Convert = Callable[[Any], Any]


@lru_cache(64)
def into_zone(location: str, zone: str) -> Callable[[str], str]:
    """Turns a TIMESTAMP text of one zone into another's. Raises ValueError, also for an unknown zone."""
    if location == zone:
        return moment
    try:
        to_utc, there = utc_of(location), zone_of(zone)
    except LookupError:
        message = f"the zone {location[:_SHOWN]!r} of a TIMESTAMP is unknown: start the TiCDC server with --tz"
        raise ValueError(message) from None
    if there is UTC:
        return to_utc

    def converted(text: str) -> str:
        utc = to_utc(text)
        if utc.startswith("0000-00-00"):
            return utc
        found = in_another_zone(datetime.fromisoformat(utc[:_SECONDS]).replace(tzinfo=UTC), there)
        return found.strftime("%Y-%m-%d %H:%M:%S") + utc[_SECONDS:]

    return converted


def _binary(value: Any) -> str:
    return b64decode(value, validate=True).decode("latin-1")


def _timestamp(zone: str) -> Convert:
    def converted(value: Any) -> str:
        if not isinstance(value, _Moment):
            message = f"a TIMESTAMP has no zone: {value!r}"
            raise ValueError(message)  # noqa: TRY004 as all that is wrong with a value
        return into_zone(value.location, zone)(value.value)

    return converted


class RowReader:
    """Reads rows of one version of a table. `zone`: the one of TIMESTAMP texts in the form that tasks read."""

    def __init__(self, schema: SentSchema, zone: str) -> None:
        self.schema, self._zone = schema, zone
        self.known = {name for name, _ in schema.columns}
        self._convert: dict[str, Convert] = {}
        for name, kind in schema.columns:
            if "blob" in kind or "binary" in kind:
                self._convert[name] = _binary
            elif kind.startswith("timestamp"):
                self._convert[name] = _timestamp(zone)
        self._utc = {name: _timestamp("UTC") for name, kind in schema.columns if kind.startswith("timestamp")}
        self._check = self._checked()
        self.heads = {kind: self._head(kind) for kind in _KINDS}

    def _head(self, kind: str) -> bytes:
        """What a message begins with, in the form that tasks read, up to its images."""
        schema = self.schema
        told = {"database": schema.database, "table": schema.table, "pkNames": schema.key or None, "isDdl": False}
        return _encode({**told, "type": kind, "sql": "", "mysqlType": dict(schema.columns)})[:-1]

    def layout(self) -> RowLayout | None:
        """How the core reads these rows; None where it does not: names that JSON escapes."""
        schema, names = self.schema, "".join(self.known) + self._zone
        if not _NEED_ESCAPES.isdisjoint(f"{schema.database}{schema.table}{names}"):
            return None
        columns = [(name, self._conversion(name)) for name, _ in schema.columns]
        return RowLayout(*schema.identity, [self.heads[kind] for kind in _KINDS], self._zone, columns)

    def _conversion(self, name: str) -> Conversion:
        if name not in self._convert:
            return Conversion.AS_SENT
        return Conversion.FROM_MOMENT if name in self._utc else Conversion.FROM_BASE64

    def _checked(self) -> Callable[[msgspec.Raw], Any] | None:
        """Looks at names and types of an image's values, where none has to be converted; None where names are odd."""
        fields = [(f"f{i}", str | None | msgspec.UnsetType, msgspec.UNSET) for i in range(len(self.schema.columns))]
        rename = {f"f{i}": name for i, (name, _) in enumerate(self.schema.columns)}
        try:
            shape = msgspec.defstruct("Row", fields, rename=rename, gc=False, forbid_unknown_fields=True)
        except ValueError:
            return None
        return msgspec.json.Decoder(shape).decode

    def usual(self, raw: msgspec.Raw) -> bytes | msgspec.Raw:
        """As `image`. Raises ValueError, and what a decoder raises."""
        if self._convert or self._check is None:
            return _encode(self._converted(_decode_any(raw)))
        self._check(raw)
        return raw

    def image(self, raw: msgspec.Raw, where: str) -> bytes:
        """An image as Canal-JSON has it. Raises InputError with the position."""
        try:
            return bytes(self.usual(raw))
        except (*UNREADABLE, ValueError) as error:
            raise self._unfit(error, where) from None

    def _converted(self, row: dict[str, _Value]) -> Mapping[str, _Value]:
        convert = self._convert
        for name, value in row.items():
            if name not in self.known:
                message = f"its schema lacks column {name!r}"
                raise ValueError(message)
            if value is None:
                continue
            if name in convert:
                row[name] = convert[name](value)
            elif not isinstance(value, str):
                message = f"column {name!r} is no TIMESTAMP and has a zone"
                raise ValueError(message)
        return row

    def verify(self, raw: msgspec.Raw, checksum: int, where: str) -> None:
        """Compare a whole image with its checksum; of one that lacks columns nobody knows. Raises InputError."""
        try:
            row = self._stored_row(raw)
            found = row_checksum(self.schema.columns, row)
        except (*UNREADABLE, ValueError) as error:
            raise self._unfit(error, where) from None
        if found != checksum and self.known == row.keys():
            name = f"{self.schema.database}.{self.schema.table}"
            raise InputError(
                f"row of {name} differs from its checksum: {found}, sent {checksum}",
                where=where,
                hint="the row was damaged between TiKV and here: compare it with the upstream (`reconciler verify`)",
            )

    def _stored_row(self, raw: msgspec.Raw) -> Mapping[str, bytes | None]:
        """What the checksum is made of. Raises as `usual` does."""
        return {name: self._stored(name, value) for name, value in _decode_any(raw).items()}

    def _stored(self, name: str, value: _Value) -> bytes | None:
        if value is None:
            return None
        if name in self._utc:
            return str(self._utc[name](value)).encode()
        if name in self._convert:
            return b64decode(value, validate=True)  # type: ignore[arg-type]  # a text, or ValueError
        return str(value).encode()

    def _unfit(self, error: Exception, where: str) -> InputError:
        name = f"{self.schema.database}.{self.schema.table}"
        told = "a binary value is no base64" if isinstance(error, binascii.Error) else str(error)[:300]
        return InputError(f"row of {name} can't be read with schema version {self.schema.version}: {told}", where=where)
