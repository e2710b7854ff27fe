"""`docker/compose.yml` as users bring it up: rows flow into both databases whatever is killed, and nothing is left."""

import time
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from consumer.demo.fake_ticdc.producer import produce
from tests.containers.compose import Project
from tests.containers.engine import Engine
from tests.containers.topics import PARTITIONS, UPSTREAM, portions
from tests.docker.stack import secret
from tests.service.cells import MariaDbCells, differences, oracle
from tests.service.lab import eventually
from tests.service.postgres_cells import PostgresCells

pytestmark = [
    pytest.mark.soak,
    pytest.mark.containers,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("image", "server_images"),
]
CHANGEFEEDS = ("shop-mariadb", "shop-postgres")
SERVERS = ("redis", "kafka", "mariadb", "postgres")
KILLED = [(Project.killed, service) for service in (*SERVERS, "reconciler")]
CRASHED = [(Project.crashed, service) for service in ("reconciler", "mariadb")]


@pytest.fixture
def project(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(engine, "ticdc-reconciler-test", tmp_path_factory.mktemp("compose"))
    try:
        yield project
    finally:
        project.down()


class Api:
    """The reconciler's port on this machine."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{project.ports['reconciler']}",
            headers={"Authorization": f"Bearer {secret('reconciler-token')}"},
            timeout=40,
            trust_env=False,
        )

    def checkpoint(self, name: str) -> int:
        """Where a changefeed is; 0 while nobody answers."""
        try:
            found = self._client.get(f"/api/v2/changefeeds/{name}").raise_for_status().json()
        except httpx.HTTPError:  # it was killed, and starts
            return 0
        return int(found["checkpoint_ts"] or 0)

    def until(self, ts: int) -> None:
        """Until both changefeeds are there."""
        for name in CHANGEFEEDS:
            try:
                eventually(f"{name} reaches {ts}", lambda name=name: self.checkpoint(name) >= ts, pause_s=0.5)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.project.logs('reconciler')[-6000:]}") from None


def wrong(project: Project) -> dict[str, list[str]]:
    """What differs from the upstream, by target."""
    mariadb = f"mysql://root:{secret('mariadb-root')}@127.0.0.1:{project.ports['mariadb']}"
    postgres = f"postgresql://postgres:{secret('postgres-admin')}@127.0.0.1:{project.ports['postgres']}/shop"
    with closing(MariaDbCells(mariadb)) as one, closing(PostgresCells(postgres)) as other:
        return {"mariadb": differences(oracle(UPSTREAM), one), "postgres": differences(oracle(UPSTREAM), other)}


def nothing(project: Project, service: str) -> None:
    """The first portion flows undisturbed."""


FAULTS = [(nothing, "kafka"), *KILLED, *CRASHED]


def test_rows_flow_whatever_is_killed(project: Project) -> None:
    begun = time.monotonic()
    project.up(["reconciler"])
    project.until_healthy("reconciler")
    print(f"up and healthy: {time.monotonic() - begun:.1f} s")
    api, bootstrap = Api(project), f"127.0.0.1:{project.ports['kafka']}"
    for (cause, service), (messages, ts) in zip(FAULTS, portions("ticdc-shop", len(FAULTS)), strict=True):
        begun = time.monotonic()
        half = len(messages) // 2  # is on its way by then
        produce(messages[:half], bootstrap, partitions=PARTITIONS)
        cause(project, service)
        project.until_healthy("kafka")  # TiCDC would wait as well
        produce(messages[half:], bootstrap, partitions=PARTITIONS)
        api.until(ts)
        print(f"{cause.__name__} {service}: both targets are at {ts} after {time.monotonic() - begun:.1f} s")
    assert wrong(project) == {"mariadb": [], "postgres": []}
    for name in CHANGEFEEDS:
        config = f"/var/lib/ticdc-reconciler/{name}.toml"
        print(project.inside("reconciler", "reconciler", "verify", "--replay", config))
    project.until_healthy("reconciler")
    project.down()
    assert project.left() == {}
