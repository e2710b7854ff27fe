"""Reads the file as anybody does, for comparison with what upstream holds."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from tests.service.cells import SqliteCells, Tables


class DuckCells(SqliteCells):
    """Values are SQLite's: whole numbers, texts, bytes; only that whole numbers have no end."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.file = str(file)

    def expected(self, kind: str, text: str) -> Any:
        return int(text) if kind.startswith("bigint") else super().expected(kind, text)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(self.file, config={"threads": 1}) as connection:
            return connection.execute(statement).fetchall()

    def tables(self, databases: Iterable[str]) -> Tables:
        found: Tables = {}
        wanted = {name.lower() for name in databases}
        names = self.rows("SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal")
        for database, table in names:
            if database.lower() in wanted:
                with duckdb.connect(self.file, config={"threads": 1}) as connection:
                    read = connection.execute(f'SELECT * FROM "{database}"."{table}"')
                    columns = [one[0] for one in read.description or ()]
                    found[f"{database}.{table}"] = (
                        columns,
                        [dict(zip(columns, row, strict=True)) for row in read.fetchall()],
                    )
        return found

    def progress(self, changefeed: str) -> dict[str, Any]:
        select = f"SELECT checkpoint_ts FROM ticdc_reconciler.checkpoint WHERE changefeed = '{changefeed}'"
        return {"checkpoint_ts": self.rows(select)[0][0]}
