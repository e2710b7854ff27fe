"""Cases that compare what the compiled core makes of messages of the Simple protocol with what Python does.

    python -m tests.consumer.native.simple_fuzz [--first SEED] [--cases N] [--library PATH]

Each case is told by its seed. Events, errors and the schemas that were met have to be the same, bytewise.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

from consumer import native
from consumer.codec.canal_json import Plain
from consumer.codec.joined_run import JoinedRun
from consumer.formats.message_format import Refused
from consumer.formats.simple.protocol import Simple
from consumer.native import Core, Wanted
from ordering.events import Partition
from tests.consumer.native.fuzz import reordered, respelled
from tests.consumer.native.fuzzing import compared
from tests.consumer.native.in_place import FakeShelf
from tests.service.lab import recorded
from tests.service.mutations import spoiled
from tests.simple_protocol import as_simple

RECORDINGS = (
    "bank.index-value.raw", "types.table", "nokey.plain", "ddl-changes.index-value", "split.ts.raw", "names.table",
    "keys.index-value.split", "filters.plain", "large.claim-check.raw", "odd-keys.index-value.raw",
)  # fmt: skip
_OPTIONS: tuple[dict[str, Any], ...] = ({}, {}, {}, {"zone": "Asia/Shanghai"}, {"checksums": True}, {"late": True})
_MOST_MESSAGES, _MOST_SCHEMAS = 90, 30
_LIMIT = 1 << 20
_PARTITION = Partition("t", 0)


class Outcome(NamedTuple):
    """All that is made of messages."""

    events: list[tuple[int, bytes | str]]
    """Offset, and the event or why there is none."""
    learned: list[Any]


class _Reader:
    """Gives runs of messages."""

    def __init__(self, runs: Iterator[Sequence[Any]]) -> None:
        self._given = runs

    def read(self, _spans: object) -> Iterator[tuple[Partition, Sequence[Any]]]:
        return ((_PARTITION, run) for run in self._given)


@cache
def _genuine(name: str, option: int) -> list[bytes]:
    messages = recorded(name)
    return [value for m in as_simple(messages, **_OPTIONS[option]) if (value := m.value) is not None]


def runs_of(seed: int) -> list[list[Plain]]:
    """The messages of a case, as they are read."""
    chance = random.Random(seed)
    genuine = _genuine(chance.choice(RECORDINGS), chance.randrange(len(_OPTIONS)))
    begin, faults = chance.randrange(len(genuine)), chance.choice((0.0, 0.02, 0.1, 0.5))
    schemas = [value for value in genuine[:begin] if b'"tableSchema"' in value][-_MOST_SCHEMAS:]
    some = schemas + genuine[begin : begin + chance.randint(1, _MOST_MESSAGES)]
    values = [_changed(value, chance) if chance.random() < faults else value for value in some]
    kept = [Plain(offset * 3, value) for offset, value in enumerate(values)]
    length = chance.choice((1, 7, len(kept)))
    return [kept[at : at + length] for at in range(0, len(kept), length)]


def _changed(value: bytes, chance: random.Random) -> bytes:
    return bytes(chance.choice((spoiled, respelled, respelled, reordered))(value, chance))


def outcome_of(runs: list[list[Plain]], wanted: Wanted, shelf: FakeShelf | None = None) -> tuple[Outcome, int]:
    """What is made of messages, and how many events came from the core."""
    events: list[tuple[int, bytes | str]] = []
    by_core = 0
    given = iter(runs) if shelf is None else _in_place(runs, shelf)
    format_ = Simple("UTC", native=wanted)
    reading = format_.reading(_Reader(given), _LIMIT)  # type: ignore[arg-type]
    for _, run in reading.read([]):
        by_core += len(run) if isinstance(run, JoinedRun) else 0
        events += [(one.offset(), str(one.why) if isinstance(one, Refused) else one.value()) for one in run]
    return Outcome(events, format_.learned(reading)), by_core


def _in_place(runs: list[list[Plain]], shelf: FakeShelf) -> Iterator[Sequence[Any]]:
    for run in runs:
        yield from shelf.batch([("t", 0, message.offset(), message.value(), 0) for message in run]).runs()


def check(seed: int, core: Core, shelf: FakeShelf) -> int:
    """Raise AssertionError unless all agree; how many events the core gave."""
    runs = runs_of(seed)
    by_python, _ = outcome_of(runs, wanted=False)
    with patch.object(native, "LIBRARY", core.path):
        for where in (None, shelf):
            found, by_core = outcome_of(runs, True, where)
            place = "copied" if where is None else "in place"
            assert found == by_python, f"case {seed} {place}: {_difference(found, by_python)}"
    shelf.shelf.clear()
    assert not shelf.library.given
    return by_core


def _difference(found: Outcome, wanted: Outcome) -> str:
    pairs = zip(found.events, wanted.events, strict=False)
    first = next(((one, other) for one, other in pairs if one != other), (found.learned, wanted.learned))
    return f"{first[0]!r} is not {first[1]!r}"[:4_000]


def main() -> int:
    """Compare many cases."""
    return compared(__doc__, lambda core: partial(check, core=core, shelf=FakeShelf(core)))


if __name__ == "__main__":
    sys.exit(main())
