"""Dumps a database server of the MySQL family as Dumpling does: the same files, names, literals and metadata.

The form is Dumpling's (pingcap/tidb, `dumpling/export`: writer.go, writer_util.go, sql_type.go, metadata.go), read from
its source and tests: special comments first, one row a line, strings with seven escapes, binary columns in hexadecimal.
"""

import gzip
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cramjam
import crc32c
import pymysql
import zstandard

NAMES = "/*!40101 SET NAMES binary*/;\n"
KEYS = "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n"
_BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "geometry"}
_NUMBERS = {"integer", "bigint", "tinyint", "smallint", "mediumint", "int", "float", "double", "decimal"}
_SYSTEM = {"mysql", "sys", "information_schema", "performance_schema", "metrics_schema", "inspection_schema", "test"}
_ESCAPED = {0: b"\\0", 10: b"\\n", 13: b"\\r", 92: b"\\\\", 39: b"\\'", 34: b'\\"', 26: b"\\Z"}
_IN_NAMES = re.compile(r'[\x00-\x1f%"*./:<>?\\|]|-(?=(?i:schema))')
METADATA = """Started dump at: 2026-01-01 10:40:19
SHOW MASTER STATUS:
\tLog: tidb-binlog
\tPos: {tso}
\tGTID:

Finished dump at: 2026-01-01 10:40:20
"""
SNAPPY_HEAD = b"\xff\x06\x00\x00sNaPpY"


def snappy_framed(data: bytes) -> bytes:
    """Snappy's framing format, as golang/snappy's buffered writer makes it."""
    found = [SNAPPY_HEAD]
    for start in range(0, len(data), 65536):
        block = data[start : start + 65536]
        own = crc32c.crc32c(block)
        masked = ((own >> 15 | own << 17) + 0xA282EAD8) & 0xFFFFFFFF
        packed = bytes(cramjam.snappy.compress_raw(block))
        kind, body = (0, packed) if len(packed) < len(block) * 7 // 8 else (1, block)
        found.append(bytes([kind]) + (len(body) + 4).to_bytes(3, "little") + struct.pack("<I", masked) + body)
    return b"".join(found)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    ".snappy": snappy_framed,
}


@dataclass(frozen=True)
class Dumping:
    """How a dump is made; names of Dumpling's options."""

    filetype: str = "sql"
    rows: int = 0
    statement_size: int = 0
    escape_backslash: bool = True
    complete_insert: bool = False
    no_header: bool = False
    compress: str = ""
    separator: bytes = b","
    delimiter: bytes = b'"'
    null: bytes = rb"\N"

    def write(self, directory: Path, name: str, data: bytes, *, packed: bool = True) -> None:
        suffix = self.compress if packed else ""
        directory.joinpath(name + suffix).write_bytes(PACKERS[suffix](data))


def filename(name: str) -> str:
    return _IN_NAMES.sub(lambda match: f"%{ord(match[0]):02X}", name)


