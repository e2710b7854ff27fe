"""What becomes of a changefeed whose run ends: which is tried again, which waits for a person; none dies unseen."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.config.model import Config
from consumer.pipeline.session import Session
from consumer.run.progress_log import Display
from consumer.serve import changefeed as feeds
from consumer.serve.api.errors import ConflictError
from consumer.serve.changefeed import Feed
from consumer.serve.fleet import Fleet
from consumer.serve.observed.run_recorder import RecordedRound
from consumer.serve.status import status_of
from consumer.source.offer import PartitionProbe, Probe
from ordering.errors import (
    InputError,
    LateEventError,
    LeaderLivesError,
    LeadershipLostError,
    SourceUnreachableError,
    TargetUnreachableError,
    WorkerLostError,
)
from ordering.events import Partition
from ordering.progress import PartitionProgress, Progress
from ordering.timestamps import ResolvedTs
from ordering.watermark import global_resolved
from tests.service.lab import eventually
from tests.serving.test_serving_rules import TEXT

RunOf = Callable[..., Feed]


@pytest.fixture
def run_of(fleet: Fleet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunOf:
    """A changefeed whose runs end with these, one after the other; the last one goes on until it is stopped.

    `known`: what the session of a run knew that ends; `then`: what the next session of the same run knew.
    """
    monkeypatch.setattr(feeds, "_PAUSES_S", (0.05, 30.0))
    path = folder / "x.toml"
    path.write_text(TEXT.replace("/tmp/x", str(folder / "target")))

    def make(*ends: Exception | None, known: Session | None = None, then: Session | None = None) -> Feed:
        left = list(ends)

        class Ending:
            session, trouble, leads = None, None, False
            stalls = SimpleNamespace(ages=dict)

            def __init__(self, _config: Config, display: Display, **_: Any) -> None:
                self.stopping, self.display = threading.Event(), display

            def run(self, **_: Any) -> None:
                end = left.pop(0) if left else None
                if end is not None:
                    if known is not None:
                        self.display.left(known)
                    if then is not None:
                        self.display.left(then)
                    raise end
                self.stopping.wait(30)

            def stop(self) -> None:
                self.stopping.set()

        monkeypatch.setattr(feeds, "Runner", Ending)
        found = fleet.add(path)
        found.start()
        return found

    return make


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (
            InputError("unreadable", hint="`reconciler ddl skip CONFIG 7`"),
            ("error", "the changefeed has stopped", {"error": "unreadable", "hint": "`reconciler ddl skip FILE 7`"}),
        ),
        (
            TargetUnreachableError("away", where="h:1"),
            (
                "warning",
                "the changefeed has stopped, and starts again by itself",
                {"error": "away", "where": "h:1", "in_s": 0.05},
            ),
        ),
    ],
)
def test_only_what_waits_for_a_person_is_logged_as_an_error(
    run_of: RunOf, end: Exception, told: tuple[str, str, dict[str, object]]
) -> None:
    with capture_logs() as lines:
        feed = run_of(end)
        eventually("it is told", lambda: any("has stopped" in line["event"] for line in lines))
    found = next(line for line in lines if "has stopped" in line["event"])
    found["hint"] = found["hint"].replace(str(feed.path), "FILE") if "hint" in found else None
    assert (found.pop("log_level"), found.pop("event"), {k: v for k, v in found.items() if v is not None}) == told
    feed.ask_to_stop()
    assert feed.join(time.monotonic() + 30)


@pytest.mark.parametrize(
    ("end", "code", "exit_code"),
    [
        (InputError("unreadable", where="topic=t partition=0 offset=4", hint="skip it"), "Reconciler:ErrInput", 3),
        (LateEventError("late event", where="topic=t"), "Reconciler:ErrLateEvent", 3),
        (LeaderLivesError("another one leads"), "Reconciler:ErrLeaderLives", 5),
        (ZeroDivisionError("a-secret-in-it"), "Reconciler:ErrInternal", 1),
    ],
)
def test_what_waits_for_a_person(run_of: RunOf, end: Exception, code: str, exit_code: int) -> None:
    feed = run_of(end)
    eventually("it has failed", lambda: feed.state == "failed")
    fault = status_of(feed).error
    assert fault is not None
    assert (fault.code, fault.exit_code, fault.retry_in_seconds) == (code, exit_code, None)
    assert "a-secret-in-it" not in fault.model_dump_json()
    assert feed.late == isinstance(end, LateEventError)
    eventually("its thread has ended", lambda: not feed.is_running)
    feed.start()
    eventually("it runs again", lambda: feed.state == "pending")
    with pytest.raises(ConflictError):
        feed.start()
    feed.ask_to_stop()
    assert feed.join(time.monotonic() + 30)
    assert (feed.state, feed.fault) == ("stopped", None)


@pytest.mark.parametrize(
    "end",
    [TargetUnreachableError("gone", where="h:1"), WorkerLostError("JVM died"), LeadershipLostError("taken over")],
)
def test_what_is_tried_again(run_of: RunOf, end: Exception) -> None:
    feed = run_of(end, end)
    eventually("the second try has failed", lambda: feed.state == "warning" and (feed.fault.retry_in_seconds or 0) > 1)  # type: ignore[union-attr]
    assert feed.is_running
    feed.ask_to_stop()
    assert feed.join(time.monotonic() + 30), "a pause ends the waiting"
    assert feed.state == "stopped"
    feed.start()
    eventually("it runs", lambda: feed.state == "pending" and feed.runner is not None)
    feed.ask_to_stop()
    assert feed.join(time.monotonic() + 30)


def _session(ledger: bool | None, at: float) -> Session:
    """What a session knew: a backlog of 10,000 messages in two partitions, of which the second holds back."""
    found = {
        Partition("t", 0): PartitionProbe(PartitionProgress(0, 0), 6000, 6000, ResolvedTs(200 << 18), 0),
        Partition("t", 1): PartitionProbe(PartitionProgress(0, 0), 4000, 4000, ResolvedTs(100 << 18), 0),
    }
    resolved = global_resolved({place: one.watermark for place, one in found.items()})
    known: Any = SimpleNamespace(
        progress=Progress(), probe=Probe({}, found, resolved), probed_at=at, ledger=SimpleNamespace(available=ledger)
    )
    return known


def test_a_failed_changefeed_shows_what_was_known_last_with_its_age(run_of: RunOf) -> None:
    feed = run_of(InputError("unreadable"), known=_session(ledger=True, at=time.monotonic() - 300))
    eventually("it has failed", lambda: feed.state == "failed" and feed.runner is None)
    found = status_of(feed)
    assert (found.ledger.state, found.source.state, found.held_events) == ("connected", "connected", 10_000)
    assert found.source.probed_seconds_ago == pytest.approx(300, abs=20)
    assert [p.unread for p in found.source.partitions] == [6000, 4000]
    assert found.source.held_back_by == ["topic=t partition=1"]


def test_thousands_of_partitions_cost_each_no_more_than_few(run_of: RunOf) -> None:
    """Of a topic that somebody made so wide: each status is made within the interpreter's lock, which all need."""
    feed = run_of(None)
    eventually("it runs", lambda: feed.runner is not None)
    runner: Any = feed.runner

    def cpu_s(count: int) -> float:
        places = [Partition("t", number) for number in range(count)]
        found = {place: PartitionProbe(PartitionProgress(0, 0), 9, 10**6, None, 0) for place in places}
        probe = Probe({}, found, global_resolved(dict.fromkeys(places)))
        runner.stalls.ages = lambda: dict.fromkeys(places, 1.0)
        feed.watching.last = RecordedRound(Progress(), probe, time.monotonic())
        begun = time.thread_time()
        assert len(status_of(feed).source.partitions) == count
        assert probe.before_first_watermark(probe.ranges) == ()
        return time.thread_time() - begun

    few, many = (min(cpu_s(count) for _ in range(3)) for count in (500, 5_000))
    assert many < 30 * few
    feed.ask_to_stop()
    assert feed.join(time.monotonic() + 30)


