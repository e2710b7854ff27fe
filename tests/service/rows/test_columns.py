"""Columns that are left out or masked: the target holds upstream's rows without them, whatever comes in between.

The model is the oracle of a recording with NULL in the columns that are left out, and masks in place.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.filters.columns import Mask
from consumer.operate.quarantine import replay
from ordering.errors import InputError
from ordering.quarantine import QuarantineState
from tests.loading.test_service_load_kills import load, place, write_dump
from tests.service.cells import Cells, Oracle, differences, oracle
from tests.service.commands.test_prove import prove, verdicts
from tests.service.lab import Feed, is_row, recorded
from tests.service.local import LocalFeed
from tests.service.messages import begun, ddl, delete, encoded, insert, keyed, update, watermarks
from tests.simple_protocol import as_simple

__all__ = ["place"]
pytestmark = pytest.mark.service

KEY = "a key of thirty-two characters!!"
SELECTED = {"matcher": ["sp.swap_*", "sp.cp?"], "columns": ["*", "!B", "!z"]}
MASKED = {"matcher": ["sp.uk_t", "sp.pu"], "columns": ["v"], "hash-key": KEY, "hash-length": 20}
SINK = {"column-selectors": [SELECTED], "column-masks": [MASKED]}
RECORDINGS = ("split.index-value.raw", "split.ts.raw", "split.default.split", "split.index-value.restarts")


def hashed(text: str) -> str:
    return Mask(key=KEY.encode(), length=20).of(text)


def selected(upstream: Oracle) -> Oracle:
    """What the target has to hold."""
    return {
        name: {**table, "rows": [_row(table["columns"], row) for row in table["rows"]]}
        for name, table in upstream.items()
    }


def _row(columns: list[str], row: Any) -> Any:
    change: Mapping[str, Callable[[str], str | None]] = {"b": lambda _: None, "z": lambda _: None, "v": hashed}
    values = row if isinstance(row, Mapping) else dict(zip(columns, row, strict=True))
    found = {n: value if value is None or n not in change else change[n](value) for n, value in values.items()}
    return found if isinstance(row, Mapping) else list(found.values())


@pytest.mark.cells("recording", "every_feed", "consistency", "protocol")
@pytest.mark.parametrize("protocol", ["canal-json", "simple"])
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_recordings(every_feed: Feed, recording: str, consistency: str, protocol: str) -> None:
    messages = recorded(recording)
    if consistency == "row":
        every_feed.by_tasks()
    every_feed.with_(target={"consistency": consistency}, sink=SINK, source={"protocol": protocol})
    for _ in range(2):
        every_feed.send(as_simple(messages) if protocol == "simple" else messages)
        outcome = every_feed.once()
        assert differences(selected(oracle("split")), every_feed.cells) == []
    assert outcome.counts.duplicates_unproven == sum(map(is_row, messages))


@pytest.fixture(params=["sqlite", "mariadb", "postgres"])
def fed(request: pytest.FixtureRequest) -> LocalFeed:
    """A table with two rows; `v` is left out, `s` is masked."""
    feed: LocalFeed = request.getfixturevalue(f"{request.param}_feed")
    sink = {
        "column-selectors": [{"matcher": ["d.*"], "columns": ["!v"]}],
        "column-masks": [{"matcher": ["d.*"], "columns": ["s"], "value": "***"}],
    }
    feed.with_(sink=sink)
    feed.send([*begun(), insert("d.t", 4, id=2, v=2, s=None), *watermarks(5)])
    feed.apply()
    return feed


def held(cells: Cells) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["v"], row["s"]) for row in cells.tables({"d"})["d.t"][1])


def test_null_stays_and_the_targets_own_values_stay(fed: LocalFeed) -> None:
    """A row that comes again keeps what the target holds in the column that is left out."""
    assert held(fed.cells) == [(1, None, "***"), (2, None, None)]
    fed.cells.run("d", "UPDATE t SET v = 7 WHERE id = 1")
    fed.send([update("d.t", 6, {"v": 1, "s": "one"}, id=1, v=9, s="two"), *watermarks(7)])
    fed.send([update("d.t", 8, {"id": 2}, id=3, v=2, s="x"), *watermarks(9)])
    fed.apply()
    assert held(fed.cells) == [(1, 7, "***"), (3, None, "***")]
    fed.send([delete("d.t", 10, id=1, v=9, s="two"), *watermarks(11)])
    fed.apply()
    assert held(fed.cells) == [(3, None, "***")]


def test_the_table_is_proven_by_what_it_holds(fed: LocalFeed) -> None:
    assert verdicts(prove(fed)) == {"t": "equal"}
    fed.send(
        [update("d.t", 6, {"s": "one"}, id=1, v=1, s="two"), insert("d.t", 6, id=5, v=5, s="five"), *watermarks(7)]
    )
    fed.apply()
    assert verdicts(prove(fed)) == {"t": "equal"}
    fed.cells.run("d", "UPDATE t SET s = 'five' WHERE id = 5")
    assert verdicts(prove(fed)) == {"t": "different"}


def test_a_replayed_message_is_masked(mariadb_feed: LocalFeed) -> None:
    sink = {"column-masks": [{"matcher": ["d.*"], "columns": ["s"], "value": "***"}]}
    mariadb_feed.with_(sink=sink, quarantine={"enabled": True})
    mariadb_feed.send([*begun(), insert("d.t", 4, id=2, v="no number", s="two"), *watermarks(5)])
    mariadb_feed.apply()
    assert held(mariadb_feed.cells) == [(1, 1, "***")]
    mariadb_feed.cells.run("d", "ALTER TABLE t MODIFY v VARCHAR(20)")
    assert [one.state for one in replay(mariadb_feed.config, ())] == [QuarantineState.REPLAYED]
    assert held(mariadb_feed.cells) == [(1, "1", "***"), (2, "no number", "***")]


@pytest.mark.parametrize(
    "sink", [{"column-selectors": []}, {"column-selectors": [{"matcher": ["d.*"], "columns": ["*"]}]}]
)
def test_other_rules_are_refused(sqlite_feed: LocalFeed, sink: dict[str, Any]) -> None:
    sqlite_feed.with_(sink={"column-selectors": [{"matcher": ["d.*"], "columns": ["!v"]}]})
    sqlite_feed.send([*begun(), *watermarks(5)])
    sqlite_feed.apply()
    sqlite_feed.with_(sink=sink)
    assert "differ from those that this changefeed has run with" in sqlite_feed.failing(InputError).fact


@pytest.mark.parametrize(
    "block",
    [
        {"column-selectors": [{"matcher": ["d.*"], "columns": ["!v"]}]},
        {"column-masks": [{"matcher": ["d.*"], "columns": ["v"], "value": "0"}]},
    ],
)
def test_a_key_that_no_message_names_is_taken_as_it_is(sqlite_feed: LocalFeed, block: dict[str, Any]) -> None:
    """Of a table whose key is a unique index, the target knows the key: its rows would take one another's place."""
    columns = "id INT, v INT NOT NULL UNIQUE, s VARCHAR(10)"
    rows = [keyed(insert("d.t", 4, id=n, v=n, s="x")) for n in (2, 3)]
    sqlite_feed.with_(sink=block).send([*map(keyed_without, begun(columns=columns)), *rows, *watermarks(5)])
    error = sqlite_feed.failing(InputError)
    assert "key" in error.fact
    assert "offset=" in error.where


