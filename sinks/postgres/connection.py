"""One connection to a PostgreSQL server: session settings, COPY, and errors by who must act."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import psycopg

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.postgres.answers import CountedConnection
from sinks.server_error_hints import login_advice, postgres_advice
from sinks.uri import TargetUri

_CONNECT_TIMEOUT_S = 10
_NO_FILE = "/dev/null/none"
"""Else libpq looks for a password in a file of this machine, whichever server was named."""
_LOCK_WAIT_MS = 50_000
_SILENCE_MS = 60_000
"""A server that acknowledges nothing for so long is given up."""
_LOST_CLASSES = ("08", "53", "57", "58")
"""Connection, resources, operator's intervention, system (PostgreSQL manual, appendix A)."""
_LOST = {"25P03", "55006", "25006"}
"""Idle in transaction too long; a lock on an object in use; a server that takes no writes now, as in a failover."""
_BUSY_CLASS, _LOCK_NOT_AVAILABLE = "40", "55P03"
"""Deadlock or serialization failure; lock_timeout."""
_FOR_GOOD = re.compile(
    r"password authentication failed|does not exist|pg_hba\.conf|not permitted|SASL|no password|certificate"
    r"|does not support SSL|sslmode|alert|authentication method|channel binding"
)
"""What a server says before a login that will say so again: libpq gives such errors no SQLSTATE."""
_SESSION = {
    "search_path": "pg_catalog, pg_temp",  # nothing of ours is ever looked for, or made, in `public`
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",  # fewer round what is read; a role or a database may be set so
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",  # else types have other names in the catalog
    "array_nulls": "on",
    "transform_null_equals": "off",
    "row_security": "off",  # an error instead of rows that are passed over
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "plan_cache_mode": "force_custom_plan",  # a plan made while a table was empty reads all of it for ever after
    "statement_timeout": "0",
    "lock_timeout": str(_LOCK_WAIT_MS),
    "idle_in_transaction_session_timeout": "0",
    "client_min_messages": "warning",
}
_MARK = "ticdc_reconciler.session"
"""A setting of ours that tells our session from every other; a pooler may give each transaction another one."""
_ROLE = "session_replication_role"
_CHECKED = [*_SESSION, _ROLE, _MARK]
_SETTINGS = "SELECT " + ", ".join(f"current_setting('{name}', true)" for name in _CHECKED)
_BEGIN = f"BEGIN; {_SETTINGS}".encode()
"""In one message: the answer costs no round trip."""
_UNENDING = ["idle_session_timeout", "transaction_timeout"]
"""What ends a session since PostgreSQL 14 and 17: leadership is a lock of the session, and it may rest for hours."""


def _options(uri: TargetUri) -> dict[str, str]:
    """The URI's, and that libpq gives the password as it is to no server that TLS does not verify.

    It would to whoever asks for it (PostgreSQL manual, "Database Connection Control Functions", require_auth).
    """
    found = dict(uri.options)
    if not found.get("sslmode", "").startswith("verify"):
        found.setdefault("require_auth", "!password")
    return found


