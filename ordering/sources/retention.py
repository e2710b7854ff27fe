"""Whether a log whose beginning retention has deleted still holds all that lies above a commitTs (R8).

Watermarks prove nothing here, for rows run ahead of them: the last row that was deleted may lie above the first
watermark that is left. Kafka's time of the first message that is left does: what was deleted was written before it, and
nothing is written before it was committed. A log that begins with its first message lacks nothing.
"""

from collections.abc import Collection, Mapping

from ordering.events import Partition
from ordering.timestamps import physical_ms

CLOCK_SLACK_MS = 600_000
"""By so much the clocks of upstream and Kafka may differ, and a message may wait in its producer."""


def lacking(
    begins: Mapping[Partition, int], times: Mapping[Partition, int], ts: int, known: Collection[str] = ()
) -> list[Partition]:
    """As `may_lack`, of logs that somebody else's changefeed may have begun at any time: all of them then.

    A topic that was created again is one of them by itself, so each has to be old enough but those that are `known` to
    be the same ones as before.
    """
    if began_after(times, ts):
        return sorted(begins)
    firsts = {topic: {p: ms for p, ms in times.items() if p.topic == topic} for topic in {p.topic for p in begins}}
    young = {topic for topic, first in firsts.items() if topic not in known and began_after(first, ts)}
    return sorted({*may_lack(begins, times, ts), *(p for p in begins if p.topic in young)})


def began_after(times: Mapping[Partition, int], ts: int) -> bool:
    """Whether what writes to these logs may have begun after `ts`: none of them was written to long enough before.

    A log that begins with its first message tells nothing by itself: a changefeed that was made later, or made again,
    begins so in topics of its own. `times`: as `may_lack` has them, of all partitions.
    """
    return min(times.values(), default=physical_ms(ts)) + CLOCK_SLACK_MS > physical_ms(ts)


def may_lack(begins: Mapping[Partition, int], times: Mapping[Partition, int], ts: int) -> list[Partition]:
    """The partitions from which something above `ts` may have been deleted. `begins`: where they begin now.

    `times`: of the first message that is left, in ms since 1970; a partition that holds none, or no time, may lack all.
    """
    cut = sorted(p for p, begin in begins.items() if begin > 0)
    return [p for p in cut if not ts or p not in times or times[p] + CLOCK_SLACK_MS > physical_ms(ts)]
