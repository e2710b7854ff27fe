"""Reads an Iceberg catalog as anybody does, with a driver of its database and pyiceberg alone."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from pyiceberg.table import StaticTable

from tests.embedded import PostgresServer
from tests.service.cells import SqliteCells, Tables

CATALOGS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.service)]


def lake_in(kind: str, place: Path, request: pytest.FixtureRequest) -> tuple[str, "IcebergCells"]:
    """The URI of a lake with a catalog of this kind, and a reader of it."""
    warehouse = place / "warehouse"
    if kind == "sqlite":
        catalog = place / "catalog.db"
        return f"iceberg+sqlite:///{catalog}?warehouse={warehouse}", IcebergCells(catalog)
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"lake_{uuid4().hex[:8]}"
    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    uri = urlsplit(server.uri)._replace(path=f"/{name}").geturl()
    return f"iceberg+{uri}?warehouse={warehouse}", IcebergCells(uri)


class IcebergCells(SqliteCells):
    """Decimals and times as the texts that upstream shows."""

    def __init__(self, catalog: Path | str, **s3: str) -> None:
        """`catalog`: a file, or the URI of a PostgreSQL database; `s3`: settings of pyiceberg's client of stores."""
        super().__init__(Path(catalog))
        self.catalog, self._s3 = catalog, {f"s3.{name.replace('_', '-')}": value for name, value in s3.items()}

    def ask(self, columns: str, table: str) -> list[dict[str, Any]]:
        """What a table beside the rows holds."""
        if isinstance(self.catalog, str):
            with psycopg.connect(self.catalog, row_factory=dict_row) as connection:
                return connection.execute(f"SELECT {columns} FROM ticdc_reconciler.{table}".encode()).fetchall()
        with closing(sqlite3.connect(self.catalog)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(f"SELECT {columns} FROM {table}")]

    def pointers(self) -> dict[str, str]:
        rows = self.ask("table_namespace, table_name, metadata_location", "iceberg_tables")
        return {f"{row['table_namespace']}.{row['table_name']}": row["metadata_location"] for row in rows}

    def checkpoint(self) -> int:
        return int(self.ask("checkpoint_ts", "checkpoint")[0]["checkpoint_ts"])

    def progress(self, changefeed: str) -> dict[str, Any]:
        return self.ask("*", f"checkpoint WHERE changefeed = '{changefeed}'")[0]

    def expected(self, kind: str, text: str) -> Any:
        if kind.startswith(("bigint", "bit")) and text.isdigit():
            return int(text)
        return _trimmed(text) if kind.startswith(("datetime", "timestamp")) else super().expected(kind, text)

    def tables(self, databases: Iterable[str]) -> Tables:
        wanted, found = {name.lower() for name in databases}, {}
        for name, pointer in self.pointers().items():
            if name.partition(".")[0].lower() in wanted:
                read = StaticTable.from_metadata(pointer, self._s3).scan().to_arrow()
                rows = [{column: _text(value) for column, value in row.items()} for row in read.to_pylist()]
                found[name] = read.column_names, rows
        return found

    def history(self, name: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Each snapshot of a table: the checkpoint that it names, and its rows."""
        table = StaticTable.from_metadata(self.pointers()[name], self._s3)
        for snapshot in table.snapshots():
            rows = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
            assert snapshot.summary is not None
            yield int(snapshot.summary["ticdc.checkpointTs"] or 0), rows


def _trimmed(moment: str) -> str:
    """Without the zeros at the end of a fraction: columns of microseconds don't tell how many upstream shows."""
    return moment.rstrip("0").rstrip(".") if "." in moment else moment


def _text(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, datetime):
        return _trimmed(value.replace(tzinfo=None).isoformat(" "))
    return str(value) if isinstance(value, date) else value
