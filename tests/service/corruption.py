"""Random corruption of a target, each found by the next scrub: `python -m tests.service.corruption TARGET TRIALS SEED`.

TARGET is sqlite, mariadb, mysql, tidb or postgres. A trial changes one thing by hand (a flipped bit or another value in
a column of any type that is in the sums, a row that is lost, doubled under another key, foreign, or of which the key
changed), lets the scrub look, and takes the change back, which has to be found equal again.
"""

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from consumer.proof import scrub as scrubbing
from consumer.proof.report import ProofVerdict
from consumer.proof.scrub import Scrub
from tests.embedded import MariaDbServer, MySqlServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, typed, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import connected

COLUMNS = {
    "i": "int", "b": "bigint", "u": "bigint unsigned", "n": "decimal(30,10)", "c": "char(8)", "s": "varchar(40)",
    "x": "text", "bin": "varbinary(20)", "blob_": "blob", "d": "date", "dt": "datetime(6)", "ts": "timestamp(3)",
    "tm": "time(3)", "y": "year", "bt": "bit(20)", "e": "enum('a','b','c')", "st": "set('p','q','r')",
    "f": "float", "g": "double", "gd": "double(12,3)", "fd": "float(7,2)", "j": "json", "v": "vector(3)",
    "ti": "tinyint", "si": "smallint unsigned", "mi": "mediumint", "bo": "tinyint(1)", "fix": "binary(8)",
    "long_": "longtext", "ci": "varchar(20)",
}  # fmt: skip
"""Column -> its type upstream."""
_FOLDED = {"ci": "COLLATE utf8mb4_general_ci"}
"""What its target's server takes as equal, where it has such collations, differs all the same."""
_BITS = {"int": 31, "bigint": 63, "tinyint": 7, "smallint unsigned": 16, "mediumint": 23, "tinyint(1)": 1}
"""The bits of a number that can change without leaving its type; of `bigint unsigned` those of SQLite's numbers."""
_NUMBERS = ("int", "bigint", "bigint unsigned", "tinyint", "smallint unsigned", "mediumint")
_SWAPS = {"s": (".", "!"), "x": ("t", "u"), "long_": ("a", "c")}
"""A character of each value of a text, and one that differs in a bit or a few."""
SERVERS: dict[str, Any] = {
    "mariadb": MariaDbServer, "mysql": MySqlServer, "tidb": TidbServer, "postgres": PostgresServer,
}  # fmt: skip
MYSQL_FAMILY = {"mariadb", "mysql", "tidb"}
_CHECKED = {"j", "e", "st"}
"""SQLite looks at what is written there by hand."""
_ULPS = {"float": "1.00000012e0", "double": "1.0000000000000003e0"}
"""What changes a float's last bits alone."""
_ALIKE = ("Ab", "aB", "AB", "straße", "strasse", "é", "e")
"""Texts; each one's neighbour is equal to it, or nearly so, in collations that fold."""
ROWS = 40
PIECE = 15
Change = tuple[str, str, str]
"""What it is, the statement, and the one that takes it back."""


def values(chance: random.Random, number: int) -> dict[str, object]:
    """A row, as messages spell it; some values are NULL."""
    moment = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(10**9))
    found: dict[str, object] = {
        "i": chance.randrange(-(2**31), 2**31), "b": chance.randrange(-(2**63), 2**63), "u": chance.randrange(2**63),
        "n": f"{chance.randrange(-(10**19), 10**19)}.{chance.randrange(10**10):010}",
        "c": f"c{number}", "s": "".join(chance.choices("abcdef'|: é漢", k=12)) + ".", "x": f"text {number}\n" * 3,
        "bin": "".join(map(chr, chance.choices(range(1, 256), k=12))),
        "blob_": "".join(map(chr, chance.choices(range(1, 256), k=30))),
        "d": f"{moment:%Y-%m-%d}", "dt": f"{moment:%Y-%m-%d %H:%M:%S}.{chance.randrange(10**6):06}",
        "ts": f"{moment:%Y-%m-%d %H:%M:%S}.{chance.randrange(1000):03}",
        "tm": f"{chance.randrange(24):02}:{chance.randrange(60):02}:07.{chance.randrange(1000):03}",
        "y": chance.randrange(1901, 2156), "bt": chance.randrange(2**20), "e": chance.randrange(1, 4),
        "st": chance.randrange(8), "f": chance.choice([0, -0.5, 1234.56, 1.5e-06, chance.randrange(10**6) / 100]),
        "g": chance.choice([0, 1e300, 0.1, 123456789.12345679, chance.uniform(-1e14, 1e14), -1.2345678901234567e-300]),
        "gd": chance.randrange(-(10**12), 10**12) / 1000, "fd": chance.randrange(-(10**7), 10**7) / 100,
        "j": document(chance, number),
        "ti": chance.randrange(-128, 128), "si": chance.randrange(2**16), "mi": chance.randrange(-(2**23), 2**23),
        "bo": chance.randrange(2), "fix": "".join(map(chr, chance.choices(range(256), k=8))),
        "long_": "a" + "".join(chance.choices("é漢😀\n\\", k=600)), "ci": chance.choice(_ALIKE),
        "v": f"[{chance.randrange(9)},0.{chance.randrange(1, 9)},{chance.choice(['1e-07', '-3.5e+20', '16777216'])}]",
    }  # fmt: skip
    for name in chance.sample(sorted(found), 2):
        found[name] = None
    return found


