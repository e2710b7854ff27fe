"""Columns and tables with the names that statements of ours use themselves: each name means upstream's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.local import LocalFeed
from tests.service.messages import begun, delete, insert, keyed, update, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service

OURS = ("k", "t", "k1", "excluded", "rows", "row", "ticdc_reconciler_rows", "group_of_rows", "new", "v0", "c")
"""Aliases, and what names are given to keys, rows and stages; `k0` is part of the key."""
FEW, MANY = 5, 1_100


@pytest.fixture(params=["sqlite", "mariadb", "postgresql", "tidb"])
def every(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    if request.param == "sqlite":
        place = tmp_path / "target"
        yield LocalFeed.into(f"sqlite:///{place}", SqliteCells(place), tmp_path)
        return
    if request.param == "postgresql":
        uri = request.getfixturevalue("own_database")
        cells: PostgresCells | MariaDbCells = PostgresCells(uri)
    else:
        uri = request.getfixturevalue(f"{request.param}_server").uri
        cells = MariaDbCells(uri)
    yield LocalFeed.into(uri, cells, tmp_path)
    cells.drop(["d"])
    cells.close()


def columns(own: str = "") -> str:
    names = ", ".join(f"`{name}` INT" for name in OURS)
    return f"`k0` INT NOT NULL, `id` INT NOT NULL, {names}, PRIMARY KEY (`k0`, `id`){own}"


def full(number: int, value: int) -> dict[str, object]:
    return {"k0": number % 3, "id": number, **dict.fromkeys(OURS, value)}


def held(feed: LocalFeed, table: str) -> list[tuple[int, ...]]:
    rows = feed.cells.tables(["d"])[table][1]
    return sorted(tuple(int(row[name]) for name in ("k0", "id", *OURS)) for row in rows)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_columns_of_the_targets_own_keep_their_values(every: LocalFeed, count: int) -> None:
    """In a table named `excluded`, which is what INSERT ... ON CONFLICT calls the row that it does not insert."""
    every.make_database("d", "CREATE TABLE excluded (id INT PRIMARY KEY, v INT, own INT DEFAULT 7)")
    every.send([*(insert("d.excluded", 1, n % 3, id=n, v=n) for n in range(count)), *watermarks(1)])
    every.apply()
    every.send([*(update("d.excluded", 2, {"v": n}, n % 3, id=n, v=-n) for n in range(count)), *watermarks(2)])
    every.apply()
    found = every.cells.tables(["d"])["d.excluded"][1]
    assert sorted((int(row["id"]), int(row["v"]), int(row["own"])) for row in found) == [
        (n, -n, 7) for n in range(count)
    ]


@pytest.mark.cells("table", ("consistency", "second", "count"))
@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("second", [False, True], ids=["one-key", "two-keys"])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("table", ["d.t", "d.k", "d.excluded", "d.unnest"])
def test_a_name_of_ours_is_upstreams(every: LocalFeed, table: str, consistency: str, second: bool, count: int) -> None:
    feed = every.with_(target={"consistency": consistency})
    feed.send(begun(table, columns(", UNIQUE KEY `second` (`id`)" if second else ""))[:2])
    there = [full(number, number) for number in range(count)]
    feed.send(keyed(insert(table, 4, n % 3, **row), "k0", "id") for n, row in enumerate(there))
    feed.send(watermarks(4))
    feed.apply()
    new = [{**row, **dict.fromkeys(OURS, -1)} for row in there[::2]]
    moved = {**there[1], "k0": 7, "k": 8}  # its key changes
    feed.send(keyed(delete(table, 5, n % 3, **row), "k0", "id") for n, row in enumerate(there[3::2]))
    changed = zip(there[::2], new, strict=True)
    feed.send(keyed(update(table, 5, old, n % 3, **row), "k0", "id") for n, (old, row) in enumerate(changed))
    feed.send([keyed(update(table, 5, there[1], **moved), "k0", "id"), *watermarks(5)])
    feed.apply()
    wanted = sorted(tuple(row.values()) for row in (*new, moved))
    assert held(feed, table) == wanted


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_column_named_as_the_key_of_a_stage_keeps_its_values(every: LocalFeed, count: int) -> None:
    """Beside a column of the target's own, rows pass through a stage, whose key gave numbers to what is NULL."""
    own = "id INT PRIMARY KEY, ticdc_reconciler_row INT, own INT DEFAULT 7"
    every.make_database("d", f"CREATE TABLE t ({own})")
    there = [{"id": n, "ticdc_reconciler_row": None if n % 2 else n} for n in range(count)]
    every.send([*(insert("d.t", 1, n % 3, **row) for n, row in enumerate(there)), *watermarks(1)])
    every.apply()
    changed = ((row, {**row, "ticdc_reconciler_row": None if n % 3 else n + 5000}) for n, row in enumerate(there))
    every.send([*(update("d.t", 2, old, n % 3, **row) for n, (old, row) in enumerate(changed)), *watermarks(2)])
    every.apply()
    rows = every.cells.tables(["d"])["d.t"][1]
    found = {int(row["id"]): (row["ticdc_reconciler_row"], int(row["own"])) for row in rows}
    assert found == {n: (None if n % 3 else n + 5000, 7) for n in range(count)}
