"""Parts of merged tables: from the first shard that has one to the last, whatever the order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.events import TableName
from ordering.progress import FORMAT, Progress
from ordering.tables.merged_tables import MergeConflictError, MergedTable

SHARDS = [TableName("d", name) for name in "abc"]
PLACE = TableName("m", "t")
STEPS = st.tuples(st.sampled_from(["add", "drop", "empty"]), st.sampled_from(SHARDS), st.sampled_from(["x", "y"]))


@given(st.lists(STEPS, max_size=25))
def test_the_target_has_what_any_shard_has(steps: list[tuple[str, TableName, str]]) -> None:
    """Sets are the model; an ADD of what a shard has, and a DROP of what it lacks, are none that upstream sends."""
    table, target = MergedTable(whole=True), set[str]()
    own: dict[TableName, set[str]] = {shard: set() for shard in SHARDS}
    old: dict[TableName, set[str]] = {shard: set() for shard in SHARDS}
    for kind, shard, part in steps:
        others = [one for one in SHARDS if one != shard]
        if kind == "empty":
            table, old[shard] = table.emptied(shard), set()
        elif kind == "add" and part not in own[shard]:
            if part in target & old[shard]:
                with pytest.raises(MergeConflictError, match="comes back"):
                    table.added(shard, others, part, "int")
                continue
            table, is_done = table.added(shard, others, part, "int")
            assert is_done == (part not in target)
            for one in SHARDS if is_done else ():
                old[one].discard(part)
            own[shard].add(part)
            target.add(part)
        elif kind == "drop" and part in own[shard]:
            table, is_done = table.dropped(shard, others, part)
            own[shard].discard(part)
            old[shard].add(part)
            assert is_done == (not any(part in one for one in own.values()))
            target -= {part} if is_done else set()
        assert set(table.parts) == target
        assert {part: set(table.lacking(SHARDS, part)) for part in target} == {
            part: {one for one in SHARDS if part not in own[one]} for part in target
        }
        stored = Progress(routes="1:x", merged={PLACE: table})
        assert Progress.restored(0, {}, stored.state()).merged == {PLACE: table}


def test_definitions_have_to_agree() -> None:
    table, _ = MergedTable({"column id": "int"}, whole=True).added(SHARDS[0], [SHARDS[1]], "column x", "int")
    with pytest.raises(MergeConflictError, match="the column x is text there, and int in the merged table"):
        table.added(SHARDS[1], [SHARDS[0]], "column x", "text")
    with pytest.raises(MergeConflictError, match="has the column y"):
        table.joined(SHARDS[2], SHARDS[:2], {"column id": "int", "column y": "int"})
    with pytest.raises(MergeConflictError, match="lacks the column id"):
        table.joined(SHARDS[2], SHARDS[:2], {"column x": "int"})
    assert table.joined(SHARDS[2], SHARDS[:2], {"column id": "int"}).lacks[SHARDS[2]] == {"column x"}
    with pytest.raises(MergeConflictError, match="was there before"):
        table.doubted(table.parts).joined(SHARDS[2], SHARDS[:2], {"column id": "int"})


def test_earlier_versions_refuse_a_progress_with_merged_tables() -> None:
    assert Progress(routes="1:x", merged={PLACE: MergedTable()}).state()["format"] == 4
    assert Progress(routes="1:x").state()["format"] < FORMAT
