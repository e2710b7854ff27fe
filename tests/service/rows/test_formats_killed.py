"""Formats whose tasks read more than single messages: a driver that dies at every step ends as upstream did.

Schemas that come apart from their rows, batches that windows and DDLs cut, files. Each life goes a step further than
the one before. Avro and Debezium: `test_avro_vectors`, `test_debezium_vectors`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.formats.sent_schema import SchemaIdentity
from sinks.steps import Observer, Step
from tests.open_protocol import as_open
from tests.service.cells import differences, oracle
from tests.service.lab import recorded
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, ddl, insert, watermarks
from tests.service.rows.test_debezium_vectors import killing_after
from tests.service.rows.test_simple_vectors import CONSISTENCIES
from tests.service.rows.test_storage_vectors import once, reading
from tests.simple_protocol import as_simple
from tests.storage_files import CsvOptions, Storage, write

pytestmark = pytest.mark.service

Sent = Iterable[Message]
TOPICS: dict[str, tuple[str, Callable[[Sent], Sent]]] = {
    "simple": ("simple", as_simple),
    "simple, late schemas": ("simple", lambda messages: as_simple(messages, late=True)),
    "open": ("open-protocol", lambda messages: as_open(messages, batch=3)),
}
FILES: dict[str, CsvOptions | None] = {"files of canal-json": None, "files of csv": CsvOptions(old_value=True)}


def lives_on_files(feed: LocalFeed, observe: Observer) -> bool:
    """See `LocalFeed.lives`."""
    try:
        once(feed, observe)
    except Killed:
        return False
    return True


@pytest.mark.cells("recording", by_turns=("kind", ("feed", "consistency")))
@pytest.mark.parametrize("kind", [*TOPICS, *FILES])
@pytest.mark.parametrize("recording", ["iv.index-value.raw", "ddl-basic.restarts"])
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("feed", ["sqlite", "mariadb", "postgres"], indirect=True)
def test_killed_at_every_step(feed: LocalFeed, recording: str, kind: str, consistency: str, tmp_path: Path) -> None:
    feed.with_(target={"consistency": consistency}, limits={"window-rows": 7})
    lives: Any = feed.lives
    if kind in TOPICS:
        protocol, written = TOPICS[kind]
        feed.with_(source={"protocol": protocol}).send(written(recorded(recording)))
    else:
        reading(feed, tmp_path / "files", FILES[kind])
        for files in Storage(recorded(recording), csv=FILES[kind], rows=5).steps():
            write(files, tmp_path / "files")
        lives = lambda observe: lives_on_files(feed, observe)  # noqa: E731
    last = 0
    while not lives(killing_after(last := last + 1)):
        assert last < 1_000
    assert last > 5
    assert differences(oracle(recording.partition(".")[0]), feed.cells) == []


def schema_behind_a_ddl(rows_behind: int) -> list[Message]:
    """A table's rows, a DDL and many rows behind it, then the schema that the first rows wait for."""
    begun = [
        ddl("d.", 1, "CREATE DATABASE d", kind="QUERY"),
        ddl("d.t", 2, "CREATE TABLE t (id INT PRIMARY KEY, v INT)"),
    ]
    begun += [ddl("d.u", 5, "CREATE TABLE u (id INT PRIMARY KEY)"), *watermarks(6)]
    rows = [insert("d.t", 7, id=number, v=number) for number in range(30)]
    more = [insert("d.x", 11, id=number, v=number) for number in range(rows_behind)]
    made = ddl("d.x", 9, "CREATE TABLE x (id INT PRIMARY KEY, v INT)")
    sent = as_simple([*begun, *rows, *watermarks(8), made, *watermarks(10), *more, *watermarks(12)])
    late = [one for one in sent if b'"BOOTSTRAP"' in one.value and b'"table":"t"' in one.value]
    assert late
    end = len(sent) - len(watermarks(12))
    return [*(one for one in sent[:end] if one not in late), late[0], *sent[end:]]


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_a_schema_behind_the_window_that_needs_it(feed: LocalFeed, consistency: str) -> None:
    """What is recorded of a window is read again after a crash, up to where it ends: its schemas are saved with it."""
    feed.by_tasks().with_(target={"consistency": consistency}, source={"protocol": "simple"})
    sent = schema_behind_a_ddl(300)
    begun = next(at for at, one in enumerate(sent) if b'"INSERT"' in one.value)
    feed.send(sent[:begun])
    feed.apply()
    feed.send(sent[begun:])

    def observe(step: Step) -> None:
        if step is Step.WINDOW_RECORDED:
            raise Killed

    assert feed.lives(observe) is (consistency != "row")
    with feed.leading() as session:  # in `row` it has to be there by now, else with what follows
        saved = {schema.identity for schema in session.schemas._saved.values()}
        assert saved >= {SchemaIdentity("d", "t", at(5) - 1)} or consistency != "row"
    last = 0
    while not feed.lives(killing_after(last := last + 1)):
        assert last < 200
    found = {name: len(rows) for name, (_, rows) in feed.cells.tables(["d"]).items()}
    assert found == {"d.t": 30, "d.u": 0, "d.x": 300}
