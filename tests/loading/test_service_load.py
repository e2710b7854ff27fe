"""Dumps of a real TiDB land in every target as the pipeline would land them, and the pipeline goes on from there."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from consumer.config.changefeed_filter import read_filter
from consumer.load.csv_rows import CsvForm
from consumer.load.run import Load, LoadOptions, LoadOutcome
from ordering.errors import ConfigError, ReconcilerError
from tests.embedded import TidbServer
from tests.loading.conftest import drop_made, run_script
from tests.loading.dumping import Dumping, dump
from tests.loading.upstreams import oracle_of
from tests.service.cells import VECTORS, SqliteCells, differences, oracle
from tests.service.lab import Feed, body, is_row, recorded

pytestmark = [pytest.mark.service, pytest.mark.spark]
TSO = 463139414630400001
SCRIPTS = ("types", "keys", "names", "odd-keys", "ddl-columns")
COMPUTED = ["!ty.gen", "!ty.gen*", "!ks.gens"]
"""Tables with stored generated columns, whose values a dump lacks: SQLite and PostgreSQL don't compute them."""
RULES = {
    "sqlite": ["ty.*", "ok.*", "ks.*", *COMPUTED],  # 10 databases at most
    "mysql": ["*.*"],
    "postgresql": ["ks.*", "dc*.*", *COMPUTED],  # no U+0000, no zero dates, no name of 64 bytes
    "tidb": ["ty.*", "ks.*"],  # its DDL takes its time
}
FORMS = [
    (Dumping(), CsvForm()),
    (Dumping(rows=3, statement_size=60, complete_insert=True, compress=".gz"), CsvForm()),
    (Dumping(filetype="csv", compress=".zst"), CsvForm()),
    (
        Dumping(filetype="csv", escape_backslash=False, separator=b"|+|", compress=".snappy"),
        CsvForm("|+|", escapes=False),
    ),
]


def loaded(feed: Feed, directory: Path, form: CsvForm | None = None, **more: Any) -> LoadOutcome:
    return Load(feed.config, LoadOptions(directory, form=form or CsvForm(), **more)).run()


def failing(feed: Feed, directory: Path, kind: type[ReconcilerError]) -> ReconcilerError:
    with pytest.raises(kind) as caught:
        loaded(feed, directory)
    return caught.value


def filled(upstream: TidbServer, names: Sequence[str]) -> list[str]:
    """Run recorded scripts; the databases that they leave."""
    drop_made(upstream.uri, by_bank=False)
    databases: set[str] = set()
    for name in names:
        run_script(upstream.uri, (VECTORS / f"{name}.sql").read_text())
        databases |= {table.split(".")[0] for table in oracle(name)}
    return sorted(databases)


@pytest.fixture(scope="module")
def typed(upstream: TidbServer) -> dict[str, dict[str, Any]]:
    """What the upstream holds once the scripts have run."""
    return oracle_of(upstream.uri, filled(upstream, SCRIPTS))


def databases_of(held: dict[str, Any]) -> list[str]:
    return sorted({name.split(".")[0] for name in held})


@pytest.mark.cells(by_turns=("any_feed",))
def test_every_value_lands_as_the_upstream_holds_it(
    any_feed: Feed, upstream: TidbServer, typed: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    kind = any_feed.uri.split(":", maxsplit=1)[0]
    any_feed.with_(filter={"rules": RULES[kind]})
    wanted = read_filter(any_feed.config.filter).tables
    held = {name: table for name, table in typed.items() if wanted(*name.split(".", 1))}
    for number, (how, form) in enumerate(FORMS if kind == "sqlite" else FORMS[:1]):
        feed = Feed(**{**any_feed.__dict__, "topic": f"{any_feed.topic}-{number}"})
        if kind == "sqlite":
            feed.uri = f"sqlite:///{tmp_path}/target-{number}"
            feed.cells = SqliteCells(tmp_path / f"target-{number}")
        outcome = loaded(feed, dump(upstream.uri, tmp_path / f"dump-{number}", TSO, databases_of(typed), how), form)
        assert differences(held, feed.cells) == [], how
        assert outcome.finished
        assert outcome.rows == sum(len(table["rows"]) for table in held.values())
        assert feed.checkpoint() == TSO
        if not isinstance(feed.cells, SqliteCells):
            feed.cells.drop(databases_of(typed))


MIDDLE = 900
"""So many of the bank's 2000 transactions are in the dump."""


@pytest.fixture(scope="module")
def half(upstream: TidbServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of the bank in the middle of its work, at the commitTs of the last transaction that it holds."""
    script = gzip.decompress((VECTORS / "bank.sql.gz").read_bytes()).decode()
    drop_made(upstream.uri, by_bank=True)
    run_script(upstream.uri, "BEGIN;".join(script.split("BEGIN;")[: MIDDLE + 1]))
    rows = [body(message) for message in recorded("bank.index-value.restarts") if is_row(message)]
    last = f"tx{MIDDLE - 1}"  # each transaction leaves its number in the rows that it changes
    tso = min(row["_tidb"]["commitTs"] for row in rows if row["data"][0].get("note") == last)
    return dump(upstream.uri, tmp_path_factory.mktemp("half") / "dump", tso, ["bank"], Dumping(rows=20, compress=".gz"))


@pytest.mark.cells(by_turns=("any_feed",))
def test_load_and_run_from_the_middle_of_a_workload_equals_the_oracle(any_feed: Feed, half: Path) -> None:
    any_feed.send(recorded("bank.index-value.restarts"))
    outcome = loaded(any_feed, half, workers=2)
    assert (outcome.finished, outcome.tables) == (True, 3)
    assert differences(oracle("bank"), any_feed.cells) != []
    ran = any_feed.once()
    assert differences(oracle("bank"), any_feed.cells) == []
    assert ran.counts.duplicates > 0  # what the dump holds comes again in the topic
    assert ran.checkpoint_ts > outcome.checkpoint_ts
    again = failing(any_feed, half, ConfigError)
    assert "has run" in again.fact
    assert differences(oracle("bank"), any_feed.cells) == []
