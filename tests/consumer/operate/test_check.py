"""What `check` refuses without asking any server."""

import socket
from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import config_from
from consumer.embedded.ports import lease_port
from consumer.operate.check import Finding, findings
from consumer.source.offer import Kept, PartitionProbe, Probe
from consumer.source.probe import Source
from consumer.spark.context import start_spark
from consumer.spark.master import check_master
from ordering.errors import (
    TRANSIENT,
    AnotherProtocolError,
    ClusterUnreachableError,
    ConfigError,
    InputError,
    TargetError,
)
from ordering.events import Partition, Position
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.watermark import global_resolved
from sinks.target import Target
from tests.consumer.codec.test_foreign import FORMS


@pytest.mark.parametrize(
    ("consistency", "master", "refused"),
    [("row", "spark://far:7077", True), ("snapshot", "spark://far:7077", False), ("row", "local[2]", False)],
)
def test_tasks_on_other_machines_cannot_write_sqlite(
    consistency: str, master: str, refused: bool, tmp_path: Path
) -> None:
    values = {
        "changefeed": "c",
        "source": {"bootstrap-servers": "nowhere:9092", "topics": ["t"]},
        "target": {"uri": f"sqlite:///{tmp_path}/out", "consistency": consistency},
        "spark": {"master": master},
    }
    found = next(f for f in findings(config_from(values, "test")) if f.subject == "target")
    assert isinstance(found.error, ConfigError) == refused


VALUES = {
    "changefeed": "c",
    "source": {"bootstrap-servers": "127.0.0.1:9092", "topics": ["t"]},
    "redis": {"uri": ""},
}
WHERE = Partition("t", 0)


def probed(*messages: bytes | None) -> Probe:
    """A topic with one partition that holds these."""
    if not messages:
        return Probe({}, {}, global_resolved({}))
    at = PartitionProbe(PartitionProgress(0, 0), len(messages), len(messages), None)
    return Probe({"t": TopicProgress("id")}, {WHERE: at}, global_resolved({WHERE: None}))


def checked(monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], *messages: bytes | None) -> dict[str, Finding]:
    """The findings by subject, with Kafka as a topic of these messages."""

    class Topics:
        config = config_from(values, "test")

        def probe(self, _: Progress) -> Probe:
            return probed(*messages)

        def message(self, position: Position) -> Kept:
            return Kept(None, messages[position.offset], None)

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(Source, "of", lambda _: Topics())
    return {one.subject: one for one in findings(Topics.config)}


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    return {**VALUES, "target": {"uri": f"sqlite:///{tmp_path}/out"}}


def test_a_target_that_refuses_is_blamed_alone(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TargetError("the target refuses: 1045", where="db:3306", hint="check the password")

    monkeypatch.setattr(Target, "stored", refuse)
    monkeypatch.setattr(Target, "check", refuse)
    found = checked(monkeypatch, values, WATERMARK)
    assert {name for name, one in found.items() if one.error is not None} == {"target"}


def test_no_topic_that_matches_is_an_error(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"bootstrap-servers": "127.0.0.1:9092", "topics": ["~cdc_"]}
    error = checked(monkeypatch, {**values, "source": source})["kafka"].error
    assert isinstance(error, InputError)
    assert error.fact == "no topic matches ~cdc_"
    assert "whole name" in error.hint


WATERMARK = (
    b'{"id":0,"database":"","table":"","pkNames":null,"isDdl":false,"type":"TIDB_WATERMARK","es":1,"ts":1,"sql":"",'
)
WATERMARK += b'"sqlType":null,"mysqlType":null,"data":null,"old":null,"_tidb":{"watermarkTs":5}}'
BARE = b'{"id":0,"database":"d","table":"t","pkNames":["id"],"isDdl":false,"type":"INSERT","es":1,"ts":1,"sql":"",'
BARE += b'"sqlType":{"id":4},"mysqlType":{"id":"int"},"data":[{"id":"1"}],"old":null}'


@pytest.mark.parametrize(
    ("messages", "fact", "hint"),
    [
        ((BARE, BARE), "message lacks the TiDB extension", "enable-tidb-extension=true"),
        ((BARE, WATERMARK), "message lacks the TiDB extension", "enable-tidb-extension=true"),
        ((WATERMARK, b"Obj\x01avro"), "message is not valid JSON", "protocol=canal-json"),
        ((WATERMARK, b'{"schema":{},"payload":{}}'), "message is JSON but not Canal-JSON", "protocol=canal-json"),
    ],
)
def test_messages_that_no_run_could_read_are_named(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch, messages: tuple[bytes, ...], fact: str, hint: str
) -> None:
    error = checked(monkeypatch, values, *messages)["kafka"].error
    assert isinstance(error, InputError)
    assert error.fact.startswith(fact)
    assert hint in error.hint
    assert error.where.startswith("topic=t partition=0 offset=")


@pytest.mark.parametrize("form", [name for name, form in FORMS.items() if form.protocol != "canal-json"])
def test_messages_of_another_protocol_are_named(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], form: str
) -> None:
    found = checked(monkeypatch, values, FORMS[form].value)["kafka"]
    assert isinstance(found.error, AnotherProtocolError)
    assert FORMS[form].names in found.error.hint
    assert found.error.where == "topic=t partition=0 offset=0"


