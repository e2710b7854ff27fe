"""No secret of a run's config lies where others can see it: not in `ps`, logs, Spark's files, Redis or the target."""

import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
import redis as redis_client

from consumer.embedded import RedisServer
from consumer.embedded.ports import PortLease, lease_port
from tests.live_files import files_below
from tests.service.lab import DEADLINE_S, Feed, eventually, reconciler, recorded, toml_of
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]
SECRETS = {
    "TARGET_SECRET": "t4rget-hidden-aa",
    "SPARK_SECRET": "sp4rk-hidden-bb",
    "KAFKA_SECRET": "k4fka-hidden-cc",
    "REDIS_SECRET": "r3dis-hidden-dd",
    "AZURE_SECRET": "4zure-hidden-ee",
    "SAS_SECRET": "s4s-hidden-ff",
    "GOOGLE_SECRET": "g00gle-hidden-gg",
    "UPSTREAM_SECRET": "upstre4m-hidden-hh",
    "STORE_SECRET": "st0re-hidden-ii",
}
IN_VARIABLES = tuple(SECRETS.keys() - {"KAFKA_SECRET", "REDIS_SECRET"})
"""The others are in files, or in the second test only."""
VALUES = [value.encode() for value in SECRETS.values()]


@pytest.fixture
def ui() -> Iterator[PortLease]:
    """Where Spark's own pages are."""
    found = lease_port()
    yield found
    found.release()


@pytest.fixture
def guarded(postgres_feed: Feed, tmp_path: Path, ui: PortLease) -> Iterator[Feed]:
    """A changefeed into PostgreSQL whose every password comes from a variable or a file; Redis asks for one too."""
    user = f"hidden_{os.getpid()}"
    uri = postgres_feed.uri
    with psycopg.connect(uri, autocommit=True) as root:
        root.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{SECRETS['TARGET_SECRET']}'".encode())
    (tmp_path / "redis.secret").write_text(SECRETS["REDIS_SECRET"])
    with RedisServer(tmp_path / "redis") as server:
        with redis_client.Redis(port=server.port) as client:
            client.execute_command("ACL", "SETUSER", "hidden", "on", f">{SECRETS['REDIS_SECRET']}", "~*", "+@all")
        (tmp_path / "redis.uri").write_text(f"redis://hidden:{SECRETS['REDIS_SECRET']}@127.0.0.1:{server.port}/0")
        postgres_feed.redis_port = server.port  # type: ignore[attr-defined]
        yield postgres_feed.with_(
            target={"uri": uri.replace("postgres:postgres@", f"{user}:${{TARGET_SECRET}}@"), "consistency": "row"},
            redis={"uri": f"file:{tmp_path / 'redis.uri'}"},
            spark={
                "spark.hadoop.fs.s3a.secret.key": "${SPARK_SECRET}",
                "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net": "${AZURE_SECRET}",
                "spark.hadoop.fs.azure.sas.box.acc.blob.core.windows.net": "${SAS_SECRET}",
                "spark.hadoop.fs.gs.auth.service.account.private.key": "${GOOGLE_SECRET}",
                "spark.ui.enabled": "true",
                "spark.ui.port": str(ui.port),
            },
            **{
                "source.upstream": {"uri": "tidb://u:${UPSTREAM_SECRET}@127.0.0.1:1"},
                "source.claim-check": {"locations": ["s3://box/of-rows"]},
                "source.claim-check.options": {
                    "access-key-id": "us",
                    "secret-access-key": "${STORE_SECRET}",
                    "region": "eu",
                },
            },
        )
    with psycopg.connect(uri, autocommit=True) as root:
        root.execute(f"DROP OWNED BY {user} CASCADE; DROP ROLE {user}".encode())


