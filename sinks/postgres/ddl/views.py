"""Views in PostgreSQL: made of tables, not of names as upstream's are, so they are created again around a DDL.

Each is kept as a statement with what it reads. Before a DDL the views over its tables go, afterwards they are made
again; one that can't be made now (its table is gone, say) is made once it can. What others granted on them is lost.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import TableName
from sinks.ddl.kept_definitions import Definitions, KnownView
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.ddl.parse.views import CannotSayError, View, read_view, tables_of, translated
from sinks.ddl.view_columns import ViewColumns
from sinks.postgres.catalog import of_one, read_tables
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl.indexes import note
from sinks.postgres.names import place, quoted
from sinks.rows.schema import Catalog

_CONCERNED = {
    DdlKind.CREATE_TABLE, DdlKind.DROP_TABLE, DdlKind.RENAME_TABLE, DdlKind.ALTER_TABLE, DdlKind.DROP_DATABASE,
    DdlKind.CREATE_VIEW, DdlKind.DROP_VIEW,
}  # fmt: skip

_OTHER = frozenset({"bit", "enum", "set", "json"})
"""Types whose columns are compared otherwise upstream."""


class Views:
    """The kept views around one placed statement."""

    def __init__(self, statement: Statement, definitions: Definitions, db: PostgresConnection) -> None:
        self._definitions, self._db = definitions, db
        self._views = definitions.views() if statement.kind in _CONCERNED else {}
        pairs = (name for pair in statement.renames for name in pair)
        touched = {named(reference) for reference in (*statement.tables, *pairs)}
        if statement.kind is DdlKind.DROP_DATABASE:
            known = {name for name in self._views if name.database == statement.database}
            read = {TableName(*r) for view in self._views.values() for r in view.reads if r[0] == statement.database}
            touched = known | read
        self._kind, self._touched = statement.kind, touched
        self._concerned = self._over(touched)

    def _over(self, touched: set[TableName]) -> set[TableName]:
        """The views so named, over tables so named, and over those views."""
        found: set[TableName] = set()
        while more := {n for n, v in self._views.items() if n in touched or touched & {TableName(*r) for r in v.reads}}:
            if more <= found:
                break
            found |= more
            touched = touched | more
        return found

    def dropped(self) -> Iterator[str]:
        """What takes the concerned views away."""
        if self._concerned:
            yield f"DROP VIEW IF EXISTS {', '.join(map(place, sorted(self._concerned)))}"

    def keep(self, statement: Statement, session: str, catalog: Catalog) -> Iterator[str]:
        """Keep the view of a CREATE VIEW, which `made` will make; or a note on why it can't be."""
        name = named(statement.tables[0])
        view = read_view(statement.sql)
        try:
            settle = ViewColumns(catalog, self._definitions, session, _OTHER, "postgres", self._texts()).settle
            query = translated(view, session, "postgres", qualified=True, settle=settle)
            reads = frozenset(map(catalog.spelled, tables_of(view, session)))
        except CannotSayError as error:
            self._definitions.drop(name)
            yield note(f"left out: view {name}: {error}")
            return
        sql = f"CREATE VIEW {place(name)} {_columns(view)}AS {query}"
        self._definitions.put(name, KnownView(sql, frozenset(map(tuple, reads))))  # type: ignore[arg-type]
        self._concerned.add(name)

    def made(self, catalog: Catalog) -> Iterator[str]:
        """Make the views that are concerned and still kept, in whatever order they can be; tells of the others.

        `catalog`: as it was before the statement.
        """
        kept = self._definitions.views()
        waiting = {name: kept[name].view for name in sorted(self._concerned & kept.keys())}
        reasons = self._other_than_upstream(waiting, catalog)
        for name, reason in reasons.items():
            del waiting[name]
            yield note(f"left out until its columns are as they were: view {name}: {reason}")
        while made := [name for name, sql in waiting.items() if self._could_make(name, sql, reasons)]:
            yield from (waiting.pop(name) for name in made)
        yield from (note(f"view {name} waits until it can be made: {reasons[name]}") for name in waiting)

    def _other_than_upstream(self, waiting: dict[TableName, str], catalog: Catalog) -> dict[TableName, str]:
        """The views whose columns have other types now, so that they would mean something else here; and why."""
        if self._kind not in {DdlKind.CREATE_TABLE, DdlKind.ALTER_TABLE, DdlKind.RENAME_TABLE} or not waiting:
            return {}
        tables = {name: schema for name, schema in catalog.tables.items() if name not in self._touched}
        for name in self._touched:
            tables |= read_tables(partial(self._about, name), {}, {})
        catalog, found = replace(catalog, tables=tables), dict[TableName, str]()
        text_of = self._texts()
        for name, sql in waiting.items():
            columns = ViewColumns(catalog, self._definitions, name.database, _OTHER, "postgres", text_of)
            found[name] = columns.why_not_any_more(sql)
        return {name: reason for name, reason in found.items() if reason}

    def _texts(self) -> Callable[[TableName], str]:
        """What tells a kept view's text, "" of another name; they are decoded once."""
        texts = {name: kept.view for name, kept in self._definitions.views().items()}
        return lambda name: texts.get(name, "")

    def _about(self, table: TableName, sql: str) -> list[tuple[Any, ...]]:
        return self._db.query(of_one(sql), tuple(table))

    def _could_make(self, name: TableName, sql: str, reasons: dict[TableName, str]) -> bool:
        self._db.run("SAVEPOINT view")
        try:
            self._db.run(sql)
        except TargetUnreachableError:
            raise
        except TargetError as error:
            reasons[name] = error.fact
            self._db.run("ROLLBACK TO SAVEPOINT view")
            return False
        self._db.run("RELEASE SAVEPOINT view")
        return True


def _columns(view: View) -> str:
    return f"({', '.join(map(quoted, view.columns))}) " if view.columns else ""
