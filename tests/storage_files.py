"""Canal-JSON messages written once more as the storage sink writes files, after TiCDC's writer.

A tool for tests, not TiCDC's own files: names, directories and values follow pingcap/ticdc, `pkg/cloudstorage` and
`pkg/sink/codec/csv`; the values are those that TiCDC's Canal-JSON encoder wrote. Every DDL begins a new version of
every table. Rows that were seen are flushed, and `metadata` written, whenever all partitions have passed a watermark.
"""

import json
import os
import re
from base64 import b64encode
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from consumer.demo.fake_ticdc.changefeed import Message
from tests.open_protocol import ACTIONS
from tests.simple_protocol import Body, canal_body, encoded, is_binary

Files = dict[str, bytes]
"""Files by path; a step is what is written until `metadata` is."""
_ROWS = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True)
class CsvOptions:
    """As in `[sink.csv]`."""

    delimiter: str = ","
    quote: str = '"'
    null: str = "\\N"
    binary: str = "base64"
    old_value: bool = False
    header: bool = False

    def section(self) -> dict[str, Any]:
        """The same in our config."""
        told = {"delimiter": self.delimiter, "quote": self.quote, "null": self.null}
        return {**told, "binary-encoding-method": self.binary, "output-old-value": self.old_value}


def csv_text(value: str, options: CsvOptions) -> str:
    """A text: quoted, or escaped."""
    if options.quote:
        return options.quote + value.replace(options.quote, options.quote * 2) + options.quote
    found, at = "", 0
    while at < len(value):
        char = value[at]
        if value.startswith(options.delimiter, at):
            found += "".join("\\" + one for one in options.delimiter)
            at += len(options.delimiter)
            continue
        found += {"\r": "\\r", "\n": "\\n", "\\": "\\\\"}.get(char, char)
        at += 1
    return found


_EXCHANGED = re.compile(r"EXCHANGE PARTITION .* WITH TABLE `(\w+)`\.`(\w+)`")
"""The file is that of the one table, where the message names the other (`ExtraTableName` in pingcap/ticdc)."""
_BARE = ("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit", "float", "double")


def csv_value(kind: str, value: str | None, options: CsvOptions) -> str:
    """A value as a field."""
    base = kind.split(" ", maxsplit=1)[0].partition("(")[0]
    if value is None:
        return options.null
    if base in _BARE:
        return repr(float(value)) if base == "double" else value
    if is_binary(kind):
        raw = value.encode("latin-1")
        return csv_text(raw.hex() if options.binary == "hex" else b64encode(raw).decode(), options)
    if base == "enum":
        return csv_text(f"m{value}" if value != "0" else "", options)
    if base == "set":
        return csv_text(",".join(f"m{n + 1}" for n in range(64) if int(value) >> n & 1), options)
    return csv_text(value, options)


def schema_column(name: str, kind: str, *, is_key: bool) -> Body:
    """A column of a schema file."""
    base, *flags = kind.split(" ")
    found: Body = {
        "ColumnName": name,
        "ColumnType": base.partition("(")[0].upper() + " UNSIGNED" * ("unsigned" in flags),
    }
    found |= {"ColumnIsPk": "true", "ColumnNullable": "false"} if is_key else {}
    return found | ({"ColumnElems": [f"m{n}" for n in range(1, 65)]} if base.startswith(("enum", "set")) else {})


