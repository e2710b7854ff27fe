"""Formats whose tasks read more than single messages: a driver that dies at every step ends as upstream did.

Schemas that come apart from their rows, batches that windows and DDLs cut, files. Each life goes a step further than
the one before. Avro and Debezium: `test_avro_vectors`, `test_debezium_vectors`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from sinks.steps import Observer
from tests.open_protocol import as_open
from tests.service.cells import differences, oracle
from tests.service.lab import recorded
from tests.service.local import Killed, LocalFeed
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


@pytest.mark.cells(("feed", "consistency"), "recording", by_turns=("kind",))
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
