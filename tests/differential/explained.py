"""Stops that are promised in docs/ddl.md, each with the words by which it is known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.differential.playing import Verdict

_LOOSE = ("SET sql_mode = ''", "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
"""Sessions in which upstream makes something of every value."""


@dataclass(frozen=True, slots=True)
class Known:
    """Where it happens, what is said then, and what it is."""

    kinds: tuple[str, ...]
    said: str
    reason: str
    loose: bool = False
    """Only behind one of `_LOOSE`."""


_ZERO = re.compile(r"'0000-00-00 00:00:00\.?'")
"""A text that was a moment, whose fractions TiDB forgets in rows from before the column."""
_NOTHING = re.compile(r"b?'0000-00-00[ 0:.]*'|datetime\.timedelta\(0\)|Decimal\('0[.0]*'\)|\b0\b|None")
"""What may become of a zero moment, for which PostgreSQL has NULL."""
_ZEROS = re.compile(r"(\.\d*[1-9])0+(?=')|\.0+(?=')")
"""Behind a number that is a text: MariaDB's JSON has as many as the column had."""
_MYSQLS = ("mariadb", "mysql")
_ALL = ("sqlite", "postgres", *_MYSQLS, "tidb")
KNOWN = (
    Known(_ALL[:4], r"rows can't be converted exactly from", "no rule for these types"),
    Known(_MYSQLS, r"the server makes .* what TiDB makes", "the server converts in another way"),
    Known(_MYSQLS, r"1406 Data too long for column 'c' at .* (MODIFY|CHANGE) COLUMN", "likewise: a longer text"),
    Known(("mariadb",), r"1292 Incorrect datetime value: .* (MODIFY|CHANGE) COLUMN [^,]* YEAR\b", "a moment to YEAR"),
    Known(_MYSQLS, r"(MariaDB|MySQL) may compute VIRTUAL column", "a VIRTUAL column that may be another there"),
    Known(_ALL, r"without its database, and .* each have one", "an old name that means several tables"),
    Known(_MYSQLS, r"1067 Invalid default value .*(ENUM|SET)\('[^)]*[\U00010000-\U0010ffff]", "a member beyond U+FFFF"),
    Known(_MYSQLS, r"1067 Invalid default value .*DEFAULT _UTF8MB4'[^']*[^\x00-\xff]", "a default beyond latin1"),
    Known(_MYSQLS, r"1265 Data truncated for column 'c' at .* (MODIFY|CHANGE) COLUMN", "a member beyond U+FFFF"),
    Known(_MYSQLS, r"1366 Incorrect string value", "a text in latin1, where TiDB stores any"),
    Known(("mariadb",), r"1030 Got error 174 .* ENUM", "a partitioned table and a member beyond U+FFFF"),
    Known(("postgres",), r"22021 invalid byte sequence for encoding \"UTF8\": 0x00", "U+0000 in a text"),
    Known(_ALL, r"for which upstream has filled in the time of the change", "NULL that became the time of the change"),
    Known(("postgres",), r"23502 column .* contains null values", "a zero moment, for which PostgreSQL has NULL"),
    Known(_MYSQLS, r"1520 Reorganize of range partitions cannot change total ranges", "a range that ends earlier"),
    Known(_MYSQLS, r"1298 Unknown or incorrect time zone", "a server without time zone tables"),
    Known(("mysql",), r"1064 .* near 'DEFAULT\)'", "MySQL has no DEFAULT partition of a LIST"),
    Known(("mysql",), r"3140 Invalid JSON text.* MODIFY COLUMN [^,]* JSON", "a moment is no JSON to MySQL"),
    Known(("postgres",), r"22P02 invalid input syntax", "a text that is no number in such a session", loose=True),
    Known(_ALL[:4], r"can't be converted", "a value that only a session without strict mode converts", loose=True),
    Known(_MYSQLS, r"what TiDB is not known here", "the same, tried on the server first", loose=True),
    Known(_ALL, r"the target refuses: 1(264|265|292|366|406)", "the same, as the server says it", loose=True),
)


def why(kind: str, verdict: Verdict, statements: Sequence[str]) -> str:
    """Why a stop is right; empty if nothing explains it."""
    is_loose = any(statement in _LOOSE for statement in statements)
    for known in KNOWN:
        if kind in known.kinds and is_loose >= known.loose and re.search(known.said, verdict.stopped):
            return known.reason
    if not verdict.silent:
        return ""
    if all(_ZERO.search(line) for line in verdict.silent if " lacks " in line):
        return "a zero moment that became a text"
    if kind == "postgres" and _same(verdict.silent, _NOTHING, "0"):
        return "a zero moment that became another type"
    is_json = any("JSON" in line.upper() for line in statements)
    return (
        "a number that became a JSON" if kind == "mariadb" and is_json and _same(verdict.silent, _ZEROS, r"\1") else ""
    )


def _same(lines: Sequence[str], nothing: re.Pattern[str], shown: str) -> bool:
    """Whether the rows of these lines are the same, whatever stands for nothing in them."""
    rows = [[nothing.sub(shown, line.partition(w)[2]) for line in lines if w in line] for w in (" lacks ", " has ")]
    return sorted(rows[0]) == sorted(rows[1]) and sum(map(len, rows)) == len(lines)
