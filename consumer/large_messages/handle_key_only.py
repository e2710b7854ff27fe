"""Reads rows at their commitTs from the upstream (`large-message-handle-option = "handle-key-only"`).

A session's `tidb_snapshot` shows data and schema as of a TSO, as long as garbage collection has not passed it (TiDB
documentation, "Read Historical Data Using the System Variable tidb_snapshot").
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby

import msgspec
import pymysql

from consumer.large_messages.reference import BodyReference
from consumer.large_messages.upstream_values import SourceColumn, parameter_of, text_of
from ordering.errors import BodyMissingError, InputError, SourceError
from ordering.events import TableName
from ordering.rows.identity import commit_ts_of, key_values
from ordering.rows.net_effect import KeyChange
from ordering.timestamps import CommitTs, utc_text
from sinks.mysql.catalog import place_of, quoted
from sinks.mysql.connection import is_lost
from sinks.mysql.login import HINT as LOGIN_HINT
from sinks.mysql.login import PasswordKeptError
from sinks.mysql.tls import HINT, is_tls_fault
from sinks.mysql.wire import Line
from sinks.uri import TargetUri

_SETTINGS = "SET SESSION time_zone = %s, sql_mode = '', sql_select_limit = 18446744073709551615"
"""A server that is set otherwise leaves out rows, and columns of SHOW COLUMNS, without a word."""
_TOGETHER = 16
"""Rows of one transaction that one SELECT fetches: each may be as large as a transaction of TiDB."""
_COLLECTED = {8055, 9006}
_REFUSED = {1044, 1045, 1142, 1143, 1227, 3118}
_HINT = (
    "let TiCDC send it again with option claim-check or a larger max-message-bytes, or rebuild the target from a dump;"
    " a longer tidb_gc_life_time upstream leaves more time"
)

Wanted = tuple[KeyChange, BodyReference]
Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class UpstreamRows:
    """Where rows are fetched from. `time_zone`: the one in which messages hold TIMESTAMP."""

    uri: TargetUri
    time_zone: str

    def images(self, table: TableName, key: Sequence[str], wanted: Sequence[Wanted]) -> Iterator[KeyChange]:
        """The halves with their images, read transaction by transaction.

        Raises InputError, SourceError and BodyMissingError.
        """
        connection = self._connected(wanted[0][1])
        with closing(connection):
            ordered = sorted(wanted, key=lambda one: one[0][1])
            for commit_ts, some in groupby(ordered, key=lambda one: commit_ts_of(one[0][1])):
                read = _Snapshot(connection, table, tuple(key), commit_ts, self.uri.place)
                yield from read.images(list(some))

    def _connected(self, first: BodyReference) -> "pymysql.Connection[pymysql.cursors.Cursor]":
        zone = "+00:00" if self.time_zone.upper() == "UTC" else self.time_zone
        try:
            connection = Line(self.uri, conv=pymysql.converters.encoders)  # no decoders: values stay texts
            with connection.cursor() as cursor:
                cursor.execute(_SETTINGS, (zone,))
                if cursor.execute("SHOW VARIABLES LIKE 'tidb_enable_external_ts_read'"):
                    # as of a moment for all readers, whatever `tidb_snapshot` says
                    cursor.execute("SET SESSION tidb_enable_external_ts_read = 0")
        except pymysql.MySQLError as error:
            raise _as_error(error, self.uri.place, first) from error
        return connection

    @contextmanager
    def as_of(self, commit_ts: int, asker: BodyReference, what: str) -> Iterator["pymysql.cursors.Cursor"]:
        """Ask for data and schema as of a TSO; `what` is asked for, on behalf of the message of `asker`.

        Raises InputError for what is not to be had, SourceError for what is refused, BodyMissingError out of reach.
        """
        with closing(self._connected(asker)) as connection, connection.cursor() as cursor:
            try:
                cursor.execute("SET SESSION tidb_snapshot = %s", (str(commit_ts),))
                yield cursor
            except pymysql.MySQLError as error:
                raise _as_error(error, self.uri.place, asker, f"{what} at commitTs {commit_ts}") from error

    def check(self) -> str:
        """Read at a TSO of just now; what was found fine. Raises SourceError and BodyMissingError."""
        nobody = BodyReference("", "", 0, 0)
        with closing(self._connected(nobody)) as connection, connection.cursor() as cursor:
            try:
                cursor.execute("SELECT VERSION()")
                return f"upstream at {self.uri.place}: version {(cursor.fetchone() or ('?',))[0]}"
            except pymysql.MySQLError as error:
                raise _as_error(error, self.uri.place, nobody) from error


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The upstream's table at one commitTs."""

    connection: "pymysql.Connection[pymysql.cursors.Cursor]"
    table: TableName
    key: tuple[str, ...]
    commit_ts: CommitTs
    place: str

    def images(self, wanted: list[Wanted]) -> Iterator[KeyChange]:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("SET SESSION tidb_snapshot = %s", (str(self.commit_ts),))
                columns = self._columns(cursor)
                for start in range(0, len(wanted), _TOGETHER):
                    yield from self._some(cursor, columns, wanted[start : start + _TOGETHER])
        except pymysql.MySQLError as error:
            raise _as_error(error, self.place, wanted[0][1], self._title) from error

    @property
    def _title(self) -> str:
        return f"{self.table} at commitTs {self.commit_ts} ({utc_text(self.commit_ts)} UTC)"

    def _columns(self, cursor: "pymysql.cursors.Cursor") -> dict[str, SourceColumn]:
        """The columns that messages hold: virtual ones are not sent."""
        cursor.execute(f"SHOW COLUMNS FROM {place_of(self.table)}")
        found = [(row[0], row[1], row[5]) for row in cursor.fetchall()]
        return {name: SourceColumn(name, kind) for name, kind, extra in found if "VIRTUAL" not in extra}

    def _some(
        self, cursor: "pymysql.cursors.Cursor", columns: Mapping[str, SourceColumn], wanted: list[Wanted]
    ) -> Iterator[KeyChange]:
        try:
            parameters = [
                parameter_of(columns[name], str(text))
                for half, _ in wanted
                for name, text in zip(self.key, key_values(half[0]), strict=True)
            ]
        except (KeyError, ValueError) as error:
            raise self._missing(wanted[0][1]) from error
        picked = ", ".join(column.shown for column in columns.values())
        names, mark = ", ".join(map(quoted, self.key)), f"({', '.join(['%s'] * len(self.key))})"
        marks = ", ".join([mark] * len(wanted))
        rows_of = f"SELECT {picked} FROM {place_of(self.table)} WHERE ({names})".replace("%", "%%")  # noqa: S608 quoted
        cursor.execute(f"{rows_of} IN ({marks})", parameters)
        rows = (
            {c.name: text_of(c, value) for c, value in zip(columns.values(), row, strict=True)}
            for row in cursor.fetchall()
        )
        by_key: dict[Key, dict[str, str | None]] = {tuple(row[name] for name in self.key): row for row in rows}
        for (key, order, _, back), reference in wanted:
            row = by_key.get(tuple(key_values(key)))
            if row is None:
                raise self._missing(reference)
            yield key, order, msgspec.json.encode(row), back

    def _missing(self, reference: BodyReference) -> InputError:
        return InputError(
            f"the upstream has no such row in {self._title}",
            where=f"{reference.position}, upstream {self.place}",
            hint="source.upstream.uri is another cluster than the changefeed's, or one that was restored since",
        )


def _as_error(
    error: pymysql.MySQLError, place: str, reference: BodyReference, what: str = ""
) -> SourceError | InputError:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = error.args[1] if len(error.args) > 1 else str(error)
    where = f"{reference.position}, upstream {place}" if reference.topic else f"upstream {place}"
    if isinstance(error, PasswordKeptError):
        return SourceError(f"no login to the upstream: {text}", where=where, hint=LOGIN_HINT)
    if is_tls_fault(error):
        return SourceError(f"no encrypted connection to the upstream: {text}", where=where, hint=HINT)
    if is_lost(error):
        return BodyMissingError(f"the upstream is out of reach: {code} {text}", where=where)
    if code in _REFUSED:
        return SourceError(f"the upstream refuses us: {code} {text}", where=where, hint="grant SELECT on the tables")
    if code in _COLLECTED:
        return InputError(f"the upstream has garbage-collected {what}: {code} {text}", where=where, hint=_HINT)
    return InputError(f"the upstream can't show {what}: {code} {text}", where=where, hint=_HINT)