def keyed_without(message: Any) -> Any:
    return keyed(message) if is_row(message) else message


_SELECTOR = {"column-selectors": [{"matcher": ["d.t"], "columns": ["!s"]}]}
_MASK = {"column-masks": [{"matcher": ["d.t"], "columns": ["s"], "value": "***"}]}
MOVES = {
    "ALTER TABLE `t` RENAME COLUMN `s` TO `x`": "d.t",
    "ALTER TABLE `t` CHANGE COLUMN `s` `x` VARCHAR(10)": "d.t",
    "ALTER TABLE `t` ADD COLUMN `y` INT, RENAME COLUMN `s` TO `x`": "d.t",
    "ALTER TABLE `t` RENAME COLUMN `v` TO `x`, RENAME COLUMN `s` TO `v`": "d.t",
    "RENAME TABLE `d`.`t` TO `d`.`u`": "d.u",
    "ALTER TABLE `t` RENAME TO `u`": "d.u",
}


@pytest.mark.parametrize("block", [_SELECTOR, _MASK], ids=["left out", "masked"])
@pytest.mark.parametrize("sql", MOVES)
def test_no_rename_takes_a_column_out_of_the_rules(sqlite_feed: LocalFeed, block: dict[str, Any], sql: str) -> None:
    sqlite_feed.with_(sink=block)
    later = insert(MOVES[sql], 8, id=2, x="secret")
    sqlite_feed.send([*begun(), *watermarks(5), ddl(MOVES[sql], 6, sql, kind="ALTER"), later, *watermarks(9)])
    error = sqlite_feed.failing(InputError)
    assert "say something else" in error.fact
    assert "offset=" in error.where
    assert [row[:2] for row in held(sqlite_feed.cells)] == [(1, 1)]


