"""A connection to DuckDB: all of a process's to one file share what is committed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError


class DuckSession:
    def __init__(self, path: str) -> None:
        self.where = f"DuckDB in {path}"
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = duckdb.connect(path, config={"threads": 1})
        except (OSError, duckdb.Error) as error:
            raise TargetUnreachableError(f"can't open {path}: {error}", where=self.where) from error

    def _execute(self, sql: str, parameters: Sequence[Any] | None) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql.replace("%s", "?"), list(parameters or ()))
        except duckdb.TransactionException as error:
            raise TargetBusyError(f"another transaction was first: {error}", where=self.where) from error
        except duckdb.Error as error:
            raise TargetError(f"the target refuses: {error}", where=self.where) from error

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """What changes rows answers with their number, DDL with nothing."""
        answer = self._execute(sql, parameters).fetchall()
        return int(answer[0][0]) if answer and len(answer[0]) == 1 and isinstance(answer[0][0], int) else 0

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        return sum(self.run(sql, row) for row in rows)

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        return self._execute(sql, parameters).fetchall()

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    def has_table(self, name: str) -> bool:
        look = "SELECT COUNT(*) FROM duckdb_tables() WHERE schema_name = 'ticdc_reconciler' AND table_name = %s"
        return bool(self.value(look, (name,)))

    def begin(self) -> None:
        self.run("BEGIN")

    def commit(self) -> None:
        self.run("COMMIT")

    def save_point(self) -> None:
        """Never called: `has_savepoints` is False."""

    def back_to_point(self) -> None:
        """Never called."""

    def rollback(self) -> None:
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.TransactionException:
            return  # none is open

    def close(self) -> None:
        self._connection.close()
