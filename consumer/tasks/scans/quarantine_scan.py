"""A scan that quarantines messages: used where the quarantine is asked for, or holds something."""

from collections.abc import Iterable
from typing import Any

from consumer.codec import canal_json
from consumer.codec.row_images import TableKeys
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import UnfitRow, Unreadable
from consumer.tasks.scans.scan import Scan
from ordering.errors import InputError
from ordering.events import Kind, RowOp
from ordering.quarantine import Mode
from ordering.timestamps import MAX_TSO
from ordering.window import Range


class QuarantineScan(Scan):
    """Reports messages that can't be used, passes those that are quarantined, and notes later events of their rows."""

    def __init__(self, spec: ReadSpec, part: Range, reduction: Reduction) -> None:
        super().__init__(spec, part, reduction)
        self._watched, self._aside = spec.marks.watched, spec.marks.aside.get(part.partition, {})
        if self._aside:
            self._add = self._keep

    def take(self, messages: Iterable[Any], *, unpacked: bool = False) -> bool:
        """See `Scan.take`; what can't be used is reported."""
        if unpacked:
            return super().take(messages, unpacked=True)
        left = iter(messages)
        while True:
            try:
                return super().take(left)
            except InputError as error:
                self.report.unreadable.append(Unreadable(self.report.stop - 1, error.fact, error.hint))

    def _unfit(self, found: UnfitRow) -> None:
        """See `Scan._unfit`; such a row is quarantined too, once the window is known to hold it."""
        self.report.unreadable.append(Unreadable(found.offset, found.fact, found.hint))

    def _keep(self, key: bytes, order: int, content: bytes, back: int) -> None:
        """Release the event of a row; of one that is quarantined nothing, or that its row goes."""
        mode = self._aside.get(self.report.stop - 1)
        if mode is None:
            self.reduction.add(key, order, content, back)
        elif mode is Mode.HOLE:
            self.reduction.add(key, order & ~RowOp.WRITE, b"", 0)
            self.report.deletes += 1

    def _halves(
        self, offset: int, kind: Kind, message: canal_json.Envelope
    ) -> tuple[TableKeys, bytes, bytes | None, bytes] | None:
        found = super()._halves(offset, kind, message)
        if found is not None and self._watched and message.tidb is not None:
            for key in filter(None, found[1:3]):
                self._touch(key, message.tidb.commit_ts)
        return found

    def _touch(self, key: bytes, commit_ts: int) -> None:
        """Note that a row that is missing has a later event."""
        if commit_ts > self._watched.get(key, MAX_TSO):
            self.report.touched[key] = max(commit_ts, self.report.touched.get(key, 0))
