"""No secret of a `serve` lies where others can see it, also of changefeeds that are made when Spark runs already."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis as redis_client

from consumer.embedded import RedisServer
from consumer.embedded.ports import PortLease, lease_port
from tests.certificates import Authority
from tests.embedded import PostgresServer
from tests.live_files import files_below
from tests.service.kafka.test_login import RIGHT, LockedBroker
from tests.service.lab import DEADLINE_S, Feed, eventually
from tests.service.messages import at, begun, insert, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.service.security.test_secrets import Watch, files_with_secrets, pages_of_spark
from tests.serving.lab import TOKEN, Serving, config_of

pytestmark = [pytest.mark.service, pytest.mark.spark]
SECRETS = {
    "HIDDEN_KAFKA": RIGHT,
    "HIDDEN_TARGET": "t4rget-hidden-aa",
    "HIDDEN_REDIS": "r3dis-hidden-bb",
    "HIDDEN_STORE": "st0re-hidden-cc",
    "HIDDEN_UPSTREAM": "upstre4m-hidden-dd",
    "HIDDEN_FROM_ALL": "n0body-takes-it-ee",
}
"""The last one is listed for the API, and no config takes it."""
VALUES = [value.encode() for value in (*SECRETS.values(), TOKEN)]


@dataclass
class Hidden:
    """Servers that all ask for a password, and a process that knows them."""

    serving: Serving
    broker: LockedBroker
    redis: RedisServer
    ui: PortLease
    place: Path
    user: str

    def feed(self, topic: str, server: PostgresServer) -> Feed:
        """A changefeed whose secrets are references."""
        cells = PostgresCells(server.uri)
        feed = Feed(None, self.broker.bootstrap, topic, server.uri, cells, self.place)  # type: ignore[arg-type]
        login = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self.place / "authority.pem")}
        password = {"sasl.mechanism": "PLAIN", "sasl.username": "reader", "sasl.password": "${HIDDEN_KAFKA}"}
        return feed.with_(
            target={
                "uri": server.uri.replace("postgres:postgres@", f"{self.user}:${{HIDDEN_TARGET}}@"),
                "consistency": "row",
            },
            redis={"uri": f"redis://hidden:${{HIDDEN_REDIS}}@127.0.0.1:{self.redis.port}/0"},
            limits={"window-rows": 1_000},
            **{
                "source.kafka": {**login, **password},
                "source.upstream": {"uri": "tidb://u:${HIDDEN_UPSTREAM}@127.0.0.1:1"},
                "source.claim-check": {"locations": ["s3://box/of-rows"]},
                "source.claim-check.options": {
                    "secret-access-key": "${HIDDEN_STORE}",
                    "access-key-id": "us",
                    "region": "eu",
                },
            },
        )

    def config(self, feed: Feed) -> dict[str, Any]:
        """As the API takes it."""
        found = config_of(feed)
        found["source"]["bootstrap-servers"] = f"localhost:{self.broker.ports['login']}"
        for section in [name for name in found if "." in name]:
            *outer, last = section.split(".")
            inner = found
            for name in outer:
                inner = inner.setdefault(name, {})
            inner[last] = {**inner.get(last, {}), **found.pop(section)}
        return found


@pytest.fixture
def ui() -> Iterator[PortLease]:
    found = lease_port()
    yield found
    found.release()


@pytest.fixture
def hidden(tmp_path: Path, postgres_server: PostgresServer, ui: PortLease) -> Iterator[Hidden]:
    user, folder, scratch = f"hidden_{os.getpid()}", tmp_path / "changefeeds", tmp_path / "scratch"
    for place in (folder, scratch, tmp_path / "events"):
        place.mkdir(mode=0o755)
    authority = Authority(tmp_path)
    (tmp_path / "authority.pem").write_bytes(authority.file.read_bytes())
    (folder / "_serve.toml").write_text(
        f'[spark]\nmaster = "local[2]"\n"spark.ui.enabled" = "true"\n"spark.ui.port" = "{ui.port}"\n'
        '"spark.eventLog.enabled" = "true"\n"spark.eventLog.compress" = "false"\n'
        f'"spark.eventLog.dir" = "{tmp_path / "events"}"\n'
        f'[api]\nvariables = ["HIDDEN_*"]\nfiles = ["{tmp_path}/*.pem"]\nclaim-check-locations = ["s3://box"]\n'
    )
    with psycopg.connect(postgres_server.uri, autocommit=True) as root:
        root.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{SECRETS['HIDDEN_TARGET']}'".encode())
    try:
        with (
            LockedBroker(tmp_path / "broker", authority) as broker,
            RedisServer(tmp_path / "redis") as server,
            redis_client.Redis(port=server.port) as client,
            Serving(folder, env={**SECRETS, "TMPDIR": str(scratch)}) as serving,
        ):
            client.execute_command("ACL", "SETUSER", "hidden", "on", f">{SECRETS['HIDDEN_REDIS']}", "~*", "+@all")
            yield Hidden(serving, broker, server, ui, tmp_path, user)
    finally:
        with psycopg.connect(postgres_server.uri, autocommit=True) as root:
            root.execute(f"DROP OWNED BY {user} CASCADE; DROP ROLE {user}".encode())


def open_to_others(place: Path) -> list[str]:
    """Files that another user of the machine can read; below a private directory nobody can."""
    return [str(path) for path in files_below(place) if _is_open(path, place)]


def _is_open(path: Path, place: Path) -> bool:
    try:
        modes = [one.stat().st_mode for one in (path, *path.parents) if one.is_relative_to(place)]
    except FileNotFoundError:  # Spark has removed it
        return False
    return all(stat.S_IMODE(mode) & 0o007 for mode in modes)


@pytest.mark.by_turns(9)
def test_serve_shows_no_secret(hidden: Hidden, postgres_server: PostgresServer, topic_name: str) -> None:
    feed, serving = hidden.feed(topic_name, postgres_server), hidden.serving
    feed.send(begun())
    watch = Watch(serving.process.pid, VALUES)
    serving.ask("POST", "", 201, json=hidden.config(feed))
    serving.reached(feed.name, at(3))
    rows = [insert("d.t", 4, number % 3, id=number, v=1, s="x") for number in range(10, 20_000)]
    feed.send([*rows, *watermarks(4)])
    eventually("many rows, written by tasks", lambda: feed.reached(at(4)), 2 * DEADLINE_S)
    watch.end()
    assert watch.found == set()
    assert {"java cmdline", "java environ"} <= watch.seen
    assert sum("python" in name for name in watch.seen) >= 2
    for place in ("scratch", "events"):
        assert files_with_secrets(hidden.place / place, VALUES) == []
        assert open_to_others(hidden.place / place) == []
    events = b"".join(path.read_bytes() for path in files_below(hidden.place / "events") if path.is_file())
    assert b"SparkListenerEnvironmentUpdate" in events
    assert b"SparkListenerTaskEnd" in events
    shown = pages_of_spark(hidden.ui.port) + "".join(serving.raw).encode()
    shown += serving.client.get(f"/api/v2/changefeeds/{feed.name}/config").content
    shown += serving.client.get(f"/api/v2/changefeeds/{feed.name}").content
    assert [value for value in VALUES if value in shown] == []
