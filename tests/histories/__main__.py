"""See the package's docstring. Exit code 1 if a target differed from upstream, or refused."""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pymysql

from consumer.demo.fake_ticdc.producer import vector_messages
from consumer.runtime import logs
from ordering.errors import ReconcilerError
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.histories.crossing import DATABASES, CrossingWriter
from tests.histories.keys import KeysWriter
from tests.histories.playing import WINDOWS, played
from tests.histories.writing import Writer
from tests.service.cells import Cells, MariaDbCells, SqliteCells
from tests.service.postgres_cells import PostgresCells

_SINK = "kafka://127.0.0.1:9092/ticdc?protocol=canal-json&enable-tidb-extension=true&partition-num=3"


class Targets:
    """Servers, and databases of their own for each history."""

    def __init__(self, kinds: list[str], place: Path, stack: ExitStack) -> None:
        self._kinds, self._place, self._stack = kinds, place, stack
        self._servers: dict[str, MariaDbServer | TidbServer] = {}
        if "mariadb" in kinds:
            mariadb = MariaDbServer(self._directory("mariadb"), flush_at_commit=2)
            self._servers["mariadb"] = stack.enter_context(mariadb)
        if "tidb" in kinds:
            self._servers["tidb"] = stack.enter_context(TidbServer(self._directory("target")))
        if "postgres" in kinds:
            self._postgres = stack.enter_context(PostgresServer(self._directory("postgres")))

    def _directory(self, name: str) -> Path:
        made = self._place / name
        made.mkdir()
        return made

    def fresh(self) -> Iterator[tuple[str, str, Cells]]:
        """Kind, URI and reader of each target, empty."""
        for kind in self._kinds:
            if kind == "sqlite":
                directory = self._place / f"sqlite-{uuid4().hex[:8]}"
                yield kind, f"sqlite:///{directory}", SqliteCells(directory)
            elif kind in self._servers:
                uri = self._servers[kind].uri
                with closing(MariaDbCells(uri)) as cells:
                    cells.drop({"ha", "hb", "k", *DATABASES} & cells.databases())
                    yield kind, uri, cells
            else:
                name = f"h{uuid4().hex[:8]}"
                with psycopg.connect(self._postgres.uri, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
                with closing(PostgresCells(self._postgres.uri_of(name))) as reader:
                    yield kind, self._postgres.uri_of(name), reader


def recorded(script: Path, recorder: str) -> tuple[Path, Path]:
    """The messages and the final state of a script."""
    out, dump = script.with_suffix(".jsonl"), script.with_suffix(".final.json")
    command = [recorder, "-script", str(script), "-out", str(out), "-dump", str(dump), "-sink-uri", _SINK]
    done = subprocess.run([*command, "-no-watermark-before-ddl"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReconcilerError(f"the recorder failed: {done.stderr[:500]}", where=str(script))
    return out, dump


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories")
    parser.add_argument("--recorder", required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--statements", type=int, default=80)
    parser.add_argument("--targets", default="sqlite,mariadb,postgres,tidb")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--keys", action="store_true", help="histories about keys (tests.histories.keys)")
    parser.add_argument("--crossing", action="store_true", help="of tables that take each other's names")
    told = parser.parse_args()
    logs.set_up(json=False, verbose=False)
    failed = 0
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="histories-")))
        place.chmod(0o755)
        tidb = stack.enter_context(TidbServer(_made(place / "tidb")))
        address = urlsplit(tidb.uri)
        connection = pymysql.connect(host=address.hostname, port=address.port, user="root", autocommit=True)
        targets = Targets(told.targets.split(","), place, stack)
        for seed in range(told.first, told.first + told.count):
            script = place / f"history-{seed}.sql"
            writer = CrossingWriter(seed) if told.crossing else KeysWriter(seed) if told.keys else None
            script.write_text((writer or Writer(seed, connection.cursor())).written(told.statements))
            failed += _one(seed, script, told.recorder, targets)
            if told.keep:
                _keep(script, told.keep)
    return 1 if failed else 0


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _one(seed: int, script: Path, recorder: str, targets: Targets) -> int:
    """Play one history into each target; how many went wrong."""
    try:
        out, dump = recorded(script, recorder)
    except ReconcilerError as error:
        print(f"seed {seed}: {error}", flush=True)
        return 0
    upstream, wrong = json.loads(dump.read_text()), 0
    for kind, uri, cells in targets.fresh():
        try:
            messages = list(vector_messages(out))
            lines = played(messages, upstream, uri, cells, script.parent, window_rows=WINDOWS[seed % 4], seed=seed)
        except ReconcilerError as error:
            lines = [str(error)]
        wrong += bool(lines)
        print(f"seed {seed} {kind}: {'; '.join(lines)[:900] or 'as upstream'}", flush=True)
    return wrong


def _keep(script: Path, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    (directory / script.name).write_text(script.read_text())
    for made in script.parent.glob(f"{script.stem}.*json*"):
        packed = made.suffix == ".jsonl"
        goal = directory / (f"{made.name}.gz" if packed else made.name)
        goal.write_bytes(gzip.compress(made.read_bytes(), mtime=0) if packed else made.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
