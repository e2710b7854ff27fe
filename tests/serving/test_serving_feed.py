"""What becomes of a changefeed whose run ends: which is tried again, which waits for a person; none dies unseen."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.serving import feed as feeds
from consumer.serving.faults import ConflictError
from consumer.serving.feed import Feed
from consumer.serving.fleet import Fleet
from consumer.serving.telling import status_of
from ordering.errors import (
    InputError,
    LateEventError,
    LeaderLivesError,
    LeadershipLostError,
    TargetUnreachableError,
    WorkerLostError,
)
from tests.service.lab import eventually
from tests.serving.test_serving_rules import TEXT

RunOf = Callable[..., Feed]


@pytest.fixture
def run_of(fleet: Fleet, folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunOf:
    """A changefeed whose runs end with these, one after the other; the last one goes on until it is stopped."""
    monkeypatch.setattr(feeds, "_PAUSES_S", (0.05, 30.0))
    path = folder / "x.toml"
    path.write_text(TEXT.replace("/tmp/x", str(folder / "target")))

    def make(*ends: Exception | None) -> Feed:
        left = list(ends)

        class Ending:
            pipeline, trouble = None, None

            def __init__(self, *_: Any, **__: Any) -> None:
                self.stopping = threading.Event()

            def run(self, **_: Any) -> None:
                end = left.pop(0) if left else None
                if end is not None:
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
