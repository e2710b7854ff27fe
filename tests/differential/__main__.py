"""See the package's docstring. Exit code 1 if a target differed from upstream, or stopped."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pymysql

from consumer import logs
from consumer.demo.upstream.changefeed import Message
from consumer.demo.upstream.produce import vector_messages
from consumer.embedded import TidbServer
from ordering.errors import ReconcilerError
from tests.differential.playing import played
from tests.differential.shrinking import smallest
from tests.differential.writing import Script
from tests.histories.__main__ import Targets, recorded
from tests.service.cells import Oracle

Recording = tuple[list[Message], Oracle]
"""Messages, and what upstream holds after them."""


@dataclass(slots=True)
class Trial:
    """Scripts against one kind of target in one consistency."""

    place: Path
    recorder: str
    kind: str
    consistency: str
    targets: Targets

    def wrong(self, statements: Sequence[str]) -> list[str]:
        """What is wrong after a script, a line each; nothing for one that upstream does not take."""
        found = record(statements, self.place, self.recorder)
        return [] if found is None else self.played(*found)

    def played(self, messages: list[Message], upstream: Oracle) -> list[str]:
        """What is wrong after a recording."""
        for _, uri, cells in self.targets.fresh():
            try:
                return played(messages, upstream, uri, cells, self.place, self.consistency)
            except ReconcilerError as error:
                return [f"stopped: {error}"]
        return []

    def told(self, seed: int, statements: Sequence[str], recording: Recording, keep: Path | None) -> bool:
        """Whether something is wrong; then it is printed with the smallest script that shows it."""
        if not (lines := self.played(*recording)):
            return False
        silent = not lines[0].startswith("stopped")
        small = smallest(statements, lambda some: _is_like(self.wrong(some), silent=silent))
        text = "".join(f"{statement};\n" for statement in small)
        what = "SILENT" if silent else "STOPS"
        print(
            f"== seed {seed} {self.kind} {self.consistency} {what}: {'; '.join(self.wrong(small))[:600]}\n{text}",
            flush=True,
        )
        if keep is not None:
            keep.mkdir(exist_ok=True)
            (keep / f"{what.lower()}-{self.kind}-{seed}.sql").write_text(text)
        return True


def record(statements: Sequence[str], place: Path, recorder: str) -> Recording | None:
    """The messages of a script and what upstream holds then; None for one that upstream does not take."""
    script = place / "script.sql"
    script.write_text("".join(f"{statement};\n" for statement in statements))
    try:
        out, dump = recorded(script, recorder)
    except ReconcilerError:
        return None
    return list(vector_messages(out)), json.loads(dump.read_text())


def _is_like(lines: list[str], *, silent: bool) -> bool:
    """Whether it is wrong in the same way: other cells, or a stop."""
    return bool(lines) and silent != lines[0].startswith("stopped")


def main() -> int:
    """Run as many scripts as asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--recorder", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--targets", default="sqlite,mariadb,postgres,tidb")
    parser.add_argument("--consistencies", default="snapshot,transaction,row")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    logs.set_up(json=False, verbose=False)
    wrong = scripts = 0
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
        place.chmod(0o755)
        (place / "upstream").mkdir()
        address = urlsplit(stack.enter_context(TidbServer(place / "upstream")).uri)
        connection = pymysql.connect(host=address.hostname, port=address.port, user="root", autocommit=True)
        trials = _trials(place, asked, stack)
        for seed in range(asked.seed, asked.seed + asked.count):
            statements = Script(seed, connection.cursor()).written()
            recording = record(statements, place, asked.recorder)
            if recording is None:
                continue
            scripts += 1
            # by turns, for which consistency it is decides about rows and hardly about DDL
            for at in range(len(trials)):
                wrong += trials[at][seed % len(trials[at])].told(seed, statements, recording, asked.keep)
    print(f"{scripts} scripts, {wrong} times another result than upstream")
    return 1 if wrong else 0


def _trials(place: Path, asked: argparse.Namespace, stack: ExitStack) -> list[list[Trial]]:
    """Of each target one in each consistency."""
    found = []
    for kind in asked.targets.split(","):
        own = place / f"of-{kind}"
        own.mkdir()
        targets = Targets([kind], own, stack)
        found.append([Trial(own, asked.recorder, kind, c, targets) for c in asked.consistencies.split(",")])
    return found


if __name__ == "__main__":
    sys.exit(main())
