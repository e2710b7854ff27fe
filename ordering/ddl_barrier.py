"""DDLs in commitTs order: which are still to be executed, where a window has to end for them (R6).

A DDL at D follows every row with commitTs <= D and precedes every row above. So a window that meets one ends at D: its
rows up to D are applied, then the DDL, and the next window begins with the schema that its rows were written under.
A DDL below the checkpoint C was executed; one at C was if the record of DDLs executed at C holds it. What a changefeed
began with (`start-ts`, a loaded dump) counts as having executed all up to and at it.
"""

from collections.abc import Collection, Container, Iterable, Sequence

from ordering.events import DdlEvent, TableName, any_ddl_at
from ordering.timestamps import CheckpointTs, CommitTs, ResolvedTs


def is_executed(identity: str, commit_ts: int, executed: Collection[str]) -> bool:
    """Whether a DDL is among those that were executed at their commitTs."""
    return identity in executed or any_ddl_at(commit_ts) in executed


def pending(
    ddls: Iterable[DdlEvent], start: CheckpointTs, checkpoint: CheckpointTs, executed: frozenset[str]
) -> list[DdlEvent]:
    """The DDLs still to be executed, each once, in commitTs order; at one commitTs in the order of their messages."""
    found: dict[str, DdlEvent] = {}
    for ddl in sorted(ddls, key=lambda ddl: (ddl.commit_ts, ddl.position)):
        known = is_executed(ddl.identity, ddl.commit_ts, executed)
        done = ddl.commit_ts < checkpoint or (int(ddl.commit_ts) == checkpoint and known)
        if not done and ddl.commit_ts > start:
            found.setdefault(ddl.identity, ddl)
    return list(found.values())


def first_barrier(waiting: Iterable[DdlEvent], resolved: ResolvedTs) -> CommitTs | None:
    """Where the window has to end: the lowest pending DDL that is resolved."""
    return min((ddl.commit_ts for ddl in waiting if ddl.commit_ts <= resolved), default=None)


def executable(waiting: Iterable[DdlEvent], resolved: ResolvedTs, next_row: CommitTs | None) -> list[DdlEvent]:
    """The pending DDLs that may run once all rows below `next_row` are applied: no row lies before any of them."""
    return [ddl for ddl in waiting if ddl.commit_ts <= resolved and (next_row is None or ddl.commit_ts < next_row)]


def next_of(ready: Sequence[DdlEvent], there: Container[TableName], seen: ResolvedTs) -> DdlEvent | None:
    """Which of some DDLs in order runs next. `there`: the tables of the target.

    RENAME TABLE a TO z, b TO a comes as two DDLs with one commitTs, in the topics of the old names, and between topics
    there is no order: so the first whose old names are there and whose new ones are free. In a topic none is passed.
    `seen`: up to where every message was read. None if no one fits and others may come: at a watermark itself not every
    DDL has been sent. Later, the first whose new names no other one leaves.
    """
    first = ready[0]
    same = [ddl for ddl in ready if ddl.commit_ts == first.commit_ts]
    heads = {ddl.position.topic: ddl for ddl in reversed(same)}
    fitting = (ddl for ddl in same if heads[ddl.position.topic] is ddl and _fits(ddl, there))
    found = next(fitting, None)
    if found is not None or first.commit_ts >= seen:
        return found
    left = {name.folded for ddl in same for name in ddl.removes}
    free = (ddl for ddl in same if heads[ddl.position.topic] is ddl and not any(one.folded in left for one in ddl.adds))
    return next(free, first)


def _fits(ddl: DdlEvent, there: Container[TableName]) -> bool:
    renames = ddl.removes and ddl.adds
    return not renames or (all(name in there for name in ddl.removes) and not any(name in there for name in ddl.adds))
