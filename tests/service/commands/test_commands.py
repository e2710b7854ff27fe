"""The command line as users and scripts meet it: exit codes, the JSON objects, no traceback, no secret."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from consumer.embedded import KafkaBroker, RedisServer
from tests.service.cells import MariaDbCells, SqliteCells, differences, oracle
from tests.service.lab import DEADLINE_S, Feed, eventually, reconciler, recorded, started_reconciler, toml_of
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]
OUTCOME = {"events", "duplicates", "late", "windows", "rows_written", "start_s", "processing_s", "checkpoint_ts"}
SECRET = "s3cr3t-Pa55"


def said(done: Any, code: int, *parts: str) -> str:
    """What a command said on stderr, once it is sure how it ended."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert SECRET not in done.stderr + done.stdout
    for part in parts:
        assert part in done.stderr + done.stdout
    return str(done.stderr)


def timed(feed: Feed) -> tuple[dict[str, Any], float]:
    """The last line of `run --once --json`, and the part of the wall clock's seconds that it does not account for.

    A part, and not seconds: a busy machine makes all of it slower.
    """
    begun_at = time.monotonic()
    done = started_reconciler("run", str(feed.file()), "--once", "--json")
    wall = time.monotonic() - begun_at
    said(done, 0)
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told) == OUTCOME
    return told, abs(1 - (told["start_s"] + told["processing_s"]) / wall)


@pytest.mark.by_turns
def test_once_and_json(sqlite_feed: Feed, redis_server: RedisServer) -> None:
    feed = sqlite_feed.with_(redis={"uri": redis_server.uri})
    feed.send(recorded("iv.index-value.raw"))
    told, first_gap = timed(feed)
    idle, second_gap = timed(feed)
    assert min(first_gap, second_gap) < 1 / 5
    assert (idle["events"], idle["checkpoint_ts"]) == (0, told["checkpoint_ts"])
    assert (told["events"], told["duplicates"], told["late"]) == (10, 0, 0)
    assert differences(oracle("iv"), feed.cells) == []
    row = feed.cells.progress(feed.name)
    assert {"changefeed", "checkpoint_ts", "offsets", "epoch", "updated_at"} <= set(row)
    assert row["checkpoint_ts"] == told["checkpoint_ts"]
    assert set(orjson.loads(row["offsets"])) == {feed.topic}


@pytest.mark.by_turns
def test_status_and_check(every_feed: Feed, redis_server: RedisServer) -> None:
    feed = every_feed
    feed.with_(redis={"uri": redis_server.uri})
    feed.send(recorded("iv.index-value.raw"))
    config = str(feed.file())
    said(feed.command("check", config), 0, "ok   target", "ok   kafka", "ok   redis", "3 partitions")
    fresh = json.loads(feed.command("status", config, "--json").stdout)
    assert (fresh["state"], fresh["checkpoint_ts"]) == ("new", 0)
    assert feed.cells.databases() & {"test2"} == set()
    outcome = feed.once()
    told = json.loads(feed.command("status", config, "--json").stdout)
    assert told["checkpoint_ts"] == outcome.checkpoint_ts == told["source"]["resolved_ts"]
    assert told["checkpoint_time"].startswith("2026-01-01")
    assert told["source"]["lag_seconds"] == 0
    assert [(p["partition"], p["unread"]) for p in told["source"]["partitions"]] == [(0, 0), (1, 0), (2, 0)]
    assert {"duplicates_proven", "duplicates_unproven", "ddls", "leader_epoch", "ledger"} <= set(told)
    assert len(told["ddl_history"]) == 3
    said(feed.command("status", config), 0, "checkpoint", "DDL")


