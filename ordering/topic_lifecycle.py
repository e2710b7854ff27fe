"""The life of a topic: which tables it carries, and when it has ended (R6).

With a topic per table, a topic whose tables were all dropped or renamed away gets no watermark any more, and would hold
back all others for ever. Every row up to the DDL that took its last table was sent before that DDL. So the DDL's
commitTs counts as watermark of each of its partitions, for end offsets that were read after the DDL was seen. Which
tables a topic carried is known only from its own messages, from the first on; otherwise nothing is guessed.
"""

from collections.abc import Iterable
from dataclasses import replace

from ordering.events import DdlEvent, TableName, folded
from ordering.progress import TopicProgress
from ordering.timestamps import CommitTs, ResolvedTs


def carrying(topic: TopicProgress, tables: Iterable[TableName]) -> TopicProgress:
    """The topic once rows of these tables were seen in it."""
    more = frozenset(tables)
    return replace(topic, tables=topic.tables | more, ended=topic.ended and not more)


def after(topic: TopicProgress, name: str, ddl: DdlEvent) -> TopicProgress:
    """The topic once a DDL was executed. Tables that a DDL adds count for the topic that its message came through."""
    before, tables = _stepped(topic.tables, name, ddl)
    ended = topic.complete and not tables and (topic.ended or bool(before))
    return replace(topic, tables=tables, ended=ended)


def end_of(topic: TopicProgress, name: str, ddls: Iterable[DdlEvent]) -> ResolvedTs | None:
    """The commitTs of the DDL, among those not yet executed, that takes the topic's last table; None while one is left.

    `ddls` in commitTs order. A table that comes back later (DROP, then CREATE through the same topic) keeps it alive.
    """
    if not topic.complete:
        return None
    tables, ended = topic.tables, CommitTs(0)
    for ddl in ddls:
        before, tables = _stepped(tables, name, ddl)
        if before and not tables:
            ended = ddl.commit_ts
    return ResolvedTs(ended) if ended and not tables else None


def _stepped(
    tables: frozenset[TableName], name: str, ddl: DdlEvent
) -> tuple[frozenset[TableName], frozenset[TableName]]:
    """The tables of the topic `name` before and after a DDL.

    What its own DDL removes it carried, rows or none. What its own CREATE makes is what the message names: the
    statement may leave the database out.
    """
    own = name == ddl.position.topic
    before = tables | frozenset(ddl.removes if own else ())
    left = frozenset(table for table in before if not _removed(table, ddl))
    made = own and ddl.adds and not ddl.removes
    return before, left | frozenset([TableName(ddl.database, ddl.table)] if made else ())


def _removed(table: TableName, ddl: DdlEvent) -> bool:
    """Whether it is gone: upstream's names don't tell case apart, and a statement spells them as it likes."""
    if ddl.drops_database is not None and folded(table.database) == folded(ddl.drops_database):
        return True
    return any(table.folded == name.folded for name in ddl.removes)
