"""Views in PostgreSQL: made of tables, not of names as upstream's are, so they are created again around a DDL.

Each is kept as a statement with what it reads. Before a DDL the views over its tables go, afterwards they are made
again; one that can't be made now (its table is gone, say) is made once it can. What others granted on them is lost.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import TableName
from sinks.ddl.kept_definitions import Definitions, KnownView
from sinks.ddl.parse.statement import CHANGING_VIEWS, DdlKind, Statement, named
from sinks.ddl.parse.views import CannotSayError, View, read_view, tables_of, translated
from sinks.ddl.view_columns import ViewColumns
from sinks.postgres.catalog import of_one, read_tables
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl.indexes import note
from sinks.postgres.ddl.view_order import order_as_upstream
from sinks.postgres.names import checked, is_reserved, place, quoted
from sinks.rows.schema import Catalog

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp

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
        there = [name for name in sorted(self._concerned) if self._views[name].there]
        if there:
            yield f"DROP VIEW IF EXISTS {', '.join(map(place, there))}"

    def keep(self, statement: Statement, session: str, catalog: Catalog) -> Iterator[str]:
        """Keep the view of a CREATE VIEW, which `made` will make; or a note on why it can't be."""
        name = named(statement.tables[0])
        view = read_view(statement.sql)
        try:
            columns = ViewColumns(catalog, self._definitions, session, _OTHER, "postgres", self._texts())
            reads = frozenset(map(catalog.spelled, tables_of(view, session)))
            _check_own(name, view, reads)

            def settle(query: "exp.Expr") -> None:
                columns.settle(query)
                _check_names(query)
                order_as_upstream(query, columns)

            query = translated(view, session, "postgres", qualified=True, settle=settle)
        except CannotSayError as error:
            self._definitions.drop(name)
            yield note(f"left out: view {name}: {error}")
            return
        sql = f"CREATE VIEW {place(name)} {_columns(view)}AS {query}"
        self._definitions.put(name, KnownView(sql, frozenset(map(tuple, reads)), there=False))  # type: ignore[arg-type]
        self._concerned.add(name)

    def made(self, catalog: Catalog) -> Iterator[str]:
        """Make the views that are concerned and still kept, in whatever order they can be; tells of the others.

        `catalog`: as it was before the statement.
        """
        kept = self._definitions.views()
        waiting = {name: kept[name].view for name in sorted(self._concerned & kept.keys())}
        reasons = self._other_than_upstream(waiting, catalog)
        there = set[TableName]()
        for name, reason in reasons.items():
            del waiting[name]
            yield note(f"left out until its columns are as they were: view {name}: {reason}")
        while made := [name for name, sql in waiting.items() if self._could_make(name, sql, reasons)]:
            yield from (waiting.pop(name) for name in made)
            there.update(made)
        for name in self._concerned & kept.keys():
            if kept[name].there != (name in there):
                self._definitions.put(name, replace(kept[name], there=name in there))
        yield from (note(f"view {name} waits until it can be made: {reasons[name]}") for name in waiting)

    def _other_than_upstream(self, waiting: dict[TableName, str], catalog: Catalog) -> dict[TableName, str]:
        """The views whose columns have other types now, so that they would mean something else here; and why."""
        if self._kind not in CHANGING_VIEWS or not waiting:
            return {}
        tables = {name: schema for name, schema in catalog.tables.items() if name not in self._touched}
        for name in self._touched:
            tables |= read_tables(partial(self._about, name), {}, {})
        catalog, found = replace(catalog, tables=tables), dict[TableName, str]()
        text_of = self._texts()
        for name, sql in ((one, text) for one, text in waiting.items() if one not in self._touched):
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


def _check_own(name: TableName, view: View, reads: Iterable[TableName]) -> None:
    """Raise CannotSayError for a view over what the server has under the same name, or that it would call otherwise."""
    for one in reads:
        if is_reserved(one.database):
            raise CannotSayError(f"{one.database!r} is the server's own here, and not upstream's")
    _check_length(name.table, *view.columns)


def _check_names(query: "exp.Expr") -> None:
    from sqlglot import exp  # noqa: PLC0415

    _check_length(*(str(one.this) for one in query.find_all(exp.Identifier)))


def _check_length(*names: str) -> None:
    for name in names:
        try:
            checked(name)
        except TargetError as error:
            raise CannotSayError(error.fact) from error


def _columns(view: View) -> str:
    return f"({', '.join(map(quoted, view.columns))}) " if view.columns else ""
