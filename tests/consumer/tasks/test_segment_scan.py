"""What a window in segments gives is what a window of each segment gives that reads the same messages."""

from bisect import bisect_left
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.codec.canal_json import Plain
from consumer.filters.tables import table_filter
from consumer.native import chosen
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import Report
from consumer.tasks.scans.choose_scan import reduction_of, scan_of
from consumer.tasks.scans.compiled_scan import CompiledReduction
from consumer.tasks.scans.scan import Scan
from consumer.tasks.scans.segment_scan import SegmentReduction, SegmentScan
from consumer.tasks.shuffle_blocks import decode_block
from ordering.errors import InputError
from ordering.events import Partition, TableName
from ordering.rows.bucketing import Spread, evenly
from ordering.rows.net_effect import KeyChange
from ordering.rows.segments import segments_of
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.consumer.tasks.test_batch_scan import HIGH, LAST, LOW, MESSAGES, USUAL
from tests.service.messages import at, encoded, row_value

PART = Partition("topic", 0)
SAME = (
    *("fingerprints", "contents", "more_fingerprints", "histogram", "released", "deletes", "tables", "handle_keys"),
    *("types", "keyless", "unfit", "stop", "counted_to", "ended_early", "watermark", "read", "empty_offsets"),
)
"""Of a report: what is the same whether the rest was read with it or not."""


def spec_of(part: Range, ends: list[int], *, whole: bool, native: bool) -> ReadSpec:
    low = CheckpointTs(at(LOW))
    window = Window(low, low, ResolvedTs(ends[-1]), ResolvedTs(ends[-1]), (part,))
    sizes: list[int | Spread] = [evenly(low, end, 2) if whole else 2 for end in ends]
    segments, keys = segments_of(low, ends, sizes), {TableName("d", "t"): ("id",)}
    buckets = segments[-1].first + segments[-1].buckets
    return ReadSpec(
        window, keys, table_filter(["d.*"]), buckets, message_bytes=1 << 20, segments=segments,
        native="auto" if native else False,
    )  # fmt: skip


def in_segments(spec: ReadSpec, runs: list[list[Plain]], part: Range) -> tuple[list[Report], list[list[KeyChange]]]:
    """The report and the rows of each segment."""
    reduction, _ = reduction_of(spec, 0)
    scan = scan_of(spec, part, reduction)
    assert isinstance(reduction, SegmentReduction)
    assert isinstance(scan, SegmentScan)
    rows: list[list[KeyChange]] = [[] for _ in spec.segments]
    for run in runs:
        if not scan.take(run):
            break
    for bucket, block in reduction.blocks():
        (number,) = [i for i, s in enumerate(spec.segments) if s.first < bucket <= s.first + s.buckets]
        rows[number] += decode_block(block).halves()
    return scan.reports(), [sorted(some) for some in rows]


def alone(spec: ReadSpec, number: int, runs: list[list[Plain]], part: Range) -> tuple[Report, list[KeyChange]]:
    """The report and the rows of a window that is one segment, and reads on to where all of them end."""
    own = spec.of(spec.segments[number])
    window = replace(own.window, resolved=spec.window.resolved, ahead=True)
    reduction = Reduction(replace(own, window=window))
    scan = Scan(reduction.spec, part if number == 0 else replace(part, counted_to=part.stop), reduction)
    for run in runs:
        if not scan.take(run):
            break
    return scan.finished(), sorted(reduction.all or reduction.net.drain())


def error_of(spec: ReadSpec, runs: list[list[Plain]], part: Range) -> str:
    try:
        in_segments(spec, runs, part)
    except InputError as error:
        return str(error)
    return ""


def error_at_once(spec: ReadSpec, runs: list[list[Plain]], part: Range) -> str:
    whole = replace(spec, segments=(), buckets=2)
    scan = Scan(whole, part, Reduction(whole))
    try:
        for run in runs:
            if not scan.take(run):
                break
    except InputError as error:
        return str(error)
    return ""


ENDS = st.sets(st.integers(LOW + 1, LAST), min_size=1, max_size=5).map(sorted)


