"""What may be changed, referred to and shown; files that are whole or not there."""

import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import Config, config_from
from consumer.serve.api.errors import ConflictError
from consumer.serve.config import files
from consumer.serve.config.changes import CHANGEABLE, REFUSED, changed_keys, check_keys, check_same_place, merged
from consumer.serve.fleet import Fleet
from consumer.serve.operations import Operations
from consumer.serve.settings import with_paused
from ordering.errors import ConfigError
from tests.serving.conftest import Ask
from tests.serving.lab import TOKEN

REQUIRED: dict[str, Any] = {
    "changefeed": "x",
    "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["t"]},
    "target": {"uri": "sqlite:////tmp/x"},
}
TEXT = """\
# who owns it
changefeed = "x"

[source]
bootstrap-servers = "127.0.0.1:1" # the only one
topics = ["t"]

[target]
uri = "sqlite:////tmp/x"
"""


def keys_of(model: Any, prefix: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = field.annotation
        found += keys_of(inner, f"{key}.") if hasattr(inner, "model_fields") and key != "spark" else [key]
    return found


def test_of_every_key_it_is_known_whether_it_may_change() -> None:
    for key in keys_of(Config):
        refused = any(key == fixed or key.startswith(f"{fixed}.") for fixed in REFUSED)
        assert refused is not bool(CHANGEABLE.fullmatch(key)), key


@pytest.mark.parametrize("key", ["changefeed", "source.start-ts", "spark.master", "nothing", "target", "limits"])
def test_what_must_stay(key: str) -> None:
    with pytest.raises(ConflictError) as caught:
        check_keys([key])
    assert caught.value.hint


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("mysql://a:b@h:3306", "mysql://c:d@h:3306?ssl-ca=/ca.pem", True),
        ("mysql://a:b@h:3306", "mysql://a:b@other:3306", False),
        ("mysql://a:b@h:3306", "mysql://a:b@h:3307", False),
        ("postgresql://a:b@h/one", "postgresql://a:b@h:5432/one", True),
        ("postgresql://a:b@h/one", "postgresql://a:b@h/two", False),
        ("mysql://a:b@h:3306", "mariadb://a:b@h:3306", False),
        ("sqlite:////tmp/x", "sqlite:////tmp/y", False),
        ("iceberg+sqlite:////tmp/c?warehouse=/tmp/w", "iceberg+sqlite:////tmp/c?warehouse=/tmp/w", True),
        ("iceberg+sqlite:////tmp/c?warehouse=/tmp/w", "iceberg+sqlite:////tmp/c?warehouse=/tmp/v", False),
        ("iceberg+postgresql://a:b@h/d?warehouse=/w", "iceberg+postgresql://c@h/d?sslmode=require&warehouse=/w", True),
        ("iceberg+postgresql://a:b@h/d?warehouse=/w", "iceberg+postgresql://a:b@h/d?warehouse=/v", False),
        ("iceberg+postgresql://a:b@h/d?warehouse=/w", "iceberg+postgresql://a:b@h/e?warehouse=/w", False),
        ("iceberg+postgresql://a:b@h/d?warehouse=/w", "postgresql://a:b@h/d", False),
    ],
)
def test_the_target_stays_where_it_is(before: str, after: str, same: bool) -> None:
    old, new = (config_from({**REQUIRED, "target": {"uri": uri}}, "a test") for uri in (before, after))
    if same:
        check_same_place(old, new)
    else:
        with pytest.raises(ConflictError):
            check_same_place(old, new)


def test_changes_are_merged_by_key() -> None:
    old = {"limits": {"writers": 1, "window-rows": 5}, "filter": {"rules": ["a"]}}
    new = merged(old, {"limits": {"writers": None}, "filter": {"rules": ["b"]}, "redis": {"uri": ""}})
    assert new == {"limits": {"window-rows": 5}, "filter": {"rules": ["b"]}, "redis": {"uri": ""}}
    assert changed_keys(old, new) == ["filter.rules", "limits.writers", "redis.uri"]
    assert changed_keys(old, merged(old, {"limits": {}})) == []
    assert changed_keys(old, merged(old, {"limits": None})) == ["limits.window-rows", "limits.writers"]


def test_files_are_whole_and_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("old")
    path.chmod(0o644)
    files.write(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    assert [one.name for one in tmp_path.iterdir()] == ["x.toml"]
    files.remove(path)
    files.remove(path)
    with pytest.raises(ConflictError):
        files.write(tmp_path / "none" / "x.toml", "new")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ConflictError):
        files.write(tmp_path / "folder.toml", "new")
    assert [one.name for one in tmp_path.iterdir()] == ["folder.toml"], "nothing half written is left"


def test_who_is_paused_is_kept_beside_all_else() -> None:
    text = '# note\npaused = ["a"] # why\n\n[spark] # one for all\nmaster = "local[2]"\n'
    assert with_paused(with_paused(text, ["b", "c"]), ["b"]).startswith('paused = ["b"]\n')
    for part in ("# note", '[spark] # one for all\nmaster = "local[2]"'):
        assert part in with_paused(text, [])
    assert with_paused("", ["x"]) == 'paused = ["x"]\n'


