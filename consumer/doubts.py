"""Whether rows were read with the schema of their commitTs, and count (R14).

A reading task knows the target's tables as they are before the window. Behind a DDL that nobody had seen yet they are
others: such a window is cut at the DDL and read again, and nothing that was said of the rows above counts. Only what is
left is judged, and only that is encoded. Pure.
"""

from collections.abc import Mapping, Sequence

from consumer.report import Report
from ordering.errors import InputError
from ordering.events import Position, TableName
from ordering.window import Window

_Keys = Mapping[tuple[str, ...], Position]


def refused_rows(reports: Sequence[Report]) -> None:
    """Raise InputError for a row that can't be read, though its schema is the one that is known.

    Asked once the window's end is known: no DDL lies within, so each table has one handle key.
    """
    unfit = [(r.unfit, Position(*r.range.partition, r.unfit.offset)) for r in reports if r.unfit is not None]
    if unfit:
        found, position = min(unfit)
        raise InputError(found.fact, where=str(position), hint=found.hint)
    for name, keys in _handle_keys(reports).items():
        if len(keys) > 1:
            raise _two_keys(name, keys)


def is_in_doubt(reports: Sequence[Report], window: Window) -> bool:
    """Whether these rows of a window are none to be encoded: it will be cut at a DDL, or refused."""
    cut = any(window.low < ddl.commit_ts < window.high for report in reports for ddl in report.ddls)
    unfit = any(report.unfit is not None for report in reports)
    return cut or unfit or any(len(keys) > 1 for keys in _handle_keys(reports).values())


def _handle_keys(reports: Sequence[Report]) -> dict[TableName, _Keys]:
    """The keys with which each table's rows were read."""
    keys: dict[TableName, _Keys] = {}
    for report in reports:
        for name, found in report.handle_keys.items():
            keys[name] = {**found, **keys.get(name, {})}
    return keys


def _two_keys(name: TableName, keys: _Keys) -> InputError:
    told = " and ".join(f"{list(key)} ({position})" for key, position in sorted(keys.items(), key=lambda one: one[1]))
    return InputError(
        f"rows of {name} have two handle keys, and no DDL lies between them: {told}",
        where=str(min(keys.values())),
        hint="a DDL is missing in the topic, or something other than TiCDC wrote to it",
    )