@pytest.mark.parametrize("kind", ["VARCHAR(19)", "CHAR(10)", "INT", "VARBINARY(64)"])
def test_a_column_is_not_given_a_type_in_which_its_mask_can_not_be(every_feed: LocalFeed, kind: str) -> None:
    """The masks of the rows that are there would be cut off or converted."""
    block = {"column-masks": [{"matcher": ["d.t"], "columns": ["s"], "hash-key": KEY, "hash-length": 20}]}
    every_feed.with_(sink=block)
    every_feed.send([*begun(columns="id INT PRIMARY KEY, v INT, s VARCHAR(40)"), *watermarks(5)])
    every_feed.apply()
    every_feed.send([ddl("d.t", 6, f"ALTER TABLE `t` MODIFY COLUMN `s` {kind}", kind="ALTER"), *watermarks(9)])
    error = every_feed.failing(InputError)
    assert "in which its mask of 20 characters can't be" in error.fact
    assert "offset=" in error.where
    assert held(every_feed.cells) == [(1, 1, hashed("one"))]


@pytest.mark.parametrize(
    ("block", "table", "sql"),
    [
        (_SELECTOR, "d.t", "ALTER TABLE `t` RENAME COLUMN `s` TO `S`"),
        (_MASK, "d.t", "ALTER TABLE `t` MODIFY COLUMN `s` CHAR(3)"),
        (_SELECTOR, "d.t", "ALTER TABLE `t` MODIFY COLUMN `s` VARCHAR(20)"),
        (_MASK, "d.t", "ALTER TABLE `t` RENAME COLUMN `v` TO `w`"),
        ({"column-masks": [{**_MASK["column-masks"][0], "matcher": ["d.*"]}]}, "d.u", "RENAME TABLE `t` TO `u`"),
        ({"column-selectors": [{"matcher": ["d.t"], "columns": ["!other"]}]}, "d.u", "RENAME TABLE `t` TO `u`"),
    ],
)
def test_a_rename_within_the_rules_is_executed(
    sqlite_feed: LocalFeed, block: dict[str, Any], table: str, sql: str
) -> None:
    sqlite_feed.with_(sink=block)
    sqlite_feed.send([*begun(), *watermarks(5), ddl(table, 6, sql, kind="ALTER"), *watermarks(9)])
    sqlite_feed.apply()
    assert len(sqlite_feed.cells.tables({"d"})[table][1]) == 1


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"column-selectors": [{"matcher": ["*.a"], "columns": ["!v"]}]}, [None, "v0"]),
        ({"column-masks": [{"matcher": ["*.a"], "columns": ["v"], "value": "-"}]}, ["-", "v0"]),
        (
            {"column-masks": [{"matcher": ["*.*"], "columns": ["v"], "hash-key": KEY, "hash-length": 20}]},
            [hashed("v0")] * 2,
        ),
    ],
)
def test_a_load_takes_the_same_columns(place: Any, tmp_path: Any, block: dict[str, Any], expected: list[Any]) -> None:
    uri, cells, name = place
    load(uri, write_dump(tmp_path / "dump", name), changefeed=f"load-{name}", sink=block).run()
    tables = cells.tables([name])
    assert [next(r["v"] for r in tables[f"{name}.{table}"][1] if r["id"] == 0) for table in "ab"] == expected


