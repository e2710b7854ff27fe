"""What MODIFY COLUMN makes of values, as TiDB does: every pair of `ddl-conversions`, and what no recording holds."""

import gzip
import json
import struct
from collections.abc import Iterator
from decimal import Decimal

import pytest

from ordering.errors import TargetError
from sinks.ddl.converting import converter, keeps_values, shortest
from sinks.ddl.definition import ChangeColumn, TypeDef
from sinks.ddl.reading import read_changes, read_table
from sinks.values import member_name, set_names
from tests.differential.pairs import kind_of
from tests.service.cells import VECTORS, oracle

Case = tuple[TypeDef, TypeDef, str, str]
INT, BIGINT, TEXT = TypeDef("int"), TypeDef("bigint"), TypeDef("varchar", (60,))


def recorded() -> Iterator[Case]:
    """Each conversion of the recording: types, the text before, the oracle's text after."""
    kinds: dict[str, dict[str, TypeDef]] = {}
    rows: dict[str, list[dict[str, str | None]]] = {}
    final = oracle("ddl-conversions")
    with gzip.open(VECTORS / "ddl-conversions.index-value.jsonl.gz") as lines:
        messages = [json.loads(json.loads(line)["value"]) for line in lines]
    for message in messages:
        table = message["table"]
        if message["type"] == "CREATE" and table:
            kinds[table] = {column.name: column.type for column in read_table(message["sql"]).columns}
        elif message["type"] == "INSERT":
            rows.setdefault(table, []).append(message["data"][0])
        elif message["type"] == "ALTER":
            (change,) = read_changes(message["sql"])
            assert isinstance(change, ChangeColumn)
            found = final[f"dm.{table}"]
            after = {row[0]: row[found["columns"].index(change.old)] for row in found["rows"]}
            for row in rows[table]:
                before = row[change.old]
                if before is not None:
                    yield kinds[table][change.old], change.column.type, before, after[row["id"]]


def shown(kind: TypeDef, text: str) -> str:
    """A message's text as the oracle spells it."""
    if kind.base == "enum":
        return member_name(kind.members, text)
    if kind.base == "set":
        return set_names(kind.members, text)
    return f"0x{text.encode('latin-1').hex()}" if "binary" in kind.base or "blob" in kind.base else text


def test_every_recorded_conversion() -> None:
    cases = list(recorded())
    assert len(cases) > 500
    for old, new, before, after in cases:
        found = shown(new, converter(old, new)(before))
        same = float(found) == float(after) if new.base in {"float", "double"} else found == after
        assert same, (str(old), str(new), before, found, after)


def test_every_pair_of_types_as_tidb_converts_it() -> None:
    """Recorded by `tests.differential.pairs`. What is not known is refused, and no value becomes another one."""
    refused, known = 0, 0
    for pair, values in json.loads(gzip.decompress((VECTORS / "conversions.json.gz").read_bytes())).items():
        old, new = map(kind_of, pair.split(" -> "))
        try:
            convert = converter(old, new)
        except TargetError:
            refused += 1
            continue
        for text, after in values:
            before = shortest(float(text)) if old.base == "float" else text
            try:
                found = convert(format(Decimal(before), "f") if old.base == "double" else before)
            except ValueError:
                continue  # a form of a date that is not known
            known += 1
            same = is_same_real(new, found, after) if new.base in {"float", "double"} else found == after
            assert same or (new.base == "year" and int(found) == int(after)), (pair, before, after, found)
    assert known > 8_000
    assert refused < 250


def is_same_real(kind: TypeDef, one: str, other: str) -> bool:
    """Whether two texts are one value of a FLOAT or DOUBLE."""
    form = "f" if kind.base == "float" else "d"
    return struct.pack(form, float(one)) == struct.pack(form, float(other))


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        (TypeDef("float"), TEXT, "16777216", "16777216"),
        (TypeDef("double"), TypeDef("json"), "10000000000", "10000000000.0"),
        (TypeDef("double"), TypeDef("json"), "0.0000001", "0.0000001"),
        (TypeDef("double"), TypeDef("json"), "0.0000000000000001", "1e-16"),
        (TypeDef("double"), TypeDef("json"), "1000000000000000", "1e15"),
        (TEXT, TypeDef("json"), '{"b":1,"aa":[1,2.50,1e3],"a":"x"}', '{"a": "x", "aa": [1, 2.5, 1000.0], "b": 1}'),
        (TypeDef("datetime", (6,)), TypeDef("year"), "2026-12-31 23:59:59.999999", "2026"),
        (TypeDef("date"), TypeDef("year"), "1999-12-31", "1999"),
        (TypeDef("datetime"), TypeDef("date"), "0000-00-00 00:00:00", "0000-00-00"),
        (TypeDef("double"), BIGINT, "2.5", "2"),
        (TypeDef("decimal", (4, 1)), BIGINT, "2.5", "3"),
        (TypeDef("decimal", (4, 1)), BIGINT, "-0.4", "0"),
        (TypeDef("time", (6,)), TypeDef("time"), "-00:00:00.400000", "00:00:00"),
        (TypeDef("varchar", (9,)), TypeDef("char", (3,)), "ab   ", "ab"),
        (TypeDef("binary", (2,)), TypeDef("binary", (4,)), "ab", "ab\0\0"),
    ],
)
def test_what_no_recording_holds(old: TypeDef, new: TypeDef, before: str, after: str) -> None:
    assert converter(old, new)(before) == after


@pytest.mark.parametrize(
    ("old", "new"),
    [(TypeDef("time"), TypeDef("datetime")), (TEXT, TypeDef("bit", (8,))), (TypeDef("json"), INT), (INT, TypeDef("x"))],
)
def test_pairs_that_are_not_known_are_refused(old: TypeDef, new: TypeDef) -> None:
    with pytest.raises(TargetError, match="can't be converted exactly"):
        converter(old, new)


@pytest.mark.parametrize(("old", "new", "text"), [(TEXT, INT, "x"), (TEXT, TypeDef("date"), "no"), (TEXT, BIGINT, "")])
def test_values_that_upstream_would_not_have_are_errors(old: TypeDef, new: TypeDef, text: str) -> None:
    with pytest.raises((ArithmeticError, ValueError)):
        converter(old, new)(text)


def test_which_changes_keep_every_value() -> None:
    assert keeps_values(TypeDef("varchar", (9,)), TypeDef("varchar", (10,)))
    assert not keeps_values(TypeDef("varchar", (9,)), TypeDef("varchar", (8,)))
    assert not keeps_values(TypeDef("varchar", (9,)), TypeDef("char", (9,)))
    assert keeps_values(INT, BIGINT)
    assert not keeps_values(TypeDef("decimal", (9, 2)), TypeDef("decimal", (9, 1)))
