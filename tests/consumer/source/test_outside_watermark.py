"""The checkpoint of TiCDC's API as a watermark: what it promises, and answers that must not be believed."""

import base64
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from consumer.config.model import config_from
from consumer.source.outside_watermark import CheckpointApi, OutsideWatermark, TicdcCheckpoint, outside_of
from consumer.source.ticdc_sink import TicdcSink
from ordering.errors import ConfigError, InputError, ReconcilerError, SourceError, SourceUnreachableError
from ordering.events import Partition
from ordering.timestamps import ResolvedTs
from tests.service.ticdc_api import TicdcApi, ticdc_api

ONE, OTHER = Partition("t", 0), Partition("t", 1)
TS = 433305438660591626


@pytest.fixture
def server() -> Iterator[TicdcApi]:
    with ticdc_api() as api:
        api.at(TS)
        yield api


def asking(server: TicdcApi, url: str = "", changefeed: str = "orders", keyspace: str = "default") -> CheckpointApi:
    return CheckpointApi(url or server.url, changefeed, keyspace)


def test_it_asks_for_the_changefeed_of_its_keyspace(server: TicdcApi) -> None:
    server.at(TS, id="a/b c", keyspace="ks")
    assert asking(server, changefeed="a/b c", keyspace="ks").checkpoint() == (TS, 0, TicdcSink())
    assert server.asked == ["/api/v2/changefeeds/a%2Fb%20c?keyspace=ks&namespace=ks"]
    assert server.logins == [None]


def test_a_checkpoint_of_the_far_future_is_refused_and_may_be_allowed(server: TicdcApi) -> None:
    """Where upstream's clock has jumped there is a way on, as for watermarks in topics."""
    server.at(ahead := int((time.time() + 3 * 86_400) * 1000) << 18)
    with pytest.raises(InputError, match="in the future by this machine's clock") as caught:
        asking(server).checkpoint()
    assert ("limits.clock-ahead-seconds" in caught.value.hint, server.url in caught.value.where) == (True, True)
    config = config_from(
        {
            "changefeed": "orders",
            "source": {"bootstrap-servers": "h:1", "topics": ["t"], "watermark-from": server.url},
            "target": {"uri": "sqlite:////tmp/x"},
            "limits": {"clock-ahead-seconds": 4 * 86_400.0},
        },
        "here",
    )
    api = outside_of(config).api
    assert api is not None
    assert api.checkpoint().checkpoint == ahead


def test_a_login_is_sent_and_never_shown(server: TicdcApi) -> None:
    api = asking(server, server.url.replace("//", "//root:s3cr%40t@"))
    assert api.checkpoint() == (TS, 0, TicdcSink())
    assert server.logins == ["Basic " + base64.b64encode(b"root:s3cr@t").decode()]
    server.status = 401
    with pytest.raises(SourceError) as caught:
        api.checkpoint()
    assert "s3cr" not in str(caught.value)
    assert "401" in caught.value.fact


