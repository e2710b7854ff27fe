"""What rows that are there show in a new column, as TiDB does: every type, in every spelling of its default."""

import gzip
import json
import re

import pytest

from ordering.errors import TargetError
from sinks.ddl.model import ColumnDef, TypeDef
from sinks.ddl.parse.columns import read_column
from sinks.ddl.parse.words import Words
from sinks.ddl.rows.default_values import shown
from sinks.rows.values import member_name, set_names
from tests.service.cells import VECTORS

OFFSET = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d(:\d\d)?)'")
"""A date and time with an offset, which the session's zone decides about: refused."""


def cell(kind: TypeDef, text: str | None) -> str | None:
    """A message's text as the oracle spells it."""
    if text is None:
        return None
    if kind.base == "enum":
        return member_name(kind.members, text)
    if kind.base == "set":
        return set_names(kind.members, text)
    if kind.base in {"float", "double"}:
        return repr(float(text))
    return f"0x{text.encode('latin-1').hex()}" if "binary" in kind.base else text


def wanted(kind: TypeDef, text: str | None) -> str | None:
    """An oracle's text, of a float by its value, of a YEAR by its number."""
    if text is not None and kind.base in {"float", "double"}:
        return repr(float(text))
    return str(int(text)) if text is not None and kind.base == "year" else text


def test_every_default_that_tidb_takes() -> None:
    """Recorded by `tests.differential.defaults`."""
    known = 0
    for clause, text in json.loads(gzip.decompress((VECTORS / "defaults.json.gz").read_bytes())):
        column, _ = read_column(Words(clause))
        if OFFSET.search(clause):
            with pytest.raises(TargetError, match="is no value of the type"):
                shown(column)
            continue
        known += 1
        assert cell(column.type, shown(column)) == wanted(column.type, text), clause
    assert known > 1_150


def found(clause: str) -> ColumnDef:
    """The column of a clause."""
    return read_column(Words(clause))[0]


@pytest.mark.parametrize(
    "clause",
    [
        "`c` YEAR DEFAULT '20245'",
        "`c` DATETIME DEFAULT '2024-01-02 03:04:05 06'",
        "`c` DATETIME DEFAULT '2024-13-02'",
        "`c` DATETIME DEFAULT 2024010203040",
        "`c` TIME DEFAULT '10:60'",
        "`c` TIME DEFAULT 'ten'",
    ],
)
def test_what_upstream_would_not_take_is_refused(clause: str) -> None:
    with pytest.raises(TargetError, match="is no value of the type"):
        shown(found(clause))
