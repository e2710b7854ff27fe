"""The third sum where the config says what the target holds otherwise: masks, selectors, routes, merging, filters.

What the config leaves out or changes is no difference, and nothing that the upstream tells of is overlooked for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.proof.report import Proof, ProofOf
from consumer.proof.run import Proving
from tests.embedded import TidbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.lab import eventually
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, encoded, row_value, typed, value_of
from tests.service.pipeline.test_upstream import Origin
from tests.service.postgres_cells import PostgresCells
from tests.verifying.test_moments import origin
from tests.verifying.upstreams import Verified

__all__ = ["origin"]
pytestmark = pytest.mark.service
TARGETS = ["sqlite", "mariadb", "postgres", "tidb"]
CELLS: dict[str, Any] = {"mariadb": MariaDbCells, "postgres": PostgresCells, "tidb": MariaDbCells}
KEY = "a key of thirty-two characters!!"
COLUMNS = {"id": "int", "v": "int", "s": "varchar(40)", "h": "varchar(40)", "c": "varchar(10)"}


@dataclass
class Both:
    """A TiDB that tells of each of its changes, as TiCDC does, and the target that gets them."""

    origin: Origin
    feed: LocalFeed
    place: str
    """The database that the target has for the upstream's."""
    told: list[Message] = field(default_factory=list)

    def ddl(self, sql: str, table: str = "t", kind: str = "ALTER") -> None:
        """Execute upstream (`{}`: the database), and tell."""
        self.origin.run(sql.format(self.origin.database))
        value = value_of(kind, f"{self.origin.database}.{table}", self.origin.clock(), isDdl=True)
        self.told.append(Message(TOPIC, 0, encoded({**value, "sql": sql.replace("{}.", "")})))

    def create(self, columns: str, table: str = "t") -> None:
        self.ddl(f"CREATE TABLE {{}}.{table} ({columns})", table, "CREATE")

    def insert(self, table: str = "t", **row: object) -> None:
        values = ", ".join("NULL" if value is None else repr(value) for value in row.values())
        ts = self.origin.run(
            f"INSERT INTO {self.origin.database}.{table} ({', '.join(row)}) VALUES ({values})".replace("%", "%%")
        )
        self._row("INSERT", table, ts, row)

    def update(self, row: dict[str, object], table: str = "t", **new: object) -> None:
        changed = ", ".join(f"{name} = {value!r}" for name, value in new.items())
        ts = self.origin.run(f"UPDATE {self.origin.database}.{table} SET {changed} WHERE id = {row['id']}")
        self._row("UPDATE", table, ts, {**row, **new}, row)

    def delete(self, row: dict[str, object], table: str = "t") -> None:
        ts = self.origin.run(f"DELETE FROM {self.origin.database}.{table} WHERE id = {row['id']}")
        self._row("DELETE", table, ts, row)

    def _row(self, kind: str, table: str, ts: int, row: dict[str, object], old: Any = None) -> None:
        value = row_value(kind, f"{self.origin.database}.{table}", ts, row, old)
        self.told.append(typed(Message(TOPIC, 0, encoded(value)), **COLUMNS))

    def apply(self) -> None:
        """Let the target get what was told."""
        self.feed.send([*self.told, *self.origin.watermarks()])
        self.told.clear()
        self.feed.apply()
        checkpoint = self.feed.checkpoint()
        eventually("the origin's clock has passed the checkpoint", lambda: self.origin.clock() > checkpoint)

    def by_hand(self, statement: str) -> None:
        self.feed.cells.run(self.place, statement)

    def prove(self) -> Proof:
        log = self.feed.log_of_messages
        return Proving(self.feed.config, control=log, readers=log).run()  # type: ignore[arg-type]

    def found(self, table: str = "t") -> ProofOf:
        return {name.table: one for name, (_, one) in self.prove().tables.items()}[table]

    def verdict(self, table: str = "t") -> tuple[str, str]:
        """By all three, and what the upstream has told."""
        found = self.found(table)
        return found.verdict.value, found.upstream


@pytest.fixture
def both(
    request: pytest.FixtureRequest, target: str, origin: Origin, tidb_server: TidbServer, tmp_path: Path
) -> Iterator[Both]:
    """Under another database's name, so that one TiDB can be both."""
    place = f"{origin.database}copy"
    routes = [{"matcher": [f"{origin.database}.*"], "target-schema": place}]
    settings: dict[str, Any] = {
        "source": {"upstream": {"uri": tidb_server.uri}},
        "filter": {"rules": [f"{origin.database}.*"]},
        "sink": {"dispatchers": routes},
    }
    if target == "sqlite":
        cells = SqliteCells(tmp_path / "target")
        feed = LocalFeed.into(f"sqlite:///{cells.directory}", cells, tmp_path)
        yield begun(Both(origin, feed, place), settings)
        return
    server = request.getfixturevalue(f"{target}_server")
    with emptied(CELLS[target](server.uri)) as cells:
        yield begun(Both(origin, LocalFeed.into(server.uri, cells, tmp_path), place), settings)