def document(chance: random.Random, number: int) -> str:
    """A JSON document, as TiCDC spells one."""
    texts = "".join(chance.choices("ab'\\\"{} é漢", k=6))
    made = {"k": number, "a": [chance.randrange(2**63), 1.5, 1e30, None, True, texts], texts: {"b": -0.25, "": []}}
    return chance.choice([json.dumps(made), json.dumps(texts), json.dumps(chance.uniform(-1e9, 1e9)), "null"])


@dataclass
class Corruption:
    """One target with one table, and its scrub."""

    feed: LocalFeed
    kind: str
    chance: random.Random
    at: float = 0.0
    scrub: Scrub = field(init=False)

    def begin(self) -> None:
        """Make the table, fill it, prove it once."""
        columns = ", ".join(f"`{name}` {kind} {_FOLDED.get(name, '')}" for name, kind in COLUMNS.items())
        self.feed.send([ddl("cor.", 1, "CREATE DATABASE `cor`", kind="QUERY")])
        self.feed.send([ddl("cor.t", 2, f"CREATE TABLE `t` (id INT PRIMARY KEY, {columns})")])
        rows = ({"id": i, **values(self.chance, i)} for i in range(ROWS))
        self.feed.send(typed(insert("cor.t", 3, row["id"] % 3, **row), **COLUMNS) for row in rows)  # type: ignore[operator]
        self.feed.send(watermarks(4))
        self.feed.apply()
        log = self.feed.log_of_messages
        config = self.feed.with_(proof={"rows-per-second": 10**6}).config
        self.scrub = Scrub(config, control=log, readers=log, now=lambda: self.at, round_s=1e9)  # type: ignore[arg-type]
        self.scrub.round()
        assert self.verdict() == "equal"

    def verdict(self) -> str:
        """What the next scrub says."""
        self.at += 7200
        proof = self.scrub.round()
        ((_, found),) = proof.tables.values()
        assert found.verdict in {ProofVerdict.EQUAL, ProofVerdict.DIFFERENT}, found.reason
        return str(found.verdict.value)

    def change(self) -> Change:
        """A change, and its opposite. The copy `cor_kept` of the table holds what was right."""
        number, new = self.chance.randrange(ROWS), ROWS + self.chance.randrange(1000)
        back = f"DELETE FROM t WHERE id = {number}; INSERT INTO t SELECT * FROM kept WHERE id = {number}"
        names = ", ".join(COLUMNS)
        which = self.chance.randrange(12)
        if which == 0:
            return "lost row", f"DELETE FROM t WHERE id = {number}", back
        if which == 1:
            copied = f"INSERT INTO t (id, {names}) SELECT {new}, {names} FROM t WHERE id = {number}"
            return "doubled row", copied, f"DELETE FROM t WHERE id = {new}"
        if which == 2:
            return "foreign row", f"INSERT INTO t (id, i) VALUES ({new}, 1)", f"DELETE FROM t WHERE id = {new}"
        if which == 3:
            moved = f"UPDATE t SET id = {new} WHERE id = {number}"
            return "moved row", moved, f"DELETE FROM t WHERE id = {new}; {back}"
        column = self.chance.choice(list(COLUMNS))
        if which < 7 and self.kind == "sqlite" and column not in _CHECKED:
            told = (
                f"another class of {COLUMNS[column]}",
                f"UPDATE t SET {column} = {self._reclassed(column)} WHERE id = {number}",
            )
        else:
            told = f"changed {COLUMNS[column]}", f"UPDATE t SET {column} = {self.other(column)} WHERE id = {number}"
        return *told, back

    def _reclassed(self, column: str) -> str:
        """The same bytes in another storage class: one bit of a record's header."""
        other = "TEXT" if COLUMNS[column].startswith(("blob", "varbinary", "binary")) else "BLOB"
        return f"CASE WHEN {column} IS NULL THEN {self.other(column)} ELSE CAST({column} AS {other}) END"

    def other(self, column: str) -> str:
        """An expression for a value that differs a little from the one that is there."""
        kind = COLUMNS[column].split("(", maxsplit=1)[0]
        known = {
            **dict.fromkeys(_NUMBERS, self._number),
            **dict.fromkeys(("varchar", "text", "longtext"), self._text),
            **dict.fromkeys(("varbinary", "blob", "binary"), self._flipped),
            "year": self._year, "decimal": self._decimal, "bit": self._bits, "float": self._next, "double": self._next,
            "json": self._document, "vector": self._vector,
        }  # fmt: skip
        return known[kind](column) if kind in known else self._one_of_two(column, kind)

    def _number(self, column: str) -> str:
        """One bit; neither direction leaves the type's range."""
        bit = 1 << self.chance.randrange(_BITS.get(COLUMNS[column], 63))
        return (
            f"CASE WHEN {column} IS NULL THEN 1 WHEN {column} >= {bit} THEN {column} - {bit} ELSE {column} + {bit} END"
        )

    def _year(self, column: str) -> str:
        return f"CASE WHEN {column} IS NULL THEN 2000 WHEN {column} > 1950 THEN {column} - 1 ELSE {column} + 1 END"

    def _next(self, column: str) -> str:
        """Also its last bits, and from what is proven by its value to what is only known to be very large, and back."""
        if COLUMNS[column] in _ULPS and self.chance.random() < 0.5:
            ulp = _ULPS[COLUMNS[column] if self.kind != "sqlite" else "double"]
            cast = (
                f"({column} * {ulp})::{'real' if column == 'f' else 'float8'}"
                if self.kind == "postgres"
                else f"{column} * {ulp}"
            )
            return f"CASE WHEN {column} IS NULL THEN 0.5 WHEN {column} = 0 THEN 0.25 ELSE {cast} END"
        if self.chance.random() < 0.5:
            return f"CASE WHEN {column} IS NULL THEN 0.5 WHEN {column} = 0 THEN 0.25 ELSE 0 END"
        return f"CASE WHEN {column} IS NULL THEN 0.5 WHEN {column} = 0 THEN 0.25 ELSE {column} / 4 END"

    def _document(self, column: str) -> str:
        """Deep inside, or another one altogether."""
        kind = "::jsonb" if self.kind == "postgres" else ""
        held = {"postgres": f"{column}::text", "sqlite": column}.get(self.kind, f"CAST({column} AS CHAR)")
        deep = f"REPLACE({held}, '-0.25', '-0.250001'){kind}"
        changed = (
            f"CASE WHEN {held} LIKE '%-0.25%' THEN {deep} WHEN {held} = 'null' THEN '0'{kind} ELSE 'null'{kind} END"
        )
        return f"CASE WHEN {column} IS NULL THEN 'null'{kind} ELSE {changed} END"

    def _vector(self, column: str) -> str:
        """A text, but in TiDB."""
        held = f"CAST({column} AS CHAR)" if self.kind == "tidb" else column
        return f"CASE WHEN {column} IS NULL THEN '[0,0,0]' ELSE REPLACE({held}, '0.', '0.0') END"

    def _decimal(self, column: str) -> str:
        tiny = "0.0000000001"
        more = f"{column} || '1'" if self.kind == "sqlite" else f"{column} + {tiny}"
        return f"CASE WHEN {column} IS NULL THEN {tiny} ELSE {more} END"

    def _text(self, column: str) -> str:
        """Another character, or one more."""
        if column in _FOLDED:
            return self._folded(column)
        before, after = _SWAPS[column]
        more = f"{column} || '~'" if self.kind in {"sqlite", "postgres"} else f"CONCAT({column}, '~')"
        other = self.chance.choice([more, f"REPLACE({column}, '{before}', '{after}')"])
        return f"CASE WHEN {column} IS NULL THEN '' ELSE {other} END"

    def _folded(self, column: str) -> str:
        """The neighbour; compared by its bytes, wherever others are equal."""
        binary = "CAST({} AS BINARY)" if self.kind in MYSQL_FAMILY else "{}"
        neighbours = zip(_ALIKE, (*_ALIKE[1:], _ALIKE[0]), strict=True)
        whens = " ".join(
            f"WHEN {binary.format(column)} = {binary.format(repr(one))} THEN '{other}'" for one, other in neighbours
        )
        return f"CASE {whens} ELSE 'x' END"

    def _flipped(self, column: str) -> str:
        """One bit of a byte; in SQLite a byte more."""
        place, bit = self.chance.randrange(8), self.chance.randrange(8)
        if self.kind == "postgres":
            at = 8 * place + bit
            other = f"set_bit({column}, {at}, 1 - get_bit({column}, {at}))"
            return f"CASE WHEN {column} IS NULL THEN ''::bytea ELSE {other} END"
        byte = f"CHAR(ASCII(SUBSTRING({column}, {place + 1}, 1)) ^ {1 << bit})"
        if self.kind == "sqlite":
            return f"CASE WHEN {column} IS NULL THEN X'' ELSE CAST({column} || X'00' AS BLOB) END"
        return f"CASE WHEN {column} IS NULL THEN X'' ELSE INSERT({column}, {place + 1}, 1, {byte}) END"

    def _bits(self, column: str) -> str:
        if self.kind == "postgres":
            bit = 1 << self.chance.randrange(20)
            return f"CASE WHEN {column} IS NULL THEN 1::bit(20) ELSE {column} # {bit}::bit(20) END"
        return f"CASE WHEN {column} IS NULL THEN 1 WHEN {column} > 9 THEN {column} - 1 ELSE {column} + 1 END"

    def _one_of_two(self, column: str, kind: str) -> str:
        first, second = {
            "char": ("z", "y"), "enum": ("a", "b"), "set": ("p", "q,r"),
            "date": ("2001-02-03", "2001-02-04"), "time": ("01:02:03.004", "01:02:03.005"),
            "datetime": ("2001-02-03 04:05:06.000007", "2001-02-03 04:05:06.000008"),
            "timestamp": ("2001-02-03 04:05:06.007", "2001-02-03 04:05:06.008"),
        }[kind]  # fmt: skip
        types = {"date": "date", "time": "interval", "datetime": "timestamp", "timestamp": "timestamptz"}
        cast = f"::{types[kind]}" if self.kind == "postgres" and kind in types else ""
        return f"CASE WHEN {column} = '{first}' THEN '{second}'{cast} ELSE '{first}'{cast} END"

    def keep(self) -> None:
        """Make the copy of what is right, which the scrub is not to see."""
        like = "LIKE t; INSERT INTO kept" if self.kind in MYSQL_FAMILY else "AS"
        self.feed.cells.run("cor", f"CREATE TABLE kept {like} SELECT * FROM t")

    def trial(self) -> tuple[str, bool]:
        """Change, look, take back, look: what was changed, and whether it was found."""
        what, there, back = self.change()
        self.feed.cells.run("cor", there)
        found = self.verdict() == "different"
        for statement in back.split("; "):
            self.feed.cells.run("cor", statement)
        assert self.verdict() == "equal", (what, there, back)
        return what, found


