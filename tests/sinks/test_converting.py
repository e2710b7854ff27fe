"""What MODIFY COLUMN makes of values, as TiDB does: every pair of `ddl-conversions`, and what no recording holds."""

import gzip
import json
import struct
from collections.abc import Iterator
from decimal import Decimal

import pytest

from ordering.errors import TargetError
from sinks.ddl.model import ChangeColumn, TypeDef
from sinks.ddl.parse.tables import read_changes, read_table
from sinks.ddl.rows.modify_column import converter, keeps_values
from sinks.ddl.rows.out_of_range import shortest
from sinks.rows.values import member_name, set_names
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


def test_what_a_type_does_not_hold_is_what_tidb_makes_of_it_without_strict_mode() -> None:
    """Or refused. The least day of TIMESTAMP depends on the session's zone: which one that was, no message says."""
    known, wrong = 0, []
    for pair, values in json.loads(gzip.decompress((VECTORS / "conversions-loose.json.gz").read_bytes())).items():
        old, new = map(kind_of, pair.split(" -> "))
        for text, after in values:
            before = shortest(float(text)) if old.base == "float" else text
            try:
                found = converter(old, new)(format(Decimal(before), "f") if old.base == "double" else before)
            except (TargetError, ValueError, ArithmeticError):
                continue
            same = is_same_real(new, found, after) if new.base in {"float", "double"} else found == after
            same = same or (new.base == "year" and int(found) == int(after))
            known += same
            wrong += [] if same or (text, new.base) == ("1970-01-01", "timestamp") else [(pair, text, after, found)]
    assert wrong == []
    assert known > 3_200


@pytest.mark.parametrize(
    ("new", "before", "after"),
    [
        (TypeDef("float"), "16777217", "16777216"),  # found by `tests.differential`: SQLite kept all digits
        (TypeDef("float"), "20240102030405", "20240103000000"),
        (TypeDef("int", unsigned=True), "-3", "0"),
        (TypeDef("mediumint"), "20240102030405", "8388607"),
        (TypeDef("decimal", (4, 1), unsigned=True), "-2", "0.0"),
        (TypeDef("bit", (9,)), "-1", "511"),
        (TypeDef("varbinary", (3,)), "20240102", "202"),
        (TypeDef("varchar", (3,)), "20240102", "202"),
        (TypeDef("year"), "2156", "2155"),
    ],
)
def test_the_nearest_value_of_the_new_type(new: TypeDef, before: str, after: str) -> None:
    assert converter(BIGINT, new)(before) == after
    assert not keeps_values(BIGINT, new)


def test_a_member_in_another_case_is_known_under_a_folding_collation_only() -> None:
    folds = TypeDef("enum", members=("a", "b"), collation="utf8mb4_general_ci")
    assert converter(TEXT, folds)("B") == "2"
    with pytest.raises(ValueError, match="not in list"):
        converter(TEXT, TypeDef("enum", members=("a", "b")))("B")


MEMBERS = ("a", "é", "я", "s", "10", "中")


@pytest.mark.parametrize(
    ("collation", "text", "number"),
    [
        ("utf8mb4_general_ci", "A ", "1"),
        ("utf8mb4_unicode_ci", "E", "2"),
        ("utf8mb4_0900_ai_ci", "Я", "3"),
        ("utf8mb4_bin", "a  ", "1"),
        ("", "中", "6"),
        ("utf8mb4_general_ci", "中", "6"),
        ("utf8mb4_bin", "10", "5"),
        ("utf8mb4_bin", "2", "2"),
        ("utf8mb4_bin", "02", "2"),
        ("utf8mb4_bin", "0x6", "6"),
    ],
)
def test_the_member_that_a_text_names(collation: str, text: str, number: str) -> None:
    goal = TypeDef("enum", members=MEMBERS, collation=collation)
    assert converter(TEXT, goal)(text) == number
    in_set = TypeDef("set", members=MEMBERS, collation=collation)
    assert converter(TEXT, in_set)(text) == (str(1 << int(number) - 1) if text not in {"2", "02", "0x6"} else number)


