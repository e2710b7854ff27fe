"""What a table has to hold at a checkpoint: what it had to hold at the last one, and what the events since then say.

Where events can't tell (the first proof, a DDL, lost messages), the reason is said.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from consumer.proof.ddls import changes_key, created_once, creates, left_by, moved, since, touched
from consumer.proof.events_log import RESET
from consumer.proof.interval import TableInterval
from consumer.proof.present import Present
from consumer.proof.report import ProofOf, ProofVerdict
from consumer.proof.state import ExpectedTable, ProofState
from ordering.events import Partition, TableName
from ordering.rows.content_sums import ContentSums, added, differing, rows_in
from sinks.bookkeeping.ddl_log import KEPT, DdlRecord
from sinks.compare.canonical import columns_of, entry, parts_of

TOO_LONG = "the server can't make the text of a row: it is too long (in MySQL and MariaDB, for max_allowed_packet)"
DROPPED = "the target has no such table, and no DDL has dropped it"
_MISSING = "the target has no such table, and whether a DDL has dropped it is not known"
_NONE = "the target has no table of this changefeed, and whether it should have some is not known"
VERIFY = "`reconciler verify` compares it, then `reconciler prove CONFIG --rebase` takes it as right"
_WAS_GONE = "the target had no such table at the last proof"
_DIFFERED = "it differed at an earlier proof"
_OTHERS = "its columns are others than at the last proof, or another version made its sums"
_OWN = "it has columns that upstream lacks: from now on they are in no sum"
_BY_HAND = "its columns became others without a DDL"
_UNKNOWN = "it was not there at the last proof, and no CREATE TABLE alone has made it since"
_FIRST = "this is the first proof, and no CREATE TABLE of this changefeed alone has made the table"


@dataclass(frozen=True, slots=True)
class Expectations:
    """An interval: from the last proof (None: there is none) to the present. `gap`: why its events tell nothing."""

    state: ProofState | None
    present: Present
    tables: dict[TableName, TableInterval]
    accepts: Callable[[str, str], bool]
    """Which tables the filter takes."""
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
        if lacking := self._lacking(name):
            return self._with_column(name, lacking), ""
        reason = self.gap or self._lost_ddls() or self._changed(name) or self.tables[name].unproven
        if reason:
            return None, reason
        known = self._known(name)
        before = ExpectedTable(self._signature(name), {}, 0) if known is None else known
        sums = added(before.sums, self.tables[name].sums.sums)
        return replace(before, signature=self._signature(name), sums=sums), ""

    def gone(self) -> dict[TableName, ProofOf]:
        """Tables that had to be there, and that the target lacks though no DDL is known to have taken them away."""
        known = {} if self.state is None else self.state.tables
        judged = () if self.state is None else self.state.judged
        lost = self.gap if self.gap == RESET else self._lost_ddls()
        before = {name: _why_untold(known.get(name), lost) for name in (*self.unknown, *judged, *known)}
        lines = self.present.ddls if self.gap == RESET else list(self._ddls())
        expected = left_by(reversed(lines), before, self._is_executed)
        there = {name.folded for name in self.present.rows}
        return {
            name: _gone(known.get(name, ExpectedTable((), {}, 0)), why or (lost if self.gap == RESET else ""))
            for name, why in sorted(expected.items())
            if name.folded not in there and self.accepts(*name)
        }

    def own_columns(self) -> dict[TableName, dict[str, bool]]:
        """Columns that upstream lacks: in an interval with a DDL about them, rows of before it tell nothing."""
        if self.gap == RESET:
            return {}
        before = {} if self.state is None else self.state.own
        found = {}
        for name, table in self.tables.items():
            known = [column for column, is_own in before.get(name, {}).items() if is_own]
            new = () if self._lost_ddls() or self._about_columns(name) else table.own_columns
            found[name] = {column: column not in table.shown_columns for column in (*known, *new)}
        return {name: columns for name, columns in found.items() if columns}

    def _is_executed(self, line: DdlRecord) -> bool:
        """Whether the target's snapshot holds what a DDL has done."""
        return line.commit_ts < self.present.checkpoint_ts or line.id in self.present.settled

    def untold(self) -> str:
        """Why it is not known that the target needs no table; "" if it is."""
        why = self.gap or self._lost_ddls()
        return f"{_NONE}: {why}" if why else ""

    def lost(self, name: TableName) -> str:
        """Why it is no longer known what a table has to hold; "" if it is, or has not been known for long."""
        expected, reason = self.of(name)
        news = self.state is None or name in self.state.tables or name not in self.state.judged
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
        """The column that a table had at the last proof, or in an event since, and that no DDL has taken away."""
        if self.gap == RESET or self._lost_ddls():
            return ""
        known, table = self._known(name), self.tables[name]
        there = {column.name for column in table.rows.schema.columns}
        # of a merged table, what one shard lacks goes by the DDL of another one
        had = [] if known is None else columns_of(known.signature, in_sums=bool(table.rows.schema.origin))
        own = {} if self.state is None else self.state.own.get(name, {})
        if lost := next((column for column in had if column not in there and not own.get(column)), ""):
            return "" if self._about_columns(name) else lost
        changed = table.lost_column and [line for line in self._about_columns(name) if not creates(line)]
        return "" if changed or len(self._about(name)) > 1 else table.lost_column

    def _about_columns(self, name: TableName) -> list[DdlRecord]:
        """The DDLs of the interval that may have changed a table's columns: those about a shard of its, too."""
        here = self.tables[name].rows.schema.here
        place = {other for other, table in self.tables.items() if table.rows.schema.here == here} | {name}
        return [line for line in self._ddls() if not place.isdisjoint(touched(line, self.present.rows.keys() | place))]

    def _with_column(self, name: TableName, lacking: str) -> ExpectedTable:
        """What a table has to hold that lacks a column: it differs until it has the column."""
        known = self._known(name) or ExpectedTable(self._signature(name), {}, 0)
        had = () if lacking in columns_of(known.signature, in_sums=True) else (entry(lacking, "gone"),)
        return replace(known, signature=(*known.signature, *had), differs=True)

    def _without_columns(self, name: TableName, sums: ContentSums, lacking: str) -> ProofOf:
        reason = f"the column {lacking} is gone, and no DDL has dropped it"
        expected = self._with_column(name, lacking)
        return ProofOf(ProofVerdict.DIFFERENT, reason, sums, expected, rows_expected=rows_in(sums))

    def doubt(self, name: TableName) -> str:
        """Why a new base would be wrong: what was found, and not repaired or taken as right since.

        Also of tables whose rows a DDL has moved here.
        """
        origins, tables = {name}, {*self.present.rows, *({} if self.state is None else self.state.judged), name}
        for line in self._ddls():
            among = moved(line, tables)
            origins |= among if among & origins else set()
        own = self._own_doubt(name) or self._by_hand(name)
        return own or next(filter(None, map(self._own_doubt, sorted(origins))), "")

    def _by_hand(self, name: TableName) -> str:
        """Whether a table's columns were changed, and no DDL is about it, not even about an index."""
        known = self._known(name)
        if known is None or not known.signature or name not in self.tables or self.gap == RESET or self._lost_ddls():
            return ""
        now = self._signature(name)
        is_other = self._shared(name, known.signature) != self._shared(name, now) and known.signature[:1] == now[:1]
        if not is_other or self._about_columns(name):
            return ""
        return "" if any(changes_key(line, name) for line in self._ddls()) else _BY_HAND

    def _own_doubt(self, name: TableName) -> str:
        known = self._known(name)
        if known is None:
            last = None if self.state is None or self._is_made_anew(name) else self.state.judged.get(name)
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
        now = self._signature(name)
        if self._shared(name, known.signature, left_out=True) == self._shared(name, now, left_out=True):
            return ""
        return _OWN if self._shared(name, known.signature) == self._shared(name, now) else _OTHERS

    def _shared(self, name: TableName, signature: Sequence[str], *, left_out: bool = False) -> list[str]:
        """A signature without the columns that upstream was known to lack at the last proof.

        `left_out`: only without those that were in no sum: whether one is still there does not matter.
        """
        own = {} if self.state is None else self.state.own.get(name, {})
        parts = ((found, *parts_of(found)) for found in signature)
        return [
            found
            for found, column, is_column, told in parts
            if column not in own or (left_out and (told or not is_column))
        ]

    def _lost_ddls(self) -> str:
        lost = len(self.present.ddls) >= KEPT and self.present.ddls[-1].commit_ts >= self.low
        return "the DDL log no longer holds all DDLs since the last proof" if lost else ""

    def _about(self, name: TableName) -> list[DdlRecord]:
        """The DDLs of the interval that may have changed a table."""
        keys = self.present.rows.keys() | {name}
        other = name in self.tables and self.tables[name].has_other_key
        return [line for line in self._ddls() if name in touched(line, keys) or (other and changes_key(line, name))]

    def _ddls(self) -> Iterable[DdlRecord]:
        """The DDLs of the interval, the latest first; at the first proof those since this progress began."""
        if self.state is None:
            return since(self.present.ddls, int(self.present.progress.start_ts), frozenset())
        return since(self.present.ddls, self.low, self.state.settled)

    def _signature(self, name: TableName) -> tuple[str, ...]:
        return tuple(self.tables[name].rows.signature)

    def _known(self, name: TableName) -> ExpectedTable | None:
        return None if self.state is None or self._is_made_anew(name) else self.state.tables.get(name)

    def _is_made_anew(self, name: TableName) -> bool:
        """Whether it may rightly have been missing at the last proof, and a DDL has made it since."""
        one = None if self.state is None else self.state.tables.get(name)
        return one is not None and not one.signature and not one.differs and any(map(creates, self._about(name)))


def _why_untold(known: ExpectedTable | None, lost: str) -> str:
    """Why a table may be missing rightly. `lost`: why DDLs may be unknown; that excuses none that was gone before."""
    if known is None or known.signature:
        return lost
    return "" if known.differs else known.doubt


def _gone(one: ExpectedTable, why: str) -> ProofOf:
    """Of a table that is missing. `why`: why that may be right."""
    if not why:
        return ProofOf(ProofVerdict.DIFFERENT, DROPPED, None, replace(one, signature=(), differs=True))
    doubt = why if why.startswith(_MISSING) else f"{_MISSING}: {why}"
    reason = f"{doubt}; where that is right, `reconciler prove CONFIG --rebase` takes it as right"
    return ProofOf(ProofVerdict.UNPROVEN, reason, None, replace(one, signature=(), doubt=doubt), doubt=doubt)