def begun(both: Both, settings: dict[str, Any]) -> Both:
    both.feed.with_(**settings)
    value = value_of("QUERY", f"{both.origin.database}.", both.origin.clock(), isDdl=True)
    both.told.append(Message(TOPIC, 0, encoded({**value, "sql": f"CREATE DATABASE `{both.origin.database}`"})))
    return both


def row(number: int, **more: object) -> dict[str, object]:
    return {"id": number, "v": number, "s": f"text {number}", "h": f"secret {number}", "c": "x", **more}


WHOLE = "id INT PRIMARY KEY, v INT, s VARCHAR(40), h VARCHAR(40), c VARCHAR(10)"


def filled(both: Both, columns: str = WHOLE) -> Both:
    """Three rows, all applied."""
    both.create(columns)
    for number in (1, 2, 3):
        both.insert(**row(number))
    both.apply()
    return both


def masked(both: Both, **more: Any) -> Both:
    matcher = [f"{both.origin.database}.*"]
    masks = [
        {"matcher": matcher, "columns": ["h"], "hash-key": KEY, "hash-length": 32},
        {"matcher": matcher, "columns": ["c"], "value": "***"},
    ]
    both.feed.with_(sink={"column-masks": masks, **more})
    return both


def selected(both: Both) -> Both:
    both.feed.with_(sink={"column-selectors": [{"matcher": [f"{both.origin.database}.*"], "columns": ["*", "!v"]}]})
    return both


FAULTS = {
    "nothing": "",
    "cell": "UPDATE t SET s = 'other' WHERE id = 2",
    "lost": "DELETE FROM t WHERE id = 2",
    "foreign": "INSERT INTO t (id, s) VALUES (77, 'x')",
    "hash": "UPDATE t SET h = '0123456789abcdef0123456789abcdef' WHERE id = 2",
    "constant": "UPDATE t SET c = 'y' WHERE id = 2",
}


@pytest.mark.cells("fault", by_turns=("target",))
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("target", TARGETS)
def test_masked_and_routed(both: Both, fault: str) -> None:
    filled(masked(both))
    assert both.verdict() == ("equal", "equal")
    both.update(row(1), s="new", h="another secret")
    both.apply()
    if fault != "nothing":
        both.by_hand(FAULTS[fault])
    is_asked = fault not in {"nothing", "hash", "constant"}
    found = both.found()
    assert (found.verdict.value, found.upstream) == (
        "equal" if fault == "nothing" else "different",
        "different" if is_asked else "equal",
    )
    if fault in {"hash", "constant"}:
        assert "was not asked about h, c: the target may be wrong there" in found.reason


@pytest.mark.cells(by_turns=("target",))
@pytest.mark.parametrize("target", TARGETS)
def test_what_ticdc_never_sent_is_found_beside_masks(both: Both) -> None:
    filled(masked(both))
    both.origin.run(f"UPDATE {both.origin.database}.t SET h = 'changed unseen'")
    both.apply()
    assert both.verdict() == ("equal", "equal"), "nobody can tell: the page says so"
    both.origin.run(f"UPDATE {both.origin.database}.t SET s = 'changed unseen' WHERE id = 3")
    both.apply()
    assert both.verdict() == ("different", "different")


@pytest.mark.cells(by_turns=("target",))
@pytest.mark.parametrize("target", TARGETS)
def test_columns_that_are_left_out(both: Both) -> None:
    filled(selected(both))
    assert both.verdict() == ("equal", "equal")
    proof = both.prove()
    ((left_out, _),) = proof.tables.values()
    assert list(left_out) == ["v"]
    both.by_hand("UPDATE t SET s = 'other' WHERE id = 2")
    assert both.verdict() == ("different", "different")


