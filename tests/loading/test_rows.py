"""Rows out of files: whatever they hold, however they are written, wherever the pieces of a stream end."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.load import stream as pieces_module
from consumer.load.column_tokens import Convert, Value
from consumer.load.csv_rows import CsvForm, SeparatedRows
from consumer.load.decompress import DamagedFileError, opened
from consumer.load.sql_rows import InsertRows
from consumer.load.stream import Pieces
from consumer.load.values import _text, _whole, plain_of
from ordering.errors import ConfigError, InputError
from tests.loading.dumping import PACKERS, Dumping, _csv, _sql

KINDS = ["varchar", "int", "blob"]
NAMES = ["s", "n", "b"]
TEXT = st.binary(max_size=40) | st.sampled_from(
    [
        b"",
        b"'",
        b"''",
        b"\\",
        b"\\N",
        b"NULL",
        b"),(",
        b"');",
        b"\n",
        b"\r\n",
        b'"',
        b'""',
        b",",
        b"a\\'b",
        b"\\\\'",
        b"\0",
    ]
)
NUMBER = st.integers(-(10**30), 10**30).map(lambda n: str(n).encode()) | st.sampled_from(
    [b"1.5e-30", b"-0.000", b"3e+20"]
)
ROWS = st.lists(
    st.tuples(st.none() | TEXT, st.none() | NUMBER, st.none() | st.binary(max_size=20)), min_size=1, max_size=30
)


MOST = st.integers(1, 60) | st.just(100_000)
"""Bytes that a stream gives at once."""
TOKEN = st.text("ab',", max_size=4).map(lambda text: "'" + text.replace("'", "''") + "'") | st.sampled_from(
    ["NULL", "_binary 'a'", "x'41'", r"'\''", r"'\\'", r"'\n'", "null", "1", "-0.5", "007", "+1", "1e3", "0", "-.5"]
)


class Dribble(io.BytesIO):
    """Gives out a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(self.most, size if size is not None and size >= 0 else self.most))


def values_of(reader: InsertRows | SeparatedRows) -> list[list[Value]]:
    """All rows; their columns are told at once as one by one."""
    rows = list(reader.rows())
    found = [[reader.notation.value(token) for token in row] for row in rows]
    for convert in (_text, _whole):
        for tokens, values in zip(zip(*rows, strict=True), zip(*found, strict=True), strict=True):
            try:
                expected = [None if value is None else convert(value) for value in values]
            except ValueError:
                continue
            assert reader.notation.texts(tokens, convert, plain_of(convert)) == expected
    return found


def inserted(data: bytes, most: int, columns: tuple[str, ...] = tuple(NAMES), **how: Any) -> list[list[Value]]:
    return values_of(InsertRows(Pieces(Dribble(data, most), "d.t.0.sql"), "t", columns, **how))


def separated(data: bytes, most: int, form: CsvForm | None = None, columns: tuple[str, ...] = ()) -> list[list[Value]]:
    pieces = Pieces(Dribble(data, most), "d.t.0.csv")
    return values_of(SeparatedRows(pieces, columns, form or CsvForm()))


@given(ROWS, MOST, st.booleans(), st.sampled_from([0, 30]))
def test_rows_of_insert_statements_come_back(rows: list[Any], most: int, escapes: bool, statement: int) -> None:
    how = Dumping(escape_backslash=escapes, statement_size=statement)
    data = b"".join(_sql(b"INSERT INTO `t` VALUES\n", KINDS, rows, how))
    assert inserted(data, most, escapes=escapes) == [list(row) for row in rows]


@given(ROWS, MOST, st.booleans(), st.booleans())
def test_rows_of_separated_values_come_back(rows: list[Any], most: int, escapes: bool, header: bool) -> None:
    how = Dumping(filetype="csv", escape_backslash=escapes, no_header=not header)
    data = b"".join(_csv(NAMES, KINDS, rows, how))
    form = CsvForm(escapes=escapes, header=header)
    assert separated(data, most, form, tuple(NAMES)) == [list(row) for row in rows]


@given(ROWS, st.sampled_from([("|+|", '"'), (";", "'"), ("\t", ""), ("ab", "")]), MOST)
def test_separators_may_be_others(rows: list[Any], marks: tuple[str, str], most: int) -> None:
    how = Dumping(filetype="csv", separator=marks[0].encode(), delimiter=marks[1].encode())
    if not marks[1]:  # nothing tells a text from NULL, and only the separator's first character is escaped
        rows = [(b"" if s is None else s.replace(b"a", b"").replace(b"\\", b""), n, b"") for s, n, _ in rows]
    data = b"".join(_csv(NAMES, KINDS, rows, how))
    assert separated(data, most, CsvForm(*marks)) == [list(row) for row in rows]


def test_a_comma_in_a_bare_value_parts_nothing() -> None:
    assert separated(b"a;b\n1,2;,\n3;4\n", 100, CsvForm(";")) == [[b"1,2", b","], [b"3", b"4"]]
    assert separated(b"a;b\n-1,2;1\n", 100, CsvForm(";")) == [[b"-1,2", b"1"]]


@given(st.lists(TOKEN, min_size=1, max_size=6), st.sampled_from([_text, _whole]))
def test_a_column_is_told_at_once_as_value_by_value(tokens: list[str], convert: Convert) -> None:
    notation = InsertRows(Pieces(io.BytesIO(), "f"), "t", ("a",)).notation
    raw = [token.encode() for token in tokens]
    values = [notation.value(token) for token in raw]
    expected = [None if value is None else convert(value) for value in values]
    assert notation.texts(raw, convert, plain_of(convert)) == expected


