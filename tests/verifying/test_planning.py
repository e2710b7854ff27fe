"""Chunks, buckets and rows against models of a few lines; what counts as the same value."""

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.verify import narrow
from consumer.verify.narrow import Difference, Narrowing, different
from consumer.verify.plan import Comparison, Rules, batches, chunks, planned
from ordering.events import TableName
from sinks.compare.digests import Buckets, Selection, Span, Sum
from sinks.compare.value_forms import Form, Pair, Trait, paired
from sinks.mysql.digests import MysqlReader
from sinks.rows.schema import Catalog, Column, Shape, TableSchema
from sinks.sqlite.digests import digest_of

ROWS = st.lists(st.tuples(st.integers(0, 40).map(str), st.sampled_from(["a", "b", None])), max_size=60)
KEYED = st.dictionaries(st.integers(-30, 30), st.sampled_from(["a", "b", None]), max_size=40)


def pair(name: str, form: Form = Form.TEXT, *, exact: bool = True) -> Pair:
    column = Column(name, "text", Shape.TEXT)
    return Pair(column, column, form, exact, sized=True)


def comparison(*, keyed: bool, exact: bool = True) -> Comparison:
    pairs = (pair("id", Form.NUMBER, exact=exact), pair("v"))
    schema = TableSchema(TableName("d", "t"), (), ("id",) if keyed else (), ())
    return Comparison(schema.name, schema, schema, pairs, pairs[:1] if keyed else ())


class Rows(Selection):
    """A table in memory: what databases are asked for, in Python."""

    def __init__(self, rows: Sequence[tuple[str | None, ...]], keys: int) -> None:
        object.__setattr__(self, "held", rows)
        object.__setattr__(self, "width", keys)

    def _in(self, span: Span, buckets: Buckets) -> list[tuple[str | None, ...]]:
        spanned = [r for r in self.held if not span.column or _between(int(r[0] or 0), span)]
        return [r for r in spanned if buckets.chosen is None or self._bucket_of(r, buckets.count) in buckets.chosen]

    def _bucket_of(self, row: tuple[str | None, ...], count: int) -> int:
        return digest_of(repr(row[: self.width] or row).encode()) % count

    def sum(self, span: Span) -> Sum:
        return _sum(self._in(span, Buckets()))

    def sums(self, span: Span, buckets: Buckets) -> dict[int, Sum]:
        found: dict[int, list[Any]] = {}
        for row in self._in(span, Buckets()):
            found.setdefault(self._bucket_of(row, buckets.count), []).append(row)
        return {bucket: _sum(rows) for bucket, rows in found.items()}

    def rows(self, span: Span, buckets: Buckets) -> list[tuple[str | None, ...]]:
        return self._in(span, buckets)


def _between(number: int, span: Span) -> bool:
    return (span.low is None or number > span.low) and (span.high is None or number <= span.high)


def _sum(rows: Sequence[Any]) -> Sum:
    return Sum(len(rows), sum(digest_of(repr(row).encode()) for row in rows))


def narrowed(made: Comparison, left: Sequence[Any], right: Sequence[Any], span: Span) -> list[Difference]:
    sides = Rows(left, len(made.keys)), Rows(right, len(made.keys))
    return Narrowing(made, sides, (span, span), lambda _, call: call(), lambda _: None).found().differences


@given(values=st.lists(st.integers(-50, 50), unique=True), rows=st.integers(1, 7))
def test_chunks_part_all_numbers(values: list[int], rows: int) -> None:
    def bound(span: Span) -> int | None:
        inside = sorted(v for v in values if _between(v, span))
        return inside[rows - 1] if len(inside) >= rows else None

    spans = list(chunks(bound, "id"))
    assert spans[0].low is None
    assert spans[-1].high is None
    assert [s.high for s in spans[:-1]] == [s.low for s in spans[1:]]
    for number in range(-60, 61):
        assert sum(_between(number, span) for span in spans) == 1
    assert all(sum(_between(v, span) for v in values) <= rows for span in spans)


def test_a_table_without_such_a_column_is_one_chunk() -> None:
    assert list(chunks(lambda _: 1, None)) == [Span()]


@given(sizes=st.dictionaries(st.integers(0, 99), st.integers(0, 9)), most=st.integers(1, 20))
def test_batches_hold_every_bucket_once(sizes: dict[int, int], most: int) -> None:
    found = list(batches(sizes, most))
    assert [bucket for some in found for bucket in some] == sorted(sizes)
    assert all(len(some) == 1 or sum(sizes[b] for b in some) <= most for some in found)


