"""Proving table by table, a little at a time: reads pieces of tables, and carries all on by the events since then.

A round reads for a while, at most so many rows a second, then carries what was read, and what every table has to hold,
on to the target's present checkpoint, and compares the tables that were read to their end. What has to be held, and
what was found last, is kept in the target: after a crash or a takeover the next round goes on from there.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event

from consumer.config.model import Config
from consumer.kafka.reader import Readers
from consumer.proof.events_log import STAYS_SO, EventsLog
from consumer.proof.expectation import Expectations
from consumer.proof.pieces import TablePass, has_more_rows
from consumer.proof.present import Present, at_rest, present_of, with_executed
from consumer.proof.report import Proof, ProofOf, ProofVerdict
from consumer.proof.run import carried
from consumer.proof.state import ProofState, state_of
from consumer.source.continuity import LogControl
from consumer.verify.pacing import Pace
from consumer.wiring import target_of
from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import TableName

ROUND_S = 10.0
"""After so long what was read is carried on, so that there are never many events to read at once."""
REST_S = 60.0
"""So long at most between two rounds."""
PIECE_ROWS = 20_000
LOCKED_ROWS = 1_000
"""Of a target that lets nobody commit meanwhile."""
MOST_LOCKED_ROWS = 20_000
_HOLDS_UP = (
    "its rows can't be read a few at a time, because its key does not begin with a whole number that tells them apart,"
    " so the writer would wait meanwhile: `reconciler prove` proves it"
)


@dataclass(slots=True)
class Scrub:
    """The rounds of a changefeed. `control`, `readers`: as in `EventsLog`. Not for several threads at once."""

    config: Config
    stopping: Event = field(default_factory=Event)
    control: LogControl | None = None
    readers: Readers | None = None
    now: Callable[[], float] = time.monotonic
    round_s: float = ROUND_S
    _state: ProofState | None = None
    _present: Present | None = None
    _goes_on: bool = True
    """Whether reading tables is of any use."""
    _kept: str = ""
    """The state as this instance has saved or found it."""
    _passes: dict[TableName, TablePass] = field(default_factory=dict)
    _tried: dict[TableName, float] = field(default_factory=dict)
    """When this instance last began to read a table, or compared it."""
    _refused: dict[TableName, tuple[str, list[str]]] = field(default_factory=dict)
    """Tables that could not be read, why, and with which signature."""
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = Pace(self.config.proof.rows_per_second, self.stopping)

    def round(self) -> Proof:
        """Read for a while, carry on, and compare what is complete. Raises ReconcilerError."""
        self._read_for_a_while()
        self._take_up()
        try:
            return self._carry()
        except BaseException:
            self._begin_anew()  # some events may have been taken, and would be taken again
            raise

    def _begin_anew(self) -> None:
        """Forget what was read; it is due as it was before."""
        for name in self._passes:
            self._tried.pop(name, None)
        self._passes.clear()

    @property
    def rest_s(self) -> float:
        """How long nothing is to be done."""
        return 0.0 if self._next() is not None else min(REST_S, self.config.proof.interval_seconds)

    def _take_up(self) -> None:
        """Go on from what the target keeps: another process may have proven, or been told what is right, meanwhile."""
        with closing(target_of(self.config)) as target:
            target.connect()
            proofs = target.proofs
            proofs.make()
            kept = proofs.state(self.config.changefeed)
        self._state = state_of(kept)
        if kept != self._kept:
            self._begin_anew()
        self._kept = kept

    def _read_for_a_while(self) -> None:
        until = time.monotonic() + self.round_s
        while not self.stopping.is_set() and (name := self._next()) is not None:
            self._read(name)
            if time.monotonic() >= until:
                return

    def _next(self) -> TableName | None:
        """The table to read on: one that was begun, else the one that waits for longest; those that differ first."""
        if self._present is None or not self._goes_on:
            return None
        begun = (name for name, one in self._passes.items() if not one.is_done)
        return next(begun, None) or min(self._due(), key=self._order, default=None)

    def _due(self) -> Iterator[TableName]:
        rows = {} if self._present is None else self._present.rows
        for name in rows:
            if name not in self._passes and name not in self._refused and self._is_due(name):
                yield name

    def _is_due(self, name: TableName) -> bool:
        """Whether it was compared long ago, or never by this instance.

        Sooner if it differs, so that a repair is noticed, or if it is not known what it has to hold: it needs a base.
        """
        interval_s = self.config.proof.interval_seconds
        state = self._state
        last = None if state is None or name not in state.tables else state.judged.get(name)
        is_calm = last is not None and last.verdict != ProofVerdict.DIFFERENT.value
        return name not in self._tried or self.now() - self._tried[name] >= (
            interval_s if is_calm else min(REST_S, interval_s)
        )

    def _order(self, name: TableName) -> tuple[bool, float, str]:
        found = None if self._state is None else self._state.judged.get(name)
        is_calm = found is None or found.verdict != ProofVerdict.DIFFERENT.value
        return is_calm, self._tried.get(name, float("-inf")), "" if found is None else found.at

    def _read(self, name: TableName) -> None:
        """Read a table's next piece."""
        if self._present is None:
            raise AssertionError(name)
        if name not in self._passes:
            self._passes[name], self._tried[name] = TablePass(self._present.rows[name]), self.now()
        one = self._passes[name]
        try:
            with at_rest(self.config, self.stopping) as (side, progress):
                reader = side.readers[0]
                span = one.next_span(reader, PIECE_ROWS if reader.several else LOCKED_ROWS)
                if not reader.several and has_more_rows(one.rows, reader, span, MOST_LOCKED_ROWS):
                    self._refuse(name, _HOLDS_UP)
                    return
                rows = one.read(reader, int(progress.checkpoint_ts), span)
        except TargetUnreachableError:
            raise
        except TargetError as error:
            self._refuse(name, f"it can't be read: {error.fact[:200]}")
            return
        self._pace(rows)

    def _refuse(self, name: TableName, why: str) -> None:
        self._refused[name] = why, self._passes.pop(name).rows.signature

    def _carry(self) -> Proof:
        """Carry all on to the present; compare, and keep what was found."""
        begun = time.monotonic()
        with at_rest(self.config, self.stopping) as (side, progress):
            shown = present_of(self.config, side, progress, self._state)
        present = with_executed(self.config, shown)
        log = EventsLog(self.config, self.control, self.readers, self._pace)
        expectations, messages = carried(self.config, log, self._state, present, self._passes)
        proof = Proof(self.config.changefeed, present.checkpoint_ts, expectations.low, messages)
        self._compare(expectations, proof)
        proof.seconds = round(time.monotonic() - begun, 3)
        self._keep(expectations, proof)
        return proof

    def _compare(self, expectations: Expectations, proof: Proof) -> None:
        """Judge tables that were read to their end; forget what can't be carried on."""
        rows = expectations.present.rows
        for name, one in list(self._passes.items()):
            why = "it is gone" if name not in rows else expectations.broken(name, tuple(one.rows.signature))
            if not why and one.is_done:
                proof.add(name, rows[name].left_out, expectations.judged(name, one.sums))
                self._tried[name] = self.now()
            if why or one.is_done:
                del self._passes[name]
        for name, found in rows.items():
            (refused, signature), lost = self._refused.pop(name, ("", found.signature)), expectations.lost(name)
            if signature != found.signature:  # a DDL has made it unreadable as it was known
                refused, _ = "", self._tried.pop(name, None)
            reason = lost or refused
            if name not in proof.tables and reason:
                if lost and not expectations.tables[name].unproven:
                    self._tried.pop(name, None)  # what comes next can be proven: a base is read at once
                unproven = ProofOf(ProofVerdict.UNPROVEN, reason, None, None, doubt=expectations.doubt(name))
                proof.add(name, found.left_out, unproven)
        for name, gone in expectations.gone().items():
            if not self._is_known(name, gone):
                proof.add(name, {}, gone)

    def _is_known(self, name: TableName, found: ProofOf) -> bool:
        """Whether this was found before."""
        last = None if self._state is None else self._state.judged.get(name)
        return last is not None and (last.verdict, last.reason) == (found.verdict.value, found.reason)

    def _keep(self, expectations: Expectations, proof: Proof) -> None:
        """Note what every table has to hold at the present, and what was found."""
        present, before = expectations.present, self._state
        gone = {name: one.expected for name, one in expectations.gone().items()}
        told = {name: expectations.of(name)[0] for name in present.rows} | gone
        expected = {name: one for name, one in told.items() if one is not None}
        known = {} if before is None else {name: one for name, one in before.judged.items() if name in told}
        judged = known | proof.judgements()
        self._state = ProofState.at(
            present.progress,
            present.past,
            expected | proof.expected,
            judged,
            expectations.starts,
            expectations.passed,
            present.filled,
            expectations.own_columns(),
        )
        self._present, self._goes_on = present, expectations.gap not in STAYS_SO
        if before is None or proof.tables or proof.messages:
            self._save(proof, self._state.as_json())

    def _save(self, proof: Proof, state: str) -> None:
        """Save a round, but for one during which another process has saved: an operator's `--rebase` must not be lost.

        What this round found is then found again by the next one.
        """
        certificate = proof.certificate() if proof.tables else ""
        with closing(target_of(self.config)) as target:
            target.connect()
            changefeed = self.config.changefeed
            is_ours = target.proofs.add(changefeed, proof.checkpoint_ts, certificate, state, after=self._kept)
        if is_ours:
            self._kept = state
            return
        for name in proof.tables:
            self._tried.pop(name, None)
        proof.tables.clear()
