"""Random DDL events."""

from hypothesis import strategies as st

from ordering.events import DdlEvent, Position, TableName
from ordering.timestamps import CommitTs

NAMES = st.builds(TableName, st.sampled_from("de"), st.sampled_from("ab"))


def ddl(
    ts: int,
    *,
    topic: str = "t",
    offset: int = 0,
    removes: tuple[TableName, ...] = (),
    adds: tuple[TableName, ...] = (),
    drops: str | None = None,
    sql: str = "",
) -> DdlEvent:
    """A DDL event."""
    text = sql or f"{removes} {adds} {drops}"
    database, table = adds[0] if adds else ("d", "t")
    return DdlEvent(Position(topic, 0, offset), CommitTs(ts), "QUERY", database, table, text, removes, adds, drops)


DDLS = st.builds(
    ddl,
    st.integers(1, 6),
    topic=st.sampled_from("ab"),
    offset=st.integers(0, 9),
    removes=st.lists(NAMES, max_size=1).map(tuple),
    adds=st.lists(NAMES, max_size=1).map(tuple),
    drops=st.sampled_from([None, None, "d"]),
)
