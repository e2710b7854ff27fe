"""Losses that writers of MariaDB and PostgreSQL once made, put back in on real servers, without the nets of today.

The next proof, or the next reading of the scrub, has to say `different`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from sinks.mysql import catalog as mysql_catalog
from sinks.mysql import writer as mysql_writer
from sinks.postgres import writer as postgres_writer
from sinks.rows.tsv import decode_rows
from sinks.steps import Step
from tests.service.commands.test_prove import every, prove, verdicts
from tests.service.commands.test_scrub import Clock, rounds, scrub_of
from tests.service.local import Killed, LocalFeed
from tests.service.messages import delete, insert, typed, watermarks

__all__ = ["every"]
pytestmark = pytest.mark.service
FIRST = 1234567890123456700
UUIDS = [f"{i:08d}-1111-2222-3333-444455556666" for i in range(20)]


@dataclass(frozen=True)
class Loss:
    """What breaks, the table as somebody has made it, its rows, and what is sent in the window that loses some."""

    target: str
    breaks: Callable[[pytest.MonkeyPatch], None]
    table: str
    kind: str
    rows: tuple[object, ...]
    sent: Callable[[list[object]], list[Message]]


def deleted(keys: list[object]) -> list[Message]:
    """Half of the rows go."""
    return [delete("d.t", 20, id=key, v=1) for key in keys[: len(keys) // 2]]


def added(keys: list[object]) -> list[Message]:
    """Rows come, whose keys are none that is there."""
    return [insert("d.t", 20, id=key, v=2) for key in keys]


def decimals_are_compared_as_doubles(patch: pytest.MonkeyPatch) -> None:
    """Loss 1: `k IN ('1234567890123456700', ...)` takes every neighbour along."""
    patch.setattr(mysql_writer, "_EXACT", mysql_writer._EXACT | {"decimal"})
    patch.setattr(mysql_writer, "check_changed", lambda *_, **__: None)


def keys_are_cast_to_one_character(patch: pytest.MonkeyPatch) -> None:
    """Loss 2: `character` alone is `character(1)`."""
    equal = postgres_writer._equal
    patch.setattr(
        postgres_writer,
        "_equal",
        lambda c, value, text: equal(c, value.replace("::character(36)", "::character"), text),
    )


def identities_are_the_targets_own(patch: pytest.MonkeyPatch) -> None:
    """Loss 9: the column is left out, and the server counts by itself."""

    def copied(self: Any, group: Any, columns: Any) -> None:
        names = postgres_writer._names([column for column in columns if column.name != "id"])
        for payload in group.payloads():
            for row in decode_rows(payload):
                self._db.run(f"INSERT INTO {self._place} ({names}) VALUES (%s)", (row[1],))

    patch.setattr(postgres_writer.Writer, "_copy", copied)


def padded_keys_are_one(patch: pytest.MonkeyPatch) -> None:
    """Loss 10: `'b '` takes the place of `'b'`."""
    patch.setattr(mysql_writer, "_pads", lambda *_: [])
    patch.setattr(mysql_writer, "check_changed", lambda *_, **__: None)


def rows_are_in_no_transaction(patch: pytest.MonkeyPatch) -> None:
    """Loss 7: MyISAM keeps what was written before a crash, and the progress does not tell of it."""
    patch.setattr(mysql_catalog, "unfit_engine", lambda *_: None)


_BIN = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_IDENTITY = "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v INT"
_CHARACTER = "id CHARACTER(36) PRIMARY KEY, v INT"
_DECIMAL = "id DECIMAL(20,0) PRIMARY KEY, v INT"
_PADDED = f"id VARCHAR(9) {_BIN} PRIMARY KEY, v INT"
_NEIGHBOURS = tuple(range(FIRST, FIRST + 100))
LOSSES = [
    Loss("mariadb", decimals_are_compared_as_doubles, _DECIMAL, "decimal", _NEIGHBOURS, deleted),
    Loss("postgres", keys_are_cast_to_one_character, _CHARACTER, "char", (*UUIDS, "0"), deleted),
    Loss("postgres", identities_are_the_targets_own, _IDENTITY, "bigint", (), lambda _: added([5000, 5001])),
    Loss("mariadb", padded_keys_are_one, _PADDED, "varchar", ("a",), lambda _: added(["b", "b "])),
]


@pytest.mark.cells("loss", "way")
@pytest.mark.parametrize("way", ["prove", "scrub"])
@pytest.mark.parametrize(
    ("every", "loss"),
    [(one.target, one) for one in LOSSES],
    indirect=["every"],
    ids=[o.breaks.__name__ for o in LOSSES],
)
def test_it_is_found_by_the_next_proof(every: LocalFeed, loss: Loss, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every.make_database("d", f"CREATE TABLE t ({loss.table})")
    every.send([*(typed(insert("d.t", 4, id=key, v=1), id=loss.kind) for key in loss.rows), *watermarks(9)])
    every.apply()
    clock = Clock()
    scrub = scrub_of(every, clock)
    before = prove(every) if way == "prove" else rounds(scrub)
    assert verdicts(before) == {"t": "base"}
    clock.later()
    assert verdicts(prove(every) if way == "prove" else scrub.round()) == {"t": "equal"}
    loss.breaks(monkeypatch)
    every.send([*(typed(message, id=loss.kind) for message in loss.sent(list(loss.rows))), *watermarks(29)])
    every.apply()
    clock.later()
    assert verdicts(prove(every) if way == "prove" else scrub.round()) == {"t": "different"}


@pytest.mark.cells
@pytest.mark.parametrize("way", ["prove", "scrub"])
@pytest.mark.parametrize("every", ["mariadb"], indirect=True)
def test_rows_of_a_window_that_a_crash_has_ended_are_found(
    every: LocalFeed, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_are_in_no_transaction(monkeypatch)
    every.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=MyISAM")
    every.send([insert("d.t", 4, id=1, v=1), *watermarks(9)])
    every.apply()
    clock = Clock()
    scrub = scrub_of(every, clock)

    def looked() -> dict[str, str]:
        clock.later()
        return verdicts(prove(every) if way == "prove" else scrub.round())

    if way == "scrub":
        rounds(scrub)
    assert looked() == {"t": "base" if way == "prove" else "equal"}
    assert looked() == {"t": "equal"}

    def kill(step: Step) -> None:
        if step is Step.ROWS_WRITTEN:
            raise Killed

    every.send([*added([5, 6]), *watermarks(29)])
    assert not every.lives(kill)
    assert looked() == {"t": "different"}
    every.apply()
    assert looked() == {"t": "equal"}, "the window was done again"