def test_a_session_that_never_reached_kafka_does_not_hide_what_was_known_before(run_of: RunOf) -> None:
    silent: Any = SimpleNamespace(
        progress=Progress(), probe=None, probed_at=None, ledger=SimpleNamespace(available=None)
    )
    feed = run_of(InputError("unreadable"), known=_session(ledger=True, at=time.monotonic() - 300), then=silent)
    eventually("it has failed", lambda: feed.state == "failed" and feed.runner is None)
    found = status_of(feed)
    assert (found.ledger.state, found.held_events) == ("connected", 10_000)
    assert found.source.probed_seconds_ago == pytest.approx(300, abs=20)
    assert [p.unread for p in found.source.partitions] == [6000, 4000]


def test_nothing_is_made_up_where_no_run_has_looked(run_of: RunOf) -> None:
    feed = run_of(InputError("unreadable"))
    eventually("it has failed", lambda: feed.state == "failed" and feed.runner is None)
    found = status_of(feed)
    assert (found.ledger.state, found.source.state, found.held_events) == ("unknown", "unknown", None)
    assert found.source.probed_seconds_ago is None


def test_kafka_out_of_reach_is_named_also_after_the_run(run_of: RunOf) -> None:
    known = _session(ledger=False, at=time.monotonic())
    feed = run_of(
        *[SourceUnreachableError("no broker answers")] * 9, known=known
    )  # between two tries it is out of reach

    def named() -> bool:
        found = status_of(feed)
        told = (found.ledger.state, found.source.state, found.held_events)
        return feed.state == "warning" and feed.runner is None and told == ("out of reach", "out of reach", 10_000)

    eventually("it waits for the next try", named)
    feed.ask_to_stop()
    assert feed.join(time.monotonic() + 30)