@given(left=KEYED, right=KEYED, exact=st.booleans(), at_once=st.integers(1, 30))
def test_narrowing_finds_what_a_full_comparison_does(
    left: dict[int, str | None], right: dict[int, str | None], exact: bool, at_once: int
) -> None:
    expected = {
        (str(key), "missing" if key not in right else "extra" if key not in left else "different")
        for key in left.keys() | right.keys()
        if (key in left) != (key in right) or left[key] != right[key]
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "ROWS_A_BUCKET", 3)
        patch.setattr(narrow, "ROWS_AT_ONCE", at_once)
        made = comparison(keyed=True, exact=exact)
        sides = [[(str(k), v) for k, v in side.items()] for side in (left, right)]
        found = [
            one
            for span in (Span("id", None, -5), Span("id", -5, 12), Span("id", 12, None))
            for one in narrowed(made, *sides, span)
        ]
    assert {(one.key(made)["id"], one.kind) for one in found} == expected
    assert len(found) == len(expected)
    assert all(len(one.changed(made)) == (one.kind == "different") for one in found)


@given(left=ROWS, right=ROWS)
def test_without_a_key_copies_count(left: list[Any], right: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "ROWS_A_BUCKET", 3)
        found = narrowed(comparison(keyed=False), left, right, Span())
    lacks, has = Counter(left) - Counter(right), Counter(right) - Counter(left)
    assert Counter(one.left for one in found if one.kind == "missing") == lacks
    assert Counter(one.right for one in found if one.kind == "extra") == has
    assert len(found) == lacks.total() + has.total()


def test_copies_of_a_key_that_the_target_does_not_keep_apart() -> None:
    made = comparison(keyed=True)
    found = different(made, [("1", "a"), ("2", "x")], [("1", "b"), ("1", "a"), ("2", "y"), ("2", "z")])
    assert [(one.kind, one.left, one.right) for one in found] == [
        ("extra", None, ("1", "b")),
        ("different", ("2", "x"), ("2", "y")),
        ("extra", None, ("2", "z")),
    ]


def test_rows_are_told_in_the_order_of_their_keys() -> None:
    made = comparison(keyed=True)
    found = different(made, [(str(n), "a") for n in (10, -3, 9, 2, -20)], [])
    assert [one.key(made)["id"] for one in found] == ["-20", "-3", "2", "9", "10"]


def test_too_many_rows_in_one_piece_are_said_to_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow, "MOST_ROWS", 3)
    (found,) = narrowed(comparison(keyed=True, exact=False), [("1", "a"), ("2", "a")], [("1", "a"), ("2", "b")], Span())
    assert found.kind == "unnamed"


