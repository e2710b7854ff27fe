"""What `reconciler status` says first, and how it spells time."""

from typing import Any

import pytest

from consumer.cli.status_text import duration, status_lines, verdict
from sinks.bookkeeping.ddl_log import REPLACED

FOUND: dict[str, Any] = {
    "changefeed": "c", "target": "t", "state": "known", "checkpoint_ts": 1, "checkpoint_time": "then",
    "updated_at": "now",
    **dict.fromkeys(("events", "duplicates", "duplicates_proven", "filtered", "quarantined"), 0),
    "rows_written": 0, "ddls": 0, "windows": 0, "leader_epoch": 1, "ledger": {"state": "connected"},
    "core": {"used": True, "why": ""},
    "leader": {"name": "app", "silent_seconds": 0.4}, "stand_bys": [], "ddl_history": [], "drift": [], "proof": [],
    "retired_topics": [], "archived": "", "last_stop": None,
    "source": {"state": "connected", "lag_seconds": 0.0, "partitions": []},
}  # fmt: skip
STOP = {"at": "2026-11-25T10:00:00.5+00:00", "exit_code": 3, "error": "the row is broken (t/0)\n  hint: mend it"}
FAILED = {
    "state": "failed",
    "commit_ts": 7,
    "time": "t",
    "duration_ms": 1,
    "reason": "",
    "executed": "",
    "statement": "x",
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "running; everything up to the watermark is applied"),
        ({"source": {"state": "connected", "lag_seconds": 75.0}}, "running; 1 min 15 s behind"),
        ({"leader": {"name": "app", "silent_seconds": 17.0}}, "running; everything"),
        (
            {"leader": {"name": "app", "silent_seconds": 75.0}},
            "not running as far as can be seen: app led, and has given no sign of life for 1 min 15 s; everything",
        ),
        ({"leader": None}, "not running; everything up to the watermark is applied"),
        ({"state": "new", "leader": None}, "new: nothing has been applied yet"),
        ({"leader": None, "last_stop": STOP}, "stopped by an error, exit code 3; everything"),
        ({"state": "new", "leader": None, "last_stop": STOP}, "new: stopped by an error, exit code 3; nothing has"),
        ({"source": {"state": "connected", "lag_seconds": None}}, "no watermark has been seen yet"),
        (
            {"checkpoint_ts": 0, "source": {"state": "connected", "lag_seconds": None, "resolved_ts": 9}},
            "running; nothing has been applied yet",
        ),
        ({"source": {"state": "gone"}}, "running; how far it is behind is unknown: see the line `kafka` below"),
        ({"ddl_history": [FAILED]}, "stopped by the DDL at 7"),
        ({"ddl_history": [FAILED | {"commit_ts": 9}, FAILED], "checkpoint_ts": 7}, "stopped by the DDL at 7"),
        ({"ddl_history": [FAILED], "checkpoint_ts": 8}, "running; everything"),
        ({"ddl_history": [FAILED | {"reason": REPLACED}]}, "running; everything"),
        ({"ddl_history": [FAILED | {"state": "skip"}], "checkpoint_ts": 8, "leader": None}, "not running; everything"),
        *(
            ({"ddl_history": [FAILED | {"state": state}], "leader": None, "last_stop": STOP}, "is decided: start it")
            for state in ("skip", "take")
        ),
        ({"ddl_history": [FAILED | {"state": "take"}]}, "running; everything"),
    ],
)
def test_the_state_in_a_line(changes: dict[str, Any], said: str) -> None:
    assert said in verdict({**FOUND, **changes}, 6.0)
    assert any(line.startswith("state ") and said in line for line in status_lines({**FOUND, **changes}, 6.0))


def test_what_is_not_known_is_not_printed_as_none() -> None:
    partition = {"topic": "t", "partition": 0, "offset": 0, "end_offset": 0, "resolved_time": ""}
    partitions = [{**partition, "watermark_age_seconds": None}]
    source = {"state": "connected", "lag_seconds": None, "partitions": partitions}
    lines = list(status_lines({**FOUND, "state": "new", "leader": None, "updated_at": None, "source": source}, 6.0))
    assert not any("None" in line for line in lines)
    assert any("nothing saved yet" in line for line in lines)


def test_of_what_has_not_begun_no_age_is_told() -> None:
    source = {"state": "connected", "lag_seconds": None, "resolved_ts": 9}
    lines = list(status_lines({**FOUND, "state": "new", "checkpoint_ts": 0, "source": source}, 6.0))
    assert "checkpoint   none yet" in lines
    assert "lag          -" in lines


