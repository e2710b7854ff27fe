"""Messages that are quarantined, where the operator opted in: what is known of them, and what they leave behind.

    undecodable message                 passed over: whatever it was is missing
    refused WRITE of a row              its row is taken out of the target: a hole, until a later event writes the row
    refused DELETE of a row             passed over: the row stays

So at every checkpoint the target is the upstream without the rows whose last event is held (and with those whose DELETE
is). A hole, not the row's older state, because what is left is a part of one state of the upstream: all unique keys
hold in it, so one refused row never makes others be refused, and nobody takes an old row for a right one.

    held -> superseded      a later event of the row was applied: nothing is missing any more
    held -> replayed        applied by an operator's word
    held -> discarded       left out by an operator's word
    held -> retried         the progress was set back: the message is read again, and held again if it is refused again
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from ordering.events import Partition, Position


class QuarantineState(Enum):
    """What became of a message that was quarantined."""

    HELD = "held"
    SUPERSEDED = "superseded"
    REPLAYED = "replayed"
    DISCARDED = "discarded"
    RETRIED = "retried"


UNDECIDED = {QuarantineState.HELD, QuarantineState.SUPERSEDED}
"""What counts against the limit: nobody has looked at it yet."""


class Mode(IntEnum):
    """How a row event that is quarantined is passed: its row is taken out, or left as it is."""

    HOLE = 0
    SKIP = 1


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A message that is quarantined: where it lies, its bytes, why; `commit_ts` and `row` (its key) where known.

    `timestamp` is Kafka's, in milliseconds since 1970. `about` names the row for people, `note` says what was decided.
    """

    position: Position
    reason: str
    timestamp: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    commit_ts: int | None = None
    row: bytes | None = None
    about: str = ""
    state: QuarantineState = QuarantineState.HELD
    note: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True)
class AppliedWindow:
    """What was applied of commitTs in (`above_ts`, `upto_ts`], as the audit tells it.

    `duration_ms`: from where it began to be applied to just before its commit. `rows`: deleted and written, of them by
    table in `tables` (DATABASE.TABLE), None where a crash has lost that. `rows_before`: of all windows before it.
    """

    above_ts: int
    upto_ts: int
    duration_ms: int
    rows: int
    rows_before: int
    tables: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What changes together with the progress: in the quarantine, of upstream's schemas that are kept, in the audit.

    `schemas`: names and definitions that are new; `outdated`: names of those that nothing needs any more.
    """

    held: tuple[Quarantined, ...] = ()
    decided: tuple[tuple[Position, QuarantineState, str], ...] = ()
    schemas: tuple[tuple[str, str], ...] = ()
    outdated: tuple[str, ...] = ()
    applied: tuple[AppliedWindow, ...] = ()


NO_CHANGES = Changes()


@dataclass(frozen=True, slots=True)
class Marks:
    """What reading tasks have to know.

    `tolerant`: undecodable messages are reported instead of raised. `aside`: row events to be passed, by offset.
    `watched`: the keys of rows that are missing, with the commitTs of the event that is held.
    """

    tolerant: bool = False
    aside: Mapping[Partition, Mapping[int, Mode]] = field(default_factory=dict)
    watched: Mapping[bytes, int] = field(default_factory=dict)
