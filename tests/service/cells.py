"""What a target's tables must hold, cell by cell, given the upstream's final state in MySQL's text protocol.

Two readers, one per kind of target: each turns an oracle's text into the value that its target must return, type
included, and reads the target without the project's own code.
"""

import json
import re
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import pymysql

VECTORS = Path(__file__).parent.parent / "vectors"
OURS = "ticdc_reconciler"
Oracle = Mapping[str, Mapping[str, Any]]
Tables = dict[str, tuple[list[str], list[dict[str, Any]]]]
_BINARY = re.compile(r"(var)?binary|\w*blob")
_INTEGER = re.compile(r"(tiny|small|medium|big)?int|year|bit")
_LARGEST = 2**63 - 1


def oracle(name: str) -> Oracle:
    """The upstream's final state of a recording; `bank` has two, of which this is TiDB's."""
    found: Oracle = json.loads((VECTORS / f"{name}.{'upstream' if name == 'bank' else 'final'}.json").read_text())
    return found


class Cells(Protocol):
    """One target as a reader sees it."""

    def expected(self, kind: str, text: str) -> Any:
        """The value of the target for an oracle's text of a column of this type."""
        ...

    def tables(self, databases: Iterable[str]) -> Tables:
        """Every table of these databases: columns in order, rows."""
        ...


class _OnServer(Protocol):
    def databases(self) -> set[str]: ...

    def drop(self, databases: Iterable[str]) -> None: ...

    def close(self) -> None: ...


_Some = TypeVar("_Some", bound=_OnServer)


@contextmanager
def emptied(cells: _Some) -> Iterator[_Some]:
    """A server's cells; the databases that come meanwhile are dropped at the end."""
    with closing(cells):
        before = cells.databases()
        try:
            yield cells
        finally:
            cells.drop(cells.databases() - before)


