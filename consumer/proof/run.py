"""One proof: the target's own sums at its checkpoint, against those of the last proof and the events since then.

    last proof (C0, sums) + events with C0 < commitTs <= C1, read again from Kafka = expected
    one read-only transaction of the target: C1, and what it computes of its rows   = found

Where events can't tell (the first proof, a DDL, lost messages), what was found becomes the base, and that is said.
"""

import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.filters.tables import table_filter
from consumer.kafka.reader import Readers
from consumer.proof.ddls import under_way
from consumer.proof.events_log import EventsLog
from consumer.proof.expectation import TOO_LONG, Expectations
from consumer.proof.interval import IntervalReading, TableInterval
from consumer.proof.keyless import PassOrder
from consumer.proof.pieces import TablePass, whole_sums
from consumer.proof.present import Present, at_rest, present_of, with_executed
from consumer.proof.report import Proof
from consumer.proof.state import ProofState, first_state, state_of
from consumer.proof.upstream import UpstreamSums, excuse_of, with_upstream
from consumer.source.clock import ignored_marks
from consumer.source.continuity import LogControl
from consumer.wiring import check_is_database, target_of
from ordering.errors import ConfigError, TargetError, TargetUnreachableError
from ordering.events import TableName
from ordering.rows.content_sums import ContentSums

_AGAIN = 5
"""So often a proof begins again for DDLs."""


def carried(
    config: Config, log: EventsLog, state: ProofState | None, present: Present, passes: dict[TableName, TablePass]
) -> tuple[Expectations, int]:
    """What the events since the last proof say, and how many messages were read; `passes` are carried on by them.

    Raises SourceError and InputError.
    """
    state = first_state(present.progress) if state is None else state
    spans, gap = log.spans(state, present.progress)
    columns, accepts = read_routes(config.sink).columns, read_filter(config.filter).tables
    tables = {
        name: TableInterval(rows, partial(columns.unsent, name), passing=passes.get(name))
        for name, rows in present.rows.items()
    }
    low = 0 if state is None else state.checkpoint_ts
    order = PassOrder({} if state is None else dict(state.passed))
    reading = IntervalReading(
        low, present.checkpoint_ts, tables, accepts, order=order, ignored_marks=ignored_marks(config)
    )
    if not gap:
        reading.take(log.messages(spans, present.progress))
    messages = 0 if gap else sum(stop - start for _, start, stop in spans)
    partitions, passed = present.progress.partitions, order.passed
    starts = {p: reading.above.get(p, one.read_to) for p, one in partitions.items()}
    if gap:
        starts = {p: one.start for p, one in partitions.items()}
        passed = {p: int(one.passed) for p, one in partitions.items() if one.passed is not None}
    return Expectations(state, present, tables, accepts, gap, starts, passed, reading.unknown), messages


@dataclass(frozen=True, slots=True)
class Proving:
    """Proves a changefeed's tables. `rebase`: patterns of tables whose present content is to count as right."""

    config: Config
    rebase: tuple[str, ...] = ()
    control: LogControl | None = None
    """Tells of the logs; None: Kafka's own answers."""
    readers: Readers | None = None

    def run(self) -> Proof:
        """Prove. Raises ReconcilerError; a difference is no error here."""
        begun = time.monotonic()
        check_is_database(self.config.target.uri, "prove")
        with closing(target_of(self.config)) as target:
            self._check_begun(target.applied(self.config.changefeed))
            target.connect()
            proofs = target.proofs
            proofs.make()
            state = state_of(proofs.state(self.config.changefeed))
            present, sums, upstream = self._found(state)
            log = EventsLog(self.config, self.control, self.readers)
            executed = with_executed(self.config, present)
            expectations, messages = carried(self.config, log, state, executed, {})
            proof = self._judged(expectations, sums, messages)
            if upstream is not None:
                self._ask(upstream, proof, executed)
            proof.seconds = round(time.monotonic() - begun, 3)
            done, judged = present.past, proof.judgements()
            starts, passed = expectations.starts, expectations.passed
            filled, own = present.filled, expectations.own_columns()
            kept = ProofState.at(present.progress, done, proof.expected, judged, starts, passed, filled, own)
            proofs.add(self.config.changefeed, proof.checkpoint_ts, proof.certificate(), kept.as_json())
        return proof

    def _check_begun(self, checkpoint_ts: int | None) -> None:
        if checkpoint_ts is None:
            hint = "`reconciler run CONFIG --once` first"
            raise ConfigError(f"changefeed {self.config.changefeed!r} has not run yet", hint=hint)

    def _found(
        self, state: ProofState | None, again: int = _AGAIN
    ) -> tuple[Present, dict[TableName, ContentSums | None], UpstreamSums | None]:
        """The target's checkpoint and sums, of one transaction, and what to ask the upstream about.

        `again`: how often it begins again where a DDL has taken a table away, or changed it, before it was read.
        """
        with at_rest(self.config) as (side, progress):
            present = present_of(self.config, side, progress, state)
            try:
                sums = {name: whole_sums(rows, side.readers[0]) for name, rows in present.rows.items()}
                has_upstream = bool(self.config.source.upstream.uri)
                upstream = UpstreamSums.begun(self.config, side, present.checkpoint_ts) if has_upstream else None
            except TargetUnreachableError:
                raise
            except TargetError:
                if not again or with_executed(self.config, present).ddls == present.ddls:
                    raise
            else:
                return present, sums, upstream
        return self._found(state, again - 1)

    def _ask(self, upstream: UpstreamSums, proof: Proof, present: Present) -> None:
        """Let the upstream's answers join what was found, but for tables that a DDL has already taken further."""
        told = upstream.answers()
        ahead = under_way(present.ddls, present.checkpoint_ts, {*told, *present.rows})
        answers = {name: answer for name, answer in told.items() if name not in ahead}
        for name in [name for name, answer in answers.items() if answer.is_equal is False]:
            answers[name] = replace(answers[name], excuse=excuse_of(self.config, present.ddls, name))
        for name in answers.keys() - proof.tables.keys():
            proof.add(name, {}, answers[name].judged_alone())
        untold = [f"{name}: {one.reason}" for name, one in sorted(answers.items()) if one.is_equal is None]
        proof.fault = "; ".join(filter(None, (upstream.fault, *untold)))
        for name, (left_out, found) in list(proof.tables.items()):
            if found.reason == TOO_LONG or (answer := answers.get(name)) is None:
                continue
            unasked = dict.fromkeys(
                (one for one in answer.left_out if one not in left_out), "the upstream was not asked about it"
            )
            told_of = replace(answer, left_out=tuple(unasked))
            proof.add(name, {**unasked, **left_out}, with_upstream(found, told_of))

    def _judged(self, expectations: Expectations, sums: dict[TableName, ContentSums | None], messages: int) -> Proof:
        present = expectations.present
        proof = Proof(self.config.changefeed, present.checkpoint_ts, expectations.low, messages)
        rebased = table_filter(self.rebase, key="--rebase") if self.rebase else None
        for name, rows in sorted(present.rows.items()):
            again = rebased is not None and rebased(*name)
            proof.add(name, rows.left_out, expectations.judged(name, sums[name], rebased=again))
        for name, gone in expectations.gone().items():
            if rebased is None or not rebased(*name):
                proof.add(name, {}, gone)
        if not proof.tables:
            proof.nothing = expectations.untold()
        return proof
