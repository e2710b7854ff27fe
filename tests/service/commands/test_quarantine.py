"""The quarantine on real servers: what is quarantined, listed, replayed, discarded; in every target and consistency."""

import base64
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from consumer.cli.main import main
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import produce
from ordering.errors import ConfigError, InputError, NotAppliedError, SourceError, TargetError
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.steps import Step
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import PARTITIONS, Feed
from tests.service.messages import at, begun, ddl, delete, encoded, insert, lz4, row_value, update, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
DEADLY = (Step.READ, Step.APPLY_BEGUN, Step.ROWS_WRITTEN, Step.PROGRESS_WRITTEN, Step.COMMITTED)
COLUMNS = "id INT PRIMARY KEY, v INT NOT NULL UNIQUE, s VARCHAR(10)"
WIDER = {
    SqliteCells: "ALTER TABLE t RENAME TO o; CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE, s VARCHAR(10));"
    " INSERT INTO t SELECT * FROM o; DROP TABLE o",
    MariaDbCells: "ALTER TABLE t MODIFY v INT NULL",
}


OFTEN = [("sqlite", "snapshot"), ("mariadb", "transaction"), ("postgres", "row")]
WORLDS = [
    world if world in OFTEN else pytest.param(world, marks=pytest.mark.soak)
    for world in product(("sqlite", "mariadb", "postgres"), ("snapshot", "transaction", "row"))
]


@pytest.fixture(params=WORLDS, ids="-".join)
def quarantining(request: pytest.FixtureRequest) -> Feed:
    """A feed that sets messages aside; in `row` its tasks write however few rows there are."""
    target, consistency = request.param
    feed: Feed = request.getfixturevalue(f"{target}_feed")
    return feed.by_tasks().with_(target={"consistency": consistency}, quarantine={"enabled": True})


