"""No secret of a run's config lies where others can see it: not in `ps`, logs, Spark's files, Redis or the target."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis as redis_client

from consumer.embedded import RedisServer
from tests.service.lab import DEADLINE_S, Feed, eventually, reconciler, recorded, toml_of
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]
SECRETS = {
    "TARGET_SECRET": "t4rget-hidden-aa",
    "SPARK_SECRET": "sp4rk-hidden-bb",
    "KAFKA_SECRET": "k4fka-hidden-cc",
    "REDIS_SECRET": "r3dis-hidden-dd",
}
IN_VARIABLES = ("TARGET_SECRET", "SPARK_SECRET")
"""The others are in files, or in the second test only."""
VALUES = [value.encode() for value in SECRETS.values()]


@pytest.fixture
def guarded(postgres_feed: Feed, tmp_path: Path) -> Iterator[Feed]:
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
            spark={"spark.hadoop.fs.s3a.secret.key": "${SPARK_SECRET}"},
        )
    with psycopg.connect(uri, autocommit=True) as root:
        root.execute(f"DROP OWNED BY {user} CASCADE; DROP ROLE {user}".encode())


class Watch:
    """Looks at the command lines of a process and its children, and at the children's environments, all the time."""

    def __init__(self, pid: int) -> None:
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
        for kind in ("cmdline", "environ") if inherited else ("cmdline",):
            try:
                content = Path(f"/proc/{process.pid}/{kind}").read_bytes()
                self.seen.add(f"{process.name()} {kind}")
            except (OSError, psutil.Error):  # gone between two looks
                continue
            self.found |= {f"{process.name()} {kind}: {value.decode()}" for value in VALUES if value in content}

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def files_with_secrets(place: Path) -> list[str]:
    found = []
    for path in place.rglob("*"):
        try:
            if path.is_file() and any(value in path.read_bytes() for value in VALUES):
                found.append(str(path))
        except OSError:  # Spark removes its files while we look
            continue
    return found


def test_a_run_shows_no_secret(guarded: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, scratch = guarded, tmp_path / "scratch"
    scratch.mkdir()
    for name in IN_VARIABLES:
        monkeypatch.setenv(name, SECRETS[name])
    monkeypatch.setenv("TMPDIR", str(scratch))
    feed.with_(limits={"window-rows": 1_000})
    feed.send(begun())
    with feed.running() as process:
        watch = Watch(process.pid)
        eventually("the first rows", lambda: feed.reached(at(3)))
        rows = [insert("d.t", 4, number % 3, id=number, v=1, s="x") for number in range(10, 30_000)]
        feed.send([*rows, *watermarks(4)])
        eventually("many rows, written by tasks", lambda: feed.reached(at(4)), 2 * DEADLINE_S)
        assert files_with_secrets(scratch) == []
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
    shown = b"".join([feed.log().encode(), progress, status, *contents])
    assert [value for value in VALUES if value in shown] == []


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