def test_a_load_refuses_a_key_that_is_masked(sqlite_feed: LocalFeed, tmp_path: Any) -> None:
    block = {"column-masks": [{"matcher": ["*.b"], "columns": ["id"], "value": "1"}]}
    with pytest.raises(InputError, match=r"part of the key of d\.b"):
        load(sqlite_feed.uri, write_dump(tmp_path / "dump"), sink=block).run()


def test_an_error_of_a_load_shows_no_value_that_is_masked(sqlite_feed: LocalFeed, tmp_path: Any) -> None:
    dump = write_dump(tmp_path / "dump")
    for old in dump.glob("d.?.0*.sql"):
        old.unlink()
    dump.joinpath("d.a.000000000.csv").write_text('"id","v"\n1,secret\n')
    block = {"column-masks": [{"matcher": ["d.a"], "columns": ["v"], "value": "-"}]}
    with pytest.raises(InputError, match="to be masked") as error:
        load(sqlite_feed.uri, dump, sink=block).run()
    assert "row=1" in error.value.where
    assert "secret" not in f"{error.value} {error.value.hint}"


LEFT_OUT = {"column-selectors": [{"matcher": ["d.*"], "columns": ["!s"]}]}
MASKED_ALIKE = {"column-masks": [{"matcher": ["d.*"], "columns": ["s"], "value": "***"}]}
MASKED_APART = {"column-masks": [{"matcher": ["d.*"], "columns": ["s"], "hash-key": KEY, "hash-length": 16}]}
ALICE, BOB = (keyed(insert("d.t", 4, partition, id=1, v=1, s=name)) for partition, name in ((0, "alice"), (1, "bob")))


def without_key(feed: LocalFeed, sink: dict[str, Any], columns: str = "id INT, v INT, s VARCHAR(20)") -> LocalFeed:
    feed.make_database("d", f"CREATE TABLE t ({columns})")
    return feed.with_(sink=sink, filter={"rules": ["*.*"], "force-replicate": True})


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize(
    ("sink", "columns"),
    [(LEFT_OUT, "id INT, v INT"), (LEFT_OUT, "id INT, v INT, s TEXT"), (MASKED_ALIKE, "id INT, v INT, s TEXT")],
)
def test_rows_without_a_key_that_would_be_equal_are_refused(
    sqlite_feed: LocalFeed, sink: dict[str, Any], columns: str, quarantine: bool
) -> None:
    """In two partitions, equal rows are one that was sent twice."""
    feed = without_key(sqlite_feed, sink, columns).with_(quarantine={"enabled": quarantine})
    feed.send([ALICE, BOB, *watermarks(5)])
    error = feed.failing(InputError)
    assert "'s' of d.t" in error.fact
    assert "offset=" in error.where
    assert feed.cells.tables({"d"})["d.t"][1] == []


def test_rows_without_a_key_stay_apart_by_hash(sqlite_feed: LocalFeed) -> None:
    feed = without_key(sqlite_feed, MASKED_APART)
    feed.send([ALICE, BOB, *watermarks(5)])
    feed.apply()
    apart = Mask(key=KEY.encode(), length=16).of
    assert held(feed.cells) == sorted((1, 1, apart(name)) for name in ("alice", "bob"))
    feed.send([keyed(delete("d.t", 6, 0, id=1, v=1, s="bob")), *watermarks(7)])
    feed.apply()
    assert held(feed.cells) == [(1, 1, apart("alice"))]


