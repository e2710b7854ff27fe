"""Random histories through event filters: the target is what an applier in safe mode makes of the events that are left.

The applier is TiCDC's MySQL sink in safe mode, in four lines: INSERT replaces, UPDATE deletes the old row and replaces,
DELETE deletes what is there (TiCDC documentation, "Replicate to MySQL-compatible databases", safe-mode).
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.codec.canal_json import Plain
from consumer.config.changefeed_filter import read_filter
from consumer.config.table_sections import EventFilterSection, FilterSection
from consumer.filters.tables import table_filter
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.scans.scan import Scan
from ordering.events import Partition, RowOp
from ordering.rows.identity import key_values
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from sinks.rows.schema import Catalog

Rows = dict[str, str]
COUNT = 30


@dataclass(frozen=True)
class Change:
    """A row event: (id, v) before and after it."""

    kind: str
    old: tuple[str, str] | None
    new: tuple[str, str] | None

    def message(self, commit_ts: int, *, whole_old: bool) -> bytes:
        new = dict(zip(("id", "v"), self.new or self.old or (), strict=True))
        old = dict(zip(("id", "v"), self.old or (), strict=False))
        if not whole_old:
            old = {name: value for name, value in old.items() if value != new[name]}
        return json.dumps({
            "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "type": self.kind, "data": [new],
            "old": [old] if self.kind == "UPDATE" else None, "mysqlType": {"id": "int", "v": "int"},
            "_tidb": {"commitTs": commit_ts},
        }).encode()  # fmt: skip

    def is_left_out(self, wanted: dict[str, Any]) -> bool:
        limit = wanted["limit"]
        if self.kind.lower() in wanted["kinds"]:
            return True
        if self.kind == "UPDATE":
            assert self.old is not None
            assert self.new is not None
            return int(self.old[1]) > limit or int(self.new[1]) == limit
        row = self.new or self.old
        assert row is not None
        return int(row[1]) < limit if self.kind == "INSERT" else int(row[1]) == limit

    def apply(self, rows: Rows) -> None:
        if self.old is not None:
            rows.pop(self.old[0], None)
        if self.new is not None:
            rows[self.new[0]] = self.new[1]


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    """Changes of an upstream table with few keys, one a transaction; raw UPDATEs that change the key among them."""
    upstream: Rows = {}
    found = []
    keys, values = st.sampled_from("1234"), st.sampled_from("012345")
    for _ in range(draw(st.integers(1, COUNT))):
        key, value = draw(keys), draw(values)
        if key not in upstream:
            change = Change("INSERT", None, (key, value))
        elif draw(st.booleans()):
            other = draw(keys)
            change = Change("UPDATE", (key, upstream[key]), (key if other in upstream else other, value))
        else:
            change = Change("DELETE", (key, upstream[key]), None)
        change.apply(upstream)
        found.append(change)
    return found


def filters_of(wanted: dict[str, Any]) -> FilterSection:
    limit = wanted["limit"]
    one = EventFilterSection.model_validate({
        "matcher": ["d.t"], "ignore-event": sorted(wanted["kinds"]), "ignore-insert-value-expr": f"v < {limit}",
        "ignore-delete-value-expr": f"v = {limit}", "ignore-update-old-value-expr": f"v > {limit}",
        "ignore-update-new-value-expr": f"v = '{limit}'",
    })  # fmt: skip
    return FilterSection.model_validate({"event-filters": [one]})


def applied(messages: list[bytes], low: int, high: int, wanted: FilterSection, rows: Rows) -> int:
    """Read one window into the rows; how many events were left out."""
    part = Range(Partition("topic", 0), 0, len(messages), 0)
    window = Window(CheckpointTs(low), CheckpointTs(low), ResolvedTs(high), ResolvedTs(high), (part,))
    ignored = read_filter(wanted).for_rows(Catalog({}))
    spec = ReadSpec(window, {}, table_filter(["*.*"]), buckets=1, message_bytes=1 << 20, ignored=ignored)
    reduction = Reduction(spec)
    scan = Scan(spec, part, reduction)
    assert scan.take([Plain(offset, message) for offset, message in enumerate(messages)])
    halves = sorted(reduction.net.drain(), key=lambda half: half[1] & RowOp.WRITE)  # deletes before writes
    for key, order, image, _ in halves:
        (row,) = key_values(key)
        rows.pop(str(row), None)
        if order & RowOp.WRITE:
            rows[str(row)] = json.loads(image)["v"]
    return scan.finished().filtered


@pytest.mark.by_turns
@settings(max_examples=200)
@given(
    history=histories(),
    wanted=st.fixed_dictionaries({
        "kinds": st.sets(st.sampled_from(["insert", "update", "delete"]), max_size=2),
        "limit": st.integers(0, 5),
    }),
    cut=st.integers(0, COUNT),
    whole_old=st.booleans(),
    order=st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_target_is_what_an_applier_makes_of_the_events_that_are_left(
    history: list[Change], wanted: dict[str, Any], cut: int, whole_old: bool, order: Any
) -> None:
    expected: Rows = {}
    for change in history:
        if not change.is_left_out(wanted):
            change.apply(expected)
    messages = [change.message(ts, whole_old=whole_old) for ts, change in enumerate(history, 1)]
    order.shuffle(messages)
    rows: Rows = {}
    section, middle = filters_of(wanted), min(cut, len(history))
    first = applied(messages, 0, middle, section, rows) if middle else 0
    second = applied(messages, middle, len(history), section, rows) if middle < len(history) else 0
    assert rows == expected
    # the second window met again what the first had left out: so much is counted as often as it was new
    assert first + second >= sum(change.is_left_out(wanted) for change in history)
