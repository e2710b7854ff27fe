"""The benchmark's own pieces, and a small run of it."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker
from tests.bench import goals, latency
from tests.bench.__main__ import main
from tests.bench.load import Change, Digest, Load, Mark, Message
from tests.bench.peers.__main__ import RESULTS, table_of
from tests.bench.tables import Many, RowChange, Shop, TablesLoad, Wide
from tests.embedded import MariaDbServer, PostgresServer


def test_the_load_is_the_same_each_time_and_has_its_shape() -> None:
    load = Load(20_000)
    assert list(load.messages()) == list(Load(20_000).messages())
    changes = [step for step in load.changes() if isinstance(step, Change)]
    kinds = Counter("I" if c.old is None else "D" if c.new is None else "U" for c in changes)
    assert len(changes) == 20_000
    assert {kind: round(count / 20_000, 1) for kind, count in kinds.items()} == {"I": 0.2, "U": 0.7, "D": 0.1}
    assert [c.commit_ts for c in changes] == sorted(c.commit_ts for c in changes)
    assert len({(c.commit_ts, c.id) for c in changes}) == 20_000


def test_a_watermark_lies_above_what_was_sent_and_below_what_follows() -> None:
    stamps = [
        (step.ts, "mark") if isinstance(step, Mark) else (step.commit_ts, "row")
        for step in Load(5_000, watermark_every=100).changes()
    ]
    for (ts, what), (following, _) in pairwise(stamps):
        assert ts < following if what == "mark" else ts <= following
    assert stamps[-1][1] == "mark"


def test_messages_of_a_row_stay_in_one_partition() -> None:
    load = Load(3_000)
    found = Counter(message.partition for message in load.messages() if isinstance(message, Message))
    assert set(found) == set(range(load.partitions))


def test_the_digest_at_a_checkpoint_is_the_table_at_that_moment() -> None:
    load, live, digests = Load(3_000), {}, {}
    steps = [step for step in load.changes() if isinstance(step, Change)]
    for step in steps:
        live[step.id] = step.new
        digests[step.commit_ts] = sum(row is not None for row in live.values())
    found = load.digests(list(digests))
    assert {ts: digest.rows for ts, digest in found.items()} == digests
    assert found[steps[-1].commit_ts] == load.digest()
    assert load.digests([0])[0] == Digest(0, load.digests([1])[1].sha256)


@pytest.mark.parametrize("kind", [Shop, Wide, Many])
def test_several_tables_are_the_same_each_time(kind: type[TablesLoad]) -> None:
    assert list(kind(3_000).messages()) == list(kind(3_000).messages())
    changes = [step for step in kind(3_000).steps() if isinstance(step, RowChange)]
    assert len(changes) == 3_000
    assert [c.commit_ts for c in changes] == sorted(c.commit_ts for c in changes)
    assert len({(c.commit_ts, c.table, (c.new or c.old or ())[0]) for c in changes}) == 3_000
    assert sum(digest.rows for digest in kind(3_000).expected().values()) == sum(
        (c.old is None) - (c.new is None) for c in changes
    )


def test_a_shop_has_small_and_large_transactions() -> None:
    sizes = Counter(step.commit_ts for step in Shop(5_000).steps() if isinstance(step, RowChange))
    assert {1, 1000} <= set(sizes.values())


@pytest.mark.by_turns(9)
@pytest.mark.service
@pytest.mark.spark
@pytest.mark.cells
@pytest.mark.parametrize(
    ("load", "target"),
    [("update-heavy", "mysql"), ("insert-only", "postgresql"), ("shop", "sqlite"), ("wide", "mysql")],
)
def test_a_small_run_is_correct(
    load: str,
    target: str,
    kafka_broker: KafkaBroker,
    mariadb_server: MariaDbServer,
    postgres_server: PostgresServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = {"mysql": mariadb_server.uri, "postgresql": postgres_server.uri, "sqlite": ""}[target]
    words = ["--load", load, "--target", target, "--kafka", kafka_broker.bootstrap, "--server", server, "--json"]
    events = 2_000 if load == "wide" else 20_000
    assert main([*words, "--events", str(events), *(["--limits"] if load == "shop" else [])]) == 0
    result, *limits = capsys.readouterr().out.splitlines()
    told = json.loads(result)
    assert told["correct"]
    assert told["events"] == events
    assert 0 < told["driver_peak_mb"] < told["tree_peak_mb"]
    assert told["processing_s"] < told["wall_s"]
    assert len(limits) == (load == "shop")


@pytest.mark.by_turns
@pytest.mark.service
@pytest.mark.spark
def test_a_small_live_run_is_correct(
    kafka_broker: KafkaBroker, mariadb_server: MariaDbServer, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ["--kafka", kafka_broker.bootstrap, "--server", mariadb_server.uri]
    assert latency.main([*servers, "--rate", "200", "--seconds", "3", "--warm-seconds", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["correct"]
    assert (told["watermarks"], told["events"]) == (15, 800)
    assert 0 < told["p50_ms"] <= told["p99_ms"] <= told["max_ms"]
    assert 0 < told["first_mb"] <= told["peak_mb"]


def test_the_documentation_holds_the_table_of_the_last_results() -> None:
    assert table_of(json.loads(RESULTS.read_text())) in (Path(__file__).parents[2] / "docs/performance.md").read_text()


def test_the_documentation_holds_the_table_of_the_goals() -> None:
    assert goals.table_of(goals.kept()) in (Path(__file__).parents[2] / "docs/performance.md").read_text()


def test_each_goal_has_a_command_that_measures_it() -> None:
    run = {
        "processing_s": 2.0,
        "wall_s": 4.0,
        "events": 1_000_000,
        "ddl_s": 0.5,
        "start_s": 2.5,
        "cpu_s": 6.0,
        "peak_mb": 900,
    }
    large = {**run, "processing_s": 17.6, "events": 8_000_000}
    peers = [{**run, "target": t, "who": who} for t in ("mysql", "postgresql") for who in ("flink", "ours")]
    verbs = {"mysql": "LOAD DATA", "postgresql": "COPY"}
    rates = {
        f"bulk-{target}": [
            {"what": what, "rows_per_s": rate}
            for what, rate in ((f"{verb}, connections=1", 100), (f"{verb}, connections=2", 200), ("snapshot", 75),
                               ("row, writers=2", 100))
        ]
        for target, verb in verbs.items()
    }  # fmt: skip
    live = [{"p50_ms": 200, "p99_ms": 400, "cpu_percent": 0.9}]
    results = {
        "peers": peers, "usual": [run, {"ratio": 1.1}], "ddls": [{**run, "processing_s": 3.1}], "large": [large],
        "shop": [run], "many": [run], "encoding": [{"core_us": 0.4}, {"core_us": 0.5}], **rates,
        "live-2000": live, "live-10000": live, "idle": live,
    }  # fmt: skip
    assert set(results) == {*goals.COMMANDS, "peers"}
    figures = [row.figure(results) for row in goals.ROWS]
    assert figures[5:11] == [
        "1.30 (1.55 with their time)", "1.10", "0.40 and 0.50 µs",
        "0.75 and 0.50 (MariaDB), 0.75 and 0.50 (PostgreSQL)",
        "1.33 and 1.33", "1.10",
    ]  # fmt: skip