@pytest.mark.parametrize(("again", "verdict"), [((), "equal"), ((ALICE,), "base")])
def test_rows_without_a_key_stay_apart_by_row_key(
    sqlite_feed: LocalFeed, again: tuple[Message, ...], verdict: str
) -> None:
    """A message without the row key does not tell a proof how many rows there are."""
    sqlite_feed.with_(sink=MASKED_ALIKE, filter={"rules": ["*.*"], "force-replicate": True})
    made = [message for message in begun(columns="id INT, v INT, s VARCHAR(20)") if not is_row(message)]
    sqlite_feed.send([*made, marked(ALICE, "YQ=="), marked(BOB, "Yg=="), *watermarks(5)])
    sqlite_feed.apply()
    assert held(sqlite_feed.cells) == [(1, 1, "***")] * 2
    sqlite_feed.send([*again, *watermarks(6)])
    sqlite_feed.apply()
    assert verdicts(prove(sqlite_feed)) == {"t": verdict}


def test_a_key_that_no_message_names_tells_rows_apart(sqlite_feed: LocalFeed) -> None:
    sqlite_feed.with_(sink=MASKED_ALIKE, filter={"rules": ["*.*"], "force-replicate": True})
    columns = "id INT NOT NULL UNIQUE, v INT, s VARCHAR(10)"
    rows = [keyed(insert("d.t", 4, n, id=n + 2, v=1, s="x")) for n in (0, 1)]
    sqlite_feed.send([*map(keyed_without, begun(columns=columns)), *rows, *watermarks(5)])
    sqlite_feed.apply()
    assert held(sqlite_feed.cells) == [(n, 1, "***") for n in (1, 2, 3)]


def test_a_table_without_a_key_that_no_rule_changes_is_copied(sqlite_feed: LocalFeed) -> None:
    feed = without_key(sqlite_feed, {"column-selectors": [{"matcher": ["d.*"], "columns": ["!ssn"]}]})
    feed.send([ALICE, BOB, *watermarks(5)])
    feed.apply()
    assert held(feed.cells) == [(1, 1, "alice"), (1, 1, "bob")]


def marked(message: Message, row_key: str) -> Message:
    value = json.loads(message.value)
    return message._replace(value=encoded({**value, "_tidb": {**value["_tidb"], "rowkey": row_key}}))


@pytest.mark.parametrize("definition", ["VARCHAR(40) NOT NULL DEFAULT 'q'", "VARCHAR(40) NOT NULL", "VARCHAR(40)"])
def test_rows_without_a_key_get_no_default_that_no_event_would_find(every_feed: Feed, definition: str) -> None:
    """Such rows are found by all their values, and events name the mask of the default."""
    block = {"column-masks": [{"matcher": ["d.t"], "columns": ["h"], "hash-key": KEY, "hash-length": 20}]}
    every_feed.with_(sink=block, filter={"force-replicate": True}, source={"equal-rows": "count"})
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, "CREATE TABLE `t` (id INT)")])
    every_feed.send([*(keyed(insert("d.t", 3, id=number)) for number in range(2)), *watermarks(4)])
    every_feed.once()
    shown = "q" if "'q'" in definition else "" if "NOT NULL" in definition else None
    every_feed.send([ddl("d.t", 5, f"ALTER TABLE `t` ADD COLUMN `h` {definition}", kind="ALTER"), *watermarks(6)])
    every_feed.send([keyed(delete("d.t", 7, id=1, h=shown)), *watermarks(8)])
    if shown is None:
        every_feed.once()
        assert [row["id"] for row in every_feed.cells.tables({"d"})["d.t"][1]] == [0]
        return
    error = every_feed.failing(InputError)
    assert "a default in 'h'" in error.fact
    assert "offset=" in error.where
    assert [set(row) for row in every_feed.cells.tables({"d"})["d.t"][1]] == [{"id"}] * 2