BODIES: dict[str, bytes] = {
    "no JSON": b"<html>", "a list": b"[]", "nothing": b"", "cut": b'{"id":"orders","checkpoint_ts":1',
    "deep": b"[" * 100_000, "no UTF-8": b'{"id":"\xff"}', "without an end": b" " * (1 << 20) + b"{}",
    "no id": b'{"checkpoint_ts":1}', "a huge number": b'{"id":"orders","checkpoint_ts":' + b"9" * 5000 + b"}",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_answers_that_are_none(server: TicdcApi, name: str) -> None:
    server.body = BODIES[name]
    with pytest.raises(InputError) as caught:
        asking(server).checkpoint()
    assert server.url in caught.value.where


@pytest.mark.parametrize("ts", [0, -1, 2**63, 1.5, "7", None, True])
def test_checkpoints_that_are_none(server: TicdcApi, ts: object) -> None:
    server.at(ts)
    with pytest.raises(InputError, match="checkpoint_ts"):
        asking(server).checkpoint()


@pytest.mark.parametrize("changes", [{"id": "others"}, {"keyspace": "ks"}, {"keyspace": None, "namespace": "ks"}])
def test_another_changefeed(server: TicdcApi, changes: dict[str, str]) -> None:
    server.at(TS, **changes)
    with pytest.raises(InputError, match="it answers about changefeed"):
        asking(server).checkpoint()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(302, SourceError), (307, SourceError), (400, SourceError), (404, SourceError), (500, SourceUnreachableError),
     (503, SourceUnreachableError)],
)  # fmt: skip
def test_refusals(server: TicdcApi, status: int, kind: type[ReconcilerError]) -> None:
    with ticdc_api() as elsewhere:
        elsewhere.at(TS)
        server.status, server.headers = status, {"Location": elsewhere.url}
        with pytest.raises(SourceError) as caught:
            asking(server).checkpoint()
        assert type(caught.value) is kind
        assert elsewhere.asked == []


def test_an_answer_that_stops_is_silence(server: TicdcApi) -> None:
    server.headers = {"Content-Length": str(len(server.body) + 100), "Connection": "close"}
    server.body = server.body[:-1]
    with pytest.raises(SourceUnreachableError, match="does not answer"):
        asking(server).checkpoint()


def test_nobody_there(server: TicdcApi) -> None:
    with pytest.raises(SourceUnreachableError, match="does not answer"):
        asking(server, "http://127.0.0.1:1").checkpoint()


def test_a_checkpoint_counts_up_to_the_ends_that_were_asked_for_after_it() -> None:
    found = OutsideWatermark(None)

    def told(ts: int, ends: dict[Partition, int]) -> None:
        found.api = SimpleNamespace(checkpoint=lambda: TicdcCheckpoint(ResolvedTs(ts), 0))  # type: ignore[assignment]
        found.ask(lambda: ends)

    told(7, {ONE: 100, OTHER: 0})
    assert [found.upto(ONE, bound) for bound in (0, 99, 100, 200)] == [None, None, 7, 7]
    assert found.upto(OTHER, 0) == 7
    told(9, {ONE: 300})
    assert [found.upto(ONE, bound) for bound in (299, 300)] == [7, 9]
    told(5, {ONE: 400})
    assert found.upto(ONE, 400) == 9
    for ts in range(10, 1_000):
        told(ts, {ONE: 400 + ts})
    assert found.upto(ONE, 2_000) == 999
    assert found.upto(ONE, 100) == 7
    found.forget("t")
    assert found.upto(ONE, 2_000) is None


@pytest.mark.parametrize("begun", [None, True, -1, 2**63, "x", TS - 1, TS, TS + 1])
def test_a_changefeed_that_began_above_what_is_applied_is_refused(server: TicdcApi, begun: object) -> None:
    server.at(TS + 9, start_ts=begun)
    found = OutsideWatermark(asking(server))
    found.ask(dict)
    found.check_begun(0, accepted=False)  # a new one of ours, which begins with what the topics hold
    if begun != TS + 1:
        found.check_begun(TS, accepted=False)
        return
    with pytest.raises(InputError, match="made again") as caught:
        found.check_begun(TS, accepted=False)
    assert "unproven-beginning" in caught.value.hint
    found.check_begun(TS, accepted=True)


def dispatching(*topics: object, **kafka: object) -> dict[str, object]:
    """A changefeed's config as the API tells it."""
    return {"sink": {"dispatchers": [{"matcher": ["*.*"], "topic": topic} for topic in topics], "kafka_config": kafka}}


