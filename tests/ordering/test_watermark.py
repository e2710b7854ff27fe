"""The global resolvedTs: the lowest of the highest."""

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import Partition
from ordering.timestamps import ResolvedTs
from ordering.watermark import global_resolved, raised

STAMPS = st.integers(1, 9).map(ResolvedTs)
PARTITIONS = st.builds(Partition, st.sampled_from("ab"), st.integers(0, 2))


@given(st.lists(st.none() | STAMPS, max_size=6))
def test_a_watermark_is_only_ever_raised(seen: list[ResolvedTs | None]) -> None:
    highest: ResolvedTs | None = None
    for ts in seen:
        before, highest = highest, raised(highest, ts)
        assert (highest or 0) >= (before or 0)
    known = [ts for ts in seen if ts is not None]
    assert highest == (max(known) if known else None)


@given(st.dictionaries(PARTITIONS, st.none() | STAMPS))
def test_one_partition_holds_back_all(watermarks: dict[Partition, ResolvedTs | None]) -> None:
    resolved = global_resolved(watermarks)
    if not watermarks or None in watermarks.values():
        assert resolved.ts is None
        assert set(resolved.held_back_by) == {p for p, ts in watermarks.items() if ts is None}
        return
    assert resolved.ts is not None
    assert all(resolved.ts <= (ts or 0) for ts in watermarks.values())
    assert resolved.held_back_by
    assert {watermarks[p] for p in resolved.held_back_by} == {resolved.ts}
    assert list(resolved.held_back_by) == sorted(p for p, ts in watermarks.items() if ts == resolved.ts)
