"""Every type of the recordings, on every target, against a real TiDB: equal, one changed cell of each is named, mended."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from consumer.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.cells import VECTORS, MariaDbCells, SqliteCells, differences, oracle, sent_columns
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Readable, Verified, feed_of, landed, run_script

pytestmark = pytest.mark.service
ORACLE = oracle("types")
NUL = {("strs", "tt")}
"""What PostgreSQL's recording holds without its U+0000."""
EXTRA = {
    "k_bit": {"postgres": "(B'" + "1".zfill(64) + "', 1)", "sqlite": "(1, 1)"},
    "k_bin": {"postgres": "(decode('00000000', 'hex'), 1)", "sqlite": "(x'00000000', 1)"},
}
"""Keys that the script spells in TiDB's way."""


@pytest.fixture(scope="module")
def upstream(tidb_server: TidbServer) -> Iterator[str]:
    cells = MariaDbCells(tidb_server.uri)
    cells.drop(["ty"])
    run_script(tidb_server, "types")
    yield tidb_server.uri
    cells.drop(["ty"])
    cells.close()


@pytest.fixture
def sqlite_target(tmp_path: Path) -> Verified:
    cells = SqliteCells(tmp_path / "target")
    return landed(feed_of(f"sqlite:///{cells.directory}", cells, tmp_path), "types.table", ["ty"])


@pytest.fixture
def mariadb_target(mariadb_server: MariaDbServer, tmp_path: Path) -> Iterator[Verified]:
    cells = MariaDbCells(mariadb_server.uri)
    cells.drop(["ty"])
    yield landed(feed_of(mariadb_server.uri, cells, tmp_path), "types.table", ["ty"])
    cells.drop(["ty"])
    cells.close()


@pytest.fixture
def postgres_target(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Verified]:
    cells = PostgresCells(postgres_server.uri)
    cells.drop(["ty"])
    feed = feed_of(postgres_server.uri, cells, tmp_path).with_(target={"invalid-dates": "null"})
    yield landed(feed, "types-without-nul.table", ["ty"])  # type: ignore[arg-type]
    cells.drop(["ty"])
    cells.close()


@pytest.fixture
def tidb_target(upstream: str, tmp_path: Path) -> Iterator[Verified]:
    """The TiDB itself, which is compared with a target in SQLite."""
    cells = MariaDbCells(upstream)
    feed = feed_of(upstream, cells, tmp_path).with_(filter={"rules": ["ty.*"]})
    yield Verified(feed)  # type: ignore[arg-type]
    cells.close()


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(request: pytest.FixtureRequest, kind: str) -> Verified:
    found: Verified = request.getfixturevalue(f"{kind}_target")
    return found


@pytest.fixture
def against(request: pytest.FixtureRequest, kind: str, upstream: str) -> str:
    """What the target is compared with."""
    if kind != "tidb":
        return upstream
    other: Verified = request.getfixturevalue("sqlite_target")
    return other.feed.uri


def quoted(cells: Readable, name: str) -> str:
    quote = "`" if isinstance(cells, MariaDbCells) else '"'
    return quote + name.replace(quote, quote * 2) + quote


def swaps(cells: Readable) -> Iterator[tuple[str, str, str, str]]:
    """Table, column, and two ids of rows whose values in it differ: the second one's is to replace the first one's."""
    for name, table in ORACLE.items():
        if table["columns"][0] != "id":
            continue
        generated = set(re.findall(r"^ *`([^`]*)` .* GENERATED ", table["create"], re.MULTILINE))
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        for column, kind in list(zip(table["columns"], table["types"], strict=True))[1:]:
            values = {row["id"]: _expected(cells, kind, row[column]) for row in rows}
            pairs = [(a, b) for a in values for b in values if values[a] is not None and values[a] != values[b]]
            if pairs and column not in generated:
                valued = [(a, b) for a, b in pairs if values[b] is not None]
                yield name.split(".")[1], column, *(valued or pairs)[0]


def _expected(cells: Readable, kind: str, text: str | None) -> Any:
    return None if text is None else cells.expected(kind, text)


