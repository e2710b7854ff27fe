"""Reads an Iceberg catalog as anybody does, with sqlite3 and pyiceberg alone."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable

from tests.service.cells import SqliteCells, Tables


class IcebergCells(SqliteCells):
    """Decimals and times as the texts that upstream shows."""

    def __init__(self, catalog: Path, **s3: str) -> None:
        """`s3`: what pyiceberg's own client of stores is told."""
        super().__init__(catalog)
        self.catalog, self._s3 = catalog, {f"s3.{name.replace('_', '-')}": value for name, value in s3.items()}

    def pointers(self) -> dict[str, str]:
        with closing(sqlite3.connect(self.catalog)) as connection:
            rows = connection.execute("SELECT table_namespace, table_name, metadata_location FROM iceberg_tables")
            return {f"{database}.{table}": pointer for database, table, pointer in rows}

    def checkpoint(self) -> int:
        with closing(sqlite3.connect(self.catalog)) as connection:
            return int(connection.execute("SELECT checkpoint_ts FROM checkpoint").fetchone()[0])

    def progress(self, changefeed: str) -> dict[str, Any]:
        with closing(sqlite3.connect(self.catalog)) as connection:
            connection.row_factory = sqlite3.Row
            return dict(connection.execute("SELECT * FROM checkpoint WHERE changefeed = ?", (changefeed,)).fetchone())

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
