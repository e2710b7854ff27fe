"""Sums of content: what each target computes in SQL is what the messages say; whatever is changed by hand shows."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from consumer.wiring import target_of
from ordering.errors import TargetError
from ordering.events import Kind, RowOp, TableName
from ordering.rows.content_sums import ContentSums, IntervalSums, differing, rows_in
from ordering.rows.identity import ordinal, row_key
from sinks.compare.canonical import CanonicalRows, canonical_rows, table_sums
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import body, recorded
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Verified, connected, feed_of, landed

pytestmark = pytest.mark.service
TRIALS, MANY_TRIALS = 200, 2_000
KINDS = {"INSERT": Kind.INSERT, "UPDATE": Kind.UPDATE, "DELETE": Kind.DELETE}
LEFT_OUT = {"json", "longtext", "jsonb", "TEXT", "vector"}


@pytest.fixture(scope="module", params=["sqlite", "mariadb", "postgres", "tidb"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verified]:
    """A target that got messages with every type."""
    place = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        cells = SqliteCells(place / "target")
        yield landed(feed_of(f"sqlite:///{cells.directory}", cells, place), "types.table", ["ty"])
        return
    started = request.getfixturevalue(f"{request.param}_server")
    uri = started.uri
    if request.param == "tidb":
        connected(started).close()
    server: Any = PostgresCells(uri) if request.param == "postgres" else MariaDbCells(uri)
    server.drop(["ty"])
    feed = feed_of(uri, server, place).with_(filter={"rules": ["ty.*"]})
    dates = {"invalid-dates": "null"} if request.param == "postgres" else {}
    yield landed(feed.with_(target=dates), recording_of(uri), ["ty"])  # type: ignore[arg-type]
    server.drop(["ty"])
    server.close()


def recording_of(uri: str) -> str:
    return "types-without-nul.table" if uri.startswith("postgres") else "types.table"


def rows_of(target: Verified) -> dict[TableName, CanonicalRows]:
    """All tables as their sums see them."""
    section = target.feed.config.target
    with closing(target_of(target.feed.config)) as opened:
        reader = opened.reader()
        reader.begin()
        known = reader.catalog().tables.items()
        tables = {name: one for name, one in known if name.database == "ty" and name.table != "addcol"}  # an ALTER's
        rules = ValueRules("UTC", section.invalid_dates)
        return {name: canonical_rows(one, reader, rules) for name, one in tables.items()}


def found_in(target: Verified, rows: dict[TableName, CanonicalRows]) -> dict[TableName, ContentSums]:
    """What the target computes now."""
    with closing(target_of(target.feed.config)) as opened:
        reader = opened.reader()
        reader.begin()
        sums = {name: table_sums(one, reader) for name, one in rows.items()}
        assert None not in sums.values()
        return sums  # type: ignore[return-value]


def told_of(target: Verified, rows: dict[TableName, CanonicalRows], *, twice: bool) -> dict[TableName, ContentSums]:
    """What the messages say, from nothing on; each of them twice, if asked."""
    found = {name: IntervalSums() for name in rows}
    for message in recorded(recording_of(target.feed.uri)) * (2 if twice else 1):
        value = body(message)
        name = TableName(value["database"], value["table"])
        if value["type"] not in KINDS or name not in rows or not rows[name].keys:
            continue
        one, kind, ts = rows[name], KINDS[value["type"]], value["_tidb"]["commitTs"]
        image = value["data"][0]
        before = {**image, **value["old"][0]} if kind is Kind.UPDATE else image if kind is Kind.DELETE else None
        for half, side in ((RowOp.DELETE, before), (RowOp.WRITE, None if kind is Kind.DELETE else image)):
            if side is not None:
                key = row_key(name, [side[c] for c in one.schema.handle_key])
                found[name].take(key, ordinal(ts, half), lambda one=one, side=side: one.digest(side))  # type: ignore[misc]
    return {name: {b: s for b, s in one.sums.items() if s != (0, 0, 0)} for name, one in found.items()}


def test_a_target_computes_what_the_messages_say(target: Verified) -> None:
    rows = rows_of(target)
    found = found_in(target, rows)
    told = told_of(target, rows, twice=True)
    keyed = {name for name, one in rows.items() if one.keys}
    assert len(keyed) > 10
    wrong = {str(name): (told[name], found[name]) for name in keyed if differing(told[name], found[name])}
    assert wrong == {}
    assert sum(rows_in(found[name]) for name in keyed) > 50
    spelled = ((one.schema.column(c), why) for one in rows.values() for c, why in one.left_out.items())
    left_out = {column.type for column, why in spelled if column is not None and "computes" not in why}
    assert {kind.partition("(")[0].partition(" unsigned")[0] for kind in left_out} <= LEFT_OUT


@pytest.mark.parametrize("trials", [TRIALS, pytest.param(MANY_TRIALS, marks=pytest.mark.soak)])
def test_whatever_is_changed_by_hand_shows(target: Verified, trials: int) -> None:
    """A value of another row, a lost row: in each trial the table's sums differ; rolled back they are as before."""
    chance = random.Random(trials)
    rows = rows_of(target)
    before = found_in(target, rows)
    filled = {name: one for name, one in rows.items() if one.keys and rows_in(before[name]) > 1}
    counts = Counter[str]()
    with closing(target_of(target.feed.config)) as opened:
        if isinstance(target.cells, SqliteCells):
            opened.reader().begin()  # registers its functions
            opened.session.db.rollback()
        while counts.total() < trials:
            name = chance.choice(sorted(filled))
            what = chance.choice(["lost", "changed", "changed", "changed"])
            counts[what] += _shows(opened, filled[name], what, chance, before[name])
    assert min(counts.values()) > trials // 8
    assert found_in(target, rows) == before, "all was rolled back"


