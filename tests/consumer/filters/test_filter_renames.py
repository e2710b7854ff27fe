"""The ten rows of TiCDC's tables for RENAME with `rules = ['test.t*']`, and what lies between them."""

import pytest

from consumer.ddl.rename_filter import why_ignored
from consumer.filters.tables import table_filter
from ordering.errors import InputError
from ordering.events import TableName

RULES = table_filter(["test.t*"])


def judged(renames: str) -> str:
    """`replicate`, `ignore` or the error's fact."""
    pairs = [pair.split(" TO ") for pair in renames.split(", ")]
    named = [(TableName(*old.split(".")), TableName(*new.split("."))) for old, new in pairs]
    try:
        because = why_ignored(named, named, RULES)
    except InputError as error:
        return f"{error.exit_code}: {error.fact}" if error.hint else "no hint"
    return "ignore" if because else "replicate"


@pytest.mark.parametrize(
    ("renames", "expected"),
    [
        ("test.t1 TO test.t2", "replicate"),
        ("test.t1 TO ignore.t1", "replicate"),
        ("ignore.t1 TO ignore.t2", "ignore"),
        ("test.n1 TO test.t1", "3: leave out the old name and take in the new one"),
        ("ignore.t1 TO test.t1", "3: leave out the old name and take in the new one"),
        ("test.t1 TO test.t2, test.t3 TO test.t4", "replicate"),
        ("test.t1 TO test.ignore1, test.t3 TO test.ignore2", "replicate"),
        ("test.t1 TO ignore.t1, test.t2 TO test.t22", "3: leave out ignore"),
        ("test.t1 TO test.t4, test.t3 TO test.t1, test.t4 TO test.t3", "3: swaps names"),
        ("test.t1 TO test.t2, test.n1 TO test.t3", "3: leave out test.n1"),
        ("test.t1 TO test.t9, test.t2 TO test.t1", "replicate"),
        ("ignore.a TO ignore.b, ignore.c TO ignore.d", "ignore"),
        ("ignore.a TO ignore.b, ignore.b TO ignore.a", "ignore"),
        ("test.t1 TO test.t2, test.t2 TO test.t1", "3: swaps names"),
    ],
)
def test_renames(renames: str, expected: str) -> None:
    found = judged(renames)
    assert all(part in found for part in expected.split(": "))
