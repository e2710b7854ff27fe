"""Canal-JSON with TiDB's extension, field by field as TiCDC writes it.

What all messages of one table version share is encoded once; a message then is a handful of joined pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from consumer.demo.fake_ticdc.database import LOGICAL_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from consumer.demo.fake_ticdc.database import Column, DdlStatement, Row, Table

_JAVA_TYPES = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "bit": -7, "set": -7, "enum": 4, "year": 12,
    "float": 7, "double": 8, "decimal": 3, "date": 91, "time": 92, "datetime": 93, "timestamp": 93,
    "char": 1, "varchar": 12, "json": 12, "vector": 12, "binary": 2004, "varbinary": 2004,
    "tinytext": 2005, "text": 2005, "mediumtext": 2005, "longtext": 2005,
    "tinyblob": 2004, "blob": 2004, "mediumblob": 2004, "longblob": 2004,
}  # fmt: skip

_ROW = (
    b'{"id":0,"database":%b,"table":%b,"pkNames":%b,"isDdl":false,"type":"%b","es":%d,"ts":%d,"sql":"",'
    b'"sqlType":%b,"mysqlType":%b,"old":%b,"data":[%b],"_tidb":{"commitTs":%d}}'
)
_DDL = (
    b'{"id":0,"database":%b,"table":%b,"pkNames":null,"isDdl":true,"type":%b,"es":%d,"ts":%d,"sql":%b,'
    b'"sqlType":null,"mysqlType":null,"data":null,"old":null,"_tidb":{"commitTs":%d}}'
)
_WATERMARK = (
    b'{"id":0,"database":"","table":"","pkNames":null,"isDdl":false,"type":"TIDB_WATERMARK","es":%d,"ts":%d,"sql":"",'
    b'"sqlType":null,"mysqlType":null,"data":null,"old":null,"_tidb":{"watermarkTs":%d}}'
)


def watermark(ts: int, wall_ms: int) -> bytes:
    """Encode a watermark."""
    return _WATERMARK % (ts >> LOGICAL_BITS, wall_ms, ts)


def ddl_event(ddl: DdlStatement, commit_ts: int, wall_ms: int) -> bytes:
    """Encode a DDL."""
    database, table = (orjson.dumps(name) for name in ddl.subject)
    kind, sql = orjson.dumps(ddl.type), orjson.dumps(ddl.sql)
    return _DDL % (database, table, kind, commit_ts >> LOGICAL_BITS, wall_ms, sql, commit_ts)


class RowEncoder:
    """Encodes the row events of one table version; `columns` are those that are sent."""

    def __init__(self, table: Table, columns: Iterable[Column]) -> None:
        self._database = orjson.dumps(table.database)
        self._table = orjson.dumps(table.name)
        self._key_names = orjson.dumps(list(table.primary_key))
        types = [(name, _base_type(kind)) for name, kind, _ in columns]
        self._sql_types = orjson.dumps({name: _JAVA_TYPES[kind.split()[0]] for name, kind in types})
        turns = range(len(types))  # TiCDC's key order is random here; a rotation per commit will do
        self._mysql_types = [orjson.dumps(dict(types[turn:] + types[:turn])) for turn in turns]

    def encode(self, kind: bytes, commit_ts: int, wall_ms: int, *, old: Row | None, data: Row) -> bytes:
        """Encode one row event."""
        mysql_types = self._mysql_types[commit_ts % len(self._mysql_types)]
        before = b"null" if old is None else b"[%b]" % orjson.dumps(old)
        return _ROW % (
            self._database, self._table, self._key_names, kind, commit_ts >> LOGICAL_BITS, wall_ms,
            self._sql_types, mysql_types, before, orjson.dumps(data), commit_ts,
        )  # fmt: skip


def only_updated(old: Row, new: Row) -> Row:
    """Reduce an old image to the columns that changed, as `only-output-updated-columns` does."""
    return {name: value for name, value in old.items() if new[name] != value}


def only(columns: Iterable[str], row: Row) -> Row:
    """Reduce a row to some columns, as `delete-only-output-handle-key-columns` does."""
    return {name: row[name] for name in columns}


def _base_type(kind: str) -> str:
    """`varchar(20)` is sent as `varchar`, `decimal(10,2) unsigned` as `decimal unsigned`."""
    head, _, rest = kind.partition("(")
    return head + rest.partition(")")[2]