@pytest.mark.by_turns
def test_what_lies_in_the_current_directory_is_not_imported(
    sqlite_feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("consumer", "ordering", "pyspark"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not yours')")
    monkeypatch.chdir(tmp_path)
    sqlite_feed.send(begun())
    said(started_reconciler("run", str(sqlite_feed.file()), "--once"), 0)


def test_nothing_of_ours_lies_in_users_databases(feed: Feed) -> None:
    feed.with_(target={"consistency": "transaction"})
    feed.send(recorded("unique-swaps.index-value.raw"))
    feed.once()
    assert set(feed.cells.tables(["us"])) == set(oracle("unique-swaps"))
    if isinstance(feed.cells, MariaDbCells):
        made = feed.cells.query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'us'")
        assert len(made) == len(oracle("unique-swaps"))


@pytest.mark.by_turns
@pytest.mark.cells
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_one_follows_and_stops(number: signal.Signals, sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    with feed.running() as process:
        eventually("the first rows", lambda: feed.reached(at(3)))
        for row in range(4, 8):
            feed.send([insert("d.t", row, row % 3, id=row, v=row), *watermarks(row)])
            eventually("a new watermark", lambda n=row: feed.reached(at(n)))  # type: ignore[misc]
        process.send_signal(number)
        stopping = time.monotonic()
        assert process.wait(DEADLINE_S) == 0
        assert time.monotonic() - stopping < 30
    assert "Traceback" not in feed.log()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 5


WRONG = {
    "unknown-key": ({"limits": {"window-row": 1}}, "limits.window-row"),
    "unknown-section": ({"sinks": {"a": 1}}, "sinks"),
    "text-for-a-number": ({"limits": {"window-rows": "many"}}, "limits.window-rows"),
    "number-for-a-list": ({"source": {"topics": 7}}, "source.topics"),
    "no-such-consistency": ({"target": {"consistency": "perfect"}}, "target.consistency"),
    "no-such-scheme": ({"target": {"uri": f"oracle://root:{SECRET}@127.0.0.1"}}, "oracle"),
    "missing-variable": ({"target": {"uri": "mysql://root:${NO_SUCH_VARIABLE}@127.0.0.1"}}, "NO_SUCH_VARIABLE"),
    "missing-secret-file": ({"redis": {"uri": "file:/no/such/secret"}}, "/no/such/secret"),
    "bad-expression": ({"source": {"topics": ["~("]}}, "source.topics"),
    "bad-zone": ({"source": {"time-zone": "Mars/Olympus"}}, "source.time-zone"),
    "bad-rule": ({"filter": {"rules": ["nonsense"]}}, "filter.rules"),
    "our-own-property": ({"source": {"kafka": {"group.id": "x"}}}, "group.id"),
}


def config_file(directory: Path, changes: dict[str, dict[str, Any]], bootstrap: str = "127.0.0.1:1") -> str:
    """A config that is fine but for the changes."""
    base = {
        "source": {"bootstrap-servers": bootstrap, "topics": ["t"]},
        "target": {"uri": f"sqlite:///{directory}/out"},
        "redis": {"uri": ""},
        "limits": {"retry-seconds": 0.1},
    }
    values = {name: {**base.get(name, {}), **changes.get(name, {})} for name in {**base, **changes}}
    kafka = values["source"].pop("kafka", None)
    path = directory / "config.toml"
    path.write_text(toml_of({"changefeed": "wrong", **values, **({"source.kafka": kafka} if kafka else {})}))
    return str(path)


@pytest.mark.parametrize("case", sorted(WRONG))
def test_wrong_configs(kafka_broker: KafkaBroker, tmp_path: Path, case: str) -> None:
    changes, named = WRONG[case]
    text = said(reconciler("check", config_file(tmp_path, changes, kafka_broker.bootstrap)), 2, named)
    assert "hint" in text or "FAIL" not in text


def test_a_wrong_config_is_found_before_spark_starts(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    java.chmod(0o755)
    wrong = config_file(tmp_path, {"limits": {"window-row": 1}})
    said(started_reconciler("run", wrong, "--once", JAVA_HOME=str(tmp_path)), 2, "limits.window-row", "error:")
    assert not (tmp_path / "started").exists()
    said(reconciler("run", str(tmp_path / "none.toml")), 2, "none.toml", "hint")
    said(reconciler("run"), 2, "CONFIG")


def test_values_from_variables_and_files(tmp_path: Path, mariadb_feed: Feed) -> None:
    (tmp_path / "secret").write_text(mariadb_feed.uri + "\n")
    mariadb_feed.send(begun())
    feed = mariadb_feed.with_(target={"uri": f"file:{tmp_path / 'secret'}"}, source={"topics": ["${THE_TOPIC}"]})
    done = reconciler("check", str(feed.file()), THE_TOPIC=feed.topic)
    said(done, 0, "ok   target")


@pytest.mark.parametrize(
    ("uri", "code", "where"),
    [
        (f"mysql://root:{SECRET}@127.0.0.1:{{port}}", 4, "127.0.0.1:{port}"),
        (f"mysql://root:{SECRET}@127.0.0.1:1", 4, "127.0.0.1:1"),
        ("sqlite:////dev/null/such", 4, "/dev/null/such"),
    ],
    ids=["refuses-the-password", "does-not-answer", "not-writable"],
)
def test_a_target_that_can_not_be_used(mariadb_feed: Feed, uri: str, code: int, where: str) -> None:
    feed = mariadb_feed
    port = feed.uri.rpartition(":")[2]
    feed.send(begun())
    feed.with_(target={"uri": uri.format(port=port)})
    said(feed.command("check", str(feed.file())), code, where.format(port=port), "FAIL target", "ok   redis")
    error = feed.failing()
    assert error.exit_code == code
    assert where.format(port=port) in str(error)
    assert SECRET not in str(error)


@pytest.mark.by_turns
def test_a_target_that_can_not_be_used_ends_a_run(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(target={"uri": f"mysql://root:{SECRET}@127.0.0.1:1"})
    feed.make_topic()
    text = said(feed.command("run", str(feed.file()), "--once"), 4, "127.0.0.1:1")
    assert text.count("error:") == 1


def test_more_databases_than_sqlite_attaches(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    for number in range(11):
        SqliteCells(tmp_path / "out").run(f"d{number}", "CREATE TABLE t (id INT PRIMARY KEY)")
    said(
        reconciler("check", config_file(tmp_path, {}, kafka_broker.bootstrap)),
        4,
        "FAIL target",
        "11 databases",
        "filter rules",
    )


def test_kafka_out_of_reach(tmp_path: Path) -> None:
    place = "127.0.0.1:1"
    config = config_file(tmp_path, {"source": {"bootstrap-servers": place}})
    said(reconciler("check", config), 3, place, "FAIL kafka")


def test_redis_out_of_reach_is_no_failure(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(redis={"uri": f"redis://:{SECRET}@127.0.0.1:1/0"})
    feed.send(begun())
    said(feed.command("check", str(feed.file())), 0, "redis", "out of reach")
    assert feed.once().checkpoint_ts == at(3)
