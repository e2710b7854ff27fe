"""The SQL that makes the target's rows as they are upstream: in each table all deletes before all writes (R5).

Rows of a table whose other unique keys could collide are deleted and inserted; others are updated, so that columns of
the target's own keep their values. A row with masks is not inserted: nothing here computes them.
"""

from collections.abc import Callable, Iterator

from consumer.verify.narrow import Difference
from consumer.verify.plan import Comparison
from consumer.verify.report import TableOutcome, VerifyOutcome
from ordering.errors import TargetError
from ordering.timestamps import utc_text
from sinks.compare.repair_sql import Mender

_MERGED = "its rows lie beside those of other tables, and a statement would change those too"


def repair(outcome: VerifyOutcome, mender: Mender) -> Iterator[str]:
    """The lines of the file, each a whole statement or a comment; deterministic."""
    at = f"{outcome.checkpoint_ts} ({utc_text(outcome.checkpoint_ts)} UTC)"
    yield f"-- makes {outcome.sides[1]} as {outcome.sides[0]} was at checkpoint {at}; look through it before you run it"
    yield "-- run it so that it ends at the first error: psql -v ON_ERROR_STOP=1, mysql without --force, sqlite3 -bail"
    yield "-- right only while the checkpoint is this one: stop `reconciler run` first, start it again afterwards"
    yield from (f"-- not repaired here: {_plain(f'{name}: {text}')}" for name, _, text in outcome.plan.schema)
    differing = [table for table in outcome.tables if table.differences]
    for table in differing:
        for one in table.differences:
            if one.kind == "unnamed":
                yield f"-- not repaired here: {_plain(f'{table.comparison.name}: {one.note}')}"
    yield from mender.head(sorted({table.comparison.right.here.database for table in differing}))
    for table in differing:
        yield f"-- {_plain(str(table.comparison.name))}"
        if why := _why_not(table.comparison):
            yield f"-- not repaired here: {_plain(why)}"
            continue
        yield from (f"-- {_plain(text)}" for text in table.comparison.right.acting)
        yield from _deletes(table, mender)
        yield from _writes(table, mender)
    yield from mender.tail()


def _plain(text: str) -> str:
    """A text that stays in its line."""
    return text if text.isprintable() else repr(text)


def _why_not(comparison: Comparison) -> str:
    """Why no row of a table is repaired; "" where they are."""
    right = comparison.right
    if right.unfit:  # what a statement does to it is not what it says
        return f"the target's table {right.unfit}; {right.remedy}"
    return _MERGED if _is_merged(comparison) else ""


def _is_merged(comparison: Comparison) -> bool:
    """Whether nothing here says whose a row is in the target's table."""
    named = {pair.right.name for pair in comparison.pairs}
    return any(column not in named for column, _ in comparison.right.origin)


def _replaces(comparison: Comparison) -> bool:
    return not comparison.unique or comparison.right.has_other_unique_keys(tuple(p.right.name for p in comparison.keys))


def _is_replaced(comparison: Comparison) -> bool:
    return _replaces(comparison) and not comparison.masked


def _loses_own(comparison: Comparison) -> bool:
    """Whether a row that is replaced would lose what the target alone holds of it."""
    return _is_replaced(comparison) and bool(comparison.right.own_columns([p.right.name for p in comparison.pairs]))


def _deletes(table: TableOutcome, mender: Mender) -> Iterator[str]:
    replaced = _is_replaced(table.comparison) and not _loses_own(table.comparison)
    for one in table.differences:
        if one.right is not None and (one.left is None or replaced):
            yield _told(lambda one=one: _delete(table.comparison, one, mender))  # type: ignore[misc]


def _told(statement: Callable[[], str]) -> str:
    """A statement; where the target can't hold a value, why there is none."""
    try:
        return statement()
    except TargetError as error:
        return f"-- not repaired here: {_plain(error.fact)}"


def _delete(comparison: Comparison, one: Difference, mender: Mender) -> str:
    row = one.right or ()
    if comparison.keys and comparison.unique:
        return mender.delete(comparison.right.here, comparison.keys, _key(comparison, row))
    if comparison.masked:
        raise _unrepaired(comparison, one, "rows that differ in their masks alone can't be told apart")
    return mender.delete_one(comparison.right.here, comparison.pairs, row, comparison.right.columns)


def _writes(table: TableOutcome, mender: Mender) -> Iterator[str]:
    loses_own = _loses_own(table.comparison)
    for one in table.differences:
        if one.left is not None:
            yield _told(lambda one=one: _write(table.comparison, one, mender, loses_own))  # type: ignore[misc]


def _write(comparison: Comparison, one: Difference, mender: Mender, loses_own: bool) -> str:
    if one.right is None or _replaces(comparison):
        if comparison.masked:
            raise _unrepaired(comparison, one, "an INSERT would lack its masks")
        if one.right is not None and loses_own:
            raise _unrepaired(comparison, one, "a row in its place would lack what only the target's columns hold")
        return mender.insert(comparison.right.here, comparison.pairs, one.left or ())
    changed = [(pair, value) for pair, value, _ in one.changed(comparison)]
    statement = mender.update(comparison.right, comparison.keys, _key(comparison, one.right), changed)
    if not statement:
        raise _unrepaired(comparison, one, "it differs only where the target computes the value")
    return statement


def _unrepaired(comparison: Comparison, one: Difference, why: str) -> TargetError:
    key = ", ".join(f"{name}={value!r}" for name, value in one.key(comparison).items())
    return TargetError(f"{comparison.name}, {key}: {why}; see `reconciler progress rewind`")


def _key(comparison: Comparison, row: tuple[str | None, ...]) -> list[str | None]:
    return [row[comparison.pairs.index(pair)] for pair in comparison.keys]
