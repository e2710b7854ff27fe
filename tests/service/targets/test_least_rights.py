"""Users with exactly the rights that the documentation lists: enough to run, and each that is missing has its name."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pymysql
import pytest

from ordering.errors import TargetError
from tests.embedded import MariaDbServer, TidbServer
from tests.service.cells import MariaDbCells, differences, oracle
from tests.service.lab import databases_of, recorded
from tests.service.local import LocalFeed
from tests.service.messages import ddl, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
_DOCS = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
_GRANTS = re.findall(r"^GRANT (.+) ON (\S+|DATABASE \S+) TO .*;$", _DOCS, re.MULTILINE)
OURS, THEIRS, POSTGRES = (rights.split(", ") for rights, _ in _GRANTS)
STORIES = ("ddl", "unique-swaps.index-value.raw", "types-without-nul.table", "split.table.raw")
OUR_PLACE = "`ticdc\\_reconciler`.*"


class MysqlUser:
    """A user of a server of the MySQL family, and what root does to its rights."""

    def __init__(self, uri: str, password: str) -> None:
        parts = urlsplit(uri)
        self.name, secret = f"least_{uuid4().hex[:8]}", "l3ast-Pa55"
        self.uri = parts._replace(netloc=f"{self.name}:{secret}@{parts.hostname}:{parts.port}").geturl()
        self._root = pymysql.connect(
            host=parts.hostname, port=parts.port or 3306, user="root", password=password, autocommit=True,
            ssl_disabled=True,
        )  # fmt: skip
        self._run(f"CREATE USER {self.name}@'%' IDENTIFIED BY '{secret}'")

    def _run(self, sql: str) -> None:
        with self._root.cursor() as cursor:
            cursor.execute(sql)

    def grant(self, rights: list[str], place: str) -> None:
        self._run(f"GRANT {', '.join(rights)} ON {place} TO {self.name}@'%'")

    def revoke(self, right: str, place: str) -> None:
        self._run(f"REVOKE {right} ON {place} FROM {self.name}@'%'")

    def drop(self) -> None:
        self._run(f"DROP USER {self.name}@'%'")
        self._root.close()


def place_of(database: str) -> str:
    return "`{}`.*".format(database.replace("`", "``").replace("_", "\\_"))


@pytest.fixture(params=["mariadb", "tidb"])
def uri(request: pytest.FixtureRequest) -> str:
    server: MariaDbServer | TidbServer = request.getfixturevalue(f"{request.param}_server")
    return server.uri


@pytest.fixture
def user(uri: str) -> Iterator[MysqlUser]:
    made = MysqlUser(uri, "root" if uri.startswith("mysql:") else "")
    yield made
    made.drop()


def test_a_run_needs_no_others(uri: str, user: MysqlUser, tmp_path: Path) -> None:
    user.grant(OURS, OUR_PLACE)
    cells = MariaDbCells(uri)
    for story in STORIES:
        messages = recorded(story)
        for database in databases_of(messages):
            user.grant(THEIRS, place_of(database))
        feed = LocalFeed(None, "nowhere:1", f"least-{uuid4().hex[:8]}", user.uri, cells, tmp_path)  # type: ignore[arg-type]
        feed.with_(target={"consistency": "row" if story.startswith("split") else "snapshot"})
        feed.send(messages)
        feed.apply()
        wrong = differences(oracle(story.split(".")[0]), cells)
        assert set(wrong) <= {"d1.noke: missing"}, wrong  # without a key, it is not replicated
        assert any("rights on" in line for line in feed.check())
        cells.drop(databases_of(messages))
    cells.close()


def test_what_is_there_already_needs_no_others(uri: str, user: MysqlUser, tmp_path: Path) -> None:
    """As after a crash in mid-DDL: the statement is tried on a table in our database, which takes rights there."""
    cells, database = MariaDbCells(uri), f"least_{uuid4().hex[:8]}"
    user.grant(OURS, OUR_PLACE)
    user.grant(THEIRS, place_of(database))
    cells.query(f"CREATE DATABASE `{database}`")
    cells.query(f"USE `{database}`")
    for number, sql in enumerate(("CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT)", "CREATE INDEX `i` ON `t` (`v`)")):
        cells.query(sql)
        feed = LocalFeed(None, "nowhere:1", f"least-{uuid4().hex[:8]}", user.uri, cells, tmp_path)  # type: ignore[arg-type]
        feed.send([ddl(f"{database}.t", 2, sql, kind=("CREATE", "CINDEX")[number]), *watermarks(9)])
        feed.apply()
    cells.drop({database})
    cells.close()


def test_each_missing_right_is_named(uri: str, user: MysqlUser, tmp_path: Path) -> None:
    cells = MariaDbCells(uri)
    feed = LocalFeed(None, "nowhere:1", "least", user.uri, cells, tmp_path)  # type: ignore[arg-type]
    for rights, place, name in ((OURS, OUR_PLACE, "ticdc_reconciler"), (THEIRS, place_of("shop_x"), "shop")):
        with pytest.raises(TargetError, match="lacks rights on"):
            feed.check()
        user.grant(rights, place)
        assert name
    assert feed.check()
    for rights, place, name in ((OURS, OUR_PLACE, "ticdc_reconciler"), (THEIRS, place_of("shop_x"), "shop")):
        for right in rights:
            user.revoke(right, place)
            with pytest.raises(TargetError, match=rf"lacks rights on {name}\S*: {right}\b") as caught:
                feed.check()
            assert caught.value.exit_code == 4
            user.grant([right], place)
    user.grant(["SELECT"], place_of("elsewhere"))
    assert feed.check()
    cells.close()


def test_postgres(own_database: str, tmp_path: Path) -> None:
    name, secret = f"least_{uuid4().hex[:8]}", "l3ast-Pa55"
    database = own_database.rpartition("/")[2]
    uri = own_database.replace("postgres:postgres@", f"{name}:{secret}@")
    with psycopg.connect(own_database, autocommit=True) as root:
        root.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{secret}'".encode())
        root.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC".encode())
        root.execute(f"GRANT CONNECT, {', '.join(POSTGRES)} ON DATABASE {database} TO {name}".encode())
        cells = PostgresCells(own_database)
        feed = LocalFeed(None, "nowhere:1", "least", uri, cells, tmp_path)  # type: ignore[arg-type]
        feed.send(recorded("split.table.raw"))
        feed.apply()
        assert differences(oracle("split"), cells) == []
        assert feed.check()
        for right, told in (("CREATE", "schemas"), ("TEMPORARY", "temporary tables")):
            root.execute(f"REVOKE {right} ON DATABASE {database} FROM {name}".encode())
            with pytest.raises(TargetError, match=f"may not create {told}") as caught:
                feed.check()
            assert right in str(caught.value)
            root.execute(f"GRANT {right} ON DATABASE {database} TO {name}".encode())
        cells.close()
        root.execute(f"DROP OWNED BY {name} CASCADE".encode())
        root.execute(f"DROP ROLE {name}".encode())
