"""A scan that takes a run of usual messages at once: what nearly all runs are, at two thirds of the time.

A run is usual if it holds nothing but row events of the window, whole and with a known handle key, and watermarks that
do not end the range. All that is unusual, or wrong, is left to `Scan`, message by message: what both take is the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from consumer.codec import canal_json
from consumer.codec.canal_json import envelope
from consumer.codec.row_images import TableKeys
from consumer.formats.message_format import Untaken
from consumer.tasks.scans.scan import Scan
from ordering.drift import FROM_A_ROW, FROM_NOTHING
from ordering.errors import InputError
from ordering.events import Position, RowOp, TableName
from ordering.rows.identity import content_hashes, fingerprint, fingerprints

_UNUSUAL = (*canal_json.UNREADABLE, InputError, Untaken, KeyError, AttributeError, TypeError, ValueError, IndexError)
_DELETE, _WRITE = int(RowOp.DELETE), int(RowOp.WRITE)
_ONE_HALF = {"INSERT", "DELETE"}


@dataclass(slots=True)
class _Run:
    """The rows of a run, column by column, and the halves of keys that UPDATEs left."""

    keys: list[bytes] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    images: list[bytes] = field(default_factory=list)
    backs: list[int] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    left: list[tuple[bytes, int]] = field(default_factory=list)
    tables: dict[TableKeys, int] = field(default_factory=dict)
    """The offset of each table's first row, by the key with which it is read."""
    typed: dict[tuple[TableName, bool], tuple[int, bytes]] = field(default_factory=dict)
    """Offset and message of each table's first row that is whole, and of its first that is a DELETE."""
    size: int = 0
    watermark: int = 0
    marked_at: int = 0


class BatchScan(Scan):
    """For windows of net effects or whole transactions, without event filters and with a key for each row."""

    def take(self, messages: Iterable[Any], *, unpacked: bool = False) -> bool:
        """See `Scan.take`."""
        some = messages if isinstance(messages, list) else list(messages)
        run = None if unpacked or not some else self._usual(some)
        if run is None:
            return super().take(some, unpacked=unpacked)
        self.report.read += self.messages_in(some)
        self._took(run, some[-1].offset() + 1)
        return True

    def _usual(self, messages: Sequence[Any]) -> _Run | None:
        """The rows of a run; None if something in it is not usual. Changes nothing."""
        if not (self._count_from <= messages[0].offset() and messages[-1].offset() < self._count_to):
            return None
        try:
            values = [message.value() for message in messages]
            return self._rows(messages, values) if max(map(len, values)) <= self.spec.message_bytes else None
        except _UNUSUAL:
            return None

    def _rows(self, messages: Sequence[Any], values: Sequence[bytes]) -> _Run | None:
        """See `_usual`. One long loop: it runs once a message, and a call takes as long as a row's key."""
        run, low, high = _Run(), max(self._low, self._base), self._high
        add_key, add_order = run.keys.append, run.orders.append
        add_image, add_commit, add_back = run.images.append, run.commits.append, run.backs.append
        table: Any = None
        keys: Any = None
        typed: list[Any] = [None, None]
        for message, value in zip(messages, values, strict=True):
            event: Any = envelope(value)
            kind, tidb = event.type, event.tidb
            if kind == canal_json.WATERMARK:
                if not self._meets(run, tidb.watermark_ts, message.offset()):
                    return None
                continue
            commit_ts = tidb.commit_ts
            if not low < commit_ts <= high or event.is_ddl or tidb.claim_check_location or tidb.only_handle_key:
                return None
            run.size += len(value)
            if (event.table, event.database, event.primary_key) != table:
                table, keys = (event.table, event.database, event.primary_key), self._keys_of(event)
                run.tables.setdefault(keys, message.offset())
            (data,) = event.data
            image = bytes(data)
            back = FROM_NOTHING
            if kind == "UPDATE":
                key, left = keys.keys(image, event.old[0])
                if left is None:
                    back = FROM_A_ROW
                else:
                    run.left.append((left, commit_ts << 1 | _DELETE))
            elif kind in _ONE_HALF:
                key = keys.key(image)
            else:
                return None
            add_key(key)
            gone = kind == "DELETE"
            if keys is not typed[gone]:
                typed[gone] = keys
                run.typed.setdefault((keys.name, gone), (message.offset(), value))
            add_order(commit_ts << 1 | (_DELETE if gone else _WRITE))
            add_image(b"" if gone else image)
            add_commit(commit_ts)
            add_back(back)
        return run

    def _meets(self, run: _Run, watermark: int, offset: int) -> bool:
        """Note a watermark of a run; False for one that is not usual."""
        ignored = self.spec.ignored_marks
        if not 0 < watermark <= self._until:
            return False
        if ignored and Position(*self.report.range.partition, offset) in ignored:
            return False
        if watermark > run.watermark:
            run.watermark, run.marked_at = watermark, offset
        return True

    def _took(self, run: _Run, stop: int) -> None:
        """Add a run to the report and the reduction."""
        report = self.report
        report.stop = stop
        report.messages += len(run.keys)
        report.events += len(run.keys)
        report.size += run.size
        report.deletes += run.images.count(b"") + len(run.left)
        if run.watermark:
            self._meet_mark(run.watermark, run.marked_at)
        for keys, offset in run.tables.items():
            if keys not in self._met:
                self._meet(keys, offset)
        for typed, (offset, value) in run.typed.items():
            if typed not in self._typed:
                self._note_types(typed, offset, value)
        self._fingerprints.extend(fingerprints(run.keys, run.orders))
        self._contents.extend(content_hashes(run.images))
        self._commits.extend(run.commits)
        self.reduction.add_all(run.keys, run.orders, run.images, run.backs)
        for key, order in run.left:
            self._more.append(fingerprint(key, order))
            self.reduction.add(key, order, b"", FROM_NOTHING)
