"""Status while a run goes on: what was probed is told together with what was applied since."""

from consumer.operate.status import resolved_told
from consumer.source.offer import PartitionProbe, Probe
from ordering.events import Partition
from ordering.progress import PartitionProgress, Progress
from ordering.timestamps import ResolvedTs
from ordering.watermark import global_resolved

FIRST, SECOND = Partition("t", 0), Partition("t", 1)


def test_offsets_are_those_of_the_progress() -> None:
    probed = {
        FIRST: PartitionProbe(PartitionProgress(3, 3), 9, 9, ResolvedTs(8), 1),
        SECOND: PartitionProbe(PartitionProgress(0, 0), 4, 5, ResolvedTs(9)),
    }
    probe = Probe({}, probed, global_resolved({p: found.watermark for p, found in probed.items()}))
    before = resolved_told(Progress(), probe)["partitions"]
    assert [(p["begin_offset"], p["offset"], p["end_offset"], p["unread"]) for p in before] == [
        (1, 3, 9, 6),
        (0, 0, 5, 5),
    ]
    after = Progress(partitions={FIRST: PartitionProgress(9, 9), SECOND: PartitionProgress(4, 4)})
    assert [(p["offset"], p["unread"]) for p in resolved_told(after, probe)["partitions"]] == [(9, 0), (4, 1)]
