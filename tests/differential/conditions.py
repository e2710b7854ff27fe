"""Random conditions of event filters, and what TiDB says of them: every type in every comparison and function.

    python -m tests.differential.conditions [--seed N] [--minutes N | --count N] [--out OUT.json.gz]

A condition that reads otherwise here than on TiDB is printed, and so is each sort of stop. The rows are always the
same; a recording holds them, the conditions and TiDB's answers: `{"rows", "answers": [[text, [...]], ...]}`. The vector
`filter-conditions` is one of seed 1.
"""

import argparse
import gzip
import itertools
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pymysql

from consumer.filters.expressions import Condition, read_condition
from consumer.filters.families import typed
from consumer.filters.mysql_values import EvaluationError, value_of
from ordering.errors import ConfigError
from tests.embedded import TidbServer

TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "i": ("int", ("7", "-3", "0", "NULL", "2024", "20240102")),
    "u": ("bigint unsigned", ("18446744073709551615", "9223372036854775808", "0", "7", "NULL", "1")),
    "b": ("bigint", ("-9223372036854775808", "9223372036854775807", "NULL", "12", "20240102030405", "-1")),
    "n": ("decimal(12,3)", ("7.000", "-0.500", "12.345", "20240102", "NULL", "0")),
    "f": ("double", ("0.1", "-2.5", "7", "1e20", "1e-7", "NULL")),
    "g": ("float", ("0.1", "16777216", "NULL", "-2.5", "7", "0")),
    "s": ("varchar(40)", ("'a'", "'12abc'", "''", "'2024-01-02'", "NULL", "'x,y'")),
    "t": ("text", ("'B '", "'7'", "'10:11:12'", "'é'", "'2024-01-02 03:04:05'", "NULL")),
    "r": ("varbinary(20)", ("'a'", "x'00ff'", "NULL", "'7'", "''", "'B '")),
    "d": ("date", ("'2024-01-02'", "'1999-12-31'", "'0000-00-00'", "'2024-02-29'", "NULL", "'2070-01-01'")),
    "m": ("datetime(3)", ("'2024-01-02 03:04:05'", "NULL", "'2024-01-02'", "'1999-12-31 23:59:59.6'",
                          "'0000-00-00'", "'2024-02-29 12:00:00.5'")),
    "p": ("timestamp", ("'2024-01-02 03:04:05'", "'1999-12-31 23:59:59'", "NULL", "'2024-01-02'",
                        "'2024-02-29 12:00:00'", "'2030-05-05 05:05:05'")),
    "h": ("time(1)", ("'10:11:12'", "'-01:02:03.5'", "'00:00:00'", "NULL", "'838:59:59'", "'00:00:07'")),
    "y": ("year", ("2024", "1999", "0", "2070", "NULL", "1901")),
    "k": ("bit(9)", ("7", "0", "65", "NULL", "300", "1")),
    "e": ("enum('a','B','7')", ("'a'", "'B'", "NULL", "'7'", "'a'", "'B'")),
    "z": ("set('x','y','a')", ("'x'", "'x,y'", "''", "'a'", "NULL", "'x,y,a'")),
}  # fmt: skip
"""Columns: their types, and their values, one a row."""
MEMBERS = {"e": ("a", "B", "7"), "z": ("x", "y", "a")}
LITERALS = (
    "0", "1", "7", "-3", "12", "24", "99", "2024", "20240102", "20240102030405", "101112", "9223372036854775808",
    "18446744073709551615", "-9223372036854775808", "0.1", "7.0", "-0.5", "12.345", "0.10", "1e20", "7e0", "2.5e0",
    "1e-7", "'a'", "'A'", "'B'", "''", "'7'", "'7.0'", "'12abc'", "' 7'", "'x,y'", "'1e1'", "'-3'", "'0.1'",
    "'2024-01-02'", "'20240102'", "'2024-1-2'", "'24-01-02'", "'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.000'",
    "'1999-12-31 23:59:59.6'", "'2024-02-30'", "'0000-00-00'", "'soon'", "'10:11:12'", "'101112'", "'10:11'",
    "'-01:02:03.5'", "'1 02:03:04'", "'24'", "'99'", "x'41'", "0x07", "b'111'", "NULL", "TRUE", "FALSE",
    "DATE '2024-01-02'", "TIMESTAMP '2024-01-02 03:04:05'", "TIME '10:11:12'", "'é'", "'%a%'", "'1%'", "'_'",
)  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "!=")
ARITHMETIC = ("+", "-", "*", "/", "DIV", "%")
CASTS = ("SIGNED", "UNSIGNED", "CHAR", "BINARY", "DATE", "DATETIME", "TIME")
FUNCTIONS = ("ABS({0})", "FLOOR({0})", "CEIL({0})", "LOWER({0})", "UPPER({0})", "LENGTH({0})", "CHAR_LENGTH({0})",
             "TRIM({0})", "LTRIM({0})", "RTRIM({0})", "-{0}", "LEFT({0}, 1)", "RIGHT({0}, 2)", "SUBSTRING({0}, 2)",
             "SUBSTRING({0}, -2, 1)", "CONCAT({0}, {1})", "COALESCE({0}, {1})", "IFNULL({0}, {1})", "NULLIF({0}, {1})",
             "IF({0}, {1}, {2})", "CASE WHEN {0} THEN {1} ELSE {2} END", "CASE {0} WHEN {1} THEN {2} END",
             "MOD({0}, {1})")  # fmt: skip


