"""A snapshot of each side, and who reads it.

The target's transaction reads C and the rows together, so it does not matter that the target moves on. Where several
connections can't share a snapshot (MySQL, MariaDB), each begins its own, until all of them have read one C. A window
that tasks are half through with (`row` consistency) is no state of the upstream: its end is waited for.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from consumer.config.model import Config
from consumer.wiring import target_of
from ordering.errors import (
    ConfigError,
    InputError,
    ReconcilerError,
    SourceError,
    SourceUnreachableError,
    TargetBusyError,
    TargetError,
    TargetUnreachableError,
)
from ordering.timestamps import utc_text
from sinks.bookkeeping.progress_rows import Stored
from sinks.compare.digests import TableReader
from sinks.registry import open_target
from sinks.rows.schema import Catalog
from sinks.rows.values import ValueRules
from sinks.target import Target
from sinks.uri import split_uri

_COLLECTED = {8055, 9006}
"""TiDB: a snapshot is older than what garbage collection has left."""
_CHANGED = 1412
"""MySQL: a table was changed since the snapshot."""
_WAIT_S = 60.0
_LOOK_S = 0.1
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Side:
    """Readers of one snapshot. `title`: what errors call it; `checkpoint`: C, if it is an upstream's.

    `called`: its name in reports, where its place says nothing.
    """

    title: str
    make: Callable[[], Target]
    checkpoint: int = 0
    is_upstream: bool = False
    called: str = ""
    targets: list[Target] = field(default_factory=list)
    readers: list[TableReader] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The server's place, or what it is called."""
        return self.called or self.targets[0].name

    def open(self, count: int, snapshot: str = "") -> None:
        """Begin to read with so many readers, or with one where more are of no use."""
        self.ask(lambda: self._begin(count, snapshot))

    def _begin(self, count: int, snapshot: str) -> None:
        while len(self.readers) < (count if not self.readers or self.readers[0].several else 1):
            self.targets.append(self.make())
            self.readers.append(self.targets[-1].reader())
        shared = self.readers[0].begin(snapshot)
        for reader in self.readers[1:]:
            reader.begin(shared)

    def catalog(self) -> Catalog:
        """The tables of the snapshot."""
        return self.targets[0].by_upstream(self.ask(self.readers[0].catalog))

    def ask(self, call: Callable[[], Answer]) -> Answer:
        """Call; an error of an upstream says that it is the upstream's. Raises ReconcilerError."""
        try:
            return call()
        except TargetError as error:
            raise self._told(error) from error

    def _told(self, error: TargetError) -> ReconcilerError:
        code = _code(error)
        if code == _CHANGED:
            hint = "a DDL was executed meanwhile: run it again"
            return TargetError(
                f"a table of the {self.title} was changed while it was read", where=error.where, hint=hint
            )
        if not self.is_upstream:
            return error
        fact = error.fact.replace("the target", "the upstream", 1)
        if code in _COLLECTED:
            return InputError(
                f"the upstream has garbage-collected what it held at checkpoint {self.checkpoint}"
                f" ({utc_text(self.checkpoint)} UTC)",
                where=f"upstream {error.where}",
                hint="verify soon after a run, or raise tidb_gc_life_time upstream for as long as it takes"
                " (SET GLOBAL tidb_gc_life_time = '24h'); --replay needs no upstream",
            )
        kind = SourceUnreachableError if isinstance(error, TargetUnreachableError) else SourceError
        return kind(fact, where=f"upstream {error.where}", hint=error.hint.replace("target.uri", "source.upstream.uri"))

    def close(self) -> None:
        """Close every connection."""
        for target in self.targets:
            target.close()
        self.targets, self.readers = [], []


def _code(error: TargetError) -> int:
    """The number that a MySQL-family server gave its error."""
    cause: Any = error.__cause__
    first = cause.args[0] if cause is not None and cause.args else 0
    return first if isinstance(first, int) else 0


def open_target_side(config: Config, readers: int) -> tuple[Side, Stored | None]:
    """The target's snapshot, and the progress that lies in it; None if the changefeed has not run yet.

    Raises TargetBusyError where the target does not come to rest.
    """
    side = Side("target", lambda: target_of(config))
    until, wait = time.monotonic() + _WAIT_S, threading.Event()
    while True:
        side.open(readers)
        stored = [target.stored(config.changefeed) for target in side.targets]
        progress = [None if one is None else one.progress for one in stored]
        if all(one == progress[0] for one in progress) and (progress[0] is None or progress[0].window is None):
            return side, stored[0]
        if time.monotonic() > until:
            name = side.name
            side.close()
            hint = "a window is half written: let `reconciler run` finish it, then verify; or use --threads 1"
            raise TargetBusyError(f"the target did not come to rest within {_WAIT_S:.0f} s", where=name, hint=hint)
        wait.wait(_LOOK_S)


def open_upstream_side(uri: str, checkpoint: int, readers: int) -> Side:
    """A TiDB as it was at C. Raises SourceError, InputError."""
    if split_uri(uri, "--upstream").scheme != "tidb":
        hint = "--upstream names a TiDB, tidb://USER:PASSWORD@HOST:4000; --against compares with any database at rest"
        raise ConfigError("an upstream has to be a TiDB: others can't show what they held at C", hint=hint)
    return _opened(uri, "upstream", readers, checkpoint)


def open_other_side(uri: str, readers: int) -> Side:
    """Any database as it is now, for which nobody writes meanwhile."""
    return _opened(uri, "other side", readers, 0)


def _opened(uri: str, title: str, readers: int, checkpoint: int) -> Side:
    side = Side(title, lambda: open_target(uri, ValueRules()), checkpoint, is_upstream=True)
    side.open(readers, str(checkpoint) if checkpoint else "")
    return side
