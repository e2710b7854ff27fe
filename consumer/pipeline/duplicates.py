"""What the fingerprints of a window prove: duplicates, late events, identities with two contents (R3, R8)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from consumer.ddl.table_changes import Altered
from consumer.redis.fingerprints import Fingerprints, ambiguous, count_distinct, joined
from consumer.redis.ledger import Judgement, Ledger
from consumer.tasks.report import Report
from consumer.tasks.second_look import Content
from ordering.errors import InputError, LateEventError, SourceUnreachableError
from ordering.events import Position
from ordering.timestamps import utc_text

_COLUMNS = 5
"""Of a repeated event: fingerprint, another that proves it, commitTs, offset, what it is of."""


def merged_fingerprints(reports: Sequence[Report]) -> Fingerprints:
    """The fingerprints of all halves that a window released."""
    return joined([r.fingerprints for r in reports] + [r.more_fingerprints for r in reports])


def duplicates_in(reports: Sequence[Report]) -> int:
    """Messages of a window whose identity another message of it has."""
    prints = joined(r.fingerprints for r in reports)
    return len(prints) - count_distinct(prints)


def suspicious(reports: Sequence[Report]) -> frozenset[int]:
    """Fingerprints that came with two hashes of their content: mostly only spelled differently."""
    return ambiguous(joined(r.fingerprints for r in reports), joined(r.contents for r in reports))


def check_contents(found: Sequence[Content], suspects: frozenset[int]) -> None:
    """Raise InputError if two messages with one identity differ in meaning.

    Raises SourceUnreachableError where messages that made an identity suspicious were not found again.
    """
    spellings: dict[int, set[int]] = {}
    for content in found:
        spellings.setdefault(content.fingerprint, set()).add(content.spelling)
    if missing := [suspect for suspect in suspects if len(spellings.get(suspect, ())) <= 1]:
        fact = f"of {len(suspects)} rows that came with two contents each, both of {len(missing)} were not found again"
        raise SourceUnreachableError(fact, hint="if this comes again: look whether the topic's retention is too short")
    first: dict[bytes, Content] = {}
    for content in sorted(found, key=lambda c: (c.partly, c.position)):
        known = first.setdefault(content.identity, content)
        if not known.agrees(content):
            raise InputError(
                f"two messages with one identity and different content: {content.name}",
                where=" and ".join(str(c.position) for c in sorted((known, content), key=lambda c: c.position)),
                hint="the topic holds messages of two changefeeds or of a restored upstream: use a new topic",
            )


def repeated_in(report: Report) -> Fingerprints:
    """The events at or below the checkpoint of a report, see `Ledger.judge`."""
    return joined([report.repeated]).reshape(-1, _COLUMNS)


def judged(reports: Sequence[Report], ledger: Ledger, altered: Callable[[], Altered]) -> Judgement:
    """Judge events at or below the checkpoint. Raises LateEventError for one that was never applied, for certain.

    `altered` is asked only where the ledger does not know an event though it should.
    """
    arrays = [repeated_in(report) for report in reports]
    events = np.concatenate(arrays) if arrays else np.empty((0, _COLUMNS), dtype=np.uint64)
    verdict = ledger.judge(events)
    unproven = verdict.unproven + sum(report.unjudged for report in reports)
    if verdict.late:
        owners = np.repeat(np.arange(len(reports)), [len(a) for a in arrays])
        late = _for_certain(reports, events, owners, verdict.late, altered())
        if late:
            raise _late(reports, events, owners, late)
        unproven += len(verdict.late)
    return replace(verdict, unproven=unproven, late=())


def _for_certain(
    reports: Sequence[Report],
    events: Fingerprints,
    owners: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    late: Sequence[int],
    altered: Altered,
) -> list[int]:
    """Those of the events that nobody saw applied whose fingerprint is still the one that they had."""
    return [
        i for i in late
        if not altered.since(reports[int(owners[i])].repeated_of[int(events[i, 4])], int(events[i, 2]))
    ]  # fmt: skip


def _late(
    reports: Sequence[Report],
    events: Fingerprints,
    owners: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    late: Sequence[int],
) -> LateEventError:
    positions = sorted(
        (Position(*reports[int(owners[i])].range.partition, int(events[i, 3])), int(events[i, 2])) for i in late
    )
    position, ts = positions[0]
    return LateEventError(
        f"late event: commitTs {ts} ({utc_text(ts)} UTC) lies at or below the checkpoint and was never applied;"
        f" {len(late)} such in this window, the first",
        where=str(position),
        hint="TiCDC broke its promise or a topic was fed by hand: compare with upstream (`reconciler verify`), then"
        " rebuild the target from a dump or reset the progress",
    )
