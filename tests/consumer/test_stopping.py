"""A signal may cut through anything, also where a lock is held: what ends the process waits for no such lock."""

import signal
import threading
from collections.abc import Iterator

import pytest

from consumer.control import Control
from consumer.retrying import Stopped, StopRequest


class CutThrough:
    """An admin client in which a signal's exception left a lock held: closing it takes for ever."""

    def list_partition_offsets(self, _asked: object) -> None:
        raise Stopped

    def close(self) -> None:
        pytest.fail("closing it waits for its own lock")


def test_a_client_that_a_signal_cut_through_is_not_closed() -> None:
    control = Control("127.0.0.1:1", {})
    control._admin = CutThrough()
    with pytest.raises(Stopped):
        control._call(lambda admin: admin.list_partition_offsets({}))
    control.close()


@pytest.fixture
def _kept_handler() -> Iterator[None]:
    """SIGUSR1 is as it was afterwards."""
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("_kept_handler")
@pytest.mark.timeout(20)
def test_it_is_asked_by_a_signal_while_this_thread_holds_its_lock() -> None:
    asked = StopRequest()
    signal.signal(signal.SIGUSR1, lambda *_: asked.ask())
    with asked._cond:  # as in the first and the last moments of a wait
        signal.raise_signal(signal.SIGUSR1)
    assert asked.is_set()
    assert asked.wait(0)


def test_it_is_set_by_another_thread() -> None:
    asked = StopRequest()
    assert not asked.wait(0)
    threading.Thread(target=asked.set).start()
    assert asked.wait(10)
    assert asked.is_set()
