"""Cases that compare the compiled core with the Python path: messages that are mutated, split, windowed at random.

    python -m tests.consumer.native.fuzz [--first SEED] [--cases N] [--library PATH]

Each case is told by its seed. Reports, blocks and errors have to be the same, bytewise.
"""

import random
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec

from consumer.codec.canal_json import Plain
from consumer.native import Core
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.reduction import Reduction
from consumer.tasks.report import Report
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from consumer.tasks.scans.scan import Scan
from ordering.errors import ReconcilerError
from ordering.events import Partition, TableName
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from tests.consumer.native.fuzzing import compared
from tests.consumer.native.in_place import FakeShelf
from tests.service.lab import recorded
from tests.service.messages import lz4
from tests.service.mutations import mutated, plain

RECORDINGS = (
    "bank.index-value.raw", "bank.table.split", "types.table", "nokey.plain", "ddl-changes.index-value", "split.ts.raw",
    "names.table", "keys.index-value.split", "filters.plain", "large.claim-check.raw", "odd-keys.index-value.raw",
    "split.lz4.split",
)  # fmt: skip
_MOST_MESSAGES = 40
_SPELLINGS: tuple[tuple[bytes, bytes], ...] = (
    (b'"', b"\\u0022"), (b"1", b"\\u0031"), (b"a", b"\\u0061"), (b"a", "é".encode()), (b"1", "中文".encode()),
    (b"a", b"\\ud83d\\ude00"), (b"a", b"\\ud83d"), (b"1", b"\\/\\n"), (b"1", b"\xff"), (b":", b" : "),
    (b'"id":', b'"id" :'), (b'"old":null', b'"old":[]'), (b"null", b"{}"), (b"1", b"9" * 40),
    (b"id", b"x" * 300), (b"1", b"y" * 300),
)  # fmt: skip


class Outcome(NamedTuple):
    """All that a task makes of messages."""

    report: Report
    digest: bytes
    blocks: list[tuple[int, bytes]]
    sent: dict[int, int]
    error: str


class Case(NamedTuple):
    """Messages as they are read, and the window."""

    runs: list[list[Plain]]
    spec: ReadSpec
    part: Range
    drained: list[bool]
    """After which runs the reduction gives its blocks."""


class _Accepts(NamedTuple):
    """A filter without any cost."""

    refused: frozenset[str]

    def __call__(self, _database: str, table: str) -> bool:
        return table not in self.refused


@cache
def _genuine(name: str) -> list[bytes]:
    return [message.value for message in recorded(name) if message.value is not None]


def respelled(value: bytes, chance: random.Random) -> bytes:
    """Something else at one of the places where it stands."""
    wanted, other = chance.choice(_SPELLINGS)
    places = value.count(wanted)
    if not places:
        return value
    parts = value.split(wanted)
    at = chance.randrange(places)
    return wanted.join(parts[: at + 1]) + other + wanted.join(parts[at + 1 :])


def reordered(value: bytes, chance: random.Random) -> bytes:
    """The same members in another order, or with one of them twice."""
    try:
        members = list(msgspec.json.decode(value, type=dict[str, msgspec.Raw]).items())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value
    if chance.random() < 0.3:
        members.append(chance.choice(members))
    chance.shuffle(members)
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(raw) for name, raw in members) + b"}"


def _messages(chance: random.Random) -> list[bytes]:
    genuine = _genuine(chance.choice(RECORDINGS))
    begin, faults = chance.randrange(len(genuine)), chance.choice((0.0, 0.02, 0.1, 0.5))
    some = genuine[begin : begin + chance.randint(1, _MOST_MESSAGES)]
    if chance.random() < 0.3:
        some += chance.choices(some, k=len(some))  # the same again, and in another order
    if chance.random() < 0.2:
        chance.shuffle(some)
    return [_changed(value, chance) if chance.random() < faults else plain(value) for value in some]


def _changed(value: bytes, chance: random.Random) -> bytes:
    change: Callable[[bytes, random.Random], bytes] = chance.choice((mutated, respelled, respelled, reordered))
    changed = change(plain(value), chance)
    return lz4(changed) if changed and chance.random() < 0.02 else changed


