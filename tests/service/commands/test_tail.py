"""`reconciler tail` shows what a topic holds, also what can't be decoded, and what comes."""

import json
import threading

import pytest
from click.testing import CliRunner, Result

from consumer.cli.main import main
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from consumer.operate.tail import Tail
from tests.service.lab import PARTITIONS, recorded

pytestmark = pytest.mark.service


def shown(*arguments: object) -> Result:
    done = CliRunner().invoke(main, ["tail", *(str(argument) for argument in arguments)])
    assert done.exit_code == 0, done.output
    return done


def sent(kafka: KafkaBroker, topic: str, *messages: Message) -> None:
    produce([m._replace(topic=topic) for m in messages], kafka.bootstrap, partitions=PARTITIONS)


def test_messages_are_shown_with_their_commit_time(kafka_broker: KafkaBroker, topic_name: str) -> None:
    messages = recorded("split.lz4.split")
    sent(kafka_broker, topic_name, *messages)
    sent(kafka_broker, topic_name, Message(topic_name, 1, b"\xff no json"), Message(topic_name, 2, b""))
    at = ("--bootstrap-servers", kafka_broker.bootstrap)
    lines = shown(topic_name, *at, "-n", 100_000, "--json").stdout.splitlines()
    told = [json.loads(line) for line in lines]
    assert len(told) == len(messages) + 2
    assert [one["error"] is not None for one in told].count(True) == 2
    kinds = {one["type"] for one in told}
    assert {"INSERT", "UPDATE", "DELETE", "WATERMARK", "?"} <= kinds
    row = next(one for one in told if one["type"] == "INSERT")
    assert row["commit_time"].startswith("2026-01-01 00:00:0")
    assert row["content"]

    few = shown(topic_name, *at, "-n", 5, "--no-watermarks").stdout
    assert len(few.splitlines()) == 5
    assert "\x1b" not in few
    assert "WATERMARK" not in few
    assert f"{topic_name}/1/" in few
    assert "?  message can't be decompressed" in few or "?  message is not valid JSON" in few

    name = f"{row['database']}.{row['table']}"
    some = [json.loads(x) for x in shown(topic_name, *at, "-n", 9999, "--table", name, "--json").stdout.splitlines()]
    assert {f"{one['database']}.{one['table']}" for one in some if not one["error"]} == {name}


def test_what_comes_is_followed(kafka_broker: KafkaBroker, topic_name: str) -> None:
    messages = recorded("split.lz4.split")
    sent(kafka_broker, topic_name, *messages[:20])
    found = Tail(kafka_broker.bootstrap, topic_name, {}, 3).messages(follow=True)
    first = [next(found) for _ in range(3)]
    later = threading.Thread(target=sent, args=(kafka_broker, topic_name, *messages[20:22]))
    later.start()
    new = [next(found) for _ in range(2)]
    later.join()
    found.close()  # type: ignore[attr-defined]
    assert not {one.position for one in first} & {one.position for one in new}


def test_a_missing_topic_is_named(kafka_broker: KafkaBroker, topic_name: str) -> None:
    done = CliRunner().invoke(main, ["tail", topic_name, "--bootstrap-servers", kafka_broker.bootstrap])
    assert done.exit_code == 3
    assert f"topic missing: {topic_name}" in done.stderr
    assert CliRunner().invoke(main, ["tail", topic_name]).exit_code == 2
