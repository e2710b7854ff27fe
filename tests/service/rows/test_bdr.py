"""Two clusters that replicate each other: what the reconciler writes bears TiDB's mark and is not sent back."""

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pymysql
import pytest

from consumer.config.model import config_from
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.wiring import target_of
from ordering.errors import ConfigError
from sinks.tidb.connection import TidbConnection
from tests.embedded import TidbServer
from tests.service.cells import MariaDbCells
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, encoded, insert, watermarks

pytestmark = pytest.mark.service

MARK = 3
ROUNDS = 6


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The mark of every session that committed, as TiDB tells it at that moment."""
    found: list[int] = []
    commit = TidbConnection.commit

    def told(self: TidbConnection) -> None:
        found.append(int(self.value("SELECT @@SESSION.tidb_cdc_write_source")))
        commit(self)

    monkeypatch.setattr(TidbConnection, "commit", told)
    return found


@dataclass
class Side:
    """A cluster (a database of the shared TiDB) with what its changefeed sends, and the reconciler into it."""

    database: str
    feed: LocalFeed

    def receive(self, messages: Iterable[Message], number: int) -> list[Message]:
        """Apply what the other side sent; the row messages among it."""
        other, own = b'"database":"d"', b'"database":"%b"' % self.database.encode()
        rows = list(messages)
        moved = [m._replace(value=m.value.replace(other, own)) for m in [*rows, *watermarks(number)]]
        self.feed.send([m._replace(value=_in(m.value, self.database)) for m in moved])
        self.feed.once()
        return [m for m in rows if json.loads(m.value)["type"] == "INSERT"]


def _in(value: bytes, database: str) -> bytes:
    return value.replace(b"DATABASE `d`", b"DATABASE `%b`" % database.encode())


def later(message: Message, number: int) -> Message:
    """The same change, as another transaction."""
    value = json.loads(message.value)
    return message._replace(value=encoded({**value, "es": at(number) >> 18, "_tidb": {"commitTs": at(number)}}))


def side(uri: str, place: Path, database: str, mark: int) -> Side:
    name = f"bdr-{uuid4().hex[:10]}"
    feed = LocalFeed(None, "nowhere:1", name, uri, MariaDbCells(uri), place)  # type: ignore[arg-type]
    return Side(database, feed.with_(target={"cdc-write-source": mark}))


def ring(uri: str, place: Path, prefix: str, mark: int, marks: list[int]) -> list[int]:
    """Rows that a user writes on one side, sent round; how many messages travelled in each round."""
    sides = [side(uri, place, f"{prefix}{name}{mark}", mark) for name in "ab"]
    for one in sides:
        one.receive(begun(), 3)
    sides[1].feed.cells.query(f"INSERT INTO `{sides[1].database}`.t VALUES (2, 2, 'new')")  # type: ignore[union-attr]
    coming: list[Message] = [insert("d.t", 4, id=2, v=2, s="new")]
    travelled = []
    for number in range(4, 4 + ROUNDS):
        into = sides[number % 2]
        marks.clear()
        rows = into.receive([later(m, number) for m in coming], number)
        travelled.append(len(rows))
        # the changefeed of this side, with bdr-mode: it sends what sessions without a mark wrote
        coming = [] if all(marks) and marks else rows
    assert len({str(one.feed.cells.tables([one.database])[f"{one.database}.t"]) for one in sides}) == 1
    for one in sides:
        one.feed.cells.drop([one.database])  # type: ignore[union-attr]
        one.feed.cells.close()  # type: ignore[union-attr]
    return travelled


@pytest.mark.by_turns
def test_a_ring_comes_to_rest_with_the_mark_alone(
    tidb_server: TidbServer, tmp_path: Path, database_prefix: str, marks: list[int]
) -> None:
    assert ring(tidb_server.uri, tmp_path, database_prefix, MARK, marks) == [1, *[0] * (ROUNDS - 1)]
    assert ring(tidb_server.uri, tmp_path, database_prefix, 0, marks) == [1] * ROUNDS


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_every_session_that_commits_bears_the_mark(
    consistency: str,
    tidb_server: TidbServer,
    tmp_path: Path,
    database_prefix: str,
    marks: list[int],
) -> None:
    one = side(tidb_server.uri, tmp_path, f"{database_prefix}d", MARK)
    one.feed.by_tasks().with_(target={"consistency": consistency})
    one.receive(begun(), 3)
    one.receive([insert("d.t", n, id=n, v=n, s="x") for n in range(4, 40)], 40)
    assert len(marks) > 4
    assert set(marks) == {MARK}
    with closing(target_of(one.feed.config).opener()()) as of_a_task:
        assert int(of_a_task.session.db.value("SELECT @@SESSION.tidb_cdc_write_source")) == MARK
    one.feed.cells.drop([one.database])  # type: ignore[union-attr]


def test_a_secondary_takes_ddl_from_marked_sessions_alone(
    tidb_server: TidbServer, tmp_path: Path, database_prefix: str
) -> None:
    one = side(tidb_server.uri, tmp_path, f"{database_prefix}d", MARK)
    cells = one.feed.cells
    assert isinstance(cells, MariaDbCells)
    one.receive(begun(), 3)
    cells.query("ADMIN SET BDR ROLE SECONDARY")
    try:
        with pytest.raises(pymysql.MySQLError, match="8263"):
            cells.query(f"ALTER TABLE `{one.database}`.t ADD COLUMN w INT")
        one.receive([ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `w` INT", kind="ALTER")], 5)
    finally:
        cells.query("ADMIN UNSET BDR ROLE")
    assert "w" in [column["Field"] for column in cells.query(f"SHOW COLUMNS FROM `{one.database}`.t")]
    cells.drop([one.database])


def test_only_tidb_takes_a_mark() -> None:
    values = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "x", "topics": ["x"]},
        "target": {"uri": "mysql://root@127.0.0.1", "cdc-write-source": 1},
    }
    with pytest.raises(ConfigError, match="cdc-write-source"):
        config_from(values, "a test")
