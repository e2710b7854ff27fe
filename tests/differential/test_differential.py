"""Random scripts of DDL and rows, compared with TiDB cell by cell: recorded ones, and with a recorder new ones.

With `--recorder PROGRAM` (see `tests.histories`) also two minutes of new scripts, with `--soak` an hour.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.differential.__main__ import main
from tests.differential.explained import why
from tests.differential.playing import Place
from tests.differential.recording import Recording, kept, kept_in
from tests.histories.playing import KILLED_AT
from tests.service.cells import VECTORS

CONSISTENCIES = ("snapshot", "transaction", "row")
SCRIPTS = {"sqlite": 150, "mariadb": 60, "mysql": 10, "postgres": 60, "tidb": 10}
"""Of so many of the recorded scripts a run plays half, by the commit."""


def of_kind(kind: str) -> Any:
    """A parameter, with the marker of the server that it needs."""
    return pytest.param(kind, marks=[pytest.mark.mysql] if kind == "mysql" else [])


@pytest.fixture(scope="module")
def recordings() -> list[Recording]:
    return [one for path in kept_in(VECTORS / "scripts") for one in kept(path)]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    tmp_path.chmod(0o755)
    with ExitStack() as stack:
        yield Place(request.param, tmp_path / "target", stack)


@pytest.mark.service
@pytest.mark.cells(by_turns=("place", "part"))
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("place", [of_kind(kind) for kind in SCRIPTS], indirect=True)
def test_recorded_scripts_leave_what_they_leave_upstream(place: Place, recordings: list[Recording], part: int) -> None:
    """A third of them through drivers that die."""
    wrong, stopped = [], 0
    place.killed_at = KILLED_AT if part == 0 else 0.0
    step = -(-len(recordings) // SCRIPTS[place.kind])
    for number, recording in list(enumerate(recordings[::step]))[part::3]:
        verdict = place.play(recording, CONSISTENCIES[number % len(CONSISTENCIES)])
        stopped += verdict.what != "as upstream"
        if verdict.what != "as upstream" and not why(place.kind, verdict, recording.statements):
            wrong.append(f"seed {recording.seed} {verdict.what}: {verdict.said[:500]}")
    assert wrong == []
    assert stopped <= len(recordings[::step]) * 0.2
    assert (place.kills > 0) is (part == 0)


EVERYWHERE = {"bit_json", "time_datetime", "clamp_text", "null_timestamp", "null_text_timestamp"}
MYSQLS = EVERYWHERE | {
    "date_json", "double_varchar", "negative_time", "negative_time_int", "year_varchar", "virtual_double",
    "virtual_float", "double_json_text",
}  # fmt: skip
STOPPED = {
    "sqlite": EVERYWHERE,
    "postgres": EVERYWHERE,
    "mariadb": MYSQLS | {"text_bigint_unsigned", "json_text", "lacking_bytes"},
    "mysql": MYSQLS | {"date_varchar_year"},
}
"""What docs/ddl.md refuses of the named scripts; a script's first table has its name."""


@pytest.mark.cells(by_turns=("place",))
@pytest.mark.service
@pytest.mark.parametrize("place", [of_kind(kind) for kind in STOPPED], indirect=True)
def test_scripts_that_once_were_open_leave_what_they_leave_upstream(place: Place) -> None:
    """Each is about one thing that a review named."""
    wrong, stopped = [], set()
    for number, recording in enumerate(one for path in kept_in(VECTORS / "scripts-named") for one in kept(path)):
        verdict = place.play(recording, CONSISTENCIES[number % len(CONSISTENCIES)])
        if why(place.kind, verdict, recording.statements):
            made = next(line for line in recording.statements if line.startswith("CREATE TABLE"))
            stopped.add(made.split()[2])
        elif verdict.what != "as upstream":
            wrong.append(f"seed {recording.seed} {verdict.what}: {verdict.said[:500]}")
    assert wrong == []
    assert stopped == STOPPED[place.kind]


@pytest.mark.recorder
@pytest.mark.parametrize(
    ("minutes", "seed"), [(2, 1000), pytest.param(60, 100_000, marks=[pytest.mark.soak, pytest.mark.timeout(5400)])]
)
@pytest.mark.service
@pytest.mark.tidb
def test_new_scripts_leave_what_they_leave_upstream(minutes: int, seed: int, pytestconfig: pytest.Config) -> None:
    recorder = str(pytestconfig.getoption("--recorder"))
    assert main(["--recorder", recorder, "--minutes", str(minutes), "--seed", str(seed), "--shrink", "3"]) == 0


def test_a_verdict_tells_a_difference_from_a_stop(recordings: list[Recording], tmp_path: Path) -> None:
    """Of the harness itself: a table that upstream does not hold, a row that it does, a message that can't be read."""
    (one, *_) = [r for r in recordings if any(table["rows"] for table in r.upstream.values())]
    with ExitStack() as stack:
        place = Place("sqlite", tmp_path / "target", stack)
        assert place.play(one, "row").what == "as upstream"
        (name, table), *others = one.upstream.items()
        less = {name: {**table, "rows": table["rows"][1:]}, **dict(others)}
        assert place.play(_with(one, upstream=less), "row").what == "SILENT"
        assert place.play(_with(one, upstream={}), "row").silent == (f"{name}: not upstream",)
        broken = [m._replace(value=m.value.replace(b'"type"', b'"typo"')) for m in one.messages]
        assert place.play(_with(one, messages=broken), "row").what == "STOPS"


def _with(one: Recording, **changed: object) -> Recording:
    values = {"messages": one.messages, "upstream": one.upstream, **changed}
    return Recording(one.seed, one.zone, one.statements, **values)  # type: ignore[arg-type]
