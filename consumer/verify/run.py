"""One verification: opens both sides, compares all chunks, several at once, and tells what it found.

Only the order of chunks decides the order of what is reported, not which of them was done first.
"""

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark import SparkContext

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.filters.tables import table_filter
from consumer.verify.compare import Comparer, Results, Work
from consumer.verify.narrow import UNNAMED, Difference, still_differing
from consumer.verify.pacing import Bar, Pace
from consumer.verify.plan import CHUNK_ROWS, Comparison, Plan, chunks, planned, unseen
from consumer.verify.repair import repair
from consumer.verify.replay import replayed
from consumer.verify.report import TableOutcome, VerifyOutcome
from consumer.verify.resume_file import ResumeState, Subject, schema_digest
from consumer.verify.rules import rules_of
from consumer.verify.sides import Side, open_other_side, open_target_side, open_upstream_side
from consumer.wiring import check_is_database, target_of
from ordering import quarantine
from ordering.errors import ConfigError
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import DdlState
from sinks.bookkeeping.progress_rows import Stored
from sinks.compare.digests import Selection, Span, whole_number
from sinks.private_files import open_file
from sinks.wording import plural

_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What the command line says. `against`: a URI at rest; `tables`: patterns as in `filter.rules`."""

    upstream: str = ""
    against: str = ""
    replay: bool = False
    tables: tuple[str, ...] = ()
    threads: int = 2
    chunk_rows: int = CHUNK_ROWS
    max_rows_per_second: float = 0.0
    state: Path | None = None
    fix_sql: Path | None = None
    limit: int = 100


@dataclass(slots=True)
class Verification:
    """Compares a changefeed's target with what it should be."""

    config: Config
    options: VerifyOptions
    bar: Bar = field(default_factory=Bar)
    spark: SparkContext | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> VerifyOutcome:
        """Compare. Raises ReconcilerError; differences are no error here."""
        begun = time.monotonic()
        with self._sides() as (left, right, stored):
            outcome = self._compared(left, right, stored)
            if self.options.against and outcome.differs:
                left.open(1)
                right.open(1)
                self._again(outcome, (left, right))
            outcome.seconds = time.monotonic() - begun
            if self.options.fix_sql is not None:
                self._write_repair(self.options.fix_sql, outcome, right)
        return outcome

    @contextmanager
    def _sides(self) -> Iterator[tuple[Side, Side, Stored | None]]:
        """Both sides, and the target's progress."""
        self._check_choice()
        self._check_begun()
        readers = self.options.threads
        right, stored = open_target_side(self.config, readers)
        left: Side | None = None
        try:
            if stored is not None:
                read_routes(self.config.sink).check_change(stored.progress.routes, self.config.changefeed)
            if self.options.against:
                left = open_other_side(self.options.against, readers + 1)
                yield left, right, stored
                return
            if stored is None:
                raise self._not_begun(right.name)
            if self.options.replay:
                with replayed(self.config, stored.progress, self.spark) as left:
                    yield left, right, stored
                return
            uri = self.options.upstream or self.config.source.upstream.uri
            left = open_upstream_side(uri, stored.progress.checkpoint_ts, readers + 1)
            yield left, right, stored
        finally:
            for side in filter(None, (left, right)):
                side.close()

    def _check_begun(self) -> None:
        """Look for a checkpoint first: reading a target in SQLite makes its directory."""
        if not self.options.against:
            with closing(target_of(self.config)) as target:
                if target.stored(self.config.changefeed) is None:
                    raise self._not_begun(target.name)

    def _not_begun(self, where: str) -> ConfigError:
        hint = "`reconciler run CONFIG --once` first; --against compares without one"
        fact = f"changefeed {self.config.changefeed!r} has not run yet: there is no checkpoint"
        return ConfigError(fact, where=where, hint=hint)

    def _check_choice(self) -> None:
        for uri in filter(None, (self.config.target.uri, self.options.against)):
            check_is_database(uri, "verify")
        chosen = [name for name in ("upstream", "against", "replay") if getattr(self.options, name)]
        if len(chosen) > 1:
            raise ConfigError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
        if not chosen and not self.config.source.upstream.uri:
            hint = "set source.upstream.uri, or use --upstream tidb://..., --against URI or --replay"
            raise ConfigError("there is nothing to compare the target with", hint=hint)

    def _compared(self, left: Side, right: Side, stored: Stored | None) -> VerifyOutcome:
        plan = self._plan(left, right, stored)
        plan.unjudged += self._held(right, stored)
        checkpoint = 0 if stored is None else int(stored.progress.checkpoint_ts)
        sides = (left.name, right.name)
        subject = Subject(self.config.changefeed, checkpoint, sides, schema_digest(plan), self.options.chunk_rows)
        state = ResumeState(self.options.state, subject)
        outcome = VerifyOutcome(self.config.changefeed, checkpoint, sides, plan, self.options.limit)
        outcome.tables = [TableOutcome(comparison) for comparison in plan.tables]
        outcome.notes = self._notes(right, stored)
        with self.bar.shown(len(plan.tables)):
            self._all_chunks(outcome, left, right, state)
        return outcome

    def _plan(self, left: Side, right: Side, stored: Stored | None) -> Plan:
        wanted = table_filter(self.options.tables or ("*.*",), key="--tables")
        rules = rules_of(self.config, wanted, keyless=bool(self.options.against))
        catalogs = left.catalog(), right.catalog()
        plan = planned((catalogs[0], left.readers[0]), (catalogs[1], right.readers[0]), rules)
        sent = {} if stored is None else stored.progress.topics
        plan.unjudged += unseen({name for topic in sent.values() for name in topic.tables}, catalogs, rules)
        self._check_asked(plan, [name for catalog in catalogs for name in catalog.tables if rules.accepts(*name)])
        return plan

    def _check_asked(self, plan: Plan, names: Collection[TableName]) -> None:
        """Whatever was asked for has to be there: nothing compared is no answer. Raises ConfigError."""
        for pattern in self.options.tables:
            asked = table_filter((pattern.lstrip().removeprefix("!"),), key="--tables")
            if not any(asked(*name) for name in names):
                hint = "patterns are spelled as in filter.rules, DATABASE.TABLE, and choose among the tables of those"
                raise ConfigError(f"--tables {pattern!r} matches no table of either side", hint=hint)
        if not plan.tables and not plan.schema:
            left_out = "; ".join(f"{name}: {text}" for name, text in plan.left_out)
            raise ConfigError(
                "there is no table to compare" + (f": {left_out}" if left_out else ""),
                hint="filter.rules, --tables and the rights of both users decide which tables there are",
            )

    def _held(self, right: Side, stored: Stored | None) -> list[str]:
        """What a replay can't judge: it lacks the rows of held messages as the target does."""
        if not self.options.replay or stored is None:
            return []
        held = _held_messages(right, self.config.changefeed)
        return [f"the quarantine holds {plural(held, 'message')}: a replay lacks their rows too"] if held else []

    def _notes(self, right: Side, stored: Stored | None) -> list[str]:
        """What may be why rows differ, and is no fault."""
        notes = []
        if read_filter(self.config.filter).for_rows(right.catalog()) is not None:
            notes.append("filter.event-filters leave rows out: what is missing or old may be theirs")
        if stored is None:
            return notes
        target = right.targets[0]
        held = _held_messages(right, self.config.changefeed)
        if held:
            notes.append(f"the quarantine holds {plural(held, 'message')}: their rows are missing in the target")
        begun = [
            d.commit_ts for d in target.ddl_log.unsettled(self.config.changefeed) if d.state == DdlState.INTENT.value
        ]
        if begun:
            notes.append(
                f"a DDL at commitTs {begun[0]} is under way: the target's schema may be ahead of its checkpoint"
            )
        return notes

    def _all_chunks(self, outcome: VerifyOutcome, left: Side, right: Side, state: ResumeState) -> None:
        several = len(right.readers) > 1 and len(left.readers) > 1
        readers = min(len(right.readers), len(left.readers) - 1) if several else 1
        planner = left.readers[-1]
        compare = Comparer(outcome, left, right, Pace(self.options.max_rows_per_second, self._stopping))
        results, reused, total = Results(outcome, state, self.bar), 0, 0
        with compare.at_once(readers) if several else compare.one_by_one() as do:
            for number, work in enumerate(self._work(outcome, left, planner)):
                known, total = state.get(outcome.tables[work.at].comparison.name, work.spans[0]), total + 1
                if known is None:
                    do(work, partial(results.keep, work, number))
                else:
                    reused += 1
                    results.take(work, number, known)
        if reused and total == reused:  # all of it is an earlier run's answer
            state.begin_anew()
            self._all_chunks(outcome, left, right, state)
            return
        results.tell()
        state.end()
        if reused:
            outcome.notes.append(
                f"{reused} of {total} chunks were compared by a run that began at {state.begun}, and not again: what"
                " has changed in them since is not seen; remove the state to compare all of them now"
            )

    def _work(self, outcome: VerifyOutcome, left: Side, planner: object) -> Iterator[Work]:
        for at, table in enumerate(outcome.tables):
            for spans in self._spans(table.comparison, left, planner):
                yield Work(at, spans)
            self.bar.table_done()

    def _spans(self, comparison: Comparison, left: Side, planner: object) -> Iterator[tuple[Span, Span]]:
        reader = next(r for r in left.readers if r is planner)
        selection = Selection(reader, comparison.left, comparison.pairs, comparison.keys, 0)
        names = comparison.span_column

        def bound(span: Span) -> int | None:
            return left.ask(lambda: selection.bound(span, self.options.chunk_rows))

        for span in chunks(bound, names[0] if names else None):
            yield span, Span(names[1] if names else "", span.low, span.high)

    def _again(self, outcome: VerifyOutcome, sides: tuple[Side, Side]) -> None:
        """Look once more at the rows that differ, in new snapshots: what was only under way is equal now."""
        left, right = sides
        compare = Comparer(outcome, left, right, Pace(self.options.max_rows_per_second, self._stopping))
        for at, table in enumerate(outcome.tables):
            if table.differences:
                names = table.comparison.span_column
                now: list[Difference] = []
                for span in _around(table, self.options.chunk_rows):
                    other = Span(names[1] if names else "", span.low, span.high)
                    now += compare.chunk(Work(at, (span, other)), 0).differences
                table.differences = still_differing(table.comparison, table.differences, now)

    def _write_repair(self, path: Path, outcome: VerifyOutcome, right: Side) -> None:
        try:
            with open_file(path, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in repair(outcome, right.readers[0].mender()))
        except OSError as error:
            raise ConfigError(f"can't write {path}: {error.strerror}") from error


def _held_messages(side: Side, changefeed: str) -> int:
    return sum(one.state is quarantine.QuarantineState.HELD for one in side.targets[0].quarantine.all(changefeed))


def _around(table: TableOutcome, rows: int) -> Iterator[Span]:
    """Spans that hold the differing rows of a table: ranges between their keys, or all of it."""
    names = table.comparison.span_column
    named = (one for one in table.differences if one.kind != UNNAMED)
    found = {None if names is None else whole_number(one.key(table.comparison)[names[0]]) for one in named}
    if names is None or None in found:  # somebody wrote by hand what is no number, or NULL
        yield Span()
        return
    numbers = sorted(number for number in found if number is not None)
    while numbers:
        low = numbers[0]
        some = [n for n in numbers if n < low + rows]
        # below the least integer SQLite reads a float, which is that integer
        yield Span(names[0], low - 1 if low > _LEAST else None, some[-1])
        numbers = numbers[len(some) :]
