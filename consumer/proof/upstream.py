"""The third sum: what the upstream itself held at the checkpoint, where `source.upstream` names it.

Events, target and upstream: which two differ says who is wrong. The sums are those by which `verify` compares.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.proof.ddls import touched
from consumer.proof.expectation import VERIFY
from consumer.proof.report import ProofOf, ProofVerdict
from consumer.verify.plan import Comparison, Plan, planned
from consumer.verify.rules import rules_of
from consumer.verify.sides import Side, open_upstream_side
from ordering.errors import InputError, SourceError
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import KEPT, DdlRecord, DdlState
from sinks.compare.digests import Selection, Span, Sum, TableReader

_EVENTS_DIFFER = "the upstream holds other rows than the target, which holds what the events say"
_OTHER = "the upstream holds other rows than the target"
_STREAM = (
    "the upstream holds what the target holds, and the events say something else: --rebase takes the target as right"
)
_FILTERED = "event filters leave out events of this table"
_NAMES = "`reconciler verify` names the rows"
_NOT_ASKED = "the upstream was not asked about"
_ASKED = "the upstream holds what the target holds in the columns that it was asked about"


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """Whether the upstream held the same rows; None where that is not known, and `reason` says why."""

    is_equal: bool | None
    reason: str = ""
    left_out: tuple[str, ...] = ()
    """Columns of both sides that were not compared: equal values of theirs may be spelled differently, say."""
    excuse: str = ""
    """Why the target may rightly hold other rows than the upstream."""

    def judged_alone(self) -> ProofOf:
        """Of a table that only one side has."""
        if self.excuse:
            return ProofOf(ProofVerdict.UNPROVEN, f"{self.reason}, and {self.excuse}", None, None, upstream="different")
        return ProofOf(ProofVerdict.DIFFERENT, self.reason, None, None, upstream="different")


@dataclass(slots=True)
class UpstreamSums:
    """Both sides' sums at one checkpoint. The target's are taken at once, so that its snapshot need not wait."""

    side: Side | None
    plan: Plan = field(default_factory=Plan)
    target: dict[TableName, Sum] = field(default_factory=dict)
    fault: str = ""

    @classmethod
    def begun(cls, config: Config, target: Side, checkpoint_ts: int) -> "UpstreamSums":
        """Take the target's sums of the tables that the upstream has. Raises TargetError."""
        try:
            side = open_upstream_side(config.source.upstream.uri, checkpoint_ts, 1)
            catalog = side.catalog()
        except (SourceError, InputError) as error:
            return cls(None, fault=f"the upstream was not asked: {error.fact}")
        rules = rules_of(config, lambda *_: True, keyless=False)
        plan = planned((catalog, side.readers[0]), (target.catalog(), target.readers[0]), rules)
        sums = {one.right.name: _sum(one, target.readers[0], 1) for one in plan.tables}
        return cls(side, plan, sums)

    def answers(self) -> dict[TableName, UpstreamAnswer]:
        """Ask the upstream, a table at a time, by the target's names of tables; it is closed after that."""
        if self.side is None:
            return {}
        try:
            found = {one.right.name: self._answer(one, self.side) for one in self.plan.tables}
        finally:
            self.side.close()
        for name, kind, text in self.plan.schema:
            known = found.get(name)
            if kind != "missing column" or known is None:
                found[name] = UpstreamAnswer(False, text)
            elif known.is_equal:
                found[name] = UpstreamAnswer(None, f"not all of it was compared with the upstream: {text}")
        return found

    def _answer(self, one: Comparison, side: Side) -> UpstreamAnswer:
        try:
            upstream = side.ask(lambda: _sum(one, side.readers[0], 0))
        except (SourceError, InputError) as error:
            return UpstreamAnswer(None, f"the upstream was not asked: {error.fact}")
        asked = {pair.right.name for pair in one.pairs if pair.exact}
        there = {column.name.lower() for column in one.left.columns}
        names = [column.name for column in one.right.columns if column.name.lower() in there and not column.generated]
        left_out = tuple(name for name in names if name not in asked)
        return UpstreamAnswer(upstream == self.target[one.right.name], left_out=left_out)


def _sum(one: Comparison, reader: TableReader, side: int) -> Sum:
    exact = tuple(pair for pair in one.pairs if pair.exact)
    table = one.right if side else one.left
    return Selection(reader, table, exact, (), side).sum(Span())


def excuse_of(config: Config, ddls: Sequence[DdlRecord], name: TableName) -> str:
    """Why a table may rightly hold other rows than upstream: an event filter leaves out rows, or has left out a DDL.

    "" if it may not. `ddls`: the DDL log, of which there may have been more lines.
    """
    filters = [one for one in read_filter(config.filter).events.filters if one.matcher(*name)]
    if any(True for one in filters for _ in one.ignored_rows()) or (filters and len(ddls) >= KEPT):
        return _FILTERED
    ignored = (line for line in ddls if line.state == DdlState.IGNORED.value and "event-filters" in line.executed)
    left_out = next((line.sql[:200] for line in ignored if touched(line, [name])), "")
    return f"an event filter has left out a DDL: {left_out}" if left_out else ""


def with_upstream(found: ProofOf, answer: UpstreamAnswer | None) -> ProofOf:
    """What a table's verdict becomes by the upstream's answer. Pure."""
    if answer is None or answer.is_equal is None:
        return found
    asked = replace(found, upstream="equal" if answer.is_equal else "different")
    kept = found.expected
    if not answer.is_equal and answer.excuse and found.verdict is not ProofVerdict.DIFFERENT:
        return replace(asked, verdict=ProofVerdict.UNPROVEN, reason=f"{_OTHER}, and {answer.excuse}: {_NAMES}")
    if not answer.is_equal:
        reason = answer.reason or (_EVENTS_DIFFER if found.verdict is ProofVerdict.EQUAL else _OTHER)
        doubted = None if kept is None else replace(kept, doubt=_OTHER)
        return replace(asked, verdict=ProofVerdict.DIFFERENT, reason=reason, expected=doubted, doubt=_OTHER)
    if found.verdict is ProofVerdict.DIFFERENT:
        partly = f"{_ASKED}, and was not asked about {', '.join(answer.left_out)}: the target may be wrong there"
        return replace(asked, reason=found.reason or (partly if answer.left_out else _STREAM))
    doubt = found.doubt or ("" if kept is None else kept.doubt)
    if answer.left_out and (doubt or found.verdict is not ProofVerdict.EQUAL):
        verdict = ProofVerdict.UNPROVEN if doubt else found.verdict
        why = ", and ".join(filter(None, (doubt or found.reason, f"{_NOT_ASKED} {', '.join(answer.left_out)}")))
        return replace(asked, verdict=verdict, reason=f"{why}: {VERIFY}" if doubt else why)
    sure = None if kept is None else replace(kept, doubt="")
    return replace(asked, verdict=ProofVerdict.EQUAL, reason="", expected=sure, doubt="")
