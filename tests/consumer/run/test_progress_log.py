"""What a run logs: sums now and then, nothing twice in a minute, and figures that are true."""

import time
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.run.progress_log import EVERY_S, SAME_EVERY_S, Display
from consumer.run.terminal_progress import Quiet, TerminalDisplay, display_of
from consumer.source.offer import PartitionProbe, Probe
from ordering.events import Partition
from ordering.progress import Counts, PartitionProgress, Progress
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.watermark import global_resolved

PLACE = Partition("t", 0)


class Clock:
    """Seconds that a test sets."""

    at = 1000.0

    def __call__(self) -> float:
        return self.at


def progress(events: int, checkpoint_s: float = 100.0, start: int = 0) -> Progress:
    found = Progress(CheckpointTs(int(checkpoint_s * 1000) << 18), partitions={PLACE: PartitionProgress(start, start)})
    return replace(found, counts=Counts(events=events, rows_written=events, windows=events))


def probe(end: int, resolved_s: float | None = 100.0, start: int = 0) -> Probe:
    mark = None if resolved_s is None else ResolvedTs(int(resolved_s * 1000) << 18)
    return Probe(
        {}, {PLACE: PartitionProbe(PartitionProgress(start, start), end, end, mark)}, global_resolved({PLACE: mark})
    )


def infos(lines: Any) -> list[Any]:
    return [line for line in lines if line["log_level"] != "debug"]


def test_two_hundred_windows_a_minute_are_a_line_each_ten_seconds_with_all_their_events() -> None:
    clock = Clock()
    display, before = Display(clock), progress(0)
    with capture_logs() as lines:
        for number in range(1, 241):  # four a second
            after = progress(50 * number)
            display.window(before, after, probe(0), 0.25)
            before, clock.at = after, clock.at + 0.25
        display.end()
    told = [line for line in infos(lines) if line["event"] == "applied"]
    assert len(told) <= 60 / EVERY_S + 2
    assert sum(line["events"] for line in told) == 50 * 240
    assert sum(line["windows"] for line in told) == 240


def test_windows_that_bring_nothing_are_no_line() -> None:
    display = Display(Clock())
    with capture_logs() as lines:
        display.window(progress(7, 100), progress(7, 102), probe(0), 0.1)
        display.end()
    assert infos(lines) == []


@pytest.mark.parametrize(("resolved_s", "event"), [(100.0, "waiting for the next watermark"), (None, "nothing can be")])
def test_a_stall_is_a_line_a_minute(resolved_s: float | None, event: str) -> None:
    clock = Clock()
    display = Display(clock)
    with capture_logs() as lines:
        while clock.at < 1000 + 10 * 60:
            display.idle(progress(7), probe(50, resolved_s))
            clock.at += 0.2
    assert [line["event"][: len(event)] for line in infos(lines)] == [event] * int(10 * 60 / SAME_EVERY_S)


def test_a_new_situation_is_told_soon() -> None:
    clock = Clock()
    display = Display(clock)
    with capture_logs() as lines:
        display.idle(progress(7), probe(50))
        clock.at += EVERY_S + 1
        display.idle(progress(7, start=50), probe(50, start=50))
    assert [line["event"] for line in lines] == ["waiting for the next watermark", "idle: everything is applied"]


def test_a_terminal_shows_a_line_of_now() -> None:
    with TerminalDisplay("orders [x]") as display:
        display.window(progress(0), progress(3, start=7), probe(10), 0.5)
        shown = str(display._bar.tasks[0].description)
    assert shown == r"orders \[x]: 3 events applied, up to 1970-01-01 00:01:40.000 UTC, 3 messages left"
    assert isinstance(display_of("c"), Quiet), "where stderr is no terminal there is no such line"


def test_what_is_left_counts_all_that_kafka_holds_and_the_lag_is_against_the_clock() -> None:
    display = Display(Clock())
    hour_ago = time.time() - 3600
    with capture_logs() as lines:
        # the probe looked no further than the window's budget: what lies behind it is unread all the same
        bounded = replace(probe(200_000, hour_ago).partitions[PLACE], bound=9602)
        found = Probe({}, {PLACE: bounded}, global_resolved({PLACE: bounded.watermark}))
        display.window(progress(0), progress(9602, hour_ago, start=9602), found, 1.0)
    (line,) = infos(lines)
    assert line["unread_messages"] == 200_000 - 9602
    assert line["eta"] == "0:00:19"
    assert 3590 < line["lag_s"] < 3700


def test_a_window_in_segments_makes_no_wild_guess_of_what_is_left() -> None:
    """The first segment counts the events of all: those after it bring rows only."""
    clock = Clock()
    display, before = Display(clock), progress(0)
    with capture_logs() as lines:
        for number in range(10):
            after = replace(before, counts=replace(before.counts, events=10_000, rows_written=100 * (number + 1)))
            display.window(before, after, probe(5_000), 1.0)
            before, clock.at = after, clock.at + 1.0
        display.end()
    told = [line for line in infos(lines) if line["event"] == "applied"][-1]
    assert "0:00:03" <= told["eta"] <= "0:00:10"
    assert told["events_per_s"] > 0