def test_one_changed_cell_of_each_type_is_named_and_mended(target: Verified, against: str, kind: str) -> None:
    known = [] if kind != "postgres" else ["DIFFERENT ty.strs id='5' column tt: upstream '\\x00nul', target 'nul'"]
    assert target.lines(against=against) == known
    changes = list(swaps(target.cells))
    assert len(changes) > 60
    # what a statement sees is what the one before it left: each takes a value from a row that none has touched
    touched: set[tuple[str, str, str]] = set()
    for table, column, one, other in changes:
        place, name = f"{quoted(target.cells, 'ty')}.{quoted(target.cells, table)}", quoted(target.cells, column)
        source = f"(SELECT {name} FROM (SELECT * FROM {place}) AS x WHERE id = {other})"
        _run(target.cells, f"UPDATE {place} SET {name} = {source} WHERE id = {one}")
        touched.add((table, column, one))
    found = {
        (str(t.comparison.name.table), pair.left.name, one.key(t.comparison)["id"])
        for t in target.verify(against=against).tables
        for one in t.differences
        for pair, *_ in one.changed(t.comparison)
    }
    assert found - {("strs", "tt", "5")} == touched - {("strs", "tt", "5")}
    if kind == "postgres":  # what it can't hold is not mended
        _run(target.cells, "UPDATE ty.strs SET tt = 'x' WHERE id <> 5")
        return
    text = target.mended(against=against)
    assert target.lines(against=against) == []
    assert _differences(target, kind) == []
    assert text == text.encode().decode()


def _differences(target: Verified, kind: str) -> list[str]:
    """By another reader, cell by cell: mended rows are spelled as landed ones."""
    upstream: Mapping[str, Any] = ORACLE
    return [] if kind == "tidb" else differences(upstream, target.cells)


def _run(cells: Readable, statement: str) -> None:
    if isinstance(cells, SqliteCells):
        cells.run("ty", statement.replace('"ty".', "").replace("ty.", ""))
    else:
        cells.query(statement)


def keyed_tables() -> list[str]:
    return [name.split(".")[1] for name in ORACLE if name.split(".")[1].startswith("k_")]


def test_rows_of_every_kind_of_key_are_missing_or_extra(target: Verified, against: str, kind: str) -> None:
    script = (VECTORS / "types.sql").read_text()
    extra = {t: (re.search(rf"INSERT INTO {t} VALUES (\(.*?1\)),", script) or [""])[1] for t in keyed_tables()}  # type: ignore[index]
    for table, values in extra.items():
        _run(target.cells, f"INSERT INTO ty.{table} VALUES {EXTRA.get(table, {}).get(kind, values)}")
    counts = {t.comparison.name.table: t.counts() for t in target.verify(against=against, tables=("ty.k_*",)).tables}
    assert {t: (c["extra"], c["missing"], c["different"]) for t, c in counts.items()} == dict.fromkeys(extra, (1, 0, 0))
    target.mended(against=against, tables=("ty.k_*",))
    assert target.lines(against=against, tables=("ty.k_*",)) == []
    for table in extra:
        _run(target.cells, f"DELETE FROM ty.{table}")
    counts = {t.comparison.name.table: t.counts() for t in target.verify(against=against, tables=("ty.k_*",)).tables}
    rows = {t: len(ORACLE[f"ty.{t}"]["rows"]) for t in extra}
    assert {t: (c["extra"], c["missing"], c["different"]) for t, c in counts.items()} == {
        t: (0, count, 0) for t, count in rows.items()
    }
    target.mended(against=against, tables=("ty.k_*",))
    assert target.lines(against=against, tables=("ty.k_*",)) == []
    assert [line for line in _differences(target, kind) if line.startswith("ty.k_")] == []


def test_columns_that_messages_do_not_hold_are_no_difference(target: Verified, against: str) -> None:
    table = ORACLE["ty.gen"]
    assert "v" not in sent_columns(table)
    assert [line for line in target.lines(against=against, tables=("ty.gen",))] == []
