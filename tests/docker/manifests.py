"""The Kubernetes manifests as data, kustomized as `kubectl kustomize` does it with what these files use."""

from pathlib import Path
from typing import Any

import yaml

from tests.docker.stack import DOCKER

KUBERNETES = DOCKER / "kubernetes"
Object = dict[str, Any]


def objects(path: Path) -> list[Object]:
    """Every document of a file."""
    return [found for found in yaml.safe_load_all(path.read_text()) if found]


def kustomized(folder: Path) -> list[Object]:
    """The resources of a directory with its patches."""
    (settings,) = objects(folder / "kustomization.yaml")
    assert set(settings) <= {"apiVersion", "kind", "namespace", "resources", "patches"}
    found: list[Object] = []
    for name in settings["resources"]:
        path = (folder / name).resolve()
        found += kustomized(path) if path.is_dir() else objects(path)
    for patch in settings.get("patches", []):
        for change in objects(folder / patch["path"]):
            (target,) = (one for one in found if identity(one) == identity(change))
            found[found.index(target)] = merged(target, change)
    return found


def identity(one: Object) -> tuple[str, str]:
    """Kind and name."""
    return one["kind"], one["metadata"]["name"]


def merged(target: Any, change: Any) -> Any:
    """A strategic merge: objects key by key, lists of named objects (mounts: by place) by name, all else replaced."""
    if isinstance(target, dict) and isinstance(change, dict):
        both = {name: merged(target[name], change[name]) for name in target if name in change}
        return {**target, **change, **both}
    if isinstance(target, list) and isinstance(change, list) and all(isinstance(one, dict) for one in change):
        kept = {_key(one): one for one in target}
        for one in change:
            kept[_key(one)] = merged(kept.get(_key(one), {}), one)
        return list(kept.values())
    return change


def _key(one: Object) -> str:
    return str(one.get("mountPath") or one["name"])


def found(manifests: list[Object], kind: str) -> list[Object]:
    """Those of a kind."""
    return [one for one in manifests if one["kind"] == kind]


def pod_of(manifests: list[Object]) -> Object:
    """What the Deployment's pods are made of."""
    (deployment,) = found(manifests, "Deployment")
    pod: Object = deployment["spec"]["template"]
    return pod
