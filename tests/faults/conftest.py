"""What the crash tests share: one JVM that outlives the drivers they kill."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.kept_spark import kept_spark


@pytest.fixture(scope="package")
def environment() -> Iterator[dict[str, str]]:
    """The environment of processes that shall use the kept JVM."""
    with kept_spark() as found:
        yield found


@pytest.fixture
def uri_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The URI of a kind of target; its server starts when it is first asked for."""

    def uri(target: str) -> str:
        if target == "sqlite":
            return f"sqlite:///{tmp_path}"
        servers = {"mysql": "mariadb_server", "postgresql": "postgres_server", "tidb": "tidb_server"}
        return str(request.getfixturevalue(servers[target]).uri)

    return uri