def test_an_error_of_several_lines_is_told_in_one() -> None:
    source = {"state": "Kafka is out of reach: refused (h:1)\n  hint: check it", "lag_seconds": None}
    lines = list(status_lines({**FOUND, "source": source}, 6.0))
    assert any("refused (h:1); check it" in line for line in lines)
    assert not any("hint:" in line for line in lines)


def test_retired_topics_are_named() -> None:
    (line,) = (line for line in status_lines({**FOUND, "retired_topics": ["old"]}, 6.0) if line.startswith("retired"))
    assert "topic old: nothing more is expected from it" in line
    assert "reconciler topic return" in line


def test_a_topic_that_gets_no_watermarks_while_others_do_is_named_with_what_to_do() -> None:
    partitions = [_partition("a", 3.0), _partition("b", 3000.0), _partition("b", None)]
    source = {"state": "connected", "lag_seconds": 2900.0, "held_back_by": ["topic=b partition=0"]}
    text = "\n".join(status_lines({**FOUND, "source": {**source, "partitions": partitions}}, 6.0))
    assert "topic b gets no watermarks" in text
    assert "reconciler topic retire CONFIG b" in text
    alone = {**FOUND, "source": {**source, "partitions": [_partition("b", 3000.0)]}}
    assert "topic retire" not in "\n".join(status_lines(alone, 6.0)), "where all stand still, TiCDC is the cause"


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        ([1.0, 75.0], "; held back by topic=t partition=1, where the last watermark is 1 min 15 s old"),
        ([1.0, 75.0, 75.2], "; held back by topic=t partition=1, topic=t partition=2, where"),
        ([1.0, *[75.0] * 5], "partition=3 and 2 more, where"),
        ([1.0, 20.0], "is applied"),
        ([7000.0, 7000.0], "; the newest watermark is 1 h 56 min old: see whether TiCDC runs"),
    ],
)
def test_the_state_names_what_holds_back(ages: list[float], said: str) -> None:
    partitions = [_partition("t", age, number) for number, age in enumerate(ages)]
    held = [f"topic=t partition={number}" for number, age in enumerate(ages) if age > 10]
    source = {"state": "connected", "lag_seconds": 0.0, "partitions": partitions, "held_back_by": held}
    found = verdict({**FOUND, "source": source}, 6.0)
    assert said in found
    assert ("held back" in found or "newest" in found) is (said != "is applied")


def test_the_state_names_where_no_watermark_was_seen() -> None:
    partitions = [_partition("t", 1.0), _partition("t", None, 1)]
    source = {"state": "connected", "lag_seconds": None, "partitions": partitions}
    assert verdict({**FOUND, "source": source}, 6.0).endswith("no watermark has been seen yet in topic=t partition=1")


def _partition(topic: str, age: float | None, number: int = 0) -> dict[str, Any]:
    return {
        "topic": topic, "partition": number, "resolved_time": "-", "watermark_age_seconds": age, "offset": 0,
        "end_offset": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.4, "0.4 s"), (42, "42 s"), (59.6, "1 min"), (75, "1 min 15 s"), (3600, "1 h"), (7830, "2 h 10 min"),
     (28_181_022, "326 d 4 h")],
)  # fmt: skip
def test_durations_are_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_core_that_is_not_used_is_named() -> None:
    assert not any(line.startswith("core") for line in status_lines(FOUND, 6.0))
    (line,) = (x for x in status_lines({**FOUND, "core": {"used": False, "why": "it is stale"}}, 6.0) if "core" in x)
    assert line == "core         tasks on this machine read in Python: it is stale"


def test_the_error_of_the_last_run_is_told_while_none_runs() -> None:
    told = {**FOUND, "last_stop": STOP}
    assert not any(line.startswith("stopped") for line in status_lines(told, 6.0))
    (line,) = (line for line in status_lines({**told, "leader": None}, 6.0) if line.startswith("stopped"))
    assert line == "stopped      2026-11-25 10:00:00 UTC, exit code 3: the row is broken (t/0); mend it"


def test_tables_whose_first_proof_is_a_base_are_told_apart_from_those_that_can_not_be_proven() -> None:
    judged = {"verdict": "base", "reason": "its first proof", "checkpoint_time": "t", "columns_left_out": []}
    found = [{**judged, "table": "d.a"}, {**judged, "table": "d.b"}, {**judged, "table": "d.c", "verdict": "equal"}]
    (line,) = (x for x in status_lines({**FOUND, "proof": found}, 6.0) if x.startswith("proof"))
    assert line.startswith("proof        1 of 3 tables proven equal, the first of them at t UTC; ")
    assert line.endswith("; 2 only a base for the next proof, d.a first: its first proof")
