"""What a table has to hold at a checkpoint: what it had to hold at the last one, and what the events since then say.

Where events can't tell (the first proof, a DDL, lost messages), the reason is said.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from consumer.proof.ddls import changes_key, created_once, moved, since, touched
from consumer.proof.events_log import RESET
from consumer.proof.interval import TableInterval
from consumer.proof.present import Present
from consumer.proof.report import ProofOf, ProofVerdict
from consumer.proof.state import ExpectedTable, ProofState
from ordering.events import Partition, TableName
from ordering.rows.content_sums import ContentSums, added, differing, rows_in
from sinks.bookkeeping.ddl_log import KEPT, DdlRecord
from sinks.compare.canonical import columns_of

TOO_LONG = "the server can't make the text of a row: it is too long"
DROPPED = "the target has no such table, and no DDL has dropped it"
VERIFY = "`reconciler verify` compares it, then `reconciler prove CONFIG --rebase` takes it as right"
_WAS_GONE = "the target had no such table at the last proof"
_DIFFERED = "it differed at an earlier proof"
_OTHERS = "its columns are others than at the last proof, or another version made its sums"
_UNKNOWN = "it was not there at the last proof, and no CREATE TABLE alone has made it since"
_FIRST = "this is the first proof, and no CREATE TABLE of this changefeed alone has made the table"


@dataclass(frozen=True, slots=True)
class Expectations:
    """An interval: from the last proof (None: there is none) to the present. `gap`: why its events tell nothing."""

    state: ProofState | None
    present: Present
    tables: dict[TableName, TableInterval]
    gap: str = ""
    starts: Mapping[Partition, int] = field(default_factory=dict)
    """From where the events above the interval are read."""
    passed: Mapping[Partition, int] = field(default_factory=dict)
    """The last watermark before each of them."""
    unknown: Collection[TableName] = ()
    """Tables that rows came for, and that the target lacks."""
    _told: dict[TableName, tuple[ExpectedTable | None, str]] = field(default_factory=dict)

    @property
    def low(self) -> int:
        """The checkpoint of the last proof."""
        return 0 if self.state is None else self.state.checkpoint_ts

    def of(self, name: TableName) -> tuple[ExpectedTable | None, str]:
        """What a table has to hold; None, and why that can't be told."""
        if name not in self._told:
            self._told[name] = self._tell(name)
        return self._told[name]

    def _tell(self, name: TableName) -> tuple[ExpectedTable | None, str]:
        reason = self.gap or self._lost_ddls() or self._changed(name) or self.tables[name].unproven
        if reason:
            return None, reason
        known = self._known(name)
        before = ExpectedTable(self._signature(name), {}, 0) if known is None else known
        return replace(before, sums=added(before.sums, self.tables[name].sums.sums)), ""

    def gone(self) -> dict[TableName, ProofOf]:
        """Tables that had to be there, and that the target lacks though no DDL has taken them away."""
        if self.gap == RESET or self._lost_ddls():
            return {}
        known = {} if self.state is None else self.state.tables
        missing = [name for name in {*known, *self.unknown} if name not in self.present.rows]
        expected = {name: known.get(name, ExpectedTable((), {}, 0)) for name in missing if not self._about(name)}
        return {
            name: ProofOf(ProofVerdict.DIFFERENT, DROPPED, None, replace(one, signature=(), differs=True))
            for name, one in expected.items()
        }

    def lost(self, name: TableName) -> str:
        """Why it is no longer known what a table has to hold; "" if it is, or has not been known for long."""
        expected, reason = self.of(name)
        news = self._known(name) is not None or self.state is None or name not in self.state.judged
        doubt = self.doubt(name)
        return "" if expected is not None or not news else reason + (f"; {doubt}" if doubt else "")

    def broken(self, name: TableName, signature: tuple[str, ...]) -> str:
        """Why sums taken of a table within the interval can't be carried on to its end; "" if they can."""
        ddl = next((f"a DDL may have changed its rows: {line.sql[:200]}" for line in self._about(name)), "")
        same = "" if signature == self._signature(name) else "its columns have changed"
        return self.gap or self._lost_ddls() or ddl or same or self.tables[name].unproven

    def judged(self, name: TableName, sums: ContentSums | None, *, rebased: bool = False) -> ProofOf:
        """What the sums that the target has say of a table, and what it has to hold from now on."""
        if sums is None:
            doubt = self.doubt(name)
            return ProofOf(ProofVerdict.UNPROVEN, TOO_LONG, None, self.of(name)[0], doubt=doubt)
        base = ExpectedTable(self._signature(name), sums, self.present.checkpoint_ts)
        if rebased:
            return ProofOf(ProofVerdict.BASE, "an operator said so", sums, base)
        if lacking := self._lacking(name):
            return self._without_columns(name, sums, lacking)
        expected, reason = self.of(name)
        if expected is None:
            doubt = self.doubt(name)
            why = self._lost_before(name) or reason + (f"; {doubt}" if doubt else "")
            return ProofOf(ProofVerdict.BASE, why, sums, replace(base, doubt=doubt), doubt=doubt)
        return self._compared(expected, sums)

    def _compared(self, expected: ExpectedTable, sums: ContentSums) -> ProofOf:
        wrong, doubt = differing(expected.sums, sums), expected.doubt
        verdict = ProofVerdict.DIFFERENT if wrong else ProofVerdict.UNPROVEN if doubt else ProofVerdict.EQUAL
        reason = "" if wrong or not doubt else f"{doubt}, and what it held then was taken as base: {VERIFY}"
        kept = replace(expected, differs=bool(wrong))
        return ProofOf(verdict, reason, sums, kept, wrong, rows_in(expected.sums), doubt)

    def _lacking(self, name: TableName) -> str:
        """The column that a table had at the last proof and that no DDL has taken away."""
        known = self._known(name)
        if known is None or self.gap == RESET or self._lost_ddls() or self._about(name):
            return ""
        schema = self.tables[name].rows.schema
        there = {column.name for column in schema.columns}
        # of a merged table, what one shard lacks goes by the DDL of another one
        had = columns_of(known.signature, in_sums=bool(schema.origin))
        return next((column for column in had if column not in there), "")

    def _without_columns(self, name: TableName, sums: ContentSums, lacking: str) -> ProofOf:
        known = self._known(name)
        expected = None if known is None else replace(known, differs=True)
        reason = f"the column {lacking} is gone, and no DDL has dropped it"
        return ProofOf(ProofVerdict.DIFFERENT, reason, sums, expected, rows_expected=rows_in(sums))

    def doubt(self, name: TableName) -> str:
        """Why a new base would be wrong: what was found, and not repaired or taken as right since.

        Also of tables whose rows a DDL has moved here.
        """
        origins, tables = {name}, {*self.present.rows, *({} if self.state is None else self.state.judged), name}
        for line in self._ddls():
            among = moved(line, tables)
            origins |= among if among & origins else set()
        return self._own_doubt(name) or next(filter(None, map(self._own_doubt, sorted(origins))), "")

    def _own_doubt(self, name: TableName) -> str:
        known = self._known(name)
        if known is None:
            last = None if self.state is None else self.state.judged.get(name)
            return "" if last is None else last.doubt
        return known.doubt or ("" if not known.differs else _DIFFERED if known.signature else _WAS_GONE)

    def _lost_before(self, name: TableName) -> str:
        """Why it was not known any more at the last proof."""
        last = None if self.state is None else self.state.judged.get(name)
        gone = last is not None and last.verdict == ProofVerdict.UNPROVEN.value and self._known(name) is None
        return last.reason if last is not None and gone else ""

    def _changed(self, name: TableName) -> str:
        """Whether something else than its rows' events has changed a table."""
        known, about = self._known(name), self._about(name)
        if known is None:
            unknown = _UNKNOWN if self.low else _FIRST
            return "" if created_once(about) else unknown
        if about:
            return f"a DDL may have changed its rows: {about[0].sql[:200]}"
        if not known.signature:
            return _WAS_GONE
        return "" if known.signature == self._signature(name) else _OTHERS

    def _lost_ddls(self) -> str:
        lost = len(self.present.ddls) >= KEPT and self.present.ddls[-1].commit_ts >= self.low
        return "the DDL log no longer holds all DDLs since the last proof" if lost else ""

    def _about(self, name: TableName) -> list[DdlRecord]:
        """The DDLs of the interval that may have changed a table."""
        keys = self.present.rows.keys() | {name}
        other = name in self.tables and self.tables[name].has_other_key
        return [line for line in self._ddls() if name in touched(line, keys) or (other and changes_key(line, name))]

    def _ddls(self) -> Iterable[DdlRecord]:
        """The DDLs of the interval, the latest first."""
        return since(self.present.ddls, self.low, frozenset() if self.state is None else self.state.settled)

    def _signature(self, name: TableName) -> tuple[str, ...]:
        return tuple(self.tables[name].rows.signature)

    def _known(self, name: TableName) -> ExpectedTable | None:
        return None if self.state is None else self.state.tables.get(name)
