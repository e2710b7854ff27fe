"""See the package's docstring. Exit code 1 if there was a finding."""

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import structlog

from tests.embedded import MariaDbServer, MySqlServer, PostgresServer, TidbServer
from tests.matrix.kinds import KINDS
from tests.matrix.playing import Readable, Result, play, random_case
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.postgres_cells import PostgresCells

TARGETS = ("sqlite", "mariadb", "mysql", "tidb", "postgres")
Opened = tuple[str, Readable]


class Servers:
    """Started when first asked for, and ended together."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self._place, self._stack = place, stack
        self._uris: dict[str, str] = {}
        self._databases: list[str] = []

    @contextmanager
    def fresh(self, target: str) -> Iterator[Opened]:
        """URI and reader; what a case leaves behind is dropped."""
        if target == "sqlite":
            directory = self._place / uuid4().hex
            yield f"sqlite:///{directory}", SqliteCells(directory)
            return
        uri = self._uri(target)
        cells = PostgresCells(uri) if target == "postgres" else MariaDbCells(uri)
        yield uri, cells
        cells.drop(name for name in cells.databases() if name.startswith("m") and len(name) == len("m12345678"))
        cells.close()

    def _uri(self, target: str) -> str:
        if target not in self._uris:
            directory = self._place / target
            directory.mkdir()
            starts = {
                "mariadb": lambda: MariaDbServer(directory, flush_at_commit=2),
                "mysql": lambda: MySqlServer(directory, extra={"local-infile": "1"}),
                "tidb": lambda: TidbServer(directory),
                "postgres": lambda: PostgresServer(directory),
            }
            server = self._stack.enter_context(starts[target]())
            self._uris[target] = server.uri
            if target == "postgres":
                cells = PostgresCells(server.uri)
                cells.query("CREATE EXTENSION IF NOT EXISTS citext")
                cells.close()
        return self._uris[target]


def results(options: argparse.Namespace, servers: Servers, place: Path) -> Iterator[Result]:
    """Play so many cases on each target."""
    kinds = options.kinds.split(",") if options.kinds else sorted(KINDS)
    for target in options.targets.split(","):
        chance = random.Random(f"{options.seed} {target}")
        for _ in range(options.count):
            case = random_case(target, chance, kinds)
            with servers.fresh(target) as (uri, cells):
                try:
                    yield play(case, uri, cells, place)
                except Exception as error:  # noqa: BLE001 a crash is a finding of this case, and no reason to stop
                    yield Result(case, wrong=f"{type(error).__name__}: {error}")


def main() -> int:
    """Play, and print findings, refusals by form, and a line per target."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="cases per target")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--kinds", default="", help="only these types, by their names in kinds.py")
    parser.add_argument("--refusals", action="store_true", help="print what was refused, too")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    played, wrong, refused = Counter[str](), Counter[str](), Counter[tuple[str, str, str, str]]()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        servers = Servers(Path(directory), stack)
        for found in results(options, servers, Path(directory)):
            case = found.case
            played[case.target] += 1
            if found.wrong:
                wrong[case.target] += 1
                print(f"FINDING {case}: {found.wrong[:900]}", flush=True)
            if found.refused:
                refused[case.target, case.kind, case.form.column, found.refused.split(";")[0][:150]] += 1
    if options.refusals:
        for key, number in sorted(refused.items()):
            print(f"refused {number} times: {' | '.join(key)}")
    for target, number in played.items():
        turned = sum(times for key, times in refused.items() if key[0] == target)
        print(f"{target}: {number} cases, {turned} refused, {wrong[target]} findings")
    print(f"seed {options.seed}, {time.monotonic() - begun:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
