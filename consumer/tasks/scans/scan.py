"""What one task learns from its ranges: the survivors of the reduction, and a report for the driver.

Runs inside Spark's tasks, message by message: nothing here is done twice or for later. `Scan` is the state of one
range.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from consumer.codec import canal_json
from consumer.codec.canal_json import KINDS, envelope
from consumer.codec.row_images import TableKeys, unfit_images
from consumer.formats.message_format import Untaken, WaitingRow
from consumer.formats.sent_schema import SchemaIdentity
from consumer.kafka.account import Reached, check_account, epochs_upto
from consumer.large_messages.reference import reference
from consumer.storage.line_run import LineRun
from consumer.tasks.keyless import KeylessRows
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import AwaitedRow, RawDdl, RepeatedOf, Report, SentTypes, UnfitRow, histogram_of, sealed
from ordering.drift import FROM_A_ROW, FROM_NOTHING
from ordering.errors import InputError, UnfitRowError
from ordering.events import Kind, Position, RowOp, TableName
from ordering.rows.identity import content_hash, fingerprint, ordinal
from ordering.rows.split_update import split
from ordering.timestamps import MAX_TSO, CommitTs, utc_text
from ordering.window import Range
from sinks.rows.schema import spelled

ELSEWHERE = content_hash(b"elsewhere")
"""Stands for the content of a row that is not in its message: where it is says nothing about its meaning."""
_DELETE, _UPDATE = Kind.DELETE, Kind.UPDATE
"""Looked up once: an enum's member takes as long as a row's key."""
_UNDOCUMENTED = "not written by TiCDC as documented"
_FUTURE = (
    "compare this machine's clock with upstream's (limits.clock-ahead-seconds); if something else writes to the topic,"
    " the quarantine takes this message (quarantine.enabled)"
)
_SHOWN = 200
"""Characters of a name in a message."""


class Scan:
    """One range, message by message."""

    def __init__(self, spec: ReadSpec, part: Range, reduction: Reduction) -> None:
        self.spec, self.reduction = spec, reduction
        self.report = Report(part, part.start)
        self._low, self._base = spec.window.low, spec.window.base
        self._high = spec.window.high
        self._until = spec.window.until
        self._add = reduction.add
        self._ignored = spec.ignored
        self._count_from, self._count_to = part.counted_to, MAX_TSO
        self._keys: dict[tuple[str, str, tuple[str, ...] | None], TableKeys | None] = {}
        self._met: set[TableKeys] = set()
        self._found: set[TableKeys] = set()
        """Those that no message names: the target's."""
        self._typed: set[tuple[TableName, bool]] = set()
        self._awaited: dict[SchemaIdentity, AwaitedRow] = {}
        self._owners: dict[RepeatedOf, int] = {}
        self._keyless = KeylessRows(part.passed) if spec.force_replicate else None
        self._batches = spec.format.sends_batches
        self._fingerprints, self._contents, self._more = array("Q"), array("Q"), array("Q")
        self._repeated, self._commits = array("Q"), array("Q")

    def take(self, messages: Iterable[Any], *, unpacked: bool = False) -> bool:
        """Take messages; False once no further one of this range is needed. `unpacked`: they were compressed."""
        report, high, taken, limit = self.report, self._high, not unpacked, self.spec.message_bytes
        for message in messages:
            offset = message.offset()
            report.read += taken and offset >= report.stop
            report.stop = offset + 1
            try:
                value = message.value()
            except Untaken as untaken:
                self._untaken(offset, untaken.row)
                continue
            if value is not None and len(value) > limit:  # to read it would take a multiple of that
                self._uncommon(offset, value, unpacked=unpacked)
            try:
                event = envelope(value)
                kind = KINDS[event.type]
                commit_ts = event.tidb.commit_ts  # type: ignore[union-attr]
            except (*canal_json.UNREADABLE, KeyError, AttributeError, TypeError):
                if not self._uncommon(offset, value, unpacked=unpacked):
                    return False
                continue
            report.messages += 1
            report.size += len(value)
            if event.is_ddl or commit_ts <= 0:
                self._uncommon(offset, value, unpacked=unpacked)
                continue
            self._place(commit_ts, event)
            if commit_ts > high:
                self._above(offset, commit_ts, kind, event, value)
            report.events += self._count_from <= offset < self._count_to
            if commit_ts <= high:
                self._row(offset, commit_ts, kind, event, value)
        return True

    def messages_in(self, events: Sequence[Any]) -> int:
        """How many messages begin with these events, which are taken next: those of a batch share an offset."""
        if not self._batches:
            return len(events)
        offsets = {events.at} if isinstance(events, LineRun) else {event.offset() for event in events}
        return len(offsets) - (self.report.stop - 1 in offsets)

    def _untaken(self, offset: int, row: WaitingRow | None) -> None:
        """Take a message that tells of a table's schema, or a row whose schema is not known."""
        if row is None:
            return
        self.report.messages += 1
        if row.commit_ts > self._high:
            self._leave(offset, CommitTs(row.commit_ts), canal_json.Envelope("", row.database, row.table))
        new = self._count_from <= offset < self._count_to
        self.report.events += new
        if row.commit_ts > self._high or not self.spec.accepts(row.database, row.table):
            return
        if row.commit_ts > self._base:
            found = AwaitedRow(row.commit_ts, Position(*self.report.range.partition, offset), row)
            self._awaited[row.identity] = min(found, self._awaited.get(row.identity, found))
        else:
            self.report.unjudged += new

    def _row(self, offset: int, commit_ts: CommitTs, kind: Kind, event: canal_json.Envelope, value: bytes) -> None:
        """Take a row event that is not above the window."""
        report, new = self.report, self._count_from <= offset < self._count_to
        try:
            if self._ignored is not None and self._is_ignored(offset, kind, event, value):
                report.filtered += commit_ts > self._low or (new and commit_ts <= self._base)
            elif commit_ts > self._base:
                self._release(offset, commit_ts, kind, event, value)
            elif new:
                self._repeat(offset, commit_ts, kind, event)
        except UnfitRowError as error:
            if commit_ts > self._low:
                self._unfit(UnfitRow(commit_ts, offset, error.fact, error.hint))
            else:
                report.unjudged += new

    def _unfit(self, found: UnfitRow) -> None:
        """Note a row above the checkpoint that the schema does not fit."""
        known = self.report.unfit
        self.report.unfit = found if known is None else min(known, found)

    def _is_ignored(self, offset: int, kind: Kind, message: canal_json.Envelope, value: bytes) -> bool:
        """Whether event filters leave out this row event of a table that counts.

        Judged as it was sent: a key-changing UPDATE that TiCDC split is a DELETE and an INSERT, a raw one an UPDATE.
        """
        name = (message.database, message.table)
        if self._ignored is None or not self.spec.accepts(*name):
            return False
        return self._ignored.ignores_row(kind, name, value, lambda: Position(*self.report.range.partition, offset))

    def _place(self, commit_ts: CommitTs, message: canal_json.Envelope) -> None:
        """Note where a row without key lies in the order of passes, whatever this window does, or one before did."""
        keyless = self._keyless
        if keyless is not None and not message.primary_key and self.spec.accepts(message.database, message.table):
            keyless.seen(spelled(TableName(message.database, message.table), self.spec.handle_keys), commit_ts)

    def _above(
        self, offset: int, commit_ts: CommitTs, _kind: Kind, message: canal_json.Envelope, _value: bytes
    ) -> None:
        """Take a row event above the window."""
        self._leave(offset, commit_ts, message)

    def _leave(self, offset: int, commit_ts: CommitTs, message: canal_json.Envelope) -> None:
        """Note a row event that the window leaves in Kafka."""
        if not self.spec.accepts(message.database, message.table):
            return
        self._check_latest(commit_ts, Position(*self.report.range.partition, offset))
        report, name = self.report, self._spelled(message)
        report.above[name] = max(commit_ts, report.above.get(name, commit_ts))
        if report.first_above is None:
            report.first_above = offset
            if self.spec.window.to_end:
                self._count_to = offset + self._batches  # of a batch, what lies before it is counted already
        if report.next_row_ts is None or commit_ts < report.next_row_ts:
            report.next_row_ts = commit_ts

    def _check_latest(self, ts: int, position: Position) -> None:
        """Refuse an event of the future: no watermark would reach it, and its partition would be read from it on."""
        if ts > self.spec.latest:
            fact = f"an event says commitTs {ts} ({utc_text(ts)} UTC), which is in the future by this machine's clock"
            raise InputError(fact, where=str(position), hint=_FUTURE)

    def _uncommon(self, offset: int, value: bytes | None, *, unpacked: bool) -> bool:
        """Compressed messages, watermarks, DDLs, and whatever is wrong with a message."""
        position = Position(*self.report.range.partition, offset)
        if not unpacked and (plain := canal_json.plain(value, position, self.spec.message_bytes)) is not value:
            return self.take((canal_json.Plain(offset, plain),), unpacked=True)
        message = canal_json.decode(value, position)
        if message.type == canal_json.WATERMARK:
            return self._watermark(message, position)
        if message.is_ddl:
            self._ddl(message, position)
            return True
        canal_json.check_row(message, position)
        raise InputError("message can't be used", where=str(position))

    def _watermark(self, message: canal_json.Envelope, position: Position) -> bool:
        if position in self.spec.ignored_marks:
            return True
        ts = message.tidb.watermark_ts if message.tidb else 0
        if ts <= 0:
            raise InputError("watermark lacks watermarkTs", where=str(position), hint=_UNDOCUMENTED)
        self._meet_mark(ts, position.offset)
        if self._keyless is not None:
            self._keyless.watermark(position.offset, ts)
        # what an earlier reading counted is read again: a row in it may lie behind a watermark that promises it before
        self.report.ended_early = ts > self._until and position.offset + 1 >= self._count_from
        return not self.report.ended_early

    def _meet_mark(self, ts: int, offset: int) -> None:
        """Note a watermark, if it is the highest."""
        if ts > (self.report.watermark or 0):
            self.report.watermark, self.report.marked_at = ts, offset

    def _ddl(self, message: canal_json.Envelope, position: Position) -> None:
        ts = message.tidb.commit_ts if message.tidb else 0
        if ts <= 0:
            raise InputError("DDL lacks commitTs", where=str(position), hint=_UNDOCUMENTED)
        self._check_latest(ts, position)
        if ts < self._low:
            self.report.earlier_ddl = True
        else:
            self.report.ddls.append(RawDdl(position, ts, message.type, message.database, message.table, message.sql))

    def _keys_of(self, message: canal_json.Envelope) -> TableKeys | None:
        """How to read this table's handle key; None where the message does not count or nobody knows the key."""
        place = (message.database, message.table, message.primary_key)
        if place not in self._keys:
            self._keys[place] = self._table_keys(message)
        return self._keys[place]

    def _table_keys(self, message: canal_json.Envelope) -> TableKeys | None:
        if not self.spec.accepts(message.database, message.table):
            return None
        name = self._spelled(message)
        names = message.primary_key or self.spec.handle_keys.get(name, ())
        keys = TableKeys(name, names) if names else None
        if keys is not None and not message.primary_key:
            self._found.add(keys)
        return keys

    def _spelled(self, message: canal_json.Envelope) -> TableName:
        return spelled(TableName(message.database, message.table), self.spec.handle_keys)

    def _meet(self, keys: TableKeys, offset: int) -> None:
        """Note with which key a table's rows of this window are read."""
        self._met.add(keys)
        position = Position(*self.report.range.partition, offset)
        self.report.tables.setdefault(keys.name, position)
        self.report.handle_keys.setdefault(keys.name, {}).setdefault(keys.names, position)
        if keys in self._found:
            self.report.unnamed.setdefault(keys.name, position)
        self.reduction.names[keys.name] = list(keys.names)

    def _halves(
        self, offset: int, kind: Kind, message: canal_json.Envelope
    ) -> tuple[TableKeys, bytes, bytes | None, bytes] | None:
        """(keys, row key, key that the row left or None, image), or None if the message does not count."""
        try:
            keys = self._keys_of(message)
        except ValueError as error:
            where = str(Position(*self.report.range.partition, offset))
            table = f"{message.database}.{message.table}"[:_SHOWN]
            raise InputError(f"row of {table!r} can't be used: {error}", where=where) from None
        if keys is None:
            return None
        data, old = message.data, message.old
        if data is None or len(data) != 1 or (kind is _UPDATE and not old):
            canal_json.check_row(message, Position(*self.report.range.partition, offset))
        image = bytes(data[0])  # type: ignore[index]
        try:
            if kind is _UPDATE:
                return keys, *keys.keys(image, old[0]), image  # type: ignore[index]
            return keys, keys.key(image), None, image
        except canal_json.UNREADABLE as error:
            where = str(Position(*self.report.range.partition, offset))
            raise unfit_images(keys, [*data, *(old or ())], error, where) from None  # type: ignore[misc]

    def _note_types(self, typed: tuple[TableName, bool], offset: int, value: bytes) -> None:
        """Note what a message says of its table's columns. `typed`: the table, and whether the row may be a part."""
        types = canal_json.types_of(value, Position(*self.report.range.partition, offset))
        self._typed.add(typed)
        self.report.types.append(SentTypes(typed[0], offset, types))

    def _release(
        self, offset: int, commit_ts: CommitTs, kind: Kind, message: canal_json.Envelope, value: bytes
    ) -> None:
        """Take what the window holds. What a crash cut off from it is applied already: only its identity counts."""
        found = self._halves(offset, kind, message)
        if found is None:
            if self.spec.accepts(message.database, message.table):
                self._without_key(offset, commit_ts, kind, message, value)
            return
        keys, key, left, image = found
        order, left_order = split(kind, commit_ts, moved=left is not None)
        tidb: canal_json.Extension = message.tidb  # type: ignore[assignment]  # it told the commitTs
        content = b"" if kind is _DELETE else image
        partial = kind is _DELETE or tidb.only_handle_key or bool(tidb.claim_check_location)
        if commit_ts > self._low and (keys.name, partial) not in self._typed:
            self._note_types((keys.name, partial), offset, value)
        self._fingerprints.append(fingerprint(key, order))
        if content and partial:
            content = reference(tidb.claim_check_location, Position(*self.report.range.partition, offset))
            self._contents.append(ELSEWHERE)
        else:
            self._contents.append(content_hash(content))
        if commit_ts > self._low:
            self._commits.append(commit_ts)
            self._add(key, order, content, FROM_A_ROW if kind is _UPDATE and left is None else FROM_NOTHING)
            self.report.deletes += kind is _DELETE or left is not None
            if keys not in self._met:
                self._meet(keys, offset)
        if left is not None and left_order is not None:
            self._more.append(fingerprint(left, left_order))
            if commit_ts > self._low:
                self.reduction.add(left, left_order, b"", FROM_NOTHING)

    def _without_key(
        self, offset: int, commit_ts: CommitTs, kind: Kind, message: canal_json.Envelope, value: bytes
    ) -> None:
        """Take a row event of a table whose rows are only their content."""
        name = self._spelled(message)
        position = Position(*self.report.range.partition, offset)
        if self._keyless is None:
            self.report.keyless.setdefault(name, position)
            return
        if commit_ts > self._low and (name, kind is _DELETE) not in self._typed:
            self._note_types((name, kind is _DELETE), offset, value)
        prints = self._keyless.add(name, kind, message, position, keep=commit_ts > self._low)
        self._fingerprints.append(prints[0])
        self._contents.append(0)
        self._more.extend(prints[1:])
        if commit_ts > self._low:
            self._commits.append(commit_ts)
            self.report.tables.setdefault(name, position)
            if message.tidb is not None and message.tidb.blurred:
                self.report.blurred.setdefault(name, (message.tidb.blurred, position))

    def _repeat(self, offset: int, commit_ts: CommitTs, kind: Kind, message: canal_json.Envelope) -> None:
        found = self._halves(offset, kind, message)
        if found is None and self._keyless is not None and self.spec.accepts(message.database, message.table):
            position = Position(*self.report.range.partition, offset)
            own, before = self._keyless.repeated(self._spelled(message), kind, message, position)
            self._repeated.extend((own, before, commit_ts, offset, self._owner(message)))
            return
        if found is None:
            self.report.unjudged += self.spec.accepts(message.database, message.table)
            return
        write = fingerprint(found[1], ordinal(commit_ts, RowOp.WRITE))
        # where one transaction deletes and writes a key, the DELETE is subsumed: the WRITE proves it too
        first = fingerprint(found[1], split(kind, commit_ts, moved=False)[0])
        self._repeated.extend((first, write, commit_ts, offset, self._owner(message)))

    def _owner(self, message: canal_json.Envelope) -> int:
        """The index of what a repeated event is of."""
        name = self._spelled(message)
        of = RepeatedOf(name, bool(message.primary_key), self._ignored is not None)
        return self._owners.setdefault(of, len(self._owners))

    def account(self, reached: Reached) -> None:
        """Raise SourceUnreachableError unless each offset of the range was taken or is known to hold nothing."""
        report = self.report
        report.epochs, report.content = epochs_upto(reached.epochs, report.stop), reached.content
        if not report.ended_early and report.range.messages:
            check_account(report.range, reached, report.read)

    def finished(self) -> Report:
        """The report, once the range has been read."""
        return sealed(self.unsealed(), self.reduction.task)

    def reports(self) -> list[Report]:
        """The reports of all segments of the window: one, where it is read as a whole."""
        return [self.finished()]

    def unsealed(self) -> Report:
        """The report as it is now."""
        report = self.report
        if not report.ended_early:
            report.stop = report.range.stop
        report.counted_to = min(report.stop, self._count_to)
        report.released = len(self._commits)
        report.fingerprints, report.contents = self._fingerprints.tobytes(), self._contents.tobytes()
        report.more_fingerprints, report.repeated = self._more.tobytes(), self._repeated.tobytes()
        report.repeated_of, report.awaited = list(self._owners), list(self._awaited.values())
        report.histogram = histogram_of(self._commits, self.spec.tuning.large_transaction)
        if self._keyless is not None:
            report.copies, report.watermarks = self._keyless.found(), self._keyless.watermarks.tobytes()
            report.equal_rows = self._keyless.equal_rows()
        return report
