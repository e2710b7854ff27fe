"""The unit: systemd reads it, its command line is ours, its credentials are what the config may name."""

import re
import shlex
from pathlib import Path

from consumer.serve.fleet import STOP_S
from ordering.errors import ConfigError, ReconcilerError
from tests.docker.stack import DOCKER
from tests.docs.test_readme import check_command_line

UNIT = DOCKER / "systemd" / "ticdc-reconciler.service"
TEXT = UNIT.read_text()


def service() -> dict[str, list[str]]:
    """Key -> the values it is given, one after the other."""
    found: dict[str, list[str]] = {}
    section = re.split(r"^\[", TEXT, flags=re.MULTILINE)
    (lines,) = (part for part in section if part.startswith("Service]"))
    for key, value in re.findall(r"^(\w+)=(.*)$", lines, re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def test_it_has_the_three_sections() -> None:
    assert re.findall(r"^\[(\w+)\]$", TEXT, re.MULTILINE) == ["Unit", "Service", "Install"]
    assert all(re.fullmatch(r"(#.*|\[\w+\]|\w+=.*|)", line) for line in TEXT.splitlines())


def test_its_command_line_is_ours() -> None:
    program, *words = shlex.split(service()["ExecStart"][0])
    assert program.endswith("/bin/reconciler")
    check_command_line(words[2:])
    place = Path(words[words.index("serve") + 1])
    states = service()["StateDirectory"][0].split()
    assert str(place.relative_to("/var/lib")) in states, "the API writes there"


def test_secrets_are_credentials() -> None:
    given = dict(value.split(":", 1) for value in service()["LoadCredential"])
    assert "RECONCILER_TOKEN=file:%d/token" in service()["Environment"]
    assert {"token", "target-uri"} == set(given)
    assert all(path == f"/etc/ticdc-reconciler/secrets/{name}" for name, path in given.items())
    assert f"file:/run/credentials/{UNIT.name}/NAME" in TEXT


def test_it_is_not_started_again_in_vain_and_has_time_to_end() -> None:
    assert service()["Restart"] == ["on-failure"]
    assert {int(code) for code in service()["RestartPreventExitStatus"][0].split()} == {ConfigError.exit_code}
    assert {one.exit_code for one in ReconcilerError.__subclasses__()} > {ConfigError.exit_code}
    assert int(service()["TimeoutStopSec"][0]) > STOP_S + 10
    assert service()["KillMode"] == ["mixed"]


def test_it_is_closed() -> None:
    for key, value in {
        "NoNewPrivileges": "true",
        "ProtectSystem": "strict",
        "ProtectHome": "true",
        "PrivateTmp": "true",
        "PrivateDevices": "true",
        "CapabilityBoundingSet": "",
        "RestrictSUIDSGID": "true",
        "User": "reconciler",
    }.items():
        assert service()[key] == [value]
    assert "MemoryDenyWriteExecute" not in service(), "Java's compiler"
