"""Commands that need to lead wait for the server to notice that a run has just ended, and no longer."""

from types import SimpleNamespace
from typing import Any

from consumer.operate.progress import refuse_living_leader


class Ending:
    """A target whose server still knows the connection of a process that has ended, for two looks."""

    name = "t"

    def __init__(self) -> None:
        self.answers = [True, True, False]

    def is_led(self, _changefeed: str) -> bool:
        return self.answers.pop(0)


def test_a_connection_that_is_about_to_end_is_waited_for() -> None:
    target: Any = Ending()
    config: Any = SimpleNamespace(changefeed="c")
    refuse_living_leader(config, target)
    assert target.answers == []
