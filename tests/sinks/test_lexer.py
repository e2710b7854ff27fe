"""Words of DDL: as TiDB cuts them, without comments, in time linear in the length, and the same when read again."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.errors import InputError
from sinks.ddl.parse.lexer import LONGEST, Canonical, Lexer
from sinks.ddl.parse.statement import read_statement
from sinks.ddl.parse.tables import read_changes, read_table
from sinks.ddl.parse.words import WordKind, Words
from sinks.ddl.ticdc_allow_list import clauses_of

PIECES = st.sampled_from([
    *"'\"`\\#\n ,().1aé\u00a0²\0;@-/*", "''", "``", "/*", "*/", "/*!", "/*!50000", "/*T![ttl]", "/*T!", "/*M!", "--",
    "-- ", "0x1", "x'", "b'", "n'", "ENUM", "SET", "e5",
])  # fmt: skip


def texts(sql: str, *, features: bool = False) -> list[str]:
    return [word.text for word in Words(sql, features=features).words]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a /* /*! */ b /* */", ["a", "b"]),
        ("a /*! b /* c */ d */ e", ["a", "b", "d", "e"]),
        ("a /*!99999 view */", ["a", "view"]),
        ("a /*M!100000 b */ c", ["a", "c"]),
        ("a /*T![ttl] b */ /*T![unheard_of] c */ /*T! d */ e", ["a", "e"]),
        ("a -- b\nc # d\ne --f", ["a", "c", "e", "-", "-", "f"]),
        ("5--1, b", ["5", "-", "-", "1", ",", "b"]),
        ("'/*' `--` \"#\"", ["/*", "--", "#"]),
        ("a\u00a0b", ["a\u00a0b"]),
        ("t.1a t.5 .5 1.5e-3 1e5x 0x4F 0x4G x'4f' b'01'",
         ["t", ".", "1a", "t", ".", "5", ".5", "1.5e-3", "1e5x", "4F", "0x4G", "4f", "01"]),
        (r"'a\'b\\' 'it''s' N'x' _utf8mb4'y'", ["a'b\\", "it's", "x", "_utf8mb4", "y"]),
        (r"ENUM('a\', 'b''c' /* x */, '\\d')", ["ENUM", "(", "a\\", ",", "b'c", ",", "\\\\d", ")"]),
    ],
)  # fmt: skip
def test_words(sql: str, expected: list[str]) -> None:
    assert texts(sql) == expected


def test_comments_of_tidb_count_where_they_are_asked_for() -> None:
    sql = "a /*T![ttl] b */ /*T![unheard_of] c */ /*T! d */ /*T![ttl,auto_rand] e */ '/*T! f */' /* g */"
    assert texts(sql, features=True) == ["a", "b", "d", "e", "/*T! f */"]


@pytest.mark.parametrize("sql", ["'a", '"a', "`a", "a /* b", "a /*! b", "n'a", "'a\\'", "/*! /* */"])
def test_what_has_no_end_is_refused(sql: str) -> None:
    with pytest.raises(InputError):
        Words(sql)


def test_a_statement_has_a_limit() -> None:
    with pytest.raises(InputError, match="characters, more than"):
        Words("a" * (LONGEST + 1))


def between_words(read: Lexer) -> list[str]:
    """What stands before each word, and behind the last."""
    ends = [0, *(word.stop for word in read.words)]
    begins = [*(word.start for word in read.words), len(read.text)]
    return [read.text[end:begin] for end, begin in zip(ends, begins, strict=True)]


@given(st.lists(PIECES, max_size=12).map("".join), st.booleans())
def test_what_is_handed_on_means_what_was_read(sql: str, features: bool) -> None:
    """A server that reads the text meets the words that were judged, and no comment."""
    try:
        read = Lexer(sql, features=features)
    except InputError:
        return
    assert all(word.stop > word.start for word in read.words)
    again = Lexer(read.text, features=False)
    assert [(w.kind, w.text) for w in again.words] == [(w.kind, w.text) for w in read.words]
    assert again.text == read.text
    assert not "".join(between_words(read)).strip(" \t\n\v\f\r"), "what was not judged"
    plain = [read.text[word.start : word.stop] if word.kind is WordKind.PLAIN else "''" for word in read.words]
    outside = "".join(gap + word for gap, word in zip(between_words(read), [*plain, ""], strict=True))
    assert not any(mark in outside for mark in ("/*", "#"))
    assert not any("\n" in word for word in plain)


def test_backslashes_of_members_are_doubled_once() -> None:
    text = Words(r"ENUM('a\b')").sql
    assert (text, Words(text).sql, isinstance(text, Canonical)) == (r"ENUM('a\\b')", r"ENUM('a\\b')", True)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (r"ALTER TABLE `t` COMMENT = 'a\', ADD COLUMN `c` INT COMMENT 'b\\'", ["a\\", "b\\"]),
        (r"CREATE TABLE `t` (`c` INT COMMENT 'a\\', KEY `i`(`c`) COMMENT 'b\') COMMENT = 'q\r''\'",
         ["a\\", "b\\", "q\\r'\\"]),
        (r"CREATE INDEX `i` ON `t` (`v`) COMMENT 'i\'", ["i\\"]),
        (r"ALTER TABLE `d`.`t` ADD UNIQUE `i`(`c`) COMMENT 'i\n', ADD COLUMN `d` INT DEFAULT 1 COMMENT 'a\\n'",
         ["i\\n", "a\\n"]),
        (r"ALTER TABLE `t` ADD COLUMN `index` INT COMMENT 'a\\', ADD INDEX `i`(`c`) COMMENT 'b\'", ["a\\", "b\\"]),
        (r"... (PARTITION `p` VALUES LESS THAN (5) COMMENT = 'p\', PARTITION `q` COMMENT = 'q\')", ["p\\", "q\\"]),
        (r"CREATE VIEW `v` AS SELECT `comment` = _UTF8MB4'a\\'", ["a\\"]),
        (("CREATE TABLE `t` (\n  `c` int COMMENT 'a\\\\',\n  KEY `i` (`c`) COMMENT 'b\\\\'\n) COMMENT='c\\\\'\n"
         "(PARTITION `p` VALUES IN (1) COMMENT 'd\\')"), ["a\\", "b\\", "c\\", "d\\"]),
    ],
)  # fmt: skip
def test_comments_have_the_backslashes_that_tidb_prints(sql: str, expected: list[str]) -> None:
    """As they are for tables, indexes and partitions, doubled for columns; in a dump only partitions have them so."""
    read = Words(sql)
    for words in (read.words, Words(read.sql).words):
        assert [word.text for word in words if word.kind is WordKind.STRING] == expected


def test_an_equal_text_is_read_as_what_it_is_whichever_was_read_before() -> None:
    text = r"ENUM('a\\b')"
    for sql in (text, Canonical(text), text):
        assert Words(sql).sql == Lexer(sql, features=False).text
    assert Words(text).sql != Words(Canonical(text)).sql


HOSTILE = {
    "quotes": lambda n: r"'\'" * n,
    "quotes of members": lambda n: "ENUM('" + "a','" * n,
    "comments of keys": lambda n: "KEY (a) " + "COMMENT 'a' " * n,
    "sets": lambda n: "SET(" * n,
    "back quotes": lambda n: "``" * n + "`",
    "comments": lambda n: "/*!" * n,
    "closed comments": lambda n: "/*!1 */" * n,
    "features": lambda n: "/*T![" + "a," * n,
    "stars": lambda n: "/*" + "*" * n,
    "dashes": lambda n: "-- " * n,
    "digits": lambda n: "1" * n,
    "points": lambda n: "1." * n,
    "brackets": lambda n: "(" * n + ")" * n,
    "open brackets": lambda n: "(" * n,
    "commas": lambda n: "," * n,
    "blanks": lambda n: " " * n + "x",
    "timestamps": lambda n: "TIMESTAMP DEFAULT " * n,
    "names": lambda n: "a b " * n,
    "views": lambda n: "OR REPLACE ALGORITHM " * n,
}
READERS: dict[str, Callable[[str], object]] = {
    "words": Words,
    "head": read_statement,
    "clauses": clauses_of,
    "changes": lambda sql: read_changes(f"ALTER TABLE t ADD COLUMN c {sql}"),
    "list of changes": lambda sql: read_changes(f"ALTER TABLE t ADD COLUMN ({sql})"),
    "table": lambda sql: read_table(f"CREATE TABLE t (c {sql})"),
    "partitions": lambda sql: read_table(f"CREATE TABLE t (c INT) PARTITION BY RANGE ({sql})"),
    "altered": lambda sql: clauses_of(f"ALTER TABLE t {sql}"),
    "view": lambda sql: read_statement(f"CREATE {sql}"),
}


def seconds(read: Callable[[str], object], sql: str) -> float:
    begun = time.thread_time()
    with suppress(InputError, ValueError, LookupError, RecursionError):  # the guard's business
        read(sql)
    return time.thread_time() - begun


@pytest.mark.cells("reader", "hostile")
@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_reading_takes_linear_time(reader: str, hostile: str) -> None:
    """Four times the input takes about four times as long: sixteen times would be the square."""
    make, read = HOSTILE[hostile], READERS[reader]
    if seconds(read, make(6_000)) < 0.2:
        return  # sixteen times what the shorter one takes would be more
    # each time another statement: the words of the last ones are kept
    short, long = (min(seconds(read, make(times + more)) for more in (1, 2)) for times in (1_500, 6_000))
    assert long < 0.2 or long < 9 * short, f"{short:.3f} s and {long:.3f} s"
