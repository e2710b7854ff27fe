"""Rows of one shard in a merged table: one statement deletes them, or gives them another origin."""

from collections.abc import Sequence
from typing import NamedTuple

from ordering.events import TableName
from sinks.rows.chained import chained
from sinks.rows.routed import Origin

Statement = tuple[str, tuple[str, ...]]
"""With marks, and what is bound to them."""


class OriginRows(NamedTuple):
    """The rows of one shard. `place`: the table; `becomes`: what they are to hold instead; None: they are to go."""

    place: TableName
    origin: Origin
    becomes: Origin | None = None


class Spelling(NamedTuple):
    """How a dialect names a table and its columns. `moved`: those that an UPDATE sets to the present (ON UPDATE)."""

    place: str
    columns: tuple[str, ...]
    mark: str
    moved: tuple[str, ...] = ()


def changed_rows(rows: OriginRows, spelling: Spelling) -> Statement:
    """The statement that deletes or changes them."""
    values = tuple(value for _, value in rows.origin)
    if rows.becomes is None:
        return f"DELETE FROM {spelling.place} WHERE {_equal(spelling)}", values  # noqa: S608 quoted
    named = ", ".join(f"{column} = {spelling.mark}" for column in spelling.columns)
    named += "".join(f", {column} = {column}" for column in spelling.moved)
    new = tuple(value for _, value in rows.becomes)
    return f"UPDATE {spelling.place} SET {named} WHERE {_equal(spelling)}", new + values  # noqa: S608 quoted


def other_rows(origins: Sequence[Origin], spelling: Spelling) -> Statement:
    """The query that finds a row of none of these origins."""
    known = chained(" OR ", [f"({_equal(spelling)})" for _ in origins])
    values = tuple(value for origin in origins for _, value in origin)
    return f"SELECT 1 FROM {spelling.place} WHERE NOT ({known}) LIMIT 1", values  # noqa: S608 quoted


def own_rows(origin: Origin, spelling: Spelling) -> Statement:
    """The query that finds a row of this origin."""
    values = tuple(value for _, value in origin)
    return f"SELECT 1 FROM {spelling.place} WHERE {_equal(spelling)} LIMIT 1", values  # noqa: S608 quoted


def _equal(spelling: Spelling) -> str:
    return " AND ".join(f"{column} = {spelling.mark}" for column in spelling.columns)