@dataclass
class Storage:
    """Writes the history's files. `date`: the directory of a day; `rows`: of a file; `ids`: table ids as paths.

    `partitions`: physical partitions of each table, by the hash of a row's key.
    """

    messages: Sequence[Message]
    csv: CsvOptions | None = None
    date: str = "2026-01-01"
    rows: int = 100
    digits: int = 20
    ids: bool = False
    dispatcher: str = ""
    partitions: int = 0
    _bodies: list[Body] = field(init=False)
    _ddls: list[int] = field(init=False)
    _schemas: dict[tuple[str, str, int], Body] = field(init=False, default_factory=dict)
    _numbers: dict[str, int] = field(init=False, default_factory=dict)
    _written: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._bodies = [canal_body(message.value) for message in self.messages]
        self._ddls = sorted({b["_tidb"]["commitTs"] for b in self._bodies if b["isDdl"]})
        for body in self._bodies:
            if body["type"] in _ROWS and not body["isDdl"]:
                found = self._schemas.setdefault(self._identity(body), {"types": {}, "key": ()})
                found["types"] |= body["mysqlType"]
                found["key"] = tuple(body["pkNames"] or ())

    def version(self, commit_ts: int) -> int:
        """Of the tables at a row's commitTs."""
        before = bisect_left(self._ddls, commit_ts)
        return self._ddls[before - 1] if before else 2

    def _identity(self, body: Body) -> tuple[str, str, int]:
        return body["database"], body["table"], self.version(body["_tidb"]["commitTs"])

    def table_directory(self, database: str, table: str) -> str:
        return str(1000 + crc32(f"{database}.{table}".encode()) % 9000) if self.ids and table else f"{database}/{table}"

    def schema_file(self, identity: tuple[str, str, int], query: str = "", kind: int = 0) -> tuple[str, bytes]:
        """Path and content."""
        database, table, version = identity
        known = self._schemas.get(identity, {"types": {}, "key": ()})
        columns = [schema_column(name, kind, is_key=name in known["key"]) for name, kind in known["types"].items()]
        told = {"Table": table, "Schema": database, "Version": 1, "TableVersion": version, "Query": query, "Type": kind}
        told |= {"TableColumns": columns or None, "TableColumnsTotal": len(columns)}
        place = self.table_directory(database, table) if table else database
        digest = crc32(encoded([database, table, columns]))  # type: ignore[arg-type]
        return f"{place}/meta/schema_{version}_{digest:010d}.json", json.dumps(told, indent=4).encode()

    def _lasting(self) -> set[tuple[str, int]]:
        """The partitions that get watermarks until the end: a topic of one table ends with it."""
        ends = defaultdict[tuple[str, int], int](int)
        for message, body in zip(self.messages, self._bodies, strict=True):
            if body["type"] == "TIDB_WATERMARK":
                place = (message.topic, message.partition)
                ends[place] = max(ends[place], body["_tidb"]["watermarkTs"])
        last = max(ends.values())
        return {place for place, end in ends.items() if end == last}

    def steps(self) -> Iterator[Files]:
        """What is written until `metadata` moves, `metadata` last."""
        marks = dict.fromkeys(self._lasting(), 0)
        files: Files = {}
        waiting: dict[str, list[Body]] = {}
        reached = 0
        for message, body in zip(self.messages, self._bodies, strict=True):
            if body["type"] == "TIDB_WATERMARK":
                place = (message.topic, message.partition)
                if place in marks:
                    marks[place] = max(marks[place], body["_tidb"]["watermarkTs"])
                if min(marks.values()) > reached:
                    reached = min(marks.values())
                    files |= self._flushed(waiting)
                    yield {**files, "metadata": json.dumps({"checkpoint-ts": reached}).encode()}
                    files = {}
            elif body["isDdl"]:
                other = _EXCHANGED.search(body["sql"])
                database, table = other.groups() if other else (body["database"], body["table"])
                identity = (database, table, body["_tidb"]["commitTs"])
                path, content = self.schema_file(identity, body["sql"], ACTIONS[body["type"]])
                files[self._fresh(path)] = content
            else:
                waiting.setdefault(self._series(body, files), []).append(body)
        files |= self._flushed(waiting)
        yield files

    def _fresh(self, path: str) -> str:
        """The path, or another where two statements have one version."""
        while path in self._written:
            stem, _, digest = path.removesuffix(".json").rpartition("_")
            path = f"{stem}_{int(digest) + 1:010d}.json"
        self._written.add(path)
        return path

    def _series(self, body: Body, files: Files) -> str:
        """The directory of a row, with its schema file."""
        identity = self._identity(body)
        path, content = self.schema_file(identity)
        if path not in self._written:
            self._written.add(path)
            files[path] = content
        parts = [self.table_directory(*identity[:2]), str(identity[2]), self._partition(body), self.date]
        return "/".join(part for part in parts if part)

    def _partition(self, body: Body) -> str:
        """The id of a row's physical partition: each row of a key lies in one; "" where tables have none."""
        row = body["data"][0]
        key = [row.get(name) for name in body["pkNames"] or sorted(row)]
        return str(110 + crc32(encoded(key)) % self.partitions) if self.partitions else ""  # type: ignore[arg-type]

    def _flushed(self, waiting: dict[str, list[Body]]) -> Files:
        files: Files = {}
        for series, bodies in waiting.items():
            for start in range(0, len(bodies), self.rows):
                number = self._numbers[series] = self._numbers.get(series, 0) + 1
                infix = f"_{self.dispatcher}_" if self.dispatcher else ""
                name = f"CDC{infix}{number:0{self.digits}d}.{'csv' if self.csv else 'json'}"
                files[f"{series}/{name}"] = self._file(bodies[start : start + self.rows])
                files[f"{series}/meta/CDC.index"] = f"{name}\n".encode()
        waiting.clear()
        return files

    def _file(self, bodies: Iterable[Body]) -> bytes:
        if self.csv is None:
            return b"".join(encoded(body) + b"\r\n" for body in bodies)
        found = list(bodies)
        known = list(self._schemas[self._identity(found[0])]["types"])
        header = []
        if self.csv.header:
            meta = ["operation", "table", "schema", "commit-ts", *(["is-update"] if self.csv.old_value else [])]
            header = [self.csv.delimiter.join([f"ticdc-meta${name}" for name in meta] + known) + "\r\n"]
        return "".join(header + [line for body in found for line in self._csv_lines(body, known)]).encode()

    def _csv_lines(self, body: Body, columns: Sequence[str]) -> Iterator[str]:
        options = self.csv or CsvOptions()
        now, old = body["data"][0], (body["old"] or [{}])[0]
        # of a table without primary key the handle key is not known here
        moved = any(name in old and old[name] != now[name] for name in body["pkNames"] or old)
        halves = [("I" if body["type"] == "INSERT" else "D", now)]
        if body["type"] == "UPDATE":
            halves = [("U", now)]
            if options.old_value or moved:
                halves = [("D", {**now, **old}), ("I", now)]
        for op, image in halves:
            meta = [csv_text(text, options) for text in (op, body["table"], body["database"])]
            meta.append(str(body["_tidb"]["commitTs"]))
            meta += ["true" if body["type"] == "UPDATE" else "false"] if options.old_value else []
            fields = [csv_value(body["mysqlType"].get(c, ""), image.get(c), options) for c in columns]
            yield options.delimiter.join([*meta, *fields]) + "\r\n"


def write(files: Files, root: Path) -> None:
    """Write files below a directory."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


_STAMPS = re.compile(rb"(?<![0-9])[0-9]{18}(?![0-9])")
"""TSOs of our time."""


def write_dated(files: Files, root: Path, since_ms: int = 0) -> None:
    """Write files as of when what they hold was committed, by the last TSO in each, but not before a moment.

    What a restart of TiCDC repeats is written when it is repeated.
    """
    write(files, root)
    for path, content in files.items():
        if stamps := [int(found) for found in _STAMPS.findall(content)]:
            os.utime(root / path, ns=(max(max(stamps) >> 18, since_ms) * 1_000_000,) * 2)
