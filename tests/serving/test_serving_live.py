"""Changefeeds that run: isolation, changes, pauses, deletes, a dead JVM, a restart. One process serves most tests."""

import base64
import json
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from consumer.embedded import KafkaBroker
from tests.service.lab import Feed
from tests.service.messages import at, begun, ddl, encoded, insert, row_value, watermarks
from tests.serving.lab import TOKEN, Serving, config_of, feed_into

pytestmark = [pytest.mark.service, pytest.mark.spark]
SECRET = "not-to-be-seen"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("serving") / "changefeeds"
    folder.mkdir()
    settings = '# two at a time\n[spark]\nmaster = "local[2]"\n[api]\nvariables = ["TARGET_OF_*"]\n'
    settings += f'directories = ["{tempfile.gettempdir()}"]\n'
    (folder / "_serve.toml").write_text(settings)
    with Serving(folder, env={"TARGET_OF_TESTS": SECRET}) as found:
        yield found


@pytest.fixture
def feed(kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> Feed:
    return feed_into(tmp_path, kafka_broker.bootstrap, topic_name)


@pytest.fixture
def running(serving: Serving, feed: Feed) -> Feed:
    """A changefeed made through the API, with a row applied."""
    feed.send([*begun(), *watermarks(3)])
    serving.ask("POST", "", 201, json=config_of(feed))
    serving.reached(feed.name, at(3))
    return feed


def ids(feed: Feed) -> list[int]:
    return sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1])


def more(feed: Feed, number: int) -> int:
    """Send another row; up to where the changefeed is then to come."""
    feed.send([insert("d.t", number, 1, id=number, v=number, s="x"), *watermarks(number + 1)])
    return at(number + 1)


