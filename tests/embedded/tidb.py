"""A real TiDB in one process, with storage of its own: for tests. There is no package of it that could be fetched.

The program is the one that `TIDB_SERVER` names (also packed as .xz), else `tidb-server` on the PATH, else the one that
`tests.embedded.tidb_build` has built. A packed one is unpacked once into the cache, under its size and time.
"""

import lzma
import os
import shutil
from pathlib import Path
from typing import ClassVar

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.server import EmbeddedServer
from consumer.runtime.cache_dir import cache_directory, cache_place
from consumer.runtime.file_locks import file_lock
from tests.embedded.mysql_family import answers

VARIABLE = "TIDB_SERVER"
VERSION = "v1.1.0-beta.0.20260205093021-1eb3d0a8c7a9"
"""The version of the Go module github.com/pingcap/tidb that is built where no program is given."""
BUILT = f"tidb-server-{VERSION}"
"""Its name in the cache."""


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
        return answers(self.port)


def find_tidb() -> Path | None:
    """The program, perhaps packed; None where there is none. Raises EmbeddedError if the one named is not there."""
    if named := os.environ.get(VARIABLE):
        if Path(named).is_file():
            return Path(named)
        raise EmbeddedError(
            "no TiDB server on this machine",
            detail=f"{VARIABLE} names {named}, which is not there",
            hint=f"set {VARIABLE} to the path of a tidb-server program, or of one packed as .xz",
        )
    found = shutil.which("tidb-server")
    built = cache_place() / BUILT
    return Path(found) if found else built if built.is_file() else None


def tidb_program() -> Path:
    """The program to run. Raises EmbeddedError if there is none."""
    found = find_tidb()
    if found is None:
        raise EmbeddedError(
            "no TiDB server on this machine",
            detail=f"{VARIABLE} is not set, tidb-server is not on the PATH, and none was built",
            hint=f"./dev tidb builds one; or set {VARIABLE} to the path of a tidb-server program",
        )
    return _unpacked(found) if found.suffix == ".xz" else found


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
