"""The images: ours, built by its Dockerfile, and those of the servers that `docker/compose.yml` names.

The servers' are the real ones where a registry can be reached. Elsewhere they are made from packages, after what the
real ones make of their variables, mounts and commands; they have the same tags while tests run, and no longer.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from consumer.embedded.jars import jar_directory
from tests.containers.engine import Engine, base_image
from tests.docker.stack import DOCKER, IMAGE, ROOT, SERVICES

SERVERS = ("kafka", "redis", "mariadb", "postgres")
_BUILD_SECONDS = 1500.0
_RECIPES = Path(__file__).parent / "servers"


def build_ours(engine: Engine) -> str:
    """Our image from this checkout; its name."""
    engine.build("-f", DOCKER / "Dockerfile", "-t", IMAGE, ROOT, seconds=_BUILD_SECONDS)
    return IMAGE


@contextmanager
def servers(engine: Engine) -> Iterator[None]:
    """The servers' images under the names that the Compose file has for them."""
    names = {service: SERVICES[service]["image"] for service in SERVERS}
    lacking = [service for service, image in names.items() if not engine.has(image)]
    if lacking and engine.pulled(names[lacking[0]]):
        assert all(engine.pulled(names[service]) for service in lacking)
        lacking = []
    try:
        for service in lacking:
            _stand_in(engine, service, names[service])
        yield
    finally:
        for service in lacking:
            engine.tried("untag", names[service], names[service])  # alone, it would lose all its names


def _stand_in(engine: Engine, service: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        context = Path(place) / service
        shutil.copytree(_RECIPES / service, context)
        if service == "kafka":
            shutil.copytree(jar_directory("kafka"), context / "jars")
            logging = files("consumer.embedded") / "kafka-log4j2.properties"
            (context / "log4j2.properties").write_text(logging.read_text())
        kept = f"localhost/{Path(name.partition(':')[0]).name}-stand-in"  # so that its layers stay for the next time
        engine.build("--build-arg", f"BASE={base_image()}", "-t", kept, "-t", name, context, seconds=_BUILD_SECONDS)
