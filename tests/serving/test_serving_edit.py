"""A config as somebody edits it on the page: what would change is shown first, secrets stay hidden."""

import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumer.serve.config.edited import as_text, change_to, differences
from consumer.serve.config.references import MOST_VALUES
from consumer.serve.fleet import Fleet
from consumer.wiring import target_of
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from sinks.bookkeeping.progress_rows import Lease
from tests.serving.conftest import Ask, Client
from tests.serving.lab import TOKEN

TEXT = """\
changefeed = "x" # a note

[source]
bootstrap-servers = "127.0.0.1:1"
topics = ["t"]

[source.kafka]
"security.protocol" = "SASL_PLAINTEXT"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "u"
"sasl.password" = "a-secret-word"

[target]
uri = "mysql://root:another-secret@127.0.0.1:3306"

[limits]
writers = 3

[redis]
uri = ""
"""
SECRETS = ("a-secret-word", "another-secret")


@pytest.fixture
def client(fleet: Fleet, folder: Path, asking: Ask) -> Client:
    (folder / "x.toml").write_text(TEXT)
    fleet.add(folder / "x.toml")
    return asking(Authorization=f"Bearer {TOKEN}")


def preview(client: Client, text: str, kind: str = "application/toml") -> tuple[int, dict[str, Any]]:
    path = "/api/v2/changefeeds/x/preview"
    answer = client.request("POST", path, content=text.encode(), headers={"Content-Type": kind})
    return answer.status_code, answer.json()


def shown(client: Client) -> str:
    return str(client.get("/api/v2/changefeeds/x/config").json()["text"])


def test_what_is_shown_and_sent_back_changes_nothing(client: Client) -> None:
    text = shown(client)
    assert all(secret not in text for secret in SECRETS)
    assert 'uri = "mysql://root:***@127.0.0.1:3306"' in text
    assert preview(client, text) == (200, {"keys": [], "restarts": False, "change": {}})


def test_a_change_is_shown_before_it_is_done_and_keeps_secrets_and_comments(client: Client, folder: Path) -> None:
    edited = shown(client).replace("writers = 3", "writers = 5").replace('[redis]\nuri = ""\n', "")
    status, found = preview(client, edited + "\n[quarantine]\nenabled = true\n")
    assert status == 200
    assert [(one["key"], one["before"], one["after"]) for one in found["keys"]] == [
        ("limits.writers", "3", "5"),
        ("quarantine.enabled", None, "true"),
        ("redis.uri", '""', None),
    ]
    assert (folder / "x.toml").read_text() == TEXT
    done = client.request("PUT", "/api/v2/changefeeds/x", json=found["change"])
    assert (done.status_code, done.json()["changed"]) == (200, [one["key"] for one in found["keys"]])
    text = (folder / "x.toml").read_text()
    assert "# a note" in text
    assert all(secret in text for secret in SECRETS)


def test_the_byte_order_mark_of_an_editor_is_no_part_of_a_config(client: Client) -> None:
    assert preview(client, "\ufeff" + shown(client)) == (200, {"keys": [], "restarts": False, "change": {}})


def test_topics_can_be_corrected_until_something_is_applied(client: Client, folder: Path, fleet: Fleet) -> None:
    path = folder / "x.toml"
    path.write_text(TEXT.replace("mysql://root:another-secret@127.0.0.1:3306", f"sqlite:///{folder.parent}/out"))
    feed = fleet.feeds["x"]
    feed.load()
    change = {"source": {"topics": ["right"]}}
    done = client.request("PUT", "/api/v2/changefeeds/x", json=change)
    assert (done.status_code, done.json()["changed"]) == (200, ["source.topics"])
    assert tomllib.loads(path.read_text())["source"]["topics"] == ["right"]

    assert feed.config is not None
    with closing(target_of(feed.config)) as target:
        target.connect()
        assert target.try_lead("x")
        progress = Progress()
        lease = Lease("x", target.claim("x", progress).epoch)
        led = client.request("PUT", "/api/v2/changefeeds/x", json={"source": {"topics": ["more"]}})
        assert (led.status_code, led.json()["fact"]) == (409, "another instance leads this changefeed")
        target.save(progress.at(CheckpointTs(5), counts=progress.counts.plus(events=1)), lease)
    for body in ({"source": {"topics": ["more"]}}, {"source": {"protocol": "simple"}}):
        refused = client.request("PUT", "/api/v2/changefeeds/x", json=body)
        assert refused.status_code == 409
        assert "can't be changed any more" in refused.json()["fact"]
    status, _ = preview(client, shown(client).replace('["right"]', '["more"]'))
    assert status == 409


def test_a_preview_refuses_what_a_change_refuses_and_shows_no_secret(client: Client, folder: Path) -> None:
    text = shown(client)
    for status, edited in (
        (502, text.replace('topics = ["t"]', 'topics = ["t", "u"]')),  # the target can't say whether it is too late
        (409, text.replace("127.0.0.1:3306", "127.0.0.1:3307").replace(":***@", ":new@")),
        (400, text.replace("127.0.0.1:3306", "127.0.0.1:3306?ssl-mode=disabled")),  # *** is no password
        (400, text.replace("writers = 3", "writers = 0")),
        (400, text.replace("writers = 3", "writers = ")),
        (400, text.replace('"***"', '"${RECONCILER_TOKEN}"')),
        (409, text.replace("127.0.0.1:1", "127.0.0.1:2")),  # the login would go elsewhere
    ):
        found = preview(client, edited)
        assert found[0] == status, edited
        assert all(secret not in str(found) for secret in SECRETS)
    assert preview(client, text, "application/json")[0] == 415
    secret = preview(client, text.replace('"sasl.password" = "***"', '"sasl.password" = "a-third-word"'))[1]
    assert [(one["key"], one["after"]) for one in secret["keys"]] == [("source.kafka.sasl.password", '"***"')]
    assert (folder / "x.toml").read_text() == TEXT


def test_the_difference_of_two_configs() -> None:
    old = {"a": {"b": 1, "c.d": [1, 2]}, "e": True, "f": {"g": 1}}
    new = {"a": {"b": 1, "c.d": [1]}, "e": 1, "h": {"i": 2}}
    assert change_to(old, new) == {"a": {"c.d": [1]}, "e": 1, "f": None, "h": {"i": 2}}
    assert differences(old, new, ["a.c.d", "f.g"]) == [("a.c.d", "[1,2]", "[1]"), ("f.g", "1", None)]
    assert as_text({"a": list(range(MOST_VALUES + 1))}) is None


def test_a_check_tells_all_and_keeps_nothing(client: Client, folder: Path, tmp_path: Path) -> None:
    config = {
        "changefeed": "new",
        "source": {"bootstrap-servers": "127.0.0.1:1", "topics": ["t"]},
        "target": {"uri": f"sqlite:///{tmp_path}/target"},
        "redis": {"uri": ""},
    }
    answer = client.post("/api/v2/changefeeds/check", json=config)
    assert answer.status_code == 200
    found = answer.json()
    assert found["ok"] is False
    lines = {one["subject"]: one for one in found["items"]}
    assert lines["kafka"]["exit_code"] == 3
    assert lines["kafka"]["hint"]
    assert lines["target"]["ok"]
    assert [path.name for path in folder.iterdir()] == ["x.toml"]
    wrong = {**config, "target": {"uri": "mysql://root:${HOME}@127.0.0.1:3306"}}
    assert client.post("/api/v2/changefeeds/check", json=wrong).status_code == 400