class PostgresConnection:
    """A psycopg connection in autocommit that raises our errors. Transactions are the caller's."""

    def __init__(self, uri: TargetUri) -> None:
        self.where, self._pointed = uri.place, False
        try:
            self._connection = CountedConnection.connect(
                host=uri.host,
                hostaddr="",  # else PGHOSTADDR, or the file of PGSERVICE, would lead to another server
                port=uri.port,
                user=uri.user,
                password=uri.password,
                passfile=_NO_FILE,
                dbname=uri.path,
                connect_timeout=_CONNECT_TIMEOUT_S,
                application_name="ticdc-reconciler",
                client_encoding="UTF8",
                keepalives_idle=30,
                tcp_user_timeout=_SILENCE_MS,
                autocommit=True,
                **_options(uri),  # type: ignore[arg-type]
            )
        except psycopg.Error as error:
            raise self._refused(error) from error
        self.query("SELECT set_config(name, '0', false) FROM pg_settings WHERE name = ANY(%s)", (_UNENDING,))
        self._silence_triggers()
        settings = {**_SESSION, _MARK: uuid4().hex}
        ((*self._set, role),) = self.query(
            "SELECT " + ", ".join(["set_config(%s, %s, false)"] * len(settings)) + ", current_setting(%s)",
            [*(x for kv in settings.items() for x in kv), _ROLE],
        )
        self._set.insert(-1, role)
        self.fires_nothing = role == "replica"

    def _silence_triggers(self) -> None:
        """Keep foreign keys and triggers from acting in this session: upstream sends what they did there (R5).

        Takes a superuser, or GRANT SET ON PARAMETER (15 and later); without that it stays as the server has it.
        """
        try:
            self._connection.execute(f"SET {_ROLE} = 'replica'".encode())
        except psycopg.errors.InsufficientPrivilege:
            return
        except psycopg.Error as error:
            raise self._as_error(error) from error

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Execute a statement; rows affected."""
        try:
            return self._connection.execute(sql.encode(), parameters).rowcount
        except psycopg.Error as error:
            raise self._as_error(error) from error

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        try:
            return self._connection.execute(sql.encode(), parameters).fetchall()
        except psycopg.Error as error:
            raise self._as_error(error) from error

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Execute a query; its rows as they come, and nothing else until the last one."""
        try:
            with self._connection.cursor() as cursor:
                yield from cursor.stream(sql.encode())
        except psycopg.Error as error:
            raise self._as_error(error) from error

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    def copy(self, sql: str, payloads: Iterable[bytes]) -> int:
        """Execute a COPY FROM STDIN with these bytes; rows copied."""
        try:
            with self._connection.cursor() as cursor:
                with cursor.copy(sql.encode()) as copy:
                    for payload in payloads:
                        copy.write(payload)
                return cursor.rowcount
        except psycopg.Error as error:
            raise self._as_error(error) from error

    def has_table(self, name: str) -> bool:
        """See `DatabaseSession.has_table`."""
        return self.value("SELECT to_regclass(%s) IS NOT NULL", (f"{PROGRESS_DATABASE}.{name}",)) is True

    def begin(self) -> None:
        """See `DatabaseSession.begin`. Raises TargetError in a session that is not as we have set it up.

        There rows would be changed by triggers and foreign keys, or passed over.
        """
        try:
            cursor = self._connection.execute(_BEGIN)
            cursor.nextset()
            found = cursor.fetchone()
        except psycopg.Error as error:
            raise self._as_error(error) from error
        self._pointed = False
        self._compare(found)

    def check_settings(self) -> None:
        """Raise TargetError, as `begin`, in a transaction that began otherwise."""
        self._compare(self.query(_SETTINGS)[0])

    def _compare(self, found: tuple[Any, ...] | None) -> None:
        if found == tuple(self._set):
            return
        self.rollback()
        pairs = zip(_CHECKED, found or (), self._set, strict=False)
        other = ", ".join(f"{name} is {is_!r}" for name, is_, ours in pairs if is_ != ours and name != _MARK)
        raise TargetError(
            "this transaction got another session of the server than the one that was set up for it, or somebody"
            " changed its settings" + (f": {other}" if other else ""),
            where=self.where,
            hint="a pooler in between pools transactions: let target.uri name the server itself, or let"
            " the pooler pool sessions (PgBouncer: pool_mode = session)",
        )

    def commit(self) -> None:
        """See `DatabaseSession.commit`.

        Of a transaction in which a statement failed, the server drops all: it says so, but not as an error.
        """
        try:
            said = self._connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            raise self._as_error(error) from error
        if said != "COMMIT":
            fact = f"the target did not commit: a statement of the transaction failed before ({said})"
            raise TargetError(fact, where=self.where)

    def save_point(self) -> None:
        """See `DatabaseSession.save_point`."""
        # one that is set again would lie on the former, which would stay
        self.run("RELEASE SAVEPOINT rows; SAVEPOINT rows" if self._pointed else "SAVEPOINT rows")
        self._pointed = True

    def back_to_point(self) -> None:
        """See `DatabaseSession.back_to_point`."""
        self.run("ROLLBACK TO SAVEPOINT rows")

    def rollback(self) -> None:
        """Drop the transaction; a connection that is gone has dropped it already."""
        if not self._connection.closed:
            try:
                self._connection.rollback()
            except psycopg.Error:
                self._connection.close()

    def close(self) -> None:
        """Close the socket."""
        self._connection.close()

    def _refused(self, error: psycopg.Error) -> TargetError:
        """Why there is no connection."""
        text = " ".join(str(error).split())
        if _FOR_GOOD.search(text):
            return TargetError(f"the target refuses: {text}", where=self.where, hint=login_advice(text))
        hint = "check host and port of target.uri, and that the server runs and can be reached from here"
        return TargetUnreachableError(f"the target is out of reach: {text}", where=self.where, hint=hint)

    def _as_error(self, error: psycopg.Error) -> TargetError:
        state, told = error.sqlstate or "", error.diag
        text = " ".join(filter(None, (state, told.message_primary, told.message_detail, _place(told.context)))) or str(
            error
        )
        if self._connection.closed or isinstance(error, psycopg.InterfaceError):
            return TargetUnreachableError(f"the target is out of reach: {text.strip()}", where=self.where)
        if state[:2] == _BUSY_CLASS or state == _LOCK_NOT_AVAILABLE:
            return TargetBusyError(f"the target asks to try again: {text}", where=self.where)
        if state[:2] in _LOST_CLASSES or state in _LOST:
            return TargetUnreachableError(f"the target is out of reach: {text}", where=self.where)
        return TargetError(
            f"the target refuses: {text}", where=self.where, hint=told.message_hint or postgres_advice(state)
        )


def _place(context: str | None) -> str:
    """Which line and column of a COPY, as the server says it."""
    lines = [line for line in (context or "").splitlines() if line.startswith("COPY")]
    return f"({lines[0]})" if lines else ""
