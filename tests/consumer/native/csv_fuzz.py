"""Cases that compare what the compiled core makes of CSV files with what Python does.

    python -m tests.consumer.native.csv_fuzz [--first SEED] [--cases N] [--library PATH]

Each case is told by its seed. Events, their lines and errors have to be the same, bytewise.
"""

import random
import sys
from typing import NamedTuple

from consumer.native import Core
from consumer.storage.csv_file import CsvRules, CsvTable, lines_of
from consumer.storage.csv_lines import CsvFile
from consumer.storage.schema_file import FileColumn, TableFile
from ordering.errors import InputError
from tests.consumer.native.fuzzing import compared
from tests.service.mutations import spoiled

_RULES = (
    CsvRules(), CsvRules(), CsvRules(), CsvRules(quote="'"), CsvRules(delimiter="||"), CsvRules(null="NULL"),
    CsvRules(delimiter="\t", null=""), CsvRules(terminator="\n"), CsvRules(terminator="#"), CsvRules(quote=""),
    CsvRules(null="1"), CsvRules(delimiter='"'), CsvRules(null="true"),
)  # fmt: skip
_TYPES = (
    "INT", "BIGINT UNSIGNED", "YEAR", "BIT", "DOUBLE", "FLOAT", "VARCHAR", "DECIMAL", "DATETIME", "JSON", "ENUM", "SET",
)  # fmt: skip
_RARE = ("BLOB", "VARBINARY", "INTEGER", "GEOMETRY")
_MEMBERS = (("a", "b"), ("a", "", "ü", "a", "x"), ("a b", 'q"q', "#"), tuple(f"m{n}" for n in range(70)))
_TEXTS = (
    "",
    "a",
    "ab",
    'say "x"',
    "two\r\nlines\n",
    "é中😀",
    "\\N",
    "NULL",
    "\0\x1f\b\t\f",
    "||",
    "a,b",
    "#",
    "it's",
    "\\",
)
_NUMBERS = ("0", "-1", "007", "18446744073709551615", "1.5", "-0.25", "1e5", "2E-3", "", "x", "1" * 21, "+1")
_OPS = "IIIUUUDDX"


class Outcome(NamedTuple):
    """All that is made of a file."""

    events: list[tuple[int, bytes]]
    """With the numbers of their lines."""
    error: str


class Case(NamedTuple):
    """A file, and how it is read."""

    content: bytes
    table: TableFile
    rules: CsvRules


def _columns(chance: random.Random) -> tuple[FileColumn, ...]:
    kinds = [chance.choice(_TYPES) for _ in range(chance.randint(1, 5))]
    if chance.random() < 0.1:
        kinds.append(chance.choice(_RARE))
    primary = chance.choice(("", "true"))
    return tuple(
        FileColumn(f"c{i}" if i else 'k"é', kind, primary if i == 0 else "", chance.choice(_MEMBERS))
        for i, kind in enumerate(kinds)
    )


def _quoted(text: str, rules: CsvRules) -> str:
    return rules.quote + (text.replace(rules.quote, rules.quote * 2) if rules.quote else text) + rules.quote


def _value(chance: random.Random, column: FileColumn, rules: CsvRules, odd: float) -> str:
    base = column.type.partition(" ")[0]
    if chance.random() < 0.1:
        return rules.null
    if base in ("INT", "BIGINT", "YEAR", "BIT", "INTEGER") or base in ("DOUBLE", "FLOAT"):
        real = base in ("DOUBLE", "FLOAT")
        usual = f"{chance.uniform(-9, 9):.3f}" if real else str(chance.randrange(-99, 99))
        text = chance.choice(_NUMBERS) if chance.random() < odd else usual
        return _quoted(text, rules) if chance.random() < odd / 4 else text
    members = column.members or ()
    if base == "ENUM":
        return _quoted(chance.choice((*members, "", "?") if chance.random() < odd else members), rules)
    if base == "SET":
        some = chance.sample(members, chance.randint(0, min(3, len(members))))
        return _quoted(",".join([*some, *(some[:1] if chance.random() < odd else [])]), rules)
    return _quoted(chance.choice(_TEXTS), rules)


