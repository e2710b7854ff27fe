"""The past of a changefeed outlives the process, in a bounded file; a broken one costs the past and nothing else."""

import stat
import struct
from pathlib import Path

import pytest

from consumer.serve.fleet import Fleet
from consumer.serve.observed import history
from consumer.serve.observed.history import EVERY_S, MINUTE_S, QUARTER_S, Ring
from tests.page.scenes import status
from tests.serving.conftest import Ask
from tests.serving.lab import TOKEN

START = 1_795_270_020.0
DAY = 86_400
STATUS = status()


class Clock:
    """The wall clock, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = START
        monkeypatch.setattr(history, "now", lambda: self.at)

    def lived(self, ring: Ring, seconds: float, every: float, lag: float = 1.0) -> None:
        """Add samples for a while; events are the seconds since the start."""
        end = self.at + seconds
        while self.at < end:
            self.at += every
            ring.add(STATUS.model_copy(update={"events": int(self.at - START), "lag_now_seconds": lag}))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_restart_finds_the_past(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / ".history" / "x"
    first = Ring(file)
    clock.lived(first, 600, 2.0)
    clock.lived(first, 30, 2.0, lag=42.0)
    clock.lived(first, 600, 2.0)
    first.keep()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = Ring(file)
    assert second.since(0) == []
    minutes = second.since(0, MINUTE_S)
    assert minutes == first.since(0, MINUTE_S)
    assert [one.at // MINUTE_S for one in minutes] == [START // MINUTE_S + number for number in range(len(minutes))]
    assert max(one.lag_now_seconds or 0 for one in minutes) == 42.0
    assert minutes[-1].events == int(clock.at - START)
    clock.lived(second, 120, 2.0)
    assert second.since(0, MINUTE_S)[: len(minutes) - 1] == minutes[:-1]
    second.forget()
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("jump_s", [90.0, DAY, 365 * DAY])
def test_a_clock_that_was_ahead_and_is_set_back(clock: Clock, tmp_path: Path, jump_s: float) -> None:
    """The past goes on at once, in order and without samples of the future, here and after a restart."""
    file = tmp_path / ".history" / "x"
    ring = Ring(file)
    clock.lived(ring, 300, 2.0)
    clock.at += jump_s
    clock.lived(ring, 300, 2.0)
    clock.at -= jump_s
    clock.lived(ring, 300, 2.0)
    for step, least in ((int(EVERY_S), 150), (MINUTE_S, 5)):
        moments = [one.at for one in ring.since(0, step)]
        assert moments == sorted(moments)
        assert moments[-1] == clock.at
        assert len([at for at in moments if at > clock.at - 310]) >= least
    again = [one.at for one in Ring(file).since(0, MINUTE_S)]
    assert again == sorted(again)
    assert clock.at - again[-1] < 3 * MINUTE_S


def test_before_the_first_checkpoint_there_is_no_lag() -> None:
    fresh = status(checkpoint_ts=0, lag_now_seconds=None)
    assert history.sample_of(fresh, START).lag_watermark_seconds is None


def test_a_month_is_bounded_and_thinned(clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "x"
    clock.lived(Ring(file), 600, 2.0)
    record = file.read_bytes()[-88:]
    moments = [START + MINUTE_S * number for number in range(33 * DAY // MINUTE_S)]
    for first in range(0, len(moments), 8000):  # as large as a file may be that nobody has rewritten
        with file.open("ab") as opened:
            opened.write(b"".join(struct.pack("<d", at) + record[8:] for at in moments[first : first + 8000]))
        clock.at = moments[min(first + 8000, len(moments)) - 1]
        ring = Ring(file)
    quarters, minutes = ring.since(0, QUARTER_S), ring.since(0, MINUTE_S)
    assert (len(quarters), len(minutes)) == (2880, 1440)
    assert clock.at - quarters[0].at == pytest.approx(30 * DAY, abs=2 * QUARTER_S)
    assert clock.at - minutes[0].at == pytest.approx(DAY, abs=2 * MINUTE_S)
    assert file.stat().st_size == pytest.approx(88 * (1440 + 2880 - 96), abs=88 * 4)


@pytest.mark.parametrize(
    "spoilt",
    [
        b"\0" * 88,
        b"\xff" * 880,
        b"x" * 17,
        struct.pack("<d6q2d2Q", START + 5, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<d6q2d2Q", START + 5, 0, 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0),
        struct.pack("<d6q2d2Q", START + 9e9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<d6q2d2Q", START + 5, 0, 0, 0, 0, 0, 0, float("inf"), 0, 0, 0),
        struct.pack("<d6q2d2Q", float("nan"), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ],
    ids=range(8),
)
def test_what_is_no_sample_is_left_out(clock: Clock, tmp_path: Path, spoilt: bytes) -> None:
    file = tmp_path / "x"
    clock.lived(Ring(file), 300, 2.0)
    whole = file.read_bytes()
    known = Ring(file).since(0, MINUTE_S)
    assert len(known) >= 4
    file.write_bytes(whole + spoilt)
    assert Ring(file).since(0, MINUTE_S) == known


def test_a_directory_that_can_not_be_written_costs_the_past_only(clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ring = Ring(tmp_path / "file" / "x")
    clock.lived(ring, 300, 2.0)
    assert len(ring.since(0, MINUTE_S)) >= 5


def test_the_api_gives_each_step(fleet: Fleet, folder: Path, asking: Ask) -> None:
    (folder / "x.toml").write_text("broken")
    fleet.add(folder / "x.toml")
    client = asking(Authorization=f"Bearer {TOKEN}")
    for step in (2, 60, 900):
        assert client.get(f"/api/v2/changefeeds/x/history?step={step}").json() == {
            "interval_seconds": step,
            "items": [],
        }
    assert client.get("/api/v2/changefeeds/x/history?step=7").status_code == 400
