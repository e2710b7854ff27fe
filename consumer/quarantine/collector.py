"""What of a changefeed is quarantined, and what is about to be: `ordering.quarantine` says what that means.

What is found in a round waits here until a transaction moves the progress past it: undecodable messages are reported by
the reading tasks, a refused row ends the attempt at the window, which is then started over without it. Messages that
were quarantined earlier and are read again, for their partition's offset has not passed them, stay as they are.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import structlog

from consumer.codec import canal_json
from consumer.config.model import Config
from consumer.formats.message_format import MessageFormat
from consumer.quarantine.culprit import Refusal
from consumer.quarantine.dead_letter_topic import DeadLetterTopic
from consumer.quarantine.held_row import is_row_of
from consumer.quarantine.table_fate import Fate, fate_of
from consumer.source.port import ChangeSource
from consumer.tasks.report import Report, Unreadable
from ordering.errors import InputError, TableMismatchError
from ordering.events import Partition, Position, TableName
from ordering.quarantine import UNDECIDED, Changes, Marks, Mode, Quarantined, QuarantineState
from ordering.rows.identity import key_values, table_of
from sinks.bookkeeping.ddl_log import KEPT, reaches_back
from sinks.target import Target
from sinks.wording import plural

log = structlog.get_logger()
_ANEW = {QuarantineState.RETRIED, QuarantineState.REPLAYED, QuarantineState.SUPERSEDED}
"""What is held again if it is refused again: it can only be read again after the progress was set back."""


class RowQuarantined(Exception):  # noqa: N818 no error: the window is tried again
    """A row was quarantined, in the midst of a window."""


class Quarantine:
    """The quarantine of the changefeed that this process leads."""

    def __init__(self, config: Config, target: Target, source: ChangeSource, form: MessageFormat) -> None:
        self._section, self._target, self._source = config.quarantine, target, source
        self._form, self._largest = form, config.limits.message_bytes
        self._changefeed = config.changefeed
        self._known = {one.position: one for one in target.quarantine.all(config.changefeed)}
        self._new: dict[Position, Quarantined] = {}
        self._modes: dict[Position, Mode] = {}
        self._later: dict[Position, int] = {}
        self._same: set[Position] = set()
        """Positions whose message was compared with the one that was quarantined there."""
        self._outlet = DeadLetterTopic(config)

    @property
    def marks(self) -> Marks:
        """What reading tasks have to know now."""
        aside: dict[Partition, dict[int, Mode]] = {}
        for position, mode in self._modes.items():
            aside.setdefault(Partition(position.topic, position.partition), {})[position.offset] = mode
        return Marks(self._section.enabled or bool(self._known), aside, self._watched())

    def _watched(self) -> dict[bytes, int]:
        watched: dict[bytes, int] = {}
        for one in self._missing():
            watched[one.row or b""] = max(one.commit_ts or 0, watched.get(one.row or b"", 0))
        return watched

    def _missing(self) -> list[Quarantined]:
        """Whose rows are not in the target."""
        found = {**self._known, **self._new}
        return [one for one in found.values() if one.state is QuarantineState.HELD and one.row is not None]

    def takes(self, refusal: Refusal) -> bool:
        """Quarantine a refused row's message, with its repetitions; whether the window may be tried again.

        Not where no message is known to be at fault, and not for tables whose rows are only their content. Raises
        InputError if the quarantine is full.
        """
        place = refusal.place
        if not self._section.enabled or place is None or not place.row:
            return False
        # a repetition may have arrived since the last attempt; where none is new, this did not help
        new = [copy for copy in refusal.copies if copy.position not in self._modes]
        if isinstance(refusal.failure, TableMismatchError) or not new:
            return False
        mode = Mode.SKIP if place.deletes or not self._can_be_there(place.row) else Mode.HOLE
        for copy in new:
            self._modes[copy.position] = mode
            self._hold(copy.position, refusal.failure.in_a_line(), copy.commit_ts, copy.row, copy.name)
        return True

    def _can_be_there(self, row: bytes) -> bool:
        """Whether a row with this key can be in the target: one that its columns can't hold is not."""
        schema = self._target.catalog().get(table_of(row))
        columns = [] if schema is None else [c for name in schema.handle_key if (c := schema.column(name)) is not None]
        try:
            self._target.encoder.encode(columns, [key_values(row)])
        except ValueError:
            return False
        return True

    def met(self, reports: Iterable[Report]) -> None:
        """Take what reading tasks report. Raises InputError for what may not be quarantined."""
        for report in reports:
            for one in report.unreadable:
                self._unreadable(Position(*report.range.partition, one.offset), one)
            self._supersede(report)

    def _unreadable(self, position: Position, one: Unreadable) -> None:
        is_known = self._is_known(position)
        was_retried = is_known and self._known[position].state is QuarantineState.RETRIED
        if not self._section.enabled and (was_retried or not is_known):
            raise InputError(one.fact, where=str(position), hint=one.hint)
        self._hold(position, one.fact)

    def _is_known(self, position: Position) -> bool:
        """Whether this very message was quarantined before: in a topic created again another one has its offset.

        Raises InputError where the other one is held still: its bytes would be lost.
        """
        known = self._known.get(position)
        if known is None or position in self._same:
            return known is not None
        there, kept = self._source.message(position), self._target.quarantine.message(self._changefeed, position)
        if kept is not None and (there.key, there.value) == (kept.key, kept.value):
            self._same.add(position)
            return True
        if known.state is QuarantineState.HELD:
            hint = "`reconciler quarantine replay`, or `discard`, that one; then run again"
            fact = "a message of a topic that is gone is held under the position of one that can't be applied"
            raise InputError(fact, where=str(position), hint=hint)
        return False

    def _supersede(self, report: Report) -> None:
        """Note whose row was written or deleted since: by an event of the same table, not only of its name."""
        touched = report.touched
        if not touched:
            return
        log = self._target.ddl_log.latest(self._changefeed, KEPT)
        for one in self._missing():
            row, commit_ts = one.row or b"", one.commit_ts or 0
            later = touched.get(row, 0)
            if later > commit_ts and self._is_known_by(one, report.handle_keys):
                change = fate_of(log, table_of(row), commit_ts, later)
                is_known = reaches_back(log, commit_ts)  # else the table may have had another name then
                if is_known and (change is None or change.fate in (Fate.CHANGED, Fate.EMPTIED)):
                    self._later[one.position] = later

    def _is_known_by(self, one: Quarantined, keys: Mapping[TableName, Collection[tuple[str, ...]]]) -> bool:
        """Whether rows are told apart by the key by which they were when it was held: else the event is of another."""
        table = table_of(one.row or b"")
        kept = self._target.quarantine.message(self._changefeed, one.position)
        if kept is None or table not in keys:  # held in this session, or met by events alone that were applied before
            return True
        try:
            message = canal_json.decode(self._form.canal(kept.value, one.position, self._largest), one.position)
        except InputError:
            return True
        return any(is_row_of(message, one.row or b"", table, key) for key in keys[table])

    def _hold(
        self, position: Position, reason: str, commit_ts: int | None = None, row: bytes | None = None, about: str = ""
    ) -> None:
        if position in self._new or (self._is_known(position) and self._known[position].state not in _ANEW):
            return
        undecided = sum(one.state in UNDECIDED for one in self._known.values())
        if undecided + len(self._new) >= self._section.limit:
            raise self._full(undecided, position, reason)
        kept = self._source.message(position)
        log.warning("message quarantined", where=str(position), reason=reason[:300], about=about)
        bytes_ = kept.timestamp, kept.key, kept.value
        self._new[position] = Quarantined(position, reason, *bytes_, commit_ts, row, about)

    def _full(self, undecided: int, position: Position, reason: str) -> InputError:
        """Messages of the window that was under way are not stored: nobody can decide about them yet."""
        limit = f"quarantine.limit = {self._section.limit}"
        there = f"{plural(undecided, 'message')} in it {'is' if undecided == 1 else 'are'} undecided"
        fact = f"the quarantine is full ({limit}): {there}"
        hint = "fix the cause, then `reconciler quarantine replay` or `discard`, or raise quarantine.limit"
        if self._new:
            fact += f", and {len(self._new)} more of this window could not be stored with it"
        if not undecided:
            hint = "look at them with `reconciler tail`; to go on, raise quarantine.limit above what this window holds"
        return InputError(f"{fact}; the next one: {reason}", where=str(position), hint=hint)

    def due(self, checkpoint: int) -> Changes:
        """What has to be saved together with a progress that moves to this checkpoint."""
        held = tuple(one for one in self._new.values() if one.commit_ts is None or one.commit_ts <= checkpoint)
        later = tuple((p, QuarantineState.SUPERSEDED, f"by {ts}") for p, ts in self._later.items() if ts <= checkpoint)
        self._outlet.send(held)
        return Changes(held, later)

    def total(self, changes: Changes) -> int:
        """How many messages have been quarantined, once these changes are saved."""
        return len(self._known.keys() | {one.position for one in changes.held})

    def committed(self, changes: Changes) -> None:
        """These changes are saved."""
        for one in changes.held:
            # the bytes are in the target now
            self._known[one.position] = replace(one, key=None, value=None)
            self._same.add(one.position)
            del self._new[one.position]
            self._modes.pop(one.position, None)
        for position, state, note in changes.decided:
            self._known[position] = replace(self._known[position], state=state, note=note)
            del self._later[position]
