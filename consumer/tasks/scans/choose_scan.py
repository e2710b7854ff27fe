"""Which scan and which reduction a reading task uses: the compiled core's, the quick one, or one that quarantines."""

from consumer.formats.canal_json import CanalJson
from consumer.formats.simple.protocol import Simple
from consumer.native import chosen
from consumer.native.kafka_client import kafka_library
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.scans.batch_scan import BatchScan
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from consumer.tasks.scans.quarantine_scan import QuarantineScan
from consumer.tasks.scans.scan import Scan
from consumer.tasks.scans.segment_scan import SegmentReduction, SegmentScan
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