def _stamps(messages: list[bytes]) -> list[int]:
    found = []
    for value in messages:
        try:
            tidb = msgspec.json.decode(value)["_tidb"]
            found.append(tidb["commitTs"] if "commitTs" in tidb else tidb["watermarkTs"])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
            continue
    return [ts for ts in found if isinstance(ts, int) and 0 < ts < MAX_TSO] or [1]


def case_of(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    messages = _messages(chance)
    stamps = sorted(_stamps(messages))
    high = ResolvedTs(chance.choice((MAX_TSO, MAX_TSO, stamps[-1], chance.choice(stamps), chance.choice(stamps) - 1)))
    base = CheckpointTs(chance.choice((0, 0, min(high, chance.choice(stamps)), min(high, stamps[0] - 1))))
    low = CheckpointTs(chance.choice((base, min(high, max(base, chance.choice(stamps))))))
    first = chance.choice((0, 5, 1 << 40))
    offsets = (
        range(first, first + len(messages)) if chance.random() < 0.8 else range(first, first + 9 * len(messages), 9)
    )
    kept = [Plain(offset, value) for offset, value in zip(offsets, messages, strict=True)]
    part = Range(Partition("t", 0), first, offsets[-1] + 1, chance.choice((0, first, chance.choice(offsets))))
    runs, at = [], 0
    while at < len(kept):
        length = chance.choice((1, 2, 7, _MOST_MESSAGES, _MOST_MESSAGES))
        runs.append(kept[at : at + length])
        at += length
    window = Window(low, base, high, ResolvedTs(max(high, stamps[-1])) if chance.random() < 0.5 else high, (part,))
    keys = {TableName("d", "t"): ("id",), TableName("fixtures", "nokey"): ("a", "b")} if chance.random() < 0.5 else {}
    refused = (
        frozenset(chance.sample(("t", "types", "account", "bank", "a"), k=1)) if chance.random() < 0.3 else frozenset()
    )
    spec = ReadSpec(window, keys, _Accepts(refused), chance.randint(1, 5), chance.choice((1 << 20, 1 << 20, 700)))
    return Case(runs, spec, part, [chance.random() < 0.2 for _ in runs])


def outcome_of(case: Case, core: Core | None, shelf: FakeShelf | None = None) -> Outcome:
    """What the core makes of a case, with a shelf in place; without it, what `Scan` does."""
    reduction: Reduction
    scan: Scan
    if core is None:
        reduction = Reduction(case.spec)
        scan = Scan(case.spec, case.part, reduction)
    else:
        reduction = compiled = CompiledReduction(case.spec, core)
        scan = CompiledScan(case.spec, case.part, compiled)
    error, blocks = "", []
    try:
        for run, drained in zip(case.runs, case.drained, strict=True):
            if not (scan.take(run) if shelf is None else _all_taken(scan, run, shelf)):
                break
            if drained:
                blocks += list(reduction.blocks())
    except ReconcilerError as raised:
        error = f"{type(raised).__name__} {raised}"
    blocks += list(reduction.blocks())
    report = scan.finished()
    return Outcome(report, report.digest, blocks, dict(reduction.sent), error)


def _all_taken(scan: Scan, run: list[Plain], shelf: FakeShelf) -> bool:
    told = [("t", 0, message.offset(), message.value(), 0) for message in run]
    return all(scan.take(some) for some in shelf.batch(told).runs())


def check(seed: int, core: Core, shelf: FakeShelf) -> int:
    """Raise AssertionError unless all agree; how many rows there were."""
    case = case_of(seed)
    wanted = outcome_of(case, None)
    for where in (None, shelf):
        found = outcome_of(case, core, where)
        place = "copied" if where is None else "in place"
        assert found == wanted, f"case {seed} {place}: {_difference(found, wanted)}"
    shelf.shelf.clear()
    assert not shelf.library.given
    return len(wanted.report.fingerprints) // 8


def _difference(found: Any, wanted: Any) -> str:
    names = [name for name in Outcome._fields if getattr(found, name) != getattr(wanted, name)]
    shown = names[0]
    return f"{names} differ: {getattr(found, shown)!r} is not {getattr(wanted, shown)!r}"[:4_000]


def main() -> int:
    """Compare many cases."""
    return compared(__doc__, lambda core: partial(check, core=core, shelf=FakeShelf(core)))


if __name__ == "__main__":
    sys.exit(main())
