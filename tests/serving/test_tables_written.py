"""What was written to each table: counted over commits and runs, newest first, found by name, bounded."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.serve.observed import tables_written
from consumer.serve.observed.tables_written import TablesWritten
from ordering.drift import NO_DRIFT
from ordering.events import TableName
from sinks.bookkeeping.write_permits import PartDone, all_done

A, B, C = (TableName("Shop", name) for name in "abc")
COMMITS = st.lists(st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 9), max_size=3))


@given(COMMITS)
def test_it_counts_each_commit(commits: list[dict[TableName, int]]) -> None:
    found, sums, last = TablesWritten(), Counter[TableName](), {}
    for number, rows in enumerate(commits):
        found.add(rows, number)
        sums.update(rows)
        last.update(dict.fromkeys(rows, number))
    newest = found.newest()
    assert {table: (one.rows, one.checkpoint_ts) for table, one in newest} == {t: (sums[t], last[t]) for t in sums}
    stamps = [one.checkpoint_ts for _, one in newest]
    assert stamps == sorted(stamps, reverse=True)


@given(COMMITS)
def test_parts_of_a_window_add_up(parts: list[dict[TableName, int]]) -> None:
    done = all_done(PartDone(rows, NO_DRIFT) for rows in parts)
    assert dict(done.by_table) == dict(sum(map(Counter, parts), Counter()))
    assert done.rows == sum(sum(rows.values()) for rows in parts)


def test_names_are_found_in_any_case() -> None:
    found = TablesWritten()
    found.add({A: 1, B: 1}, 1)
    assert [table for table, _ in found.newest("shop.A")] == [A]
    assert found.newest("shop_a") == []


def test_it_forgets_what_was_written_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_written, "MOST_TABLES", 2)
    found = TablesWritten()
    for table in (A, B, A, C):
        found.add({table: 1}, 1)
    assert [(table, one.rows) for table, one in found.newest()] == [(C, 1), (A, 2)]