class SqliteCells:
    """A directory of SQLite files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def expected(self, kind: str, text: str) -> Any:
        if _BINARY.match(kind):
            return bytes.fromhex(text.removeprefix("0x"))
        if _INTEGER.match(kind):
            return int(text) if int(text) <= _LARGEST else text
        return float(text) if kind.startswith(("float", "double")) else text

    def databases(self) -> set[str]:
        return self.files().keys() - {OURS}

    def files(self) -> dict[str, Path]:
        return {unquote(path.stem): path for path in self.directory.glob("*.sqlite")}

    def tables(self, databases: Iterable[str]) -> Tables:
        found: Tables = {}
        for database in sorted(set(databases) & self.databases()):
            with closing(sqlite3.connect(self.files()[database])) as connection:
                connection.row_factory = sqlite3.Row
                names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                for (name,) in names:
                    cursor = connection.execute('SELECT * FROM "{}"'.format(name.replace('"', '""')))
                    columns = [column for column, *_ in cursor.description]
                    found[f"{database}.{name}"] = columns, [dict(row) for row in cursor]
        return found

    def run(self, database: str, statement: str) -> None:
        self.directory.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.directory / f"{database}.sqlite")) as connection:
            connection.executescript(statement)
            connection.commit()

    def progress(self, changefeed: str) -> dict[str, Any]:
        with closing(sqlite3.connect(self.directory / f"{OURS}.sqlite")) as connection:
            connection.row_factory = sqlite3.Row
            row = connection.execute("SELECT * FROM checkpoint WHERE changefeed = ?", (changefeed,)).fetchone()
            return dict(row)


class MariaDbCells:
    """A server of the MySQL family, read through the text protocol without any conversion."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        self._connection = pymysql.connect(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            password=parts.password or "",
            charset="utf8mb4",
            conv=pymysql.converters.encoders,
            cursorclass=pymysql.cursors.DictCursor,
            autocommit=True,
            ssl_disabled=True,
        )
        self.query("SET time_zone = '+00:00'")
        self._sorts_json = not re.search("mariadb|tidb", str(self.query("SELECT VERSION() AS v")[0]["v"]).lower())

    def expected(self, kind: str, text: str) -> Any:
        if _BINARY.match(kind):
            return bytes.fromhex(text.removeprefix("0x"))
        if kind.startswith("bit"):
            return int(text).to_bytes(-(-int(kind[4:].split(")", maxsplit=1)[0]) // 8))
        return self._read(kind, text)

    def _read(self, kind: str, value: Any) -> Any:
        """MySQL keeps the keys of JSON in an order of its own, and spells its numbers in its own way."""
        return _sorted_json(value) if kind.startswith("json") and self._sorts_json else _read(kind, value)

    def query(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def close(self) -> None:
        self._connection.close()

    def databases(self) -> set[str]:
        system = {"mysql", "information_schema", "performance_schema", "sys", OURS}
        return {str(row["Database"]) for row in self.query("SHOW DATABASES")} - system

    def tables(self, databases: Iterable[str]) -> Tables:
        found: Tables = {}
        for database in sorted(set(databases) & self.databases()):
            for row in self.query(f"SHOW FULL TABLES FROM {_named(database)} WHERE Table_type = 'BASE TABLE'"):
                name = str(next(iter(row.values())))
                place = f"{_named(database)}.{_named(name)}"
                kinds = {
                    str(column["Field"]): str(column["Type"]) for column in self.query(f"SHOW COLUMNS FROM {place}")
                }
                rows = self.query(f"SELECT {', '.join(_selected(*column) for column in kinds.items())} FROM {place}")
                read = [{c: None if v is None else self._read(kinds[c], v) for c, v in row.items()} for row in rows]
                found[f"{database}.{name}"] = list(kinds), read
        return found

    def run(self, database: str, statement: str) -> None:
        self.query(f"USE {_named(database)}")
        for part in filter(str.strip, statement.split(";")):
            self.query(part)

    def drop(self, databases: Iterable[str]) -> None:
        for database in databases:
            self.query(f"DROP DATABASE IF EXISTS {_named(database)}")

    def progress(self, changefeed: str) -> dict[str, Any]:
        return self.query(f"SELECT * FROM {OURS}.checkpoint WHERE changefeed = '{changefeed}'")[0]


def _sorted_json(text: str) -> str:
    """A JSON text whose keys are in order, and whose floats are spelled in one way."""
    return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)


def _named(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def _selected(column: str, kind: str) -> str:
    """A column as the server sends all that it stores: of a FLOAT it would send six digits."""
    name = _named(column)
    return f"{name} + 0e0 AS {name}" if kind.startswith("float") else name


def _read(kind: str, value: Any) -> Any:
    """A text of MySQL's protocol, from the oracle or a target, where the two may spell one value differently."""
    if kind.startswith("float"):
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    if kind.startswith("double"):
        return float(value)
    return int(value) if _INTEGER.match(kind) and not kind.startswith("bit") else value


def differences(upstream: Oracle, target: Cells) -> list[str]:
    """What is wrong with the target's tables, a line each, in the databases that the oracle names."""
    return list(_differences(upstream, target))


def _differences(upstream: Oracle, target: Cells) -> Iterable[str]:
    have = target.tables({name.split(".")[0] for name in upstream})
    yield from (f"{name}: not upstream" for name in sorted(set(have) - set(upstream)))
    for name, table in upstream.items():
        if name not in have:
            yield f"{name}: missing"
            continue
        columns, rows = have[name]
        kept = table["columns"] if isinstance(target, MariaDbCells) else sent_columns(table)
        if sorted(columns) != sorted(kept):
            yield f"{name}: columns {columns}, upstream {kept}"
            continue
        yield from _rows(name, table, rows, target, kept)


def sent_columns(table: Mapping[str, Any]) -> list[str]:
    """The columns of an oracle's table that messages hold: all but the virtual ones."""
    virtual = set(re.findall(r"^ *`((?:[^`]|``)*)` .* VIRTUAL\b", table["create"], re.MULTILINE))
    return [column for column in table["columns"] if column not in virtual]


def _rows(
    name: str, table: Mapping[str, Any], rows: list[dict[str, Any]], target: Cells, columns: list[str]
) -> Iterable[str]:
    kinds = dict(zip(table["columns"], table["types"], strict=True))
    upstream = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    wanted = [[None if row[c] is None else target.expected(kinds[c], row[c]) for c in columns] for row in upstream]
    want = sorted(map(repr, wanted))
    got = sorted(repr([row[column] for column in columns]) for row in rows)
    yield from (f"{name}: lacks {row}" for row in sorted(set(want) - set(got))[:5])
    yield from (f"{name}: has {row}" for row in sorted(set(got) - set(want))[:5])
    if len(want) != len(got):
        yield f"{name}: {len(got)} rows, upstream {len(want)}"
