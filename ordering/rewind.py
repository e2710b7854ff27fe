"""Going back to an earlier commitTs W while the target holds rows of the future, up to its checkpoint C.

Everything in (W, C] is applied once more as one unit, before anything else. It comes out right whatever of (W, C] the
target holds, even if each row stands at another moment in between: a row that an event of (W, C] touches gets its state
at C, one that none touches had this state all the time; and as all touched keys are deleted before any row is written
(R5), a row of the future never takes the place of a unique value. A smaller unit would meet such rows.

A DDL in between was executed, and rows from before it need not fit the table any more, so none may lie in (W, C]. Rows
without a key can't be applied again.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from ordering.events import Partition, any_ddl_at
from ordering.progress import PartitionProgress, Progress
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window


def reached(progress: Progress) -> CheckpointTs:
    """Up to where the target may hold rows: its checkpoint, or the end of the window that was begun."""
    window = progress.window
    return progress.checkpoint_ts if window is None else CheckpointTs(max(window.high, progress.checkpoint_ts))


def rewound(
    progress: Progress,
    to: CheckpointTs,
    spans: Mapping[Partition, tuple[int, int]],
    ledger: str,
    doubted: Collection[Partition] = (),
) -> Progress:
    """The progress that has gone back to `to`, with the window that is to be applied again.

    `spans`: where each partition begins to hold what is above `to`, and where it ends. `ledger`: the name of a new one,
    for the old one tells of another past; its key is made when it is first used. DDLs at `to` were executed or passed
    over, be it from files that spell them otherwise; those at the old checkpoint are kept as they are known. `doubted`:
    their watermarks are not believed any more, and count only as far as the checkpoint had come.
    """
    high = ResolvedTs(reached(progress))

    def believed(p: Partition, at: PartitionProgress) -> ResolvedTs | None:
        return min(at.watermark or high, high) if p in doubted else at.watermark

    kept = {p: replace(at, watermark=believed(p, at)) for p, at in progress.partitions.items()}
    partitions = {
        p: replace(at, start=min(at.start, spans[p][0]), passed=None) if p in spans else at for p, at in kept.items()
    }
    ranges = tuple(
        Range(p, partitions[p].start, end, partitions[p].counted_to)
        for p, (_, end) in sorted(spans.items())
        if p in partitions and partitions[p].start < end
    )
    window = Window(to, to, high, high, ranges, rewound=True)
    return replace(
        progress,
        checkpoint_ts=to,
        base_ts=to,
        partitions=partitions,
        executed=progress.executed | {any_ddl_at(to)},
        ledger=ledger,
        ledger_key="",
        window=window,
    )
