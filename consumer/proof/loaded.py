"""What a load leaves to the first proof: sums of the rows as the dump holds them, so that it compares.

A writer of a file takes the sums of what it has read, not of what the target makes of it, and keeps them where it keeps
how far the file has got. Once all files are in the target, their sums are what each table has to hold at the dump's
TSO.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import orjson

from consumer.config.model import Config
from consumer.proof.ddls import settled
from consumer.proof.present import SumRules
from consumer.proof.report import ProofVerdict
from consumer.proof.state import ExpectedTable, ProofState, TableJudgement
from ordering.events import TableName
from ordering.progress import Progress
from ordering.rows.content_sums import ContentSums, added, as_lists, from_lists
from sinks.bookkeeping.ddl_log import KEPT
from sinks.bookkeeping.load_files import Loaded
from sinks.compare.canonical import CanonicalRows
from sinks.target import Target

NOT_TAKEN = "the load has not taken the sums of all its rows"
ROUNDED = "the dump holds FLOATs with an exponent, of which it tells six digits: they may be others upstream"
_ROUNDED = "rounded"
"""In the place of a file's sums."""


class FileSums:
    """The sums of a file's rows, up to where it has got."""

    def __init__(self, rows: CanonicalRows, done: Loaded) -> None:
        self._rows = rows
        self._sums = sums_in(done)
        self._is_rounded = done.sums == _ROUNDED

    def add(self, columns: Mapping[str, Sequence[str | None]], *, is_rounded: bool = False) -> None:
        """Add rows, told by columns as messages would; what has no sums makes the file have none.

        `is_rounded`: what upstream holds may be other values, so what events take away later is not what is added here.
        """
        self._is_rounded |= is_rounded
        if self._sums is not None:
            try:
                self._sums = None if is_rounded else added(self._sums, self._rows.sums(columns))
            except (KeyError, ValueError):
                self._sums = None

    @property
    def kept(self) -> str:
        """As `Loaded.sums`."""
        none = _ROUNDED if self._is_rounded else ""
        return none if self._sums is None else orjson.dumps(as_lists(self._sums)).decode()


def sums_in(done: Loaded) -> ContentSums | None:
    """The sums of the rows so far; None where they were not taken."""
    if not done.sums or done.sums == _ROUNDED:
        return None if done.rows else {}
    return from_lists(orjson.loads(done.sums))


def keep_base(config: Config, target: Target, progress: Progress, files: Mapping[TableName, Iterable[Loaded]]) -> None:
    """Keep what each of these tables has to hold at the beginning of a changefeed, as the files of a load say.

    `progress`: as it is going to be. It may be kept again. Raises TargetError.
    """
    catalog, reader = target.catalog(), target.reader()
    tables: dict[TableName, ExpectedTable] = {}
    judged: dict[TableName, TableJudgement] = {}
    at, now = int(progress.checkpoint_ts), datetime.now(UTC).isoformat(timespec="seconds")
    for name, loaded in files.items():
        schema = catalog.get(catalog.spelled(name))
        if schema is None:
            continue
        some = list(loaded)
        sums = _together(some)
        if sums is None:
            doubt = ROUNDED if any(one.sums == _ROUNDED for one in some) else ""
            why = doubt or NOT_TAKEN
            judged[schema.name] = TableJudgement(ProofVerdict.UNPROVEN.value, why, at, now, 0, 0, doubt=doubt)
            continue
        signature = SumRules.of(config, progress, schema).rows(schema, reader).signature
        tables[schema.name] = ExpectedTable(tuple(signature), sums, at)
    done = settled(target.ddl_log.latest(config.changefeed, KEPT), at)
    target.proofs.make()
    state = ProofState.at(progress, done, tables, judged, {}, {}, {}, {})
    target.proofs.add(config.changefeed, at, "", state.as_json())


def _together(files: Iterable[Loaded]) -> ContentSums | None:
    total: ContentSums = {}
    for one in files:
        found = sums_in(one)
        if found is None:
            return None
        total = added(total, found)
    return total