def test_a_change_of_a_paused_changefeed(fleet: Fleet, folder: Path, asking: Ask) -> None:
    """What is written keeps comments; what is wrong is not written."""
    path = folder / "x.toml"
    path.write_text(TEXT)
    fleet.add(path)
    client = asking(Authorization=f"Bearer {TOKEN}")

    def change(**body: Any) -> int:
        return client.request("PUT", "/api/v2/changefeeds/x", json=body).status_code

    assert change(limits={"writers": 3, "window-bytes": "2MiB"}, redis={"uri": ""}) == 200
    assert change(filter={"event-filters": [{"matcher": ["d.*"], "ignore-event": ["delete"]}]}) == 200
    text = path.read_text()
    assert text.startswith(TEXT)
    assert "[[filter.event-filters]]" in text or "event-filters = [" in text
    assert fleet.feed("x").config.limits.window_bytes == 2 << 20  # type: ignore[union-attr]
    for status, body in (
        (400, {"limits": {"writers": 0}}),
        (400, {"limits": {"nothing": None, "writers": "three"}}),
        (409, {"limits": {"nothing": 3}, "nothing": {"x": 1}}),
        (400, {"limits": 3}),
        (400, {"limits": [1]}),
        (409, {"changefeed": "y"}),
        (400, {"filter": {"rules": [None]}}),
        (400, {"limits": {"writers": None}, "redis": {"uri": {"a": None}}}),
    ):
        assert change(**body) == status, body
    assert path.read_text() == text
    assert change(redis={"uri": None}) == 200
    assert fleet.feed("x").config.redis.uri != ""  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"[]", 400),
        ("application/json", b'{"changefeed": null}', 400),
        ("application/json", b'{"changefeed": 18446744073709551616}', 400),
        ("application/json", b"[" * 5000, 400),
        ("application/json", b'{"a":' * 900 + b"1" + b"}" * 900, 400),
        ("application/toml", b"a = " + b"[" * 5000, 400),
        ("application/toml", b"\xff", 400),
        ("application/toml", b"a = 1\na = 2", 400),
        ("application/toml", b'changefeed = "../x"', 400),
        ("application/xml", b"<x/>", 415),
        ("", b"{}", 415),
    ],
)
def test_bodies_that_are_no_config(asking: Ask, folder: Path, kind: str, body: bytes, status: int) -> None:
    client = asking(Authorization=f"Bearer {TOKEN}")
    answer = client.post("/api/v2/changefeeds", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.json()["hint"]
    assert list(folder.iterdir()) == []


def test_a_directory_that_can_not_be_written(fleet: Fleet, folder: Path) -> None:
    (folder / "x.toml").mkdir()
    with pytest.raises(ConflictError):
        Operations(fleet).create(TEXT)
    assert fleet.all() == []


def test_settings_of_the_process(folder: Path, tmp_path: Path) -> None:
    (folder / "_serve.toml").write_text("port = 1\n")
    with pytest.raises(ConfigError) as caught:
        Fleet(folder, tmp_path)
    assert "unknown key 'port'" in caught.value.fact
    (folder / "_serve.toml").write_text('paused = ["a"]\n[spark]\nmaster = "local[2]"\n"spark.ui.port" = 1\n')
    assert Fleet(folder, tmp_path).settings.paused == ["a"]


def test_a_run_loads_no_web_server() -> None:
    """`reconciler run` starts as quickly as before there was `serve`."""
    code = "import consumer.cli.main, consumer.run.runner, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"fastapi", "starlette", "uvicorn", "prometheus_client", "tomlkit", "h11"} & set(done.stdout.split())


MANY: list[Any] = [
    {f"a{n}": 1 for n in range(2_000)}, {f"a{n}": {} for n in range(2_000)}, {"a": [{}] * 2_000},
    {'"' * 200_000: 1}, {"a": [{"\x01" * 70_000: "x"}]}, {"a": ['"' * 700] * 100},
]  # fmt: skip


@pytest.mark.parametrize("values", MANY, ids=["keys", "tables", "elements", "a name", "a name within", "texts"])
def test_bodies_of_many_values_are_refused_at_once(asking: Ask, fleet: Fleet, folder: Path, values: Any) -> None:
    """Writing TOML takes time that grows with the square of its keys, or of one, in the loop that answers everybody."""
    (folder / "x.toml").write_text(TEXT)
    fleet.add(folder / "x.toml")
    client = asking(Authorization=f"Bearer {TOKEN}")
    began = time.thread_time()
    answers = [client.post("/api/v2/changefeeds", json=values)]
    answers.append(client.request("PUT", "/api/v2/changefeeds/x", json={"source": {"kafka": values}}))
    assert time.thread_time() - began < 1
    assert [answer.status_code for answer in answers] == [400, 400]
    assert "holds more than" in answers[0].text