def metrics(serving: Serving) -> dict[str, dict[tuple[str, ...], float]]:
    """Metric -> labels' values -> value."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(serving.client.get("/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(v for _, v in sorted(sample.labels.items()))] = sample.value
    return found


def test_status_history_and_metrics_agree(serving: Serving, running: Feed) -> None:
    name, limit = running.name, at(3)
    status = serving.until(name, "its history", lambda _: bool(serving.ask("GET", f"/{name}/history")["items"]))
    assert (status["state"], status["leads"], status["error"]) == ("normal", True, None)
    assert (status["events"], status["source"]["resolved_ts"], status["source"]["lag_seconds"]) == (1, limit, 0.0)
    assert [p["unread"] for p in status["source"]["partitions"]] == [0, 0, 0]
    assert status["last_windows"][0]["checkpoint_ts"] == limit
    serving.until(name, "what the target tells", lambda s: len(s["ddl_history"]) == 2 and s["leader"] is not None)
    assert set(running.status()) <= set(status), "the keys of `reconciler status --json`"
    sample = serving.ask("GET", f"/{name}/history")["items"][-1]
    again = serving.ask("GET", f"/{name}/history", params={"since": sample["at"]})["items"]
    assert all(one["at"] > sample["at"] for one in again)
    told = metrics(serving)
    prefix = "ticdc_reconciler_"
    assert told[f"{prefix}events_total"][(name,)] == 1
    assert told[f"{prefix}leader"][(name,)] == 1
    assert told[f"{prefix}changefeed_state"][(name, "normal")] == 1
    assert told[f"{prefix}checkpoint_timestamp_seconds"][(name,)] == (limit >> 18) / 1000
    assert told[f"{prefix}windows_total"][(name,)] == status["windows"]
    assert told[f"{prefix}window_duration_seconds_count"][(name,)] == status["windows"]
    assert told[f"{prefix}window_duration_seconds_bucket"][(name, "+Inf")] == status["windows"]
    partitions = {(name, str(p["partition"]), p["topic"]): p["offset"] for p in status["source"]["partitions"]}
    offsets = {k: v for k, v in told[f"{prefix}partition_offset"].items() if k[0] == name}
    assert offsets == partitions
    distance = {k: v for k, v in told[f"{prefix}partition_retention_distance_messages"].items() if k[0] == name}
    assert distance == partitions, "nothing was deleted"


@pytest.mark.by_turns
def test_one_fails_and_the_others_go_on(
    serving: Serving, running: Feed, kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    refused, missing = (feed_into(tmp_path, kafka_broker.bootstrap, f"{running.topic}-{n}") for n in ("a", "b"))
    refused.with_(target={"audit": True})
    refused.send([*begun(), ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `s` BIGINT", kind="ALTER"), *watermarks(9)])
    for one in (refused, missing):
        serving.ask("POST", "", 201, json=config_of(one))
    failed = serving.until(missing.name, "failure", lambda s: s["state"] == "failed")["error"]
    assert (failed["code"], failed["exit_code"]) == ("Reconciler:ErrInput", 3)
    failed = serving.until(refused.name, "failure", lambda s: s["state"] == "failed")["error"]
    assert (failed["code"], failed["exit_code"], failed["retry_in_seconds"]) == ("Reconciler:ErrTarget", 4, None)
    file = serving.status(refused.name)["file"]
    assert f"`reconciler ddl skip {file} {at(4)}`" in failed["hint"]
    serving.reached(running.name, more(running, 5))
    assert ids(running) == [1, 5]
    missing.send([*begun(), *watermarks(3)])
    serving.ask("POST", f"/{missing.name}/resume")
    serving.reached(missing.name, at(3))
    assert serving.ask("POST", f"/{refused.name}/ddls/{at(3)}/skip", 400, json={"reason": "no such"})
    done = serving.ask("POST", f"/{refused.name}/ddls/{at(4)}/skip", json={"reason": "not needed"})
    assert done["becomes"] == "skipped"
    serving.ask("POST", f"/{refused.name}/resume")
    serving.reached(refused.name, at(9))
    log = serving.ask("GET", f"/{refused.name}/ddls", params={"limit": 1})["items"]
    assert [(line["state"], line["reason"]) for line in log] == [("skipped", "not needed")]
    windows = serving.ask("GET", f"/{refused.name}/audit")["items"]
    assert [window["rows_by_table"] for window in windows] == [{"d.t": 1}]
    states = {one["id"]: one["state"] for one in serving.ask("GET", "")["items"]}
    assert {states[one.name] for one in (running, refused, missing)} == {"normal"}


@pytest.mark.by_turns
def test_change_pause_resume(serving: Serving, running: Feed) -> None:
    name = running.name
    path = serving.folder / f"{name}.toml"
    path.write_text(f"# a note of an operator\n{path.read_text()}")
    done = serving.ask("PUT", f"/{name}", json={"filter": {"rules": ["*.*", "!d.hidden"]}, "limits": {"writers": 3}})
    assert (done["changed"], done["restarted"]) == (["filter.rules", "limits.writers"], True)
    assert "# a note of an operator" in path.read_text()
    assert tomllib.loads(path.read_text())["filter"]["rules"] == ["*.*", "!d.hidden"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    serving.reached(name, more(running, 5))
    serving.until(name, "its digest", lambda s: s["state"] == "normal")
    refused = {
        "target": ({"target": {"uri": f"sqlite:///{tempfile.gettempdir()}/elsewhere"}}, "the target would move"),
        "topics": ({"source": {"topics": ["another"]}}, "source.topics can't be changed"),
        "id": ({"changefeed": "another"}, "changefeed can't be changed"),
        "spark": ({"spark": {"master": "local[1]"}}, "spark.master can't be changed"),
        "wider": ({"filter": {"rules": ["*.*"], "event-filters": None}}, "differ from those"),
    }
    for change, said in refused.values():
        assert said in serving.ask("PUT", f"/{name}", 409, json=change)["fact"]
    for wrong, said in (({"window-rows": -1}, "window-rows"), ({"x": 1}, "unknown key 'limits.x'")):
        assert said in serving.ask("PUT", f"/{name}", 400, json={"limits": wrong})["fact"]
    assert serving.ask("PUT", f"/{name}", json={"limits": {"writers": 3}})["changed"] == []
    assert serving.ask("POST", f"/{name}/pause")["state"] == "stopped"
    before = path.read_text()
    limit = more(running, 7)
    assert serving.ask("PUT", f"/{name}", json={"limits": {"writers": None}})["restarted"] is False
    assert path.read_text() != before
    assert serving.status(name)["state"] == "stopped"
    assert ids(running) == [1, 5]
    serving.ask("POST", f"/{name}/resume")
    serving.reached(name, limit)
    assert ids(running) == [1, 5, 7]
    windows = [line for line in serving.lines if line["event"] == "applied" and line["changefeed"] == name]
    assert windows
    assert all(isinstance(line["windows"], int) for line in windows)


@pytest.mark.by_turns
def test_delete_keeps_the_progress_unless_asked(serving: Serving, running: Feed) -> None:
    name, config = running.name, config_of(running)
    assert serving.ask("POST", "", 409, json=config)["fact"] == f"changefeed {name!r} exists"
    assert serving.ask("DELETE", f"/{name}") == {"id": name, "progress_deleted": False}
    assert not (serving.folder / f"{name}.toml").exists()
    serving.ask("GET", f"/{name}", 404)
    assert running.checkpoint() == at(3)
    limit = more(running, 5)
    serving.ask("POST", "", 201, json=config)
    assert serving.reached(name, limit)["events"] == 2, "it went on"
    assert "confirm" in serving.ask("DELETE", f"/{name}", 400, params={"delete_progress": True})["hint"]
    serving.ask("DELETE", f"/{name}", params={"delete_progress": True, "confirm": name})
    assert running.checkpoint() == 0
    assert ids(running) == [1, 5], "rows stay"
    assert name not in serving.client.get("/metrics").text


def test_secrets_stay_references(serving: Serving, feed: Feed) -> None:
    uri = "mariadb://reader:${TARGET_OF_TESTS}@127.0.0.1:1"
    values = {**config_of(feed), "target": {"uri": uri}, "redis": {"uri": "redis://:literal-one@127.0.0.1:1/0"}}
    serving.ask("POST", "", 201, json=values)
    serving.until(feed.name, "trouble", lambda s: s["state"] in ("warning", "failed"))
    path = serving.folder / f"{feed.name}.toml"
    assert tomllib.loads(path.read_text())["target"]["uri"] == uri
    config = serving.ask("GET", f"/{feed.name}/config")["config"]
    assert config["target"]["uri"] == uri
    assert config["redis"]["uri"] == "redis://:***@127.0.0.1:1/0"
    for path in ("", "/config", "/history"):
        answer = serving.client.get(f"/api/v2/changefeeds/{feed.name}{path}").text
        assert not [secret for secret in (SECRET, "literal-one") if secret in answer]
    refused = ("redis://:***@h:1/0", "file:/etc/passwd", "redis://:${HOME}@h:1/0", "redis://:${RECONCILER_TOKEN}@h:1/0")
    for value in refused:
        serving.ask("PUT", f"/{feed.name}", 400, json={"redis": {"uri": value}})
    serving.ask("DELETE", f"/{feed.name}")
    assert not [line for line in serving.raw if SECRET in line or "literal-one" in line or TOKEN in line]


@pytest.mark.by_turns
def test_quarantine(serving: Serving, feed: Feed) -> None:
    feed.send(begun(columns="id INT PRIMARY KEY, v INT NOT NULL, s VARCHAR(10)"))
    feed.with_(quarantine={"enabled": True})
    serving.ask("POST", "", 201, json=config_of(feed))
    feed.send_raw(1, encoded(row_value("INSERT", "d.t", at(4), {"id": 3, "v": None, "s": "bad"})), b"{")
    feed.send(watermarks(6))
    serving.until(feed.name, "two quarantined", lambda s: s["quarantine"].get("held") == 2)
    assert metrics(serving)["ticdc_reconciler_quarantine_messages"][(feed.name, "held")] == 2
    listed = serving.ask("GET", f"/{feed.name}/quarantine")
    assert [(one["topic"], one["partition"], one["state"]) for one in listed["items"]] == [(feed.topic, 1, "held")] * 2
    places = [one["message"] for one in listed["items"]]
    shown = serving.ask("GET", f"/{feed.name}/quarantine/{places[0]}")
    assert json.loads(shown["decoded"])["data"] == [{"id": "3", "v": None, "s": "bad"}]
    assert base64.b64decode(serving.ask("GET", f"/{feed.name}/quarantine/{places[1]}")["value"]) == b"{"
    serving.ask("GET", f"/{feed.name}/quarantine/{feed.topic}/0/999", 404)
    serving.ask("POST", f"/{feed.name}/quarantine/discard", 400, json={"reason": "x"})
    serving.ask("POST", f"/{feed.name}/quarantine/replay", 400, json={"messages": ["no-place"]})
    verdicts = serving.ask("POST", f"/{feed.name}/quarantine/replay", json={"messages": [places[0]]})["items"]
    assert [one["message"] for one in verdicts] == [places[0]]
    done = serving.ask("POST", f"/{feed.name}/quarantine/discard", json={"all": True, "reason": "test data"})["items"]
    assert {one["state"] for one in done} == {"discarded"}
    serving.until(feed.name, "running again", lambda s: s["state"] == "normal" and s["quarantine"]["held"] == 0)


@pytest.mark.by_turns
def test_a_topic_is_retired_and_counts_again(serving: Serving, running: Feed) -> None:
    serving.ask("POST", f"/{running.name}/topics/{running.topic}/return", 400)
    assert serving.ask("POST", f"/{running.name}/topics/{running.topic}/retire")["retired"]
    serving.until(running.name, "retired", lambda s: s["state"] == "normal" and s["retired_topics"] == [running.topic])
    assert not serving.ask("POST", f"/{running.name}/topics/{running.topic}/return")["retired"]
    serving.until(running.name, "counts", lambda s: s["state"] == "normal" and s["retired_topics"] == [])


@pytest.mark.by_turns
def test_spark_dies_and_all_go_on(serving: Serving, running: Feed, kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    other = feed_into(tmp_path, kafka_broker.bootstrap, f"{running.topic}-other")
    other.send([*begun(), *watermarks(3)])
    serving.ask("POST", "", 201, json=config_of(other))
    serving.reached(other.name, at(3))
    serving.kill_java()
    for one in (running, other):
        serving.reached(one.name, more(one, 5))
        assert ids(one) == [1, 5]
    assert len([line for line in serving.lines if "spark's JVM is gone" in line["event"]]) >= 1
    for one in (running, other):
        serving.until(one.name, "normal", lambda s: s["state"] == "normal" and s["error"] is None)


@pytest.mark.by_turns(9)
def test_a_restart_finds_all_as_it_was(kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> None:
    kept, paused, gone = (feed_into(tmp_path, kafka_broker.bootstrap, f"{topic_name}-{n}") for n in ("k", "p", "g"))
    folder = tmp_path / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('[spark]\nmaster = "local[2]"  # all of it\n')
    (folder / "broken.toml").write_text("changefeed = ")
    (folder / "other-spark.toml").write_text(
        'changefeed = "other-spark"\nsource = {bootstrap-servers = "x:1", topics = ["x"]}\n'
        'target = {uri = "sqlite:////tmp/x"}\nspark = {master = "local[7]"}\n'
    )
    for one in (kept, paused, gone):
        one.send([*begun(), *watermarks(3)])
    with Serving(folder) as serving:
        for one in (kept, paused, gone):
            serving.ask("POST", "", 201, json=config_of(one))
        for one in (kept, paused, gone):
            serving.reached(one.name, at(3))
        serving.ask("PUT", f"/{kept.name}", json={"limits": {"window-rows": 77}})
        serving.ask("POST", f"/{paused.name}/pause")
        serving.ask("DELETE", f"/{gone.name}")
        code, seconds = serving.ended()
        assert (code, seconds < 30) == (0, True), "".join(serving.raw)
    assert tomllib.loads((folder / "_serve.toml").read_text()) == {
        "spark": {"master": "local[2]"},
        "paused": [paused.name],
        "api": {"directories": [tempfile.gettempdir()]},
    }
    assert "# all of it" in (folder / "_serve.toml").read_text()
    limits = [more(one, 5) for one in (kept, paused)]
    with Serving(folder) as serving:
        serving.reached(kept.name, limits[0])
        states = {one["id"]: one["state"] for one in serving.ask("GET", "")["items"]}
        assert states == {
            kept.name: "normal",
            paused.name: "stopped",
            "broken": "failed",
            "other-spark": "failed",
        }
        assert serving.status(paused.name)["checkpoint_ts"] == at(3)
        assert serving.ask("GET", f"/{kept.name}/config")["config"]["limits"]["window-rows"] == 77
        assert "_serve.toml" in json.dumps(serving.status("other-spark")["error"])
        serving.ask("POST", f"/{paused.name}/resume")
        serving.reached(paused.name, limits[1])
        assert serving.ended()[0] == 0
    assert ids(paused) == [1, 5]