@pytest.mark.cells("changed", by_turns=("target",))
@pytest.mark.parametrize("changed", ["masked", "selected"])
@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_generated_from_a_column_that_is_changed(both: Both, changed: str, kind: str) -> None:
    """The target computes it from what it holds itself."""
    computed = "UPPER(h)" if changed == "masked" else "v + 1"
    (masked if changed == "masked" else selected)(both)
    both.create(f"{WHOLE}, g VARCHAR(64) AS ({computed}) {kind}")
    for number in (1, 2):
        both.origin.run(
            f"INSERT INTO {both.origin.database}.t (id, v, s, h, c)"
            f" VALUES ({number}, {number}, 'text {number}', 'secret {number}', 'x')"
        )
        sent = row(number, **({} if kind == "VIRTUAL" else {"g": f"SECRET {number}"}))
        if kind == "STORED" and changed == "selected":
            sent["g"] = str(number + 1)
        value = row_value("INSERT", f"{both.origin.database}.t", both.origin.clock(), sent)
        both.told.append(typed(Message(TOPIC, 0, encoded(value)), **COLUMNS, g="varchar(64)"))
    both.apply()
    assert both.verdict() == ("equal", "equal"), both.found()
    assert Verified(both.feed).verify().is_equal
    both.by_hand("UPDATE t SET s = 'other' WHERE id = 2")
    assert both.verdict() == ("different", "different")


MERGED = {
    "target-table": "t",
    "merge": True,
    "extract-table": {"table-regexp": "t_(.*)", "target-column": "shard"},
}


def merging(both: Both) -> Both:
    """Two shards with equal keys, of which one has a column more, in one table."""
    database = both.origin.database
    routes = [{"matcher": [f"{database}.t_*"], "target-schema": both.place, **MERGED}]
    both.feed.with_(sink={"dispatchers": [*routes, {"matcher": [f"{database}.*"], "target-schema": both.place}]})
    for shard in ("t_a", "t_b"):
        both.create(WHOLE, shard)
        both.insert(shard, **row(1, s=shard))
        both.insert(shard, **row(2))
    both.apply()
    return both


@pytest.mark.cells("is_masked", by_turns=("target",))
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_merged_shards(both: Both, is_masked: bool) -> None:
    merging(masked(both) if is_masked else both)
    assert [both.verdict(shard) for shard in ("t_a", "t_b")] == [("equal", "equal")] * 2
    both.ddl("ALTER TABLE {}.t_a ADD COLUMN more INT DEFAULT 5", "t_a")
    both.update(row(1, s="t_a", more=5), "t_a", v=9)
    both.update(row(2), "t_b", s="later")
    both.apply()
    # a DDL makes a table start over, and nobody can ask the upstream about masks
    assert both.verdict("t_a") == ("base" if is_masked else "equal", "equal")
    assert [both.verdict(shard) for shard in ("t_a", "t_b")] == [("equal", "equal")] * 2
    both.by_hand("UPDATE t SET s = 'other' WHERE id = 2 AND shard = 'b'")
    assert (both.verdict("t_a"), both.verdict("t_b")) == (("equal", "equal"), ("different", "different"))
    both.by_hand("DELETE FROM t WHERE shard = 'a' AND id = 1")
    assert both.verdict("t_a") == ("different", "different")


FILTERS: dict[str, tuple[dict[str, Any], bool]] = {
    "deletes": ({"ignore-event": ["delete"]}, False),
    "inserts": ({"ignore-insert-value-expr": "v = 3"}, False),
    "old": ({"ignore-update-old-value-expr": "v = 1"}, False),
    "only": ({"ignore-update-only-columns": ["s"]}, False),
    "truncate": ({"ignore-event": ["truncate table"]}, True),
    "sql": ({"ignore-sql": ["^truncate"]}, True),
}
"""Event filters, and whether they are about DDLs alone."""


@pytest.mark.cells("what", by_turns=("target",))
@pytest.mark.parametrize("what", FILTERS)
@pytest.mark.parametrize("target", TARGETS)
def test_what_event_filters_leave_out_is_no_difference(both: Both, what: str) -> None:
    """Nor is it equal: which of the rows that differ a filter has left out does not show."""
    told, is_ddl = FILTERS[what]
    database = both.origin.database
    both.feed.with_(filter={"event-filters": [{"matcher": [f"{database}.t"], **told}]})
    both.create(WHOLE, "u")
    both.insert("u", **row(1))
    filled(both)
    if is_ddl:
        both.ddl("TRUNCATE TABLE {}.t", "t", "TRUNCATE")
    else:
        both.update(row(1), s="later")
        both.delete(row(2))
    both.apply()
    found = both.found()
    assert (found.verdict.value, found.upstream) == ("unproven", "different"), found
    assert "event filter" in found.reason
    assert both.verdict("u") == ("equal", "equal"), "it has no filter"
    both.by_hand("UPDATE u SET s = 'other'")
    assert both.verdict("u") == ("different", "different")
    both.by_hand("DELETE FROM t")
    both.origin.run(f"DELETE FROM {database}.t")
    both.apply()
    if not is_ddl:
        assert both.verdict() == ("equal", "equal"), "the upstream says so, whatever was left out"