@settings(max_examples=60)
@given(
    MESSAGES | USUAL | st.lists(USUAL, max_size=8).map(lambda some: [one for part in some for one in part]),
    ENDS, st.integers(1, 40), st.integers(0, 12), st.booleans(), st.booleans(),
)  # fmt: skip
def test_each_segment_is_as_a_window_of_its_own(
    messages: list[bytes], ends: list[int], length: int, counted_to: int, whole: bool, native: bool
) -> None:
    plain = [Plain(offset, message) for offset, message in enumerate(messages)]
    runs = [plain[i : i + length] for i in range(0, len(plain), length)]
    part = Range(PART, 0, len(messages), counted_to)
    spec = spec_of(part, [at(end) for end in ends], whole=whole, native=native)
    if error := error_at_once(spec, runs, part):
        assert error_of(spec, runs, part) == error
        return
    reports, rows = in_segments(spec, runs, part)
    for number, (report, some) in enumerate(zip(reports, rows, strict=True)):
        wanted, halves = alone(spec, number, runs, part)
        assert some == halves
        names = SAME if number == 0 else [name for name in SAME if name not in {"read", "empty_offsets"}]
        assert {name: getattr(report, name) for name in names} == {name: getattr(wanted, name) for name in names}
        assert (report.events, report.repeated, report.unjudged) == (
            (wanted.events, wanted.repeated, wanted.unjudged) if number == 0 else (0, b"", 0)
        )
        assert [ddl.position for ddl in report.ddls] == [
            ddl.position for ddl in wanted.ddls if number == 0 or ddl.commit_ts > spec.segments[number].low
        ]
        holds_back_at_least(report, wanted, [at(end) for end in ends])


@settings(max_examples=60)
@given(
    MESSAGES | USUAL | st.lists(USUAL, max_size=8).map(lambda some: [one for part in some for one in part]),
    ENDS, st.lists(st.integers(1, 40), min_size=2, max_size=4), st.integers(0, 12), st.booleans(),
)  # fmt: skip
def test_a_task_that_is_done_again_agrees_with_itself(
    messages: list[bytes], ends: list[int], lengths: list[int], counted_to: int, native: bool
) -> None:
    """However its messages come: in which runs is the client's matter, and differs from one reading to the next."""
    plain = [Plain(offset, message) for offset, message in enumerate(messages)]
    part = Range(PART, 0, len(messages), counted_to)
    spec = spec_of(part, [at(end) for end in ends], whole=False, native=native)
    if error_at_once(spec, [plain], part):
        return
    ways = [[plain[i : i + length] for i in range(0, len(plain), length)] for length in lengths]
    first, *others = [in_segments(spec, runs, part)[0] for runs in ways]
    assert all(other == first for other in others)


def holds_back_at_least(report: Report, wanted: Report, ends: list[int]) -> None:
    """What lies above a segment is left in Kafka; that more is left there costs only time."""
    if wanted.first_above is not None:
        assert report.first_above is not None
        assert report.first_above <= wanted.first_above
    if wanted.next_row_ts is not None:
        assert report.next_row_ts is not None
        assert report.next_row_ts <= wanted.next_row_ts
    in_segment = {name: bisect_left(ends, ts) for name, ts in report.above.items()}
    assert in_segment == {name: bisect_left(ends, ts) for name, ts in wanted.above.items()}


@pytest.mark.parametrize("native", [False, True])
def test_runs_of_a_segment_are_taken_at_once(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing would be gained by reading once; only the first rows of each table and segment come singly."""
    rows = [row_value("INSERT", "d.t", at(LOW + 1 + n // 100), {"id": n, "v": n}) for n in range(500)]
    plain = [Plain(offset, encoded(row)) for offset, row in enumerate(rows)]
    part, singly = Range(PART, 0, len(plain), 0), []
    release = Scan._release

    def counted(scan: Scan, *rest: object) -> None:
        singly.append(rest[0])
        release(scan, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Scan, "_release", counted)
    spec = spec_of(part, [at(LOW + 1 + n) for n in range(5)], whole=False, native=native)
    reports, found = in_segments(spec, [plain[:250], plain[250:]], part)
    assert [len(some) for some in found] == [report.released for report in reports] == [100] * 5
    assert len(singly) <= 5 * 20
    built = chosen("auto").core is not None
    assert isinstance(reduction_of(spec.of(spec.segments[0]), 0)[0], CompiledReduction) is (native and built)


def test_what_a_guess_gets_wrong_is_handed_on() -> None:
    """A column's value looks like the commitTs of another segment; and a row lies among those of another."""

    def odd(n: int, ts: int) -> bytes:
        return encoded({**row_value("INSERT", "d.t", ts, {"id": n, "v": n}), "zz": f'"commitTs":{at(LOW + 1)}'})

    stamps = [at(LOW + 1)] * 30 + [at(HIGH)] + [at(LOW + 1)] * 30
    plain = [Plain(n, odd(n, ts)) for n, ts in enumerate(stamps)]
    part = Range(PART, 0, len(plain), 0)
    _, rows = in_segments(spec_of(part, [at(LOW + 1), at(HIGH)], whole=False, native=True), [plain], part)
    assert [len(some) for some in rows] == [60, 1]
