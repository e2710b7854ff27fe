"""The Compose stack as processes: each server with its service's options, the reconciler with its command.

What the engine would do is done here: names become local ports, secrets files, accounts are made.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pymysql
import pytest
import yaml
from redis import Redis

from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker, RedisServer
from tests.docker.stack import CHANGEFEEDS, DOCKER, SERVICES, secret
from tests.embedded import MariaDbServer, PostgresServer
from tests.service.messages import at, begun, insert, watermarks
from tests.serving.lab import Serving

pytestmark = [pytest.mark.service, pytest.mark.spark]
TOPIC = "ticdc-shop"


def kafka_settings() -> dict[str, str]:
    """As the image makes them of its variables; places and listeners are the test's."""
    given = SERVICES["kafka"]["environment"]
    settings = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in given.items()}
    ours = ("listener", "advertised", "controller", "log.dirs", "inter.")
    return {name: value for name, value in settings.items() if not name.startswith(ours)}


def dashed(words: list[str]) -> dict[str, str]:
    """`--name value` and `--name=value`."""
    text = [part for word in words for part in word.split("=", 1)]
    return {name.removeprefix("--"): value for name, value in zip(text[::2], text[1::2], strict=True)}


def postgres_settings() -> dict[str, str]:
    program, *words = SERVICES["postgres"]["command"]
    assert (program, set(words[::2])) == ("postgres", {"-c"})
    return dict(word.split("=", 1) for word in words[1::2])


@dataclass
class Stack:
    """The servers, and what to write instead of each service's name and port."""

    kafka: KafkaBroker
    redis: RedisServer
    mariadb: MariaDbServer
    postgres: PostgresServer

    def here(self, text: str) -> str:
        """A text with the services' addresses as they are here."""
        for service, port, server in (
            ("kafka", 19092, self.kafka),
            ("redis", 6379, self.redis),
            ("mariadb", 3306, self.mariadb),
            ("postgres", 5432, self.postgres),
        ):
            text = text.replace(f"{service}:{port}", f"127.0.0.1:{server.port}")
        return text


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    place = tmp_path_factory.mktemp("stack")
    with ExitStack() as opened:
        mariadb = dashed(SERVICES["mariadb"]["command"])
        yield Stack(
            opened.enter_context(KafkaBroker(place / "kafka", extra=kafka_settings())),
            opened.enter_context(RedisServer(place / "redis", extra=dashed(SERVICES["redis"]["command"][1:]))),
            opened.enter_context(MariaDbServer(place / "mariadb", flush_at_commit=2, extra=mariadb)),
            opened.enter_context(PostgresServer(place / "postgres", extra=postgres_settings())),
        )


