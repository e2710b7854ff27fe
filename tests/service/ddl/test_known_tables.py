"""After any DDLs a target knows its tables as it would read them, though most DDLs have it read few."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pytest

from ordering.errors import ReconcilerError
from ordering.events import TableName
from sinks.known_tables import KnownTables
from sinks.registry import open_target
from sinks.rows.schema import Catalog
from sinks.rows.values import ValueRules
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.landing import Landing
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
_NAMES = ("a", "b", "Cc", "d d")
_FORMS = (
    "CREATE TABLE `{}` (`id` INT PRIMARY KEY,`v` VARCHAR(9),`e` ENUM('x','y'))",
    "CREATE TABLE `{}` (`v` INT NOT NULL,`id` INT NOT NULL,UNIQUE KEY `u` (`v`),UNIQUE KEY `w` (`id`,`v`))",
    "CREATE TABLE `{}` LIKE `{}`",
    "DROP TABLE `{}`",
    "DROP TABLE IF EXISTS `{}`,`{}`",
    "ALTER TABLE `{}` ADD COLUMN `n{n}` INT NOT NULL DEFAULT 5",
    "ALTER TABLE `{}` DROP COLUMN `v`",
    "ALTER TABLE `{}` ADD UNIQUE INDEX `i{n}` (`id`)",
    "CREATE UNIQUE INDEX `j{n}` ON `{}` (`v`)",
    "ALTER TABLE `{}` MODIFY COLUMN `v` BIGINT",
    "ALTER TABLE `{}` RENAME TO `{}`",
    "RENAME TABLE `{}` TO `{}`",
    "TRUNCATE TABLE `{}`",
)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Iterator[Landing]:
    with closing(open_target(f"sqlite:///{tmp_path}", ValueRules())) as target:
        yield Landing(target, SqliteCells(tmp_path), "known")


@pytest.fixture
def mariadb_place(mariadb_server: MariaDbServer) -> Iterator[Landing]:
    uri = mariadb_server.uri
    with closing(open_target(uri, ValueRules())) as target, closing(MariaDbCells(uri)) as cells:
        place = Landing(target, cells, f"known_{uuid4().hex[:8]}")
        yield place
        place.ddl(f"DROP DATABASE `{place.database}`")


@pytest.fixture
def postgres_place(own_database: str) -> Iterator[Landing]:
    with closing(open_target(own_database, ValueRules())) as target, closing(PostgresCells(own_database)) as cells:
        yield Landing(target, cells, "known")


@pytest.fixture(params=["sqlite", "mariadb", "postgres"])
def place(request: pytest.FixtureRequest) -> Landing:
    found: Landing = request.getfixturevalue(f"{request.param}_place")
    return found


def as_read(place: Landing) -> Catalog:
    with closing(place.target.opener()()) as other:
        other.connect()
        return other.catalog()


def own(catalog: Catalog, database: str) -> dict[TableName, object]:
    return {name: table for name, table in catalog.tables.items() if name.database == database}


def played(place: Landing, seed: int, count: int, met: Callable[[], None]) -> int:
    """Execute random DDLs; how many of them the target took."""
    chance, taken = random.Random(seed), 0
    for n in range(count):
        names = [chance.choice([name, name, name.swapcase()]) for name in chance.sample(_NAMES, 2)]
        sql = chance.choice(_FORMS).format(*names, n=n)
        try:
            place.ddl(sql, names[0])
            taken += 1
        except ReconcilerError:
            place.target.connect()
        met()
    return taken


def test_tables_are_known_as_they_would_be_read(place: Landing) -> None:
    def compare() -> None:
        assert own(place.target.catalog(), place.database) == own(as_read(place), place.database)

    with patch.multiple(KnownTables, _fresh_s=1e9):
        assert played(place, 7, 30, compare) > 8


def test_few_tables_are_read_for_a_ddl_of_one(place: Landing) -> None:
    dialect = type(place.target._dialect)  # type: ignore[attr-defined]
    target, whole = place.target, dialect.catalog
    readings: list[object] = []

    def counted(self: object, session: object) -> Catalog:
        readings.append(session)
        return whole(self, session)  # type: ignore[no-any-return]

    with patch.multiple(KnownTables, _fresh_s=1e9), patch.object(dialect, "catalog", counted):
        place.ddl(_FORMS[0].format("a"), "a")
        target.catalog()
        readings.clear()
        for name in ("b", "Cc", "d d"):
            place.ddl(_FORMS[0].format(name), name)
        assert not readings
        place.ddl("RENAME TABLE `a` TO `z`", "z")
        assert TableName(place.database, "z") in target.catalog().tables
    assert readings


@pytest.mark.parametrize(("fresh_s", "is_seen"), [(1e9, False), (0, True)])
def test_after_a_while_a_ddl_has_all_tables_read_again(mariadb_place: Landing, fresh_s: float, is_seen: bool) -> None:
    """So what somebody else has changed meanwhile becomes known, as it does before any lone DDL."""
    place = mariadb_place
    a, b = (TableName(place.database, name) for name in ("a", "b"))
    with patch.multiple(KnownTables, _fresh_s=1e9):
        place.ddl(_FORMS[0].format("a"), "a")
        place.ddl(_FORMS[0].format("b"), "b")
        assert {a, b} <= set(place.target.catalog().tables)
    assert isinstance(place.cells, MariaDbCells)
    for table in (a, b):
        place.cells.query(f"ALTER TABLE `{table.database}`.`{table.table}` ADD COLUMN mine INT")
    with patch.multiple(KnownTables, _fresh_s=fresh_s, _fresh_readings=0):
        place.ddl("ALTER TABLE `a` ADD COLUMN `later` INT", "a")
        tables = place.target.catalog().tables
    assert tables[a].column("mine") is not None
    assert (tables[b].column("mine") is not None) is is_seen