def ticked(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def connected(uri: str, **more: Any) -> "pymysql.Connection[Any]":
    parts = urlsplit(uri)
    return pymysql.connect(
        host=parts.hostname,
        port=parts.port or 4000,
        user=parts.username,
        password=parts.password or "",
        charset="utf8mb4",
        autocommit=True,
        conv=pymysql.converters.encoders,
        use_unicode=False,
        ssl_disabled=True,
        **more,
    )


Query = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def asking(uri: str) -> Iterator[Query]:
    """What asks a server, in UTC; values come as bytes."""
    with closing(connected(uri)) as connection, connection.cursor() as cursor:

        def query(sql: str) -> list[tuple[Any, ...]]:
            cursor.execute(sql)
            return list(cursor.fetchall())

        query("SET time_zone = '+00:00'")
        yield query


def dump(uri: str, directory: Path, tso: int, databases: Iterable[str], how: Dumping | None = None) -> Path:
    """Dump databases as they are now."""
    how = how or Dumping()
    directory.mkdir(parents=True)
    with asking(uri) as query:
        for database in databases:
            _database(query, directory, database, how)
    directory.joinpath("metadata").write_text(METADATA.format(tso=tso))
    return directory


def _database(query: Query, directory: Path, database: str, how: Dumping) -> None:
    ((_, created),) = query(f"SHOW CREATE DATABASE {ticked(database)}")
    how.write(directory, f"{filename(database)}-schema-create.sql", f"{NAMES}{created.decode()};\n".encode())
    for name, kind in query(f"SHOW FULL TABLES FROM {ticked(database)}"):
        table = name.decode()
        place, stem = f"{ticked(database)}.{ticked(table)}", f"{filename(database)}.{filename(table)}"
        if kind == b"VIEW":
            _view(query, directory, place, table, stem, how)
        elif kind == b"BASE TABLE":
            created = query(f"SHOW CREATE TABLE {place}")[0][1].decode()
            how.write(directory, f"{stem}-schema.sql", f"{NAMES}{created};\n".encode())
            _rows(query, directory, place, table, stem, how)


def _view(query: Query, directory: Path, place: str, view: str, stem: str, how: Dumping) -> None:
    created = query(f"SHOW CREATE VIEW {place}")[0][1].decode()
    columns = ",\n".join(f"{ticked(row[0].decode())} int" for row in query(f"SHOW COLUMNS FROM {place}"))
    how.write(
        directory, f"{stem}-schema.sql", f"{NAMES}CREATE TABLE {ticked(view)}(\n{columns}\n)ENGINE=MyISAM;\n".encode()
    )
    text = (
        f"DROP TABLE IF EXISTS {ticked(view)};\nDROP VIEW IF EXISTS {ticked(view)};\n"
        "SET @PREV_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT;\nSET character_set_client = utf8mb4;\n"
        f"{created};\nSET character_set_client = @PREV_CHARACTER_SET_CLIENT;\n"
    )
    how.write(directory, f"{stem}-schema-view.sql", (NAMES + text).encode())


def _rows(query: Query, directory: Path, place: str, table: str, stem: str, how: Dumping) -> None:
    every = query(f"SHOW FULL COLUMNS FROM {place}")
    columns = [row for row in every if row[6] not in (b"STORED GENERATED", b"VIRTUAL GENERATED")]
    generated = len(columns) < len(every)
    names = [row[0].decode() for row in columns]
    kinds = [re.split(r"[( ]", row[1].decode())[0] for row in columns]
    listed = ",".join(map(ticked, names))
    rows = query(f"SELECT {listed} FROM {place}")
    size = how.rows or max(1, len(rows))
    for number, start in enumerate(range(0, len(rows), size)):
        some = rows[start : start + size]
        index = f"{number:09d}0000" if how.rows else f"{number:09d}"
        if how.filetype == "csv":
            data = b"".join(_csv(names, kinds, some, how))
        else:
            head = f"INSERT INTO {ticked(table)}" + (f" ({listed})" if generated or how.complete_insert else "")
            data = b"".join(_sql(f"{head} VALUES\n".encode(), kinds, some, how))
        how.write(directory, f"{stem}.{index}.{how.filetype}", data)


def _sql(head: bytes, kinds: list[str], rows: list[tuple[Any, ...]], how: Dumping) -> Iterator[bytes]:
    yield (NAMES + KEYS).encode()
    yield head
    size = 0
    for number, row in enumerate(rows):
        text = b"(" + b",".join(_literal(k, v, how) for k, v in zip(kinds, row, strict=True)) + b")"
        size += len(text)
        last = number == len(rows) - 1
        ends = bool(how.statement_size) and size >= how.statement_size and not last
        yield text + (b";\n" if last or ends else b",\n")
        if ends:
            size = 0
            yield head


def _literal(kind: str, value: bytes | None, how: Dumping) -> bytes:
    if value is None:
        return b"NULL"
    if kind in _BINARY:
        return b"x'" + value.hex().encode() + b"'"
    if kind in _NUMBERS:
        return value
    if not how.escape_backslash:
        return b"'" + value.replace(b"'", b"''") + b"'"
    return b"'" + b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in value) + b"'"


def _csv(names: list[str], kinds: list[str], rows: list[tuple[Any, ...]], how: Dumping) -> Iterator[bytes]:
    if not how.no_header:
        yield how.separator.join(how.delimiter + _escaped(n.encode(), how) + how.delimiter for n in names) + b"\r\n"
    for row in rows:
        yield how.separator.join(_field(k, v, how) for k, v in zip(kinds, row, strict=True)) + b"\r\n"


def _field(kind: str, value: bytes | None, how: Dumping) -> bytes:
    if value is None:
        return how.null
    return value if kind in _NUMBERS else how.delimiter + _escaped(value, how) + how.delimiter


def _escaped(value: bytes, how: Dumping) -> bytes:
    special = (how.delimiter or how.separator)[:1]
    if how.escape_backslash:
        plain = {0: b"\\0", 10: b"\\n", 13: b"\\r", 92: b"\\\\", special[0]: b"\\" + special}
        return b"".join(plain.get(byte, bytes([byte])) for byte in value)
    return value.replace(how.delimiter, how.delimiter * 2) if how.delimiter else value