SAME = [
    (Form.NUMBER, "1.50", "1.5"), (Form.NUMBER, "-0", "0"), (Form.REAL, "1e22", "10000000000000000000000"),
    (Form.JSON, '{"a": 1, "b": [1e2, null]}', '{"b":[100, null],"a":1.0}'), (Form.JSON, "-0.0", "0"),
]  # fmt: skip
OTHER = [
    (Form.NUMBER, "10000000000000000000000000000000000000001", "10000000000000000000000000000000000000000"),
    (Form.REAL, "0.1", "0.10000000000000002"), (Form.FLOAT, "0.1", "0.10000001"), (Form.TEXT, "a", "a "),
    (Form.JSON, "1", '"1"'), (Form.JSON, "1", "true"), (Form.JSON, "[1]", '{"1": 1}'), (Form.JSON, "null", '"null"'),
    (Form.JSON, "12345678901234567890123456789012", "12345678901234567890123456789013"), (Form.TEXT, "1", "1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "one", "other"), SAME)
def test_spellings_of_one_value(form: Form, one: str, other: str) -> None:
    assert pair("v", form).meaning(one) == pair("v", form).meaning(other)


@pytest.mark.parametrize(("form", "one", "other"), OTHER)
def test_values_that_are_not_the_same(form: Form, one: str, other: str) -> None:
    assert pair("v", form).meaning(one) != pair("v", form).meaning(other)
    assert pair("v", form).meaning(None) != pair("v", form).meaning("")


@pytest.mark.parametrize("text", ["0000-00-00 00:00:00", "2024-02-30 00:00:00", "2024-00-01 10:00:00"])
def test_dates_that_are_none_count_as_null_where_that_is_wanted(text: str) -> None:
    column = Column("at", "datetime", Shape.DATETIME)
    for wanted in (True, False):
        traits = (Trait(Form.DATETIME, 0), Trait(Form.DATETIME))
        made = paired(column, column, traits, invalid_dates_are_null=wanted)
        assert (made.meaning(text) is None) is wanted
        assert made.exact is not wanted
        assert made.meaning("2024-02-29 10:00:00") is not None
        for odd in ("infinity", "-infinity", "10000-01-01 00:00:00", "0001-01-01 00:00:00 BC"):
            assert made.meaning(odd) == odd


@pytest.mark.parametrize(
    ("forms", "one", "same", "other"),
    [
        ((Form.DATE, Form.DATETIME), "2024-02-29", "2024-02-29 00:00:00", "2024-02-29 00:00:01"),
        ((Form.DATETIME, Form.TEXT), "2024-02-29 10:00:00.1", "2024-02-29 10:00:00.100", "2024-02-29 10:00:00.01"),
        ((Form.DATETIME, Form.TEXT), "2024-02-29 10:00:00", "2024-02-29 10:00:00.000", "2024-02-29 10:00:0"),
        ((Form.TIME, Form.TEXT), "-838:59:59", "-838:59:59.00", "838:59:59"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_values_of_two_forms_are_compared_by_what_both_mean(
    forms: tuple[Form, Form], one: str, same: str, other: str, *, turned: bool
) -> None:
    column = Column("v", "any", Shape.TEXT)
    traits = Trait(forms[turned]), Trait(forms[not turned])
    made = paired(column, column, traits, invalid_dates_are_null=False)
    assert not made.exact
    assert made.meaning(one) == made.meaning(same)
    assert made.meaning(one) != made.meaning(other)


def test_days_that_are_none_count_as_null_beside_moments_too() -> None:
    column = Column("at", "any", Shape.DATETIME)
    made = paired(column, column, (Trait(Form.DATE), Trait(Form.DATETIME)), invalid_dates_are_null=True)
    assert made.meaning("2024-02-29") == made.meaning("2024-02-29 00:00:00") is not None
    assert made.meaning("2024-02-30") is made.meaning("0000-00-00 00:00:00") is None


@pytest.mark.parametrize("is_left", [False, True])
def test_members_are_not_compared_with_their_places(*, is_left: bool) -> None:
    traits = {"enum": Trait(Form.TEXT), "int": Trait(Form.NUMBER, 0)}
    reader: Any = SimpleNamespace(
        is_comparable=lambda _: True, trait=lambda c: traits[c.type], is_whole_number=lambda _: True
    )
    own = Column("id", "int", Shape.INTEGER), Column("e", "enum", Shape.TEXT, members=("a", "b"))
    other = own[0], Column("e", "int", Shape.INTEGER)
    name = TableName("d", "t")
    one, two = (Catalog({name: TableSchema(name, some, ("id",), (("id",),))}) for some in (own, other))
    everything = Rules(lambda *_: True, lambda *_: True, keyless=True, invalid_dates_are_null=False, virtual=True)
    sides = ((one, reader), (two, reader)) if is_left else ((two, reader), (one, reader))
    plan = planned(*sides, everything)
    assert [pair.left.name for pair in plan.tables[0].pairs] == ["id"]
    assert ["names with their places" in text for text in plan.unjudged] == [True]


def test_texts_and_bytes_are_compared_as_bytes() -> None:
    text, data = Column("v", "text", Shape.TEXT), Column("v", "bytea", Shape.BYTES)
    for traits in ((Trait(Form.TEXT), Trait(Form.BYTES)), (Trait(Form.BYTES), Trait(Form.TEXT))):
        assert paired(text, data, traits, invalid_dates_are_null=False).form is Form.BYTES


@pytest.mark.parametrize(
    ("left", "right", "form"),
    [
        (("a", ""), ("a", ""), Form.BITS),
        (("a", "b"), ("a", "b"), Form.TEXT),
        (("a", ""), ("", "a"), Form.TEXT),
        (("?", ""), ("?", ""), Form.TEXT),
        (("😀", ""), ("?", ""), Form.TEXT),
    ],
)
def test_a_member_without_a_name_is_compared_by_its_number(
    left: tuple[str, ...], right: tuple[str, ...], form: Form
) -> None:
    """It is not the invalid value, which has no name either; what a server shows as ? may be another member."""
    reader, name = MysqlReader(None), TableName("d", "t")  # type: ignore[arg-type]
    tables = [
        Catalog({name: TableSchema(name, (Column("e", "enum", Shape.ENUM, members=members),), (), ())})
        for members in (left, right)
    ]
    plan = planned(
        (tables[0], reader),
        (tables[1], reader),
        Rules(lambda *_: True, lambda *_: True, keyless=True, invalid_dates_are_null=False, virtual=True),
    )
    ((one,),) = (table.pairs for table in plan.tables)
    assert (one.form, one.exact) == (form, True)