@pytest.mark.parametrize(
    ("collation", "text"),
    [
        ("utf8mb4_0900_ai_ci", "a "),  # pads nothing
        ("utf8mb4_general_ci", "ß"),  # equals s, in others ss: not known here
        ("gbk_chinese_ci", "A"),
        ("utf8mb4_bin", "E"),
        ("utf8mb4_bin", "010"),  # 8, as Go reads it
        ("utf8mb4_bin", "٢"),
    ],
)
def test_a_text_that_may_name_no_member_is_refused(collation: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"member"):
        converter(TEXT, TypeDef("enum", members=MEMBERS, collation=collation))(text)


@pytest.mark.parametrize(
    ("number", "time"), [("8385959", "838:59:59.0"), ("-0.05", "-00:00:00.1"), ("20240102030405.25", "03:04:05.3")]
)
def test_numbers_that_become_times(number: str, time: str) -> None:
    assert converter(TypeDef("decimal", (30, 2)), TypeDef("time", (1,)))(number) == time


@pytest.mark.parametrize("number", ["61", "-6100", "8390000", "-839:00:00", "838:59:59.95", "99999999", "1e9"])
def test_numbers_that_are_no_times_are_refused(number: str) -> None:
    """Nor are their texts: a session without strict mode once left 900 hours in SQLite and PostgreSQL."""
    for old in (TypeDef("decimal", (30, 2)), TEXT):
        with pytest.raises(ValueError, match="no "):
            converter(old, TypeDef("time", (1,)))(number)


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
        (INT, TypeDef("tinyint"), "128", "127"),
        (INT, TypeDef("mediumint", unsigned=True), "-1", "0"),
        (INT, TypeDef("year"), "2156", "2155"),
        (INT, TypeDef("year"), "100", "1901"),
        (INT, TypeDef("year"), "-1", "0"),
        (INT, TypeDef("bit", (4,)), "-1", "15"),
        (TypeDef("decimal", (9, 1)), TypeDef("bit", (4,)), "-1", "0"),
        (INT, TypeDef("enum", members=("a", "b")), "3", "0"),
        (INT, TypeDef("decimal", (4, 1)), "-40000", "-999.9"),
        (INT, TypeDef("double", (6, 1)), "2147483647", "99999.9"),
        (TypeDef("double"), TypeDef("double", unsigned=True), "-1", "0"),
        (INT, TypeDef("varbinary", (2,)), "12345", "12"),
        (TypeDef("varchar", (9,)), TypeDef("char", (3,)), "a  bc", "a"),
        (TypeDef("text"), TypeDef("tinytext"), "a" + "\u00e9" * 200, "a" + "\u00e9" * 127),
        (TypeDef("text"), TypeDef("tinytext"), "\u00e9" * 200, "\u00e9" * 127),
        (TypeDef("blob"), TypeDef("tinytext"), "\xc3\xa9" * 200, "\u00e9" * 127),
        (TypeDef("text"), TypeDef("tinyblob"), "\u00e9" * 200, ("\xc3\xa9" * 128)[:255]),
        (TypeDef("mediumtext"), TypeDef("text"), "\u00e9" * 40_000, "\u00e9" * 32_767),
        (TypeDef("mediumtext"), TypeDef("text", (60,)), "\u00e9" * 200, "\u00e9" * 127),
        (TypeDef("mediumblob"), TypeDef("blob", (300,)), "x" * 70_000, "x" * 65_535),
        (TEXT, BIGINT, "\u00a012\u3000", "12"),
        (TEXT, TypeDef("json"), "18446744073709551616", "1.8446744073709552e19"),
        (
            TEXT,
            TypeDef("json"),
            "[9223372036854775808, -9223372036854775809, 18446744073709551615, -9223372036854775808, -0]",
            "[9223372036854775808, -9.223372036854776e18, 18446744073709551615, -9223372036854775808, 0]",
        ),
        (TypeDef("bit", (64,)), BIGINT, "18446744073709551615", "9223372036854775807"),
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