def _line(chance: random.Random, columns: tuple[FileColumn, ...], rules: CsvRules, odd: float, *, more: bool) -> str:
    """One line, or the two of an UPDATE."""
    names = ["t", "d"] if chance.random() >= odd / 4 else ["t", "D"]
    ts = str(chance.choice((9, 10**17 + 3))) if chance.random() >= odd / 4 else chance.choice(("", "0", "09", "9" * 20))
    halves = [(chance.choice(_OPS if odd else _OPS[:-1]), "false")]
    if more and chance.random() < 0.5:
        halves = [("D", "true"), ("I", "true")] if chance.random() >= odd / 2 else [(chance.choice(_OPS), "true")]
    found = ""
    for op, updated in halves:
        fields = [_quoted(text, rules) for text in (op, *names)] + [ts] + ([updated] if more else [])
        fields += [_value(chance, column, rules, odd) for column in columns]
        found += rules.delimiter.join(fields) + (rules.terminator or chance.choice(("\r\n", "\r\n", "\n")))
    return found


def case_of(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    rules, columns = chance.choice(_RULES), _columns(chance)
    more, odd = chance.random() < 0.4, chance.choice((0.0, 0.0, 0.02, 0.2))
    text = "".join(_line(chance, columns, rules, odd, more=more) for _ in range(chance.choice((1, 3, 40))))
    if chance.random() < 0.2:
        meta = ["operation", "table", "schema", "commit-ts", *(["is-update"] if more else [])]
        names = [f"ticdc-meta${name}" for name in meta] + [column.name for column in columns]
        text = rules.delimiter.join(names) + (rules.terminator or "\r\n") + text
    content = text.encode()
    for _ in range(chance.choice((0, 0, 1, 3))):
        content = spoiled(content, chance)
    return Case(content, TableFile("t", "d", 5, columns=columns, total=len(columns)), rules)


def told(case: Case) -> Outcome:
    """What Python makes of a file, line by line."""
    events: list[tuple[int, bytes]] = []
    try:
        text = case.content.decode()
    except UnicodeDecodeError as error:
        number = case.content.count(b"\n", 0, error.start) + 1
        return Outcome([], str(InputError(f"a text is no UTF-8: {error.reason}", where=f"line {number}")))
    try:
        table = CsvTable(case.table, case.rules)
        for line in lines_of(text, case.rules):
            event = table.canal(line)
            if event is not None:
                events.append((line.number, event))
        table.check_ended()
        table.check_binary()
    except InputError as error:
        return Outcome(events, str(error))
    return Outcome(events, "")


def found_by(case: Case, core: Core) -> tuple[Outcome, int]:
    """What is made of a file with the core, and how many events came in runs of several."""
    events: list[tuple[int, bytes]] = []
    at_once = 0
    try:
        for lines in CsvFile(case.content, CsvTable(case.table, case.rules), case.rules, core).runs():
            at = 0
            for length, number in zip(lines.lens, lines.numbers, strict=True):
                events.append((number, lines.joined[at : at + length]))
                at += length
            assert at == len(lines.joined)
            at_once += len(lines.lens) if len(lines.lens) > 1 else 0
    except InputError as error:
        return Outcome(events, str(error)), at_once
    return Outcome(events, ""), at_once


def check(seed: int, core: Core) -> int:
    """Raise AssertionError unless both agree; how many events came in runs of several."""
    case = case_of(seed)
    wanted, (found, at_once) = told(case), found_by(case, core)
    assert found.error == wanted.error, f"case {seed}: {found.error!r} is not {wanted.error!r}"
    # of what one run holds Python gives nothing where it ends with an error
    events = wanted.events[: len(found.events)] if found.error else wanted.events
    assert found.events == events, f"case {seed}: {found.events!r} are not {events!r}"[:4_000]
    return at_once


def main() -> int:
    """Compare many cases."""
    return compared(__doc__, lambda core: lambda seed: check(seed, core))


if __name__ == "__main__":
    sys.exit(main())
