"""Any value of any type lands as the upstream holds it: random values through DDL, encoder and target, read back."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sinks.mysql import writer
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.embedded import MariaDbServer, PostgresServer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.landing import TYPES, Landing
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def postgres_landing(postgres_server: PostgresServer) -> Iterator[Landing]:
    cells = PostgresCells(postgres_server.uri)
    target = open_target(postgres_server.uri, ValueRules())
    yield Landing(target, cells, "values of `any` type")
    target.close()
    cells.drop(["values of `any` type"])
    cells.close()


@pytest.fixture(scope="module")
def sqlite_landing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landing]:
    directory = tmp_path_factory.mktemp("values")
    target = open_target(f"sqlite:///{directory}", ValueRules())
    yield Landing(target, SqliteCells(directory), "values of `any` type")
    target.close()


@pytest.fixture(scope="module")
def mariadb_landing(mariadb_server: MariaDbServer) -> Iterator[Landing]:
    cells = MariaDbCells(mariadb_server.uri)
    target = open_target(mariadb_server.uri, ValueRules())
    yield Landing(target, cells, "values of `any` type")
    target.close()
    cells.drop(["values of `any` type"])
    cells.close()


@pytest.fixture(scope="module")
def loading_landing(mariadb_landing: Landing) -> Iterator[Landing]:
    """By LOAD DATA, however few rows there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_BULK_ROWS", 1)
        yield mariadb_landing


@pytest.fixture(scope="module", params=["postgres", "sqlite", "mariadb", "loading"])
def landing(request: pytest.FixtureRequest) -> Landing:
    found: Landing = request.getfixturevalue(f"{request.param}_landing")
    return found


@pytest.mark.cells("declared", "landing")
@pytest.mark.parametrize("examples", [10, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.parametrize("declared", TYPES)
def test_values(landing: Landing, declared: str, examples: int) -> None:
    landing.ddl("DROP TABLE IF EXISTS `t`")
    landing.ddl(f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` {declared})")

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.lists(TYPES[declared], max_size=40))
    def lands(pairs: list[tuple[str, str]]) -> None:
        landing.lands(declared, pairs)

    lands()
