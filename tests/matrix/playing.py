"""Plays a case into a target and says what is wrong there."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from ordering.errors import ReconcilerError, TargetError
from tests.matrix.forms import BY_HAND, ENDS, KEYS, POSTGRES_DOMAINS, Form
from tests.matrix.kinds import KINDS, held
from tests.matrix.story import Row, Story
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.local import LocalFeed
from tests.service.messages import ddl
from tests.service.postgres_cells import PostgresCells

Readable = SqliteCells | MariaDbCells | PostgresCells
SIZES = {"few": (2, 9), "many": (40, 150), "bulk": (420, 520)}
BULK_ON_POSTGRES = (2100, 2300)
"""Its bulk path begins at 1,000 rows; that of the MySQL family at 200."""
CONSISTENCIES = ("snapshot", "transaction", "row")
_ENOUGH = 5
"""Rows that a finding shows."""


@dataclass(frozen=True, slots=True)
class Case:
    """One table on one target."""

    target: str
    kind: str
    size: str
    consistency: str
    form: Form
    seed: int

    def __str__(self) -> str:
        made = "our DDL" if self.form.ours else f"by hand {self.form.column!r}{self.form.end}"
        second = ", second unique key" if self.form.second else ""
        return (
            f"{self.target} {self.kind} {self.size} {self.consistency} key={self.form.key}{second}, {made},"
            f" seed {self.seed}"
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case: `refused` is what the target said, `wrong` is what nobody said."""

    case: Case
    refused: str = ""
    wrong: str = ""


def random_case(target: str, random_: random.Random, kinds: Sequence[str]) -> Case:
    """Any case of a target with a key of one of these types."""
    kind = random_.choice(kinds)
    return case_of(target, kind, random_, is_ours=random_.random() < 0.4 and target not in KINDS[kind].beyond)


def case_of(target: str, kind: str, random_: random.Random, *, is_ours: bool) -> Case:
    """A case of a target and a type."""
    column = "" if is_ours else random_.choice(BY_HAND[target][kind])
    end = "" if is_ours else random_.choice((ENDS[target][0], *ENDS[target]))
    key, second = random_.choice(sorted(KEYS)), random_.random() < 0.4
    second = second and "PARTITION" not in end
    if "STRICT" in end and column.split(" ")[0] not in {"INTEGER", "INT", "TEXT", "REAL", "BLOB", "ANY"}:
        end = ""
    if "HASH" in end and column.startswith("bit"):  # it has no hash
        end = ""
    if "WITHOUT" in end and key == "unique":
        end = ""
    form = Form(is_ours, column, key, second, end)
    size = random_.choices(sorted(SIZES), (1, 5, 4))[0]
    return Case(target, kind, size, random_.choice(CONSISTENCIES), form, random_.randrange(10**6))


def play(case: Case, uri: str, cells: Readable, place: Path) -> Result:
    """Play one case into an empty database of its own, which stays."""
    database = f"m{uuid4().hex[:8]}"
    chance = random.Random(case.seed)
    low, high = BULK_ON_POSTGRES if (case.target, case.size) == ("postgres", "bulk") else SIZES[case.size]
    story = Story(chance, KINDS[case.kind], case.form, database, chance.randrange(low, high))
    feed = LocalFeed.into(uri, cells, place)
    feed.with_(target={"consistency": case.consistency})
    if not case.form.ours:
        _make(feed, case, database)
    try:
        if case.form.ours:
            _send_ddl(feed, case, database)
        for number, window in enumerate(story.windows(3)):
            feed.send(window.messages)
            feed.apply()
            if wrong := differences(case, window.rows, cells, database):
                return Result(case, wrong=f"window {number}: " + "; ".join(wrong))
    except TargetError as error:
        return _judged(case, error, database)
    except ReconcilerError as error:
        return Result(case, wrong=f"{type(error).__name__}: {error}")
    return Result(case)


def _judged(case: Case, error: TargetError, database: str) -> Result:
    """A refusal names the table; a table of our own refuses nothing."""
    if case.form.ours or f"{database}.t" not in str(error):
        return Result(case, wrong=f"refused: {error}")
    return Result(case, refused=str(error))


def _send_ddl(feed: LocalFeed, case: Case, database: str) -> None:
    definition = case.form.definition(KINDS[case.kind].declared, "INT")
    feed.send(
        [
            ddl(f"{database}.", 1, f"CREATE DATABASE `{database}`", kind="QUERY"),
            ddl(f"{database}.t", 2, f"CREATE TABLE `t` ({definition})"),
        ]
    )


def _make(feed: LocalFeed, case: Case, database: str) -> None:
    second = "INTEGER" if "STRICT" in case.form.end else "INT"
    statement = f"CREATE TABLE t ({case.form.definition(case.form.column, second)}){case.form.end}"
    if case.target == "postgres":
        statement = POSTGRES_DOMAINS + statement
        if "PARTITION" in case.form.end:
            parts = (f"CREATE TABLE t{i} PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER {i})" for i in range(3))
            statement = ";".join([statement, *parts])
    feed.make_database(database, statement)


def differences(case: Case, rows: list[Row], cells: Readable, database: str) -> list[str]:
    """What the target lacks, and what it has too many, a text each."""
    meaning = KINDS[case.kind].meaning
    own = case.form.column.lower()
    as_number = not case.form.ours and (own.startswith("int") or not own)
    wanted = Counter((held(case.kind, row["k"], as_number=as_number), row["n"], row["u"], row["v"]) for row in rows)
    found: Counter[tuple[object, ...]] = Counter()
    for row in cells.tables([database])[f"{database}.t"][1]:
        key = row["k"].rstrip(" ") if own.startswith("char(") else row["k"]  # PostgreSQL shows the type's own blanks
        found[_read(meaning, key), str(row["n"]), str(row["u"]), row["v"]] += 1
    lacks, has = list((wanted - found).elements()), list((found - wanted).elements())
    said = [f"lacks {row}" for row in lacks[:_ENOUGH]] + [f"has {row}" for row in has[:_ENOUGH]]
    return [f"{len(lacks)} missing, {len(has)} too many", *said] if said else []


def _read(meaning: object, value: object) -> object:
    try:
        return meaning(value)  # type: ignore[operator]
    except (ArithmeticError, TypeError, ValueError, AttributeError):
        return f"no value of the type: {value!r}"


__all__ = ["Case", "Readable", "Result", "case_of", "differences", "play", "random_case"]
