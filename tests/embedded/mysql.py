"""A real MySQL, for tests. There is a package of it in Debian's unstable release only.

The program is the one that `MYSQL_SERVER` names (a `mysqld`, MySQL's and not MariaDB's), else the one that
`tests.embedded.mysql_fetch` has unpacked into the cache. Settings are the server's own where tests do not need others:
binary log on, its sql_mode, caching_sha2_password over TLS with certificates that it makes itself, no LOAD DATA LOCAL.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.server import EmbeddedServer
from consumer.runtime.cache_dir import cache_place
from tests.embedded.mysql_family import answers, as_user, make_data

VARIABLE = "MYSQL_SERVER"
FETCHED = "mysql-server"
"""The directory in the cache in which the packages are unpacked."""
# one statement a line: the server reads it so
_ACCOUNTS = """\
CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY 'root';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
"""
_ROOT = "root"  # user and password alike: the server listens on loopback only


class MySqlServer(EmbeddedServer):
    """A server at `uri`: user and password root over TCP; the URI verifies the server by the authority that it made."""

    name: ClassVar[str] = "mysql"

    def __init__(self, directory: Path, port: int | None = None, extra: Mapping[str, str] | None = None) -> None:
        """Take `extra` as server options without their dashes; they win over ours."""
        super().__init__(directory, port)
        self._settings = {
            "bind-address": "127.0.0.1",
            "port": str(self.port),
            "socket": "mysql.sock",  # below the data directory: an absolute path may exceed what a socket's can be
            "pid-file": "mysql.pid",
            "tmpdir": str(self.directory),
            "mysqlx": "OFF",  # another port
            "secure-file-priv": "NULL",  # else a directory that the package would make
            "innodb-flush-log-at-trx-commit": "2",  # nothing is lost by a mere crash
            "sync-binlog": "0",
            **(extra or {}),
        }

    @property
    def uri(self) -> str:
        """The value of `target.uri`."""
        authority = quote(str(self._data / "ca.pem"), safe="/")
        return f"mysql://{_ROOT}:{_ROOT}@127.0.0.1:{self.port}?ssl-ca={authority}&ssl-mode=verify-ca"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _command(self) -> list[str]:
        program = [*mysql_program(), *as_user()]
        if not (self._data / "mysql").is_dir():
            self._install(program)
        accounts = self.directory / "accounts.sql"
        accounts.write_text(_ACCOUNTS)
        settings = [f"--{key}={value}" for key, value in self._settings.items()]
        return [*program, f"--datadir={self._data}", "--skip-name-resolve", f"--init-file={accounts}", *settings]

    def _install(self, program: list[str]) -> None:
        place = f"--tmpdir={self.directory}"
        make_data(self._data, "MySQL", lambda at: [*program, "--initialize-insecure", f"--datadir={at}", place])

    def _ready(self) -> bool:
        return answers(self.port, _ROOT)


def find_mysql() -> Path | None:
    """The program; None where there is none. Raises EmbeddedError if the one named is not there."""
    if named := os.environ.get(VARIABLE):
        if Path(named).is_file():
            return Path(named)
        raise EmbeddedError(
            "no MySQL server on this machine",
            detail=f"{VARIABLE} names {named}, which is not there",
            hint=f"set {VARIABLE} to the path of MySQL's program mysqld",
        )
    fetched = cache_place() / FETCHED / "usr" / "sbin" / "mysqld"
    return fetched if fetched.is_file() else None


def mysql_program() -> list[str]:
    """The command that runs the program, without a file of settings. Raises EmbeddedError if there is none."""
    found = find_mysql()
    if found is None:
        raise EmbeddedError(
            "no MySQL server on this machine",
            detail=f"{VARIABLE} is not set, and none was fetched",
            hint=f"./dev mysql fetches one; or set {VARIABLE} to the path of MySQL's program mysqld",
        )
    if VARIABLE in os.environ:
        return [str(found), "--no-defaults"]
    return command_of(found.parents[2])


def command_of(root: Path) -> list[str]:
    """How the program runs that is unpacked below a directory, beside the libraries of its own release."""
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    loader = next(libraries.glob("ld-linux-*.so.*"))
    share = root / "usr" / "share" / "mysql"
    return [
        *(str(loader), "--library-path", str(libraries), str(root / "usr" / "sbin" / "mysqld"), "--no-defaults"),
        *(f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"),
        f"--plugin-dir={root / 'usr' / 'lib' / 'mysql' / 'plugin'}",
    ]
