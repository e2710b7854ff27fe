"""A file that SQLite can't open while another process, a reader too, rolls the same torn commit back: tried again.

With 8 files in a commit, a SIGKILL at its end and two processes that open the files, it came once in 102 times.
"""

import sqlite3
from pathlib import Path

import pytest

from consumer.demo.invariant_reader import InvariantReader
from ordering.errors import TargetBusyError, TargetError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.rows.values import ValueRules
from sinks.sqlite import journal
from sinks.sqlite.catalog import file_of
from sinks.sqlite.encoder import SqliteEncoder
from sinks.sqlite.session import SqliteSession, as_error


def _meeting() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    return error


def _session(directory: Path) -> SqliteSession:
    rules = ValueRules()
    return SqliteSession(directory, SqliteEncoder(rules), rules)


@pytest.mark.parametrize("attached", [False, True])
def test_who_meets_a_recovery_opens_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attached: bool) -> None:
    with sqlite3.connect(tmp_path / "d.sqlite") as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
    prepare, failed = journal.prepare, list[str]()

    def meets(connection: sqlite3.Connection, schema: str) -> None:
        if not failed and (schema != journal.MAIN) is attached:
            failed.append(schema)
            raise _meeting()
        prepare(connection, schema)

    monkeypatch.setattr(journal, "prepare", meets)
    session = _session(tmp_path)
    with pytest.raises(TargetBusyError, match="unable to open database file"):
        session.query("SELECT 1")
    session.close()
    assert session.query("SELECT COUNT(*) FROM d.t") == [(0,)]


def test_a_statement_that_meets_a_recovery_is_tried_again() -> None:
    assert isinstance(as_error(_meeting(), "SQLite in x"), TargetBusyError)


def test_what_is_no_file_is_not_tried_again(tmp_path: Path) -> None:
    file_of(tmp_path, PROGRESS_DATABASE).mkdir()
    with pytest.raises(TargetError, match="can't open") as refused:
        _session(tmp_path).query("SELECT 1")
    assert not isinstance(refused.value, TargetBusyError)


def test_the_reader_of_the_demo_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bank.sqlite"
    with sqlite3.connect(file) as connection:
        connection.executescript("CREATE TABLE a (bal INTEGER); INSERT INTO a VALUES (7)")
    connect, failed = sqlite3.connect, list[str]()

    def meets(place: str, *, uri: bool, timeout: float) -> sqlite3.Connection:
        if not failed:
            failed.append(place)
            raise _meeting()
        return connect(place, uri=uri, timeout=timeout)

    monkeypatch.setattr(sqlite3, "connect", meets)
    reader = InvariantReader(file, ["a"], 7)
    reader._look()
    assert (reader.looks, reader.wrong, failed) == (1, [], [f"{file.as_uri()}?mode=rw"])