@dataclass(slots=True)
class Writer:
    """Writes conditions; the same of a seed."""

    chance: random.Random

    def condition(self, depth: int = 2) -> str:
        """A condition: NULL, 0 or 1."""
        if depth and self.chance.random() < 0.2:
            joint = self.chance.choice(("AND", "OR", "XOR"))
            return f"({self.condition(depth - 1)}) {joint} ({self.condition(depth - 1)})"
        forms = (self._compared, self._compared, self._compared, self._listed, self._between, self._is, self._like)
        return self.chance.choice(forms)()

    def _compared(self) -> str:
        return f"{self._operand()} {self.chance.choice(COMPARISONS)} {self._operand()}"

    def _listed(self) -> str:
        some = ", ".join(self._operand(0) for _ in range(self.chance.randint(1, 3)))
        return f"{self._operand()} {self.chance.choice(('IN', 'NOT IN'))} ({some})"

    def _between(self) -> str:
        return f"{self._operand()} {self.chance.choice(('', 'NOT '))}BETWEEN {self._operand(0)} AND {self._operand(0)}"

    def _is(self) -> str:
        what = self.chance.choice(("IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE", "IS NOT TRUE"))
        return self.chance.choice((f"({self._operand()}) {what}", f"NOT ({self._operand()})"))

    def _like(self) -> str:
        pattern = self.chance.choice(("'%a%'", "'1%'", "'_'", "'%'", "'2024%'", "'%:%'", "'7'", "'B_'"))
        return f"{self._operand()} {self.chance.choice(('LIKE', 'NOT LIKE'))} {pattern}"

    def _operand(self, depth: int = 2) -> str:
        drawn = self.chance.random()
        if not depth or drawn < 0.55:
            return self.chance.choice((*TYPES, *TYPES, *TYPES, *LITERALS))
        if drawn < 0.65:
            return f"({self._operand(0)} {self.chance.choice(ARITHMETIC)} {self._operand(0)})"
        if drawn < 0.8:
            return f"CAST({self._operand(depth - 1)} AS {self.chance.choice(CASTS)})"
        form = self.chance.choice(FUNCTIONS)
        return form.format(*(self._operand(depth - 1) for _ in range(3)))


