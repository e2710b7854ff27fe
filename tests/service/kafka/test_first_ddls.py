"""The DDLs with which a new changefeed's topics begin are known before its first window is read."""

from contextlib import closing

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.source.probe import Source
from consumer.tuning import Tuning
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from tests.service.lab import Feed
from tests.service.messages import TOPIC, at, ddl, encoded, insert, lz4, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
ROWS = 60
SMALL = Tuning(few_messages=10, first_look=4)
CREATE = ddl("d.t", 2, "CREATE TABLE t (id INT PRIMARY KEY)")
SPACED = CREATE._replace(value=CREATE.value.replace(b'":', b'" : '))
OTHERS = [ddl(f"d.t{n}", n, f"CREATE TABLE t{n} (id INT PRIMARY KEY)") for n in range(3, 12)]
ROW = insert("d.t", 80, id=80)
BEGINNINGS: dict[str, tuple[list[Message], list[int]]] = {
    "rows": ([], []),
    "a-ddl": ([CREATE], [2]),
    "a-ddl-spelled-with-blanks": ([SPACED], [2]),
    "a-compressed-ddl": ([CREATE._replace(value=lz4(CREATE.value))], [2]),
    "a-ddl-after-some-rows": ([ROW, ROW, CREATE], [2]),
    "a-ddl-after-many": ([ROW] * 5 + [CREATE], []),
    "many-ddls": ([CREATE, *OTHERS], list(range(2, 12))),
    "something-unreadable": ([Message(TOPIC, 0, b"\x04\x22\x4d\x18\x60\x40\x82"), CREATE], [2]),
    "a-row-that-speaks-of-ddls": ([Message(TOPIC, 0, encoded({"note": '"isDdl":true'}))], []),
}


@pytest.mark.parametrize("case", sorted(BEGINNINGS))
def test_first_ddls(sqlite_feed: Feed, case: str) -> None:
    beginning, expected = BEGINNINGS[case]
    rows = [m for n in range(15, 15 + ROWS) for m in (insert("d.t", n, n % 3, id=n), *watermarks(n))]
    sent = sqlite_feed.send([*beginning, *rows])
    with closing(Source.of(sqlite_feed.config, SMALL)) as new:
        found = new.probe(Progress.first(CheckpointTs(0), "", ""))
    assert [one.commit_ts for one in found.ddls] == [at(ts) for ts in expected]
    assert sum(r.stop - r.start for r in found.ranges) == len(sent)


def test_a_running_changefeed_is_not_looked_through(sqlite_feed: Feed) -> None:
    sqlite_feed.send([CREATE, *(insert("d.t", n, id=n) for n in range(15, 15 + ROWS)), *watermarks(90)])
    with closing(Source.of(sqlite_feed.config, SMALL)) as new:
        assert new.probe(Progress.first(CheckpointTs(0), "", "")).ddls
    with closing(Source.of(sqlite_feed.config, SMALL)) as running:
        assert not running.probe(Progress.first(CheckpointTs(0), "", "").at(CheckpointTs(5))).ddls
