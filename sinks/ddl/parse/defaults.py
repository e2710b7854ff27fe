"""Reads what stands behind DEFAULT: a literal, or an expression that upstream computes."""

from sinks.ddl.model import Default
from sinks.ddl.parse.words import Word, WordKind, Words


class Number(str):
    """The text of a literal that is a number: 5 as a BIT is 5, '5' is a letter."""

    __slots__ = ()


_CONSTANTS = {"TRUE": Number("1"), "FALSE": Number("0"), "NULL": None}


def read_default(words: Words) -> Default:
    """The default that comes next. Raises InputError at the end of the statement."""
    if constant := words.skip_any(*_CONSTANTS):
        return Default(_CONSTANTS[constant])
    if words.peek().startswith("_") and words.words[words.at + 1 :]:
        words.take()  # an introducer: TiDB prints the text that follows in UTF-8 whatever it says
    sign = "-" if words.skip("-") else ""
    words.skip("+")
    word = words.take()
    if (value := _value(word)) is not None:
        return Default(type(value)(sign + value) if isinstance(value, str) else value)
    words.at -= 1
    return Default(expression=read_expression(words))


def _value(word: Word) -> str | bytes | None:
    """What a literal says; None for a word that is none."""
    if word.kind is WordKind.HEX:
        return bytes.fromhex(word.text.zfill(len(word.text) + len(word.text) % 2))
    if word.kind is WordKind.BITS:
        return int(word.text or "0", 2).to_bytes(max(1, -(-len(word.text) // 8)))
    number = word.kind is WordKind.PLAIN and (word.text[:1].isdigit() or word.text[:1] == ".")
    if number:
        return Number(word.text)
    return word.text if word.kind is WordKind.STRING else None


def read_expression(words: Words) -> str:
    """The source of an expression: one in brackets, or a function's name with its arguments."""
    start = words.words[words.at].start if not words.ended else 0
    if words.peek() == "(":
        words.in_brackets()
    else:
        words.take()
        if words.peek() == "(":
            words.in_brackets()
    return words.sql[start : words.words[words.at - 1].stop]
