"""Reads as of 50 random TSOs, by the rule of docs/iceberg.md alone: the model's rows of all tables at once."""

import random
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from consumer.pipeline.round import Round
from tests.service.lab import recorded
from tests.service.local import Killed, LocalFeed
from tests.sinks.iceberg_cells import IcebergCells
from tests.sinks.test_iceberg import BANK, Assassin
from tests.spark_source.model import identities

READS = 50
KEYS = {"bank.acc2": ("no",)}
State = dict[str, list[tuple[tuple[str, str], ...]]]


def shown(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in row.items()))


def model(changes: dict[Any, Any], checkpoint: int) -> State:
    """The rows of all tables after the changes up to a checkpoint."""
    rows: dict[tuple[str, str], Any] = {}
    for (database, table, ts, _, key), row in sorted(changes.items(), key=lambda one: (one[0][2], one[0][3])):
        if ts <= checkpoint:
            rows[f"{database}.{table}", key] = row
    found: State = {name: [] for name in BANK}
    for (name, _), row in rows.items():
        if row is not None:
            found[name].append(shown(row))
    return {name: sorted(some) for name, some in found.items()}


def checkpoints(feed: LocalFeed, assassin: Assassin, reached: set[int]) -> bool:
    """Rounds until nothing is left; False if killed on the way. `reached`: takes each checkpoint."""
    try:
        with feed.leading(assassin) as session:
            reached.add(session.progress.checkpoint_ts)
            while Round(session).run(to_end=True):
                reached.add(session.progress.checkpoint_ts)
    except Killed:
        return False
    return True


@pytest.mark.by_turns
def test_reads_as_of_any_tso_are_the_models(tmp_path: Path) -> None:
    catalog, chance = tmp_path / "catalog.db", random.Random(21)
    cells = IcebergCells(catalog)
    feed = LocalFeed.into(f"iceberg+sqlite:///{catalog}?warehouse={tmp_path / 'warehouse'}", cells, tmp_path)
    messages, reached, assassin = recorded("bank.index-value.restarts"), set[int](), Assassin(chance, 0.03)
    step = len(messages) // 12
    for start in range(0, len(messages), step):
        feed.send(messages[start : start + step])
        while not checkpoints(feed, assassin, reached):
            pass
    assert assassin.kills > 0
    history = {name: list(cells.history(name)) for name in BANK}
    changes, moments = identities(messages, KEYS), sorted({*reached, cells.checkpoint()})
    states = {ts: model(changes, ts) for ts in moments}
    assert len({str(state) for state in states.values()}) > 5
    for _ in range(READS):
        tso = chance.randint(moments[0], moments[-1])
        found: State = {}
        for name, kept in history.items():
            at = bisect_right([ts for ts, _ in kept], tso)
            found[name] = sorted(map(shown, kept[at - 1][1])) if at else []
        assert found == states[moments[bisect_right(moments, tso) - 1]], tso
