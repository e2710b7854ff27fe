"""The first window of a new changefeed: short where its topic begins with DDLs, else as long as any."""

from contextlib import closing

import pytest

from consumer import source
from consumer.demo.upstream.changefeed import Message
from consumer.source import Source
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from tests.service.lab import Feed
from tests.service.messages import TOPIC, ddl, encoded, insert, lz4, watermarks

pytestmark = [pytest.mark.service]
ROWS = 60
CREATE = ddl("d.t", 2, "CREATE TABLE t (id INT PRIMARY KEY)")
ROW = insert("d.t", 80, id=80)
BEGINNINGS: dict[str, tuple[list[Message], bool]] = {
    "rows": ([], False),
    "a-ddl": ([CREATE], True),
    "a-compressed-ddl": ([CREATE._replace(value=lz4(CREATE.value))], True),
    "a-ddl-after-some-rows": ([ROW, ROW, CREATE], True),
    "a-ddl-after-many": ([ROW] * 5 + [CREATE], False),
    "something-unreadable": ([Message(TOPIC, 0, b"\x04\x22\x4d\x18\x60\x40\x82"), CREATE], True),
    "a-row-that-speaks-of-ddls": ([Message(TOPIC, 0, encoded({"note": '"isDdl":true'}))], False),
}


@pytest.mark.parametrize("case", sorted(BEGINNINGS))
def test_first_window(sqlite_feed: Feed, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.setattr(source, "FIRST_WINDOW", 10)
    monkeypatch.setattr(source, "FIRST_LOOK", 12)  # of three partitions
    beginning, short = BEGINNINGS[case]
    rows = [m for n in range(5, 5 + ROWS) for m in (insert("d.t", n, n % 3, id=n), *watermarks(n))]
    sent = sqlite_feed.send([*beginning, *rows])
    with closing(Source.of(sqlite_feed.config)) as new:
        ranges = new.probe(Progress.first(CheckpointTs(0), "", "")).ranges
    read = sum(r.stop - r.start for r in ranges)
    assert len(ranges) == 3
    assert read <= 3 * 10 if short else read == len(sent)