def test_rows_behind_a_statement_are_not_its_own() -> None:
    with pytest.raises(InputError, match="no INSERT statement"):
        inserted(b"INSERT INTO `t` VALUES (1,2,3);(4,5,6),(7,8,9);", 1000)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_other_spellings_of_statements_are_read(most: int) -> None:
    data = (
        b"-- a comment\n/*!40101 SET NAMES binary*/;\nSET foreign_key_checks = 0;\n"
        b"insert ignore into `d`.`t` ( `n`, `s` ,b) values ( 1 , _utf8mb4'x''y' , 0xAbC ) ,"
        b" (+2,_binary x'00',b'100000001');\n\n"
        b"REPLACE INTO `t`(`n`,`s`,b) VALUES (true,NULL,'\xff');"
    )
    rows = InsertRows(Pieces(Dribble(data, most), "f"), "t", ())
    found = values_of(rows)
    assert rows.columns == ("n", "s", "b")
    assert found == [[b"1", b"x'y", b"\x0a\xbc"], [b"+2", b"\0", b"\x01\x01"], [b"1", None, b"\xff"]]


def test_the_time_zone_that_a_file_names_is_known() -> None:
    data = b"/*!40103 SET TIME_ZONE='+08:00' */;\nINSERT INTO `t` VALUES (1);\n"
    rows = InsertRows(Pieces(io.BytesIO(data), "f"), "t", ("a",))
    assert (values_of(rows), rows.time_zone) == ([[b"1"]], "+08:00")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"INSERT INTO `t` VALUES (1,2,3),(1,2", "no row of 3 values"),
        (b"INSERT INTO `t` VALUES (1,2,3),", "no row of 3 values"),
        (b"INSERT INTO `t` VALUES (1,2,'3", "no row of 3 values"),
        (b"INSERT INTO `t` VALUES (1,2);", "no row of 3 values"),
        (b"INSERT INTO `u` VALUES (1,2,3);", "it inserts into 'u'"),
        (b"DROP TABLE `t`;", "no INSERT statement"),
        (b"INSERT INTO `t` (`a`) VALUES (1);INSERT INTO `t` (`b`) VALUES (1);", "different columns"),
        (b"/* never closed", "no INSERT statement"),
    ],
)
def test_what_is_cut_off_or_wrong_is_told_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        inserted(data, 5)
    assert caught.value.where.startswith("file=d.t.0.sql byte=")


@pytest.mark.parametrize("data", [b'"a","n","b"\r\n"x",1,"y', b'"a","n","b"\r\n"x",1\r\n', b'"a","n","b'])
def test_separated_values_that_are_cut_off_are_told(data: bytes) -> None:
    with pytest.raises(InputError, match="is not as Dumpling writes it"):
        separated(data, 4)


def test_the_last_line_has_an_end_and_an_empty_file_has_no_rows() -> None:
    with pytest.raises(InputError, match="a line's end"):
        separated(b"a\n1\n2", 3)
    assert separated(b"", 3) == []
    assert separated(b"a\n", 3) == []
    assert inserted(b"", 3) == []


def test_separators_that_tell_nothing_apart_are_refused() -> None:
    for wrong in (("", '"'), (",", '""'), ("\\", '"')):
        with pytest.raises(ConfigError):
            CsvForm(*wrong)


def test_no_more_of_a_file_is_read_than_the_longest_row_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "CHUNK", 100)
    data = io.BytesIO(b"INSERT INTO `t` VALUES " + b"(1,2,3)," * 10 + b"('" + b"x" * 100_000)
    reader = InsertRows(Pieces(data, "f"), "t", tuple(NAMES)).rows()
    assert next(reader) == (b"1", b"2", b"3")
    assert data.tell() <= 200


@pytest.mark.parametrize("suffix", list(PACKERS))
@given(data=st.data())
def test_packed_files_give_what_was_packed(tmp_path_factory: pytest.TempPathFactory, suffix: str, data: Any) -> None:
    plain = data.draw(st.binary(max_size=100)) * data.draw(st.integers(0, 3000))
    path = tmp_path_factory.mktemp("packed") / f"f.sql{suffix}"
    path.write_bytes(PACKERS[suffix](plain))
    with opened(path) as stream:
        assert b"".join(iter(lambda: stream.read(5000), b"")) == plain


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".snappy"])
def test_a_packed_file_that_is_cut_or_damaged_is_an_error(tmp_path: Any, suffix: str) -> None:
    whole = PACKERS[suffix](bytes(range(256)) * 5000)
    for number, data in enumerate(
        (whole[:-9], whole[: len(whole) // 2], b"plain text", whole[:20] + b"x" + whole[21:])
    ):
        path = tmp_path / f"{number}.sql{suffix}"
        path.write_bytes(data)
        with pytest.raises(InputError, match="it can't be read"):
            damaged(path)


def damaged(path: Any) -> None:
    try:
        stream = opened(path)
    except DamagedFileError as error:
        raise InputError(f"it can't be read: {error}") from error
    pieces = Pieces(stream, path.name)
    while pieces.more():
        pieces.at = len(pieces.data)
