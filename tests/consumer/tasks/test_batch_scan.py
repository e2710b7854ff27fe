"""What a run of usual messages gives at once is what it gives message by message."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.codec.canal_json import Plain
from consumer.filters.tables import table_filter
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import Report
from consumer.tasks.scans.batch_scan import BatchScan
from consumer.tasks.scans.scan import Scan
from ordering.errors import InputError
from ordering.events import Partition, TableName
from ordering.rows.bucketing import evenly
from ordering.rows.net_effect import KeyChange
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.service.messages import at, ddl, encoded, lz4, row_value, value_of

LOW, HIGH, LAST = 2, 8, 10
NUMBERS = st.integers(0, LAST)
NAMES = st.sampled_from(["d.t", "d.t", "d.u", "other.t", "d.keyless"])
KEYS = st.sampled_from(["1", "2", 'a"b', "é"])


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Row events of the window, mostly."""
    ts, kind, name = (
        at(draw(st.integers(LOW + 1, HIGH) | NUMBERS)),
        draw(st.sampled_from(["INSERT", "UPDATE", "DELETE"])),
        draw(NAMES),
    )
    key = () if name == "d.keyless" else draw(st.sampled_from([("id",), ("id",), ("id", "v")]))
    new, old = {"id": draw(KEYS), "v": draw(KEYS)}, {"id": draw(KEYS), "v": draw(KEYS)}
    return row_value(kind, name, ts, new, old if kind == "UPDATE" else None, key)


@st.composite
def odd(draw: st.DrawFn) -> bytes:
    """What is not usual, or not even right."""
    row = draw(rows())
    return draw(st.sampled_from([
        encoded(value_of("TIDB_WATERMARK", "", at(0), _tidb={"watermarkTs": at(draw(NUMBERS))})),
        encoded(value_of("TIDB_WATERMARK", "", at(0))),
        encoded({**row, "_tidb": {**row["_tidb"], "onlyHandleKey": True}}),
        encoded({**row, "_tidb": {**row["_tidb"], "claimCheckLocation": "s3://a/b"}}),
        encoded({**row, "_tidb": {}}),
        encoded({**row, "_tidb": None}),
        encoded({**row, "data": []}),
        encoded({**row, "data": row["data"] * 2}),
        encoded({**row, "data": [{"v": "1"}]}),
        encoded({**row, "old": None}),
        encoded({**row, "type": "UPSERT"}),
        ddl("d.t", draw(NUMBERS), "DROP TABLE t").value,
        lz4(encoded(row)),
        encoded(row)[:-3],
        b"",
    ]))  # fmt: skip


MESSAGES = st.lists(rows().map(encoded) | rows().map(encoded) | rows().map(encoded) | odd(), max_size=12)
USUAL = st.lists(rows().map(encoded), min_size=1, max_size=12)


def taken(
    kind: Callable[..., Scan], runs: list[list[Plain]], part: Range, *, whole: bool
) -> tuple[Report, list[KeyChange], str]:
    """The report, the halves and the error of a scan of these runs."""
    low, high = CheckpointTs(at(LOW)), ResolvedTs(at(HIGH))
    window = Window(low, low, high, high, (part,))
    spread = evenly(low, high, 2) if whole else None
    handle_keys = {TableName("d", "t"): ("id",)}
    spec = ReadSpec(window, handle_keys, table_filter(["d.*"]), buckets=2, message_bytes=1 << 20, spread=spread)
    reduction = Reduction(spec)
    scan, error = kind(spec, part, reduction), ""
    try:
        for run in runs:
            if not scan.take(run):
                break
    except InputError as raised:
        error = str(raised)
    return scan.finished(), sorted(reduction.all or reduction.net.drain()), error


@settings(max_examples=300)
@given(MESSAGES | USUAL, st.integers(1, 12), st.integers(0, 12), st.booleans())
def test_at_once_is_as_one_by_one(messages: list[bytes], length: int, counted_to: int, whole: bool) -> None:
    plain = [Plain(offset, message) for offset, message in enumerate(messages)]
    runs = [plain[i : i + length] for i in range(0, len(plain), length)]
    part = Range(Partition("topic", 0), 0, len(messages), counted_to)
    assert taken(BatchScan, runs, part, whole=whole) == taken(Scan, runs, part, whole=whole)


def test_usual_runs_are_taken_at_once() -> None:
    """Else nothing would be gained, and the test above would tell nothing."""
    messages = [encoded(row_value("INSERT", "d.t", at(LOW + 1), {"id": n, "v": n})) for n in range(3)]
    messages.append(encoded(value_of("TIDB_WATERMARK", "", at(0), _tidb={"watermarkTs": at(HIGH)})))

    class Alone(BatchScan):
        def _release(self, *_: object) -> None:
            raise AssertionError("taken one by one")

    part = Range(Partition("topic", 0), 0, 4, 0)
    report, halves, _ = taken(
        Alone, [[Plain(offset, message) for offset, message in enumerate(messages)]], part, whole=False
    )
    assert (report.events, report.released, report.watermark, len(halves)) == (3, 3, at(HIGH), 3)


@pytest.mark.parametrize("kind", [Scan, BatchScan])
@pytest.mark.parametrize("length", [1, 4])
def test_a_range_goes_on_behind_a_watermark_at_the_end_of_its_window(kind: type[Scan], length: int) -> None:
    """It does not promise the DDLs of its own commitTs (R6), and a run at once passes it: one by one has to, too."""

    def watermark(ts: int) -> bytes:
        return encoded(value_of("TIDB_WATERMARK", "", at(0), _tidb={"watermarkTs": at(ts)}))

    messages = [watermark(HIGH), ddl("d.t", HIGH, "DROP TABLE t").value, watermark(HIGH + 1), watermark(HIGH + 2)]
    plain = [Plain(offset, message) for offset, message in enumerate(messages)]
    runs = [plain[i : i + length] for i in range(0, len(plain), length)]
    report, _, error = taken(kind, runs, Range(Partition("topic", 0), 0, len(plain), 0), whole=False)
    assert [found.commit_ts for found in report.ddls] == [at(HIGH)]
    assert (report.ended_early, report.watermark, report.stop, error) == (True, at(HIGH + 1), 3, "")