def make_accounts(stack: Stack) -> None:
    """What the images do at their first start, and then the scripts that are mounted."""
    environment = SERVICES["mariadb"]["environment"]
    with pymysql.connect(host="127.0.0.1", port=stack.mariadb.port, user="root", password="root") as root:
        user, password = environment["MARIADB_USER"], secret("mariadb-reconciler")
        with root.cursor() as cursor:
            cursor.execute("CREATE USER %s@'%%' IDENTIFIED BY %s", (user, password))
            cursor.execute((DOCKER / "mariadb" / "rights.sql").read_text())
    script = (DOCKER / "postgres" / "rights.sql").read_text()
    read = re.search(r"^\\set password `cat /run/secrets/([\w-]+)`$", script, re.MULTILINE)
    assert read is not None
    assert read[1] in SERVICES["postgres"]["secrets"]
    statements = re.sub(r"^(\\|--).*\n", "", script, flags=re.MULTILINE).replace(":'password'", f"'{secret(read[1])}'")
    with psycopg.connect(stack.postgres.uri, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {SERVICES['postgres']['environment']['POSTGRES_DB']}")
        admin.execute(statements)


def changefeeds(stack: Stack, place: Path) -> Path:
    """The directory as the service `changefeeds` fills it, and the secrets that it names."""
    secrets, folder = place / "secrets", place / "changefeeds"
    secrets.mkdir()
    for name in SERVICES["reconciler"]["secrets"]:
        (secrets / name).write_text(stack.here(secret(name)) + "\n")
    shutil.copytree(CHANGEFEEDS, folder)
    for path in folder.iterdir():
        path.write_text(stack.here(path.read_text()).replace("/run/secrets", str(secrets)))
    return folder


def rows(stack: Stack) -> dict[str, list[Any]]:
    """The table in both targets."""
    with (
        pymysql.connect(host="127.0.0.1", port=stack.mariadb.port, user="root", password="root") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT id, v FROM d.t ORDER BY id")
        mariadb = list(cursor.fetchall())
    with psycopg.connect(stack.postgres.uri_of("shop")) as reads:
        return {"mariadb": mariadb, "postgres": reads.execute("SELECT id, v FROM d.t ORDER BY id").fetchall()}


@pytest.mark.by_turns(9)
def test_one_topic_reaches_both_databases(stack: Stack, tmp_path: Path) -> None:
    check_options(stack)
    make_accounts(stack)
    folder, (variable, token) = changefeeds(stack, tmp_path), ("RECONCILER_TOKEN", secret("reconciler-token"))
    words = SERVICES["reconciler"]["command"]
    options = [*words[words.index("--host") :]]
    del options[options.index("--port") : options.index("--port") + 2]  # the test's own
    environment = {variable: f"file:{tmp_path / 'secrets' / 'reconciler-token'}", "SPARK_LOCAL_IP": "127.0.0.1"}
    with Serving(folder, *options, env=environment) as serving:
        serving.url = serving.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        serving.client = httpx.Client(
            base_url=serving.url, headers={"Authorization": f"Bearer {token}"}, timeout=40, trust_env=False
        )
        for name in ("shop-mariadb", "shop-postgres"):  # there is no topic yet: they wait for one
            serving.until(name, "it leads", lambda status: bool(status["leads"]))
        messages = [*begun(), insert("d.t", 3, 1, id=3, v=4, s="x"), *watermarks(5)]
        produce([m._replace(topic=TOPIC) for m in messages], stack.kafka.bootstrap, partitions=3)
        for name in ("shop-mariadb", "shop-postgres"):
            serving.reached(name, at(5))
        found = rows(stack)
        assert found["mariadb"] == found["postgres"]
        assert (3, 4) in found["mariadb"]
        check_scrape(serving.url, token)
        serving.ask("POST", "/shop-postgres/pause")
        assert 'paused = ["shop-postgres"]' in (folder / "_serve.toml").read_text(), "the API may write there"
        assert serving.ended()[0] == 0


def check_scrape(url: str, token: str) -> None:
    """Prometheus's request: by the service's name, with the token of its file."""
    (scrape,) = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    headers = {"Host": scrape["static_configs"][0]["targets"][0], "Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{url}metrics", headers=headers, trust_env=False)
    assert answer.status_code == 200
    assert 'ticdc_reconciler_changefeed_state{changefeed="shop-mariadb",state="normal"} 1.0' in answer.text
    assert httpx.get(f"{url}metrics", headers={"Host": headers["Host"]}, trust_env=False).status_code == 401
    healthy = httpx.get(f"{url}healthz", trust_env=False)
    assert (healthy.status_code, healthy.json()["status"]) == (200, "ok")


def check_options(stack: Stack) -> None:
    """The servers took what their services say."""
    text = (stack.kafka.directory / "server.properties").read_text()
    assert "log.retention.hours=168\n" in text
    assert "message.max.bytes=67108864\n" in text
    assert "auto.create.topics.enable=false\n" in text
    with Redis(port=stack.redis.port) as redis:
        assert redis.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
        assert redis.config_get("save") == {"save": "300 1"}
    with psycopg.connect(stack.postgres.uri) as reads:
        assert reads.execute("SHOW wal_compression").fetchone() == ("pglz",)
