"""Scripts that were recorded at once, put together again: one changefeed plays as many of them as it gets through.

So windows have many DDLs, and the target many tables of one name in several databases; it is not cheaper. In the log of
a recording each script is a stretch of time; what lies between two scripts are watermarks. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from consumer.demo.fake_ticdc.changefeed import Message
from tests.differential.recording import Recording

_TS = re.compile(rb'"(?:commitTs|watermarkTs)": *(\d+)')
_DATABASE = re.compile(r"CREATE DATABASE ", re.IGNORECASE)


def ts_of(message: Message) -> int:
    """When it was committed; the envelope is the end of a message."""
    return int(_TS.findall(message.value)[-1])


def first_ts(recording: Recording) -> int:
    """When a script begins."""
    return min(ts_of(message) for message in recording.messages)


def groups(recordings: Sequence[Recording], scripts: int, databases: int) -> Iterator[list[Recording]]:
    """As many scripts as may be played together: in one order of time, with no more than this many databases."""
    group: list[Recording] = []
    for one in recordings:
        follows = not group or first_ts(one) > first_ts(group[-1])
        if group and not (follows and len(group) < scripts and _databases([*group, one]) <= databases):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _databases(recordings: Sequence[Recording]) -> int:
    return sum(bool(_DATABASE.match(statement)) for one in recordings for statement in one.statements)


def joined(recordings: Sequence[Recording]) -> list[Message]:
    """Their messages, in order of time, without the watermarks that end a script before the last one."""
    found: list[Message] = []
    for one, following in pairwise(recordings):
        end = first_ts(following)
        found += [message for message in one.messages if ts_of(message) < end]
    return found + recordings[-1].messages


def stopped_in(recordings: Sequence[Recording], checkpoint_ts: int) -> int:
    """Which of them was being played when a changefeed stopped at this checkpoint."""
    return max(bisect_right([first_ts(one) for one in recordings], checkpoint_ts) - 1, 0)
