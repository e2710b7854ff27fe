"""The deployment files as data: Compose files merged as the engine does it, and what their services run and mount."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
DOCKER = ROOT / "docker"
SCHEMAS = Path(__file__).parent / "schemas"
CHANGEFEEDS = DOCKER / "changefeeds"
IMAGE = "ticdc-reconciler:0.2.0"
VARIABLE = re.compile(r"\$\{(\w+):-(\w*)\}")
"""In a Compose file: a variable with what it is where the environment does not say."""
PINNED = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.-]+)?")


def composed(name: str) -> dict[str, Any]:
    """A Compose file; anchors and merges are resolved, and `${NAME:-default}` is the default."""
    found: dict[str, Any] = yaml.safe_load(VARIABLE.sub(r"\2", (DOCKER / name).read_text()))
    return found


FILES = ("compose.yml", "compose.tidb.yml")
BASE = composed("compose.yml")
TIDB = composed("compose.tidb.yml")
SERVICES: dict[str, dict[str, Any]] = {**BASE["services"], **TIDB["services"]}
VOLUMES = {**BASE["volumes"], **TIDB["volumes"]}


def ours() -> dict[str, dict[str, Any]]:
    """The services that run our image."""
    return {name: service for name, service in SERVICES.items() if service["image"] == IMAGE}


def mounts(service: dict[str, Any]) -> list[tuple[str, str]]:
    """Source and place of each volume."""
    return [(source, place) for source, place, *_ in (m.split(":") for m in service.get("volumes", []))]


def secret(name: str) -> str:
    """What a secret's file holds."""
    return (DOCKER / "secrets" / name).read_text().rstrip("\n")


def options(words: list[str]) -> dict[str, str]:
    """`--name=value` words as a dictionary."""
    return dict(word.lstrip("-").split("=", 1) for word in words if word.startswith("-"))