def test_readable_messages_are_fine(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, values, WATERMARK, WATERMARK)["kafka"]
    assert found.line().startswith("ok   kafka: 1 topic, 1 partition")


def test_a_dead_master_is_named_and_worth_a_retry(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    lease = lease_port()  # once nothing listens there, nobody else takes it
    port = lease.port
    with socket.create_server(("127.0.0.1", port)):
        alive = {**values, "spark": {"master": f"spark://127.0.0.1:{port}"}}
        assert checked(monkeypatch, alive, WATERMARK)["spark"].error is None
    dead = {**values, "spark": {"master": f"spark://127.0.0.1:{port}"}}
    error = checked(monkeypatch, dead, WATERMARK)["spark"].error
    assert isinstance(error, TRANSIENT)
    assert f"127.0.0.1:{port}" in error.fact
    assert error.exit_code == 2
    with pytest.raises(ClusterUnreachableError):
        start_spark("c", config_from(dead, "test").spark)
    lease.release()


def test_a_relative_directory_is_said(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    said = [
        one.text
        for one in findings(config_from({**values, "target": {"uri": "sqlite:///out"}}, "test"))
        if one.subject == "target"
    ]
    assert (
        said[0]
        == f"sqlite:///out is relative: from here it is {tmp_path}/out; sqlite:///{tmp_path}/out is that from anywhere"
    )


def test_a_text_of_a_server_makes_no_line_of_its_own() -> None:
    error = TargetError("refused\nok   kafka: forged", where="t", hint="mend it")
    assert Finding("target", str(error), error).line().splitlines() == [
        "FAIL target: refused",
        "     ok   kafka: forged (t)",
        "  hint: mend it",
    ]


@pytest.mark.parametrize("master", ["local[many]", "local[0]", "Local", "far:7077", ""])
def test_what_is_no_master_is_named_before_spark_starts(master: str, tmp_path: Path) -> None:
    config = config_from({**VALUES, "target": {"uri": f"sqlite:///{tmp_path}"}, "spark": {"master": master}}, "test")
    found = next(f for f in findings(config) if f.subject == "spark")
    assert isinstance(found.error, ConfigError)
    assert '"local[4]"' in found.error.hint
    with pytest.raises(ConfigError, match="no Spark master"):
        start_spark("c", config.spark)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local[*, 3]", "yarn", "k8s://https://h:6443"])
def test_the_masters_that_spark_knows_are_left_to_it(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    ("start_ts", "is_whole", "told"),
    [
        (463267587686400000, True, "463267587686400000 is 2026-01-01 00:00:00.000 UTC"),
        (1767225600000, False, "1767225600000 is 1970-01-01 01:52:21"),
        (20260101, False, "20260101 is 1970-01-01"),
    ],
)
def test_the_moment_of_start_ts_is_shown(start_ts: int, is_whole: bool, told: str, tmp_path: Path) -> None:
    source = {**VALUES["source"], "start-ts": start_ts}
    config = config_from({**VALUES, "source": source, "target": {"uri": f"sqlite:///{tmp_path}"}}, "test")
    found = next(f for f in findings(config) if f.subject == "start-ts")
    assert found.is_whole == is_whole
    assert told in found.text
