"""The error that ended a run is kept, whatever it holds, unless another instance goes on."""

import time
from contextlib import closing, nullcontext

import pytest

from consumer.wiring import target_of
from ordering.errors import LeadershipLostError
from ordering.progress import Progress
from sinks.bookkeeping.progress_rows import Lease
from sinks.target import Target
from tests.service.lab import Feed, eventually

pytestmark = pytest.mark.service


def connected(feed: Feed) -> Target:
    target = target_of(feed.config)
    target.connect()
    return target


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("refused: 'a\0b'", r"refused: 'a\x00b'"),
        ("no such file (/dump/\udcff.sql)", r"no such file (/dump/\udcff.sql)"),
        ("\x1b[2J\u202e\r\n", "\x1b[2J\u202e\r\n"),
        ("%s %d {0} ' \" ` \\ ; --", "%s %d {0} ' \" ` \\ ; --"),
        ("𝄞" * 5000, "𝄞" * 4000),
    ],
    ids=["nul", "no-utf-8", "controls", "quotes", "long"],
)
def test_an_error_is_kept_whatever_it_holds(every_feed: Feed, error: str, kept: str) -> None:
    with closing(connected(every_feed)) as target:
        target.note_stop(every_feed.name, 3, error, None)
        stop = target.stops.last(every_feed.name)
    assert stop is not None
    assert (stop.exit_code, stop.error) == (3, kept)


def test_who_was_replaced_keeps_no_error(every_feed: Feed) -> None:
    """A stand-by takes over as soon as the leader has let go, which is before the leader says why it ended."""
    name = every_feed.name
    with closing(connected(every_feed)) as ended, closing(connected(every_feed)) as other:
        lease = Lease(name, ended.claim(name, Progress()).epoch)
        ended.close()
        eventually("the server notices that the leader is gone", lambda: other.try_lead(name))
        other.claim(name, Progress())
        other.stops.forget(name)
        ended.connect()
        with pytest.raises(LeadershipLostError):
            ended.note_stop(name, 3, "what ended it", lease)
        ended.note_stop(name, 3, "what ended one that never led", None)
        assert other.stops.last(name) is None


def test_who_led_until_the_end_keeps_its_error(every_feed: Feed) -> None:
    name = every_feed.name
    with closing(connected(every_feed)) as target:
        lease = Lease(name, target.claim(name, Progress()).epoch)
        target.close()
        target.connect()
        target.note_stop(name, 4, "what ended it", lease)
        stop = target.stops.last(name)
    assert stop is not None
    assert stop.error == "what ended it"


@pytest.mark.parametrize("has_led", [True, False])
def test_who_ends_does_not_wait_for_the_one_who_leads(mariadb_feed: Feed, has_led: bool) -> None:
    """A leader holds the lock of the epoch as long as its unit takes."""
    name = mariadb_feed.name
    with closing(connected(mariadb_feed)) as ended, closing(connected(mariadb_feed)) as other:
        lease = Lease(name, ended.claim(name, Progress()).epoch) if has_led else None
        ended.close()
        eventually("the server notices that the leader is gone", lambda: other.try_lead(name))
        theirs = Lease(name, other.claim(name, Progress()).epoch)
        ended.connect()
        with other.session.led_transaction(theirs):
            begun = time.monotonic()
            with nullcontext() if lease is None else pytest.raises(LeadershipLostError):
                ended.note_stop(name, 3, "what ended it", lease)
            assert time.monotonic() - begun < 20
        assert other.stops.last(name) is None
