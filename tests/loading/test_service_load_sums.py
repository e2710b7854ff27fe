"""A load's own sums are the base of the first proof: it compares what the target holds with what the dump says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from consumer.load import write_file
from consumer.load.run import Load, LoadOptions
from consumer.proof.loaded import ROUNDED
from consumer.proof.report import Proof
from ordering.events import TableName
from sinks.sqlite.encoder import SqliteEncoder, decode_rows
from tests.loading.test_service_load_kills import ROWS, TSO, Killed, Stop, write_dump
from tests.service.commands.test_prove import every, feed, prove, reason, verdicts
from tests.service.commands.test_scrub import rounds, scrub_of
from tests.service.local import LocalFeed
from tests.service.messages import delete, insert, update, watermarks

__all__ = ["every", "feed"]
pytestmark = pytest.mark.service
SINCE = (TSO >> 18) - (1767225600000) + 10
"""The number of a test's transaction after the dump's TSO."""
A = TableName("d", "a")


def load(feed: LocalFeed, dump: Path, observe: Any = None, *, sums: bool = True) -> None:
    Load(feed.config, LoadOptions(dump, sums=sums), observe=observe or Stop(0)).run()


def changed(number: int) -> list[Any]:
    """Rows of the dump that change and go, and new ones; what the dump holds comes again first."""
    return [
        insert("d.a", number - 50, id=3, v="v3"),
        update("d.a", number, {"v": "v1"}, id=1, v="new"),
        delete("d.a", number, 1, id=2, v="v2"),
        insert("d.b", number + 1, id=900, v=None),
        *watermarks(number + 2),
    ]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_file, "BATCH_ROWS", 10)


def keyed(proof: Proof) -> dict[str, str]:
    """The verdicts of the tables that have a key."""
    return {name: found for name, found in verdicts(proof).items() if name != "c"}


@pytest.mark.usefixtures("small")
def test_the_first_proof_compares_with_what_the_dump_says(every: LocalFeed, tmp_path: Path) -> None:
    every.with_(filter={"force-replicate": True})
    load(every, write_dump(tmp_path / "dump"))
    every.send(changed(SINCE))
    every.apply()
    found = prove(every)
    assert keyed(found) == {"a": "equal", "b": "equal"}, json.dumps(found.as_json())
    assert found.since == TSO
    assert found.tables[A][1].rows_found == 2 * ROWS - 1
    every.cells.run("d", "UPDATE a SET v = 'other' WHERE id = 7")
    assert keyed(prove(every)) == {"a": "different", "b": "equal"}


def test_a_proof_before_the_first_run_compares_too(feed: LocalFeed, tmp_path: Path) -> None:
    load(feed, write_dump(tmp_path / "dump"))
    assert verdicts(prove(feed)) == {"a": "equal", "b": "equal"}
    feed.cells.run("d", "DELETE FROM b WHERE id = 7")
    assert verdicts(prove(feed)) == {"a": "equal", "b": "different"}


def test_the_background_goes_on_from_it(feed: LocalFeed, tmp_path: Path) -> None:
    feed.with_(proof={"enabled": True})
    load(feed, write_dump(tmp_path / "dump"), sums=False)
    feed.send(changed(SINCE))
    feed.apply()
    assert verdicts(rounds(scrub_of(feed))) == {"a": "equal", "b": "equal"}


@pytest.mark.usefixtures("small")
def test_it_is_the_same_wherever_the_load_was_killed(feed: LocalFeed, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    ended = 0
    while True:
        ended += 1
        try:
            load(feed, dump, Stop(ended))
        except Killed:
            continue
        break
    assert ended > 10
    assert verdicts(prove(feed)) == {"a": "equal", "b": "equal"}


def test_without_sums_the_first_proof_takes_a_base(feed: LocalFeed, tmp_path: Path) -> None:
    load(feed, write_dump(tmp_path / "dump"), sums=False)
    found = prove(feed)
    assert (verdicts(found), reason(found, A)) == ({"a": "base", "b": "base"}, "this is the first proof")


@pytest.mark.usefixtures("small")
def test_a_load_that_began_without_sums_says_that_it_has_none(feed: LocalFeed, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    with pytest.raises(Killed):
        load(feed, dump, Stop(8), sums=False)
    load(feed, dump)
    found = prove(feed)
    assert set(verdicts(found).values()) == {"base", "equal"}
    assert {one.reason for _, one in found.tables.values()} == {
        "",
        "the load has not taken the sums of all its rows",
    }


def test_a_table_without_rows_is_proven_empty(feed: LocalFeed, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    for file in dump.glob("d.b.0*"):
        file.unlink()
    load(feed, dump)
    assert verdicts(prove(feed)) == {"a": "equal", "b": "equal"}
    feed.cells.run("d", "INSERT INTO b VALUES (1, 'x')")
    assert verdicts(prove(feed)) == {"a": "equal", "b": "different"}


def _one_less(rows: list[Any]) -> list[Any]:
    return rows[:-1]


def _another_value(rows: list[Any]) -> list[Any]:
    return [[*rows[0][:-1], "x"], *rows[1:]]


@pytest.mark.parametrize("mutant", [_one_less, _another_value])
def test_what_a_load_loses_or_changes_is_found(
    feed: LocalFeed, tmp_path: Path, mutant: Callable[[list[Any]], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SqliteEncoder.encode

    def encode(self: SqliteEncoder, columns: Any, rows: Any) -> bytes:
        return msgspec.msgpack.encode(mutant(list(decode_rows(made(self, columns, rows)))))

    monkeypatch.setattr(SqliteEncoder, "encode", encode)
    load(feed, write_dump(tmp_path / "dump"))
    assert set(verdicts(prove(feed)).values()) == {"different"}


def test_a_log_whose_beginning_went_before_the_dump_is_no_gap(feed: LocalFeed, tmp_path: Path) -> None:
    load(feed, write_dump(tmp_path / "dump"))
    feed.send([insert("d.a", SINCE - 1000, id=3, v="v3"), *changed(SINCE)])
    log = feed.log_of_messages
    for partition in list(log.held):
        log.delete_before(partition, 1 if partition.partition == 0 else 0)
    feed.apply()
    assert verdicts(prove(feed)) == {"a": "equal", "b": "equal"}


def test_floats_of_which_a_dump_tells_six_digits_are_in_doubt(feed: LocalFeed, tmp_path: Path) -> None:
    """TiDB shows six digits of a FLOAT with an exponent, and an event all of the value that it takes away."""
    dump = write_dump(tmp_path / "dump")
    for file in (*dump.glob("d.b*"), *dump.glob("d.c*")):
        file.unlink()
    schema = next(dump.glob("d.a-schema.sql"))
    schema.write_text(schema.read_text().replace("varchar(20)", "float"))
    for number, file in enumerate(sorted(dump.glob("d.a.0*"))):
        rows = ",\n".join(f"({number * 10 + i},{'1.23457e-20' if i == 5 and not number else '0.5'})" for i in range(9))
        file.write_text(f"INSERT INTO `a` VALUES\n{rows};\n")
    load(feed, dump)
    first = prove(feed)
    assert (verdicts(first), ROUNDED in reason(first, A)) == ({"a": "base"}, True)
    found = prove(feed)
    assert (verdicts(found), ROUNDED in reason(found, A)) == ({"a": "unproven"}, True)
    prove(feed, "d.a")
    assert verdicts(prove(feed)) == {"a": "equal"}
