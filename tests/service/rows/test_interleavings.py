"""Whatever order partitions are read in, and wherever windows end: the same tables (R4, R5, R6).

The order inside a partition stays, for Kafka keeps it; the rest is drawn from a seed, which a test's name tells.
"""

from collections.abc import Iterator
from itertools import permutations, product

import pytest

from tests.service.cells import differences, oracle
from tests.service.interleaving import interleaved, portions
from tests.service.lab import Feed, recorded
from tests.service.messages import insert, update, watermarks

pytestmark = pytest.mark.service


def applied_in_portions(feed: Feed, recording: str, seed: int) -> None:
    feed.make_topic()
    checkpoint = 0
    for portion in portions(interleaved(recorded(recording), seed), seed, 4):
        feed.send(portion)
        outcome = feed.once()
        assert outcome.checkpoint_ts >= checkpoint
        checkpoint = outcome.checkpoint_ts
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), feed.cells) == []
    assert outcome.counts.duplicates == 0


@pytest.mark.parametrize("seed", range(8))
def test_a_key_that_moves_between_partitions(sqlite_feed: Feed, seed: int) -> None:
    consistency = ("snapshot", "transaction")[seed % 2]
    applied_in_portions(sqlite_feed.with_(target={"consistency": consistency}), "iv.index-value.raw", seed)


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("recording", ["split.ts.raw", "unique-swaps.index-value.raw"])
def test_swaps_and_chains(feed: Feed, recording: str, seed: int) -> None:
    applied_in_portions(feed, recording, seed)


@pytest.mark.parametrize("seed", range(2))
def test_ddls_between_the_rows_of_other_partitions(sqlite_feed: Feed, seed: int) -> None:
    applied_in_portions(sqlite_feed, "ddl-basic.no-watermark-before-ddl", seed)


CHANGES = {
    "chain": [(2, 3), (1, 2)],
    "swap": [(1, 2), (2, 1)],
    "ring": [(1, 2), (2, 3), (3, 1)],
}
"""Old key -> new key of the raw UPDATEs of one transaction."""


def every_way(name: str) -> Iterator[list[tuple[int, tuple[int, int]]]]:
    """Each order of the changes, in each choice of partitions."""
    moves = CHANGES[name]
    for order in permutations(moves):
        for places in product(range(2), repeat=len(moves)):
            yield list(zip(places, order, strict=True))


@pytest.mark.cells("feed", "name")
@pytest.mark.parametrize(
    ("feed", "consistency"),
    [("sqlite", "transaction"), ("mariadb", "snapshot"), ("postgres", "transaction")],
    indirect=["feed"],
)
@pytest.mark.parametrize("name", sorted(CHANGES))
def test_each_order_and_choice_of_partitions(feed: Feed, name: str, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    ways = list(every_way(name))
    tables = {f"way.t{i}": way for i, way in enumerate(ways)}
    feed.make_database("way", "; ".join(f"CREATE TABLE t{i} (id INT PRIMARY KEY, v INT)" for i in range(len(ways))))
    olds = sorted({old for old, _ in CHANGES[name]})
    feed.send([*(insert(table, 1, id=old, v=old) for table in tables for old in olds), *watermarks(1)])
    feed.once()
    moves = [(table, place, old, new) for table, way in tables.items() for place, (old, new) in way]
    feed.send(update(table, 2, {"id": old}, place, id=new, v=old) for table, place, old, new in moves)
    feed.send(watermarks(2))
    feed.once()
    want = sorted((new, old) for old, new in CHANGES[name])
    found = feed.cells.tables(["way"])
    got = {table: sorted((int(r["id"]), int(r["v"])) for r in found[table][1]) for table in tables}
    assert got == dict.fromkeys(tables, want)
