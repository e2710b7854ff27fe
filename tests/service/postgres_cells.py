"""A PostgreSQL database as a reader sees it, through its driver alone."""

import json
import re
import struct
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.numeric import FloatLoader

from tests.service.cells import OURS, Tables

_INTEGER = re.compile(r"(tiny|small|medium|big)?int|year")
_BINARY = re.compile(r"(var)?binary|\w*blob")
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_TIME = re.compile(r"(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")
_SYSTEM = ("information_schema", "public", OURS)


def canonical_json(text: str) -> str:
    """JSON with its numbers by value: 1e100 and a one with a hundred zeros are the same, and so are 0 and -0.0."""
    value = json.loads(text, parse_int=Decimal, parse_float=Decimal)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_number)


def _number(number: Decimal) -> str:
    whole, _, fraction = f"{number:f}".partition(".")
    found = f"{whole}.{fraction.rstrip('0')}".rstrip(".")
    return "0" if found == "-0" else found


class Float32(FloatLoader):
    """Two texts may stand for one 32-bit float."""

    def load(self, data: Any) -> float:
        return single(float(bytes(data)))


def single(number: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", number))[0]
    return found


def interval(text: str) -> timedelta:
    """A TIME."""
    parts = _TIME.fullmatch(text)
    assert parts, text
    sign, hours, minutes, seconds, fraction = parts.groups(default="")
    found = timedelta(
        hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=int(fraction[:6].ljust(6, "0"))
    )
    return -found if sign else found


class PostgresCells:
    """A database: schemas are upstream's databases."""

    def __init__(self, uri: str) -> None:
        self._connection = psycopg.connect(uri, autocommit=True, row_factory=dict_row, prepare_threshold=None)
        self._connection.execute("SET timezone = 'UTC'")
        self._connection.adapters.register_loader("float4", Float32)
        psycopg.types.json.set_json_loads(lambda text: canonical_json(bytes(text).decode()), self._connection)

    def expected(self, kind: str, text: str) -> Any:  # noqa: PLR0911 a line a kind of type
        if _BINARY.match(kind):
            return bytes.fromhex(text.removeprefix("0x"))
        if kind.startswith("bigint") and "UNSIGNED" in kind.upper():
            return Decimal(text)
        if _INTEGER.match(kind):
            return int(text)
        if kind.startswith("bit"):
            return format(int(text), "b").zfill(int(kind[4:].split(")", maxsplit=1)[0]))
        if kind.startswith("decimal"):
            return Decimal(text)
        if kind.startswith("float"):
            return single(float(text))
        if kind.startswith("double"):
            return float(text)
        if kind.startswith("json"):
            return canonical_json(text)
        try:
            return self._moment(kind, text)
        except ValueError:  # zero and partial dates, which land as NULL
            return None

    @staticmethod
    def _moment(kind: str, text: str) -> Any:
        if kind.startswith("datetime"):
            return datetime.fromisoformat(text)
        if kind.startswith("timestamp"):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        if kind.startswith("date"):
            return date.fromisoformat(text)
        return interval(text) if kind.startswith("time") else text

    def query(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
        cursor = self._connection.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self._connection.close()

    def databases(self) -> set[str]:
        rows = self.query("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'")
        return {str(row["nspname"]) for row in rows} - {*_SYSTEM}

    def tables(self, databases: Iterable[str]) -> Tables:
        found: Tables = {}
        for database in sorted(set(databases) & self.databases()):
            look = (
                "SELECT table_name, column_name FROM information_schema.columns NATURAL JOIN information_schema.tables"
            )
            look += " WHERE table_schema = %s AND table_type = 'BASE TABLE'"
            columns: dict[str, list[str]] = {}
            for row in self.query(look + " ORDER BY ordinal_position", (database,)):
                columns.setdefault(row["table_name"], []).append(row["column_name"])
            for name, own in columns.items():
                found[f"{database}.{name}"] = own, self.query(f"SELECT * FROM {quoted(database)}.{quoted(name)}")
        return found

    def run(self, database: str, statement: str) -> None:
        self.query(f"CREATE SCHEMA IF NOT EXISTS {quoted(database)}")
        self.query(f"SET search_path = {quoted(database)}")
        self.query(_NAME.sub(lambda name: quoted(name[1].replace("``", "`")), statement))
        self.query("SET search_path = public")

    def drop(self, databases: Iterable[str]) -> None:
        for database in databases:
            self.query(f"DROP SCHEMA IF EXISTS {quoted(database)} CASCADE")

    def progress(self, changefeed: str) -> dict[str, Any]:
        return self.query(f"SELECT * FROM {OURS}.checkpoint WHERE changefeed = %s", (changefeed,))[0]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
