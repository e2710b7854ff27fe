"""Of the harness itself: what the recorder refuses is left out, recordings are used again, scripts are made small."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.differential.__main__ import main
from tests.differential.playing import Place
from tests.differential.recording import Recorder
from tests.differential.shrinking import smallest
from tests.differential.together import first_ts, groups, joined, stopped_in, ts_of

PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {os.fspath(Path(__file__).parents[2])!r})
from tests.differential.simulated_recorder import main
sys.exit(main())
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "recorder"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return str(path)


def script(seed: int, *more: str) -> list[str]:
    return [f"CREATE DATABASE s{seed}", f"USE s{seed}", *more]


def recorder(program: str, place: Path, kept: Path | None = None) -> Recorder:
    place.mkdir(exist_ok=True)
    return Recorder(program, place, kept)


def test_scripts_are_recorded_at_once_and_taken_apart(program: str, tmp_path: Path) -> None:
    found = recorder(program, tmp_path / "place").recorded({7: script(7), 8: script(8)}, "UTC")
    assert [(one.seed, one.statements) for one in found] == [(7, tuple(script(7))), (8, tuple(script(8)))]
    assert [b"`s7`" in one.messages[0].value for one in found] == [True, False]


@pytest.mark.parametrize("statement", ["REFUSED b", "FAILED"])
def test_what_the_recorder_does_not_take_is_left_out(program: str, tmp_path: Path, statement: str) -> None:
    """By its name, or found by halves."""
    asked = recorder(program, tmp_path / "place")
    found = asked.recorded({seed: script(seed, *([statement] if seed == 3 else [])) for seed in range(5)}, "UTC")
    assert [one.seed for one in found] == [0, 1, 2, 4]
    assert [line.partition(":")[0] for line in asked.refused] == ["seed 3"]


def test_recordings_are_used_again(program: str, tmp_path: Path) -> None:
    first = recorder(program, tmp_path / "place", tmp_path / "kept").recorded({7: script(7)}, "UTC")
    again = recorder("/nowhere", tmp_path / "place", tmp_path / "kept")
    assert again.recorded({7: script(7)}, "UTC") == first
    with pytest.raises(FileNotFoundError):
        again.recorded({7: script(7, "SELECT 1")}, "UTC")


def test_scripts_are_played_together_up_to_what_a_target_holds(program: str, tmp_path: Path) -> None:
    found = recorder(program, tmp_path / "place").recorded({seed: script(seed) for seed in range(5)}, "UTC")
    sizes = [[one.seed for one in group] for group in groups(found, 3, 9)]
    assert sizes == [[0, 1, 2], [3, 4]]
    assert [len(group) for group in groups(found, 9, 2)] == [2, 2, 1], "each makes a database"
    assert [len(group) for group in groups([*found, *found], 9, 9)] == [5, 5], "another recording begins anew"
    messages = joined(found[:2])
    assert sorted(messages) == sorted({*found[0].messages, *found[1].messages}), "the last one's end ends both"
    assert max(map(ts_of, joined(found[:1]))) == ts_of(found[0].messages[-1])
    times = [first_ts(one) for one in found]
    assert [stopped_in(found, ts) for ts in (0, times[0], times[2] - 1, times[2], times[4] + 9)] == [0, 0, 1, 2, 4]
    with ExitStack() as stack:
        place = Place("sqlite", tmp_path / "target", stack, together=9)
        verdicts = list(place.play_all(found, "snapshot"))
    assert [(one.seed, verdict.what) for one, verdict in verdicts] == [(seed, "as upstream") for seed in range(5)]


@pytest.mark.parametrize("needed", [{"a"}, {"h"}, {"a", "h"}, {"c", "d"}, set("abcdefgh"), {"b", "e", "g"}])
def test_a_script_is_made_as_small_as_it_gets(needed: set[str]) -> None:
    asked: list[Sequence[str]] = []

    def fails(some: Sequence[str]) -> bool:
        asked.append(some)
        return needed <= set(some)

    assert smallest("abcdefgh", fails) == sorted(needed)
    assert len(asked) < 40


@pytest.mark.by_turns
@pytest.mark.service
@pytest.mark.tidb
def test_new_scripts_are_vetted_recorded_and_played(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a TiDB that says what upstream takes."""
    kept = tmp_path / "kept"
    asked = ["--recorder", program, "--count", "3", "--targets", "sqlite", "--recordings", str(kept)]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "sqlite: 3 scripts" in told
    assert "0 scripts not taken upstream" in told
    assert len(list(kept.glob("*.jsonl.gz"))) == 1
