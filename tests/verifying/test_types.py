"""Every type, on every target, against a real TiDB: equal; one changed cell of each is named, and repaired."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.embedded import TidbServer
from tests.service.cells import VECTORS, MariaDbCells, SqliteCells, differences, oracle
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Readable, Verified, feed_of, landed, run_script

pytestmark = pytest.mark.service
ORACLE = oracle("types")
NUL = r"DIFFERENT ty.strs id='5' column tt: upstream '\x00nul', target 'nul'"
"""What PostgreSQL's recording holds without U+0000, which it can't hold: all that it was sent otherwise."""
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


@pytest.fixture(scope="module", params=["sqlite", "mariadb", "postgres", "tidb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def in_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    place = tmp_path_factory.mktemp("sqlite")
    cells = SqliteCells(place / "target")
    return landed(feed_of(f"sqlite:///{cells.directory}", cells, place), "types.table", ["ty"])


@pytest.fixture(scope="module")
def target(
    request: pytest.FixtureRequest, kind: str, upstream: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Verified]:
    """A target that got the recording; each test leaves it as it found it. The TiDB as a target is the upstream."""
    if kind == "sqlite":
        yield request.getfixturevalue("in_sqlite")
        return
    uri = upstream if kind == "tidb" else request.getfixturevalue(f"{kind}_server").uri
    cells: Readable = PostgresCells(uri) if kind == "postgres" else MariaDbCells(uri)
    feed = feed_of(uri, cells, tmp_path_factory.mktemp(kind)).with_(filter={"rules": ["ty.*"]})
    if kind == "tidb":
        yield Verified(feed)  # type: ignore[arg-type]
    else:
        cells.drop(["ty"])
        dates = {"invalid-dates": "null"} if kind == "postgres" else {}
        recording = "types-without-nul.table" if kind == "postgres" else "types.table"
        yield landed(feed.with_(target=dates), recording, ["ty"])  # type: ignore[arg-type]
        cells.drop(["ty"])
    cells.close()


@pytest.fixture(scope="module")
def against(request: pytest.FixtureRequest, kind: str, upstream: str) -> str:
    """What the target is compared with."""
    if kind != "tidb":
        return upstream
    other: Verified = request.getfixturevalue("in_sqlite")
    return other.feed.uri


def quoted(cells: Readable, name: str) -> str:
    quote = "`" if isinstance(cells, MariaDbCells) else '"'
    return quote + name.replace(quote, quote * 2) + quote


def swaps(cells: Readable) -> Iterator[tuple[str, str, str, str]]:
    """Table, column, and two ids of rows whose values in it differ: the second one's is to replace the first one's."""
    for name, table in ORACLE.items():
        if table["columns"][0] != "id" or name == "ty.checks":  # whose checks MariaDB enforces for others than us
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


@pytest.mark.cells(by_turns=("kind",))
def test_one_changed_cell_of_each_type_is_named_and_mended(target: Verified, against: str, kind: str) -> None:
    known = [NUL] if kind == "postgres" else []
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
    text = target.repaired(against=against)
    assert target.lines(against=against) == known
    assert text.count("not repaired here: PostgreSQL's texts can't hold U+0000") == len(known)
    assert _differences(target, kind) == []


def _differences(target: Verified, kind: str) -> list[str]:
    """By another reader, cell by cell: repaired rows are spelled as landed ones."""
    found = [] if kind == "tidb" else differences(ORACLE, target.cells)
    return [line for line in found if kind != "postgres" or not line.startswith("ty.strs")]


def _run(cells: Readable, statement: str) -> None:
    if isinstance(cells, SqliteCells):
        cells.run("ty", statement.replace('"ty".', "").replace("ty.", ""))
    else:
        cells.query(statement)


def keyed_tables() -> list[str]:
    return [name.split(".")[1] for name in ORACLE if name.split(".")[1].startswith("k_")]


@pytest.mark.cells(by_turns=("kind",))
def test_rows_of_every_kind_of_key_are_missing_or_extra(target: Verified, against: str, kind: str) -> None:
    script = (VECTORS / "types.sql").read_text()
    extra = {t: (re.search(rf"INSERT INTO {t} VALUES (\(.*?1\)),", script) or [""])[1] for t in keyed_tables()}  # type: ignore[index]
    for table, values in extra.items():
        _run(target.cells, f"INSERT INTO ty.{table} VALUES {EXTRA.get(table, {}).get(kind, values)}")
    counts = {t.comparison.name.table: t.counts() for t in target.verify(against=against, tables=("ty.k_*",)).tables}
    assert {t: (c["extra"], c["missing"], c["different"]) for t, c in counts.items()} == dict.fromkeys(extra, (1, 0, 0))
    target.repaired(against=against, tables=("ty.k_*",))
    assert target.lines(against=against, tables=("ty.k_*",)) == []
    for table in extra:
        _run(target.cells, f"DELETE FROM ty.{table}")
    counts = {t.comparison.name.table: t.counts() for t in target.verify(against=against, tables=("ty.k_*",)).tables}
    rows = {t: len(ORACLE[f"ty.{t}"]["rows"]) for t in extra}
    assert {t: (c["extra"], c["missing"], c["different"]) for t, c in counts.items()} == {
        t: (0, count, 0) for t, count in rows.items()
    }
    target.repaired(against=against, tables=("ty.k_*",))
    assert target.lines(against=against, tables=("ty.k_*",)) == []
    assert [line for line in _differences(target, kind) if line.startswith("ty.k_")] == []