def opened(kind: str, place: Path, server: Any) -> LocalFeed:
    """A changefeed into a new target; the copy of what is right is no table of upstream's."""
    if kind == "sqlite":
        target = place / f"target-{uuid4().hex[:8]}"
        feed = LocalFeed.into(f"sqlite:///{target}", SqliteCells(target), place)
    else:
        feed = LocalFeed.into(server.uri, (PostgresCells if kind == "postgres" else MariaDbCells)(server.uri), place)
    if kind == "tidb":
        connected(server).close()
    return feed.with_(filter={"rules": ["*.*", "!*.kept"]})  # type: ignore[return-value]


def trials(kind: str, count: int, seed: int | str, place: Path, server: Any = None) -> Iterator[tuple[str, bool]]:
    """So many trials on a table of its own; without a server that is given in one of its own too."""
    with ExitStack() as stack:
        for name in ("PIECE_ROWS", "LOCKED_ROWS"):
            stack.enter_context(patch.object(scrubbing, name, PIECE))
        if server is None and kind != "sqlite":
            server = stack.enter_context(SERVERS[kind](place))
        feed = opened(kind, place, server)
        if not isinstance(feed.cells, SqliteCells):
            stack.enter_context(emptied(feed.cells))
        one = Corruption(feed, kind, random.Random(seed))
        one.begin()
        one.keep()
        for _ in range(count):
            yield one.trial()


def main() -> int:
    """Play; 1 if one was not found."""
    kind, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tried: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        for what, found in trials(kind, count, seed, Path(place)):
            tried[what] += 1
            missed[what] += not found
            if sum(tried.values()) % 100 == 0:
                print(f"{kind}: {sum(tried.values())} tried, {sum(missed.values())} missed", flush=True)
    print(dict(sorted(tried.items())), "missed:", dict(+missed))
    return 1 if +missed else 0


if __name__ == "__main__":
    sys.exit(main())
