"""Foreign keys and checks of DDL, where a server names or takes them otherwise than TiDB. Neither acts on rows here."""

import re
from collections.abc import Collection, Iterator, Sequence

from sinks.ddl.parse.words import Word, WordKind
from sinks.mysql.catalog import quoted
from sinks.mysql.ddl.columns import Edit, is_word

FOREIGN_KEYS = """
SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s
"""
COUNTED = """
SELECT COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE '%%auto_increment%%'
"""
"""The AUTO_INCREMENT column of a table."""
_FOREIGN_KEY = re.compile(r"CONSTRAINT `((?:[^`]|``)*)` FOREIGN KEY")
_NAMED_BY_TIDB = re.compile(r"fk_\d+", re.IGNORECASE)
_NAMED_BY_SERVER = re.compile(r"_ibfk_\d+$")


def foreign_keys_in(definition: str) -> tuple[str, ...]:
    """The names of the foreign keys of a table's definition, as a server shows it."""
    return tuple(name.replace("``", "`") for name in _FOREIGN_KEY.findall(definition))


def automatic(clauses: Sequence[Sequence[Word]]) -> frozenset[str]:
    """The columns, in lower case, that clauses make AUTO_INCREMENT."""
    made = (clause[0].text.lower() for clause in clauses if any(is_word(word, "AUTO_INCREMENT") for word in clause[1:]))
    return frozenset(made)


def why_constraint_left_out(clause: Sequence[Word], keys: Sequence[str] | None, counted: Collection[str]) -> str:
    """Why a clause is left out; "" if it is not. `keys`: see `named_here`; `counted`: see `automatic`."""
    if keys is not None and not keys and _drops_foreign_key(clause):
        return "the table has no foreign key here"
    head = list(clause[1:4] if clause and is_word(clause[0], "ADD") else clause[:3])
    is_check = bool(head) and is_word(head[0], "CHECK", "CONSTRAINT") and any(is_word(w, "CHECK") for w in head)
    if is_check and any(word.kind is WordKind.NAME and word.text.lower() in counted for word in clause):
        return "no server checks an AUTO_INCREMENT column, and neither does upstream"
    return ""


def named_here(clause: Sequence[Word], keys: Sequence[str] | None, notes: list[str]) -> Iterator[Edit]:
    """TiDB calls a foreign key without a name `fk_1`, servers `t_ibfk_1`: the one that is meant, if there is no other.

    `keys`: the names of those of the table.
    """
    if not keys or not _drops_foreign_key(clause):
        return
    name, own = clause[-1], [key for key in keys if _NAMED_BY_SERVER.search(key)]
    is_there = name.text.lower() in {key.lower() for key in keys}
    if not is_there and _NAMED_BY_TIDB.fullmatch(name.text) and len(own) == 1:
        notes.append(f"foreign key {name.text} is {own[0]} here")
        yield name.start, name.stop, quoted(own[0])


def _drops_foreign_key(clause: Sequence[Word]) -> bool:
    return [word.text.upper() for word in clause[:3]] == ["DROP", "FOREIGN", "KEY"]


def without_check(clause: Sequence[Word], counted: Collection[str]) -> tuple[Sequence[Word], list[Edit]]:
    """The words of an AUTO_INCREMENT column without its CHECK, and what takes it out; any other clause as it is."""
    first = next((at for at, word in enumerate(clause) if is_word(word, "CHECK")), None)
    if first is None or clause[0].text.lower() not in counted:
        return clause, []
    depth, last = 0, first
    for last in range(first + 1, len(clause)):
        depth += is_word(clause[last], "(") - is_word(clause[last], ")")
        if not depth:
            break
    while last + 1 < len(clause) and (
        is_word(clause[last + 1], "ENFORCED")
        or [w.text.upper() for w in clause[last + 1 : last + 3]] == ["NOT", "ENFORCED"]
    ):
        last += 1
    return [*clause[:first], *clause[last + 1 :]], [(clause[first].start, clause[last].stop, "")]