def reconciler(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def told(*arguments: object) -> Any:
    """What a command says in JSON."""
    done = reconciler(*arguments, "--json")
    found = json.loads(done.stdout)
    is_held = "replay" in arguments and any(one["state"] == "held" for one in found)
    assert done.exit_code == (NotAppliedError.exit_code if is_held else 0), done.output
    assert ("held" in done.stderr) is is_held
    return found


def states(feed: Feed) -> list[tuple[str, str]]:
    place = f"{feed.topic}/"
    return [(one["message"].removeprefix(place), one["state"]) for one in told("quarantine", "list", feed.file())]


def rows(feed: Feed) -> list[tuple[int, int | None, str]]:
    return sorted((row["id"], row["v"], row["s"]) for row in feed.cells.tables(["d"])["d.t"][1])


def mend(feed: Feed) -> None:
    """Let the target take what it refused: NULL in v."""
    feed.cells.run("d", WIDER.get(type(feed.cells), "ALTER TABLE d.t ALTER COLUMN v DROP NOT NULL"))


@pytest.mark.by_turns
def test_refused_and_undecodable_messages(quarantining: Feed) -> None:
    feed = quarantining
    feed.send(begun(columns=COLUMNS))
    feed.once()
    bad = row_value("INSERT", "d.t", at(4), {"id": 3, "v": None, "s": "bad"})
    feed.send([insert("d.t", 4, 1, id=2, v=2, s="two")])
    feed.send_raw(1, b"{", encoded(bad), encoded(bad))  # the first can be no later one of the row
    # row 1's new state is refused: it is missing, so that row 4 may take its unique value
    feed.send(
        [
            update("d.t", 5, {"v": 1}, 2, id=1, v=None, s="bad"),
            insert("d.t", 5, 0, id=4, v=1, s="four"),
            *watermarks(6),
        ]
    )
    outcome = feed.once()
    assert outcome.checkpoint_ts == at(6)
    assert rows(feed) == [(2, 2, "two"), (4, 1, "four")]
    assert states(feed) == [("1/2", "held"), ("1/3", "held"), ("1/4", "held"), ("2/1", "held")]
    status = feed.status()
    assert (status["quarantined"], status["quarantine"]["held"]) == (4, 4)
    shown = told("quarantine", "show", feed.file(), f"{feed.topic}/1/3")
    assert base64.b64decode(shown["value"]) == encoded(bad)
    assert (shown["commit_ts"], shown["state"]) == (at(4), "held")
    assert "key id='3'" in shown["about"]
    assert "\n" not in shown["reason"]  # the page shows such signs as escapes
    feed.send([update("d.t", 7, {"v": None}, 0, id=1, v=7, s="good"), *watermarks(8)])
    feed.once()
    assert rows(feed) == [(1, 7, "good"), (2, 2, "two"), (4, 1, "four")]
    assert states(feed) == [("1/2", "held"), ("1/3", "held"), ("1/4", "held"), ("2/1", "superseded")]
    verdicts = told("quarantine", "replay", feed.file())
    assert [one["state"] for one in verdicts] == ["held", "held", "held"]
    assert "still refused" in verdicts[1]["why"]
    mend(feed)
    verdicts = {one["message"]: one for one in told("quarantine", "replay", feed.file())}
    assert verdicts[f"{feed.topic}/1/3"]["state"] == verdicts[f"{feed.topic}/1/4"]["state"] == "replayed"
    assert "undecodable" in verdicts[f"{feed.topic}/1/2"]["why"]
    assert rows(feed) == [(1, 7, "good"), (2, 2, "two"), (3, None, "bad"), (4, 1, "four")]
    one = f"{feed.topic}/1/2"
    assert told("quarantine", "discard", feed.file(), "--offset", one, "--reason", "junk")[0]["state"] == "discarded"
    assert told("quarantine", "show", feed.file(), one)["note"] == "junk"
    assert feed.once().checkpoint_ts == at(8)
    assert [state for _, state in states(feed)] == ["discarded", "replayed", "replayed", "superseded"]


class Died(Exception):  # noqa: N818 the process is gone
    pass


@pytest.mark.by_turns
def test_dying_at_any_step_loses_and_doubles_nothing(feed: Feed) -> None:
    feed.with_(target={"consistency": "transaction"}, quarantine={"enabled": True})
    feed.send(begun(columns=COLUMNS))
    feed.once()
    for number, step in enumerate(DEADLY, 5):
        feed.send_raw(2, b"{")
        feed.send(
            [
                insert("d.t", number, 0, id=100 + number, v=None, s="bad"),
                insert("d.t", number, 1, id=number, v=number, s="good"),
                *watermarks(number),
            ]
        )

        def die(at_step: Step, deadly: Step = step) -> None:
            if at_step is deadly:
                raise Died

        with pytest.raises(Died):
            feed.once(die)
    assert feed.once().checkpoint_ts == at(4 + len(DEADLY))
    assert [row[0] for row in rows(feed)] == [1, *range(5, 5 + len(DEADLY))]
    found = states(feed)
    assert len(found) == len(set(found)) == 2 * len(DEADLY)
    assert {state for _, state in found} == {"held"}
    assert feed.status()["quarantined"] == 2 * len(DEADLY)


@pytest.fixture
def sqlite_quarantining(sqlite_feed: Feed) -> Feed:
    feed = sqlite_feed.with_(quarantine={"enabled": True})
    feed.send(begun(columns=COLUMNS))
    feed.once()
    return feed


@pytest.mark.by_turns
def test_what_replaying_refuses(sqlite_quarantining: Feed) -> None:
    feed = sqlite_quarantining
    feed.send([insert("d.t", 4, 1, id=2, v=None, s="bad"), *watermarks(5)])
    feed.once()
    place = f"{feed.topic}/1/1"
    for command in (("replay",), ("discard", "--all", "--reason", "x")):
        leader = open_target(feed.uri, ValueRules())
        leader.connect()
        stored = leader.stored(feed.name)
        assert stored is not None
        leader.claim(feed.name, stored.progress)
        done = reconciler("quarantine", command[0], feed.file(), *command[1:])
        assert (done.exit_code, "is running" in done.stderr) == (5, True)
        leader.close()
    for wrong in ("1/1", f"{feed.topic}/1/x", f"{feed.topic}/1/7"):
        assert reconciler("quarantine", "replay", feed.file(), "--offset", wrong).exit_code == ConfigError.exit_code
    assert reconciler("quarantine", "discard", feed.file(), "--reason", "x").exit_code == ConfigError.exit_code
    assert place in reconciler("quarantine", "list", feed.file()).stdout
    assert "bad" in reconciler("quarantine", "show", feed.file(), place).stdout
    mend(feed)
    feed.send([ddl("d.t", 6, "ALTER TABLE `t` ADD COLUMN `w` INT", kind="ALTER"), *watermarks(7)])
    feed.once()
    (verdict,) = told("quarantine", "replay", feed.file())
    assert (verdict["state"], "table was changed since" in verdict["why"]) == ("held", True)
    feed.send([ddl("d.t", 8, "TRUNCATE TABLE `t`", kind="TRUNCATE"), *watermarks(9)])
    feed.once()
    (verdict,) = told("quarantine", "replay", feed.file())
    assert (verdict["state"], "TRUNCATE" in verdict["why"]) == ("superseded", True)
    assert rows(feed) == []


def test_a_full_quarantine_and_none(sqlite_quarantining: Feed) -> None:
    feed = sqlite_quarantining.with_(quarantine={"limit": 2})
    feed.send_raw(1, b"{", b"", None)
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert "quarantine is full (quarantine.limit = 2): 0 messages in it are undecided, and 2 more" in error.fact
    assert "raise quarantine.limit above what this window holds" in error.hint
    assert f"topic={feed.topic} partition=1 offset=" in error.where
    assert states(feed) == []
    feed.with_(quarantine={"limit": 3}).once()
    assert states(feed) == [("1/1", "held"), ("1/2", "held"), ("1/3", "held")]
    feed.with_(quarantine={"enabled": False})
    feed.send([insert("d.t", 4, 1, id=2, v=2, s="two"), *watermarks(5)])
    assert feed.once().checkpoint_ts == at(5)  # what is known does not stop it
    feed.send([insert("d.t", 6, 1, id=3, v=None, s="bad"), *watermarks(7)])
    assert feed.failing(TargetError).exit_code == 4
    feed.send_raw(2, b"?")
    assert feed.with_(quarantine={"enabled": False}).failing().exit_code in {3, 4}


def test_messages_that_were_too_large_come_back_by_rewinding(sqlite_quarantining: Feed) -> None:
    feed = sqlite_quarantining.with_(limits={"message-bytes": 1000})
    large = encoded(row_value("INSERT", "d.t", at(4), {"id": 2, "v": 2, "s": "x" * 5000}))
    feed.send_raw(1, lz4(large))
    feed.send([*watermarks(5)])
    feed.once()
    assert states(feed) == [("1/1", "held")]
    feed.with_(limits={"message-bytes": 1 << 20})
    (verdict,) = told("quarantine", "replay", feed.file())
    assert f"progress rewind CONFIG {at(4) - 1}" in verdict["why"]
    assert reconciler("progress", "rewind", feed.file(), at(4) - 1, "--yes").exit_code == 0
    feed.once()
    assert [(i, v, len(s)) for i, v, s in rows(feed)] == [(1, 1, 3), (2, 2, 5000)]
    assert states(feed) == [("1/1", "retried")]


def test_a_refused_delete_leaves_its_row(mariadb_feed: Feed) -> None:
    feed = mariadb_feed.with_(quarantine={"enabled": True})
    feed.send(begun())
    feed.once()
    feed.cells.run(  # a trigger of the target's own
        "d", "CREATE TRIGGER no BEFORE DELETE ON t FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'"
    )
    feed.send([delete("d.t", 4, 1, id=1, v=1, s="one"), *watermarks(5)])
    assert feed.once().checkpoint_ts == at(5)
    assert states(feed) == [("1/1", "held")]
    assert len(rows(feed)) == 1
    feed.cells.run("d", "DROP TRIGGER no")
    assert told("quarantine", "replay", feed.file())[0]["state"] == "replayed"
    assert rows(feed) == []


def test_an_import_knows_what_was_set_aside_then(sqlite_quarantining: Feed, tmp_path: Path) -> None:
    feed = sqlite_quarantining
    feed.send([insert("d.t", 4, 1, id=2, v=None, s="bad"), *watermarks(5)])
    feed.once()
    mend(feed)
    export = tmp_path / "progress.json"
    export.write_text(reconciler("progress", "export", feed.file()).stdout)
    assert [name for _, name, _ in json.loads(export.read_text())["definitions"]] == ["", "t"]  # "": the database
    backup = feed.cells.directory / "d.sqlite"  # type: ignore[union-attr]
    before = backup.read_bytes()
    assert told("quarantine", "replay", feed.file())[0]["state"] == "replayed"
    backup.write_bytes(before)
    assert reconciler("progress", "import", feed.file(), export, "--yes").exit_code == 0
    assert states(feed) == [("1/1", "held")]
    assert told("quarantine", "replay", feed.file())[0]["state"] == "replayed"
    assert rows(feed) == [(1, 1, "one"), (2, None, "bad")]


def test_a_topic_of_what_was_set_aside(sqlite_quarantining: Feed) -> None:
    feed = sqlite_quarantining
    feed.make_topic(1, f"{feed.topic}.aside")
    feed.with_(quarantine={"topic": f"{feed.topic}.aside"})
    feed.send_raw(1, b"{")
    feed.once()
    consumer = Consumer({"bootstrap.servers": feed.bootstrap, "group.id": feed.name})
    consumer.assign([TopicPartition(f"{feed.topic}.aside", 0, 0)])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.value() == b"{"
    headers = dict(message.headers())
    assert (headers["topic"], headers["partition"], headers["offset"]) == (feed.topic.encode(), b"1", b"1")
    with pytest.raises(ConfigError, match=r"quarantine\.topic"):
        _ = feed.with_(quarantine={"topic": feed.topic}).config


def test_a_large_message_is_sent_to_the_topic_too(sqlite_quarantining: Feed) -> None:
    """By itself Kafka's client sends no more than 1,000,000 bytes; a topic may take less than `source.topics`."""
    feed, aside = sqlite_quarantining, f"{sqlite_quarantining.topic}.aside"
    feed.make_topic(1, aside, **{"max.message.bytes": "200000"})
    feed.with_(quarantine={"topic": aside})
    large = b"{" * 3_000_000
    room = {"message.max.bytes": 10 << 20, "compression.type": "none"}
    produce([Message(feed.topic, 1, large)], feed.bootstrap, partitions=PARTITIONS, config=room)
    error = feed.failing(SourceError)
    assert "too large" in error.fact
    assert "max.message.bytes" in error.hint
    place = ConfigResource(ResourceType.TOPIC, aside, {"max.message.bytes": "8000000"})
    feed.admin_do(lambda admin: admin.alter_configs([place]))
    feed.once()
    consumer = Consumer({"bootstrap.servers": feed.bootstrap, "group.id": feed.name})
    consumer.assign([TopicPartition(aside, 0, 0)])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.value() == large


def test_tidb_keeps_what_was_set_aside(tidb_feed: Feed) -> None:
    feed = tidb_feed.with_(quarantine={"enabled": True})
    feed.send(begun(columns=COLUMNS))
    feed.once()
    feed.send([insert("d.t", 4, 1, id=2, v=None, s="bad"), *watermarks(5)])
    feed.once()
    assert states(feed) == [("1/1", "held")]
    mend_tidb = "ALTER TABLE t MODIFY v INT NULL"
    feed.cells.run("d", mend_tidb)
    assert told("quarantine", "replay", feed.file())[0]["state"] == "replayed"
    assert rows(feed) == [(1, 1, "one"), (2, None, "bad")]
