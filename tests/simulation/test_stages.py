"""A reading stage that is done again after the window was judged: what it meets then is noticed before the commit."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ordering.errors import InputError, SourceUnreachableError, WorkerLostError
from ordering.events import Partition
from sinks.steps import Step
from tests.simulation.script import CREATE, Script
from tests.simulation.world import BY_TASKS, config_of

Harm = Callable[[Script], None]
CONSISTENCIES = ("snapshot", "transaction", "row")


def script_of(consistency: str) -> Script:
    """Row 1 applied, rows 2 to 8 waiting, over two partitions; checkpoint 9."""
    script = Script(config_of(consistency), partitions=2, tuning=replace(BY_TASKS, bucket_rows=2))
    script.jobs.buckets, script.jobs.tasks = 3, 2
    script.ddl(1, CREATE)
    script.row(5, 1)
    script.mark(9)
    script.run()
    for key in range(2, 9):
        script.row(10 + key, key, p=key % 2)
    script.mark(29)
    return script


def run_harmed(script: Script, harm: Harm, at: Step) -> None:
    """Run; at a step an executor is lost, and the log is harmed before its tasks are done again."""

    def observe(step: Step) -> None:
        if step is at:
            script.restarted_log = list(map(list, script.log.held.values()))  # type: ignore[attr-defined]
            script.faults.rates, script.faults.left = {"stage done again": 1.0}, 100
            harm(script)

    script.restarted(observe)
    script.run()


def refuse(script: Script) -> None:
    script.faults.rates["kafka hiccup"] = 1.0


def shorten(script: Script) -> None:
    """The last messages are gone, without an error."""
    for held in script.log.held.values():
        del held[-2:]


def change(script: Script) -> None:
    """Another value in a row."""
    held = script.log.held[Partition("t", 0)]
    held[-2] = (held[-2] or b"").replace(b'"v":"x"', b'"v":"y"')


def spoil(script: Script) -> None:
    held = script.log.held[Partition("t", 0)]
    held[-2] = b"{"


STEPS = [("snapshot", Step.READ), ("transaction", Step.READ), ("row", Step.READ), ("row", Step.WINDOW_RECORDED)]


@pytest.mark.parametrize(("consistency", "at"), STEPS)
@pytest.mark.parametrize(
    ("harm", "error"),
    [
        (refuse, SourceUnreachableError),
        (shorten, SourceUnreachableError),
        (change, WorkerLostError),
        (spoil, InputError),
    ],
    ids=lambda p: p.__name__,
)
def test_what_was_not_judged_is_not_applied(consistency: str, at: Step, harm: Harm, error: type[Exception]) -> None:
    script = script_of(consistency)
    with pytest.raises(error):
        run_harmed(script, harm, at)
    assert script.stored.checkpoint_ts < 29
    for held, before in zip(script.log.held.values(), script.restarted_log, strict=True):  # type: ignore[attr-defined]
        held[:] = before
    script.faults.left = 0
    script.restarted()
    assert script.run().checkpoint_ts == 29
    assert sorted(script.rows()) == list("12345678")


@pytest.mark.parametrize(("consistency", "at"), STEPS)
def test_the_same_again_is_applied(consistency: str, at: Step) -> None:
    script = script_of(consistency)
    run_harmed(script, lambda _: None, at)
    assert "stage done again" in script.faults.happened
    assert (script.stored.checkpoint_ts, sorted(script.rows())) == (29, list("12345678"))


def test_between_the_phases() -> None:
    script = script_of("row")
    script.delete(31, 1)
    script.row(32, 2, "new")
    script.mark(35)
    with pytest.raises(SourceUnreachableError):
        run_harmed(script, refuse, Step.DELETES_DONE)
    script.faults.left = 0
    script.restarted()
    assert script.run().checkpoint_ts == 35
    assert script.rows() == {"2": "new", **dict.fromkeys("345678", "x")}