class Watch:
    """Looks at the command lines of a process and its children, and at the children's environments, all the time.

    Our own program's environment is what it was started with; others of the machine can't read it.
    """

    def __init__(self, pid: int, values: Collection[bytes]) -> None:
        self._values = values
        self.found: set[str] = set()
        self.seen: set[str] = set()
        self._parent, self._ended = psutil.Process(pid), threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            try:
                family = [(self._parent, False), *((p, True) for p in self._parent.children(recursive=True))]
            except psutil.Error:  # it has ended
                return
            for process, inherited in family:
                self._read(process, inherited=inherited)

    def _read(self, process: psutil.Process, *, inherited: bool) -> None:
        try:
            name, command = process.name(), self._of(process.pid, "cmdline")
            environment = self._of(process.pid, "environ") if inherited else b""
            begins = inherited and command == self._of(self._parent.pid, "cmdline")
        except (OSError, psutil.Error):  # gone between two looks
            return
        self._note(f"{name} cmdline", command)
        if inherited and not begins:  # until a child runs its own program, its environment is its parent's
            self._note(f"{name} environ", environment)

    def _note(self, place: str, content: bytes) -> None:
        self.seen.add(place)
        self.found |= {f"{place}: {value.decode()}" for value in self._values if value in content}

    @staticmethod
    def _of(pid: int, kind: str) -> bytes:
        return Path(f"/proc/{pid}/{kind}").read_bytes()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def files_with_secrets(place: Path, values: Collection[bytes]) -> list[str]:
    found = []
    for path in files_below(place):
        try:
            if path.is_file() and any(value in path.read_bytes() for value in values):
                found.append(str(path))
        except OSError:  # Spark removes its files while we look
            continue
    return found


def pages_of_spark(port: int) -> bytes:
    """All that Spark's pages show, and its API for programs."""
    settings = {
        "base_url": f"http://127.0.0.1:{port}",
        "follow_redirects": True,
        "trust_env": False,
        "timeout": DEADLINE_S,
    }
    with httpx.Client(**settings) as client:  # type: ignore[arg-type]
        (app,) = (one["id"] for one in client.get("/api/v1/applications").json())
        pages = ["jobs", "stages", "environment", "executors"]
        paths = [f"/{name}/" for name in pages] + [f"/api/v1/applications/{app}/{name}" for name in pages]
        return b"".join(client.get(path).raise_for_status().content for path in paths)


@pytest.mark.by_turns
def test_a_run_shows_no_secret(guarded: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ui: PortLease) -> None:
    feed, scratch = guarded, tmp_path / "scratch"
    scratch.mkdir()
    for name in IN_VARIABLES:
        monkeypatch.setenv(name, SECRETS[name])
    monkeypatch.setenv("TMPDIR", str(scratch))
    feed.with_(limits={"window-rows": 1_000})
    feed.send(begun())
    with feed.running() as process:
        watch = Watch(process.pid, VALUES)
        eventually("the first rows", lambda: feed.reached(at(3)))
        rows = [insert("d.t", 4, number % 3, id=number, v=1, s="x") for number in range(10, 30_000)]
        feed.send([*rows, *watermarks(4)])
        eventually("many rows, written by tasks", lambda: feed.reached(at(4)), 2 * DEADLINE_S)
        assert files_with_secrets(scratch, VALUES) == []
        pages = pages_of_spark(ui.port)
        watch.end()
    assert watch.found == set()
    assert {"java cmdline", "java environ"} <= watch.seen
    assert sum("python" in name for name in watch.seen) >= 2
    with redis_client.Redis(port=feed.redis_port) as client:  # type: ignore[attr-defined]
        contents = [client.dump(key) or b"" for key in client.scan_iter()]
        assert contents
    progress = repr(feed.cells.progress(feed.name)).encode()
    status = feed.command("status", str(feed.file()), "--json").stdout.encode()
    assert b"checkpoint" in progress
    assert b"checkpoint" in status
    assert b"fs.azure.account.key.acc" in pages
    shown = b"".join([feed.log().encode(), progress, status, pages, *contents])
    assert [value for value in VALUES if value in shown] == []


@pytest.mark.by_turns(9)
def test_wrong_secrets_are_not_shown_either(guarded: Feed, tmp_path: Path) -> None:
    """Everything refuses us, and all is logged: the password stays out of it."""
    feed = guarded
    feed.send(recorded("iv.index-value.raw"))
    wrong = {name: f"{value}-wr0ng" for name, value in SECRETS.items()}
    text = (tmp_path / "redis.uri").read_text().replace(SECRETS["REDIS_SECRET"], wrong["REDIS_SECRET"])
    (tmp_path / "redis.uri").write_text(text)
    values = feed.values()
    values["source.kafka"] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "${KAFKA_SECRET}",
    }
    (tmp_path / "wrong.toml").write_text(toml_of(values))
    for words in (["check"], ["run", "--once"]):
        done = reconciler("--verbose", words[0], str(tmp_path / "wrong.toml"), *words[1:], **wrong)
        said = done.stdout + done.stderr
        assert done.returncode in (0, 3, 4), said
        assert "Traceback" not in said
        assert [value for value in SECRETS.values() if value in said] == []
