"""Options that TiDB reads and does nothing about, and that a server may not know or not be able to follow.

They change no value: where a server's files are, how they are packed or encrypted, how an ALTER is done. TiDB's DDL is
online whatever `ALGORITHM` and `LOCK` say, and a server refuses what it can't do in the way that is asked for.
NO_WRITE_TO_BINLOG would keep the statement from the replicas of a server.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sinks.ddl.parse.partitions import UNLOGGED
from sinks.ddl.parse.words import Word, WordKind
from sinks.mysql.ddl.columns import Edit, is_word

_NO_DIRECTORY = "TiDB's rows are in no directory"
_NO_EFFECT = "it has no effect in TiDB"
_OPTIONS = (
    "ENCRYPTION", "COMPRESSION", "TABLESPACE", "NODEGROUP", "SECONDARY_ENGINE", "AUTOEXTEND_SIZE", "ENGINE_ATTRIBUTE",
    "SECONDARY_ENGINE_ATTRIBUTE",
)  # fmt: skip
_PAIRS = {
    "STORAGE": ("DISK", "MEMORY", "DEFAULT"),
    "COLUMN_FORMAT": ("FIXED", "DYNAMIC", "DEFAULT"),
}
"""Options without an equals sign."""
_WAYS = ("ALGORITHM", "LOCK")


def why_left_out(clause: Sequence[Word]) -> str:
    """Why a clause of an ALTER TABLE is left out as a whole; "" if it is not."""
    if any(first == 0 and last == len(clause) for first, last in _directories(clause)):
        return _NO_DIRECTORY
    is_check = [word.text.upper() for word in clause[1:]] == ["VALIDATION"] and is_word(clause[0], "WITH", "WITHOUT")
    return _NO_EFFECT if is_check or is_word(clause[0], *_WAYS) else ""


def without_own_options(sql: str, clause: Sequence[Word], notes: list[str]) -> Iterator[Edit]:
    """Takes them out of a clause, or of a statement that has none."""
    for first, last, why in _found(clause):
        notes.append(f"left out: {sql[clause[first].start : clause[last - 1].stop]} ({why})")
        ends = last < len(clause) and is_word(clause[last], ",")
        yield clause[first].start, clause[last if ends else last - 1].stop, ""
    for before, word in pairwise(clause):
        if is_word(word, "RTREE", "HYPO") and is_word(before, "USING", "TYPE"):
            yield word.start, word.stop, "BTREE"


def linear_edits(words: Sequence[Word], notes: list[str]) -> Iterator[Edit]:
    """Makes of LINEAR partitions the plain ones that TiDB makes: in which one a row lies is another thing else."""
    for before, word, following in zip(words, words[1:], words[2:], strict=False):
        if is_word(before, "BY") and is_word(word, "LINEAR") and is_word(following, "HASH", "KEY"):
            notes.append("left out: LINEAR (TiDB has no such partitions)")
            yield word.start, following.start, ""


def ttl_edits(words: Sequence[Word], notes: list[str]) -> Iterator[Edit]:
    """Switches TTL off: rows go when upstream says so. A dump has it as upstream has; TiCDC sends it switched off."""
    for at, word in enumerate(words):
        value = value_of(words, at) if is_word(word, "TTL_ENABLE") else None
        if value is not None and value.text.upper() != "OFF":
            notes.append("TTL_ENABLE is OFF in the target: upstream deletes the rows")
            yield value.start, value.stop, "'OFF'"


def _found(clause: Sequence[Word]) -> Iterator[tuple[int, int, str]]:
    """From and up to which word an option stands, and why it is left out."""
    yield from ((first, last, _NO_DIRECTORY) for first, last in _directories(clause))
    of_index = _is_about_an_index(clause)
    for at, word in enumerate(clause):
        if is_word(word, *_OPTIONS) or (of_index and is_word(word, *_WAYS)):
            if is_word(clause[min(at + 1, len(clause) - 1)], "="):
                yield at, min(at + 3, len(clause)), _NO_EFFECT
        elif is_word(word, UNLOGGED):
            yield at, at + 1, _NO_EFFECT
        elif at + 1 < len(clause) and is_word(clause[at + 1], *_PAIRS.get(_plain(word), ())):
            yield at, at + 2, _NO_EFFECT


def _plain(word: Word) -> str:
    return word.text.upper() if word.kind is WordKind.PLAIN else ""


def _is_about_an_index(clause: Sequence[Word]) -> bool:
    """Whether it is a whole statement that makes or drops an index: `ALGORITHM` of a view is no way to do it."""
    makes = bool(clause) and is_word(clause[0], "CREATE", "DROP")
    return makes and any(is_word(word, "INDEX") for word in clause[1:4])


def _directories(clause: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Where an option stands that says in which directory of the server's machine files are."""
    for at, (word, following) in enumerate(pairwise(clause)):
        value = value_of(clause, at + 1)
        if (
            is_word(word, "DATA", "INDEX")
            and is_word(following, "DIRECTORY")
            and value is not None
            and value.kind is WordKind.STRING
        ):
            yield at, clause.index(value, at) + 1


def value_of(clause: Sequence[Word], at: int) -> Word | None:
    """What follows a word, behind an equals sign if there is one."""
    rest = [word for word in clause[at + 1 : at + 3] if not is_word(word, "=")]
    return rest[0] if rest else None
