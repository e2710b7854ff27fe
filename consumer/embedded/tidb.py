"""A real TiDB in one process, with storage of its own: for tests. There is no package of it that could be fetched.

The program is the one that `TIDB_SERVER` names (also packed as .xz), else `tidb-server` on the PATH. It is unpacked
once into the cache, under the packed file's size and time.
"""

import lzma
import os
import shutil
from pathlib import Path
from typing import ClassVar

import pymysql

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.paths import cache_directory
from consumer.embedded.server import EmbeddedServer
from consumer.locks import file_lock

VARIABLE = "TIDB_SERVER"


class TidbServer(EmbeddedServer):
    """A server at `uri`: user root without a password, as TiDB comes; `config` is its TOML file's content."""

    name: ClassVar[str] = "tidb"

    def __init__(self, directory: Path, port: int | None = None, config: str = "") -> None:
        super().__init__(directory, port)
        self._status = self._lease()
        self._config = config

    @property
    def uri(self) -> str:
        """The value of `target.uri`."""
        return f"tidb://root@127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        config = self.directory / "tidb.toml"
        config.write_text(self._config)
        return [
            *(str(tidb_program()), "-store", "unistore", "-path", str(self.directory / "data"), "-config", str(config)),
            *("-host", "127.0.0.1", "-P", str(self.port), "-status", str(self._status), "-L", "warn"),
            *("-socket", "", "-temp-dir", str(self.directory / "temp")),
            # without files of their own, records of memory and slow queries would lie in our current directory
            *("-log-file", str(self.log), "-log-slow-query", str(self.directory / "slow.log")),
        ]

    def _ready(self) -> bool:
        try:
            pymysql.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=5).close()
        except pymysql.err.OperationalError:  # not listening yet: asked again until the start's limit
            return False
        return True


def tidb_program() -> Path:
    """The program to run. Raises EmbeddedError if there is none."""
    named = os.environ.get(VARIABLE) or shutil.which("tidb-server")
    if not named or not Path(named).is_file():
        raise EmbeddedError(
            "no TiDB server on this machine",
            detail=f"{VARIABLE} names none that is there, and tidb-server is not on the PATH",
            hint=f"set {VARIABLE} to the path of a tidb-server program, or of one packed as .xz",
        )
    return _unpacked(Path(named)) if named.endswith(".xz") else Path(named)


def _unpacked(packed: Path) -> Path:
    told = packed.stat()
    program = cache_directory() / f"tidb-server-{told.st_size}-{told.st_mtime_ns}"
    with file_lock(program.with_name(f"{program.name}.lock")):
        if not program.exists():
            unfinished = program.with_name(f"{program.name}.unfinished")
            with lzma.open(packed) as source, unfinished.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            unfinished.chmod(0o755)
            unfinished.rename(program)
    return program