@pytest.mark.parametrize(
    ("told", "word"),
    [({"sink_uri": "mysql://root@h:4000/"}, "mysql://"), ({"sink_uri": "s3://b/t"}, "s3://"),
     ({"sink_uri": "kafka://h:9092/t?required-acks=1"}, "required-acks=1"),
     ({"sink_uri": "kafka://h:9092/t?required-acks=&required-acks=-1"}, "required-acks=,"),
     ({"sink_uri": "kafka://h:9092/t", "config": dispatching(required_acks=0)}, "required-acks=0"),
     ({"sink_uri": "kafka://h:9092/others"}, "writes to others"),
     ({"sink_uri": "kafka+ssl://h:1,i:2/d", "config": dispatching("x_{schema}", "{schema}{table}z")}, "to d, x_")],
)  # fmt: skip
def test_a_changefeed_that_writes_elsewhere(server: TicdcApi, told: dict[str, object], word: str) -> None:
    """Its checkpoint says nothing about these topics: rows that come later would count as repetitions."""
    server.at(TS, **told)
    found = OutsideWatermark(asking(server))
    with pytest.raises(InputError, match=word) as caught:
        found.ask(lambda: {ONE: 5, OTHER: 6})
    assert server.url in caught.value.where
    assert found.upto(ONE, 5) is None


WRITTEN = ("cdc_a_b", "cdc__", "x.a-b.y", "x..y", "plain", "t", "cdc_" + "a" * 245)
NOT_WRITTEN = ("cdc", "cdc_", "x.y", "xx.a.y", "plain2", "T", "x.a.yz", "d")


def test_a_checkpoint_counts_for_the_topics_that_its_changefeed_writes(server: TicdcApi) -> None:
    expressions = ("cdc_{schema}_{table}", "x.{schema}.y", "plain", "", None, 7)
    server.at(TS, sink_uri="kafka://h:9092/t/?protocol=avro", config=dispatching(*expressions, required_acks=-1))
    found = OutsideWatermark(asking(server))
    found.ask(lambda: {Partition(topic, 0): 5 for topic in (*WRITTEN, *NOT_WRITTEN)})
    assert [topic for topic in WRITTEN if found.upto(Partition(topic, 0), 5) != TS] == []
    assert [topic for topic in NOT_WRITTEN if found.upto(Partition(topic, 0), 5)] == []


@pytest.mark.parametrize("told", [
    {}, {"sink_uri": None}, {"sink_uri": 7}, {"sink_uri": "kafka://[h/t"},
    {"sink_uri": "kafka://h:9092/t", "config": None}, {"sink_uri": "kafka://h/t", "config": {"sink": []}},
    {"sink_uri": "kafka://h/t", "config": {"sink": {"dispatchers": ["x"], "kafka_config": {"required_acks": None}}}},
])  # fmt: skip
def test_a_sink_that_is_not_told(server: TicdcApi, told: dict[str, object]) -> None:
    server.at(TS, **told)
    found = OutsideWatermark(asking(server))
    found.ask(lambda: {ONE: 5})
    assert found.upto(ONE, 5) == TS


def test_silence_is_waited_for_once_it_has_answered(server: TicdcApi) -> None:
    found = OutsideWatermark(asking(server))
    server.status = 503
    with pytest.raises(SourceUnreachableError):
        found.ask(dict)
    server.status = 200
    found.ask(lambda: {ONE: 5})
    server.status = 503
    found.ask(lambda: {ONE: 6})
    assert (found.upto(ONE, 5), found.upto(ONE, 4)) == (TS, None)
    server.status = 404
    with pytest.raises(SourceError):
        found.ask(dict)


@pytest.mark.parametrize(
    "url", ["ticdc:8300", "ftp://t", "http://", "http://t/api", "http://t?x=1", "http://t:0", "http://t:x"]
)
def test_addresses_that_are_none(url: str) -> None:
    least = {"changefeed": "c", "target": {"uri": "sqlite:////tmp/x"}}
    with pytest.raises(ConfigError, match="watermark-from"):
        config_from({**least, "source": {"bootstrap-servers": "h:1", "topics": ["t"], "watermark-from": url}}, "here")
