"""What the source finds out before a window is planned: bounds, watermarks, topics that end."""

from collections.abc import Iterator

import pytest

from ordering.errors import SourceUnreachableError
from tests.simulation.script import CREATE, Script
from tests.simulation.world import config_of, small_limits


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_limits():
        yield


def test_a_watermark_that_was_found_far_ahead_counts_only_with_the_messages_before_it() -> None:
    script = Script(config_of(window_rows=2), partitions=2)
    script.ddl(1, CREATE)
    for key in range(20):
        script.row(10 + key, key, p=0)
    script.mark(40, only=0)
    assert not script.pipeline.round()
    script.mark(40, only=1)
    script.run()
    assert script.stored.checkpoint_ts == 40
    assert len(script.rows()) == 20


def test_a_look_for_watermarks_that_failed_is_done_again() -> None:
    script = Script()
    script.ddl(1, CREATE)
    script.row(5, 1)
    script.mark(9)
    script.faults.rates, script.faults.left = {"kafka hiccup": 1.0}, 1
    with pytest.raises(SourceUnreachableError):
        script.pipeline.round()
    script.restarted()
    assert script.run().checkpoint_ts == 9
