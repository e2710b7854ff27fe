"""What is said of steps that take long."""

from structlog.testing import capture_logs

from consumer.run.long_steps import EVERY_S, NEXT, LongSteps
from sinks.steps import Step


class Clock:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_each_step_has_words() -> None:
    assert set(NEXT) == set(Step)


def test_a_step_is_told_of_once_it_takes_long_and_again() -> None:
    clock = Clock()
    watch = LongSteps(clock)
    with capture_logs() as lines:
        watch.look()  # nothing has begun
        for step in Step:
            clock.at += EVERY_S - 1
            watch.look()
            watch.done(step)
        assert lines == []
        watch.done(Step.APPLY_BEGUN)
        for _ in range(10):
            clock.at += EVERY_S / 4
            watch.look()
        watch.rest()
        clock.at += 10 * EVERY_S
        watch.look()
    assert [(line["event"], line["doing"], line["seconds"]) for line in lines] == [
        ("still at work", "writing rows to the target", 30),
        ("still at work", "writing rows to the target", 60),
    ]


def test_it_watches_until_it_is_stopped() -> None:
    watch = LongSteps()
    watch.start()
    watch.start()
    watch.stop()
    watch.stop()
