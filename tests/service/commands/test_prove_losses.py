"""Losses that a run once made without an error, put back in one by one, the nets that catch them today taken away.

What each did to the rows is done here by the code that writes them; the next proof, or the next reading of the scrub,
has to say `different`.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ordering.drift import summed
from sinks.rows.schema import TableSchema
from sinks.sqlite import dialect as sqlite_dialect
from sinks.sqlite import row_statements
from sinks.sqlite.encoder import SqliteEncoder, decode_rows
from sinks.target_session import TargetSession
from sinks.unit_rows import UnitRows
from tests.service import proof_histories
from tests.service.commands.test_prove import feed, prove, verdicts
from tests.service.commands.test_scrub import Clock, rounds, scrub_of
from tests.service.local import LocalFeed
from tests.service.messages import ddl, delete, insert, update, watermarks

__all__ = ["feed"]
pytestmark = pytest.mark.service
Breaks = Callable[[pytest.MonkeyPatch], None]


def a_delete_takes_neighbours_along(patch: pytest.MonkeyPatch) -> None:
    """As MySQL did where DECIMAL keys were compared as doubles."""
    made = row_statements.delete

    def wider(schema: TableSchema, key: tuple[str, ...]) -> str:
        return made(schema, key).partition(" WHERE ")[0] + " WHERE abs(id - ?1) < 2"

    patch.setattr(row_statements, "delete", wider)


def a_delete_misses_its_row(patch: pytest.MonkeyPatch) -> None:
    """As PostgreSQL did where keys were cast to `character(1)`."""
    made = row_statements.delete
    patch.setattr(row_statements, "delete", lambda schema, key: f"{made(schema, key)} AND 0")


def progress_is_saved_without_rows(patch: pytest.MonkeyPatch) -> None:
    """As SQLite did in WAL mode on a full disk."""
    patch.setattr(UnitRows, "_written", lambda *_: summed(()))


def rows_are_written_without_progress(patch: pytest.MonkeyPatch) -> None:
    """As MyISAM did: rows of the future."""
    patch.setattr(TargetSession, "save", lambda *_: None)


def a_column_gets_values_of_the_targets_own(patch: pytest.MonkeyPatch) -> None:
    """As PostgreSQL's identity columns did."""
    _encode_with(patch, lambda row: [*row[:1], 1, *row[2:]] if len(row) > 1 else row)


def keys_are_folded(patch: pytest.MonkeyPatch) -> None:
    """As collations do that pad or fold: one row overwrites another."""
    _encode_with(patch, lambda row: [one.lower() if isinstance(one, str) else one for one in row])


def _encode_with(patch: pytest.MonkeyPatch, change: Callable[[list[Any]], list[Any]]) -> None:
    made = SqliteEncoder.encode

    def encode(self: SqliteEncoder, columns: Any, rows: Any) -> bytes:
        return msgspec.msgpack.encode([change(row) for row in decode_rows(made(self, columns, rows))])

    patch.setattr(SqliteEncoder, "encode", encode)


LOSSES: list[Breaks] = [
    a_delete_takes_neighbours_along,
    a_delete_misses_its_row,
    progress_is_saved_without_rows,
    rows_are_written_without_progress,
    a_column_gets_values_of_the_targets_own,
    keys_are_folded,
]


def sent(feed: LocalFeed) -> None:
    """Rows that come, change and go; one window."""
    keys = ("a", "A", "b", "B")
    feed.send([
        *(delete("d.t", 20, id=i, v=i, s="x") for i in (100, 104)),
        *(update("d.t", 21, {"v": i}, id=i, v=-i, s="x") for i in (106, 107)),
        *(insert("d.t", 22, id=i, v=i, s="x") for i in (200, 201)),
        *(insert("d.k", 23, id=key, v=i) for i, key in enumerate(keys)),
        *watermarks(29),
    ])  # fmt: skip


@pytest.mark.cells("loss", "way")
@pytest.mark.parametrize("way", ["prove", "scrub"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_it_is_found_by_the_next_proof(
    feed: LocalFeed, loss: Breaks, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    feed.send([ddl("d.t", 2, "CREATE TABLE `t` (id INT PRIMARY KEY, v INT, s VARCHAR(10))")])
    feed.send([ddl("d.k", 3, "CREATE TABLE `k` (id VARCHAR(9) PRIMARY KEY, v INT)")])
    feed.send([*(insert("d.t", 4, id=i, v=i, s="x") for i in range(100, 110)), *watermarks(9)])
    feed.apply()
    clock = Clock()
    scrub = scrub_of(feed, clock)
    found = prove(feed) if way == "prove" else rounds(scrub)
    assert set(verdicts(found).values()) == {"equal"}
    monkeypatch.setattr(sqlite_dialect, "check_changed", lambda *_, **__: None)
    loss(monkeypatch)
    sent(feed)
    feed.apply()
    clock.later()
    found = prove(feed) if way == "prove" else scrub.round()
    assert "different" in verdicts(found).values()


def test_histories_with_crashes_give_no_false_alarm_and_each_change_by_hand_is_named(tmp_path: Any) -> None:
    """A sample; `python -m tests.service.proof_histories` plays thousands."""
    counts = proof_histories.play(4, 7, tmp_path)
    assert counts["kills"] > 1
    assert sum(counts[kind] for kind in ("cell", "lost row", "foreign row", "moved row")) >= 3
