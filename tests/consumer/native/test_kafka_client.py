"""The core's consumer: where Kafka's library can't be called, or refuses a setting, confluent-kafka's does its work."""

from contextlib import closing
from typing import Any

import confluent_kafka
import pytest

from consumer import native
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import RangeReader
from consumer.native import Core, kafka_client
from consumer.native.kafka_client import ClientChoice, CoreConsumer, RefusedSetting, kafka_library
from consumer.tasks.scans import choose_scan
from consumer.tasks.scans.choose_scan import reduction_of
from ordering.errors import SourceError
from tests.consumer.native.test_core_equal import case_of

SETTINGS = reader_settings("127.0.0.1:1", {})


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose library is another one."""
    monkeypatch.setattr(kafka_client, "kafka_library", lambda: ClientChoice(None, "it is another one"))


def consumer_of(settings: dict[str, Any], core: Core | None) -> Any:
    with closing(RangeReader(settings, core=core)) as reader:
        return reader._consumer


def test_the_library_of_confluent_kafka_is_found() -> None:
    assert kafka_library().why == ""
    assert kafka_library().library.rd_kafka_version() == confluent_kafka.libversion()[1]


@pytest.mark.parametrize("version", [0x01090000, 0x03000000, confluent_kafka.libversion()[1] + 1])
def test_another_version_is_left_alone(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(kafka_client.confluent_kafka, "libversion", lambda: ("other", version))
    library, why = kafka_library.__wrapped__()
    assert library is None
    assert f"{version:#010x}" in why


def test_a_library_without_a_function_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "_PROTOTYPES", {"rd_kafka_no_such": (None, ())})
    library, why = kafka_library.__wrapped__()
    assert library is None
    assert "rd_kafka_no_such" in why


@pytest.mark.parametrize("without", [False, True])
def test_who_reads(core: Core, request: pytest.FixtureRequest, *, without: bool) -> None:
    if without:
        request.getfixturevalue("without_library")
    assert isinstance(consumer_of(SETTINGS, core), CoreConsumer) != without
    assert isinstance(consumer_of(SETTINGS, None), confluent_kafka.Consumer)


def test_the_reason_is_told(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LIBRARY", core.path)
    case = case_of([])
    assert reduction_of(case.spec, 0)[1] == ""
    why = ClientChoice(None, "it is another one")
    monkeypatch.setattr(choose_scan, "kafka_library", lambda: why)
    assert reduction_of(case.spec, 0)[1] == "it is another one"


@pytest.mark.parametrize(
    "more", [{"no.such.setting": 1}, {"fetch.wait.max.ms": "soon"}, {"security.protocol": "SSL", "ssl.ca.pem": "none"}]
)
def test_what_is_refused_is_told_in_the_same_words(core: Core, more: dict[str, Any]) -> None:
    told = []
    for who in (core, None):
        with pytest.raises(SourceError) as caught:
            consumer_of(SETTINGS | more, who)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "[source.kafka] is refused" in told[0]


def test_a_callback_is_left_to_python(core: Core) -> None:
    with pytest.raises(RefusedSetting):
        CoreConsumer(core, SETTINGS | {"oauth_cb": print}, print, 1)


@pytest.mark.by_turns
def test_faults_are_told_alike(core: Core) -> None:
    """Nobody listens at that port: who waits for messages hears it."""
    told = []
    for who in (core, None):
        with closing(RangeReader(SETTINGS, core=who)) as reader:
            found = reader.login(5.0)
            assert not found.is_refused
            told.append(found.told.partition(":")[0])
    assert told[0]
    assert told[0] == told[1]
