"""`python -m tests.docker.outside`: what kubectl and systemd say of our files; `./dev image` runs it.

Exit code 1 if they disagree with what the tests look at, 3 if one of them is not on the PATH.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.docker.manifests import KUBERNETES, Object, identity, kustomized
from tests.docker.stack import DOCKER

UNIT = DOCKER / "systemd" / "ticdc-reconciler.service"


def kustomized_alike(kubectl: str, variant: str) -> bool:
    """Whether `kubectl kustomize` makes of a variant what our own merging makes of it."""
    words = [kubectl, "kustomize", str(KUBERNETES / variant)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return _by_name(list(yaml.safe_load_all(done.stdout))) == _by_name(kustomized(KUBERNETES / variant))


def complaints_of(analyze: str) -> str:
    """What `systemd-analyze verify` says of the unit; our program is not installed here, so another stands for it."""
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text(), flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / UNIT.name
        copy.write_text(text)
        done = subprocess.run([analyze, "verify", copy], capture_output=True, text=True, timeout=60, check=False)
    return done.stderr or ("it is refused" if done.returncode else "")


def _by_name(objects: list[Object]) -> dict[tuple[str, str], Any]:
    return {identity(one): _normal(one) for one in objects}


def _normal(value: Any) -> Any:
    """Lists of named objects in one order."""
    if isinstance(value, dict):
        return {name: _normal(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return (
            sorted((_normal(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
            if isinstance(value[0], dict)
            else value
        )
    return value


def main() -> int:
    """Ask both, and print what they say."""
    kubectl, analyze = shutil.which("kubectl"), shutil.which("systemd-analyze")
    wrong = [variant for variant in ("base", "spark") if kubectl and not kustomized_alike(kubectl, variant)]
    complaints = complaints_of(analyze) if analyze else ""
    for variant in wrong:
        print(f"IMAGE: kubectl makes something else of docker/kubernetes/{variant} than the tests")
    if complaints:
        print(f"IMAGE: systemd says of {UNIT.name}: {complaints}")
    for name, program in (("kubectl", kubectl), ("systemd-analyze", analyze)):
        if program is None:
            print(f"IMAGE: no {name} on the PATH: only our own tests read these files")
    if wrong or complaints:
        return 1
    return 0 if kubectl and analyze else 3


if __name__ == "__main__":
    sys.exit(main())
