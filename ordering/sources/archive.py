"""From topics to the files of an archive and back: two changefeeds of TiCDC over the same tables hold the same changes.

So nothing but a checkpoint C is carried over: every change at or below it is in the target, and what the other source
holds at or below it is dropped. Each switch is one commit, without rows; a crash leaves one of both sources.

- To the archive: its resolvedTs has to be at or above all that the target may hold (`reached`). A window that tasks
  have begun to write is done again with the archive's rows, for these are the same.
- Back: everything above C has to be in the topics (`ordering.sources.retention`). They are read from where they begin.
- DDLs right at C: either source may give one after its watermark or checkpoint C. One that was executed there stands
  for all at C, as one statement has a commitTs for itself; if none was, the one of the other source is executed. Where
  a statement comes in parts (RENAME, CREATE of several tables), nothing goes over before all of them are executed.
- What topics carry is not known any more, for a CREATE TABLE in a file names no topic: no topic ends by itself that has
  not ended before (R6).
"""

from collections.abc import Collection
from dataclasses import replace

from ordering.events import any_ddl_at, commit_ts_of, rest_at
from ordering.progress import Progress, TopicProgress
from ordering.window import Range

FILES = "storage"
"""In the place of a topic's id: what is read are files."""


def taken_up(progress: Progress, *, because: str, ledger: str) -> Progress:
    """The progress once another source is read on from its checkpoint. `ledger`: the name of a new one.

    `because`: why it is the archive; "" for the topics, and for a changefeed that moves for good.
    """
    at = progress.checkpoint_ts
    done = progress.executed | {any_ddl_at(commit_ts_of(identity)) for identity in progress.executed}
    return replace(
        progress,
        base_ts=at,
        joined_ts=at,
        partitions={},
        topics={name: _unsure(topic) for name, topic in progress.topics.items() if topic.id != FILES},
        executed=done,
        ledger=ledger,
        ledger_key="",
        ledger_terms=(),
        archived=because,
    )


def begun_again(progress: Progress, ranges: tuple[Range, ...]) -> Progress:
    """The progress with the window that was begun, if there is one, to be read from these ranges."""
    window = progress.window
    if window is None:
        return progress
    high = window.high
    again = replace(window, base=progress.base_ts, resolved=high, ranges=ranges, ahead=False)
    return replace(progress, window=again)


def is_half_done(executed: Collection[str], at: int, parts: int = 0) -> bool:
    """Whether a statement at `at` was executed in part: topics have a message, files a file, for each of its parts.

    `parts`: how many the other source has; those that this one was known to have are told by what was executed.
    """
    done = sum(commit_ts_of(identity) == at for identity in executed)
    return any_ddl_at(at) not in executed and (rest_at(at) in executed or 0 < done < parts)


def _unsure(topic: TopicProgress) -> TopicProgress:
    return replace(topic, complete=topic.ended)
