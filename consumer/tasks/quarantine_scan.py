"""A scan that quarantines messages: used where the quarantine is asked for, or holds something."""

from collections.abc import Iterable
from typing import Any

from consumer.codec import canal_json
from consumer.codec.row_images import TableKeys
from consumer.formats.canal_json import CanalJson
from consumer.formats.simple.protocol import Simple
from consumer.native import chosen
from consumer.native.kafka_client import kafka_library
from consumer.tasks.batch_scan import BatchScan
from consumer.tasks.compiled_scan import CompiledReduction, CompiledScan
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import UnfitRow, Unreadable
from consumer.tasks.scan import Scan
from consumer.tasks.segment_scan import SegmentReduction, SegmentScan
from ordering.errors import InputError
from ordering.events import Kind, RowOp
from ordering.quarantine import Mode
from ordering.timestamps import MAX_TSO
from ordering.window import Range


def reduction_of(spec: ReadSpec, task: int) -> tuple[Reduction | SegmentReduction, str]:
    """The reduction of a task, and why it is not the compiled core's where that could do it.

    Raises ConfigError where the core is demanded and missing.
    """
    if not spec.segments:
        return _reduction_of(spec, task)
    found = [_reduction_of(spec.of(segment), task) for segment in spec.segments]
    return SegmentReduction(spec, [reduction for reduction, _ in found]), found[0][1]


def takes_in_place(spec: ReadSpec) -> bool:
    """Whether the compiled core, where it is there, takes most messages as they were sent."""
    return _is_compiled(spec) and isinstance(spec.format, CanalJson | Simple) and not spec.format.sends_batches


def _is_compiled(spec: ReadSpec) -> bool:
    return not (spec.whole_transactions or spec.marks.tolerant) and _is_usual(spec)


def _reduction_of(spec: ReadSpec, task: int) -> tuple[Reduction, str]:
    if not _is_compiled(spec):
        return Reduction(spec, task), ""
    core, why = chosen(spec.native)
    if core is not None:
        return CompiledReduction(spec, core, task), kafka_library().why
    return Reduction(spec, task), "" if spec.native is False else why


def scan_of(spec: ReadSpec, part: Range, reduction: Reduction | SegmentReduction) -> Scan | SegmentScan:
    """The scan of a range: the compiled core's or the quick one where nothing is quarantined."""
    if isinstance(reduction, SegmentReduction):
        return SegmentScan(spec, part, reduction)
    if isinstance(reduction, CompiledReduction):
        return CompiledScan(spec, part, reduction)
    if spec.marks.tolerant:
        return QuarantineScan(spec, part, reduction)
    return (BatchScan if _is_usual(spec) else Scan)(spec, part, reduction)


def _is_usual(spec: ReadSpec) -> bool:
    """Whether runs of messages may be taken at once."""
    return spec.ignored is None and not spec.force_replicate


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
