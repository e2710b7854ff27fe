"""What can be told of image and Compose file without an engine: nothing they name is missing, nothing is unpinned."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.config import load_config
from sinks.uri import parse_target_uri

ROOT = Path(__file__).parent.parent.parent
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = re.sub(r"\\\n", " ", (DOCKER / "Dockerfile").read_text())
INSTRUCTIONS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
PINNED = re.compile(r"[a-z0-9./-]+:\d+\.\d+\.\d+[a-z0-9.-]*")


def arguments(instruction: str) -> list[str]:
    return [words for name, words in INSTRUCTIONS if name == instruction]


def test_all_four_are_there() -> None:
    assert set(SERVICES) == {"kafka", "redis", "mariadb", "reconciler"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    assert PINNED.fullmatch(SERVICES[name]["image"])


def test_base_images_are_pinned_and_the_same() -> None:
    images = {words.split()[0] for words in arguments("FROM")}
    assert len(images) == 1
    assert all(PINNED.fullmatch(image) for image in images)


def test_kafka_is_the_version_that_is_tested_here() -> None:
    jars = (ROOT / "consumer" / "embedded" / "kafka-jars.properties").read_text()
    version = re.search(r"org\.apache\.kafka/kafka_[\d.]+/([\d.]+)=", jars)
    assert version is not None
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version[1]}"


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"reconciler"}))
def test_servers_are_checked_before_the_reconciler_starts(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES["reconciler"]["depends_on"][name] == {"condition": "service_healthy"}


def test_every_mount_exists() -> None:
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    for source, target, *_ in mounts:
        assert target.startswith("/")
        assert (DOCKER / source).is_file() if source.startswith(".") else source in COMPOSE["volumes"]


def test_every_secret_is_a_file_and_defined() -> None:
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == set(COMPOSE["secrets"])
    assert all((DOCKER / secret["file"]).read_text().strip() for secret in COMPOSE["secrets"].values())


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_config_is_valid_and_names_the_services(tmp_path: Path) -> None:
    text = (DOCKER / "reconciler.toml").read_text()
    (tmp_path / "reconciler.toml").write_text(text.replace("/run/secrets/", f"{DOCKER}/secrets/"))
    config = load_config(tmp_path / "reconciler.toml")
    target = parse_target_uri(config.target.uri)
    assert target.host in SERVICES
    assert target.password == (DOCKER / "secrets" / "mariadb-reconciler").read_text().strip()
    assert re.fullmatch(r"redis://(\w+):6379/0", config.redis.uri)[1] in SERVICES  # type: ignore[index]
    host, port = config.source.bootstrap_servers.split(":")
    assert host in SERVICES
    assert f"INSIDE://{host}:{port}" in SERVICES[host]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_everything_copied_exists_and_is_sent_to_the_engine() -> None:
    sources = [word for words in arguments("COPY") if "--from" not in words for word in words.split()[:-1]]
    assert {"requirements.lock", "consumer", "ordering", "sinks"} <= set(sources)
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert set(sources) == sent
    assert all((ROOT / source).exists() for source in sources)


def test_the_image_is_locked_lean_and_without_root() -> None:
    (run,) = (words for words in arguments("RUN") if "uninstall" in words)
    assert any("--require-hashes -r requirements.lock" in words for words in arguments("RUN"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {re.split(r"[<>=\[]", each)[0] for each in (*extras["embedded"], *extras["dev"])} - {"ticdc-reconciler"}
    assert set(run.split("uninstall --yes")[1].split()) == names
    assert arguments("USER") == ["reconciler"]
    assert SERVICES["reconciler"]["read_only"] is True


def test_the_container_reads_the_mounted_config() -> None:
    (mount,) = SERVICES["reconciler"]["volumes"]
    path = mount.split(":")[1]
    assert all(path in words for words in (*arguments("CMD"), *arguments("HEALTHCHECK")))


def test_the_user_has_the_least_rights() -> None:
    """Those that the documentation lists, and no more."""
    listed = re.findall(r"^GRANT (.+) ON `", (ROOT / "docs" / "security.md").read_text(), re.MULTILINE)
    given = re.search(r"^GRANT (.+?) ON \*\.\*", (ROOT / "docker" / "rights.sql").read_text(), re.MULTILINE | re.DOTALL)
    assert given
    assert set(re.split(r",\s+", given[1])) == {right for rights in listed for right in rights.split(", ")}