@pytest.mark.parametrize("text", ["1_000", "\uff11\uff12", "\u0661", "NaN", "Infinity", "0x10", "sNaN"])
@pytest.mark.parametrize("goal", [BIGINT, TypeDef("double"), TypeDef("decimal", (9, 2)), TypeDef("year")])
def test_what_python_alone_takes_for_a_number_is_none(goal: TypeDef, text: str) -> None:
    for old, spelled in ((TEXT, text), (TypeDef("blob"), text.encode().decode("latin-1"))):
        if goal.base != "year" or old is TEXT:
            with pytest.raises(ValueError, match="is no number"):
                converter(old, goal)(spelled)


@pytest.mark.parametrize("goal", ["date", "datetime", "timestamp", "time"])
@pytest.mark.parametrize(
    "text",
    [
        "\u0662\u0660\u0662\u0664-01-02",
        "2024-01-0\uff12",
        "\uff12\uff1410203",
        "1\u0662:10:11",
        "2024-01-02 03:04:05.\u0661",
    ],
)
def test_digits_of_other_scripts_are_no_date(goal: str, text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        converter(TEXT, TypeDef(goal))(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity"])
def test_what_python_alone_takes_for_json_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no JSON"):
        converter(TEXT, TypeDef("json"))(text)


@pytest.mark.parametrize(("old", "new", "text"), [(TEXT, INT, "x"), (TEXT, TypeDef("date"), "no"), (TEXT, BIGINT, "")])
def test_values_that_upstream_would_not_have_are_errors(old: TypeDef, new: TypeDef, text: str) -> None:
    with pytest.raises((ArithmeticError, ValueError)):
        converter(old, new)(text)


def test_which_changes_keep_every_value() -> None:
    assert keeps_values(TypeDef("varchar", (9,)), TypeDef("varchar", (10,)))
    assert not keeps_values(TypeDef("varchar", (9,)), TypeDef("varchar", (8,)))
    assert not keeps_values(TypeDef("varchar", (9,)), TypeDef("char", (9,)))
    assert keeps_values(TypeDef("varchar", (63,)), TypeDef("tinytext"))
    assert not keeps_values(TypeDef("varchar", (64,)), TypeDef("tinytext"))
    assert keeps_values(TypeDef("tinytext"), TypeDef("text"))
    assert not keeps_values(TypeDef("mediumtext"), TypeDef("text"))
    assert not keeps_values(TypeDef("text", (60,)), TypeDef("varchar", (60,)))
    assert keeps_values(TypeDef("text"), TypeDef("longtext"))
    assert keeps_values(INT, BIGINT)
    assert not keeps_values(BIGINT, INT)
    assert not keeps_values(INT, TypeDef("bigint", unsigned=True))
    assert keeps_values(TypeDef("int", unsigned=True), BIGINT)
    assert not keeps_values(TypeDef("decimal", (9, 2)), TypeDef("decimal", (9, 1)))


@pytest.mark.parametrize(
    ("text", "year"),
    [("0", "2000"), ("00", "2000"), ("000", "2000"), ("0000", "0"), ("00000", "2000"), (" 0 ", "2000"), ("-0", "0")],
)
def test_a_text_of_a_zero_becomes_the_year_that_tidb_makes_of_it(text: str, year: str) -> None:
    assert converter(TypeDef("varchar", (9,)), TypeDef("year"))(text) == year


@pytest.mark.parametrize("goal", [TypeDef("double"), TypeDef("float"), TypeDef("double", (9, 3))])
@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5", "-.0"])
def test_no_real_is_a_zero_with_a_sign(goal: TypeDef, text: str) -> None:
    """TiDB stores none."""
    assert repr(float(converter(TypeDef("varchar", (9,)), goal)(text))) == "0.0"


def test_json_keeps_the_sign_of_a_zero() -> None:
    assert converter(TypeDef("text"), TypeDef("json"))("[-0.0, 0.0, -0]") == "[-0.0, 0.0, 0]"