def _shows(opened: Any, one: CanonicalRows, what: str, chance: random.Random, before: ContentSums) -> int:
    """A change in a transaction that is rolled back: 1 if the sums differ in it, 0 if it changed nothing."""
    reader = opened.reader()
    place, key = reader.place(one.schema.name), reader.quoted(one.keys[0].column.name)
    column = reader.quoted(chance.choice([c.column.name for c in one.columns]))
    texts = f"SELECT {key}, {column} FROM {place}"
    opened.session.db.begin()
    try:
        values = opened.session.book.query(texts, ())
        victim, other = (chance.choice(values) for _ in range(2))
        if what == "lost":
            opened.session.book.run(f"DELETE FROM {place} WHERE {key} = ?", (victim[0],))
        elif key == column or victim[1] == other[1]:
            return 0
        else:
            opened.session.book.run(f"UPDATE {place} SET {column} = ? WHERE {key} = ?", (other[1], victim[0]))
        if sorted(map(repr, opened.session.book.query(texts, ()))) == sorted(map(repr, values)):
            return 0
        after = table_sums(one, reader)
        assert after is not None
        assert differing(before, after), (place, column, victim, other)
    except TargetError:
        if what != "changed":
            raise
        return 0
    finally:
        opened.session.db.rollback()
    return 1


def test_postgresql_computes_a_digest_once_a_row_and_lets_processes_share_a_table(
    postgres_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = PostgresCells(postgres_server.uri)
    cells.run("plan", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    asked: list[str] = []
    with closing(open_target(postgres_server.uri, ValueRules())) as opened:
        reader = opened.reader()
        reader.begin()
        rows = canonical_rows(reader.catalog().tables[TableName("plan", "t")], reader, ValueRules())
        query = reader.query
        monkeypatch.setattr(reader, "query", lambda sql: (asked.append(sql), query(sql))[1])
        table_sums(rows, reader)
        for name in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            query(f"SELECT set_config('{name}', '0', true)")
        plan = [line.strip() for (line,) in query(f"EXPLAIN (VERBOSE) {asked[0]}")]
    cells.drop(["plan"])
    cells.close()
    at = next(at for at, line in enumerate(plan) if "Parallel Seq Scan" in line)
    assert plan[at + 1].startswith("Output: ")
    assert plan[at + 1].count("sha256") == 2