@dataclass(slots=True)
class Upstream:
    """A TiDB with the rows."""

    cursor: pymysql.cursors.Cursor

    def __post_init__(self) -> None:
        for statement in ("CREATE DATABASE conditions", "USE conditions", "SET sql_mode = ''"):
            self.cursor.execute(statement)
        columns = ", ".join(f"{name} {kind} NULL" for name, (kind, _) in TYPES.items())
        self.cursor.execute(f"CREATE TABLE w (id INT PRIMARY KEY, {columns})")
        for number in range(6):
            values = ", ".join(values[number] for _, values in TYPES.values())
            self.cursor.execute(f"INSERT INTO w VALUES ({number}, {values})")
        self.cursor.execute("SET sql_mode = DEFAULT")

    def rows(self) -> list[dict[str, str | None]]:
        """The values as messages spell them."""
        shown = {"r": "HEX(r)", "k": "k + 0", "e": "e + 0", "z": "z + 0", "g": "g"}
        looks = ", ".join(f"CAST({shown.get(name, name)} AS CHAR)" for name in TYPES)
        self.cursor.execute(f"SELECT {looks} FROM w ORDER BY id")
        found = [dict(zip(TYPES, row, strict=True)) for row in self.cursor.fetchall()]
        return [{**row, "r": row["r"] and bytes.fromhex(row["r"]).decode("latin-1")} for row in found]

    def answers(self, texts: Sequence[str]) -> dict[str, list[int | None]]:
        """What each condition is in each row; without those that TiDB refuses."""
        try:
            looks = ", ".join(f"({text})" for text in texts)
            self.cursor.execute(f"SELECT {looks} FROM w ORDER BY id")
        except pymysql.MySQLError:
            half = len(texts) // 2
            return {**self.answers(texts[:half]), **self.answers(texts[half:])} if half else {}
        found = zip(*self.cursor.fetchall(), strict=True)
        return {
            text: [None if a is None else int(a) for a in column] for text, column in zip(texts, found, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Judged:
    """What is said here of conditions: a line for each that is wrong; stops by their reason; how many of each."""

    wrong: list[str]
    stops: dict[str, str]
    """The first condition of each reason."""
    counts: Counter[str]

    def add(self, asked: Condition, row: Mapping[str, str | None], answer: int | None, line: str) -> None:
        """Ask about one row."""
        try:
            holds = asked.holds(lambda name: value_of(row[name], TYPES[name][0], MEMBERS.get(name, ())))
        except EvaluationError as error:
            self.counts["stopped"] += 1
            self.stops.setdefault(_kind(str(error)), f"{line}: {error}")
            return
        self.counts["judged"] += 1
        if holds != (answer == 1):
            self.wrong.append(line)


def judged(rows: Sequence[Mapping[str, str | None]], answers: Mapping[str, Sequence[int | None]]) -> Judged:
    """Ask our own."""
    found = Judged([], {}, Counter())
    types = {name: kind for name, (kind, _) in TYPES.items()}
    for text, expected in answers.items():
        try:
            asked = typed(read_condition(text, "key"), types)
        except (ConfigError, EvaluationError) as error:
            found.counts["refused"] += len(rows)
            found.stops.setdefault(_kind(str(error)), text)
            continue
        for number, (row, answer) in enumerate(zip(rows, expected, strict=True)):
            found.add(asked, row, answer, f"row {number}: {answer} upstream: {text}")
    return found


def _kind(reason: str) -> str:
    """A reason without the values in it."""
    return re.sub(r"'[^']*'|\d[\d.e+]*", "…", reason)[:120]


def drawn(seed: int, upstream: Upstream, count: int) -> dict[str, list[int | None]]:
    """So many conditions of a seed, as far as TiDB takes them."""
    writer = Writer(random.Random(seed))
    texts = list(dict.fromkeys(writer.condition() for _ in range(count)))
    found: dict[str, list[int | None]] = {}
    for begin in range(0, len(texts), 50):
        found.update(upstream.answers(texts[begin : begin + 50]))
    return found


def live(seeds: Iterator[int], limit: float, most: int, upstream: Upstream) -> Iterator[Judged]:
    """Judge new conditions until a moment of the clock, 500 a seed."""
    rows, left = upstream.rows(), most
    for seed in seeds:
        if left <= 0 or time.monotonic() > limit:
            return
        yield judged(rows, drawn(seed, upstream, min(500, left)))
        left -= 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge new conditions, or record some. Exit code 1 if one was judged otherwise than by TiDB."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.conditions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000_000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--out", type=Path, help="a recording")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="conditions-") as place, TidbServer(Path(place)) as server:
        upstream = Upstream(connected(server))
        if asked.out is not None:
            answers = drawn(asked.seed, upstream, asked.count)
            told = {"rows": upstream.rows(), "answers": list(answers.items())}
            asked.out.write_bytes(gzip.compress(json.dumps(told, ensure_ascii=False).encode(), mtime=0))
            return 0
        found = list(live(itertools.count(asked.seed), time.monotonic() + asked.minutes * 60, asked.count, upstream))
    counts = sum((one.counts for one in found), Counter[str]())
    wrong = [line for one in found for line in one.wrong]
    stops = {kind: text for one in reversed(found) for kind, text in one.stops.items()}
    print(*wrong[:200], *(f"{kind}: {text}" for kind, text in sorted(stops.items())), sep="\n")
    print(*(f"{times} {what}" for what, times in counts.most_common()), f"{len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


def connected(server: TidbServer) -> pymysql.cursors.Cursor:
    """As who compares texts by their bytes."""
    address = urlsplit(server.uri)
    connection = pymysql.connect(host=address.hostname, port=address.port or 0, user="root", autocommit=True)
    cursor = connection.cursor()
    cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
    return cursor


if __name__ == "__main__":
    sys.exit(main())
