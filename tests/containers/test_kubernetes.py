"""`docker/kubernetes/base` by `podman kube play`: of two pods one leads; it is killed, and the other goes on."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest
import yaml

from consumer.demo.fake_ticdc.producer import produce
from tests.containers.compose import Project
from tests.containers.engine import Engine
from tests.containers.topics import PARTITIONS, UPSTREAM, portions
from tests.docker.manifests import KUBERNETES, Object, kustomized, objects
from tests.docker.stack import secret
from tests.service.cells import MariaDbCells, differences, oracle
from tests.service.lab import eventually

pytestmark = [
    pytest.mark.soak,
    pytest.mark.containers,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("image", "server_images"),
]
PLAYED = ("ConfigMap", "Deployment")
"""What podman knows of our kinds; the Secret is made from the example."""

VOLUMES = ("scratch", "ticdc-reconciler", "ticdc-reconciler-changefeeds")
"""What podman makes of a pod's volumes, and keeps."""
NOT_PLAYED = ("ports", "startupProbe", "readinessProbe", "livenessProbe")
"""podman publishes a pod's ports on the machine, where two of a kind collide, and probes by a curl in the image."""


@pytest.fixture
def servers(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The Compose file's, without its reconciler."""
    project = Project(engine, "ticdc-reconciler-kube", tmp_path_factory.mktemp("kube"))
    try:
        project.up(["kafka", "redis", "mariadb"])
        for service in ("kafka", "redis", "mariadb"):
            project.until_healthy(service)
        yield project
    finally:
        project.down()


def manifests(engine: Engine) -> list[Object]:
    """The base with the servers' addresses, and a Secret."""
    (example,) = objects(KUBERNETES / "base" / "secret.example.yaml")
    values = {"token": "a" * 32, "target-uri": secret("mariadb-uri"), "redis-uri": "redis://redis:6379/0"}
    assert values.keys() == example.pop("stringData").keys()
    found: list[Object] = [one for one in kustomized(KUBERNETES / "base") if one["kind"] in PLAYED]
    found = json.loads(json.dumps(found).replace("kafka.kafka.svc:9092", "kafka:19092"))
    (deployment,) = (one for one in found if one["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for name in NOT_PLAYED:
        del container[name]
    if engine.version() >= (4, 4):
        example["data"] = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    else:  # it mounts a Secret's data as they are written, encoded
        example = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": example["metadata"], "data": values}
        (volume,) = (one for one in pod["volumes"] if "secret" in one)
        volume["configMap"] = {"name": volume.pop("secret")["secretName"]}
    return [example, *found]


@pytest.fixture
def pods(servers: Project, tmp_path: Path) -> Iterator[list[str]]:
    """The containers of both pods."""
    engine, file = servers.engine, tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(manifests(engine)))
    try:
        engine("kube", "play", "--network", f"{servers.name}_default", file)
        yield engine("ps", "--quiet", "--filter=name=ticdc-reconciler-pod.*-reconciler").split()
    finally:
        engine.tried("kube", "down", file)
        engine.tried("secret", "rm", "ticdc-reconciler")
        engine.tried("volume", "rm", *VOLUMES)


def test_the_pods_stand_in_for_each_other(servers: Project, pods: list[str]) -> None:
    engine = servers.engine
    assert len(pods) == 2
    uri = f"mysql://root:{secret('mariadb-root')}@127.0.0.1:{servers.ports['mariadb']}"
    health = ("python", "-m", "consumer.serve.health", "127.0.0.1:8300")
    for pod in pods:
        eventually("it answers", lambda pod=pod: engine.tried("exec", pod, *health).returncode == 0, pause_s=0.5)
    with closing(MariaDbCells(uri)) as cells:
        for number, (messages, ts) in enumerate(portions("ticdc-shop", 2)):
            begun = time.monotonic()
            if number == 1:
                leader = next(pod for pod in pods if leads(engine, pod))
                engine("kill", "--signal", "KILL", leader)
                (other,) = set(pods) - {leader}
            produce(messages, f"127.0.0.1:{servers.ports['kafka']}", partitions=PARTITIONS)
            eventually("the rows are there", lambda ts=ts: checkpoint(cells) >= ts, pause_s=0.5)
            print(f"portion {number}: {time.monotonic() - begun:.1f} s")
        assert differences(oracle(UPSTREAM), cells) == []
    assert leads(engine, other)


def checkpoint(cells: MariaDbCells) -> int:
    """Where the changefeed is; 0 before it has begun."""
    try:
        return int(cells.progress("shop")["checkpoint_ts"])
    except (IndexError, pymysql.Error):
        return 0


def leads(engine: Engine, pod: str) -> bool:
    """Whether it leads the changefeed, as its API says."""
    script = (
        "import json, urllib.request as r; q = r.Request('http://127.0.0.1:8300/api/v2/changefeeds/shop', "
        f"headers={{'Authorization': 'Bearer {'a' * 32}'}}); print(json.load(r.urlopen(q))['leads'])"
    )
    return engine("exec", pod, "python", "-c", script) == "True"
