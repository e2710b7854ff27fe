"""A run in which a step takes long: it says which, while it lasts."""

import pytest
from structlog.testing import capture_logs

from consumer.run import long_steps
from sinks.steps import Step
from tests.service.lab import Feed, eventually
from tests.service.messages import begun, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]


def test_it_says_what_takes_long(sqlite_feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_steps, "EVERY_S", 0.2)
    monkeypatch.setattr(long_steps, "_LOOK_S", 0.05)
    sqlite_feed.send([*begun(), *watermarks(3)])
    with capture_logs() as lines:

        def told(doing: str) -> bool:
            return any(line["event"] == "still at work" and line["doing"] == doing for line in lines)

        def take_long(step: Step) -> None:
            if step in (Step.DDL_RECORDED, Step.APPLY_BEGUN):
                eventually("it is said", lambda: told(long_steps.NEXT[step]))

        sqlite_feed.once(take_long)
    assert told("waiting for the target to execute a DDL")
    assert told("writing rows to the target")
